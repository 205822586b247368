//! The objects of a repository, where commands can write them. Git believes what an
//! object's name says and does not look at its content each time: one that a command
//! replaced would be taken for what it was.
//!
//! No copy is kept. How the files look is noted at the start; one that looks otherwise
//! after a command is read, and must hold what its name, or its own end, says.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::ZlibDecoder;
use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use rustix::fs::{AtFlags, FileType};

use super::options::GitAccess;
use crate::access::{Entry, Folder, Kind};
use crate::clock;

/// Files are read in pieces of this size.
const PIECE_BYTES: usize = 64 * 1024;
/// A larger object is not taken for what it says.
const OBJECT_BYTES_MAX: u64 = 1 << 30;
/// Where packs are.
const PACK: &str = "pack";
/// The endings of those of its files that end with their own sum, and the name of one.
const SUMMED: &[&str] = &["bitmap", "idx", "mtimes", "pack", "rev"];
const INDEX_OF_ALL: &str = "multi-pack-index";
/// A file that changed so shortly before it was looked at may change once more without
/// looking otherwise.
const TICK_MS: i64 = 100;
/// Why a repository is not what it was.
const REPLACED: &str = "it does not hold what its name says";
const REMOVED: &str = "this object of the repository is gone";

/// The objects of a repository, and how they looked.
#[derive(Debug)]
pub(super) struct Objects {
    directory: PathBuf,
    access: GitAccess,
    known: BTreeMap<PathBuf, Object>,
}

/// How a file looked.
#[derive(Debug)]
struct Object {
    /// None where it is to be read again.
    look: Option<Look>,
    /// Of a pack and its index, the sum at the end.
    sum: Option<Vec<u8>>,
    /// Whether it is a file, and not a link that was there.
    is_file: bool,
    /// Whether it is lost, which is reported once.
    lost: bool,
}

/// By this a change is seen without reading: nobody sets the last at will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    inode: u64,
    size: i64,
    changed: (i64, i64),
}

/// What became of an object.
pub(super) enum Change {
    /// It is new and must not be there, or is not an object.
    Stranger,
    /// It is lost, for this reason.
    Lost(&'static str),
}

/// A file among the objects, or what stands for one.
struct Found {
    path: PathBuf,
    /// None when it is not a file.
    look: Option<Look>,
}

impl Objects {
    /// Notes how they look.
    pub(super) fn note(directory: &Path, access: GitAccess) -> Self {
        let mut known = BTreeMap::new();
        walk(directory, &mut |folder, found| {
            let object = Object::of(folder, &found);
            known.insert(found.path, object);
        });
        Self {
            directory: directory.to_owned(),
            access,
            known,
        }
    }

