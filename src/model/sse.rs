//! Server-sent events: bytes in any pieces become frames.
//!
//! Follows the event-stream grammar of the HTML standard (one optional BOM;
//! LF, CR or CRLF; comments; several `data` lines), with three differences that
//! streams of models need: a last frame without its blank line still counts, an
//! `error` field is an event of that name, and it is told where invalid UTF-8
//! was replaced. Time is linear in the bytes, and a line or frame over
//! [`FRAME_BYTES_MAX`] is an error.

use crate::model::error::{ModelError, ModelErrorKind};

/// The most bytes of one line, and of the data of one frame.
pub const FRAME_BYTES_MAX: usize = 8 * 1024 * 1024;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The event's name; empty when it has none.
    pub event: String,
    /// The data, its lines joined by `\n`.
    pub data: String,
    /// Whether bytes of the data were no UTF-8; U+FFFD stands for them.
    pub replaced: bool,
}

/// Turns bytes into frames.
#[derive(Debug, Default)]
pub struct SseDecoder {
    /// The line so far, when a piece ended inside it.
    line: Vec<u8>,
    event: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// A CR ended the last line: a LF right after it belongs to it.
    after_cr: bool,
    /// The first line was seen, so that a BOM is no longer one.
    past_start: bool,
}

impl SseDecoder {
    /// At the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and appends the frames that they complete.
    ///
    /// # Errors
    /// `BadResponse` when a line or a frame grows over [`FRAME_BYTES_MAX`].
    pub fn push(&mut self, mut bytes: &[u8], frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        if self.after_cr
            && let Some((first, rest)) = bytes.split_first()
        {
            self.after_cr = false;
            if *first == b'\n' {
                bytes = rest;
            }
        }
        while let Some(end) = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, rest) = bytes.split_at(end);
            if self.line.is_empty() {
                self.take_line(line, frames)?;
            } else {
                self.grow_line(line)?;
                let whole = std::mem::take(&mut self.line);
                self.take_line(&whole, frames)?;
            }
            bytes = match rest {
                [b'\r', b'\n', after @ ..] | [b'\n', after @ ..] => after,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, after @ ..] => after,
                [] => &[],
            };
        }
        self.grow_line(bytes)
    }

    /// Ends the stream: what is pending counts as whole.
    ///
    /// # Errors
    /// `BadResponse` when the last frame is too large.
    pub fn finish(&mut self, frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.take_line(&line, frames)?;
        }
        self.dispatch(frames);
        Ok(())
    }

    fn grow_line(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if self.line.len() + bytes.len() > FRAME_BYTES_MAX {
            return Err(too_large());
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn take_line(&mut self, mut line: &[u8], frames: &mut Vec<Frame>) -> Result<(), ModelError> {
        if !self.past_start {
            self.past_start = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            self.dispatch(frames);
            return Ok(());
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (field, value) = match colon {
            Some(0) => return Ok(()),
            Some(at) => {
                let (field, value) = line.split_at(at);
                let value = value.get(1..).unwrap_or_default();
                (field, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &[][..]),
        };
        match field {
            b"data" => {
                if self.data.len() + value.len() + 1 > FRAME_BYTES_MAX {
                    return Err(too_large());
                }
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.event.clear();
                self.event.extend_from_slice(value);
            }
            // Not of the standard: how llama.cpp says that it failed.
            b"error" => {
                self.event = b"error".to_vec();
                self.data = value.to_vec();
                self.has_data = true;
            }
            // `id` and `retry` serve reconnecting, which a reply cannot do.
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, frames: &mut Vec<Frame>) {
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        if !std::mem::take(&mut self.has_data) || data.is_empty() {
            return;
        }
        let (event, _) = text(event);
        let (data, replaced) = text(data);
        frames.push(Frame {
            event,
            data,
            replaced,
        });
    }
}

/// Bytes as text, and whether some had to be replaced.
fn text(bytes: Vec<u8>) -> (String, bool) {
    match String::from_utf8(bytes) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    }
}

fn too_large() -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!(
            "one event of the stream is larger than {} MiB",
            FRAME_BYTES_MAX >> 20
        ),
    )
    .permanent()
}
