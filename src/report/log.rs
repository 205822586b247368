//! The event log as lines of JSON, in a file or on standard output.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::{Sink, SinkError};
use crate::access;
use crate::event::Event;

/// Writes one line an event, each with one write, so that what was reported
/// survives the end of the process at any moment.
pub struct JsonlSink {
    name: String,
    out: Out,
    line: Vec<u8>,
}

/// Opens a file that only its owner may read, emptied. A pipe without a reader
/// is an error and not a wait without end.
///
/// # Errors
///
/// When it cannot be opened for writing.
pub fn create_private(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(|error| match Errno::from_io_error(&error) {
            Some(Errno::NXIO) => std::io::Error::other("nobody reads this pipe"),
            _ => error,
        })?;
    // From here on a slow reader slows the run.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    if file.metadata().is_ok_and(|found| found.is_file()) {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

enum Out {
    File(File),
    Stream(Box<dyn Write + Send>),
    /// The reader went away.
    Closed,
}

impl JsonlSink {
    /// A log in a file that only its owner may read. An older file of that
    /// name is emptied.
    ///
    /// # Errors
    ///
    /// When the file cannot be opened for writing.
    pub fn create(path: &Path) -> Result<Self, SinkError> {
        let name = path.display().to_string();
        let failed = |source| SinkError::new("open", path.display().to_string(), source);
        let file = create_private(path).map_err(failed)?;
        access::keep_account(&file, path).map_err(failed)?;
        Ok(Self::to(name, Out::File(file)))
    }

    /// A log on a stream, such as standard output. A reader that closes it ends
    /// this sink quietly: it lost interest, the run did not fail.
    pub fn stream(name: impl Into<String>, out: Box<dyn Write + Send>) -> Self {
        Self::to(name.into(), Out::Stream(out))
    }

    fn to(name: String, out: Out) -> Self {
        Self {
            name,
            out,
            line: Vec::new(),
        }
    }
}

impl Sink for JsonlSink {
    fn write(&mut self, _event: &Event, line: &str) -> Result<(), SinkError> {
        self.line.clear();
        self.line.extend_from_slice(line.as_bytes());
        self.line.push(b'\n');
        let written = match &mut self.out {
            Out::File(file) => access::write_record(file, &self.line),
            Out::Stream(out) => out.write_all(&self.line).and_then(|()| out.flush()),
            Out::Closed => Ok(()),
        };
        match (written, &self.out) {
            (Err(error), Out::Stream(_)) if error.kind() == ErrorKind::BrokenPipe => {
                self.out = Out::Closed;
                Ok(())
            }
            (written, _) => {
                written.map_err(|source| SinkError::new("write", self.name.clone(), source))
            }
        }
    }

    /// Every line was written when it came, so that a killed run keeps it. It
    /// is not forced to the disk: that costs every run milliseconds, and guards
    /// only against a loss of power.
    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
