//! JSON Schemas as they are published: in the words of the standard alone, so
//! that a validator in its strict mode takes them.

use serde_json::{Map, Value, json};

/// Keywords whose values are data and not schemas.
const DATA: &[&str] = &["default", "const", "enum", "examples"];

/// Keywords of our own, for the messages of our reader.
const OWN: &[&str] = &["patternErrorMessage"];

/// The bounds of a number of a format that only generators know.
fn bounds(format: &str) -> (Option<i64>, Option<i64>) {
    match format {
        "uint8" => (Some(0), Some(u8::MAX.into())),
        "uint16" => (Some(0), Some(u16::MAX.into())),
        "uint32" => (Some(0), Some(u32::MAX.into())),
        "uint" | "uint64" => (Some(0), None),
        "int32" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        _ => (None, None),
    }
}

/// `schema` without formats and keywords that no standard knows; bounds stand
/// for formats of numbers.
pub fn published(mut schema: Value) -> Value {
    clean(&mut schema);
    schema
}

fn clean(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            clean_keywords(fields);
            let schemas = fields.iter_mut();
            let schemas = schemas.filter(|(name, _)| !DATA.contains(&name.as_str()));
            schemas.for_each(|(_, value)| clean(value));
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Keywords have texts as values here; a property of such a name has a schema.
fn clean_keywords(fields: &mut Map<String, Value>) {
    for name in OWN {
        if fields.get(*name).is_some_and(Value::is_string) {
            fields.remove(*name);
        }
    }
    let Some(format) = fields.get("format").and_then(Value::as_str) else {
        return;
    };
    let (least, most) = bounds(format);
    for (name, bound) in [("minimum", least), ("maximum", most)] {
        if let Some(bound) = bound {
            fields.entry(name).or_insert(json!(bound));
        }
    }
    fields.remove("format");
}
