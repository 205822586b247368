//! Reading session files: one pass, one line in memory at a time.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::store::StoreError;
use crate::store::entry::{Entry, SESSION_VERSION};
use crate::store::line::{HeaderLine, reason};
use crate::store::surrogate;
use crate::store::tree::SessionTree;
use crate::store::upgrade::{Place, upgrade_entry};

/// A longer first line is no session header.
const HEADER_BYTES_MAX: u64 = 1024 * 1024;
const BUFFER_BYTES: usize = 256 * 1024;

/// What a session file holds.
#[derive(Debug)]
pub(crate) struct Content {
    pub(crate) tree: SessionTree,
    /// The version that its header names.
    pub(crate) version: u32,
    /// The length up to which the file consists of whole lines.
    pub(crate) good_len: u64,
    /// The bytes of a torn line after that.
    pub(crate) torn_bytes: u64,
    /// Whether the last line is whole but for its line break.
    pub(crate) unended: bool,
}

/// How a session file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    ReadAndAppend,
}

/// Opens a regular file and nothing else; never waits for one.
pub(crate) fn open_regular(path: &Path, access: Access) -> Result<File, StoreError> {
    let not_session = |what: &str| StoreError::NotASession {
        path: path.to_owned(),
        reason: what.to_owned(),
    };
    let failed = |source| StoreError::Open {
        path: path.to_owned(),
        source,
    };
    // Opening some devices acts on them, so looking comes first; looking again
    // at what was opened tells of a file that was exchanged in between.
    let seen = path.symlink_metadata().map_err(failed)?.file_type();
    if seen.is_symlink() {
        return Err(not_session("it is a symbolic link"));
    }
    if !seen.is_file() {
        return Err(not_session("it is no regular file"));
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .append(access == Access::ReadAndAppend)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = opened.map_err(|error| match Errno::from_io_error(&error) {
        Some(Errno::LOOP) => not_session("it is a symbolic link"),
        _ => failed(error),
    })?;
    if file.metadata().map_err(failed)?.is_file() {
        Ok(file)
    } else {
        Err(not_session("it is no regular file"))
    }
}

/// The absolute path of a file that there is, without links.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, StoreError> {
    path.canonicalize()
        .map_err(|error| read_failed(path, error))
}

/// The lines of a session file, without the blank ones.
pub(crate) struct Lines<'a> {
    reader: io::Take<BufReader<&'a File>>,
    path: &'a Path,
    buffer: Vec<u8>,
    /// Of the line that was read last, from 1.
    number: usize,
    /// The same without blank lines, from 0.
    position: Option<usize>,
    /// Where the line that was read last begins, and where it ends.
    start: u64,
    end: u64,
}

/// One line of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileLine<'a> {
    /// Without its line break.
    pub(crate) bytes: &'a [u8],
    /// From 1.
    pub(crate) number: usize,
    /// Among the lines that are not blank, from 0.
    pub(crate) position: usize,
    /// Whether it ends with a line break.
    pub(crate) ended: bool,
    /// Where it begins in the file.
    pub(crate) start: u64,
}

impl<'a> FileLine<'a> {
    /// The line as text.
    ///
    /// # Errors
    /// When it is not UTF-8, with the reason.
    pub(crate) fn text(&self) -> Result<Cow<'a, str>, String> {
        let text = std::str::from_utf8(self.bytes).map_err(|_| "it is not UTF-8".to_owned())?;
        Ok(surrogate::mend(text))
    }
}

impl<'a> Lines<'a> {
    /// The lines of the first `len` bytes.
    pub(crate) fn of(file: &'a File, path: &'a Path, len: u64) -> Result<Self, StoreError> {
        let mut seekable = file;
        seekable
            .rewind()
            .map_err(|error| read_failed(path, error))?;
        Ok(Self {
            reader: BufReader::with_capacity(BUFFER_BYTES, file).take(len),
            path,
            buffer: Vec::new(),
            number: 0,
            position: None,
            start: 0,
            end: 0,
        })
    }

