//! Taking away what anybody may have made.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::path::Path;

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::folder::{Folder, Kind, Name};

/// So many names of a directory are held at once.
const NAMES_AT_ONCE: usize = 1024;
/// What the owner of a directory needs to empty it.
const OWNER: u32 = 0o700;

impl Folder {
    /// Removes `name`, whatever it is, with everything below it; it is no error
    /// that there is none. No link is followed.
    ///
    /// Neither depth nor number is too much: what is deep comes up, one level at
    /// a time, and few descriptors and little memory are needed. It ends when
    /// nobody adds to it meanwhile.
    ///
    /// # Errors
    /// When a part of it may not be removed.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        match self.unlink(name, AtFlags::empty()) {
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(Errno::NOENT) => return Ok(()),
            unlinked => return Ok(unlinked?),
        }
        let top = self.enter(name)?;
        top.open_up()?;
        loop {
            let names = top.some_names()?;
            if names.is_empty() {
                return Ok(self.unlink(name, AtFlags::REMOVEDIR)?);
            }
            for one in names {
                top.take_apart(&one)?;
            }
        }
    }

    /// Gives the directory itself these permissions.
    ///
    /// # Errors
    /// When it is somebody else's, or there is no `/proc`.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        // What is held for its names only has no other way.
        let held = format!("/proc/self/fd/{}", self.as_fd().as_raw_fd());
        Ok(rustix::fs::chmod(held, Mode::from_raw_mode(mode))?)
    }

    /// Lets its owner read, write and search it, and says whether he could not.
    ///
    /// # Errors
    /// As [`Folder::set_mode`].
    pub fn open_up(&self) -> io::Result<bool> {
        let mode = rustix::fs::fstat(self.as_fd())?.st_mode & 0o7777;
        let closed = mode & OWNER != OWNER;
        if closed {
            self.set_mode(mode | OWNER)?;
        }
        Ok(closed)
    }

    /// Removes a name of this directory; the directories in it come up into this
    /// one.
    fn take_apart(&self, one: &Name) -> io::Result<()> {
        if one.kind != Kind::Directory {
            return Ok(self.unlink(&one.name, AtFlags::empty())?);
        }
        if self.unlink(&one.name, AtFlags::REMOVEDIR).is_ok() {
            return Ok(());
        }
        let below = self.enter(&one.name)?;
        below.open_up()?;
        loop {
            let names = below.some_names()?;
            if names.is_empty() {
                return Ok(self.unlink(&one.name, AtFlags::REMOVEDIR)?);
            }
            for one in names {
                if one.kind != Kind::Directory {
                    below.unlink(&one.name, AtFlags::empty())?;
                } else if below.unlink(&one.name, AtFlags::REMOVEDIR).is_err() {
                    // Where it is called by another name, the owner must be let in.
                    below.enter(&one.name)?.open_up()?;
                    let free: String = std::iter::repeat_with(fastrand::alphanumeric)
                        .take(20)
                        .collect();
                    rustix::fs::renameat(&below, &one.name, self, OsString::from(free))?;
                }
            }
        }
    }

    fn some_names(&self) -> io::Result<Vec<Name>> {
        self.names()?.take(NAMES_AT_ONCE).collect()
    }

    fn unlink(&self, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
        rustix::fs::unlinkat(self, name, flags)
    }
}

/// Removes what is at the real path `real`, as [`Folder::remove`] does.
///
/// # Errors
/// As there, or when the way to it is none by now.
pub fn remove(real: &Path) -> io::Result<()> {
    match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => Folder::open(parent)?.remove(name),
        _ => Err(Errno::INVAL.into()),
    }
}
