//! What cannot be made unwritable is looked at after each command, and put back.
//!
//! Namespaces make what is there read-only, but cannot do that to what is not
//! there. Landlock only ever allows: in a workspace that may be written it has
//! no way to leave something out. There a copy of all protected files is kept,
//! of repositories all but their objects, which nobody runs.
//!
//! A command may have made anything of the names, so none is trusted: every
//! directory is opened without following a link, and what is above a protected
//! file is put back before it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{AtFlags, Mode};

use super::Tier;
use super::exposed::Exposed;
use super::kept::{Kept, Store, Watched, What};
use super::places::Grounds;
use crate::access::Folder;

/// The most names that are told.
const TOLD_MAX: usize = 20;

/// What is watched by any job of this process. Whoever comes while a command of
/// another job runs must not take what that made of a place for what was there.
static WATCHED: Mutex<BTreeMap<PathBuf, Weak<Root>>> = Mutex::new(BTreeMap::new());

/// Watches over the protected files of a workspace.
#[derive(Debug)]
pub(super) struct Guard {
    workspace: PathBuf,
    roots: Vec<Arc<Root>>,
}

/// A protected place, and how it was.
#[derive(Debug)]
struct Root {
    path: PathBuf,
    /// The directories that lead to it, which commands may rename, with the
    /// permissions that they had; none where there was none.
    ways: Vec<(PathBuf, Option<u32>)>,
    store: Arc<Store>,
    kept: Mutex<BTreeMap<PathBuf, Kept>>,
}

impl Guard {
    /// Remembers how the protected files are.
    ///
    /// # Errors
    /// When a copy of one cannot be made.
    pub(super) fn new(tier: Tier, grounds: &Grounds, exposed: &[Exposed]) -> io::Result<Self> {
        let records = grounds.records.as_deref();
        let of_records = |path: &Path| {
            records.is_some_and(|records| records.starts_with(path) || path.starts_with(records))
        };
        let watched = exposed.iter().filter(|one| {
            let prevented = tier == Tier::Namespaces && one.can_be_bound();
            !prevented && !of_records(&one.path)
        });
        let mut store = Store::new(&grounds.private)?;
        let mut known = lock(&WATCHED);
        known.retain(|_, root| root.strong_count() > 0);
        let (mut roots, mut fresh) = (Vec::new(), Vec::new());
        for one in watched {
            match known.get(&one.path).and_then(Weak::upgrade) {
                Some(root) => roots.push(root),
                None => fresh.push((one, store.keep(&one.path)?)),
            }
        }
        let store = Arc::new(store);
        for (one, kept) in fresh {
            let ways = one.ways().map(|way| (way.to_owned(), mode_of(way)));
            let root = Arc::new(Root {
                path: one.path.clone(),
                ways: ways.collect(),
                store: Arc::clone(&store),
                kept: Mutex::new(kept),
            });
            known.insert(one.path.clone(), Arc::downgrade(&root));
            roots.push(root);
        }
        let workspace = grounds.workspace.clone();
        Ok(Self { workspace, roots })
    }

    /// Puts back what changed, and says what that was.
    pub(super) fn settle(&self) -> Vec<String> {
        let mut changed = BTreeSet::new();
        for root in &self.roots {
            root.settle(&mut changed);
        }
        let rest = changed.len().saturating_sub(TOLD_MAX);
        let told = changed.iter().take(TOLD_MAX).map(|path| self.told(path));
        told.chain((rest > 0).then(|| format!("and {rest} more")))
            .collect()
    }

    fn told(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.workspace).unwrap_or(path);
        format!(
            "{} is protected: what the command made of it was undone",
            shown.display()
        )
    }
}

impl Root {
    fn settle(&self, changed: &mut BTreeSet<PathBuf>) {
        let mut kept = lock(&self.kept);
        if kept.is_empty() {
            return self.take_away(changed);
        }
        for (way, mode) in &self.ways {
            put_back_way(way, *mode, changed);
        }
        self.put_back(&mut kept, changed);
    }