    /// The first line, which must be a session header.
    pub(crate) fn header(&mut self) -> Result<(HeaderLine, FileLine<'_>), StoreError> {
        let path = self.path;
        let refused = |reason: &str| StoreError::NotASession {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        let rest = self.reader.limit();
        self.reader.set_limit(rest.min(HEADER_BYTES_MAX));
        let found = self.advance()?;
        let used = self.end;
        self.reader.set_limit(rest.saturating_sub(used));
        if !found {
            return Err(refused("it is empty"));
        }
        let line = self.line();
        let header = line
            .text()
            .ok()
            .and_then(|text| HeaderLine::parse(&text))
            .ok_or_else(|| refused("its first line is no session header"))?;
        Ok((header, line))
    }

    /// The next line that is not blank.
    pub(crate) fn next(&mut self) -> Result<Option<FileLine<'_>>, StoreError> {
        Ok(if self.advance()? {
            Some(self.line())
        } else {
            None
        })
    }

    fn advance(&mut self) -> Result<bool, StoreError> {
        loop {
            self.buffer.clear();
            let read = self
                .reader
                .read_until(b'\n', &mut self.buffer)
                .map_err(|error| read_failed(self.path, error))?;
            if read == 0 {
                return Ok(false);
            }
            self.number += 1;
            self.start = self.end;
            self.end += read as u64;
            if !self.buffer.trim_ascii().is_empty() {
                self.position = Some(self.position.map_or(0, |before| before + 1));
                return Ok(true);
            }
        }
    }

    fn line(&self) -> FileLine<'_> {
        let ended = self.buffer.last() == Some(&b'\n');
        let text_len = self.buffer.len() - usize::from(ended);
        FileLine {
            bytes: self.buffer.get(..text_len).unwrap_or_default(),
            number: self.number,
            position: self.position.unwrap_or_default(),
            ended,
            start: self.start,
        }
    }
}

/// Reads a whole session.
pub(crate) fn read_content(file: &File, path: &Path) -> Result<Content, StoreError> {
    // What another process appends meanwhile is not ours to read.
    let len = file
        .metadata()
        .map_err(|error| read_failed(path, error))?
        .len();
    let mut lines = Lines::of(file, path, len)?;
    let (first, line) = lines.header()?;
    let version = first.version;
    if version > SESSION_VERSION {
        return Err(StoreError::Version {
            path: path.to_owned(),
            version,
        });
    }
    let mut content = Content {
        tree: SessionTree::after(first),
        version,
        good_len: len,
        torn_bytes: 0,
        unended: !line.ended,
    };
    while let Some(line) = lines.next()? {
        content.unended = !line.ended;
        let place = Place {
            version,
            position: line.position,
        };
        match parse_entry(line, place) {
            Ok(entry) => content
                .tree
                .push(entry)
                .map_err(|error| bad_line(path, line.number, error.to_string()))?,
            // A line that is cut off somewhere is not whole JSON.
            Err(Unread::NotJson(_)) if !line.ended => {
                content.good_len = line.start;
                content.torn_bytes = len - line.start;
                content.unended = false;
            }
            Err(Unread::NotJson(reason) | Unread::NotAnEntry(reason)) => {
                return Err(bad_line(path, line.number, reason));
            }
        }
    }
    Ok(content)
}

enum Unread {
    NotJson(String),
    NotAnEntry(String),
}

fn parse_entry(line: FileLine, place: Place) -> Result<Entry, Unread> {
    let text = line.text().map_err(Unread::NotJson)?;
    let parsed = if place.version < SESSION_VERSION {
        upgrade_entry(&text, place).and_then(|upgraded| Entry::parse(&upgraded))
    } else {
        Entry::parse(&text)
    };
    parsed.map_err(|error| {
        if error.is_data() {
            Unread::NotAnEntry(reason(&error))
        } else {
            Unread::NotJson(reason(&error))
        }
    })
}

pub(crate) fn bad_line(path: &Path, line: usize, reason: String) -> StoreError {
    StoreError::BadLine {
        path: path.to_owned(),
        line,
        reason,
    }
}

pub(crate) fn read_failed(path: &Path, source: io::Error) -> StoreError {
    StoreError::Open {
        path: path.to_owned(),
        source,
    }
}
