//! OpenAI's responses: what the events of the stream hold.

use serde::Deserialize;
use serde_json::Value;

use crate::model::wire::json::{Loose, Text};

/// Any event: flat, because a tagged enum would buffer every delta.
#[derive(Deserialize)]
pub(super) struct Event<'t> {
    #[serde(rename = "type", default, borrow)]
    pub(super) kind: Text<'t>,
    pub(super) output_index: Option<u64>,
    pub(super) item_id: Option<String>,
    pub(super) summary_index: Option<u64>,
    /// Text in all the events that we know.
    pub(super) delta: Option<Loose<'t>>,
    pub(super) arguments: Option<Loose<'t>>,
    pub(super) item: Option<Value>,
    pub(super) response: Option<Response>,
    pub(super) error: Option<Value>,
    pub(super) code: Option<Value>,
    pub(super) message: Option<Value>,
}

#[derive(Deserialize)]
pub(super) struct Response {
    pub(super) model: Option<String>,
    pub(super) status: Option<String>,
    pub(super) output: Option<Vec<Value>>,
    pub(super) usage: Option<Counted>,
    pub(super) error: Option<Value>,
    pub(super) incomplete_details: Option<Incomplete>,
}

#[derive(Deserialize)]
pub(super) struct Incomplete {
    pub(super) reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Counted {
    pub(super) input_tokens: Option<f64>,
    pub(super) output_tokens: Option<f64>,
    pub(super) input_tokens_details: Option<InputDetails>,
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
pub(super) struct InputDetails {
    pub(super) cached_tokens: Option<f64>,
    pub(super) cache_write_tokens: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct OutputDetails {
    pub(super) reasoning_tokens: Option<f64>,
}
