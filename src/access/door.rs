//! The one door to files that a model or a repository can name.
//!
//! What was judged is opened and nothing else: no symbolic link is followed on
//! the way to a real path, so that a directory swapped for a link between the
//! decision and the use leads nowhere. What is no regular file is recognised
//! before it is opened, because opening a device or a FIFO acts already.

use std::ffi::OsStr;
use std::fs::{File, FileType, Metadata};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, CWD, FileType as FileKind, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// What a name stands for.
#[derive(Debug)]
pub enum Entry {
    /// A regular file.
    File(OpenFile),
    /// A directory.
    Directory,
    /// A link, a FIFO, a socket or a device; it was not opened.
    Other(FileType),
}

/// A regular file, open for reading at its begin.
#[derive(Debug)]
pub struct OpenFile {
    /// The file.
    pub file: File,
    /// Of the file that is open, not of the name.
    pub metadata: Metadata,
}

/// Opens the real path `real`; the flags against links and inheritance are
/// added. Nothing waits for a FIFO under `NONBLOCK`.
///
/// # Errors
/// The kernel's, or that a part of the path is a link by now.
pub fn open_judged(real: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let no_links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(CWD, real, flags, Mode::empty(), no_links) {
        // The kernel is old, or a filter of system calls does not know it.
        Err(Errno::NOSYS | Errno::PERM) => open_stepwise(real, flags),
        opened => opened.map(File::from).map_err(explained),
    }
}

/// The same for kernels without `openat2`: one directory after the other, each
/// relative to the one before.
///
/// # Errors
/// As [`open_judged`].
pub fn open_stepwise(real: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = rustix::fs::open("/", FOLDER, Mode::empty()).map_err(explained)?;
    let mut parts = real.components().peekable();
    if parts.next() != Some(Component::RootDir) {
        return Err(Errno::INVAL.into());
    }
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else {
            return Err(Errno::INVAL.into());
        };
        if parts.peek().is_none() {
            let opened = rustix::fs::openat(&at, name, flags, Mode::empty());
            return opened.map(File::from).map_err(explained);
        }
        at = step(&at, name)?;
    }
    let opened = rustix::fs::openat(&at, ".", flags, Mode::empty());
    opened.map(File::from).map_err(explained)
}

/// How a directory is held: for what is in it, not for reading its names.
const FOLDER: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The directory `name` in another one, and no link to one.
pub(super) fn step(at: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let opened = rustix::fs::openat(at, name, FOLDER, Mode::empty());
    opened.map_err(|errno| no_folder(errno.into(), at, name.as_ref()))
}

/// The directory at the real path `real`.
pub(super) fn folder(real: &Path) -> io::Result<OwnedFd> {
    let opened = open_judged(real, FOLDER).map(OwnedFd::from);
    opened.map_err(|error| no_folder(error, CWD, real))
}

/// The kernel says of a link, too, that it is no directory.
fn no_folder(error: io::Error, at: impl AsFd, path: &Path) -> io::Error {
    let is_link = || {
        let seen = rustix::fs::statat(at, path, AtFlags::SYMLINK_NOFOLLOW);
        seen.is_ok_and(|seen| FileKind::from_raw_mode(seen.st_mode) == FileKind::Symlink)
    };
    match error.kind() {
        io::ErrorKind::NotADirectory if is_link() => explained(Errno::LOOP),
        _ => error,
    }
}

/// Opens the file `name` of a directory, and what is no file not at all.
pub(super) fn look(at: &OwnedFd, name: &OsStr) -> io::Result<Entry> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = rustix::fs::openat(at, name, flags, Mode::empty()).map_err(explained)?;
    let held = File::from(held);
    let seen = held.metadata()?;
    if seen.is_dir() {
        return Ok(Entry::Directory);
    }
    if !seen.is_file() {
        return Ok(Entry::Other(seen.file_type()));
    }
    let file = reopen(at, name, &held)?;
    let metadata = file.metadata()?;
    if (metadata.dev(), metadata.ino()) != (seen.dev(), seen.ino()) {
        return Err(io::Error::other("it was replaced in this moment"));
    }
    Ok(Entry::File(OpenFile { file, metadata }))
}

/// Opens for reading what is held; by its name where there is no `/proc`.
fn reopen(at: &OwnedFd, name: &OsStr, held: &File) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let by_handle = format!("/proc/self/fd/{}", held.as_fd().as_raw_fd());
    let opened = match rustix::fs::open(by_handle, flags, Mode::empty()) {
        Err(Errno::NOENT) => rustix::fs::openat(at, name, flags | OFlags::NOFOLLOW, Mode::empty()),
        opened => opened,
    };
    opened.map(File::from).map_err(explained)
}

/// An error with words of its own for the link that should not be there.
pub(super) fn explained(errno: Errno) -> io::Error {
    match errno {
        Errno::LOOP => io::Error::other("a part of its path became a symbolic link in this moment"),
        errno => errno.into(),
    }
}
