//! A directory that is held open, and what is done in it by name.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::door::{self, Entry, OpenFile, explained};

/// Names tried for a new file before it is given up.
const NAMES_TRIED: usize = 16;

/// A directory that is held open: names in it mean the same until the end,
/// whatever becomes of the names above it. A name is one component, and a link
/// of that name is never followed.
#[derive(Debug)]
pub struct Folder(OwnedFd);

/// A name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub name: OsString,
    /// What it stands for.
    pub kind: Kind,
}

/// The kinds of what a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

impl Folder {
    /// Holds the directory at the real path `real`.
    ///
    /// # Errors
    /// When there is none, or a part of the path is a link by now.
    pub fn open(real: &Path) -> io::Result<Self> {
        door::folder(real).map(Self)
    }

    /// Holds the directory `missing` below the real path `existing`; what is
    /// not there is made with `mode`, less the process's mask.
    ///
    /// # Errors
    /// When that cannot be, or a part of it is a link.
    pub fn make(existing: &Path, missing: &Path, mode: u32) -> io::Result<Self> {
        let mut folder = Self::open(existing)?;
        for part in missing.components() {
            let Component::Normal(name) = part else {
                return Err(Errno::INVAL.into());
            };
            match rustix::fs::mkdirat(&folder.0, name, Mode::from_raw_mode(mode)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(explained(errno)),
            }
            folder = folder.enter(name)?;
        }
        Ok(folder)
    }

