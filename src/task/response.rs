//! The `response` section: the schema that final answers must fit, wherever it
//! is written, and the file that gets the answer.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use crate::session::{ResponseSchema, ResponseSpec, SchemaError};
use crate::task::diagnostics::{At, Report};
use crate::task::file::TaskFile;
use crate::task::job::tidy;
use crate::task::plan::ResponseJob;
use crate::task::read;
use crate::task::resolve::Resolution;
use crate::task::tree::{Kind, Node};
use crate::task::yaml;

/// The largest file with a schema, in bytes.
const SCHEMA_FILE_MAX: u64 = 1 << 20;

/// A schema as it was written.
struct Written {
    document: Value,
    /// The same with places, where they are known.
    node: Option<Node>,
    /// All of it.
    at: At,
}

impl Resolution<'_> {
    /// What the final answer must be; what is wrong with it is reported.
    pub(super) fn response(&mut self, task: &TaskFile, root: &Node) -> Option<ResponseJob> {
        let section = task.response.as_ref()?;
        let node = root.get("response")?;
        let (inline, file) = (node.get("schema"), node.get("schema_file"));
        let schema_file = section.schema_file.as_ref().zip(file).map(|(path, node)| {
            let path = tidy(&self.base(node.at).join(self.expand_home(path)));
            (path, node.at)
        });
        let written = match (&section.schema, inline, &schema_file) {
            (Some(_), Some(_), Some((_, at))) => {
                let message = "`response.schema` and `response.schema_file` cannot both be there";
                self.report.error(*at, "conflict", message);
                return None;
            }
            (Some(schema), Some(inline), None) => Written {
                document: Value::Object(schema.clone()),
                node: Some(inline.clone()),
                at: inline.at,
            },
            (_, _, Some((path, at))) => self.read_schema(path.clone(), *at)?,
            _ => {
                // One of a wrong type is reported already.
                if self.report.is_clean() {
                    let hint = "write `schema: {type: object, …}`, or `schema_file: FILE`";
                    let message = "`response` has no schema";
                    self.report
                        .error_with(node.at, "missing_key", message, hint.to_owned());
                }
                return None;
            }
        };
        let file = self.response_file(task, node, schema_file.as_ref().map(|(path, _)| path));
        match ResponseSchema::compile(written.document) {
            Ok(schema) => Some(ResponseJob {
                spec: ResponseSpec {
                    schema: Arc::new(schema),
                    repairs: section.repairs,
                },
                file,
                schema_file: schema_file.map(|(path, _)| path),
            }),
            Err(error) => {
                let at = written
                    .node
                    .map_or(written.at, |node| place(&node, &error.pointer));
                self.report.error(at, "bad_schema", told(&error));
                None
            }
        }
    }

    /// The file that gets the answer.
    fn response_file(
        &mut self,
        task: &TaskFile,
        section: &Node,
        schema_file: Option<&PathBuf>,
    ) -> Option<PathBuf> {
        let path = task.response.as_ref()?.file.as_ref()?;
        let node = section.get("file")?;
        let path = tidy(&self.base(node.at).join(self.expand_home(path)));
        let taken = self.file.as_ref().map(|file| tidy(file)).as_ref() == Some(&path)
            || schema_file == Some(&path);
        if path.is_dir() || taken {
            let what = match taken {
                true => "would be replaced by the answer",
                false => "is a directory",
            };
            let message = format!("`response.file`: {} {what}", path.display());
            self.report.error(node.at, "conflict", message);
            return None;
        }
        Some(path)
    }

    /// The schema of a file: JSON, or YAML.
    fn read_schema(&mut self, path: PathBuf, at: At) -> Option<Written> {
        let text = match read::text_within(&self.copies, &path, SCHEMA_FILE_MAX) {
            Ok(text) => text,
            Err(error) => {
                self.report.unread(at, &error);
                return None;
            }
        };
        let source = self
            .report
            .source(path.display().to_string(), text.as_str());
        let whole = self.report.whole(source);
        match serde_json::from_str::<Value>(&text) {
            Ok(document @ Value::Object(_)) => Some(Written {
                document,
                node: with_places(&text, source),
                at: whole,
            }),
            Err(error) if text.trim_start().starts_with('{') => {
                let at = locate(&text, &error, source);
                let message = format!("this is no JSON: {error}");
                self.report.error(at, "bad_schema", message);
                None
            }
            _ => {
                let node = yaml::parse(&mut self.report, source)?;
                if !matches!(node.kind, Kind::Map(_)) {
                    let message = "a schema must be a map of keywords to values";
                    self.report.error(whole, "wrong_type", message);
                    return None;
                }
                Some(Written {
                    document: node.to_json(),
                    node: Some(node),
                    at: whole,
                })
            }
        }
    }
}

fn told(error: &SchemaError) -> String {
    match error.pointer.as_str() {
        "" => format!("the response schema cannot be used: {error}"),
        pointer => format!("the response schema cannot be used: at `{pointer}`: {error}"),
    }
}

/// The nodes of a JSON text; none when YAML reads it in another way.
fn with_places(text: &str, source: usize) -> Option<Node> {
    let mut scratch = Report::default();
    let own = scratch.source("", text);
    let mut node = yaml::parse(&mut scratch, own)?;
    moved(&mut node, source);
    Some(node)
}

/// Says of all nodes that they are in this source.
fn moved(node: &mut Node, source: usize) {
    node.at.source = source;
    match &mut node.kind {
        Kind::List(items) => items.iter_mut().for_each(|item| moved(item, source)),
        Kind::Map(entries) => {
            for entry in entries {
                entry.key_at.source = source;
                moved(&mut entry.value, source);
            }
        }
        _ => {}
    }
}

/// Where a JSON pointer leads, or how far it leads.
fn place(node: &Node, pointer: &str) -> At {
    let mut node = node;
    for token in pointer.split('/').skip(1) {
        let name = token.replace("~1", "/").replace("~0", "~");
        let inner = node
            .get(&name)
            .or_else(|| node.items().get(name.parse::<usize>().ok()?));
        match inner {
            Some(inner) => node = inner,
            None => break,
        }
    }
    node.at
}

/// The place of an error of the JSON reader, which counts bytes from 1.
fn locate(text: &str, error: &serde_json::Error, source: usize) -> At {
    let lines = error.line().saturating_sub(1);
    let first: usize = text.split_inclusive('\n').take(lines).map(str::len).sum();
    let start = (first + error.column().saturating_sub(1)).min(text.len());
    At {
        source,
        start,
        end: start,
    }
}
