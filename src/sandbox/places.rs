//! Which places of the machine a command may read and write: the same in all
//! tiers, by allowing and not by forbidding.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::appeared::Before;
use super::closed::{INSTALLATIONS, SETTINGS_MAX, closed_to_others, installations};
use super::toolchains;
use crate::access::{HOME_CREDENTIALS, MACHINE_CREDENTIALS};

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
    "/nix",
    "/gnu",
    "/snap",
    "/home/linuxbrew",
    "/var/lib/dpkg",
    "/var/lib/alternatives",
    "/run/current-system",
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
    /// The environment of commands, for the toolchains that its variables name.
    pub env: Vec<(String, String)>,
    /// What no command may write in the workspace, whether it is there or not.
    pub protected: Vec<PathBuf>,
    /// Git directories to which commands may commit: real directories.
    pub repositories: Vec<PathBuf>,
    /// What the runner itself writes meanwhile, and no command may: the directory
    /// of the run first, when it has one, then files of others that it goes on with.
    pub records: Vec<PathBuf>,
    /// What no command may read in the workspace.
    pub hidden: Vec<PathBuf>,
    /// What the workspace holds; none when that is not known.
    pub before: Option<Arc<Before>>,
    /// Files of which commands see another text, as far as the tier can: the path and
    /// that text.
    pub views: Vec<(PathBuf, String)>,
    /// As `private`, for hooks of the task: no command may write there.
    pub hooks: Option<PathBuf>,
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
    pub fn private_tmp(&self) -> PathBuf {
        self.private.join("tmp")
    }

    /// Where the proxy for listed hosts is to listen.
    pub fn proxy_socket(&self) -> PathBuf {
        self.private.join("proxy")
    }

    /// What hooks work with, where they have a directory of their own.
    pub fn for_hooks(&self) -> Option<Self> {
        Some(Self {
            private: self.hooks.clone()?,
            ..self.clone()
        })
    }

    /// What may be read and written here, with what a task lists besides.
    pub(super) fn places(&self, read: &[PathBuf], write: &[PathBuf]) -> Places {
        let home = self.home.as_deref().filter(|home| home.is_absolute());
        let mut secret: Vec<PathBuf> = MACHINE_CREDENTIALS.iter().map(PathBuf::from).collect();
        secret.extend(closed_to_others(Path::new("/etc"), SETTINGS_MAX).paths);
        let tools = toolchains::places(home, &self.env);
        let mut keys = tools.secret;
        if let Some(home) = home {
            keys.extend(HOME_CREDENTIALS.iter().map(|name| home.join(name)));
        }
        let programs = std::env::split_paths(&self.path).filter(|path| path.is_absolute());
        let programs = programs.map(|directory| tool_home(&directory, home));
        let in_use = tools.read.into_iter().chain(programs);
        let (installed, in_use): (Vec<PathBuf>, Vec<PathBuf>) = in_use
            .filter(|path| !is_too_much(path, home))
            .partition(|path| path.starts_with(INSTALLATIONS));
        let installed = installations(&installed);
        let mut places: BTreeSet<PathBuf> = in_use.into_iter().collect();
        places.extend(installed.read);
        keys.extend(installed.secret);
        places.extend(SYSTEM.iter().map(PathBuf::from));
        places.extend(read.iter().cloned());
        let listed: Vec<&PathBuf> = read.iter().chain(write).chain([&self.workspace]).collect();
        keys.retain(|key| !listed.iter().any(|place| place.starts_with(key)));
        secret.extend(keys);
        let mut write: Vec<PathBuf> = write.to_vec();
        write.push(self.workspace.clone());
        secret.extend(self.hidden.iter().cloned());
        let there = |path: &PathBuf| path.symlink_metadata().is_ok();
        let large = [Some(Path::new("/")), Some(Path::new("/tmp")), home];
        places.retain(|path| there(path) && !large.contains(&Some(path)));
        secret.retain(there);
        write.retain(there);
        Places {
            read: places.into_iter().collect(),
            secret: outermost(secret),
            write,
        }
    }
}

/// The paths that are in no other of them.
fn outermost(mut paths: Vec<PathBuf>) -> Vec<PathBuf> {
    paths.sort_unstable();
    // What is in a path follows it.
    paths.dedup_by(|path, before| path.starts_with(before));
    paths
}

/// The place of the toolchain whose programs are in `directory`: shims read
/// what is beside them.
fn tool_home(directory: &Path, home: Option<&Path>) -> PathBuf {
    if let Ok(installed) = directory.strip_prefix(INSTALLATIONS) {
        let of_installation = directory.ends_with("bin") && installed.components().count() > 2;
        let above = directory.parent().filter(|_| of_installation);
        return above.unwrap_or(directory).to_path_buf();
    }
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

/// Whether a directory of programs or of a toolchain would open everything.
fn is_too_much(path: &Path, home: Option<&Path>) -> bool {
    path == Path::new("/tmp") || home.unwrap_or(Path::new("/")).starts_with(path)
}
