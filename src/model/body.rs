//! The bytes of an answer, in any pieces, become stream events.
//!
//! The first character says what the answer is, because servers send errors and
//! whole replies under any content type. What cannot be read as text is
//! replaced, and that is told. Every size is bounded.

use crate::model::StreamEvent;
use crate::model::description::Model;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::sse::{Frame, SseDecoder};
use crate::model::wire::{self, Decoder, Events};

/// The most bytes of one answer, after decompression.
const REPLY_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The most bytes of an answer that is one document.
const DOCUMENT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// The bytes of one answer of a model.
pub struct ReplyBody {
    decoder: Box<dyn Decoder>,
    form: Form,
    frames: Vec<Frame>,
    received: usize,
    /// The reply has ended: what comes behind it says nothing.
    over: bool,
}

/// What the answer turned out to be.
enum Form {
    Unknown,
    Stream(SseDecoder),
    Document(Vec<u8>),
}

impl ReplyBody {
    /// At the start of an answer of `model`.
    pub fn new(model: &Model) -> Self {
        Self {
            decoder: wire::decoder(model),
            form: Form::Unknown,
            frames: Vec::new(),
            received: 0,
            over: false,
        }
    }

    /// Takes the next bytes and appends the events that they complete.
    ///
    /// # Errors
    /// What the provider reports inside the answer; `BadResponse` when it is
    /// not what the dialect promises, or too large. The events before it count.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Events) -> Result<(), ModelError> {
        if self.over {
            return Ok(());
        }
        self.received = self.received.saturating_add(bytes.len());
        if self.received > REPLY_BYTES_MAX {
            return Err(too_large(REPLY_BYTES_MAX));
        }
        if let Form::Unknown = self.form {
            // A mark of byte order may come in pieces: it is dropped wherever
            // they end.
            let start = bytes
                .iter()
                .position(|byte| !byte.is_ascii_whitespace() && !b"\xef\xbb\xbf".contains(byte));
            let Some(rest) = start.and_then(|at| bytes.get(at..)) else {
                return Ok(());
            };
            bytes = rest;
            self.form = match bytes.first() {
                Some(b'{' | b'[') => Form::Document(Vec::new()),
                Some(b'<') => return Err(web_page()),
                Some(_) | None => Form::Stream(SseDecoder::new()),
            };
        }
        match &mut self.form {
            Form::Unknown => Ok(()),
            Form::Stream(sse) => {
                let pushed = sse.push(bytes, &mut self.frames);
                self.decode(events)?;
                pushed
            }
            Form::Document(document) => {
                if document.len() + bytes.len() > DOCUMENT_BYTES_MAX {
                    return Err(too_large(DOCUMENT_BYTES_MAX));
                }
                document.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// The connection has ended.
    ///
    /// # Errors
    /// `Truncated` when the reply is not whole, or as [`ReplyBody::push`].
    pub fn end(&mut self, events: &mut Events) -> Result<(), ModelError> {
        match &mut self.form {
            _ if self.over => return Ok(()),
            Form::Unknown => {}
            Form::Stream(sse) => {
                sse.finish(&mut self.frames)?;
                self.decode(events).map_err(cut_if_unreadable)?;
            }
            Form::Document(document) => {
                let document = String::from_utf8_lossy(document);
                if matches!(document, std::borrow::Cow::Owned(_)) {
                    events.push_back(StreamEvent::Replaced);
                }
                self.decoder.document(document.trim(), events)?;
            }
        }
        self.decoder.end(events)
    }

    /// Whether the reply is whole, so that a broken connection no longer harms.
    pub fn is_whole(&self) -> bool {
        self.decoder.is_whole()
    }

    fn decode(&mut self, events: &mut Events) -> Result<(), ModelError> {
        for frame in self.frames.drain(..) {
            if frame.replaced {
                events.push_back(StreamEvent::Replaced);
            }
            self.decoder.frame(&frame, events)?;
            if let Some(StreamEvent::Stop(_)) = events.back() {
                self.over = true;
                break;
            }
        }
        Ok(())
    }
}

/// The last event before the end of the connection is rarely whole.
fn cut_if_unreadable(error: ModelError) -> ModelError {
    if error.kind != ModelErrorKind::BadResponse {
        return error;
    }
    ModelError::new(
        ModelErrorKind::Truncated,
        "the stream ended inside an event",
    )
}

fn too_large(bytes_max: usize) -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!("the answer is larger than {} MiB", bytes_max >> 20),
    )
    .permanent()
}

fn web_page() -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        "the answer is a web page, not a reply of a model",
    )
    .permanent()
    .with_hint("check base_url")
}
