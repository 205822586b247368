//! The only writer of session files: creation, lock, whole lines, flushes.
//!
//! A line is written with one call and counts when all of it was taken. What a
//! full disk left of a line is cut off again, so a file never ends inside a
//! line unless the machine itself died; opening it mends that.
//!
//! A lock belongs to a file, not to its name. Whoever has locked a file looks
//! whether the name still means it, and a file that takes the place of another
//! is locked before it has the name: so nobody writes to a file that is gone.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::Serialize;

use crate::access;
use crate::secret::Redactor;
use crate::store::entry::SESSION_VERSION;
use crate::store::file_lines::{Access, Content, open_regular, read_content, read_failed};
use crate::store::file_upgrade::{self, Old};
use crate::store::redact::redact_line;
use crate::store::seal::{Seal, Seals};
use crate::store::sync::Flusher;
use crate::store::{Durability, StoreError};

/// How often a file may be exchanged while it is being opened.
const EXCHANGES_MAX: usize = 3;

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
    /// The version of a file whose lines are still those of an older one.
    old_version: Option<u32>,
    /// What says that this user's runner wrote it.
    seal: Option<Seal>,
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
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(occupied(path)),
            Err(error) => return Err(failed(error)),
        };
        lock(&file, path)?;
        access::keep_account(&file, path).map_err(failed)?;
        Ok(Self {
            path: path.to_owned(),
            file: Some(file),
            good_len: 0,
            broken: false,
            durability,
            flusher: None,
            dirty: false,
            redactor,
            old_version: None,
            seal: None,
        })
    }

    /// Opens and locks a file that there is, reads it, and cuts off a torn line
    /// at its end. A file that is no session is left as it is.
    pub(crate) fn open(
        path: &Path,
        durability: Durability,
        redactor: Redactor,
    ) -> Result<(Self, Content), StoreError> {
        let mut file = open_locked(path)?;
        // A group may be meant to read it, everybody is not. Should the file be
        // somebody else's, its mode is their affair.
        if let Ok(mode) = file.metadata().map(|found| found.permissions().mode())
            && mode & 0o007 != 0
        {
            let _ = file.set_permissions(Permissions::from_mode(mode & 0o770));
        }
        let content = read_content(&file, path)?;
        let mut good_len = content.good_len;
        let write_failed = |source| StoreError::Write {
            path: path.to_owned(),
            source,
        };
        if content.torn_bytes > 0 {
            file.set_len(good_len).map_err(write_failed)?;
        } else if content.unended {
            file.write_all(b"\n").map_err(write_failed)?;
            good_len += 1;
        }
        access::keep_account(&file, path).map_err(write_failed)?;
        let opened = Self {
            path: path.to_owned(),
            file: Some(file),
            good_len,
            broken: false,
            durability,
            flusher: None,
            dirty: content.torn_bytes > 0 || content.unended,
            redactor,
            old_version: (content.version < SESSION_VERSION).then_some(content.version),
            seal: None,
        };
        Ok((opened, content))
    }

    /// Records what the file holds, from now on with each line.
    pub(crate) fn seal(&mut self, seals: &Seals, id: &str) -> io::Result<()> {
        self.seal = Some(seals.seal(&self.path, id, self.good_len)?);
        Ok(())
    }

    /// Removes a file that this process just made and could not fill.
    pub(crate) fn discard(self) {
        // It holds nothing that is not elsewhere; a second failure says nothing new.
        let _ = std::fs::remove_file(&self.path);
    }

    /// Whether it is open and no write has failed.
    pub(crate) fn takes_more(&self) -> bool {
        self.file.is_some() && !self.broken
    }

    pub(crate) fn durability(&self) -> Durability {
        self.durability
    }

    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes `value` as one redacted line.
    pub(crate) fn append(&mut self, value: &impl Serialize) -> Result<(), StoreError> {
        let mut line = redact_line(serde_json::to_string(value)?, &self.redactor)?;
        line.push('\n');
        self.write_lines(&line)
    }

    /// Writes whole lines of the current version, as they are.
    pub(crate) fn write_lines(&mut self, lines: &str) -> Result<(), StoreError> {
        self.check_flushes()?;
        self.upgrade()?;
        let sealed = || StoreError::Sealed {
            path: self.path.clone(),
        };
        if self.broken {
            return Err(sealed());
        }
        let file = self.file.as_ref().ok_or_else(sealed)?;
        // Without its record the session is only not believed any more.
        self.seal = self.seal.take().and_then(|mut seal| {
            let recorded = seal.extend(lines.as_bytes());
            recorded.is_ok().then_some(seal)
        });
        let written = access::write_record(file, lines.as_bytes());
        if let Err(source) = written {
            self.broken = true;
            // When even this fails the torn line stays; reading cuts it off.
            let _ = file.set_len(self.good_len);
            let _ = access::keep_account(file, &self.path);
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
            let _ = access::keep_account(file, &self.path);
            return Err(StoreError::Sync {
                path: self.path.clone(),
                source,
            });
        }
        self.good_len += lines.len() as u64;
        self.dirty = true;
        Ok(())
    }

    /// Puts a file of the current version in the place of one of an older
    /// version, before the first line is added to it.
    fn upgrade(&mut self) -> Result<(), StoreError> {
        let (Some(version), Some(file), false) = (self.old_version, &self.file, self.broken) else {
            return Ok(());
        };
        let old = Old {
            file,
            path: &self.path,
            len: self.good_len,
            version,
        };
        match file_upgrade::replace(&old, self.durability, &self.redactor) {
            Ok((file, len)) => {
                let kept = access::keep_account(&file, &self.path);
                kept.map_err(|source| StoreError::Write {
                    path: self.path.clone(),
                    source,
                })?;
                self.file = Some(file);
                self.good_len = len;
                self.old_version = None;
                let renewed = self.seal.take().map(|seal| seal.renew(&self.path, len));
                self.seal = renewed.and_then(Result::ok);
                Ok(())
            }
            Err(error) => {
                self.broken = true;
                Err(error)
            }
        }
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

/// Opens the file that `path` names and locks it for this process.
fn open_locked(path: &Path) -> Result<File, StoreError> {
    for _ in 0..EXCHANGES_MAX {
        let file = open_regular(path, Access::ReadAndAppend)?;
        lock(&file, path)?;
        if is_named(&file, path).map_err(|error| read_failed(path, error))? {
            return Ok(file);
        }
    }
    Err(StoreError::Locked {
        path: path.to_owned(),
    })
}

/// Locks a file, or tells that another process has.
pub(crate) fn lock(file: &File, path: &Path) -> Result<(), StoreError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(StoreError::Locked {
            path: path.to_owned(),
        }),
        Err(error) => Err(read_failed(path, error.into())),
    }
}

/// Whether `path` names this very file.
pub(crate) fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match path.symlink_metadata() {
        Ok(named) => Ok((ours.dev(), ours.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Forces the name of a new file to the disk.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
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
