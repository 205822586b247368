//! JSON as servers write it, which is not always what the standard allows.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::model::StreamEvent;
use crate::model::wire::Events;

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
/// than the character, and it is told. What is parsed may borrow of the text, or
/// of `mended`.
pub(super) fn parse<'t, T: Deserialize<'t>>(
    text: &'t str,
    mended: &'t mut String,
    events: &mut Events,
) -> Result<T, serde_json::Error> {
    serde_json::from_str(text).or_else(|error| match mend(text) {
        Some(text) => {
            events.push_back(StreamEvent::Replaced);
            *mended = text;
            serde_json::from_str(mended)
        }
        None => Err(error),
    })
}

/// Text, borrowed where it has no escapes: most of a stream is names that are
/// looked at once.
#[derive(Default)]
pub(super) struct Text<'t>(pub(super) Cow<'t, str>);

impl Text<'_> {
    pub(super) fn into_string(self) -> String {
        self.0.into_owned()
    }
}

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 't, 't> Deserialize<'de> for Text<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_str(LooseVisitor)? {
            Loose::Text(text) => Ok(text),
            Loose::Other(_) => Err(D::Error::custom("expected a string")),
        }
    }
}

/// Text where it should be, or whatever stands in its place.
pub(super) enum Loose<'t> {
    Text(Text<'t>),
    Other(Value),
}

impl Loose<'_> {
    /// The text, if it is one.
    pub(super) fn into_string(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_string()),
            Self::Other(_) => None,
        }
    }
}

impl<'de: 't, 't> Deserialize<'de> for Loose<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = Loose<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Loose<'de>, E> {
        Ok(Loose::Text(Text(Cow::Borrowed(text))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Loose<'de>, E> {
        Ok(Loose::Text(Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Loose<'de>, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Loose<'de>, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Loose<'de>, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Loose<'de>, E> {
        Ok(Loose::Other(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Loose<'de>, E> {
        Ok(Loose::Other(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Loose<'de>, A::Error> {
        Value::deserialize(SeqAccessDeserializer::new(list)).map(Loose::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Loose<'de>, A::Error> {
        Value::deserialize(MapAccessDeserializer::new(map)).map(Loose::Other)
    }
}

/// `text` with every unpaired surrogate replaced, when there is one.
fn mend(text: &str) -> Option<String> {
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