    /// Gives what changed to `change`. Where commands may commit, objects come and go.
    pub(super) fn settle(&mut self, change: &mut dyn FnMut(&Path, Option<&Folder>, Change)) {
        let writable = self.access == GitAccess::Writable;
        let (known, mut there) = (&mut self.known, BTreeSet::new());
        walk(&self.directory, &mut |folder, found| {
            there.insert(found.path.clone());
            let Some(object) = known.get_mut(&found.path) else {
                let is_object = || in_pack(&found.path) || holds(folder, &found.path, None);
                if writable && found.look.is_some() && is_object() {
                    let object = Object::of(folder, &found);
                    known.insert(found.path, object);
                } else {
                    change(&found.path, Some(folder), Change::Stranger);
                }
                return;
            };
            let is_link = !object.is_file && found.look.is_none();
            let is_same = object.look.is_some() && object.look == found.look;
            if object.lost || is_link || is_same {
                return;
            }
            if holds(folder, &found.path, object.sum.as_deref()) {
                object.look = found.look.and_then(Look::settled);
            } else {
                object.lost = true;
                change(&found.path, None, Change::Lost(REPLACED));
            }
        });
        let gone = known.keys().filter(|path| !there.contains(*path));
        for path in gone.cloned().collect::<Vec<PathBuf>>() {
            known.remove(&path);
            if !writable {
                change(&path, None, Change::Lost(REMOVED));
            }
        }
    }
}

impl Object {
    fn of(folder: &Folder, found: &Found) -> Self {
        let sum = in_pack(&found.path).then(|| sum_of(folder, &found.path));
        Self {
            look: found.look.and_then(Look::settled),
            sum: sum.flatten(),
            is_file: found.look.is_some(),
            lost: false,
        }
    }
}

impl Look {
    /// Itself, when a later change shows in it.
    fn settled(self) -> Option<Self> {
        let changed_ms = self.changed.0 * 1000 + self.changed.1 / 1_000_000;
        (changed_ms + TICK_MS < clock::unix_ms()).then_some(self)
    }
}

/// Goes over the objects, and over what is there in the place of one. What git does
/// not take for an object is passed over.
fn walk(directory: &Path, each: &mut dyn FnMut(&Folder, Found)) {
    let Ok(top) = Folder::open(directory) else {
        return;
    };
    let _ = top.open_up();
    for entry in top.names().into_iter().flatten().flatten() {
        let path = directory.join(&entry.name);
        let holds_objects = entry.name == PACK || entry.name.len() == 2;
        if !holds_objects || entry.kind == Kind::File {
            continue;
        }
        let Ok(folder) = top.enter(&entry.name) else {
            each(&top, Found { path, look: None });
            continue;
        };
        let _ = folder.open_up();
        for one in folder.names().into_iter().flatten().flatten() {
            let path = path.join(&one.name);
            if in_pack(&path) || loose_name(&path).is_some() {
                let look = look(&folder, &one.name);
                each(&folder, Found { path, look });
            }
        }
    }
}

fn look(folder: &Folder, name: &OsStr) -> Option<Look> {
    let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_file = FileType::from_raw_mode(found.st_mode).is_file();
    is_file.then_some(Look {
        inode: found.st_ino,
        size: found.st_size,
        changed: (
            found.st_ctime,
            i64::try_from(found.st_ctime_nsec).unwrap_or_default(),
        ),
    })
}

/// Whether it is a file with a sum at its end: a pack, or an index of packs.
fn in_pack(path: &Path) -> bool {
    let kind = path.extension().and_then(OsStr::to_str);
    let has_sum = kind.is_some_and(|kind| SUMMED.contains(&kind));
    let of_all = path.file_name().is_some_and(|name| name == INDEX_OF_ALL);
    (has_sum || of_all) && path.parent().is_some_and(|parent| parent.ends_with(PACK))
}

/// The name of a loose object: that of its directory and its own.
fn loose_name(path: &Path) -> Option<String> {
    let directory = path.parent()?.file_name()?.to_str()?;
    let name = format!("{directory}{}", path.file_name()?.to_str()?);
    let hexadecimal = name.bytes().all(|byte| byte.is_ascii_hexdigit());
    (directory.len() == 2 && hexadecimal && algorithm(name.len() / 2).is_some()).then_some(name)
}

/// The algorithm with sums of this many bytes.
fn algorithm(bytes: usize) -> Option<&'static Algorithm> {
    [&SHA1_FOR_LEGACY_USE_ONLY, &SHA256]
        .into_iter()
        .find(|algorithm| algorithm.output_len() == bytes)
}

/// Whether a file holds what its name says, or the `sum` that it ended with.
fn holds(folder: &Folder, path: &Path, sum: Option<&[u8]>) -> bool {
    let name = path.file_name().unwrap_or_default();
    let Ok(Entry::File(opened)) = folder.look(name) else {
        return false;
    };
    let (size, file) = (opened.metadata.len(), opened.file);
    match (sum, loose_name(path)) {
        (Some(sum), _) => ends_with(file, size, sum).unwrap_or(false),
        (None, Some(name)) => {
            let inflated = ZlibDecoder::new(file).take(OBJECT_BYTES_MAX);
            let digest =
                algorithm(name.len() / 2).and_then(|algorithm| hash(inflated, algorithm).ok());
            digest.is_some_and(|digest| hexadecimal(&digest).eq_ignore_ascii_case(&name))
        }
        (None, None) => false,
    }
}

/// Whether the file still ends with `sum`, and this is the sum of all before it: of a
/// repository with either algorithm.
fn ends_with(file: File, size: u64, sum: &[u8]) -> io::Result<bool> {
    for bytes in [20, 32] {
        let (Some(algorithm), Some(before)) = (algorithm(bytes), size.checked_sub(bytes as u64))
        else {
            continue;
        };
        let digest = hash((&file).take(before), algorithm)?;
        let expected = sum.get(sum.len().saturating_sub(bytes)..);
        if expected == Some(digest.as_slice()) {
            let mut end = Vec::new();
            (&file).take(bytes as u64 + 1).read_to_end(&mut end)?;
            return Ok(end == digest);
        }
        (&file).seek(SeekFrom::Start(0))?;
    }
    Ok(false)
}

/// The last bytes of a file, in which its sum is.
fn sum_of(folder: &Folder, path: &Path) -> Option<Vec<u8>> {
    let Entry::File(mut opened) = folder.look(path.file_name()?).ok()? else {
        return None;
    };
    let from = opened.metadata.len().checked_sub(32)?;
    opened.file.seek(SeekFrom::Start(from)).ok()?;
    let mut sum = Vec::new();
    opened.file.take(32).read_to_end(&mut sum).ok()?;
    Some(sum)
}

fn hash(mut content: impl Read, algorithm: &'static Algorithm) -> io::Result<Vec<u8>> {
    let mut digest = Context::new(algorithm);
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match content.read(&mut piece)? {
            0 => return Ok(digest.finish().as_ref().to_vec()),
            count => digest.update(piece.get(..count).unwrap_or_default()),
        }
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
