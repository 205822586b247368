//! Dialects: a request becomes bytes, frames become stream events. No I/O.

mod anthropic;
mod anthropic_stream;
mod gemini;
mod gemini_stream;
mod json;
mod normalise;
mod openai_chat;
mod openai_chat_stream;
mod openai_responses;
mod openai_responses_stream;

use std::borrow::Cow;
use std::collections::VecDeque;

use crate::model::description::{Api, Model};
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::sse::Frame;
use crate::model::{Request, StreamEvent};

/// One call in one dialect: first the request, then its stream.
pub trait Wire: Send {
    /// The path under the base URL.
    fn path(&self, model: &Model) -> Cow<'static, str>;

    /// The dialect's own headers; the one that carries the key is first.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// The request's body.
    fn body(&self, model: &Model, request: &Request) -> Vec<u8>;

    /// Decodes the next frame. Frames after the end are ignored.
    ///
    /// # Errors
    /// What the provider reports inside the stream, or `BadResponse`.
    fn frame(&mut self, frame: &Frame, events: &mut Events) -> Result<(), ModelError>;

    /// Decodes an answer that came as one JSON document instead of a stream.
    ///
    /// # Errors
    /// As [`Wire::frame`].
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

/// The dialect of `model`, at the start of a call.
pub fn for_model(model: &Model) -> Box<dyn Wire> {
    match model.api {
        Api::AnthropicMessages => Box::new(anthropic::Anthropic::default()),
        Api::OpenaiChat => Box::new(openai_chat::OpenaiChat::default()),
        Api::OpenaiResponses => Box::new(openai_responses::OpenaiResponses::default()),
        Api::GoogleGenerativeAi => Box::new(gemini::Gemini::default()),
    }
}

/// The error of a frame that does not parse.
fn bad_frame(error: &serde_json::Error) -> ModelError {
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!("an event of the stream is not what the dialect promises: {error}"),
    )
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

/// A count as providers send it, some of them as `12.0`: a negative one or none
/// is not known.
fn count(value: Option<f64>) -> Option<u64> {
    value
        .filter(|count| *count >= 0.0)
        .map(|count| count.round() as u64)
}

/// Appends `value` as JSON.
fn write_json(body: &mut Vec<u8>, value: &impl serde::Serialize) {
    serde_json::to_writer(body, value).expect("strings and numbers always become JSON");
}
