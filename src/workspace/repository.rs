//! Finding the git repository around a directory by reading its files, so that
//! no git runs under a configuration that nobody vouched for.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::access::{self, Entry};

/// Git's own files are small; a larger `.git`, `commondir` or `config` is none.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A git repository around a workspace.
#[derive(Debug, Clone)]
pub(super) struct Repository {
    /// The workspace, real and absolute.
    pub(super) workspace: PathBuf,
    /// The top of the working copy.
    pub(super) top: PathBuf,
    /// Where `index` and `HEAD` are.
    pub(super) git_dir: PathBuf,
    /// Where `objects`, `config` and `info` are; another one for a worktree.
    pub(super) common_dir: PathBuf,
    /// Whether object names are SHA-256.
    pub(super) sha256: bool,
}

impl Repository {
    /// Looks in `workspace`, a real path, and above it.
    pub(super) fn discover(workspace: &Path) -> Option<Self> {
        workspace.ancestors().find_map(|top| {
            let git_dir = git_dir_of(top)?;
            let common_dir = common_dir_of(&git_dir);
            if !git_dir.join("HEAD").exists() || !common_dir.join("objects").is_dir() {
                return None;
            }
            let sha256 =
                read_small(&common_dir.join("config")).is_some_and(|config| names_sha256(&config));
            Some(Self {
                workspace: workspace.to_owned(),
                top: top.to_owned(),
                git_dir,
                common_dir,
                sha256,
            })
        })
    }

    /// The workspace relative to the top; empty when it is the top.
    pub(super) fn prefix(&self) -> &Path {
        self.workspace
            .strip_prefix(&self.top)
            .unwrap_or(Path::new(""))
    }
}

fn git_dir_of(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    let kind = fs::metadata(&dot_git).ok()?;
    if kind.is_dir() {
        return Some(dot_git);
    }
    if !kind.is_file() {
        return None;
    }
    let text = read_small(&dot_git)?;
    let target = text.strip_prefix("gitdir:")?.trim();
    top.join(target).canonicalize().ok()
}

fn common_dir_of(git_dir: &Path) -> PathBuf {
    read_small(&git_dir.join("commondir"))
        .and_then(|text| git_dir.join(text.trim()).canonicalize().ok())
        .unwrap_or_else(|| git_dir.to_owned())
}

fn names_sha256(config: &str) -> bool {
    config.lines().any(|line| {
        line.split_once('=').is_some_and(|(key, value)| {
            key.trim().eq_ignore_ascii_case("objectformat")
                && value.trim().eq_ignore_ascii_case("sha256")
        })
    })
}

fn read_small(path: &Path) -> Option<String> {
    // Its own directory may be reached by a link; the file itself is none.
    let path = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    let Ok(Entry::File(opened)) = access::look(&path) else {
        return None;
    };
    if opened.metadata.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut text = String::new();
    opened
        .file
        .take(FILE_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    Some(text)
}