    /// Removes what must not be there; and the link by which it is, when it is
    /// somewhere else.
    fn take_away(&self, changed: &mut BTreeSet<PathBuf>) {
        if self.path.symlink_metadata().is_err() && Folder::open(parent(&self.path)).is_ok() {
            return;
        }
        for (way, mode) in &self.ways {
            let Some((folder, name)) = opened(way) else {
                return;
            };
            match folder.enter(name) {
                Ok(way) => {
                    let _ = way.open_up();
                }
                Err(_) if self.path.symlink_metadata().is_ok() => {
                    put_back_way(way, mode.or(Some(0o755)), changed);
                }
                Err(_) => return,
            }
        }
        let Some((folder, name)) = opened(&self.path) else {
            return;
        };
        if rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            let _ = folder.remove(name);
            changed.insert(self.path.clone());
        }
    }

    /// Puts back what is kept. What is above comes first.
    fn put_back(&self, kept: &mut BTreeMap<PathBuf, Kept>, changed: &mut BTreeSet<PathBuf>) {
        let below: Vec<PathBuf> = kept.keys().cloned().collect();
        let mut closed = Vec::new();
        for path in below {
            let Some(Watched { names, mode }) = self.put_back_one(&path, kept, changed) else {
                continue;
            };
            let Ok(folder) = Folder::open(&path) else {
                continue;
            };
            if folder.open_up().is_ok_and(|opened| opened) {
                closed.push((path.clone(), mode));
            }
            for stranger in folder.names().into_iter().flatten().flatten() {
                let path = path.join(&stranger.name);
                if names.includes(&stranger) && !kept.contains_key(&path) {
                    let _ = folder.remove(&stranger.name);
                    changed.insert(path);
                }
            }
        }
        for (path, mode) in closed.into_iter().rev() {
            let _ = Folder::open(&path).and_then(|folder| folder.set_mode(mode));
        }
    }

    /// Puts one entry back. Gives what is watched in it when it is a directory.
    fn put_back_one(
        &self,
        path: &Path,
        kept: &mut BTreeMap<PathBuf, Kept>,
        changed: &mut BTreeSet<PathBuf>,
    ) -> Option<Watched> {
        let kept = kept.get_mut(path)?;
        let Some((folder, name)) = opened(path) else {
            // An entry that cannot be put back is told all the same.
            changed.insert(path.to_owned());
            return None;
        };
        if !kept.is_the_same(&folder, name, &self.store) {
            let _ = kept.put_back(&folder, name, &self.store);
            changed.insert(path.to_owned());
        }
        match &kept.what {
            What::Directory(watched) => Some(*watched),
            What::File { .. } | What::Link(_) | What::Other => None,
        }
    }
}

/// Makes `way` a directory again, where it was one.
fn put_back_way(way: &Path, mode: Option<u32>, changed: &mut BTreeSet<PathBuf>) {
    let (Some((folder, name)), Some(mode)) = (opened(way), mode) else {
        return;
    };
    if let Ok(way) = folder.enter(name) {
        let _ = way.open_up();
        return;
    }
    let _ = make(&folder, name, mode);
    changed.insert(way.to_owned());
}

/// Makes a directory in the place of whatever has that name.
pub(super) fn make(folder: &Folder, name: &OsStr, mode: u32) -> io::Result<()> {
    folder.remove(name)?;
    rustix::fs::mkdirat(folder, name, Mode::RWXU)?;
    folder.enter(name)?.set_mode(mode)
}

/// The directory that a path is in, opened without following a link, and its name
/// there.
fn opened(path: &Path) -> Option<(Folder, &OsStr)> {
    let folder = Folder::open(parent(path)).ok()?;
    Some((folder, path.file_name()?))
}

fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(path)
}

fn mode_of(directory: &Path) -> Option<u32> {
    let found = directory.symlink_metadata().ok()?;
    found.is_dir().then(|| found.mode() & 0o7777)
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
