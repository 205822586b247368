//! Paths that a link of a working copy would lead out of it. Whoever may commit to
//! a repository may commit `out.json -> ~/.bashrc` and `prompt.md -> /etc/shadow`.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// So many links are followed, as by the kernel.
const LINKS_MAX: usize = 40;

/// Directories whose links may be anybody's; links elsewhere are the user's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkingCopies {
    /// Real.
    roots: Vec<PathBuf>,
}

/// A path that a working copy leads elsewhere.
#[derive(Debug, thiserror::Error)]
#[error(
    "{} is a link of the working copy that leads out of it, to {}; name that file itself, or \
     replace the link",
    link.display(),
    target.display()
)]
pub struct LeadsOut {
    /// The link, at its real place.
    pub link: PathBuf,
    /// Where the path leads.
    pub target: PathBuf,
}

impl WorkingCopies {
    /// The repositories that these directories are in; a directory that is in none
    /// counts itself.
    pub fn around<'p>(directories: impl IntoIterator<Item = &'p Path>) -> Self {
        let real = directories
            .into_iter()
            .filter_map(|at| at.canonicalize().ok());
        Self {
            roots: real.map(|at| repository(&at).unwrap_or(at)).collect(),
        }
    }

    /// These and the repository that `directory` is in, if it is in one.
    #[must_use]
    pub fn with_repository_of(mut self, directory: &Path) -> Self {
        let real = directory.canonicalize().ok();
        self.roots.extend(real.and_then(|at| repository(&at)));
        self
    }

    /// The real path that the absolute `path` leads to, whether or not anything is
    /// there.
    ///
    /// # Errors
    /// When a link of a working copy leads out of all of them, with a [`LeadsOut`] in
    /// the error; or when there are too many links.
    pub fn resolve(&self, path: &Path) -> io::Result<PathBuf> {
        let mut open: Vec<OsString> = parts(path);
        let mut at = PathBuf::from("/");
        let mut own_link = None;
        let mut links = 0;
        while let Some(part) = open.pop() {
            if part == ".." {
                at.pop();
                continue;
            }
            let next = at.join(&part);
            let Ok(target) = fs::read_link(&next) else {
                at = next;
                continue;
            };
            links += 1;
            if links > LINKS_MAX {
                return Err(io::Error::other(
                    "there are too many links on the way to it",
                ));
            }
            if self.contains(&at) {
                own_link = Some(next);
            }
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            open.extend(parts(&target));
        }
        match own_link.filter(|_| !self.contains(&at)) {
            Some(link) => Err(io::Error::other(LeadsOut { link, target: at })),
            None => Ok(at),
        }
    }

    /// Whether a real path is in one of them.
    pub fn contains(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }
}

/// The parts of a path below its root, the last one first.
fn parts(path: &Path) -> Vec<OsString> {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    parts.collect()
}

/// The top of the repository that a real directory is in.
fn repository(directory: &Path) -> Option<PathBuf> {
    let mut above = directory.ancestors();
    let top = above.find(|at| at.join(".git").symlink_metadata().is_ok())?;
    Some(top.to_owned())
}
