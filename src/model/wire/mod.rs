//! Dialects: a request becomes bytes, frames become stream events. No I/O.

mod anthropic;
mod anthropic_stream;
mod call_id;
mod encode;
mod gemini;
mod gemini_stream;
mod json;
mod normalise;
mod openai_chat;
mod openai_chat_messages;
mod openai_chat_stream;
mod openai_responses;
mod openai_responses_event;
mod openai_responses_stream;
mod reasoning_details;
mod response_schema;
mod tokens;
mod transcript;

pub use encode::Encoder;

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::model::description::{Api, Model};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::sse::Frame;
use crate::model::wire::normalise::Turn;
use crate::model::wire::transcript::Transcript;
use crate::model::{Request, StreamEvent};

/// What requests look like in one dialect.
trait Dialect: Sync {
    /// The path under the base URL.
    fn path(&self, model: &Model) -> Cow<'static, str>;

    /// The dialect's own headers; the one that carries the key is first.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Writes the body up to the conversation, into whose list it leads.
    fn head(&self, model: &Model, request: &Request, body: &mut Vec<u8>);

    /// Writes a turn. What it becomes depends on nothing behind it.
    fn turn(&self, model: &Model, turn: Turn<'_>, transcript: &mut Transcript);
}

/// The stream of one reply in one dialect.
pub trait Decoder: Send {
    /// Decodes the next frame. Frames after the end are ignored.
    ///
    /// # Errors
    /// What the provider reports inside the stream, or `BadResponse`.
    fn frame(&mut self, frame: &Frame, events: &mut Events) -> Result<(), ModelError>;

    /// Decodes an answer that came as one JSON document instead of a stream.
    ///
    /// # Errors
    /// As [`Decoder::frame`].
    fn document(&mut self, body: &str, events: &mut Events) -> Result<(), ModelError>;

    /// The connection has ended.
    ///
    /// # Errors
    /// `Truncated` when the reply is not whole.
    fn end(&mut self, events: &mut Events) -> Result<(), ModelError>;

    /// Whether the reply is whole, so that a broken connection no longer harms.
    fn is_whole(&self) -> bool;
}

/// Decoded events, oldest first.
pub type Events = VecDeque<StreamEvent>;

/// A decoder of one reply of `model`.
pub fn decoder(model: &Model) -> Box<dyn Decoder> {
    match model.api {
        Api::AnthropicMessages => Box::new(anthropic_stream::AnthropicDecoder::default()),
        Api::OpenaiChat => Box::new(openai_chat_stream::ChatDecoder::default()),
        Api::OpenaiResponses => Box::new(openai_responses_stream::ResponsesDecoder::default()),
        Api::GoogleGenerativeAi => Box::new(gemini_stream::GeminiDecoder::default()),
    }
}

/// The path of a call of `model` under its base URL.
pub(super) fn path(model: &Model) -> Cow<'static, str> {
    dialect(model.api).path(model)
}

/// The headers that the dialect of `model` adds; the one that carries the key is
/// first.
pub(super) fn headers(model: &Model, key: Option<&str>) -> Vec<(&'static str, String)> {
    dialect(model.api).headers(key)
}

fn dialect(api: Api) -> &'static dyn Dialect {
    match api {
        Api::AnthropicMessages => &anthropic::Anthropic,
        Api::OpenaiChat => &openai_chat::OpenaiChat,
        Api::OpenaiResponses => &openai_responses::OpenaiResponses,
        Api::GoogleGenerativeAi => &gemini::Gemini,
    }
}

/// Whether a model of Google's is of the third generation or later.
pub(super) fn is_modern_gemini(model: &Model) -> bool {
    gemini::is_modern(model)
}

/// The error of a frame that does not parse.
fn bad_frame(error: &serde_json::Error) -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!("an event of the stream is not what the dialect promises: {error}"),
    )
}

/// The error of a document that does not parse.
fn bad_document(error: &serde_json::Error) -> ModelError {
    if error.is_eof() {
        return truncated();
    }
    bad_frame(error)
}

/// The error of a stream without its end.
fn truncated() -> ModelError {
    ModelError::new(
        ModelErrorKind::Truncated,
        "the stream ended before the reply was whole",
    )
}

/// The error of an event that lacks what its kind promises.
fn without(what: &str) -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!("an event of the stream lacks {what}"),
    )
}

/// The error of events that cannot follow each other.
fn disorder(what: &str) -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!("the stream is out of order: {what}"),
    )
}

/// Appends `value` as JSON.
fn write_json(body: &mut Vec<u8>, value: &impl serde::Serialize) {
    serde_json::to_writer(body, value).expect("strings and numbers always become JSON");
}

/// Appends an object that is never empty, up to and into the list `name` behind
/// its fields: the list comes last, because it is what grows.
fn write_open(body: &mut Vec<u8>, fields: &impl serde::Serialize, name: &str) {
    write_json(body, fields);
    body.pop();
    body.extend_from_slice(b",\"");
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(b"\":[");
}

/// `authorization: Bearer`, when there is a key.
fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    key.map(|key| ("authorization", format!("Bearer {key}")))
        .into_iter()
        .collect()
}
