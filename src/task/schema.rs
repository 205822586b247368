//! The JSON Schema of task files, made from their types.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::task::file::TaskFile;

static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    let generator = SchemaSettings::draft2020_12().into_generator();
    generator.into_root_schema_for::<TaskFile>().to_value()
});

/// The JSON Schema (draft 2020-12) of task files, as `agent schema task` prints it.
pub fn schema() -> Value {
    SCHEMA.clone()
}

/// The schema without a copy; generated once, on first use.
pub(super) fn shared() -> &'static Value {
    &SCHEMA
}

/// `schema`, or what its `$ref` stands for.
pub(super) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    // Our definitions do not refer to themselves; the bound is for certainty.
    for _ in 0..8 {
        let Some(pointer) = schema.get("$ref").and_then(Value::as_str) else {
            break;
        };
        let target = pointer
            .strip_prefix('#')
            .and_then(|pointer| root.pointer(pointer));
        let Some(target) = target else { break };
        schema = target;
    }
    schema
}
