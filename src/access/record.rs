//! The account of what this program writes into its records: how long each file is
//! and what its content amounts to. Whatever else is in a file was written by
//! somebody else.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::digest::{Context, SHA256};

use super::door::Entry;
use super::folder::{create_private, look};

/// Files are read in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;

/// The accounts of all records, by device and inode.
static ACCOUNTS: Mutex<BTreeMap<(u64, u64), Account>> = Mutex::new(BTreeMap::new());

/// What this program wrote into one file.
struct Account {
    path: PathBuf,
    length: u64,
    digest: Context,
}

/// Makes a private file at `path` as [`create_private`] does, and keeps its account.
///
/// # Errors
/// When it cannot be made.
pub fn create_record(path: &Path) -> io::Result<File> {
    let mut accounts = lock();
    let file = create_private(path)?;
    open_account(&mut accounts, &file, path)?;
    Ok(file)
}

/// Keeps the account of an open file, starting with what it holds. What is not a
/// regular file has none.
///
/// # Errors
/// When its content cannot be read.
pub fn keep_account(file: &File, path: &Path) -> io::Result<()> {
    open_account(&mut lock(), file, path)
}

/// Writes to a record. Without an account the bytes are written all the same.
///
/// # Errors
/// When they cannot be written.
pub fn write_record(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    let found = file.metadata()?;
    if !found.is_file() {
        return file.write_all(bytes);
    }
    let mut accounts = lock();
    let Some(account) = accounts.get_mut(&key(&found)) else {
        drop(accounts);
        return file.write_all(bytes);
    };
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = match file.write(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let (done, left) = rest.split_at(written);
        account.digest.update(done);
        account.length += done.len() as u64;
        rest = left;
    }
    Ok(())
}

/// The accounts as they are now. No record is written meanwhile.
pub struct Accounts(MutexGuard<'static, BTreeMap<(u64, u64), Account>>);

impl Accounts {
    /// Holds them.
    pub fn hold() -> Self {
        Self(lock())
    }

    /// Whether there is an account of this file.
    pub fn has(&self, found: &Metadata) -> bool {
        self.0.contains_key(&key(found))
    }

    /// Whether the file at the real path `path` is a record of that name and holds
    /// what this program wrote, and nothing else.
    pub fn confirm(&self, path: &Path) -> bool {
        let Ok(Entry::File(opened)) = look(path) else {
            return false;
        };
        let Some(account) = self.0.get(&key(&opened.metadata)) else {
            return false;
        };
        if account.path != path || account.length != opened.metadata.size() {
            return false;
        }
        let digest = digest(opened.file).map(|digest| digest.finish());
        digest.is_ok_and(|digest| digest.as_ref() == account.digest.clone().finish().as_ref())
    }
}

/// What the content of a file amounts to.
///
/// # Errors
/// When it cannot be read.
pub fn digest(mut file: impl Read) -> io::Result<Context> {
    let mut digest = Context::new(&SHA256);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(digest),
            Ok(count) => digest.update(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn open_account(
    accounts: &mut BTreeMap<(u64, u64), Account>,
    file: &File,
    path: &Path,
) -> io::Result<()> {
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(());
    }
    let digest = match found.size() {
        0 => Context::new(&SHA256),
        _ => digest(FromStart { file, at: 0 })?,
    };
    let account = Account {
        path: path.canonicalize().unwrap_or_else(|_| path.to_owned()),
        length: found.size(),
        digest,
    };
    accounts.insert(key(&found), account);
    Ok(())
}

/// Reads a file from its start and leaves its position alone.
struct FromStart<'f> {
    file: &'f File,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(piece, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

fn key(found: &Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn lock() -> MutexGuard<'static, BTreeMap<(u64, u64), Account>> {
    ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner)
}
