//! What appears in the workspace while a command runs: repositories, whose settings
//! the next git that runs there would follow, and files that a deny rule means.
//!
//! A new name in a directory changes the directory's time of change, which nobody
//! sets at will. So after a command only directories are looked at, and only those
//! that changed are read.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::places::Grounds;
use super::records::UNDONE;
use crate::access::{Folder, Kind, Name};
use crate::clock;

/// So many entries are looked at after a command.
const ENTRIES_MAX: usize = 400_000;
/// A directory that changed so shortly before it was read may change once more
/// without another time of change.
const TICK_MS: i64 = 100;

/// Whether a path is meant, by rules that are not known here.
#[derive(Clone)]
pub struct PathTest(Arc<dyn Fn(&Path) -> bool + Send + Sync>);

impl PathTest {
    /// That of a function.
    pub fn new(means: impl Fn(&Path) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(means))
    }

    /// Whether it means this path.
    pub fn means(&self, path: &Path) -> bool {
        (self.0)(path)
    }
}

impl Debug for PathTest {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("PathTest")
    }
}

/// What a workspace held before any command ran.
#[derive(Debug, Clone, Default)]
pub struct Before {
    directories: BTreeMap<PathBuf, Seen>,
    /// Every `.git`, and every bare repository.
    pub(super) repositories: BTreeSet<PathBuf>,
    /// What no command may write, by rules.
    pub(super) fixed: Option<PathTest>,
    /// What these rules meant; of a directory all that is in it.
    pub(super) fixed_paths: BTreeSet<PathBuf>,
}

impl Before {
    /// Notes a directory as `mark` says it was before it was read, with what it had
    /// of a repository.
    pub(super) fn note(&mut self, directory: PathBuf, mark: Option<Mark>, parts: Parts) {
        self.directories.insert(directory, Seen { mark, parts });
    }
}

/// What is known of a directory.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// None where it is to be read again.
    mark: Option<Mark>,
    parts: Parts,
}

/// Which directory it is, and when it changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    device: u64,
    inode: u64,
    changed: (i64, i64),
}

impl Mark {
    /// That of the directory at `path`; none where there is no directory.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let found = path
            .symlink_metadata()
            .ok()
            .filter(|found| found.is_dir())?;
        Some(Self {
            device: found.dev(),
            inode: found.ino(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// Itself, when a later change shows in it.
    pub(super) fn settled(self) -> Option<Self> {
        let changed_ms = self.changed.0 * 1000 + self.changed.1 / 1_000_000;
        (changed_ms + TICK_MS < clock::unix_ms()).then_some(self)
    }
}

/// What a directory has of what makes it a repository to git.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts(u8);

impl Parts {
    const NAMES: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];
    const BARE: u8 = 0b0111;
    const LINKED: u8 = 0b1001;

    /// Adds a name of the directory.
    pub(super) fn add(&mut self, name: &OsStr) {
        self.0 |= Self::bit(name);
    }

    fn bit(name: &OsStr) -> u8 {
        let place = Self::NAMES.iter().position(|part| name == *part);
        place.map_or(0, |place| 1 << place)
    }

    /// Whether git takes the directory for a repository.
    pub(super) fn are_all(self) -> bool {
        [Self::BARE, Self::LINKED]
            .iter()
            .any(|all| self.0 & all == *all)
    }
}

/// Whether git takes what has this name for a repository.
pub(super) fn is_git(name: &OsStr) -> bool {
    name.eq_ignore_ascii_case(".git")
}

/// Why something that appeared is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Appeared {
    /// It is a repository, or makes one of its directory.
    Repository,
    /// A rule denies that it is written.
    Denied,
}

/// What watches over a workspace now. Whoever looks through it meanwhile must not
/// take for granted what a command of another job has just made.
static WATCHES: Mutex<Vec<Weak<Watch>>> = Mutex::new(Vec::new());

/// Whether a command may have made this repository: one whose workspace is looked
/// after, and was without it.
pub(super) fn is_planted(repository: &Path) -> bool {
    let mut watches = lock(&WATCHES);
    watches.retain(|watch| watch.strong_count() > 0);
    let watches = watches.iter().filter_map(Weak::upgrade);
    let mut around = watches.filter(|watch| repository.starts_with(&watch.workspace));
    around.any(|watch| !watch.before.repositories.contains(repository))
}

/// Looks for what appears in a workspace.
#[derive(Debug)]
pub(super) struct Watch {
    workspace: PathBuf,
    before: Arc<Before>,
    /// Where the runner itself writes.
    passed_over: Vec<PathBuf>,
    /// The directory with this run and others, when it holds nothing else.
    runs: Option<PathBuf>,
    known: Mutex<BTreeMap<PathBuf, Seen>>,
}

/// A directory to be read.
struct Open {
    path: PathBuf,
    /// What it had of a repository.
    parts: Parts,
}

impl Watch {
    /// One that knows what was there before.
    pub(super) fn new(grounds: &Grounds, before: Arc<Before>) -> Arc<Self> {
        // A run directory that the user names may lie in any directory; one that holds
        // nothing but runs is protected as a whole.
        let runs = grounds.records.first().and_then(|run| run.parent());
        let runs = runs.filter(|runs| grounds.protected.iter().any(|place| place == runs));
        let runs = runs.map(Path::to_owned);
        let watch = Arc::new(Self {
            workspace: grounds.workspace.clone(),
            passed_over: grounds.records.clone(),
            runs,
            known: Mutex::new(before.directories.clone()),
            before,
        });
        lock(&WATCHES).push(Arc::downgrade(&watch));
        watch
    }

