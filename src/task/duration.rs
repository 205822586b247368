//! Durations as people write them: `45m`, `90s`, `1h30m`, `500ms`.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The format name in the schema, by which the validator knows a duration.
pub(super) const FORMAT: &str = "human-duration";

/// The longest duration that may be written: a year.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The units, largest first, with their milliseconds.
const UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// A positive, finite duration with its written form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(pub Duration);

/// Why a text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// A number without a unit.
    #[error("`{0}` has no unit: write `{0}s` for seconds or `{0}m` for minutes")]
    NoUnit(String),
    /// Not numbers with units at all.
    #[error("`{0}` is no duration: write for example `90s`, `45m`, `1h30m` or `500ms`")]
    Malformed(String),
    /// Units repeated or not from large to small.
    #[error("the units of `{0}` must go from large to small, each once, as in `1h30m`")]
    Order(String),
    /// Nothing, or more than a year.
    #[error("`{0}` is out of range: a duration is more than nothing and at most 365d")]
    Range(String),
}

/// Reads a duration such as `45m`, `90s`, `1h30m` or `500ms`.
///
/// # Errors
///
/// When `text` is not a list of whole numbers with units, is zero, or is
/// longer than a year.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let malformed = || DurationError::Malformed(text.to_owned());
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(malformed());
    }
    let mut total_ms = 0u64;
    let mut next_unit = 0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        if number.is_empty() {
            return Err(malformed());
        }
        if tail.is_empty() {
            return Err(if next_unit == 0 {
                DurationError::NoUnit(text.trim().to_owned())
            } else {
                malformed()
            });
        }
        let letters = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let position = UNITS
            .iter()
            .position(|(name, _)| *name == unit)
            .ok_or_else(malformed)?;
        if position < next_unit {
            return Err(DurationError::Order(text.to_owned()));
        }
        next_unit = position + 1;
        let each = UNITS.get(position).map_or(0, |(_, ms)| *ms);
        total_ms = number
            .parse::<u64>()
            .ok()
            .and_then(|n| n.checked_mul(each))
            .and_then(|ms| ms.checked_add(total_ms))
            .ok_or_else(|| DurationError::Range(text.to_owned()))?;
        rest = tail;
    }
    let total = Duration::from_millis(total_ms);
    if total.is_zero() || total > LONGEST {
        return Err(DurationError::Range(text.to_owned()));
    }
    Ok(total)
}

/// Writes `duration` so that [`parse`] reads it back, to the millisecond.
pub fn format(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut text = String::new();
    for (unit, each) in UNITS.iter().skip(1) {
        if rest >= *each {
            text.push_str(&format!("{}{unit}", rest / each));
            rest %= each;
        }
    }
    if text.is_empty() {
        "0ms".to_owned()
    } else {
        text
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format(self.0))
    }
}

impl Serialize for HumanDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HumanDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        parse(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for HumanDuration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration such as 45m, 90s, 1h30m or 500ms; more than nothing, at most 365d.",
            "type": "string",
            "format": FORMAT,
            "pattern": "^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$",
            "minLength": 2,
        })
    }
}
