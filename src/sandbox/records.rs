//! The records of the run, where the tier cannot keep commands from them: what
//! a command made of them is found out, so that nobody trusts them any more.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::digest::{Context, SHA256};

use super::Tier;
use super::places::Grounds;

/// Where the runner itself makes files while a command runs.
const OUTPUTS: &str = "tool-output";
/// Records are read in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;

/// Watches over the records of a run.
#[derive(Debug)]
pub(super) struct Records {
    /// None where commands cannot write them.
    root: Option<PathBuf>,
    before: Mutex<BTreeMap<PathBuf, Seal>>,
    broken: Mutex<Option<String>>,
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
        let exposed = grounds.records.clone().filter(|records| {
            let written = writable.iter().any(|place| records.starts_with(place));
            tier == Tier::Landlock && written
        });
        Self {
            root: exposed,
            before: Mutex::default(),
            broken: Mutex::default(),
        }
    }

    /// Notes how the records are before a command starts.
    pub(super) fn seal(&self) {
        let Some(root) = &self.root else { return };
        let mut before = lock(&self.before);
        for (path, size) in files(root) {
            if let Some(seal) = Seal::of(&path, size) {
                before.insert(path, seal);
            }
        }
    }

    /// What a command made of them, when it did.
    pub(super) fn check(&self) -> Option<String> {
        let root = self.root.as_ref()?;
        let before = std::mem::take(&mut *lock(&self.before));
        let now: BTreeMap<PathBuf, u64> = files(root).into_iter().collect();
        let changed = before
            .iter()
            .find(|(path, seal)| Seal::of(path, seal.size).as_ref() != Some(*seal))
            .map(|(path, _)| path);
        let added = now.keys().find(|path| {
            let output = path.components().any(|part| part.as_os_str() == OUTPUTS);
            let ours = output && path.is_file() && !path.is_symlink();
            !before.contains_key(*path) && !ours
        });
        // What the runner writes later must not go where a link leads.
        let strange = now.keys().filter(|path| path.is_symlink());
        for path in strange.filter(|path| !before.contains_key(*path)) {
            let _ = fs::remove_file(path);
        }
        let path = changed.or(added)?;
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
        let found = path.symlink_metadata().ok()?;
        if !found.is_file() || found.size() < size {
            return None;
        }
        let mut digest = Context::new(&SHA256);
        let mut file = File::open(path).ok()?.take(size);
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

/// Everything below `root` that is no directory, with its size.
fn files(root: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(what) if what.is_dir() => open.push(entry.path()),
                Ok(what) => found.push((entry.path(), what.size())),
                Err(_) => {}
            }
        }
    }
    found
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
