//! The session: a tree of entries in memory and the file behind it.
//!
//! [`Store::append`] is the only way in. The line is on its way to the disk
//! before the entry is in the tree, so nobody learns of an entry that a
//! restart would not find. The file holds redacted lines; the tree holds the
//! messages as they were said, because the model must see its own words.

mod bash_execution;
mod entry;
mod file;
mod file_lines;
mod file_list;
mod file_upgrade;
mod fork;
mod line;
mod message_line;
mod redact;
mod seal;
mod sent;
mod surrogate;
mod sync;
mod tree;
mod upgrade;

use std::path::{Path, PathBuf};

use crate::clock;
use crate::secret::Redactor;

pub use bash_execution::BashExecution;
pub use entry::{Entry, EntryId, EntryKind, Header, SESSION_VERSION};
pub use file_list::{
    FindError, Found, Listing, Newest, SessionSummary, Skipped, find, list, newest,
};
pub use fork::ForkFile;
pub use seal::{Seals, Unsealed};
pub use tree::{SessionTree, TreeError};

use file::SessionFile;
use file_lines::Access;

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
    /// The file cannot be opened or read.
    #[error("cannot read the session file {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What is there is no session; it is left as it is.
    #[error("{} is no session: {reason}", path.display())]
    NotASession {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// The session was written by a newer program; it is left as it is.
    #[error(
        "the session file {} has version {version} of the format; this program knows 1 to {SESSION_VERSION}",
        path.display()
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version that its header names.
        version: u32,
    },
    /// A line is no entry, or does not fit into the session; the file is left
    /// as it is.
    #[error("the session file {} is damaged in line {line}: {reason}", path.display())]
    BadLine {
        /// The file.
        path: PathBuf,
        /// From 1, the header.
        line: usize,
        /// What is wrong.
        reason: String,
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

/// A session that was opened.
#[derive(Debug)]
pub struct Opened {
    /// The session.
    pub store: Store,
    /// The length of the torn line that was cut off at its end, in bytes.
    pub repaired_bytes: u64,
    /// The version of the format in which it was written.
    pub version: u32,
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

    /// Opens a session file to go on with it, for this process alone. Versions 1
    /// to 3 of the format are read; a file of an older version becomes one of
    /// the current version with the first entry that is appended.
    ///
    /// What the end of the machine left of a last line is cut off.
    ///
    /// # Errors
    /// When the file cannot be read, is no session, is damaged before its end,
    /// or is being written by another process. It is left as it is then.
    pub fn open(
        path: &Path,
        durability: Durability,
        redactor: Redactor,
    ) -> Result<Opened, StoreError> {
        let (file, content) = SessionFile::open(path, durability, redactor)?;
        Ok(Opened {
            store: Self {
                tree: content.tree,
                file: Some(file),
            },
            repaired_bytes: content.torn_bytes,
            version: content.version,
        })
    }

    /// Reads a session file, which another process may be writing: a last line
    /// that is not whole yet is not read. Nothing is locked or changed.
    ///
    /// # Errors
    /// When the file cannot be read, is no session, or is damaged before its end.
    pub fn read(path: &Path) -> Result<SessionTree, StoreError> {
        let file = file_lines::open_regular(path, Access::Read)?;
        Ok(file_lines::read_content(&file, path)?.tree)
    }

    /// A new session with the entries from the first one to `at`, and with
    /// their labels; none begins it empty. It has a file beside that of this
    /// one, or none if this one has none. This session stays as it is.
    ///
    /// # Errors
    /// When there is no such entry, or the files cannot be read or written.
    pub fn fork_at(&self, at: Option<&EntryId>) -> Result<Self, StoreError> {
        match &self.file {
            None => fork::in_memory(&self.tree, at),
            Some(file) => {
                let to = fork::beside(&self.tree, file);
                fork::into_file(&self.tree, file.path(), at, to)
            }
        }
    }

    /// As [`Store::fork_at`], of the file `parent`, which `tree` was read from
    /// and which another process may be writing.
    ///
    /// # Errors
    /// As [`Store::fork_at`].
    pub fn fork_file(
        tree: &SessionTree,
        parent: &Path,
        at: Option<&EntryId>,
        to: ForkFile,
    ) -> Result<Self, StoreError> {
        fork::into_file(tree, parent, at, to)
    }

    /// Makes another entry the one that the next one follows; none starts
    /// afresh. The file knows of it with the next entry, or at the end.
    ///
    /// # Errors
    /// When there is no such entry.
    pub fn move_leaf(&mut self, to: Option<&EntryId>) -> Result<(), StoreError> {
        Ok(self.tree.set_leaf(to)?)
    }

    /// Lets the file know where the leaf is, when it was moved and no entry
    /// followed: whoever reads the file takes its last entry for the leaf. So
    /// an empty `custom` entry of the type `leaf` is appended.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn keep_leaf(&mut self) -> Result<(), StoreError> {
        let last = self.tree.entries().last().map(|entry| &entry.id);
        if self.file.is_none() || self.tree.leaf().map(|leaf| &leaf.id) == last {
            return Ok(());
        }
        self.append(EntryKind::Custom {
            custom_type: "leaf".to_owned(),
            data: None,
        })?;
        Ok(())
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

    /// Appends entries as they are, with their ids and parents; the last one
    /// becomes the leaf. They may begin a path of their own.
    ///
    /// # Errors
    /// As [`Store::append`]; nothing is written when they do not fit together.
    pub fn restore(&mut self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let mut tree = self.tree.clone();
        for entry in &entries {
            tree.push(entry.clone())?;
        }
        for entry in entries {
            if let Some(file) = &mut self.file {
                file.append(&entry)?;
            }
            self.tree.push(entry)?;
        }
        Ok(())
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
        let kept = match &self.file {
            Some(file) if file.takes_more() => self.keep_leaf(),
            Some(_) | None => Ok(()),
        };
        let closed = match &mut self.file {
            Some(file) => file.close(),
            None => Ok(()),
        };
        kept.and(closed)
    }

    /// Records what the session file holds, so that [`Seals::check`] knows it again,
    /// whatever is appended. A session without a file has nothing to record.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn seal(&mut self, seals: &Seals) -> std::io::Result<()> {
        match &mut self.file {
            Some(file) => file.seal(seals, &self.tree.header().id),
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
