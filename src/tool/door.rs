//! Opens what was judged and nothing else: no symbolic link is followed on the
//! way to a real path, so that a directory swapped for a link between the
//! decision and the use leads nowhere.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// Opens the real path `real`. On kernels without `openat2` only its last
/// component is kept from being a link.
pub(super) fn open(real: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let opened = match rustix::fs::openat2(CWD, real, flags, Mode::empty(), no_links) {
        // The kernel is old, or a filter of system calls does not know it.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(real, flags, Mode::empty()),
        opened => opened,
    };
    match opened {
        Ok(file) => Ok(File::from(file)),
        Err(Errno::LOOP) => Err(io::Error::other(
            "a part of its path became a symbolic link in this moment",
        )),
        Err(error) => Err(error.into()),
    }
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
