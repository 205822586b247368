//! Every repository of a workspace: the one it is, those nested in it, and where
//! the files named `.git` lead.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};

/// So many entries of a workspace are looked at.
const ENTRIES_MAX: usize = 400_000;
/// A file named `.git` holds one line.
const POINTER_BYTES_MAX: u64 = 8 * 1024;

/// What was found in a workspace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Every `.git` of the tree, and what it stands for within the tree.
    pub repositories: Vec<PathBuf>,
    /// Directories of these repositories outside the tree.
    pub outside: Vec<PathBuf>,
    /// What has a name that was asked for; of a directory also all that is in it.
    pub named: Vec<PathBuf>,
    /// Files and directories with a path that was asked for.
    pub placed: Vec<PathBuf>,
    /// Whether the tree is so large that only a part of it was looked at.
    pub partial: bool,
}

/// Looks through `workspace` for repositories, for files and directories with names
/// that `wanted` accepts, and for anything at a path from the workspace that `placed`
/// accepts. Links are not followed.
pub fn survey(
    workspace: &Path,
    wanted: impl Fn(&OsStr, FileType) -> bool,
    placed: impl Fn(&Path) -> bool,
) -> Survey {
    let mut survey = Survey::default();
    let mut repositories = BTreeSet::from([workspace.join(".git")]);
    // Each with whether it was asked for, or is in one that was.
    let mut open = vec![(workspace.to_path_buf(), false)];
    let mut left = ENTRIES_MAX;
    while let Some((directory, asked_for)) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if left == 0 {
                survey.partial = true;
                break;
            }
            left -= 1;
            let name = entry.file_name();
            let path = entry.path();
            if path.strip_prefix(workspace).is_ok_and(&placed) {
                survey.placed.push(path);
            }
            if name == ".git" {
                repositories.insert(entry.path());
            } else if let Ok(kind) = entry.file_type() {
                let named = asked_for || wanted(&name, kind);
                survey.named.extend(named.then(|| entry.path()));
                open.extend(kind.is_dir().then(|| (entry.path(), named)));
            }
        }
    }
    // The workspace may be a part of a repository.
    let above = workspace.ancestors().skip(1).map(|way| way.join(".git"));
    let above = above.filter(|_| !workspace.join(".git").exists());
    let mut stands_for: Vec<PathBuf> = above.filter(|git| git.exists()).take(1).collect();
    let leading: Vec<PathBuf> = stands_for.iter().chain(&repositories).cloned().collect();
    for git in &leading {
        stands_for.extend(git_directories(git));
    }
    for directory in stands_for {
        if directory.starts_with(workspace) {
            repositories.insert(directory);
        } else if !survey.outside.contains(&directory) {
            survey.outside.push(directory);
        }
    }
    survey.repositories = repositories.into_iter().collect();
    survey
}

/// The directories that a file or a link named `.git` stands for.
fn git_directories(git: &Path) -> Vec<PathBuf> {
    let Ok(found) = git.symlink_metadata() else {
        return Vec::new();
    };
    let directory = if found.is_symlink() {
        git.canonicalize().ok()
    } else if found.is_file() && found.len() <= POINTER_BYTES_MAX {
        pointed(git, "gitdir:")
    } else {
        None
    };
    let Some(directory) = directory else {
        return Vec::new();
    };
    // A worktree shares the rest with its repository.
    let common = pointed(&directory.join("commondir"), "");
    common.into_iter().chain([directory]).collect()
}

/// The real path that a file names after `prefix`, from its own directory.
fn pointed(file: &Path, prefix: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let target = text.trim().strip_prefix(prefix)?.trim();
    file.parent()?.join(target).canonicalize().ok()
}
