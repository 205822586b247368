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

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{AtFlags, Mode};

use super::Tier;
use super::appeared::{Appeared, Watch};
use super::aside::Aside;
use super::exposed::Exposed;
use super::kept::{Kept, Store, Watched, What};
use super::objects::{Change, Objects};
use super::options::GitAccess;
use super::places::Grounds;
use crate::access::Folder;

/// What is reported when a command made more than is looked at.
const MANY: &str = "there are too many new files to look for repositories in all of them";
/// The most names that are told.
const TOLD_MAX: usize = 20;

/// What is watched by any job of this process. Whoever comes while a command of
/// another job runs must not take what that made of a place for what was there.
static WATCHED: Mutex<BTreeMap<(PathBuf, GitAccess), Weak<Root>>> = Mutex::new(BTreeMap::new());

/// Watches over the protected files of a workspace.
#[derive(Debug)]
pub(super) struct Guard {
    workspace: PathBuf,
    roots: Vec<Arc<Root>>,
    watch: Option<Arc<Watch>>,
    aside: Aside,
    broken: Mutex<Option<String>>,
}

/// What was found to be changed.
struct Changes<'g> {
    undone: BTreeMap<PathBuf, Option<Appeared>>,
    /// What could not be put back, with the reason.
    lost: BTreeMap<PathBuf, String>,
    aside: &'g Aside,
}

impl Changes<'_> {
    /// Notes what became of an entry that was to be what it was.
    fn note(&mut self, path: &Path, put_back: io::Result<()>) {
        match put_back {
            Ok(()) => {
                self.undone.entry(path.to_owned()).or_default();
            }
            Err(error) => {
                self.lost.insert(path.to_owned(), error.to_string());
            }
        }
    }

    /// Takes what must not be there out of `folder`.
    fn take(&mut self, path: &Path, folder: &Folder, name: &OsStr) {
        let taken = self.aside.take(folder, name);
        self.note(path, taken);
    }

    /// Takes away what appeared.
    fn take_new(&mut self, path: &Path, folder: &Folder, name: &OsStr, why: Appeared) {
        self.take(path, folder, name);
        if let Some(undone) = self.undone.get_mut(path) {
            *undone = Some(why);
        }
    }
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
    /// The objects of its git directories.
    objects: Mutex<Vec<Objects>>,
}

impl Guard {
    /// Remembers how the protected files are, and of the `repositories` what commands
    /// may not change.
    ///
    /// # Errors
    /// When a copy of one cannot be made.
    pub(super) fn new(
        tier: Tier,
        grounds: &Grounds,
        exposed: &[Exposed],
        repositories: &[Exposed],
    ) -> io::Result<Self> {
        let of_records = |path: &Path| {
            let mut records = grounds.records.iter();
            records.any(|records| records.starts_with(path) || path.starts_with(records))
        };
        let watched = exposed.iter().filter(|one| {
            let prevented = tier == Tier::Namespaces && one.can_be_bound();
            !prevented && !of_records(&one.path)
        });
        let watched = watched.map(|one| (one, GitAccess::ReadOnly));
        let writable = repositories.iter().map(|one| (one, GitAccess::Writable));
        let mut store = Store::new(&grounds.private)?;
        let mut known = lock(&WATCHED);
        known.retain(|_, root| root.strong_count() > 0);
        let (mut roots, mut fresh) = (Vec::new(), Vec::new());
        for (one, access) in watched.chain(writable) {
            let key = (one.path.clone(), access);
            match known.get(&key).and_then(Weak::upgrade) {
                Some(root) => roots.push(root),
                None => fresh.push((one, key, store.keep(&one.path, access)?)),
            }
        }
        let store = Arc::new(store);
        for (one, key, kept) in fresh {
            let ways = one.ways().map(|way| (way.to_owned(), mode_of(way)));
            let root = Arc::new(Root {
                path: one.path.clone(),
                ways: ways.collect(),
                store: Arc::clone(&store),
                objects: Mutex::new(objects(&kept)),
                kept: Mutex::new(kept),
            });
            known.insert(key, Arc::downgrade(&root));
            roots.push(root);
        }
        let workspace = grounds.workspace.clone();
        Ok(Self {
            workspace,
            roots,
            watch: grounds
                .before
                .clone()
                .map(|before| Watch::new(grounds, before)),
            aside: Aside::new(grounds),
            broken: Mutex::default(),
        })
    }

