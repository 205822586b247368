//! Directories for temporary files that only the job's commands have: a sandbox
//! gives them, and what is written there is seen by no other program.

use std::path::{Path, PathBuf};

use super::scope::{Scope, real_or_same};

/// The temporary files of commands in a sandbox; nothing where there is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TemporaryFiles {
    /// What `$TMPDIR` is to commands.
    pub variable: Option<PathBuf>,
    /// The directories that they have to themselves.
    pub private: Vec<PrivateDirectory>,
}

/// A directory that only commands have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateDirectory {
    /// As commands name it; absolute.
    pub path: PathBuf,
    /// Where it really is.
    pub place: PathBuf,
}

impl PrivateDirectory {
    /// The directory that commands name `path`, and that is at `place`.
    pub fn at(path: PathBuf, place: PathBuf) -> Self {
        Self { path, place }
    }
}

impl TemporaryFiles {
    /// Whether a path, as commands name it, is in such a directory, and leads
    /// nowhere else by the links there.
    pub(crate) fn hold(&self, path: &Path, scope: &Scope) -> bool {
        let above = self.private.iter().filter_map(|private| {
            let rest = path.strip_prefix(&private.path).ok()?;
            Some((private, rest))
        });
        // What is mounted deepest is what a command sees.
        let nearest = above.max_by_key(|(private, _)| private.path.components().count());
        nearest.is_some_and(|(private, rest)| {
            let located = scope.locate(&private.place.join(rest));
            located.is_ok_and(|located| located.real.starts_with(real_or_same(&private.place)))
        })
    }
}
