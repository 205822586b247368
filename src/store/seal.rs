//! Which session files this user's runner wrote, and nobody changed since.
//!
//! Anybody who can write a file can write a conversation: whoever commits to the
//! repository, or a command. So for each session a record outside of the workspace
//! holds how long its file is and a MAC of that much of it. The record names two
//! states, as it was and as it is about to be, and is written before each line: so
//! a run that is killed leaves a file that has one of them.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ring::hmac;
use rustix::fs::OFlags;
use serde::de::IgnoredAny;

use crate::store::StoreError;
use crate::store::file_lines::{Access, Lines, open_regular};

const BUFFER_BYTES: usize = 64 * 1024;
/// A record is far shorter.
const RECORD_BYTES_MAX: u64 = 4096;
/// More than this is no line that a kill cut off.
const TORN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What keeps the two uses of the key apart.
const OF_NAME: &[u8] = b"name\0";
const OF_CONTENT: &[u8] = b"content\0";
/// So much of a MAC names a record.
const NAME_CHARS: usize = 32;

/// The records of a user's sessions, and the key that they are made with.
#[derive(Debug, Clone)]
pub struct Seals {
    directory: PathBuf,
    key: hmac::Key,
}

/// Why a session file is not believed to be this user's.
#[derive(Debug, thiserror::Error)]
pub enum Unsealed {
    /// There is no record of it.
    #[error("this user's agent did not write it here")]
    Unknown,
    /// It is not as the record has it.
    #[error("something else changed it after this user's agent wrote it")]
    Changed,
    /// It or its record cannot be read.
    #[error("it cannot be verified: {0}")]
    Unreadable(String),
}

/// How much of a file there was, and the MAC of that.
#[derive(Debug, Clone, PartialEq, Eq)]
struct State {
    length: u64,
    mac: String,
}

/// The record of a file that is being written.
#[derive(Debug)]
pub(crate) struct Seal {
    seals: Seals,
    id: String,
    record: File,
    context: hmac::Context,
    state: State,
}

impl Seals {
    /// Records in `directory`, which is made when it is needed, by `key`.
    pub fn new(directory: PathBuf, key: &[u8]) -> Self {
        Self {
            directory,
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    /// Whether the session file `path` is as this user's runner left it: but for a
    /// line that was cut off at its end.
    ///
    /// # Errors
    /// When it is not, or that cannot be known.
    pub fn check(&self, path: &Path) -> Result<(), Unsealed> {
        let unreadable = |error: StoreError| Unsealed::Unreadable(error.to_string());
        let file = open_regular(path, Access::Read).map_err(unreadable)?;
        let id = {
            let mut lines = Lines::of(&file, path, u64::MAX).map_err(unreadable)?;
            lines.header().map_err(unreadable)?.0.header.id
        };
        let mut states = self.recorded(&id)?;
        // The longer one first.
        states.sort_by_key(|state| std::cmp::Reverse(state.length));
        for state in states {
            let holds = self.holds(&file, &state);
            if holds.map_err(|error| Unsealed::Unreadable(error.to_string()))? {
                return Ok(());
            }
        }
        Err(Unsealed::Changed)
    }

    fn recorded(&self, id: &str) -> Result<Vec<State>, Unsealed> {
        let unreadable = |error: io::Error| Unsealed::Unreadable(error.to_string());
        let file = match private(OpenOptions::new().read(true)).open(self.record(id)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Unsealed::Unknown),
            opened => opened.map_err(unreadable)?,
        };
        let mut text = String::new();
        let mut limited = file.take(RECORD_BYTES_MAX);
        limited.read_to_string(&mut text).map_err(unreadable)?;
        let state = |line: &str| {
            let (length, mac) = line.split_once(' ')?;
            let (length, mac) = (length.parse().ok()?, mac.to_owned());
            Some(State { length, mac })
        };
        Ok(text.lines().filter_map(state).collect())
    }

    /// Whether a file begins with what is recorded, and goes on with a torn line at
    /// most.
    fn holds(&self, file: &File, state: &State) -> io::Result<bool> {
        if file.metadata()?.len() < state.length {
            return Ok(false);
        }
        let context = self.context_of(file, state.length)?;
        if mac(&context) != state.mac {
            return Ok(false);
        }
        let mut rest = Vec::new();
        let mut behind = At(file, state.length).take(TORN_BYTES_MAX);
        behind.read_to_end(&mut rest)?;
        let whole = rest.contains(&b'\n') || rest.len() as u64 == TORN_BYTES_MAX;
        let entry = || serde_json::from_slice::<IgnoredAny>(&rest).is_ok();
        Ok(rest.is_empty() || !(whole || entry()))
    }

    fn context_of(&self, file: &File, length: u64) -> io::Result<hmac::Context> {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(OF_CONTENT);
        let mut buffer = vec![0; BUFFER_BYTES];
        let mut content = At(file, 0).take(length);
        loop {
            match content.read(&mut buffer)? {
                0 => return Ok(context),
                read => context.update(buffer.get(..read).unwrap_or_default()),
            }
        }
    }

    /// Where the record of a session is: an id may be any text.
    fn record(&self, id: &str) -> PathBuf {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(OF_NAME);
        context.update(id.as_bytes());
        let name: String = mac(&context).chars().take(NAME_CHARS).collect();
        self.directory.join(OsString::from(name))
    }

    /// Records the first `length` bytes of a file that this process writes.
    ///
    /// # Errors
    /// When the file cannot be read, or the record not written.
    pub(crate) fn seal(&self, path: &Path, id: &str, length: u64) -> io::Result<Seal> {
        let file = open_regular(path, Access::Read).map_err(io::Error::other)?;
        let context = self.context_of(&file, length)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let record = private(&mut options).open(self.record(id))?;
        let state = State {
            length,
            mac: mac(&context),
        };
        write_record(&record, &state, &state)?;
        Ok(Seal {
            seals: self.clone(),
            id: id.to_owned(),
            record,
            context,
            state,
        })
    }
}

impl Seal {
    /// Records that these bytes are about to be added to the file.
    ///
    /// # Errors
    /// When that cannot be written.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.context.update(bytes);
        let next = State {
            length: self.state.length + bytes.len() as u64,
            mac: mac(&self.context),
        };
        write_record(&self.record, &self.state, &next)?;
        self.state = next;
        Ok(())
    }

    /// The same record for a file that took the place of the other one.
    ///
    /// # Errors
    /// As [`Seals::seal`].
    pub(crate) fn renew(&self, path: &Path, length: u64) -> io::Result<Self> {
        self.seals.seal(path, &self.id, length)
    }
}

/// One write of always the same length, so that none is seen half done.
fn write_record(record: &File, before: &State, after: &State) -> io::Result<()> {
    let line = |state: &State| format!("{:020} {}\n", state.length, state.mac);
    record.write_all_at(format!("{}{}", line(before), line(after)).as_bytes(), 0)
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.mode(0o600).custom_flags(flags.bits().cast_signed())
}

fn mac(context: &hmac::Context) -> String {
    let tag = context.clone().sign();
    tag.as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// A file from a place on, whoever else reads it.
struct At<'f>(&'f File, u64);

impl Read for At<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read_at(buffer, self.1)?;
        self.1 += read as u64;
        Ok(read)
    }
}
