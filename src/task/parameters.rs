//! What the parameters of a task are worth: declared, given, converted, checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::{Number, Value};

use crate::access::WorkingCopies;
use crate::task::diagnostics::{At, Report, did_you_mean};
use crate::task::file::{Parameter, ParameterKind, Trust};
use crate::task::overrides::Overrides;
use crate::task::read::{self, ReadError};
use crate::task::tree::{Kind, Node};
use crate::task::{schema, validate, yaml};

/// The most that a file of parameters may hold, in bytes.
const PARAMS_FILE_MAX: u64 = 1 << 20;

/// The parameters by name.
pub(super) type Params = BTreeMap<String, Param>;

/// A declared parameter with its value.
#[derive(Debug)]
pub(super) struct Param {
    /// The value; none when it is wrong or missing, which is reported.
    pub(super) value: Option<Value>,
    /// Whether it comes from elsewhere than the one who starts the job.
    pub(super) untrusted: bool,
    /// Whether its declaration is right.
    pub(super) declared: bool,
    /// Where it is declared.
    pub(super) at: At,
}

/// Where files are that parameters may name.
#[derive(Debug)]
pub(super) struct Places {
    /// The directory of the task file.
    pub(super) task_dir: PathBuf,
    /// The workspace; none when only parameters say where it is.
    pub(super) workspace: Option<PathBuf>,
    /// Directories whose links may be anybody's.
    pub(super) copies: WorkingCopies,
}

/// A value on its way to a parameter.
#[derive(Debug)]
enum Given {
    /// As text: a flag or an environment variable.
    Text(String),
    /// As a value: a default or a file of parameters.
    Node(Node),
}

/// A value, where it came from, and what a relative path in it starts from.
struct Candidate<'a> {
    given: Given,
    at: At,
    by: String,
    base: &'a Path,
}

/// Decodes `declared`, the node of `parameters`, and finds a value for each.
pub(super) fn resolve(
    declared: Option<&Node>,
    overrides: &Overrides,
    places: &Places,
    report: &mut Report,
) -> Params {
    let specs = declared
        .map(|node| declarations(node, report))
        .unwrap_or_default();
    let mut given = given(overrides, &places.copies, report);
    let mut params = Params::new();
    for (name, spec, node) in specs {
        let at = node.get("key").map_or(node.at, |key| key.at);
        if params.contains_key(&name) {
            let message = format!("the parameter `{name}` is declared twice");
            report.error(at, "duplicate_parameter", message);
            continue;
        }
        let Some(spec) = spec else {
            given.remove(&name);
            params.insert(
                name,
                Param {
                    value: None,
                    untrusted: false,
                    declared: false,
                    at,
                },
            );
            continue;
        };
        let candidate = given
            .remove(&spec.key)
            .or_else(|| from_env(&spec, overrides, report))
            .or_else(|| from_default(&spec, &node, &places.task_dir));
        let value = match candidate {
            Some(candidate) => candidate.convert(&spec, places, report),
            None if spec.required => {
                report.error_with(at, "missing_parameter", missing(&spec), give(&spec));
                None
            }
            None => Some(Value::Null),
        };
        let untrusted = spec.trust == Trust::Untrusted;
        params.insert(
            name,
            Param {
                value,
                untrusted,
                declared: true,
                at,
            },
        );
    }
    for (name, candidate) in given {
        let message = format!("the task has no parameter `{name}`");
        let hint = did_you_mean(&name, params.keys().map(String::as_str));
        report.error_with(candidate.at, "unknown_parameter", message, hint);
    }
    params
}

/// The declarations; what is wrong with them is reported. One without a spec
/// is wrong, and its name is kept so that its uses do not look undefined.
fn declarations(node: &Node, report: &mut Report) -> Vec<(String, Option<Parameter>, Node)> {
    let Some(list) = schema::task().root.pointer("/properties/parameters") else {
        return Vec::new();
    };
    let Some(schema) = list.get("items") else {
        return Vec::new();
    };
    if !matches!(node.kind, Kind::List(_)) {
        validate::check(&mut node.clone(), list, "parameters", report);
        return Vec::new();
    }
    let mut declared = Vec::new();
    for (index, item) in node.items().iter().enumerate() {
        let before = report.count();
        validate::check(
            &mut item.clone(),
            schema,
            &format!("parameters[{index}]"),
            report,
        );
        let spec = serde_json::from_value::<Parameter>(item.to_json()).ok();
        let spec = spec.filter(|_| report.count() == before);
        if let Some(spec) = &spec {
            check_declaration(spec, item, report);
        }
        if let Some(name) = item.get("key").and_then(Node::text) {
            declared.push((name.to_owned(), spec, item.clone()));
        }
    }
    declared
}

