//! The prompt from standard input, for `-p -` alone. Waiting for it is bounded,
//! so that an inherited pipe nobody writes to cannot hang a run.

use std::io::{self, Read};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use crate::event::Reason;

/// The first byte must come within this time.
const FIRST_BYTE: Duration = Duration::from_secs(10);

/// And each further piece within this.
const NEXT_PIECE: Duration = Duration::from_secs(60);

/// A prompt is at most this long.
const BYTES_MAX: usize = 1024 * 1024;

/// Why there is no prompt on standard input.
#[derive(Debug, thiserror::Error)]
pub(super) enum StdinError {
    #[error("cannot read standard input: {0}")]
    Read(io::Error),
    #[error(
        "nothing came on standard input for {} s; close it, or give the prompt as an argument",
        .0.as_secs()
    )]
    Silent(Duration),
    #[error("standard input holds no prompt")]
    Empty,
    #[error("the prompt on standard input is over {BYTES_MAX} bytes")]
    TooLong,
    #[error("standard input is not UTF-8")]
    NotText,
}

impl StdinError {
    /// Nothing there is another matter than something wrong.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Read(_) | Self::Silent(_) | Self::Empty => Reason::NoInput,
            Self::TooLong | Self::NotText => Reason::BadTask,
        }
    }
}

/// Reads the whole prompt.
///
/// # Errors
/// When nothing or too much comes, or what comes is no text.
pub(super) fn read_prompt() -> Result<String, StdinError> {
    let (sender, pieces) = sync_channel::<io::Result<Vec<u8>>>(1);
    // A read that never returns cannot be cancelled; its thread ends with the
    // process, and everything else goes on without it.
    std::thread::spawn(move || {
        let mut stdin = io::stdin().lock();
        loop {
            let mut buffer = vec![0; 64 * 1024];
            let piece = stdin.read(&mut buffer).map(|length| {
                buffer.truncate(length);
                buffer
            });
            let last = piece.as_ref().map_or(true, Vec::is_empty);
            if sender.send(piece).is_err() || last {
                return;
            }
        }
    });
    let mut bytes = Vec::new();
    let mut patience = FIRST_BYTE;
    loop {
        match pieces.recv_timeout(patience) {
            Ok(Ok(piece)) if piece.is_empty() => break,
            Ok(Ok(piece)) => bytes.extend_from_slice(&piece),
            Ok(Err(error)) => return Err(StdinError::Read(error)),
            Err(RecvTimeoutError::Timeout) => return Err(StdinError::Silent(patience)),
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if bytes.len() > BYTES_MAX {
            return Err(StdinError::TooLong);
        }
        patience = NEXT_PIECE;
    }
    let text = String::from_utf8(bytes).map_err(|_| StdinError::NotText)?;
    if text.trim().is_empty() {
        return Err(StdinError::Empty);
    }
    Ok(text)
}
