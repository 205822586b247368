//! Files that a task or a variable names, read at once or refused at once.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::access::{self, Entry, WorkingCopies};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// It is missing, unreadable, or no ordinary file.
    #[error("{0}")]
    NoInput(String),
    /// It is there but is not what can be used.
    #[error("{0}")]
    Unfit(String),
}

/// The text of an ordinary file of at most `bytes_max` bytes, without a byte
/// order mark. A pipe or a device is refused, never waited for.
///
/// # Errors
///
/// When there is no such file, or it is too large or not UTF-8.
pub(crate) fn text(path: &Path, bytes_max: u64) -> Result<String, ReadError> {
    decode(bytes(path, bytes_max)?)
        .map_err(|why| ReadError::Unfit(format!("{} {why}", path.display())))
}

/// The same for a file that a working copy may hold: no link of it leads elsewhere.
///
/// # Errors
///
/// When one does, or as for [`text`].
pub(crate) fn text_within(
    copies: &WorkingCopies,
    path: &Path,
    bytes_max: u64,
) -> Result<String, ReadError> {
    let real = copies
        .resolve(path)
        .map_err(|error| ReadError::Unfit(format!("cannot read {}: {error}", path.display())))?;
    match copies.contains(&real) && path.exists() {
        true => text_of(&real, path, bytes_max),
        false => text(path, bytes_max),
    }
}

/// The content of an ordinary file of at most `bytes_max` bytes.
///
/// # Errors
///
/// When there is no such file, or it is too large.
pub(crate) fn bytes(path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    let shown = path.display();
    let no_input = |why: &str| ReadError::NoInput(format!("cannot read {shown}: {why}"));
    // Without O_NONBLOCK opening a pipe that nobody writes to waits for ever.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let handle = rustix::fs::open(path, flags, Mode::empty())
        .map_err(|errno| no_input(&plain(&std::io::Error::from(errno))))?;
    let file = File::from(handle);
    let kind = file.metadata().map_err(|error| no_input(&plain(&error)))?;
    if kind.is_dir() {
        return Err(no_input(DIRECTORY));
    }
    if !kind.is_file() {
        return Err(no_input(SPECIAL));
    }
    content(file, path, bytes_max)
}

const DIRECTORY: &str = "it is a directory";
const SPECIAL: &str = "it is not an ordinary file";

/// The text of an ordinary file that is really in one of `directories`, wherever
/// links on the way to it lead.
///
/// # Errors
///
/// When it is somewhere else, or as for [`text`].
pub(crate) fn text_in(
    directories: &[PathBuf],
    path: &Path,
    bytes_max: u64,
) -> Result<String, ReadError> {
    let shown = path.display();
    let no_input = |why: &str| ReadError::NoInput(format!("cannot read {shown}: {why}"));
    let real = path
        .canonicalize()
        .map_err(|error| no_input(&plain(&error)))?;
    let mut directories = directories.iter().filter_map(|at| at.canonicalize().ok());
    if !directories.any(|directory| real.starts_with(directory)) {
        let really = match real == path {
            true => String::new(),
            false => format!(" is {} and", real.display()),
        };
        return Err(ReadError::Unfit(format!(
            "{shown}{really} lies outside of the workspace and of the task's directory"
        )));
    }
    text_of(&real, path, bytes_max)
}

/// The text of the file at the real path `real`, to which `path` leads; no link is
/// followed any more.
fn text_of(real: &Path, path: &Path, bytes_max: u64) -> Result<String, ReadError> {
    let shown = path.display();
    let no_input = |why: &str| ReadError::NoInput(format!("cannot read {shown}: {why}"));
    let file = match access::look(real) {
        Ok(Entry::File(opened)) => opened.file,
        Ok(Entry::Directory) => return Err(no_input(DIRECTORY)),
        Ok(Entry::Other(_)) => return Err(no_input(SPECIAL)),
        Err(error) => return Err(no_input(&plain(&error))),
    };
    decode(content(file, path, bytes_max)?)
        .map_err(|why| ReadError::Unfit(format!("{} {why}", path.display())))
}

fn content(file: File, path: &Path, bytes_max: u64) -> Result<Vec<u8>, ReadError> {
    let shown = path.display();
    let no_input = |why: &str| ReadError::NoInput(format!("cannot read {shown}: {why}"));
    let mut bytes = Vec::new();
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| no_input(&plain(&error)))?;
    if bytes.len() as u64 > bytes_max {
        return Err(ReadError::Unfit(format!(
            "{shown} is larger than {bytes_max} bytes"
        )));
    }
    Ok(bytes)
}

/// UTF-8 without a byte order mark.
fn decode(bytes: Vec<u8>) -> Result<String, String> {
    if bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF]) {
        return Err("is UTF-16; save it as UTF-8".to_owned());
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text
            .strip_prefix('\u{feff}')
            .map(str::to_owned)
            .unwrap_or(text)),
        Err(error) => {
            let place = error.utf8_error().valid_up_to();
            Err(format!(
                "is not UTF-8: the byte at offset {place} begins no character"
            ))
        }
    }
}

/// An error without its number, in lower case.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string().to_lowercase(),
    }
}
