//! What reading a JSON text into a value would lose without a word: a property
//! that is there twice, a number with more digits than are kept.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Violation;
use super::number;

/// What is lost of `document`, which parses.
pub(super) fn losses(document: &str) -> Vec<Violation> {
    let mut losses = Vec::new();
    if let Ok(raw) = serde_json::from_str::<&RawValue>(document) {
        walk(raw, "", &mut losses);
    }
    losses
}

fn walk(raw: &RawValue, path: &str, losses: &mut Vec<Violation>) {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let Ok(Properties(properties)) = serde_json::from_str(text) else {
                return;
            };
            let mut seen = std::collections::HashSet::new();
            for (name, value) in &properties {
                let path = format!("{path}/{}", escaped(name));
                if !seen.insert(name) {
                    losses.push(Violation {
                        path: path.clone(),
                        rule: "the property is there more than once".to_owned(),
                    });
                }
                walk(value, &path, losses);
            }
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
            for (index, item) in items.into_iter().enumerate() {
                walk(item, &format!("{path}/{index}"), losses);
            }
        }
        Some(b'-' | b'0'..=b'9') if !number::is_kept(text) => losses.push(Violation {
            path: path.to_owned(),
            rule: "the number has more digits than a number of JSON reliably keeps".to_owned(),
        }),
        _ => {}
    }
}

/// A property's name as a part of a JSON pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The properties of an object as they are written, repeated ones too.
struct Properties<'t>(Vec<(String, &'t RawValue)>);

impl<'de> Deserialize<'de> for Properties<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Properties<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(property) = map.next_entry()? {
                    all.push(property);
                }
                Ok(Properties(all))
            }
        }
        deserializer.deserialize_map(All)
    }
}
