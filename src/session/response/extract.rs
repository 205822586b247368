//! The JSON document in a text, when there is exactly one.

use serde_json::Value;

/// The document of `text`: all of it, or the only object or array in it,
/// whatever prose or fence is around.
///
/// With `object` only objects count, so that a note in brackets is none.
///
/// # Errors
/// Why there is none, for the model. What begins like JSON and is broken is
/// never looked into: a part of it is not what was meant.
pub(super) fn document(text: &str, wanted: Wanted) -> Result<&str, String> {
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let whole = match serde_json::from_str::<Value>(text) {
        Ok(_) => return Ok(text),
        Err(error) => error,
    };
    let mut found = None;
    let mut at = 0;
    while let Some(start) = next_start(text, at) {
        let rest = text.get(start..).unwrap_or_default();
        if !looks_like_json(rest) {
            at = start + 1;
            continue;
        }
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at = start + values.byte_offset();
                if wanted == Wanted::Any || value.is_object() {
                    let document = text.get(start..at);
                    if found.is_some() {
                        return Err("there are several JSON documents in it".to_owned());
                    }
                    found = document;
                }
            }
            _ => return Err(broken(rest, &whole, start)),
        }
    }
    found.ok_or_else(|| match text.starts_with(['{', '[']) {
        true => format!("it is not valid JSON: {whole}"),
        false => "it holds no JSON document".to_owned(),
    })
}

/// Which documents are looked for in prose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    /// Objects.
    Object,
    /// Objects and arrays.
    Any,
}

fn next_start(text: &str, from: usize) -> Option<usize> {
    text.get(from..)?
        .find(['{', '['])
        .map(|offset| from + offset)
}

/// Whether a brace or bracket begins as JSON does, as those of code and prose
/// mostly do not.
fn looks_like_json(rest: &str) -> bool {
    let inner = rest.get(1..).unwrap_or_default().trim_start();
    let Some(next) = inner.chars().next() else {
        // What is cut right here was to be more.
        return true;
    };
    if rest.starts_with('{') {
        return matches!(next, '"' | '}');
    }
    matches!(next, '{' | '[' | ']' | '"' | '-')
        || next.is_ascii_digit()
        || ["true", "false", "null"]
            .iter()
            .any(|word| inner.starts_with(word))
}

/// What is wrong with a document that does not parse.
fn broken(rest: &str, whole: &serde_json::Error, start: usize) -> String {
    if start == 0 {
        return format!("it is not valid JSON: {whole}");
    }
    match serde_json::from_str::<Value>(rest) {
        Ok(_) => "it holds no JSON document".to_owned(),
        Err(error) => format!("the JSON in it is not valid: {error}"),
    }
}
