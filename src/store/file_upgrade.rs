//! Copying lines of session files: into the file that takes the place of one of
//! an older version, and into forks.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::Builder;

use crate::secret::Redactor;
use crate::store::entry::{EntryId, SESSION_VERSION};
use crate::store::file::{SessionFile, is_named, lock, sync_directory};
use crate::store::file_lines::{Access, Lines, bad_line, open_regular};
use crate::store::line::{entry_id, reason};
use crate::store::redact::redact_line;
use crate::store::upgrade::{Place, upgrade_entry, upgrade_header};
use crate::store::{Durability, StoreError};

/// How many bytes of copied lines are written at once.
const COPY_BYTES: usize = 256 * 1024;

/// A locked file of an older version.
pub(crate) struct Old<'a> {
    pub(crate) file: &'a File,
    pub(crate) path: &'a Path,
    /// The length of its whole lines.
    pub(crate) len: u64,
    pub(crate) version: u32,
}

/// Writes the lines of `old` as the current version has them to a new file of
/// the same mode, locks that, gives it the name, and returns it with its
/// length. When anything fails, the old file is as it was.
pub(crate) fn replace(
    old: &Old,
    durability: Durability,
    redactor: &Redactor,
) -> Result<(File, u64), StoreError> {
    let failed = |source| StoreError::Write {
        path: old.path.to_owned(),
        source,
    };
    let folder = old
        .path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let named = Builder::new()
        .prefix(".session-")
        .suffix(".tmp")
        .append(true)
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(failed)?;
    lock(named.as_file(), old.path)?;
    let mode = old.file.metadata().map_err(failed)?.permissions();
    named.as_file().set_permissions(mode).map_err(failed)?;
    write_upgraded(old, named.as_file(), redactor)?;
    if durability != Durability::None {
        named.as_file().sync_all().map_err(failed)?;
    }
    // The name may mean another file by now, which nobody asked to replace.
    if !is_named(old.file, old.path).map_err(failed)? {
        let gone = io::Error::other("another file has its name now");
        return Err(failed(gone));
    }
    let file = named
        .persist(old.path)
        .map_err(|error| failed(error.error))?;
    if durability != Durability::None {
        sync_directory(old.path).map_err(failed)?;
    }
    let len = file.metadata().map_err(failed)?.len();
    Ok((file, len))
}

fn write_upgraded(old: &Old, to: &File, redactor: &Redactor) -> Result<(), StoreError> {
    let failed = |source| StoreError::Write {
        path: old.path.to_owned(),
        source,
    };
    let mut writer = BufWriter::with_capacity(COPY_BYTES, to);
    let mut lines = Lines::of(old.file, old.path, old.len)?;
    let (_, header) = lines.header()?;
    let number = header.number;
    let bad = |reason| bad_line(old.path, number, reason);
    let header = upgrade_header(&header.text().map_err(bad)?)?;
    let mut put = |line: String| -> Result<(), StoreError> {
        let line = redact_line(line, redactor)?;
        writeln!(writer, "{line}").map_err(failed)
    };
    put(header)?;
    while let Some(line) = lines.next()? {
        let place = Place {
            version: old.version,
            position: line.position,
        };
        let bad = |reason| bad_line(old.path, line.number, reason);
        put(upgrade_entry(&line.text().map_err(bad)?, place)?)?;
    }
    writer.flush().map_err(failed)
}

/// Where lines are copied from.
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    /// The entries that are wanted.
    pub(crate) wanted: HashSet<&'a EntryId>,
}

/// Adds the wanted lines of a session file to another one, with all that this
/// program knows nothing of.
///
/// # Errors
/// When the source cannot be read or has not all of them any more, or the
/// target takes no more.
pub(crate) fn copy(mut from: Source, to: &mut SessionFile) -> Result<(), StoreError> {
    let path = from.path;
    let file = open_regular(path, Access::Read)?;
    let mut lines = Lines::of(&file, path, u64::MAX)?;
    let (first, _) = lines.header()?;
    let redactor = to.redactor().clone();
    let mut copied = String::new();
    while !from.wanted.is_empty() {
        let Some(line) = lines.next()? else {
            return Err(StoreError::NotASession {
                path: path.to_owned(),
                reason: "it changed while it was copied".to_owned(),
            });
        };
        let number = line.number;
        let bad = |error: serde_json::Error| bad_line(path, number, reason(&error));
        let text = line
            .text()
            .map_err(|reason| bad_line(path, number, reason))?;
        let text = if first.version < SESSION_VERSION {
            let place = Place {
                version: first.version,
                position: line.position,
            };
            upgrade_entry(&text, place).map_err(bad)?
        } else {
            text.trim().to_owned()
        };
        if from.wanted.remove(&entry_id(&text).map_err(bad)?) {
            copied.push_str(&redact_line(text, &redactor)?);
            copied.push('\n');
        }
        if copied.len() >= COPY_BYTES {
            to.write_lines(&copied)?;
            copied.clear();
        }
    }
    if copied.is_empty() {
        return Ok(());
    }
    to.write_lines(&copied)
}