/// What the schema cannot say about a declaration.
fn check_declaration(spec: &Parameter, node: &Node, report: &mut Report) {
    let place = |key: &str| node.get(key).map_or(node.at, |node| node.at);
    if let Some(pattern) = &spec.pattern
        && let Err(error) = Regex::new(pattern)
    {
        let why = error.to_string();
        let why = why
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("error: ")
            .to_owned();
        let message = format!(
            "the pattern of `{}` is no regular expression: {why}",
            spec.key
        );
        report.error(place("pattern"), "bad_pattern", message);
    }
    let choice = spec.kind == ParameterKind::Choice;
    if choice && spec.options.is_empty() {
        let message = format!("the choice `{}` has no `options`", spec.key);
        report.error(place("type"), "missing_key", message);
    }
    if !choice && !spec.options.is_empty() {
        let message = format!(
            "only a parameter of type `choice` has `options`, `{}` has not",
            spec.key
        );
        report.error(place("options"), "unused_key", message);
    }
    let textual = matches!(spec.kind, ParameterKind::String | ParameterKind::File);
    if spec.trust == Trust::Untrusted && !textual {
        let message = format!(
            "only texts and files can be untrusted, `{}` is neither",
            spec.key
        );
        report.error(place("trust"), "unused_key", message);
    }
}

/// What flags and the file of parameters give, by name; a flag wins.
fn given<'a>(
    overrides: &'a Overrides,
    copies: &WorkingCopies,
    report: &mut Report,
) -> BTreeMap<String, Candidate<'a>> {
    let mut given = BTreeMap::new();
    let base = overrides.cwd.as_path();
    if let Some(file) = &overrides.params_file {
        for (name, node) in params_file(&base.join(file), copies, report) {
            let at = node.at;
            let by = format!("--params-file {}", file.display());
            given.insert(
                name,
                Candidate {
                    given: Given::Node(node),
                    at,
                    by,
                    base,
                },
            );
        }
    }
    let mut seen = BTreeSet::new();
    for (name, text) in &overrides.params {
        let source = report.source("--param", format!("{name}={text}"));
        let at = report.whole(source);
        if !seen.insert(name) {
            report.error(
                at,
                "duplicate_parameter",
                format!("`--param {name}` is given twice"),
            );
        }
        let by = format!("--param {name}");
        given.insert(
            name.clone(),
            Candidate {
                given: Given::Text(text.clone()),
                at,
                by,
                base,
            },
        );
    }
    given
}

/// The entries of a file of parameters, YAML or JSON.
fn params_file(path: &Path, copies: &WorkingCopies, report: &mut Report) -> Vec<(String, Node)> {
    let text = match read::text_within(copies, path, PARAMS_FILE_MAX) {
        Ok(text) => text,
        Err(error) => {
            let source = report.source("--params-file", path.display().to_string());
            let at = report.whole(source);
            report.unread(at, &error);
            return Vec::new();
        }
    };
    let source = report.source(path.display().to_string(), text);
    let Some(root) = yaml::parse(report, source) else {
        return Vec::new();
    };
    match root.kind {
        Kind::Map(entries) => entries.into_iter().map(|e| (e.key, e.value)).collect(),
        Kind::Null => Vec::new(),
        _ => {
            let message = "a file of parameters is a map of names to values";
            report.error(root.at, "wrong_type", message);
            Vec::new()
        }
    }
}

fn from_env<'a>(
    spec: &Parameter,
    overrides: &'a Overrides,
    report: &mut Report,
) -> Option<Candidate<'a>> {
    let variable = spec.env.as_ref()?;
    let text = overrides.env.get(variable)?.clone();
    let by = format!("the environment variable {variable}");
    let source = report.source(by.clone(), text.clone());
    let at = report.whole(source);
    Some(Candidate {
        given: Given::Text(text),
        at,
        by,
        base: &overrides.cwd,
    })
}

fn from_default<'a>(spec: &Parameter, node: &Node, task_dir: &'a Path) -> Option<Candidate<'a>> {
    let default = node.get("default")?;
    if matches!(default.kind, Kind::Null) {
        return None;
    }
    let by = format!("the default of `{}`", spec.key);
    Some(Candidate {
        given: Given::Node(default.clone()),
        at: default.at,
        by,
        base: task_dir,
    })
}

fn missing(spec: &Parameter) -> String {
    format!("the parameter `{}` is needed", spec.key)
}

fn give(spec: &Parameter) -> String {
    let env = spec
        .env
        .as_ref()
        .map(|env| format!(", set {env}"))
        .unwrap_or_default();
    format!(
        "give `--param {}=VALUE`{env}, or write `required: false`",
        spec.key
    )
}

