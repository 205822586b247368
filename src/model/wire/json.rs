//! JSON as servers write it, which is not always what the standard allows.

use serde::de::DeserializeOwned;

/// The characters of an escape such as `\ud83d`.
const ESCAPE_CHARS: usize = 6;

/// Half of a character beyond the basic plane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Surrogate {
    High,
    Low,
}

/// Parses an event. Half of a surrogate pair, which servers write when they
/// cut a text between UTF-16 units, becomes U+FFFD: the reply is worth more
/// than the character.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mended(text) {
        Some(text) => serde_json::from_str(&text),
        None => Err(error),
    })
}

/// `text` with every unpaired surrogate replaced, when there is one.
fn mended(text: &str) -> Option<String> {
    let mut mended = String::with_capacity(text.len());
    let mut changed = false;
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        mended.push_str(before);
        let partner = escape.get(ESCAPE_CHARS..).and_then(surrogate);
        let (kept, length) = match (surrogate(escape), partner) {
            (Some(Surrogate::High), Some(Surrogate::Low)) => (true, 2 * ESCAPE_CHARS),
            (Some(_), _) => (false, ESCAPE_CHARS),
            // The backslash and what it escapes.
            (None, _) => (true, 2),
        };
        let (escape, after) = escape.split_at_checked(length)?;
        mended.push_str(if kept { escape } else { "\\ufffd" });
        changed |= !kept;
        rest = after;
    }
    mended.push_str(rest);
    changed.then_some(mended)
}

fn surrogate(escape: &str) -> Option<Surrogate> {
    let digits = escape.strip_prefix("\\u")?.get(..4)?;
    match u16::from_str_radix(digits, 16).ok()? {
        0xd800..=0xdbff => Some(Surrogate::High),
        0xdc00..=0xdfff => Some(Surrogate::Low),
        _ => None,
    }
}
