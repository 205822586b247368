//! Reasoning as OpenRouter hands it on: a list of details, some of them signed or
//! encrypted, that goes back with the reply.

use serde_json::{Map, Value};

use crate::model::StreamEvent;
use crate::model::wire::Events;

/// The fields whose pieces are joined.
const TEXTS: [&str; 2] = ["text", "summary"];

/// The details of a reply so far.
#[derive(Default)]
pub(super) struct ReasoningDetails {
    details: Vec<Map<String, Value>>,
}

impl ReasoningDetails {
    /// Takes what a chunk holds. A text comes in pieces, which have the same type
    /// and index.
    pub(super) fn add(&mut self, pieces: Vec<Value>) {
        for piece in pieces {
            let Value::Object(piece) = piece else {
                continue;
            };
            match self.details.last_mut() {
                Some(last) if continues(last, &piece) => join(last, piece),
                _ => self.details.push(piece),
            }
        }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.details.is_empty()
    }

    /// Tells the details, as the signature of a block of thinking that shows
    /// nothing: their text was told already.
    pub(super) fn tell(self, index: usize, events: &mut Events) {
        let details = self.details.into_iter().map(Value::Object);
        let signature = Value::Array(details.collect()).to_string();
        events.push_back(StreamEvent::ThinkingStart { index });
        events.push_back(StreamEvent::ThinkingEnd {
            index,
            signature: Some(signature),
            redacted: false,
        });
    }
}

fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    let same = |field: &str| last.get(field) == piece.get(field);
    let is_text = TEXTS
        .iter()
        .any(|field| last.contains_key(*field) && last.get("signature").is_none_or(Value::is_null));
    is_text && same("type") && same("index")
}

fn join(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (field, value) in piece {
        match (last.get_mut(&field), value) {
            (_, Value::Null) => {}
            (Some(Value::String(text)), Value::String(more)) if TEXTS.contains(&&*field) => {
                text.push_str(&more);
            }
            (_, value) => {
                last.insert(field, value);
            }
        }
    }
}
