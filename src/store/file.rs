//! The only writer of session files: creation, lock, whole lines, flushes.
//!
//! A line is written with one call and counts when all of it was taken. What a
//! full disk left of a line is cut off again, so a file never ends inside a
//! line unless the machine itself died.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use crate::secret::Redactor;
use crate::store::redact::redact_line;
use crate::store::sync::Flusher;
use crate::store::{Durability, StoreError};

/// An open session file, locked for this process.
#[derive(Debug)]
pub(crate) struct SessionFile {
    path: PathBuf,
    /// None once it is closed: the lock goes with the last handle.
    file: Option<File>,
    /// The length up to which the file consists of whole lines.
    good_len: u64,
    /// Whether a write or a flush failed.
    broken: bool,
    durability: Durability,
    flusher: Option<Flusher>,
    /// Whether bytes were written since the last flush was asked for.
    dirty: bool,
    redactor: Redactor,
}

impl SessionFile {
    /// Creates an empty file and locks it.
    pub(crate) fn create(
        path: &Path,
        durability: Durability,
        redactor: Redactor,
    ) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Create {
            path: path.to_owned(),
            source,
        };
        if let Some(parent) = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(parent)
                .map_err(failed)?;
        }
        let opened = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(occupied(path)),
            Err(error) => return Err(failed(error)),
        };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(StoreError::Locked {
                    path: path.to_owned(),
                });
            }
            Err(error) => return Err(failed(error.into())),
        }
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            good_len: 0,
            broken: false,
            durability,
            flusher: None,
            dirty: false,
            redactor,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `value` as one redacted line.
    pub(crate) fn append(&mut self, value: &impl Serialize) -> Result<(), StoreError> {
        self.check_flushes()?;
        let mut line = redact_line(serde_json::to_string(value)?, &self.redactor)?;
        line.push('\n');
        let sealed = || StoreError::Sealed {
            path: self.path.clone(),
        };
        if self.broken {
            return Err(sealed());
        }
        let mut file = self.file.as_ref().ok_or_else(sealed)?;
        let written = file.write_all(line.as_bytes());
        if let Err(source) = written {
            self.broken = true;
            // When even this fails the torn line stays; reading cuts it off.
            let _ = file.set_len(self.good_len);
            return Err(StoreError::Write {
                path: self.path.clone(),
                source,
            });
        }
        if self.durability == Durability::Entry
            && let Err(source) = flush_entry(file, &self.path, self.good_len == 0)
        {
            self.broken = true;
            let _ = file.set_len(self.good_len);
            return Err(StoreError::Sync {
                path: self.path.clone(),
                source,
            });
        }
        self.good_len += line.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Starts a flush in the background when the durability asks for one.
    pub(crate) fn step_ended(&mut self) -> Result<(), StoreError> {
        self.check_flushes()?;
        if self.durability != Durability::Step || !self.dirty || self.broken {
            return Ok(());
        }
        let Some(file) = &self.file else {
            return Ok(());
        };
        let started = match &self.flusher {
            Some(flusher) => {
                flusher.request();
                Ok(())
            }
            None => Flusher::start(file).map(|flusher| self.flusher = Some(flusher)),
        };
        match started {
            Ok(()) => {
                self.dirty = false;
                Ok(())
            }
            Err(source) => self.sync_failed(source),
        }
    }

    /// Flushes what is left, waits for it and gives up the lock.
    pub(crate) fn close(&mut self) -> Result<(), StoreError> {
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        let flushed = match self.flusher.take() {
            Some(flusher) => flusher.finish(),
            None => Ok(()),
        };
        let rest = if self.durability == Durability::Step && self.dirty && !self.broken {
            file.sync_data().and_then(|()| sync_directory(&self.path))
        } else {
            Ok(())
        };
        match flushed.and(rest) {
            Ok(()) => Ok(()),
            Err(source) => self.sync_failed(source),
        }
    }

    /// Surfaces the failure of an earlier flush. Bytes that a failed flush lost
    /// cannot be flushed again, so the file takes no more.
    fn check_flushes(&mut self) -> Result<(), StoreError> {
        match self.flusher.as_ref().and_then(Flusher::failure) {
            Some(source) => self.sync_failed(source),
            None => Ok(()),
        }
    }

    fn sync_failed(&mut self, source: io::Error) -> Result<(), StoreError> {
        self.broken = true;
        Err(StoreError::Sync {
            path: self.path.clone(),
            source,
        })
    }
}

/// Forces one entry to the disk, and the file's name with the first one.
fn flush_entry(file: &File, path: &Path, first: bool) -> io::Result<()> {
    file.sync_data()?;
    if first { sync_directory(path) } else { Ok(()) }
}

/// Forces the name of a new file to the disk.
fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(parent.unwrap_or(Path::new(".")))?;
    match directory.sync_all() {
        // Some file systems cannot flush a directory and need not.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::InvalidInput | ErrorKind::Unsupported
            ) =>
        {
            Ok(())
        }
        other => other,
    }
}

/// Why a path that exists cannot become a new session file.
fn occupied(path: &Path) -> StoreError {
    let path = path.to_owned();
    let locked = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(&path)
        .is_ok_and(|file| {
            flock(&file, FlockOperation::NonBlockingLockExclusive)
                == Err(rustix::io::Errno::WOULDBLOCK)
        });
    if locked {
        StoreError::Locked { path }
    } else {
        StoreError::Exists { path }
    }
}