    /// Gives what appeared to `take`, and says whether everything was looked at.
    pub(super) fn settle(&self, take: &mut dyn FnMut(&Path, &Folder, &OsStr, Appeared)) -> bool {
        let mut known = lock(&self.known);
        let (mut open, mut gone) = (Vec::new(), Vec::new());
        for (path, seen) in known.iter() {
            match Mark::of(path) {
                Some(mark) if seen.mark == Some(mark) => {}
                Some(_) => open.push(Open {
                    path: path.clone(),
                    parts: seen.parts,
                }),
                None => gone.push(path.clone()),
            }
        }
        for path in gone {
            known.remove(&path);
        }
        // What is above comes first: it may have to be opened up.
        open.reverse();
        let (mut left, mut closed, mut whole) = (ENTRIES_MAX, Vec::new(), true);
        while let Some(one) = open.pop() {
            if self.is_passed_over(&one.path) {
                continue;
            }
            let mark = Mark::of(&one.path);
            let (folder, names) = match names(&one.path, &mut left, &mut closed) {
                Ok(found) => found,
                Err(error) => {
                    // What cannot be read now is read after the next command.
                    whole &= error.kind() == io::ErrorKind::NotFound;
                    let (mark, parts) = (None, one.parts);
                    known.insert(one.path, Seen { mark, parts });
                    continue;
                }
            };
            let mut now = Parts::default();
            names.iter().for_each(|name| now.add(&name.name));
            for (name, why) in self.appeared(&one, now, &names) {
                take(&one.path.join(&name), &folder, &name, why);
            }
            let below = names.iter().filter(|name| name.kind == Kind::Directory);
            let below = below.map(|name| one.path.join(&name.name));
            let fresh = below.filter(|path| !known.contains_key(path) && !self.is_repository(path));
            open.extend(fresh.map(|path| Open {
                path,
                parts: Parts::default(),
            }));
            let seen = Seen {
                // What was not read to its end is read again.
                mark: mark.filter(|_| left > 0).and_then(Mark::settled),
                parts: one.parts,
            };
            known.insert(one.path, seen);
        }
        for (path, mode) in closed.into_iter().rev() {
            let _ = Folder::open(&path).and_then(|folder| folder.set_mode(mode));
        }
        whole && left > 0
    }

    /// The names in a directory that must not be there.
    fn appeared(&self, one: &Open, now: Parts, names: &[Name]) -> Vec<(OsString, Appeared)> {
        let made = now.are_all() && !one.parts.are_all() && !self.is_repository(&one.path);
        let why = |name: &OsStr| {
            let path = one.path.join(name);
            let new_part = made && Parts::bit(name) & !one.parts.0 != 0;
            if new_part || (is_git(name) && !self.before.repositories.contains(&path)) {
                return Some(Appeared::Repository);
            }
            let denied = self
                .before
                .fixed
                .as_ref()
                .is_some_and(|fixed| fixed.means(&path));
            let known = || {
                path.ancestors()
                    .any(|way| self.before.fixed_paths.contains(way))
            };
            (denied && !known()).then_some(Appeared::Denied)
        };
        let names = names
            .iter()
            .filter(|name| !self.is_passed_over(&one.path.join(&name.name)));
        names
            .filter_map(|name| Some((name.name.clone(), why(&name.name)?)))
            .collect()
    }

    /// Whether it is one that was there, and is looked after elsewhere.
    fn is_repository(&self, path: &Path) -> bool {
        self.before.repositories.contains(path) || path.file_name().is_some_and(is_git)
    }

    fn is_passed_over(&self, path: &Path) -> bool {
        // What other runs took away from commands is theirs.
        let undone = || path.iter().any(|part| part == UNDONE);
        let of_others = self
            .runs
            .as_ref()
            .is_some_and(|runs| path.starts_with(runs));
        self.passed_over.iter().any(|place| path.starts_with(place)) || (of_others && undone())
    }
}

/// The names in a directory, which is opened up when its owner cannot read it.
fn names(
    path: &Path,
    left: &mut usize,
    closed: &mut Vec<(PathBuf, u32)>,
) -> io::Result<(Folder, Vec<Name>)> {
    let folder = Folder::open(path)?;
    let mode = path.symlink_metadata()?.mode() & 0o7777;
    if folder.open_up().unwrap_or(false) {
        closed.push((path.to_owned(), mode));
    }
    let names: Vec<Name> = folder.names()?.take(*left).flatten().collect();
    *left -= names.len();
    Ok((folder, names))
}

fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
