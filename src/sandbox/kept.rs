//! How protected files were, and how each of them is put back.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{AtFlags, FileType, OFlags, Stat};

use super::aside::Aside;
use super::git_directory::Names;
use super::guard::make;
use super::options::GitAccess;
use crate::access::{Entry, Folder, look};

/// Files are compared and copied in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;

/// How an entry was, and must be.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) what: What,
    /// How it looked when it was last seen to be as it must; none when it was
    /// written since, so that it is read.
    mark: Option<Mark>,
}

/// What an entry is.
#[derive(Debug)]
pub(super) enum What {
    /// A file: its permissions and owner, how many names it has, and where its
    /// bytes are in the store.
    File {
        mode: u32,
        owner: (u32, u32),
        names: u64,
        start: u64,
        size: u64,
    },
    /// A directory.
    Directory(Watched),
    /// A link that leads there.
    Link(OsString),
    /// What nobody here may read, and nobody can put back.
    Unread(Mark),
    /// Neither: a socket, a pipe. It is only missed.
    Other,
}

/// What is watched of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watched {
    /// Which of its names.
    pub(super) names: Names,
    /// Its permissions.
    pub(super) mode: u32,
    /// Which directory it is, of those whose content is not kept.
    identity: Option<Identity>,
}

/// The inode of a directory and when it was made: numbers are used again.
type Identity = (u64, Option<SystemTime>);

impl Watched {
    /// Whether the directory of this name is the one that was noted.
    fn is_itself(&self, folder: &Folder, name: &OsStr) -> bool {
        let now = || folder.metadata(name).map(|found| identity(&found)).ok();
        self.identity.is_none() || self.identity == now()
    }
}

/// By this a change is seen without reading: nobody sets the last at will.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    inode: u64,
    changed: (i64, u64),
}

/// The bytes of all files that are kept, in a file that has no name: no command
/// can open it, wherever it may write.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    size: u64,
}

impl Store {
    /// An empty one, on the disk of `directory`.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn new(directory: &Path) -> io::Result<Self> {
        let file = tempfile::tempfile_in(directory)?;
        Ok(Self { file, size: 0 })
    }

    /// Notes how everything at and below `root` is.
    ///
    /// # Errors
    /// When something of it cannot be read.
    pub(super) fn keep(
        &mut self,
        root: &Path,
        access: GitAccess,
    ) -> io::Result<BTreeMap<PathBuf, Kept>> {
        let mut kept = BTreeMap::new();
        let mut open = vec![(root.to_path_buf(), None)];
        while let Some((path, above)) = open.pop() {
            let found = match path.symlink_metadata() {
                Ok(found) => found,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(of(&path, &error)),
            };
            let what = if found.is_dir() {
                let names = match above {
                    Some(above) => Names::below(above, &path),
                    None => Names::of_root(&path, access),
                };
                directory(&path, &found, names, &mut open)
            } else {
                self.note(&path, &found)
            };
            let what = match what {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    What::Unread(Mark::of_metadata(&found))
                }
                what => what.map_err(|error| of(&path, &error))?,
            };
            kept.insert(path, Kept { what, mark: None });
        }
        Ok(kept)
    }

    fn note(&mut self, path: &Path, found: &Metadata) -> io::Result<What> {
        if found.is_symlink() {
            return Ok(What::Link(path.read_link()?.into_os_string()));
        }
        match found.is_file() {
            true => self.copy(path),
            false => Ok(What::Other),
        }
    }

    fn copy(&mut self, path: &Path) -> io::Result<What> {
        let Entry::File(mut opened) = look(path)? else {
            return Err(io::Error::other(format!("{} changed", path.display())));
        };
        let start = self.file.seek(SeekFrom::Start(self.size))?;
        let size = io::copy(&mut opened.file, &mut self.file)?;
        self.size += size;
        Ok(What::File {
            mode: opened.metadata.mode() & 0o7777,
            owner: (opened.metadata.uid(), opened.metadata.gid()),
            names: opened.metadata.nlink(),
            start,
            size,
        })
    }

    /// Gives the pieces of a file until `take` has enough.
    fn pieces(
        &self,
        mut start: u64,
        size: u64,
        mut take: impl FnMut(u64, &[u8]) -> io::Result<bool>,
    ) -> io::Result<bool> {
        let (first, end) = (start, start + size);
        let mut piece = vec![0; PIECE_BYTES];
        while start < end {
            let left = usize::try_from(end - start).unwrap_or(PIECE_BYTES);
            let piece = piece.get_mut(..left.min(PIECE_BYTES)).unwrap_or_default();
            self.file.read_exact_at(piece, start)?;
            if !take(start - first, piece)? {
                return Ok(false);
            }
            start += piece.len() as u64;
        }
        Ok(true)
    }
}

