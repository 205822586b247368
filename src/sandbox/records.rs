//! The records of the run, where the tier cannot keep commands from them: what
//! a command made of them is found out, so that nobody trusts them any more.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::digest::{Context, SHA256};

use super::Tier;
use super::places::Grounds;
use crate::access::{self, Entry, Folder, Kind};

/// Where the runner itself makes files while a command runs.
const OUTPUTS: &str = "tool-output";
/// Where what commands made of protected files is put.
pub(super) const UNDONE: &str = "undone";
/// Records are read in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;

/// Watches over the records of a run.
#[derive(Debug)]
pub(super) struct Records {
    /// None where commands cannot write them.
    sites: Vec<Site>,
    /// None of what is no file.
    before: Mutex<BTreeMap<PathBuf, Option<Seal>>>,
    broken: Mutex<Option<String>>,
}

/// Where records are.
#[derive(Debug)]
struct Site {
    /// As the runner calls it.
    named: PathBuf,
    /// Where that led before any command ran.
    real: PathBuf,
}

/// What a file was when the command started: it may only grow.
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
            let written = |path: &Path| writable.iter().any(|place| path.starts_with(place));
            let exposed = tier == Tier::Landlock && (written(named) || written(&real));
            let named = named.clone();
            exposed.then_some(Site { named, real })
        });
        Self {
            sites: exposed.collect(),
            before: Mutex::default(),
            broken: Mutex::default(),
        }
    }

    /// Notes how the records are before a command starts.
    pub(super) fn seal(&self) {
        let mut before = lock(&self.before);
        for (path, size) in self.files() {
            let seal = Seal::of(&path, size);
            before.insert(path, seal);
        }
    }

    fn files(&self) -> impl Iterator<Item = (PathBuf, u64)> {
        self.sites.iter().flat_map(|site| files(&site.real))
    }

    /// What a command made of them, when it did.
    pub(super) fn check(&self) -> Option<String> {
        let before = std::mem::take(&mut *lock(&self.before));
        let now: BTreeMap<PathBuf, u64> = self.files().collect();
        let moved = self.sites.iter().find(|site| {
            let led = site.named.canonicalize();
            led.ok().as_ref() != Some(&site.real)
        });
        let moved = moved.map(|site| &site.named);
        let sealed = before
            .iter()
            .filter_map(|(path, seal)| Some((path, seal.as_ref()?)));
        let changed = sealed
            .into_iter()
            .find(|(path, seal)| Seal::of(path, seal.size).as_ref() != Some(*seal))
            .map(|(path, _)| path);
        let added = now.keys().find(|path| {
            let below = |name| path.components().any(|part| part.as_os_str() == name);
            let output = below(OUTPUTS) && path.is_file() && !path.is_symlink();
            !before.contains_key(*path) && !output && !below(UNDONE)
        });
        // What the runner writes later must not go where a link leads.
        let strange = now.keys().filter(|path| path.is_symlink());
        for path in strange.filter(|path| !before.contains_key(*path)) {
            let _ = access::remove(path);
        }
        let path = moved.or(changed).or(added)?;
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

impl Seal {
    /// The first `size` bytes of a file; none when it has fewer, or is none.
    fn of(path: &Path, size: u64) -> Option<Self> {
        let Entry::File(opened) = access::look(path).ok()? else {
            return None;
        };
        let found = opened.metadata;
        if found.size() < size {
            return None;
        }
        let mut digest = Context::new(&SHA256);
        let mut file = opened.file.take(size);
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            match file.read(&mut piece).ok()? {
                0 => break,
                count => digest.update(piece.get(..count)?),
            }
        }
        Some(Self {
            inode: found.ino(),
            size,
            digest: digest.finish().as_ref().to_vec(),
        })
    }
}

/// Everything at and below `root` that is no directory, with its size. Nothing is looked
/// for where a link leads.
fn files(root: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    if let Ok(file) = root.symlink_metadata()
        && file.is_file()
    {
        found.push((root.to_path_buf(), file.size()));
    }
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        let Ok(folder) = Folder::open(&directory) else {
            continue;
        };
        for entry in folder.names().into_iter().flatten().flatten() {
            let path = directory.join(&entry.name);
            match entry.kind {
                Kind::Directory => open.push(path),
                Kind::File | Kind::Link | Kind::Special => {
                    let size = folder.metadata(&entry.name).map(|what| what.size());
                    found.extend(size.map(|size| (path, size)));
                }
            }
        }
    }
    found
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
