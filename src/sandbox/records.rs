//! The records of the run, where the tier cannot keep commands from them: what
//! a command made of them is found out, so that nobody trusts them any more.
//!
//! What the runner writes while a command runs is in its accounts
//! ([`crate::access::Accounts`]); everything else has to stay as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Tier;
use super::places::Grounds;
use crate::access::{self, Accounts, Entry, Folder, Kind};

/// Where what commands made of protected files is put.
pub(super) const UNDONE: &str = "undone";

/// Watches over the records of a run.
#[derive(Debug)]
pub(super) struct Records {
    /// None where commands cannot write them.
    sites: Vec<Site>,
    before: Mutex<BTreeMap<PathBuf, Before>>,
    broken: Mutex<Option<String>>,
}

/// Where records are.
#[derive(Debug)]
struct Site {
    /// As the runner calls it.
    named: PathBuf,
    /// Where that led before any command ran.
    real: PathBuf,
    /// The directories on the way to it that commands can rename, from above.
    way: Vec<Step>,
}

/// A directory and its name in the one above, both held open.
#[derive(Debug)]
struct Step {
    above: Folder,
    name: std::ffi::OsString,
    directory: Folder,
}

/// What a file was when the command started.
#[derive(Debug)]
enum Before {
    /// Written by the runner, which keeps an account of it.
    Accounted,
    /// To stay as it is.
    Whole(Seal),
    /// It was not a regular file that can be read.
    Other,
}

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
struct Seal {
    inode: u64,
    size: u64,
    digest: Vec<u8>,
}

impl Records {
    pub(super) fn new(tier: Tier, grounds: &Grounds, writable: &[PathBuf]) -> Self {
        let exposed = grounds.records.iter().filter_map(|named| {
            let real = named.canonicalize().unwrap_or_else(|_| named.clone());
            let around = |path: &Path| writable.iter().find(|place| path.starts_with(place));
            let anchor = around(&real).or_else(|| around(named))?;
            let named = named.clone();
            (tier == Tier::Landlock).then(|| Site {
                way: way(anchor, &real),
                named,
                real,
            })
        });
        Self {
            sites: exposed.collect(),
            before: Mutex::default(),
            broken: Mutex::default(),
        }
    }

    /// Notes how the records are before a command starts.
    pub(super) fn seal(&self) {
        let accounts = Accounts::hold();
        let seal = |path: PathBuf| {
            let found = path.symlink_metadata().ok();
            let before = match found.is_some_and(|found| accounts.has(&found)) {
                true => Before::Accounted,
                false => Seal::of(&path).map_or(Before::Other, Before::Whole),
            };
            (path, before)
        };
        *lock(&self.before) = self.files().map(seal).collect();
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        self.sites.iter().flat_map(|site| files(&site.real))
    }

    /// What a command made of them, when it did.
    pub(super) fn check(&self) -> Option<String> {
        if self.sites.is_empty() {
            return None;
        }
        let before = lock(&self.before);
        let moved = self.sites.iter().find(|site| {
            let led = site.named.canonicalize();
            led.ok().as_ref() != Some(&site.real)
        });
        let moved = moved.map(|site| site.named.clone());
        let mut renamed = None;
        for site in &self.sites {
            for step in &site.way {
                if step.restore() {
                    renamed.get_or_insert_with(|| site.named.clone());
                }
            }
        }
        let accounts = Accounts::hold();
        let now: BTreeSet<PathBuf> = self.files().collect();
        let ours = |path: &PathBuf| match before.get(path) {
            Some(Before::Whole(seal)) => Seal::of(path).as_ref() == Some(seal),
            Some(Before::Other) => !path.is_file() || path.is_symlink(),
            Some(Before::Accounted) | None => accounts.confirm(path),
        };
        let changed = now.iter().find(|path| !ours(path)).cloned();
        let gone = before.keys().find(|path| !now.contains(*path)).cloned();
        // What the runner writes later must not go where a link leads.
        for link in now.iter().filter(|path| path.is_symlink()) {
            if !before.contains_key(link) {
                let _ = access::remove(link);
            }
        }
        let path = moved.or(renamed).or(changed).or(gone)?;
        let what = format!(
            "{} is a record of this run and was changed by a command",
            path.display()
        );
        *lock(&self.broken) = Some(what.clone());
        Some(what)
    }

    /// Why the records cannot be trusted, when they cannot.
    pub(super) fn broken(&self) -> Option<String> {
        lock(&self.broken).clone()
    }
}

/// The directories between `anchor` and `real`, and `real` when it is one.
fn way(anchor: &Path, real: &Path) -> Vec<Step> {
    let mut ways: Vec<&Path> = real.ancestors().collect();
    ways.retain(|way| way.starts_with(anchor) && *way != anchor && way.is_dir());
    let step = |way: &&Path| {
        Some(Step {
            above: Folder::open(way.parent()?).ok()?,
            name: way.file_name()?.to_owned(),
            directory: Folder::open(way).ok()?,
        })
    };
    ways.iter().rev().filter_map(step).collect()
}

impl Step {
    /// Gives the directory its name again, wherever a command moved it, and says whether
    /// it had another. What has the name now goes where the directory was.
    fn restore(&self) -> bool {
        let held = self.directory.as_fd();
        let there = self.above.enter(&self.name);
        if there.is_ok_and(|there| same(&there, &self.directory)) {
            return false;
        }
        let link = format!("/proc/self/fd/{}", held.as_raw_fd());
        let found = std::fs::read_link(link).ok();
        let moved = found.as_deref().and_then(|path| {
            let above = Folder::open(path.parent()?).ok()?;
            Some((above, path.file_name()?))
        });
        if let Some((above, name)) = moved {
            // Where that fails, later writes find a link or nothing, and fail.
            let _ = above.exchange(name, &self.above, &self.name);
        }
        true
    }
}

fn same(one: &Folder, other: &Folder) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

impl Seal {
    /// None for what is not a file that can be read.
    fn of(path: &Path) -> Option<Self> {
        let Entry::File(opened) = access::look(path).ok()? else {
            return None;
        };
        let found = opened.metadata;
        Some(Self {
            inode: found.ino(),
            size: found.size(),
            digest: access::digest(opened.file).ok()?.finish().as_ref().to_vec(),
        })
    }
}

/// Everything at and below `root` that is not a directory. Nothing is looked for where
/// a link leads.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Ok(file) = root.symlink_metadata()
        && file.is_file()
    {
        found.push(root.to_path_buf());
    }
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        let Ok(folder) = Folder::open(&directory) else {
            continue;
        };
        for entry in folder.names().into_iter().flatten().flatten() {
            let path = directory.join(&entry.name);
            match entry.kind {
                // What was taken away from commands is not a record.
                Kind::Directory if directory == root && entry.name == UNDONE => {}
                Kind::Directory => open.push(path),
                Kind::File | Kind::Link | Kind::Special => found.push(path),
            }
        }
    }
    found
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
