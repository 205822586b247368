//! Checks a tree against the schema and reports everything that does not fit.
//!
//! It knows the part of JSON Schema that our own types produce, and no more.

use regex_lite::Regex;
use serde_json::Value;

use crate::task::diagnostics::{At, Report, did_you_mean};
use crate::task::duration;
use crate::task::schema::{self, Shape};
use crate::task::tree::{Entry, Kind, Node};

/// The key of a schema for its `pattern` in words; editors know it too.
pub(super) const PATTERN_IN_WORDS: &str = "patternErrorMessage";

/// Reports everything in a whole document that does not fit its shape, and
/// takes it out, so that what is left can be decoded.
pub(super) fn check_all(node: &mut Node, shape: Shape, report: &mut Report) {
    let root = shape.root;
    Walk {
        root,
        shape,
        report,
    }
    .node(node, root, "");
}

/// The same of a part of a task, which must fit `schema`, a part of the schema
/// of tasks. `path` names it for people.
pub(super) fn check(node: &mut Node, schema: &Value, path: &str, report: &mut Report) {
    let shape = schema::task();
    let root = shape.root;
    Walk {
        root,
        shape,
        report,
    }
    .node(node, schema, path);
}

struct Walk<'a> {
    root: &'a Value,
    shape: Shape,
    report: &'a mut Report,
}

