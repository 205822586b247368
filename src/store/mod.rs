//! The session: a tree of entries in memory and the file behind it.
//!
//! [`Store::append`] is the only way in. The line is on its way to the disk
//! before the entry is in the tree, so nobody learns of an entry that a
//! restart would not find. The file holds redacted lines; the tree holds the
//! messages as they were said, because the model must see its own words.

mod entry;
mod file;
mod redact;
mod sync;
mod tree;

use std::path::{Path, PathBuf};

use crate::clock;
use crate::secret::Redactor;

pub use entry::{Entry, EntryId, EntryKind, Header, SESSION_VERSION};
pub use tree::{SessionTree, TreeError};

use file::SessionFile;

/// When the file's bytes are forced to the disk. Whatever is chosen, they
/// survive the end of this process at once; this is about the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Durability {
    /// At the end of each step, in the background.
    #[default]
    Step,
    /// With each entry, before it is acknowledged.
    Entry,
    /// When the system likes.
    None,
}

/// A session file could not be made or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file cannot be created.
    #[error("cannot create the session file {}: {source}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// There is a file already; it is left as it is.
    #[error("the session file {} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The file is locked.
    #[error("another process is writing this session: {}", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// An entry could not be written; the file ends after the last whole line.
    #[error("cannot write the session file {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Bytes could not be forced to the disk.
    #[error("cannot flush the session file {} to the disk: {source}", path.display())]
    Sync {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file takes no more entries: it was closed, or writing failed before.
    #[error("the session file {} takes no more entries", path.display())]
    Sealed {
        /// The file.
        path: PathBuf,
    },
    /// The entry has no JSON form.
    #[error("cannot write an entry as JSON: {0}")]
    Encode(#[from] serde_json::Error),
    /// The entry does not fit into the session.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

/// A session and the file behind it, if it has one.
///
/// Dropping it without [`Store::close`] still waits for a flush under way, but
/// nobody learns whether it failed.
#[derive(Debug)]
pub struct Store {
    tree: SessionTree,
    file: Option<SessionFile>,
}

impl Store {
    /// A session without a file.
    pub fn in_memory(header: Header) -> Self {
        Self {
            tree: SessionTree::new(header),
            file: None,
        }
    }

    /// Creates the session file with its header line, for this process alone.
    /// Missing directories are made, with mode 0700; the file has mode 0600.
    ///
    /// # Errors
    /// When the file exists, another process writes it, or the disk refuses.
    pub fn create(
        path: &Path,
        header: Header,
        durability: Durability,
        redactor: Redactor,
    ) -> Result<Self, StoreError> {
        let mut file = SessionFile::create(path, durability, redactor)?;
        file.append(&header)?;
        Ok(Self {
            tree: SessionTree::new(header),
            file: Some(file),
        })
    }

    /// Appends an entry after the leaf: first to the file, as one write of one
    /// whole line, then to the tree.
    ///
    /// # Errors
    /// When the line cannot be written whole: the file is cut back to its last
    /// whole line, the tree is as before, and the store takes no more entries.
    /// Also when an earlier flush failed.
    pub fn append(&mut self, kind: EntryKind) -> Result<EntryId, StoreError> {
        let entry = Entry {
            id: self.tree.free_id(),
            parent_id: self.tree.leaf().map(|leaf| leaf.id.clone()),
            timestamp: clock::timestamp(),
            kind,
        };
        if let Some(file) = &mut self.file {
            file.append(&entry)?;
        }
        let id = entry.id.clone();
        self.tree.push(entry)?;
        Ok(id)
    }

    /// Marks the end of a step: with [`Durability::Step`] a thread starts to
    /// force the file to the disk. Returns at once and needs no runtime.
    ///
    /// # Errors
    /// When an earlier flush failed.
    pub fn step_ended(&mut self) -> Result<(), StoreError> {
        match &mut self.file {
            Some(file) => file.step_ended(),
            None => Ok(()),
        }
    }

    /// Waits until all is on the disk, as far as the durability asks for it,
    /// and frees the file for other processes. Appending fails from here on;
    /// closing again does nothing.
    ///
    /// # Errors
    /// When any flush failed.
    pub fn close(&mut self) -> Result<(), StoreError> {
        match &mut self.file {
            Some(file) => file.close(),
            None => Ok(()),
        }
    }

    /// The session.
    pub fn tree(&self) -> &SessionTree {
        &self.tree
    }

    /// The session file.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(SessionFile::path)
    }
}
