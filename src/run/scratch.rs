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
        let directory = tempfile::Builder::new().prefix("agent-").tempdir()?;
        let real = directory.path().canonicalize()?;
        Ok(Self { real, directory })
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
