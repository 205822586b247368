//! What of a git directory commands may change, and what is watched in it.
//!
//! Git runs what the configuration and the hooks of a repository name, and takes
//! settings and objects from elsewhere where a file says so. Where commands may
//! commit, they may write the files on the list below and nothing else: a file
//! that a later version of git reads is not on it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::options::GitAccess;
use crate::access::{Folder, Kind, Name};

/// What commits, branches, merges, rebases and stashes write at the top of a git
/// directory, each also with `.lock` behind it. With a `*` at the end it is the
/// beginning of a name.
const WRITTEN: &[&str] = &[
    "AUTO_MERGE",
    "BISECT_*",
    "CHERRY_PICK_HEAD",
    "COMMIT_EDITMSG",
    "EDIT_DESCRIPTION",
    "FETCH_HEAD",
    "HEAD",
    "MERGE_*",
    "NOTES_*",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "TAG_EDITMSG",
    "gc.log",
    "gc.pid",
    "index",
    "index.stash.*",
    "logs",
    "next-index-*",
    "packed-refs",
    "packed-refs.new",
    "rebase-apply",
    "rebase-merge",
    "rebased-patches",
    "refs",
    "reftable",
    "rr-cache",
    "sequencer",
    "shallow",
    "sharedindex*",
];

/// The objects of a repository only grow, and nothing runs them.
const OBJECTS: &str = "objects";
/// The directory in these whose files say where others are borrowed from; one
/// beside them has settings.
const INFO: &str = "info";
/// Those files.
const BORROWED: &[&str] = &["alternates", "http-alternates"];
/// What git writes in `info` by itself after packing: a list for readers without git.
const INFO_WRITTEN: &[&str] = &["refs", "rev-cache"];
/// Large files, which only grow likewise.
const LARGE_FILES: &[&str] = &["annex", "lfs"];
/// Where the git directories of submodules and of linked worktrees are.
const NESTED: &[&str] = &["modules", "worktrees"];
/// What makes a directory a repository to git; a linked worktree has the rest
/// elsewhere.
const PARTS: &[&str] = &["HEAD", OBJECTS, "refs"];
const WORKTREE_PARTS: &[&str] = &["HEAD", "commondir"];

/// The names of a directory that are watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// All of them.
    All,
    /// Those of a git directory: all but the files that it keeps apart, and those
    /// that commands may write.
    Repository(GitAccess),
    /// Those of its objects: where it borrows others from.
    Objects(GitAccess),
    /// The files that say where from.
    Borrowed,
    /// Those of a git directory's `info`: all but what git writes by itself.
    Info,
    /// All of them: some are git directories.
    Nested(GitAccess),
}

impl Names {
    /// Of the directory that is watched itself. Only its place says what may be a
    /// repository: anybody can make a `HEAD`.
    pub(super) fn of_root(directory: &Path, access: GitAccess) -> Self {
        let name = directory.file_name().and_then(OsStr::to_str);
        let git = name.is_some_and(|name| name.ends_with(".git"));
        match access {
            GitAccess::Writable => Self::Repository(access),
            GitAccess::ReadOnly if git && has(directory, PARTS) => Self::Repository(access),
            GitAccess::ReadOnly => Self::All,
        }
    }

    /// Of `directory`, which is in one that is watched in this way.
    pub(super) fn below(self, directory: &Path) -> Self {
        let is = |names: &[&str]| names.iter().any(|name| directory.ends_with(name));
        match self {
            Self::Repository(access) if is(&[OBJECTS]) => Self::Objects(access),
            Self::Repository(access) if is(NESTED) => Self::Nested(access),
            Self::Repository(GitAccess::Writable) if is(&[INFO]) => Self::Info,
            Self::Objects(GitAccess::Writable) => Self::Borrowed,
            Self::Nested(access) if has(directory, PARTS) => Self::Repository(access),
            Self::Nested(GitAccess::Writable) if has(directory, WORKTREE_PARTS) => {
                Self::Repository(GitAccess::Writable)
            }
            Self::Nested(access) => Self::Nested(access),
            Self::All | Self::Borrowed | Self::Info | Self::Repository(_) | Self::Objects(_) => {
                Self::All
            }
        }
    }

    /// Whether a name in the directory is watched.
    pub(super) fn includes(self, one: &Name) -> bool {
        let is = |names: &[&str]| names.iter().any(|name| one.name == *name);
        match self {
            Self::All | Self::Nested(_) => true,
            Self::Repository(_) if is(LARGE_FILES) => one.kind != Kind::Directory,
            Self::Repository(GitAccess::ReadOnly) => true,
            Self::Repository(GitAccess::Writable) => !is_written(&one.name),
            Self::Objects(_) => is(&[INFO]),
            Self::Borrowed => is(BORROWED),
            Self::Info => !is(INFO_WRITTEN),
        }
    }

    /// Of the directory of a repository's objects, what commands may do there.
    pub(super) fn of_objects(self) -> Option<GitAccess> {
        match self {
            Self::Objects(access) => Some(access),
            Self::All | Self::Repository(_) | Self::Borrowed | Self::Info | Self::Nested(_) => None,
        }
    }

    /// Whether everything below the directory is watched, whatever it is called.
    fn is_whole(self) -> bool {
        self == Self::All
    }
}

fn has(directory: &Path, parts: &[&str]) -> bool {
    let there = |part: &&str| directory.join(part).symlink_metadata().is_ok();
    parts.iter().all(there)
}

fn is_written(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    let name = name.strip_suffix(".lock").unwrap_or(name);
    WRITTEN
        .iter()
        .any(|written| match written.strip_suffix('*') {
            Some(begin) => name.starts_with(begin),
            None => name == *written,
        })
}

/// What is there in a git directory and not for commands to write, where they may
/// commit to it: files, and directories with all that is in them.
pub(super) fn settings(repository: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let top = Names::of_root(repository, GitAccess::Writable);
    let mut open = vec![(repository.to_path_buf(), top)];
    while let Some((directory, names)) = open.pop() {
        let Ok(folder) = Folder::open(&directory) else {
            continue;
        };
        for one in folder.names().into_iter().flatten().flatten() {
            let path = directory.join(&one.name);
            if !names.includes(&one) {
                continue;
            }
            let below = names.below(&path);
            match one.kind == Kind::Directory && !below.is_whole() {
                true => open.push((path, below)),
                false => found.push(path),
            }
        }
    }
    found
}