    /// Puts back what changed, and says what that was.
    pub(super) fn settle(&self) -> Vec<String> {
        let mut changes = Changes {
            undone: BTreeMap::new(),
            lost: BTreeMap::new(),
            aside: &self.aside,
        };
        for root in &self.roots {
            root.settle(&mut changes);
        }
        let whole = self.watch.as_ref().is_none_or(|watch| {
            watch.settle(&mut |path, folder, name, why| changes.take_new(path, folder, name, why))
        });
        let lost: Vec<String> = changes
            .lost
            .iter()
            .map(|(path, why)| format!("{} could not be put back: {why}", self.shown(path)))
            .collect();
        if let Some(first) = lost.first() {
            *lock(&self.broken) = Some(format!("{first}; a command had changed it"));
        }
        let undone = &changes.undone;
        let rest = undone.len().saturating_sub(TOLD_MAX);
        let told = undone.iter().take(TOLD_MAX).map(|(path, why)| {
            let shown = self.shown(path);
            match why {
                None => format!("{shown} is protected: what the command made of it was undone"),
                Some(Appeared::Repository) => format!(
                    "{shown} was removed: commands may not make repositories in the workspace"
                ),
                Some(Appeared::Denied) => {
                    format!("{shown} was removed: a rule of the task denies that it is written")
                }
            }
        });
        let place = self.aside.place().filter(|_| !undone.is_empty());
        let kept = place.map(|place| format!("what was undone is in {}", self.shown(place)));
        lost.iter()
            .take(TOLD_MAX)
            .cloned()
            .chain(told)
            .chain((rest > 0).then(|| format!("and {rest} more")))
            .chain((!whole).then(|| MANY.to_owned()))
            .chain(kept)
            .collect()
    }

    /// What is not as it was and could not be put back, when there is any.
    pub(super) fn broken(&self) -> Option<String> {
        lock(&self.broken).clone()
    }

    fn shown(&self, path: &Path) -> String {
        let shown = path.strip_prefix(&self.workspace).unwrap_or(path);
        shown.display().to_string()
    }
}

impl Root {
    fn settle(&self, changes: &mut Changes<'_>) {
        let mut kept = lock(&self.kept);
        if kept.is_empty() {
            return self.take_away(changes);
        }
        for (way, mode) in &self.ways {
            put_back_way(way, *mode, changes);
        }
        self.put_back(&mut kept, changes);
        for objects in lock(&self.objects).iter_mut() {
            objects.settle(&mut |path, folder, change| match (change, folder) {
                (Change::Lost(why), _) => changes.note(path, Err(io::Error::other(why))),
                (Change::Stranger, Some(folder)) => {
                    changes.take(path, folder, path.file_name().unwrap_or_default());
                }
                (Change::Stranger, None) => {}
            });
        }
    }

    /// Removes what must not be there; and the link by which it is, when it is
    /// somewhere else.
    fn take_away(&self, changes: &mut Changes<'_>) {
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
                    put_back_way(way, mode.or(Some(0o755)), changes);
                }
                Err(_) => return,
            }
        }
        let Some((folder, name)) = opened(&self.path) else {
            return;
        };
        if rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            changes.take(&self.path, &folder, name);
        }
    }

    /// Puts back what is kept. What is above comes first.
    fn put_back(&self, kept: &mut BTreeMap<PathBuf, Kept>, changes: &mut Changes<'_>) {
        let below: Vec<PathBuf> = kept.keys().cloned().collect();
        let mut closed = Vec::new();
        for path in below {
            let Some(Watched { names, mode, .. }) = self.put_back_one(&path, kept, changes) else {
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
                    changes.take(&path, &folder, &stranger.name);
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
        changes: &mut Changes<'_>,
    ) -> Option<Watched> {
        let kept = kept.get_mut(path)?;
        let Some((folder, name)) = opened(path) else {
            let gone = io::Error::other("the directory that it is in is not there");
            changes.note(path, Err(gone));
            return None;
        };
        if !kept.is_the_same(&folder, name, &self.store) {
            let put_back = kept.put_back(&folder, name, &self.store, changes.aside);
            changes.note(path, put_back);
        }
        match &kept.what {
            What::Directory(watched) => Some(*watched),
            What::File { .. } | What::Link(_) | What::Unread(_) | What::Other => None,
        }
    }
}

/// How the objects of the git directories among what is kept look.
fn objects(kept: &BTreeMap<PathBuf, Kept>) -> Vec<Objects> {
    let access = |kept: &Kept| match &kept.what {
        What::Directory(watched) => watched.names.of_objects(),
        What::File { .. } | What::Link(_) | What::Unread(_) | What::Other => None,
    };
    let directories = kept
        .iter()
        .filter_map(|(path, kept)| Some((path, access(kept)?)));
    directories
        .map(|(path, access)| Objects::note(path, access))
        .collect()
}

/// Makes `way` a directory again, where it was one.
fn put_back_way(way: &Path, mode: Option<u32>, changes: &mut Changes<'_>) {
    let (Some((folder, name)), Some(mode)) = (opened(way), mode) else {
        return;
    };
    if let Ok(way) = folder.enter(name) {
        let _ = way.open_up();
        return;
    }
    let taken = changes.aside.take(&folder, name);
    let made = taken.and_then(|()| make(&folder, name, mode));
    changes.note(way, made);
}

/// Makes a directory.
pub(super) fn make(folder: &Folder, name: &OsStr, mode: u32) -> io::Result<()> {
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
