//! What a call is about, in one line.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::message::ToolCall;

/// An argument of at most this many characters is whole in a title.
pub(super) const TITLE_CHARS: usize = 140;

/// The arguments of a call, and what of them stands in its title.
pub(super) struct Title<'a> {
    /// Not cut yet.
    pub(super) text: Cow<'a, str>,
    /// The names of the arguments that it tells whole.
    pub(super) told: Vec<&'a str>,
}

/// The title of a call, without the name of its tool.
pub(super) fn of(call: &ToolCall) -> Title<'_> {
    let Some(arguments) = call.arguments.as_object() else {
        return Title {
            text: Cow::Owned(call.arguments.to_string()),
            told: Vec::new(),
        };
    };
    let main = match call.name.as_str() {
        "bash" => "command",
        "read" => return read(arguments),
        "write" | "edit" | "ls" => "path",
        "grep" | "find" => return search(arguments),
        _ => return other(arguments),
    };
    match text(arguments, main) {
        Some(text) => Title {
            told: told(main, text),
            text: Cow::Borrowed(text),
        },
        None => other(arguments),
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// The argument's name, when its text is whole in one line of a title.
fn told<'a>(name: &'a str, text: &str) -> Vec<&'a str> {
    if is_cut(text) { Vec::new() } else { vec![name] }
}

/// Whether a title does not tell the whole of a text.
pub(super) fn is_cut(text: &str) -> bool {
    text.chars().nth(TITLE_CHARS).is_some() || text.contains(char::is_control)
}

/// `src/lib.rs:10-59`.
fn read(arguments: &Map<String, Value>) -> Title<'_> {
    let Some(path) = text(arguments, "path") else {
        return other(arguments);
    };
    let mut told = told("path", path);
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
    let lines = match (number("offset"), number("limit")) {
        (None, None) => String::new(),
        (from, None) => format!(":{}-", from.unwrap_or(1)),
        (from, Some(count)) => {
            let from = from.unwrap_or(1);
            format!(":{from}-{}", from.saturating_add(count).saturating_sub(1))
        }
    };
    if !told.is_empty() && !lines.is_empty() {
        told.extend(["offset", "limit"]);
    }
    Title {
        text: Cow::Owned(format!("{path}{lines}")),
        told,
    }
}

/// `pattern in path`.
fn search(arguments: &Map<String, Value>) -> Title<'_> {
    let Some(pattern) = text(arguments, "pattern") else {
        return other(arguments);
    };
    match text(arguments, "path") {
        Some(path) => Title {
            text: Cow::Owned(format!("{pattern} in {path}")),
            // Both have to fit.
            told: match told("pattern", &format!("{pattern} in {path}")).is_empty() {
                true => Vec::new(),
                false => vec!["pattern", "path"],
            },
        },
        None => Title {
            told: told("pattern", pattern),
            text: Cow::Borrowed(pattern),
        },
    }
}

/// `name=value` of each argument.
fn other(arguments: &Map<String, Value>) -> Title<'_> {
    let mut title = String::new();
    for (name, value) in arguments {
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(name);
        title.push('=');
        match value {
            Value::String(text) => title.push_str(text),
            value => title.push_str(&value.to_string()),
        }
    }
    Title {
        text: Cow::Owned(title),
        told: Vec::new(),
    }
}