impl Walk<'_> {
    fn node(&mut self, node: &mut Node, schema: &Value, path: &str) -> bool {
        let schema = schema::resolve(self.root, schema);
        if matches!(node.kind, Kind::Broken) {
            return false;
        }
        if let Some(branches) = schema.get("anyOf").and_then(Value::as_array) {
            return self.any_of(node, branches, path);
        }
        if let Some(names) = constants(schema) {
            return self.constant(node, &names, path);
        }
        if !fits_type(self.root, node, schema) {
            return self.wrong_type(node, &expected(self.root, schema), path);
        }
        let at = node.at;
        match &mut node.kind {
            Kind::Map(entries) => self.map(entries, at, schema, path),
            Kind::List(items) => self.list(items, at, schema, path),
            Kind::Text(text) => self.text(text, at, schema, path),
            Kind::Number(number) => self.number(number.as_f64(), at, schema, path),
            Kind::Null | Kind::Bool(_) | Kind::Broken => true,
        }
    }

    /// What a path names, for people.
    fn subject(&self, path: &str) -> String {
        if path.is_empty() {
            self.shape.noun.to_owned()
        } else {
            format!("`{path}`")
        }
    }

    fn any_of(&mut self, node: &mut Node, branches: &[Value], path: &str) -> bool {
        let fitting = branches
            .iter()
            .find(|branch| fits_type(self.root, node, schema::resolve(self.root, branch)));
        match fitting {
            Some(branch) => self.node(node, branch, path),
            None => {
                let names: Vec<_> = branches.iter().map(|b| expected(self.root, b)).collect();
                self.wrong_type(node, &names.join(" or "), path)
            }
        }
    }

    fn constant(&mut self, node: &Node, names: &[&str], path: &str) -> bool {
        let Some(text) = node.text() else {
            let expected = format!("one of {}", quoted(names));
            return self.wrong_type(node, &expected, path);
        };
        if names.contains(&text) {
            return true;
        }
        let message = format!("`{text}` is no value of `{path}`");
        let hint = did_you_mean(text, names.iter().copied())
            .unwrap_or_else(|| format!("the values are {}", quoted(names)));
        self.report
            .error_with(node.at, "unknown_value", message, hint);
        false
    }

    fn wrong_type(&mut self, node: &Node, expected: &str, path: &str) -> bool {
        let subject = self.subject(path);
        let message = format!(
            "{subject} must be {expected}, not {}",
            kind_name(&node.kind)
        );
        let hint = match &node.kind {
            Kind::Number(number) if expected.contains("duration") => Some(format!(
                "add the unit: `{number}s` for seconds, `{number}m` for minutes"
            )),
            Kind::Bool(_) | Kind::Number(_) if expected.contains("a text") => {
                Some("put it in quotes".to_owned())
            }
            Kind::Text(text) if looks_unquotable(text) && !expected.contains("a text") => {
                Some(format!("remove the quotes: {}", text.trim()))
            }
            _ => None,
        };
        self.report.error_with(node.at, "wrong_type", message, hint);
        false
    }

    fn map(&mut self, entries: &mut Vec<Entry>, at: At, schema: &Value, path: &str) -> bool {
        let known = schema.get("properties").and_then(Value::as_object);
        let rest = schema.get("additionalProperties");
        let required = schema.get("required").and_then(Value::as_array);
        let mut fits = true;
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !entries.iter().any(|entry| entry.key == name) {
                let message = format!("`{}` is missing", join(path, name));
                let hint = (name == "version").then(|| "write `version: 1`".to_owned());
                self.report.error_with(at, "missing_key", message, hint);
                fits = false;
            }
        }
        entries.retain_mut(|entry| {
            let inner = join(path, &entry.key);
            match (known.and_then(|known| known.get(&entry.key)), rest) {
                (Some(schema), _) => self.node(&mut entry.value, schema, &inner),
                (None, Some(Value::Bool(false))) => {
                    let names = known.into_iter().flat_map(|known| known.keys());
                    let names = names.map(String::as_str);
                    let hint = unknown_key_hint(&entry.key, path, names, self.shape);
                    let message = format!("`{}` is no key of {}", entry.key, self.subject(path));
                    self.report
                        .error_with(entry.key_at, "unknown_key", message, hint);
                    false
                }
                (None, Some(schema)) => self.node(&mut entry.value, schema, &inner),
                (None, None) => true,
            }
        });
        let whole = |name: &Value| {
            name.as_str()
                .is_none_or(|name| entries.iter().any(|entry| entry.key == name))
        };
        // A map whose needed entry was taken out cannot be decoded either.
        fits && required.is_none_or(|required| required.iter().all(whole))
    }

    fn list(&mut self, items: &mut Vec<Node>, at: At, schema: &Value, path: &str) -> bool {
        if let Some(most) = schema.get("maxItems").and_then(Value::as_u64)
            && items.len() as u64 > most
        {
            let message = format!("`{path}` takes at most {most} values");
            self.report.error(at, "out_of_range", message);
        }
        if let Some(schema) = schema.get("items") {
            let mut index = 0;
            items.retain_mut(|item| {
                index += 1;
                self.node(item, schema, &format!("{path}[{}]", index - 1))
            });
        }
        true
    }

    fn text(&mut self, text: &str, at: At, schema: &Value, path: &str) -> bool {
        if schema.get("format").and_then(Value::as_str) == Some(duration::FORMAT) {
            let parsed = duration::parse(text);
            if let Err(error) = &parsed {
                self.report
                    .error(at, "bad_duration", format!("`{path}`: {error}"));
            }
            return parsed.is_ok();
        }
        if let Some(least) = schema.get("minLength").and_then(Value::as_u64)
            && (text.chars().count() as u64) < least
        {
            self.report
                .error(at, "out_of_range", format!("`{path}` must not be empty"));
            return false;
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
            && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
        {
            let message = format!("`{text}` is not allowed as `{path}`");
            let words = schema.get(PATTERN_IN_WORDS).and_then(Value::as_str);
            let hint = words.map_or_else(|| format!("it must match {pattern}"), str::to_owned);
            self.report.error_with(at, "bad_format", message, hint);
            return false;
        }
        true
    }

    fn number(&mut self, number: Option<f64>, at: At, schema: &Value, path: &str) -> bool {
        let Some(number) = number else { return false };
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let (low, high) = (bound("minimum"), bound("maximum"));
        if low.is_none_or(|low| number >= low) && high.is_none_or(|high| number <= high) {
            return true;
        }
        let range = match (low, high) {
            (Some(low), Some(high)) if low.total_cmp(&high).is_eq() => low.to_string(),
            (Some(low), Some(high)) => format!("from {low} to {high}"),
            (Some(low), None) => format!("at least {low}"),
            (None, high) => format!("at most {}", high.unwrap_or_default()),
        };
        self.report.error(
            at,
            "out_of_range",
            format!("`{path}` must be {range}, not {number}"),
        );
        false
    }
}

