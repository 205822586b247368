//! What commands made of protected files is not destroyed: somebody else may have
//! made it meanwhile.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::places::Grounds;
use super::records::UNDONE;
use crate::access::Folder;

/// So many entries are put aside; more are removed.
const ENTRIES_MAX: usize = 100;

/// A place in the directory of the run for what is taken away.
#[derive(Debug)]
pub(super) struct Aside {
    /// None where the run has no directory.
    place: Option<PathBuf>,
    count: AtomicUsize,
}

impl Aside {
    pub(super) fn new(grounds: &Grounds) -> Self {
        Self {
            place: grounds.records.first().map(|run| run.join(UNDONE)),
            count: AtomicUsize::new(0),
        }
    }

    /// Where the entries are, when there are any.
    pub(super) fn place(&self) -> Option<&PathBuf> {
        let some = self.count.load(Ordering::Relaxed) > 0;
        self.place.as_ref().filter(|_| some)
    }

    /// Takes an entry away, whatever it is; it is no error that there is none. It
    /// is kept where that takes no more than another name.
    ///
    /// # Errors
    /// When it cannot be.
    pub(super) fn take(&self, folder: &Folder, name: &OsStr) -> io::Result<()> {
        match self.rename(folder, name) {
            true => Ok(()),
            false => folder.remove(name),
        }
    }

    fn rename(&self, folder: &Folder, name: &OsStr) -> bool {
        let Some(place) = &self.place else {
            return false;
        };
        if rustix::fs::statat(folder, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).is_err() {
            return false;
        }
        let Ok(place) = Folder::ensure(place, 0o700) else {
            return false;
        };
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let mut kept = OsString::from(format!("{number}-"));
        kept.push(name);
        number < ENTRIES_MAX && rustix::fs::renameat(folder, name, &place, &kept).is_ok()
    }
}
