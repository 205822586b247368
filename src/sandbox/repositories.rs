//! Every repository of a workspace: the one it is, those nested in it, and where
//! the files named `.git` lead.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, FileType};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::appeared::{Before, Mark, Parts, PathTest, is_git, is_planted};

/// So many entries of a workspace are looked at.
const ENTRIES_MAX: usize = 400_000;
/// A file named `.git` holds one line.
const POINTER_BYTES_MAX: u64 = 8 * 1024;

/// Paths that no program may touch, by rules.
#[derive(Debug, Clone, Default)]
pub struct Denials {
    /// Those that may not be read.
    pub read: Option<PathTest>,
    /// Those that may not be written.
    pub write: Option<PathTest>,
}

/// What was found in a workspace.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Every `.git` of the tree, what it stands for within the tree, and bare
    /// repositories.
    pub repositories: Vec<PathBuf>,
    /// Directories of these repositories outside the tree.
    pub outside: Vec<PathBuf>,
    /// What has a name that was asked for; of a directory also all that is in it.
    pub named: Vec<PathBuf>,
    /// Files and directories with a path that was asked for.
    pub placed: Vec<PathBuf>,
    /// What may not be read, by rules; of a directory all that is in it.
    pub denied_reads: Vec<PathBuf>,
    /// What may not be written.
    pub denied_writes: Vec<PathBuf>,
    /// What the tree holds, to see later what appeared; none when only a part of it
    /// was looked at.
    pub before: Option<Arc<Before>>,
    /// Whether the tree is so large that only a part of it was looked at.
    pub partial: bool,
}

/// What is known of a directory for all that is in it.
#[derive(Clone, Copy, Default)]
struct Meant {
    /// It was asked for by name.
    named: bool,
    /// Rules mean it.
    read: bool,
    write: bool,
}

impl Survey {
    /// Notes what rules mean, and is not in a directory that they mean anyway.
    fn judge(&mut self, path: &Path, above: Meant, denials: &Denials) -> Meant {
        let means = |test: &Option<PathTest>| test.as_ref().is_some_and(|test| test.means(path));
        let meant = Meant {
            read: above.read || means(&denials.read),
            write: above.write || means(&denials.write),
            ..above
        };
        for (list, fresh) in [
            (&mut self.denied_reads, meant.read && !above.read),
            (&mut self.denied_writes, meant.write && !above.write),
        ] {
            list.extend(fresh.then(|| path.to_owned()));
        }
        meant
    }
}

/// Looks through `workspace` for repositories, for files and directories with names
/// that `wanted` accepts, for anything at a path from the workspace that `placed`
/// accepts, and for what rules mean. Links are not followed.
pub fn survey(
    workspace: &Path,
    wanted: impl Fn(&OsStr, FileType) -> bool,
    placed: impl Fn(&Path) -> bool,
    denials: &Denials,
) -> Survey {
    let (mut survey, mut before) = (Survey::default(), Before::default());
    let mut repositories = BTreeSet::from([workspace.join(".git")]);
    let mut open = vec![(workspace.to_path_buf(), Meant::default())];
    let mut left = ENTRIES_MAX;
    while let Some((directory, above)) = open.pop() {
        if survey.partial {
            break;
        }
        let (mark, mut parts) = (Mark::of(&directory), Parts::default());
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if left == 0 {
                survey.partial = true;
                break;
            }
            left -= 1;
            let (name, path) = (entry.file_name(), entry.path());
            parts.add(&name);
            let mut meant = survey.judge(&path, above, denials);
            let is_placed = path.strip_prefix(workspace).is_ok_and(&placed);
            survey.placed.extend(is_placed.then(|| path.clone()));
            if is_git(&name) {
                repositories.insert(path);
            } else if let Ok(kind) = entry.file_type() {
                meant.named |= wanted(&name, kind);
                survey.named.extend(meant.named.then(|| path.clone()));
                open.extend(kind.is_dir().then_some((path, meant)));
            }
        }
        if parts.are_all() && directory != workspace {
            repositories.insert(directory.clone());
        }
        before.note(directory, mark.and_then(Mark::settled), parts);
    }
    repositories.retain(|repository| !is_planted(repository));
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
    before.repositories.clone_from(&repositories);
    before.fixed.clone_from(&denials.write);
    before.fixed_paths = survey.denied_writes.iter().cloned().collect();
    survey.before = (!survey.partial).then(|| Arc::new(before));
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