/// The values of an enumeration, when the schema is one.
fn constants(schema: &Value) -> Option<Vec<&str>> {
    if let Some(names) = schema.get("enum").and_then(Value::as_array) {
        return Some(names.iter().filter_map(Value::as_str).collect());
    }
    let branches = schema.get("oneOf")?.as_array()?;
    let mut names = Vec::new();
    for branch in branches {
        match branch.get("const").and_then(Value::as_str) {
            Some(name) => names.push(name),
            None => names.extend(constants(branch)?),
        }
    }
    Some(names)
}

/// Whether the node's type is one that the schema takes; an enumeration takes texts.
fn fits_type(root: &Value, node: &Node, schema: &Value) -> bool {
    let schema = schema::resolve(root, schema);
    let fits = |name: &str| match (&node.kind, name) {
        (Kind::Null, "null")
        | (Kind::Bool(_), "boolean")
        | (Kind::Number(_), "number")
        | (Kind::Text(_), "string")
        | (Kind::List(_), "array")
        | (Kind::Map(_), "object") => true,
        (Kind::Number(number), "integer") => number.is_u64() || number.is_i64(),
        _ => false,
    };
    match schema.get("type") {
        Some(Value::String(name)) => fits(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).any(fits),
        _ if constants(schema).is_some() => fits("string"),
        _ => true,
    }
}

/// What a schema takes, for people.
fn expected(root: &Value, schema: &Value) -> String {
    let schema = schema::resolve(root, schema);
    if schema.get("format").and_then(Value::as_str) == Some(duration::FORMAT) {
        return "a text with a duration such as 45m".to_owned();
    }
    let name = |name: &str| match name {
        "null" => "null",
        "boolean" => "true or false",
        "number" => "a number",
        "integer" => "a whole number",
        "string" => "a text",
        "array" => "a list",
        _ => "a map",
    };
    match schema.get("type") {
        Some(Value::String(only)) => name(only).to_owned(),
        Some(Value::Array(names)) => {
            let names = names
                .iter()
                .filter_map(Value::as_str)
                .filter(|n| *n != "null");
            names.map(name).collect::<Vec<_>>().join(" or ")
        }
        _ => {
            constants(schema).map_or_else(String::new, |names| format!("one of {}", quoted(&names)))
        }
    }
}

fn kind_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Null => "empty",
        Kind::Bool(_) => "true or false",
        Kind::Number(number) if number.is_f64() => "a number with a fraction",
        Kind::Number(_) => "a number",
        Kind::Text(_) => "a text",
        Kind::List(_) => "a list",
        Kind::Map(_) => "a map",
        Kind::Broken => "unreadable",
    }
}

/// Whether a text would be something else without its quotes.
fn looks_unquotable(text: &str) -> bool {
    let text = text.trim();
    text.parse::<f64>().is_ok_and(f64::is_finite) || text == "true" || text == "false"
}

fn quoted(names: &[&str]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Advice for a key that is not known: a similar one, or the section that has it.
fn unknown_key_hint<'a>(
    key: &str,
    path: &str,
    names: impl Iterator<Item = &'a str>,
    shape: Shape,
) -> Option<String> {
    let root = shape.root;
    let names: Vec<&str> = names.collect();
    if let Some(hint) = did_you_mean(key, names.iter().copied()) {
        return Some(hint);
    }
    if key == "<<" {
        return Some("merge keys are not part of YAML 1.2".to_owned());
    }
    let sections = root.get("properties").and_then(Value::as_object)?;
    for (section, schema) in sections {
        let inner = schema::resolve(root, schema).get("properties");
        if section != path && inner.is_some_and(|inner| inner.get(key).is_some()) {
            return Some(format!("did you mean `{section}.{key}`?"));
        }
    }
    let top = root.get("properties").and_then(|p| p.get(key)).is_some();
    if top && !path.is_empty() {
        return Some(format!("`{key}` belongs at the top of the file"));
    }
    Some(match names.len() {
        ..=12 => format!("the keys are {}", quoted(&names)),
        _ => format!("`{}` lists the keys", shape.command),
    })
}