    /// Holds the directory at the real path `real`, which is made with `mode`,
    /// less the mask, as far as it is not there.
    ///
    /// # Errors
    /// As [`Folder::make`].
    pub fn ensure(real: &Path, mode: u32) -> io::Result<Self> {
        for existing in real.ancestors() {
            match Self::open(existing) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(_) => {
                    let missing = real.strip_prefix(existing).unwrap_or(Path::new(""));
                    return Self::make(existing, missing, mode);
                }
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Holds the directory `name` in this one.
    ///
    /// # Errors
    /// When there is none, or it is a link.
    pub fn enter(&self, name: &OsStr) -> io::Result<Self> {
        door::step(&self.0, name).map(Self)
    }

    /// What `name` stands for; a regular file is opened for reading.
    ///
    /// # Errors
    /// When there is nothing of that name, or it may not be read.
    pub fn look(&self, name: &OsStr) -> io::Result<Entry> {
        door::look(&self.0, name)
    }

    /// Gives `name` the name `new` in the folder `other`. What has that name already
    /// goes to where `name` was.
    ///
    /// # Errors
    /// When it cannot be.
    pub fn exchange(&self, name: &OsStr, other: &Self, new: &OsStr) -> io::Result<()> {
        let rename = |flags| rustix::fs::renameat_with(&self.0, name, &other.0, new, flags);
        match rename(RenameFlags::EXCHANGE) {
            Err(Errno::NOENT) => rename(RenameFlags::NOREPLACE),
            renamed => renamed,
        }
        .map_err(explained)
    }

    /// What is known of `name` itself, a link included.
    ///
    /// # Errors
    /// When there is nothing of that name.
    pub fn metadata(&self, name: &OsStr) -> io::Result<Metadata> {
        self.open_file(name, OFlags::PATH, 0)?.metadata()
    }

    /// Where the link `name` points to.
    ///
    /// # Errors
    /// When it is no link.
    pub fn read_link(&self, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new());
        let target = target.map_err(explained)?;
        Ok(OsString::from_vec(CString::into_bytes(target)))
    }

    /// Opens `name`; a file that the flags create gets `mode`, less the mask.
    ///
    /// # Errors
    /// The kernel's, or that it is a link.
    pub fn open_file(&self, name: &OsStr, flags: OFlags, mode: u32) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.0, name, flags, Mode::from_raw_mode(mode));
        opened.map(File::from).map_err(explained)
    }

    /// The names in it, as the directory has them.
    ///
    /// # Errors
    /// When they may not be read; a single one of them may fail, too.
    pub fn names(&self) -> io::Result<impl Iterator<Item = io::Result<Name>>> {
        // What is held does not read; the directory itself does.
        let read = self.open_file(OsStr::new("."), OFlags::DIRECTORY, 0)?;
        let names = rustix::fs::Dir::new(OwnedFd::from(read)).map_err(explained)?;
        let names = names.filter_map(|entry| match entry {
            Ok(entry) => {
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                (name != "." && name != "..").then(|| self.named(name, entry.file_type()))
            }
            Err(errno) => Some(Err(errno.into())),
        });
        Ok(names)
    }

    fn named(&self, name: &OsStr, kind: FileType) -> io::Result<Name> {
        let kind = match kind {
            // Not every file system tells.
            FileType::Unknown => {
                let seen = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(seen.st_mode)
            }
            kind => kind,
        };
        let kind = match kind {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            _ => Kind::Special,
        };
        let name = name.to_owned();
        Ok(Name { name, kind })
    }

    /// A new file in it without a name of its own yet. It is made with `mode`,
    /// less the mask, and is gone when it is dropped without a name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn draft(&self, mode: u32) -> io::Result<Draft<'_>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        for _ in 0..NAMES_TRIED {
            let random: String = std::iter::repeat_with(fastrand::alphanumeric)
                .take(10)
                .collect();
            let name = OsString::from(format!(".agent-{random}"));
            match self.open_file(&name, flags, mode) {
                Ok(file) => {
                    return Ok(Draft {
                        folder: self,
                        name,
                        file,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(Errno::EXIST.into())
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A file that is being written and gets its name in one step.
#[derive(Debug)]
pub struct Draft<'f> {
    folder: &'f Folder,
    name: OsString,
    /// The file.
    pub file: File,
}

impl Draft<'_> {
    /// Gives it `name`, whatever had that name before; a link of that name is
    /// replaced and not followed.
    ///
    /// # Errors
    /// When it cannot be; the draft is gone then.
    pub fn replace(self, name: &OsStr) -> io::Result<()> {
        let folder = &self.folder.0;
        rustix::fs::renameat(folder, &self.name, folder, name).map_err(explained)
    }

    /// Gives it `name`, which nothing may have.
    ///
    /// # Errors
    /// When it cannot be, or something has that name; the draft is gone then.
    pub fn place(self, name: &OsStr) -> io::Result<()> {
        let folder = &self.folder.0;
        let flags = RenameFlags::NOREPLACE;
        match rustix::fs::renameat_with(folder, &self.name, folder, name, flags) {
            // Not every kernel and file system can.
            Err(Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                rustix::fs::linkat(folder, &self.name, folder, name, AtFlags::empty())
            }
            renamed => renamed,
        }
        .map_err(explained)
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        // After a renaming there is nothing of this name.
        let _ = rustix::fs::unlinkat(&self.folder.0, &self.name, AtFlags::empty());
    }
}

/// Makes a file at the absolute path `path`, for its owner only, in the place
/// of whatever has that name, with the directories above it. No link is
/// followed on the way, and no other name of an old file sees the new one.
///
/// # Errors
/// When that cannot be.
pub fn create_private(path: &Path) -> io::Result<File> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let folder = Folder::ensure(parent, 0o700)?;
    let draft = folder.draft(0o600)?;
    let file = draft.file.try_clone()?;
    draft.replace(name)?;
    Ok(file)
}

/// Opens the regular file `name` below the directory `folder` for reading. The
/// directory is the caller's and may be named by a link; the name may be
/// anybody's: it leads neither up nor over a link.
///
/// # Errors
/// When there is no such file.
pub fn open_below(folder: &Path, name: &Path) -> io::Result<OpenFile> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if !name.components().all(plain) {
        return Err(Errno::INVAL.into());
    }
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    match look(&folder.canonicalize()?.join(name))? {
        Entry::File(opened) => Ok(opened),
        Entry::Directory | Entry::Other(_) => Err(io::Error::other("it is no regular file")),
    }
}

/// Opens the real path `real` for reading when it is a regular file, and what
/// is none not at all.
///
/// # Errors
/// When there is nothing, or it may not be read, or a part of the path is a
/// link by now.
pub fn look(real: &Path) -> io::Result<Entry> {
    match (real.parent(), real.file_name()) {
        (Some(parent), Some(name)) => Folder::open(parent)?.look(name),
        _ => Ok(Entry::Directory),
    }
}
