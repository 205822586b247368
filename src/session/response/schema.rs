//! The JSON Schema of final answers, compiled once.

use std::sync::Arc;

use boon::{CompileError, Compiler, ErrorKind, SchemaIndex, Schemas, SchemeUrlLoader};
use boon::{Draft, ValidationError};
use serde_json::Value;

use super::extract::{self, Wanted};
use super::{Violation, strict};

/// What is told of one answer at most.
const VIOLATIONS_MAX: usize = 10;
/// Characters of a rule and of a path that are told.
const TOLD_CHARS_MAX: usize = 300;

/// A JSON Schema for final answers: draft 4, 6, 7, 2019-09 or 2020-12, the last
/// where it does not say. Formats are rules, not notes.
pub struct ResponseSchema {
    document: Arc<Value>,
    schemas: Schemas,
    index: SchemaIndex,
}

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SchemaError {
    /// Where in the schema, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Debug for ResponseSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ResponseSchema")
            .field(&self.document)
            .finish()
    }
}

impl ResponseSchema {
    /// Compiles a schema. Nothing outside of it is ever read.
    ///
    /// # Errors
    /// When it is no JSON Schema of a known draft, refers to anything outside
    /// itself, or can never be decided.
    pub fn compile(document: Value) -> Result<Self, SchemaError> {
        const PLACE: &str = "urn:agent:response";
        let mut compiler = Compiler::new();
        compiler.set_default_draft(Draft::V2020_12);
        compiler.enable_format_assertions();
        compiler.use_loader(Box::new(SchemeUrlLoader::new()));
        let mut schemas = Schemas::new();
        let added = compiler.add_resource(PLACE, document.clone());
        added.map_err(|error| explain(&error, &document))?;
        let compiled = compiler.compile(PLACE, &mut schemas);
        let index = compiled.map_err(|error| explain(&error, &document))?;
        // Any value shows a schema that refers to itself without an end.
        if let Err(error) = schemas.validate(&Value::Null, index)
            && is_endless(&error)
        {
            return Err(SchemaError {
                pointer: String::new(),
                message: "the schema refers to itself without an end".to_owned(),
            });
        }
        Ok(Self {
            document: Arc::new(document),
            schemas,
            index,
        })
    }

    /// The schema as it was given.
    pub fn document(&self) -> &Arc<Value> {
        &self.document
    }

    /// The document in `text`, when it fits.
    ///
    /// # Errors
    /// What is wrong; never empty, at most ten.
    pub fn read(&self, text: &str) -> Result<Value, Vec<Violation>> {
        let only_objects = self.document.get("type").and_then(Value::as_str) == Some("object");
        let wanted = if only_objects {
            Wanted::Object
        } else {
            Wanted::Any
        };
        let at_root = |rule| vec![Violation::at_root(rule)];
        let document = extract::document(text, wanted).map_err(at_root)?;
        let value = serde_json::from_str(document).map_err(|error| at_root(error.to_string()))?;
        let mut violations = strict::losses(document);
        if let Err(error) = self.schemas.validate(&value, self.index) {
            collect(&error, &mut violations);
        }
        if violations.is_empty() {
            return Ok(value);
        }
        violations.truncate(VIOLATIONS_MAX);
        for violation in &mut violations {
            cut(&mut violation.path);
            cut(&mut violation.rule);
        }
        Err(violations)
    }
}

/// The leaves of an error.
fn collect(error: &ValidationError<'_, '_>, violations: &mut Vec<Violation>) {
    if violations.len() >= VIOLATIONS_MAX {
        return;
    }
    if error.causes.is_empty() {
        violations.push(Violation {
            path: error.instance_location.to_string(),
            rule: error.kind.to_string(),
        });
    }
    for cause in &error.causes {
        collect(cause, violations);
    }
}

fn cut(text: &mut String) {
    if let Some((at, _)) = text.char_indices().nth(TOLD_CHARS_MAX) {
        text.truncate(at);
        text.push('…');
    }
}

fn is_endless(error: &ValidationError<'_, '_>) -> bool {
    matches!(error.kind, ErrorKind::RefCycle { .. }) || error.causes.iter().any(is_endless)
}

/// The place and the problem of a schema that does not compile.
fn explain(error: &CompileError, document: &Value) -> SchemaError {
    let at = |pointer: Option<String>, message: String| SchemaError {
        pointer: pointer.unwrap_or_default(),
        message,
    };
    let reference = |name: &str| find(document, "$ref", |text| name.ends_with(text));
    match error {
        CompileError::ValidationError { src, .. } => {
            let mut problems = Vec::new();
            collect(src, &mut problems);
            let first = problems.into_iter().next();
            first.map_or_else(
                || at(None, error.to_string()),
                |problem| at(Some(problem.path), on_one_line(&problem.rule)),
            )
        }
        CompileError::UnsupportedDraft { url }
        | CompileError::InvalidMetaSchemaUrl { url, .. }
        | CompileError::MetaSchemaCycle { url } => unknown_draft(url, document),
        CompileError::LoadUrlError { url, .. } | CompileError::UnsupportedUrlScheme { url } => {
            if draft(document).is_some_and(|name| name.starts_with(url.as_str())) {
                return unknown_draft(url, document);
            }
            let place = find(document, "$ref", |text| text.starts_with(url.as_str()));
            let message = format!("{url} is outside the schema, and nothing outside is read");
            at(place, message)
        }
        CompileError::JsonPointerNotFound(name) | CompileError::InvalidJsonPointer(name) => {
            let message = "the reference leads to nothing in the schema".to_owned();
            at(reference(name), message)
        }
        CompileError::AnchorNotFound {
            reference: name, ..
        } => {
            let message = "the reference leads to nothing in the schema".to_owned();
            at(reference(name), message)
        }
        CompileError::InvalidRegex { regex, src, .. } => {
            let why = on_one_line(&src.to_string());
            let message = format!("the pattern `{regex}` cannot be used: {why}");
            at(find(document, "pattern", |text| text == regex), message)
        }
        other => at(None, other.to_string()),
    }
}

/// The reader of patterns draws a picture of its errors.
fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn draft(document: &Value) -> Option<&str> {
    document.get("$schema").and_then(Value::as_str)
}

fn unknown_draft(url: &str, document: &Value) -> SchemaError {
    let name = draft(document).unwrap_or(url);
    SchemaError {
        pointer: "/$schema".to_owned(),
        message: format!(
            "`{name}` is no draft that is known here; those are draft 4, 6, 7, 2019-09 and 2020-12"
        ),
    }
}

/// The first place at which `keyword` has a text that is meant.
fn find(document: &Value, keyword: &str, is_meant: impl Fn(&str) -> bool) -> Option<String> {
    let mut waiting = vec![(String::new(), document)];
    while let Some((path, value)) = waiting.pop() {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let path = format!("{path}/{}", strict::escaped(name));
                    if name == keyword && field.as_str().is_some_and(&is_meant) {
                        return Some(path);
                    }
                    waiting.push((path, field));
                }
            }
            Value::Array(items) => {
                let items = items.iter().enumerate();
                waiting.extend(items.map(|(index, item)| (format!("{path}/{index}"), item)));
            }
            _ => {}
        }
    }
    None
}
