//! Secrets out of an event, leaf by leaf, so that its shape survives.

use serde_json::Value;

use crate::event::Event;
use crate::secret::Redactor;

/// The parts of the envelope that may hold foreign text.
const ENVELOPE: [&str; 4] = ["job", "sessionId", "agentId", "data"];

/// Fields below which everything, keys too, is foreign text.
const FOREIGN: [&str; 7] = [
    "args",
    "input",
    "params",
    "details",
    "limits",
    "options",
    "structuredOutput",
];

/// Fields whose values are words of our own. A secret that is part of such a
/// word must not change it.
const WORDS: [&str; 11] = [
    "status",
    "by",
    "kind",
    "outcome",
    "reason",
    "source",
    "state",
    "stopReason",
    "type",
    "action",
    "event",
];

/// Whether the line of an event may hold a secret.
///
/// The redactor knows each secret as JSON escapes it once. A secret inside JSON
/// inside a string is escaped twice, which shows as an escaped backslash, and
/// the code of a control character looks like a part of the token behind it;
/// such lines are looked at leaf by leaf.
pub(super) fn is_needed(line: &str, redactor: &Redactor) -> bool {
    line.contains(r"\\")
        || line.contains(r"\u")
        || matches!(redactor.redact(line), std::borrow::Cow::Owned(_))
}

/// The event of `line` without secrets.
///
/// # Errors
///
/// When the event loses its shape, because a secret is one of our own words.
pub(super) fn redact(line: &str, redactor: &Redactor) -> Result<Event, serde_json::Error> {
    let mut event: Value = serde_json::from_str(line)?;
    for name in ENVELOPE {
        if let Some(value) = event.get_mut(name) {
            leaves(value, redactor);
        }
    }
    serde_json::from_value(event)
}

/// A document of ours without secrets: every text in it is foreign.
pub fn redact_document(document: Value, redactor: &Redactor) -> Value {
    redactor.redact_json(document)
}

fn leaves(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if let std::borrow::Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
            }
        }
        Value::Array(items) => {
            for item in items {
                leaves(item, redactor);
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if FOREIGN.contains(&name.as_str()) {
                    *value = redactor.redact_json(value.take());
                } else if !(WORDS.contains(&name.as_str()) && is_word(value)) {
                    leaves(value, redactor);
                }
            }
        }
    }
}

fn is_word(value: &Value) -> bool {
    value.as_str().is_some_and(|text| {
        text.len() <= 24
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte == b'-')
    })
}
