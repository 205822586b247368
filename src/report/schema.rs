//! The JSON Schemas of the event log and of the result document, made from the
//! types that write them.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::event::{Event, ResultDocument, published};

/// The schema of one line of the event log (JSON Schema 2020-12).
pub fn event_schema() -> Value {
    let mut schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Event>()
        .to_value();
    let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) else {
        return schema;
    };
    definitions.values_mut().for_each(allow_references);
    definitions.insert(
        "LargeText".to_owned(),
        json!({
            "description": "Text, or where it has more than 65,536 bytes a reference to the file with all of it, relative to the run directory.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {
                        "truncated": {"const": true},
                        "bytes": {"type": "integer", "minimum": super::VALUE_BYTES_MAX + 1},
                        "path": {"type": "string"}
                    },
                    "required": ["truncated", "bytes", "path"]
                }
            ]
        }),
    );
    published(schema)
}

/// The schema of `result.json` and of `--output-format json` (JSON Schema 2020-12).
pub fn result_schema() -> Value {
    let generator = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator();
    published(
        generator
            .into_root_schema_for::<ResultDocument>()
            .to_value(),
    )
}

/// Every free text of a payload may be a reference.
fn allow_references(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let free = !fields.contains_key("const") && !fields.contains_key("enum");
            if free && fields.get("type").is_some_and(is_string) {
                fields.remove("type");
                fields.insert("$ref".to_owned(), json!("#/$defs/LargeText"));
            } else {
                fields.values_mut().for_each(allow_references);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(allow_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a `type` keyword is that of a text that is left out when absent.
fn is_string(kind: &Value) -> bool {
    kind == "string" || *kind == json!(["string", "null"])
}
