//! The arguments of a tool call, checked against the tool's JSON Schema, with
//! the few coercions that models need.

use boon::{Compiler, SchemaIndex, Schemas, SchemeUrlLoader};
use serde_json::{Map, Value};

/// A tool's compiled schema.
pub(super) struct Validator {
    schemas: Schemas,
    index: SchemaIndex,
    schema: Value,
}

impl std::fmt::Debug for Validator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Validator").finish_non_exhaustive()
    }
}

impl Validator {
    /// Compiles a tool's parameter schema.
    ///
    /// # Errors
    /// When it is no valid JSON Schema, or refers to anything outside itself.
    pub(super) fn compile(schema: &Value) -> Result<Self, String> {
        const PLACE: &str = "urn:agent:tool-parameters";
        let mut compiler = Compiler::new();
        // The usual one reads files.
        compiler.use_loader(Box::new(SchemeUrlLoader::new()));
        let mut schemas = Schemas::new();
        compiler
            .add_resource(PLACE, schema.clone())
            .map_err(|error| error.to_string())?;
        let index = compiler
            .compile(PLACE, &mut schemas)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            schemas,
            index,
            schema: schema.clone(),
        })
    }

    /// The arguments as the tool wants them.
    ///
    /// # Errors
    /// What does not fit, with its place, for the model.
    pub(super) fn check(&self, mut args: Value) -> Result<Value, String> {
        if self.schemas.validate(&args, self.index).is_ok() {
            return Ok(args);
        }
        coerce(&mut args, &self.schema);
        match self.schemas.validate(&args, self.index) {
            Ok(()) => Ok(args),
            Err(error) => {
                let mut problems = Vec::new();
                collect(&error, &mut problems);
                Err(problems.join("; "))
            }
        }
    }
}

/// The leaves of a validation error, at most five.
fn collect(error: &boon::ValidationError<'_, '_>, problems: &mut Vec<String>) {
    if problems.len() >= 5 {
        return;
    }
    if error.causes.is_empty() {
        let place = error.instance_location.to_string();
        let place = if place.is_empty() { "/" } else { &place };
        problems.push(format!("at `{place}`: {}", error.kind));
    }
    for cause in &error.causes {
        collect(cause, problems);
    }
}

/// Turns what a model meant into what the schema says: `"5"` into 5, `"true"`
/// into true, a JSON text into the object or array it spells, 5 into `"5"`,
/// and drops an explicit null of a property that may be missing.
fn coerce(value: &mut Value, schema: &Value) {
    if let Some(replacement) = coerced(value, wanted(schema)) {
        *value = replacement;
    }
    match value {
        Value::Object(object) => {
            let empty = Map::new();
            let properties = schema
                .get("properties")
                .and_then(Value::as_object)
                .unwrap_or(&empty);
            let required = schema.get("required").and_then(Value::as_array);
            object.retain(|name, value| {
                let is_required =
                    required.is_some_and(|names| names.iter().any(|other| other == name));
                !value.is_null() || is_required || !properties.contains_key(name)
            });
            for (name, value) in object {
                if let Some(schema) = properties.get(name) {
                    coerce(value, schema);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    coerce(item, schema);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The type that a schema asks for; of several the first that is not null.
fn wanted(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::Array(types) => types
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        name => name.as_str(),
    }
}

fn coerced(value: &Value, wanted: Option<&str>) -> Option<Value> {
    match (value, wanted?) {
        (Value::String(text), "integer") => text.trim().parse::<i64>().ok().map(Value::from),
        (Value::String(text), "number") => {
            let number = text.trim().parse::<f64>().ok()?;
            serde_json::Number::from_f64(number).map(Value::Number)
        }
        (Value::String(text), "boolean") => text.trim().parse::<bool>().ok().map(Value::Bool),
        (Value::String(text), "object") => serde_json::from_str(text).ok().filter(Value::is_object),
        (Value::String(text), "array") => serde_json::from_str(text).ok().filter(Value::is_array),
        (Value::Number(number), "integer") => {
            let number = number.as_f64()?;
            (number.fract() == 0.0 && number.abs() < 9e15).then(|| Value::from(number as i64))
        }
        (Value::Number(number), "string") => Some(Value::String(number.to_string())),
        (Value::Bool(flag), "string") => Some(Value::String(flag.to_string())),
        _ => None,
    }
}
