//! Files that are too large to read: their metadata tells whether they changed.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::access::Folder;
use crate::event::{ChangedFile, FileStatus};

/// A file of more bytes is never read whole.
pub(super) const FILE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// At most so many bytes of new and modified files are read for one tree.
const READ_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// The metadata of a file, which no write leaves as it was: a program can set
/// the time of modification back, but not the time of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            inode: metadata.ino(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The stamp of a regular file; none for anything else. Links are not
    /// followed.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let (parent, name) = (path.parent()?, path.file_name()?);
        let metadata = Folder::open(parent).ok()?.metadata(name).ok()?;
        metadata.is_file().then(|| Self::of(&metadata))
    }
}

/// A file that is not read.
#[derive(Debug, Clone, Copy)]
struct LargeFile {
    stamp: Stamp,
    /// Whether git's index has an entry for it.
    tracked: bool,
}

/// The files of a working copy that are not read, relative to the workspace.
#[derive(Debug, Clone, Default)]
pub(super) struct LargeFiles {
    files: BTreeMap<PathBuf, LargeFile>,
    /// The bytes of the files that are read.
    read: u64,
}

impl LargeFiles {
    /// Whether the file at `path` is left unread, which adds it: it is too
    /// large, or it was among `before`, so that there is no content to compare.
    pub(super) fn add(
        &mut self,
        (root, path): (&Path, &Path),
        tracked: bool,
        before: &Self,
    ) -> bool {
        let Some(stamp) = Stamp::read(&root.join(path)) else {
            return before.files.contains_key(path);
        };
        let fits = stamp.len <= FILE_BYTES_MAX && self.read + stamp.len <= READ_BYTES_MAX;
        if fits && !before.files.contains_key(path) {
            self.read += stamp.len;
            return false;
        }
        self.files
            .insert(path.to_owned(), LargeFile { stamp, tracked });
        true
    }

    /// The files that differ between `self` and `now`, by path.
    pub(super) fn changes(&self, now: &Self, root: &Path) -> Vec<ChangedFile> {
        let mut changed = BTreeMap::new();
        for (path, before) in &self.files {
            // One that git does not list is ignored by now, or as it is in
            // the index.
            let listed = now.files.get(path).map(|file| file.stamp);
            let status = match listed.or_else(|| Stamp::read(&root.join(path))) {
                Some(stamp) if stamp == before.stamp => continue,
                Some(_) => FileStatus::Modified,
                None => FileStatus::Deleted,
            };
            changed.insert(path, status);
        }
        for (path, file) in &now.files {
            if !self.files.contains_key(path) {
                let status = match file.tracked {
                    true => FileStatus::Modified,
                    false => FileStatus::Added,
                };
                changed.insert(path, status);
            }
        }
        let file = |(path, status): (&PathBuf, FileStatus)| ChangedFile {
            path: path.to_string_lossy().into_owned(),
            status,
            additions: 0,
            deletions: 0,
        };
        changed.into_iter().map(file).collect()
    }
}