impl Kept {
    /// Whether an entry is still what it was.
    pub(super) fn is_the_same(&mut self, folder: &Folder, name: &OsStr, store: &Store) -> bool {
        let Ok(found) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else {
            return false;
        };
        let kind = FileType::from_raw_mode(found.st_mode);
        let permissions = found.st_mode & 0o7777;
        match &self.what {
            What::Directory(watched) => {
                kind.is_dir() && permissions == watched.mode && watched.is_itself(folder, name)
            }
            What::Unread(mark) => *mark == Mark::of(&found),
            What::Link(target) => folder.read_link(name).is_ok_and(|now| now == *target),
            What::Other => !(kind.is_dir() || kind.is_file() || kind.is_symlink()),
            What::File {
                mode,
                names,
                start,
                size,
                ..
            } => {
                let mark = Mark::of(&found);
                let looks = kind.is_file()
                    && permissions == *mode
                    && u128::from(found.st_nlink) == u128::from(*names)
                    && u64::try_from(found.st_size) == Ok(*size);
                let same = looks
                    && (self.mark.as_ref() == Some(&mark)
                        || has_bytes(folder, name, store, (*start, *size)));
                self.mark = same.then_some(mark);
                same
            }
        }
    }

    /// Makes an entry what it was; whatever has its name now goes to `aside`.
    ///
    /// # Errors
    /// When that cannot be, or it was and something of it is lost.
    pub(super) fn put_back(
        &mut self,
        folder: &Folder,
        name: &OsStr,
        store: &Store,
        aside: &Aside,
    ) -> io::Result<()> {
        match &mut self.what {
            What::Directory(watched) => {
                match folder.enter(name) {
                    // What it holds is not lost for its permissions.
                    Ok(directory) => directory.set_mode(watched.mode)?,
                    Err(_) => {
                        aside.take(folder, name)?;
                        make(folder, name, watched.mode)?;
                    }
                }
                match watched.is_itself(folder, name) {
                    true => Ok(()),
                    false => {
                        watched.identity = Some(identity(&folder.metadata(name)?));
                        Err(io::Error::other(GONE))
                    }
                }
            }
            What::Link(target) => {
                aside.take(folder, name)?;
                Ok(rustix::fs::symlinkat(&*target, folder, name)?)
            }
            What::File {
                mode,
                owner,
                names,
                start,
                size,
            } => {
                aside.take(folder, name)?;
                let mut draft = folder.draft(0o600)?;
                store.pieces(*start, *size, |_, piece| {
                    draft.file.write_all(piece).map(|()| true)
                })?;
                // Only root may give files away, and others make their own.
                let _ = fchown(&draft.file, Some(owner.0), Some(owner.1));
                draft.file.set_permissions(Permissions::from_mode(*mode))?;
                *names = 1;
                draft.replace(name)
            }
            What::Unread(_) => Err(io::Error::other(UNREADABLE)),
            What::Other => aside.take(folder, name),
        }
    }
}

/// Why a repository is not what it was.
const GONE: &str = "the objects of the repository are gone";
/// Why a file is not what it was.
const UNREADABLE: &str = "it could not be read before";

/// What is to be noted of a directory; its watched names are still to be gone
/// through.
fn directory(
    path: &Path,
    found: &Metadata,
    names: Names,
    open: &mut Vec<(PathBuf, Option<Names>)>,
) -> io::Result<What> {
    for one in Folder::open(path)?.names()? {
        let one = one?;
        if names.includes(&one) {
            open.push((path.join(&one.name), Some(names)));
        }
    }
    Ok(What::Directory(Watched {
        names,
        mode: found.mode() & 0o7777,
        identity: matches!(names, Names::Objects(_)).then(|| identity(found)),
    }))
}

fn identity(found: &Metadata) -> Identity {
    (found.ino(), found.created().ok())
}

fn of(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

impl Mark {
    fn of_metadata(found: &Metadata) -> Self {
        let nanoseconds = u64::try_from(found.ctime_nsec()).unwrap_or_default();
        Self {
            inode: found.ino(),
            changed: (found.ctime(), nanoseconds),
        }
    }

    fn of(found: &Stat) -> Self {
        Self {
            inode: found.st_ino,
            changed: (found.st_ctime, found.st_ctime_nsec),
        }
    }
}

fn has_bytes(folder: &Folder, name: &OsStr, store: &Store, (start, size): (u64, u64)) -> bool {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let Ok(file) = folder.open_file(name, flags, 0) else {
        return false;
    };
    let mut now = vec![0; PIECE_BYTES];
    let same = store.pieces(start, size, |at, piece| {
        let now = now.get_mut(..piece.len()).unwrap_or_default();
        file.read_exact_at(now, at)?;
        Ok(now == piece)
    });
    same.unwrap_or(false)
}
