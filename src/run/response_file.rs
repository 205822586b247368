//! The file that gets the final answer of a job: there when the job succeeded,
//! and else not.

use std::fs::{self, DirBuilder};
use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::NamedTempFile;

use crate::access::WorkingCopies;
use crate::secret::Redactor;

/// The file for the answer, whose place is ready.
#[derive(Debug)]
pub(super) struct ResponseFile {
    path: PathBuf,
    /// Its folder, real.
    folder: PathBuf,
    copies: WorkingCopies,
}

/// The file could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} response.file {}: {source}", path.display())]
pub(super) struct ResponseFileError {
    action: &'static str,
    path: PathBuf,
    source: Error,
}

impl ResponseFile {
    /// Makes the place ready before the job starts, and removes the answer of an
    /// earlier one, which nobody is to take for the new one.
    ///
    /// # Errors
    /// When the old answer cannot be removed, or a new one could not be written, or
    /// a link of one of `copies` would take it elsewhere.
    pub(super) fn prepare(path: &Path, copies: WorkingCopies) -> Result<Self, ResponseFileError> {
        copies
            .resolve(path)
            .map_err(|source| failed("write", path, source))?;
        remove(path).map_err(|source| failed("remove the old", path, source))?;
        let folder = ready(path).map_err(|source| failed("write", path, source))?;
        Ok(Self {
            path: path.to_path_buf(),
            folder,
            copies,
        })
    }

    /// Writes the answer, redacted, as one line, for its owner only. A reader
    /// sees all of it or nothing.
    ///
    /// # Errors
    /// When it cannot be written, or its folder is no longer the one that it was:
    /// a link that the job left there must not lead the answer elsewhere.
    pub(super) fn write(
        &self,
        answer: Value,
        redactor: &Redactor,
    ) -> Result<(), ResponseFileError> {
        let line = format!("{}\n", redactor.redact_json(answer));
        self.replace(line.as_bytes())
            .map_err(|source| failed("write", &self.path, source))
    }

    fn replace(&self, bytes: &[u8]) -> std::io::Result<()> {
        self.copies.resolve(&self.path)?;
        let folder = ready(&self.path)?;
        if folder != self.folder {
            return Err(Error::other("its folder became another one during the run"));
        }
        // Such a file is made with mode 0600.
        let mut file = NamedTempFile::new_in(&folder)?;
        file.write_all(bytes)?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        // A part of the way that is no folder is told when the file is written.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(())
        }
        other => other,
    }
}

/// The real folder of `path`, in which a file can be made.
fn ready(path: &Path) -> std::io::Result<PathBuf> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(folder)?;
    let folder = folder.canonicalize()?;
    NamedTempFile::new_in(&folder)?.close()?;
    Ok(folder)
}

fn failed(action: &'static str, path: &Path, source: Error) -> ResponseFileError {
    ResponseFileError {
        action,
        path: path.to_path_buf(),
        source,
    }
}