impl Candidate<'_> {
    /// The value as the parameter's type, checked; none when it is wrong, which is reported.
    fn convert(self, spec: &Parameter, places: &Places, report: &mut Report) -> Option<Value> {
        let wrong = |expected: &str| format!("`{}` must be {expected} ({})", spec.key, self.by);
        let value = match typed(&self.given, spec.kind) {
            Ok(value) => value,
            Err(expected) => {
                report.error(self.at, "bad_parameter", wrong(expected));
                return None;
            }
        };
        if let Some(text) = value.as_str()
            && spec.kind == ParameterKind::Choice
            && !spec.options.is_empty()
            && !spec.options.iter().any(|option| option == text)
        {
            let options = spec.options.join("`, `");
            let hint = did_you_mean(text, spec.options.iter().map(String::as_str));
            report.error_with(
                self.at,
                "bad_parameter",
                wrong(&format!("one of `{options}`")),
                hint,
            );
            return None;
        }
        let value = match (spec.kind, value) {
            (ParameterKind::File, Value::String(path)) => {
                self.content(&path, spec, places, report)?
            }
            (_, value) => value,
        };
        if let Some(text) = value.as_str()
            && text.len() as u64 > spec.max_bytes
        {
            let expected = format!(
                "at most {} bytes long, it has {}",
                spec.max_bytes,
                text.len()
            );
            report.error(self.at, "bad_parameter", wrong(&expected));
            return None;
        }
        self.check_pattern(spec, &value, report).then_some(value)
    }

    fn content(
        &self,
        path: &str,
        spec: &Parameter,
        places: &Places,
        report: &mut Report,
    ) -> Option<Value> {
        let directories: Vec<PathBuf> = [&places.task_dir]
            .into_iter()
            .chain(&places.workspace)
            .cloned()
            .collect();
        match read::text_in(&directories, &self.base.join(path), spec.max_bytes) {
            Ok(text) => Some(Value::String(text)),
            Err(error) => {
                report.unread(self.at, &error);
                None
            }
        }
    }

    /// Whether the whole value matches the pattern, which is reported if not.
    fn check_pattern(&self, spec: &Parameter, value: &Value, report: &mut Report) -> bool {
        let Some(pattern) = &spec.pattern else {
            return true;
        };
        // A pattern that is none has been reported where it is declared.
        let Ok(regex) = Regex::new(&format!("^(?:{pattern})$")) else {
            return true;
        };
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let whole = regex
            .find(&text)
            .is_some_and(|found| found.len() == text.len());
        if !whole {
            let message = format!("`{}` must match {pattern} ({})", spec.key, self.by);
            report.error(self.at, "bad_parameter", message);
        }
        whole
    }
}

/// The value as `kind`, or what it should have been.
fn typed(given: &Given, kind: ParameterKind) -> Result<Value, &'static str> {
    let text = match given {
        Given::Text(text) => Some(text.as_str()),
        Given::Node(node) => node.text(),
    };
    let number = match given {
        Given::Node(Node {
            kind: Kind::Number(number),
            ..
        }) => Some(number.clone()),
        Given::Text(text) => parse_number(text.trim()),
        Given::Node(_) => None,
    };
    match kind {
        ParameterKind::String | ParameterKind::Choice => text
            .map(|text| Value::String(text.to_owned()))
            .ok_or("a text; put it in quotes"),
        ParameterKind::File => text
            .filter(|path| !path.is_empty())
            .map(|path| Value::String(path.to_owned()))
            .ok_or("the path of a file"),
        ParameterKind::Number => number.map(Value::Number).ok_or("a number"),
        ParameterKind::Integer => number
            .filter(|number| number.is_i64() || number.is_u64())
            .map(Value::Number)
            .ok_or("a whole number"),
        ParameterKind::Boolean => match (given, text) {
            (
                Given::Node(Node {
                    kind: Kind::Bool(value),
                    ..
                }),
                _,
            ) => Ok(Value::Bool(*value)),
            (Given::Text(_), Some("true")) => Ok(Value::Bool(true)),
            (Given::Text(_), Some("false")) => Ok(Value::Bool(false)),
            _ => Err("true or false"),
        },
    }
}

fn parse_number(text: &str) -> Option<Number> {
    let whole = text
        .parse::<i64>()
        .map(Number::from)
        .or_else(|_| text.parse::<u64>().map(Number::from));
    whole.ok().or_else(|| Number::from_f64(text.parse().ok()?))
}

impl Report {
    /// Reports a file that was not read.
    pub(super) fn unread(&mut self, at: At, error: &ReadError) {
        match error {
            ReadError::NoInput(message) => self.no_input(at, message),
            ReadError::Unfit(message) => self.error(at, "bad_file", message),
        }
    }
}
