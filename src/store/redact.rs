//! Redaction of one line of a session file, which must stay what it was: the
//! same JSON with the same structure.
//!
//! Replacing text in the raw line could hit a field's name or a quotation
//! mark. So the raw line only tells whether there is anything to do; the
//! replacing happens in the strings themselves, names of the format left out.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::secret::Redactor;

/// Fields of an entry that hold names and references of the format.
const ENTRY_NAMES: &[&str] = &[
    "type",
    "id",
    "parentId",
    "timestamp",
    "version",
    "firstKeptEntryId",
    "fromId",
    "targetId",
];
/// Fields of a message that hold names of the format.
const MESSAGE_NAMES: &[&str] = &["role", "stopReason", "timestamp", "isError", "usage"];
/// The field of a content block that holds a name of the format.
const BLOCK_NAME: &str = "type";

/// `line` without any known secret.
///
/// # Errors
/// When `line` is no JSON.
pub(crate) fn redact_line(line: String, redactor: &Redactor) -> Result<String, serde_json::Error> {
    // A backslash pair may be JSON inside a string, where a secret is escaped
    // twice and does not show in the raw line; and the code of a control
    // character looks like a part of the token behind it.
    let found = line.contains(r"\\")
        || line.contains(r"\u")
        || matches!(redactor.redact(&line), Cow::Owned(_));
    if !found {
        return Ok(line);
    }
    let mut value: Value = serde_json::from_str(&line)?;
    let mut changed = false;
    redact_entry(&mut value, redactor, &mut changed);
    if changed {
        serde_json::to_string(&value)
    } else {
        Ok(line)
    }
}

fn redact_entry(value: &mut Value, redactor: &Redactor, changed: &mut bool) {
    let Value::Object(fields) = value else {
        return;
    };
    for (name, field) in fields.iter_mut() {
        match name.as_str() {
            "message" => redact_message(field, redactor, changed),
            "content" => redact_blocks(field, redactor, changed),
            name if ENTRY_NAMES.contains(&name) => {}
            _ => redact_value(field, redactor, changed),
        }
    }
}

fn redact_message(value: &mut Value, redactor: &Redactor, changed: &mut bool) {
    let Value::Object(fields) = value else {
        return redact_value(value, redactor, changed);
    };
    for (name, field) in fields.iter_mut() {
        match name.as_str() {
            "content" => redact_blocks(field, redactor, changed),
            name if MESSAGE_NAMES.contains(&name) => {}
            _ => redact_value(field, redactor, changed),
        }
    }
}

fn redact_blocks(value: &mut Value, redactor: &Redactor, changed: &mut bool) {
    let Value::Array(blocks) = value else {
        return redact_value(value, redactor, changed);
    };
    for block in blocks {
        let Value::Object(fields) = block else {
            redact_value(block, redactor, changed);
            continue;
        };
        for (name, field) in fields.iter_mut() {
            if name != BLOCK_NAME {
                redact_value(field, redactor, changed);
            }
        }
    }
}

/// Redacts whatever people, models and tools wrote: keys too, and numbers.
fn redact_value(value: &mut Value, redactor: &Redactor, changed: &mut bool) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => {
            if let Cow::Owned(clean) = redactor.redact(&number.to_string()) {
                *value = Value::String(clean);
                *changed = true;
            }
        }
        Value::String(text) => {
            if let Cow::Owned(clean) = redactor.redact(text) {
                *text = clean;
                *changed = true;
            }
        }
        Value::Array(items) => {
            for item in items {
                redact_value(item, redactor, changed);
            }
        }
        Value::Object(fields) => {
            for (_, field) in fields.iter_mut() {
                redact_value(field, redactor, changed);
            }
            if fields
                .keys()
                .any(|key| matches!(redactor.redact(key), Cow::Owned(_)))
            {
                *fields = redact_keys(std::mem::take(fields), redactor);
                *changed = true;
            }
        }
    }
}

fn redact_keys(fields: Map<String, Value>, redactor: &Redactor) -> Map<String, Value> {
    fields
        .into_iter()
        .map(|(key, field)| (redactor.redact(&key).into_owned(), field))
        .collect()
}
