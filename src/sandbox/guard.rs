//! What cannot be made unwritable is looked at after each command, and put back.
//!
//! Namespaces make what is there read-only, but cannot do that to what is not
//! there. Landlock only ever allows: in a workspace that may be written it has
//! no way to leave something out. There a copy of all protected files is kept,
//! of repositories all but their objects, which nobody runs.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Tier;
use super::places::Grounds;

/// Entries of a repository that only grow, and that nothing runs.
const UNWATCHED: &[&str] = &["objects", "lfs"];
/// The part of these by which a repository borrows from elsewhere.
const BORROWED: &str = "info";

/// Watches over the protected files of a workspace.
#[derive(Debug)]
pub(super) struct Guard {
    workspace: PathBuf,
    roots: Vec<PathBuf>,
    kept: Mutex<BTreeMap<PathBuf, Kept>>,
}

/// How an entry was, and must be.
#[derive(Debug)]
struct Kept {
    what: What,
    mark: Mark,
}

#[derive(Debug)]
enum What {
    File(PathBuf),
    Directory,
    Link(PathBuf),
    /// Neither: a socket, a pipe. It is only missed.
    Other,
}

/// By this a change is seen without reading: nobody sets the last at will.
#[derive(Debug, PartialEq, Eq)]
struct Mark {
    inode: u64,
    size: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Guard {
    /// Remembers how the protected files are.
    ///
    /// # Errors
    /// When a copy of one cannot be made.
    pub(super) fn new(tier: Tier, grounds: &Grounds) -> io::Result<Self> {
        let records = grounds.records.as_deref();
        let below = grounds.protected.iter().filter(|path| {
            path.starts_with(&grounds.workspace)
                && *path != &grounds.workspace
                && !records
                    .is_some_and(|records| records.starts_with(path) || path.starts_with(records))
        });
        let unprevented = below.filter(|path| match (tier, path.symlink_metadata()) {
            (Tier::Landlock, _) | (_, Err(_)) => true,
            (Tier::Namespaces, Ok(found)) => found.is_symlink(),
        });
        let guard = Self {
            workspace: grounds.workspace.clone(),
            roots: unprevented.cloned().collect(),
            kept: Mutex::default(),
        };
        let copies = grounds.private.join("kept");
        let mut kept = guard.kept();
        for root in &guard.roots {
            for (path, found) in entries(root) {
                let copy = copies.join(kept.len().to_string());
                let what = keep(&path, &found, copy)?;
                let mark = Mark::of(&found);
                kept.insert(path, Kept { what, mark });
            }
        }
        drop(kept);
        Ok(guard)
    }

    /// Puts back what changed, and says what that was.
    pub(super) fn settle(&self) -> Vec<String> {
        let mut kept = self.kept();
        let mut changed = Vec::new();
        for root in &self.roots {
            let now: BTreeMap<PathBuf, Metadata> = entries(root).into_iter().collect();
            // What is deeper goes first.
            for path in now.keys().rev().filter(|path| !kept.contains_key(*path)) {
                remove(path);
                changed.push(path.clone());
            }
            for (path, kept) in kept.range_mut(root.clone()..) {
                if !path.starts_with(root) {
                    break;
                }
                let found = now.get(path);
                if found.is_some_and(|found| Mark::of(found) == kept.mark) {
                    continue;
                }
                if !kept.is_the_same(path, found) {
                    kept.put_back(path);
                    changed.push(path.clone());
                }
                if let Ok(found) = path.symlink_metadata() {
                    kept.mark = Mark::of(&found);
                }
            }
        }
        changed.sort_unstable();
        changed.iter().map(|path| self.told(path)).collect()
    }

    fn told(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.workspace).unwrap_or(path);
        format!(
            "{} is protected: what the command made of it was undone",
            shown.display()
        )
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mark {
    fn of(found: &Metadata) -> Self {
        Self {
            inode: found.ino(),
            // That of a directory changes with what is in it, which is looked at.
            size: if found.is_dir() { 0 } else { found.size() },
            mode: found.mode(),
            changed: match found.is_dir() {
                true => (0, 0),
                false => (found.ctime(), found.ctime_nsec()),
            },
        }
    }
}

impl Kept {
    /// Whether an entry that was touched is still what it was.
    fn is_the_same(&self, path: &Path, found: Option<&Metadata>) -> bool {
        let Some(found) = found.filter(|found| found.mode() == self.mark.mode) else {
            return false;
        };
        match &self.what {
            What::File(copy) => found.size() == self.mark.size && same_bytes(copy, path),
            What::Directory | What::Other => true,
            What::Link(target) => fs::read_link(path).is_ok_and(|now| now == *target),
        }
    }

    /// An entry that cannot be put back is told all the same.
    fn put_back(&self, path: &Path) {
        remove(path);
        let _ = match &self.what {
            What::File(copy) => fs::copy(copy, path).map(|_| ()),
            What::Directory => fs::create_dir(path),
            What::Link(target) => symlink(target, path),
            What::Other => Ok(()),
        };
        if matches!(self.what, What::File(_) | What::Directory) {
            let mode = fs::Permissions::from_mode(self.mark.mode & 0o7777);
            let _ = fs::set_permissions(path, mode);
        }
    }
}

fn keep(path: &Path, found: &Metadata, copy: PathBuf) -> io::Result<What> {
    Ok(if found.is_symlink() {
        What::Link(fs::read_link(path)?)
    } else if found.is_dir() {
        What::Directory
    } else if found.is_file() {
        if let Some(above) = copy.parent() {
            fs::create_dir_all(above)?;
        }
        fs::copy(path, &copy)?;
        What::File(copy)
    } else {
        What::Other
    })
}

/// What is at and below `root`, what is above first. Links are not followed.
fn entries(root: &Path) -> Vec<(PathBuf, Metadata)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(path) = open.pop() {
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        if metadata.is_dir() {
            let below = fs::read_dir(&path).into_iter().flatten().flatten();
            open.extend(
                below
                    .map(|entry| entry.path())
                    .filter(|path| is_watched(path)),
            );
        }
        found.push((path, metadata));
    }
    found
}

/// Whether an entry of a directory is looked at: all but the objects of a
/// repository.
fn is_watched(path: &Path) -> bool {
    let name = |path: &Path, names: &[&str]| {
        path.file_name()
            .is_some_and(|name| names.iter().any(|one| name == *one))
    };
    let of_repository = |directory: &Path| directory.join("HEAD").symlink_metadata().is_ok();
    let Some(above) = path.parent() else {
        return true;
    };
    if name(path, UNWATCHED) && of_repository(above) {
        return name(path, &["objects"]);
    }
    let beneath = above.parent().is_some_and(of_repository);
    !(beneath && name(above, UNWATCHED)) || name(path, &[BORROWED])
}

fn remove(path: &Path) {
    let _ = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(_) => Ok(()),
    };
}

fn same_bytes(one: &Path, other: &Path) -> bool {
    match (fs::read(one), fs::read(other)) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
