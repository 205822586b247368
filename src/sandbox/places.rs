//! Which places of the machine a command may read and write: the same in all
//! tiers, by allowing and not by forbidding.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// What programs are made of and how they are set up.
const SYSTEM: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/nix",
    "/gnu",
    "/snap",
    "/home/linuxbrew",
    "/var/lib/dpkg",
    "/var/lib/alternatives",
    "/run/current-system",
];

/// So many settings of the machine are looked at.
const SETTINGS_MAX: usize = 50_000;
/// Everybody may read it; may read and search it.
const OTHERS_READ: u32 = 0o4;
const OTHERS_ENTER: u32 = 0o5;

/// What the machine keeps to itself in these places.
const SYSTEM_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/krb5.keytab",
    "/etc/security/opasswd",
    "/etc/docker",
    "/etc/kubernetes",
    "/etc/wireguard",
    "/etc/NetworkManager/system-connections",
];

/// Where toolchains and their caches are, below the home directory.
const TOOL_HOMES: &[&str] = &[
    ".asdf",
    ".bun",
    ".cache/go-build",
    ".cache/pip",
    ".cargo",
    ".deno",
    ".gradle",
    ".local/bin",
    ".local/lib",
    ".local/pipx",
    ".local/share/mise",
    ".local/share/uv",
    ".m2",
    ".npm",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".sdkman",
    ".volta",
    "go",
];

/// Credentials within those.
const TOOL_SECRETS: &[&str] = &[
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gradle/gradle.properties",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
];

/// Credentials below the home directory, for when it is the workspace.
const HOME_SECRETS: &[&str] = &[
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".docker/config.json",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".ssh",
];

/// What a job's commands work with.
#[derive(Debug, Clone, Default)]
pub struct Grounds {
    /// The workspace: absolute and real.
    pub workspace: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// A directory of the job's own for what commands keep elsewhere; made by
    /// the caller, and removed by it.
    pub private: PathBuf,
    /// Where programs are looked up, as in `PATH`.
    pub path: String,
    /// What no command may write in the workspace, whether it is there or not.
    pub protected: Vec<PathBuf>,
    /// What the runner itself writes meanwhile, and no command may: the directory
    /// of the run first, when it has one, then files of others that it goes on with.
    pub records: Vec<PathBuf>,
    /// What no command may read in the workspace.
    pub hidden: Vec<PathBuf>,
    /// This program, which passes on what commands send to the hosts that they may
    /// reach.
    pub forwarder: Option<PathBuf>,
}

/// What may be read and written, resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// To be read, as they are named: some are links.
    pub(super) read: Vec<PathBuf>,
    /// Not to be read, although a place above may be.
    pub(super) secret: Vec<PathBuf>,
    /// To be read and written.
    pub(super) write: Vec<PathBuf>,
}

impl Grounds {
    /// Where the home directory of commands is.
    pub fn private_home(&self) -> PathBuf {
        self.private.join("home")
    }

    /// Where their temporary files are.
    pub(super) fn private_tmp(&self) -> PathBuf {
        self.private.join("tmp")
    }

    /// Where the proxy for listed hosts is to listen.
    pub fn proxy_socket(&self) -> PathBuf {
        self.private.join("proxy")
    }

    /// What may be read and written here, with what a task lists besides.
    pub(super) fn places(&self, read: &[PathBuf], write: &[PathBuf]) -> Places {
        let mut places: BTreeSet<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        let mut secret: Vec<PathBuf> = SYSTEM_SECRETS.iter().map(PathBuf::from).collect();
        secret.extend(closed_to_others(Path::new("/etc")));
        let home = self.home.as_deref().filter(|home| home.is_absolute());
        if let Some(home) = home {
            places.extend(TOOL_HOMES.iter().map(|tool| home.join(tool)));
            secret.extend(TOOL_SECRETS.iter().map(|tool| home.join(tool)));
            let listed: Vec<&PathBuf> = read.iter().chain(write).chain([&self.workspace]).collect();
            let keys = HOME_SECRETS.iter().map(|name| home.join(name));
            secret.extend(keys.filter(|key| !listed.iter().any(|place| place.starts_with(key))));
        }
        let programs = std::env::split_paths(&self.path).filter(|path| path.is_absolute());
        for directory in programs {
            places.insert(tool_home(&directory, home));
        }
        places.extend(read.iter().cloned());
        let mut write: Vec<PathBuf> = write.to_vec();
        write.push(self.workspace.clone());
        secret.extend(self.hidden.iter().cloned());
        let there = |path: &PathBuf| path.symlink_metadata().is_ok();
        Places {
            read: places
                .into_iter()
                .filter(|path| there(path) && !is_too_much(path, home))
                .collect(),
            secret: secret.into_iter().filter(there).collect(),
            write: write.into_iter().filter(there).collect(),
        }
    }
}

/// The place of the toolchain whose programs are in `directory`: shims read
/// what is beside them.
fn tool_home(directory: &Path, home: Option<&Path>) -> PathBuf {
    let hidden = home
        .and_then(|home| directory.strip_prefix(home).ok())
        .and_then(|rest| rest.components().next())
        .filter(|first| {
            let name = first.as_os_str().to_string_lossy();
            name.starts_with('.') && name.len() > 1
        });
    match (home, hidden) {
        // These hold more than programs.
        (Some(_), Some(first))
            if [".local", ".config", ".cache", ".ssh"]
                .iter()
                .any(|big| first.as_os_str() == *big) =>
        {
            directory.to_path_buf()
        }
        (Some(home), Some(first)) => home.join(first),
        _ => directory.to_path_buf(),
    }
}

/// Whether a directory of programs would open everything.
fn is_too_much(path: &Path, home: Option<&Path>) -> bool {
    path == Path::new("/") || Some(path) == home || path == Path::new("/tmp")
}

/// What the machine does not let everybody read, such as keys: commands of an
/// administrator, to whom it belongs, are everybody.
fn closed_to_others(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    let mut left = SETTINGS_MAX;
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            left = match left.checked_sub(1) {
                Some(left) => left,
                None => return found,
            };
            let Ok(what) = entry.metadata() else { continue };
            let mode = what.permissions().mode();
            if what.is_dir() && mode & OTHERS_ENTER == OTHERS_ENTER {
                open.push(entry.path());
            } else if what.is_dir() || (what.is_file() && mode & OTHERS_READ == 0) {
                found.push(entry.path());
            }
        }
    }
    found
}
