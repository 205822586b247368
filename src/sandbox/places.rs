//! Which places of the machine a command may read and write: the same in all
//! tiers, by allowing and not by forbidding.

use std::collections::BTreeSet;
use std::fs;
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
    /// Where the runner itself writes meanwhile, and no command may.
    pub records: Option<PathBuf>,
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
        secret.extend(host_keys());
        let home = self.home.as_deref().filter(|home| home.is_absolute());
        if let Some(home) = home {
            places.extend(TOOL_HOMES.iter().map(|tool| home.join(tool)));
            secret.extend(TOOL_SECRETS.iter().map(|tool| home.join(tool)));
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

/// The keys by which this machine is known to others.
fn host_keys() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc/ssh").into_iter().flatten().flatten();
    let keys = entries.filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with("ssh_host_") && name.ends_with("_key")
    });
    keys.map(|entry| entry.path()).collect()
}
