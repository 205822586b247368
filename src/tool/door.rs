//! Opens what was judged, with errors for the model, and holds directories open.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::access;

/// Opens the real path `real`, and no link that took the place of a part of it.
pub(super) fn open(real: &Path, flags: OFlags) -> io::Result<File> {
    access::open_judged(real, flags).map_err(|errno| match errno {
        Errno::LOOP => io::Error::other("a part of its path became a symbolic link in this moment"),
        errno => errno.into(),
    })
}

/// A directory that is held open: names in it mean the same until the end,
/// whatever becomes of the names above it.
#[derive(Debug)]
pub(super) struct Folder {
    _held: File,
    path: PathBuf,
}

impl Folder {
    /// Holds the directory at the real path `real`.
    pub(super) fn open(real: &Path) -> io::Result<Self> {
        let held = open(real, OFlags::PATH | OFlags::DIRECTORY)?;
        let by_handle = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
        let path = if by_handle.is_dir() {
            by_handle
        } else {
            // Without /proc the name has to do.
            real.to_owned()
        };
        Ok(Self { _held: held, path })
    }

    /// A path that leads to the held directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
