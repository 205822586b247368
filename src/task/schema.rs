//! The JSON Schemas of the files that people write, made from their types.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::event::published;
use crate::model::ProvidersFile;
use crate::task::file::TaskFile;

static TASK: LazyLock<Value> = LazyLock::new(|| {
    let generator = SchemaSettings::draft2020_12().into_generator();
    generator.into_root_schema_for::<TaskFile>().to_value()
});

static PROVIDERS: LazyLock<Value> = LazyLock::new(|| {
    let generator = SchemaSettings::draft2020_12().into_generator();
    generator.into_root_schema_for::<ProvidersFile>().to_value()
});

/// The JSON Schema (draft 2020-12) of task files, as `agent schema task` prints it.
pub fn schema() -> Value {
    published(TASK.clone())
}

/// The JSON Schema (draft 2020-12) of files of providers, as `agent schema
/// providers` prints it.
pub fn providers_schema() -> Value {
    published(PROVIDERS.clone())
}

/// What a kind of file may hold, and what people call it.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    /// The whole schema; generated once, on first use.
    pub(super) root: &'static Value,
    /// The file, for people.
    pub(super) noun: &'static str,
    /// What prints the schema.
    pub(super) command: &'static str,
}

/// The shape of task files.
pub(super) fn task() -> Shape {
    Shape {
        root: &TASK,
        noun: "a task",
        command: "agent schema task",
    }
}

/// The shape of files of providers.
pub(super) fn providers() -> Shape {
    Shape {
        root: &PROVIDERS,
        noun: "a file of providers",
        command: "agent schema providers",
    }
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
