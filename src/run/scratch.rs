//! The directory of a job for what nobody keeps.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::access;

/// A directory that is gone with this value, whatever commands made in it.
#[derive(Debug)]
pub(super) struct Scratch {
    real: PathBuf,
    directory: TempDir,
}

impl Scratch {
    /// A new one, for its owner only.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(super) fn make() -> io::Result<Self> {
        Self::of(tempfile::Builder::new().prefix("agent-").tempdir()?)
    }

    /// A new one that is not below any of these `places`.
    ///
    /// # Errors
    /// When there is no room for one.
    pub(super) fn make_outside(places: &[PathBuf], home: Option<&Path>) -> io::Result<Self> {
        let cache = home.map(|home| home.join(".cache"));
        let others = ["/var/tmp", "/dev/shm"].map(PathBuf::from);
        let first = Self::make();
        let rest = others.into_iter().chain(cache).map(|directory| {
            let mut builder = tempfile::Builder::new();
            let directory = builder.prefix("agent-").tempdir_in(directory)?;
            Self::of(directory)
        });
        let outside = |made: &Self| !places.iter().any(|place| made.real.starts_with(place));
        let mut made = first.into_iter().chain(rest.flatten());
        made.find(outside)
            .ok_or_else(|| io::Error::other("commands may write to all of them"))
    }

    fn of(directory: TempDir) -> io::Result<Self> {
        let real = directory.path().canonicalize()?;
        Ok(Self { real, directory })
    }

    /// The same without links.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is too deep for the library is taken away before it comes to it.
        let _ = access::remove(&self.real);
    }
}
