//! The user's own directory for what this program keeps between runs, and the key
//! in it by which it knows its sessions again.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom, SystemRandom};
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::store::Seals;

use super::Environment;

const KEY_BYTES: usize = 32;
const KEY_FILE: &str = "session.key";
/// Nobody else may read or write it.
const OTHERS: u32 = 0o077;

impl Environment {
    /// `agent` below `XDG_STATE_HOME`, else below `.local/state` in the home
    /// directory. What is not absolute names no place of the user.
    pub(super) fn state_dir(&self) -> Option<PathBuf> {
        let named = self.value("XDG_STATE_HOME").map(PathBuf::from);
        let base = named.filter(|path| path.is_absolute());
        let home = || self.home().filter(|home| home.is_absolute());
        let base = base.or_else(|| Some(home()?.join(".local/state")))?;
        Some(base.join("agent"))
    }

    /// What verifies the sessions of this user. The key is made when there is none.
    ///
    /// # Errors
    /// In words that follow "because": there is no place for a key that commands, which
    /// may write `places`, cannot reach, or it cannot be read or made.
    pub fn seals(&self, places: &[PathBuf]) -> Result<Seals, String> {
        let directory = self
            .state_dir()
            .ok_or("neither HOME nor XDG_STATE_HOME says where the key for sessions is")?;
        // A missing home directory is not created.
        let home = self.home().filter(|home| directory.starts_with(home));
        if let Some(home) = home.filter(|home| !home.is_dir()) {
            return Err(format!(
                "the home directory {} does not exist",
                home.display()
            ));
        }
        let path = directory.join(KEY_FILE);
        let failed = |error: io::Error| format!("the key {} {error}", path.display());
        let real = made(&directory).map_err(failed)?;
        if let Some(place) = places.iter().find(|place| real.starts_with(place)) {
            let (path, place) = (path.display(), place.display());
            return Err(format!(
                "the key {path} lies in {place}, where commands may write"
            ));
        }
        let key = match read_key(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                make_key(&real, &path).and_then(|()| read_key(&path))
            }
            read => read,
        };
        Ok(Seals::new(real.join("sessions"), &key.map_err(failed)?))
    }
}

fn made(directory: &Path) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .and_then(|()| directory.canonicalize())
        .map_err(|error| explained("has no directory", &error))
}

fn read_key(path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let mut file = opened.map_err(|error| explained("cannot be read", &error))?;
    let found = file.metadata()?;
    let own = found.uid() == rustix::process::geteuid().as_raw();
    if !found.is_file() || found.len() != KEY_BYTES as u64 {
        return Err(io::Error::other("is not a file of 32 bytes; remove it"));
    }
    if !own || found.mode() & OTHERS != 0 {
        return Err(io::Error::other(
            "may be read or written by others; remove it",
        ));
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(key)
}

/// Makes the key; whoever makes one at the same moment is not disturbed.
fn make_key(directory: &Path, path: &Path) -> io::Result<()> {
    let mut key = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| io::Error::other("cannot be made: the system has no random numbers"))?;
    let make = || {
        // Such a file is made with mode 0600.
        let mut file = NamedTempFile::new_in(directory)?;
        file.write_all(&key)?;
        file.as_file().sync_all()?;
        match file.persist_noclobber(path) {
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => Ok(()),
            placed => placed.map(drop).map_err(|error| error.error),
        }
    };
    make().map_err(|error: io::Error| explained("cannot be made", &error))
}

fn explained(what: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}
