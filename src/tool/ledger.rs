//! What a session has read and changed: the memory behind read-before-write
//! and behind the patch of a workspace that is no repository.

use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The before-images of one session may hold this many bytes together.
const IMAGE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A file as it was before the session first changed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BeforeImage {
    /// Absolute and real.
    pub path: PathBuf,
    /// Its bytes; none when it did not exist.
    pub content: Option<Vec<u8>>,
}

/// What identifies the state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    size: u64,
    modified_ns: i128,
    device: u64,
    inode: u64,
    hash: Option<u64>,
}

/// Whether a file may be overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// It is as the session last saw it.
    Fresh,
    /// The session has never seen it.
    NotRead,
    /// It is no longer what the session saw.
    Changed,
}

/// What a session has read and changed. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct FileLedger {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    seen: HashMap<PathBuf, Fingerprint>,
    /// None outside stands for an image that had no room.
    before: BTreeMap<PathBuf, Option<BeforeImage>>,
    image_bytes: usize,
}

impl Fingerprint {
    /// Of a file with this metadata, and the hash of all its bytes when they
    /// were read.
    pub fn new(metadata: &Metadata, hash: Option<u64>) -> Self {
        Self {
            size: metadata.size(),
            modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                + i128::from(metadata.mtime_nsec()),
            device: metadata.dev(),
            inode: metadata.ino(),
            hash,
        }
    }

    /// Whether both describe the same content. Content decides where both know
    /// it: a file that was only touched, or rewritten as it was, is the same.
    fn same_as(&self, other: &Self) -> bool {
        match (self.hash, other.hash) {
            (Some(one), Some(two)) => self.size == other.size && one == two,
            (None, _) | (_, None) => self.same_file_state(other),
        }
    }

    /// Whether size, times and identity are equal, whatever the content is.
    pub(super) fn same_file_state(&self, other: &Self) -> bool {
        Self {
            hash: None,
            ..*self
        } == Self {
            hash: None,
            ..*other
        }
    }
}

impl FileLedger {
    /// A ledger that has seen the same and goes on by itself; what changed
    /// before is not its business.
    #[must_use]
    pub fn forked(&self) -> Self {
        let state = State {
            seen: self.lock().seen.clone(),
            ..State::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// The session knows the file in this state: it read or wrote it.
    pub fn record(&self, path: &Path, fingerprint: Fingerprint) {
        self.lock().seen.insert(path.to_owned(), fingerprint);
    }

    /// Whether the file, now in state `current`, is as the session last saw it.
    pub fn check_fresh(&self, path: &Path, current: &Fingerprint) -> Freshness {
        match self.lock().seen.get(path) {
            None => Freshness::NotRead,
            Some(seen) if seen.same_as(current) => Freshness::Fresh,
            Some(_) => Freshness::Changed,
        }
    }

    /// Keeps the content of a file that is about to be changed, none when it
    /// does not exist yet; only the first image of a file counts.
    pub fn keep_before(&self, path: &Path, content: Option<&[u8]>) {
        let mut state = self.lock();
        if state.before.contains_key(path) {
            return;
        }
        let bytes = state
            .image_bytes
            .saturating_add(content.map_or(0, <[u8]>::len));
        let image = (bytes <= IMAGE_BYTES_MAX).then(|| BeforeImage {
            path: path.to_owned(),
            content: content.map(<[u8]>::to_vec),
        });
        if image.is_some() {
            state.image_bytes = bytes;
        }
        state.before.insert(path.to_owned(), image);
    }

    /// The files that tools changed, as they were before, by path.
    pub fn before_images(&self) -> Vec<BeforeImage> {
        self.lock().before.values().flatten().cloned().collect()
    }

    /// The changed files whose before-image had no room within 64 MiB, by path.
    pub fn before_images_dropped(&self) -> Vec<PathBuf> {
        let state = self.lock();
        let dropped = state.before.iter().filter(|(_, image)| image.is_none());
        dropped.map(|(path, _)| path.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Every change under the lock is complete in itself, so a panic of
        // another holder leaves a usable state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
