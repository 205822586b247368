//! What the command line says about a task, put into its tree before it is checked.
//!
//! A flag becomes a node like one of the file, with the flag as its place, so
//! both are checked by the same code and errors point at the flag.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Number, Value};

use crate::task::diagnostics::{At, Report};
use crate::task::tree::{Entry, Kind, Node};
use crate::task::yaml;

/// What the command line and its surroundings say about a task.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--param key=value`, in order.
    pub params: Vec<(String, String)>,
    /// `--params-file`: a YAML or JSON map.
    pub params_file: Option<PathBuf>,
    /// `--set path=value`, in order: a dotted path and a YAML value.
    pub set: Vec<(String, String)>,
    /// `--model`.
    pub model: Option<String>,
    /// `--fallback-model`: in place of the task's own.
    pub fallback_models: Vec<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--thinking`.
    pub thinking: Option<String>,
    /// `--max-turns`.
    pub max_turns: Option<u32>,
    /// `--max-cost-usd`.
    pub max_cost_usd: Option<f64>,
    /// `--timeout`, as in `45m`.
    pub timeout: Option<String>,
    /// `--permission-mode`.
    pub permission_mode: Option<String>,
    /// `--sandbox`.
    pub sandbox: Option<String>,
    /// `--allow`: rules besides the task's own.
    pub allow: Vec<String>,
    /// `--deny`: rules besides the task's own.
    pub deny: Vec<String>,
    /// `--json-schema`: the schema itself when it begins with a brace, else the
    /// name of a file with it, which may have an `@` before it.
    pub json_schema: Option<String>,
    /// `--append-system-prompt`.
    pub append_system_prompt: Option<String>,
    /// The current directory, or that of `-C`; absolute.
    pub cwd: PathBuf,
    /// The environment, as far as it is UTF-8.
    pub env: BTreeMap<String, String>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Whether permission mode `bypass` may be used.
    pub allow_bypass: bool,
    /// `--no-session`.
    pub no_session: bool,
    /// `--resume`, or `newest` for `--continue`.
    pub resume: Option<String>,
    /// `--fork-session`.
    pub fork_session: bool,
    /// Replaces the parent of run directories.
    pub reports_dir: Option<PathBuf>,
}

impl Overrides {
    /// Puts everything that replaces a key into `root`.
    pub(super) fn apply(&self, root: &mut Node, report: &mut Report) {
        for (path, value) in &self.set {
            set(root, path, value, report);
        }
        let text = |value: &Option<String>| value.clone().map(Kind::Text);
        let cost = self.max_cost_usd.map(|usd| {
            // What is not finite is no number; as a text it is refused for its type.
            Number::from_f64(usd).map_or_else(|| Kind::Text(usd.to_string()), Kind::Number)
        });
        let turns = self.max_turns.map(|n| Kind::Number(n.into()));
        let reports = self
            .reports_dir
            .as_ref()
            .map(|dir| Kind::Text(dir.display().to_string()));
        let flags: [(&str, [&str; 2], Option<Kind>); 12] = [
            ("--model", ["settings", "model"], text(&self.model)),
            ("--base-url", ["settings", "base_url"], text(&self.base_url)),
            ("--thinking", ["settings", "thinking"], text(&self.thinking)),
            ("--max-turns", ["limits", "max_turns"], turns),
            ("--max-cost-usd", ["limits", "max_cost_usd"], cost),
            ("--timeout", ["limits", "timeout"], text(&self.timeout)),
            (
                "--permission-mode",
                ["permissions", "mode"],
                text(&self.permission_mode),
            ),
            ("--sandbox", ["sandbox", "mode"], text(&self.sandbox)),
            (
                "--no-session",
                ["session", "persist"],
                self.no_session.then_some(Kind::Bool(false)),
            ),
            ("--resume", ["session", "resume"], text(&self.resume)),
            (
                "--fork-session",
                ["session", "fork"],
                self.fork_session.then_some(Kind::Bool(true)),
            ),
            ("--run-dir", ["reports", "dir"], reports),
        ];
        for (flag, path, value) in flags {
            if let Some(kind) = value {
                let at = place(flag, &kind, report);
                replace(root, &path, Node::literal(kind, at), report);
            }
        }
        put_schema(root, self.json_schema.as_deref(), report);
        if let Some(first) = self.fallback_models.first() {
            let at = place("--fallback-model", &Kind::Text(first.clone()), report);
            let none = Node::literal(Kind::List(Vec::new()), at);
            replace(root, &["settings", "fallback_models"], none, report);
        }
        for (flag, list, items) in [
            (
                "--fallback-model",
                ["settings", "fallback_models"],
                &self.fallback_models,
            ),
            ("--allow", ["permissions", "allow"], &self.allow),
            ("--deny", ["permissions", "deny"], &self.deny),
        ] {
            for item in items {
                let kind = Kind::Text(item.clone());
                let at = place(flag, &kind, report);
                push(root, &list, Node::literal(kind, at), report);
            }
        }
    }
}

/// Puts a schema, or the name of its file, in the place of the task's own.
fn put_schema(root: &mut Node, value: Option<&str>, report: &mut Report) {
    const FLAG: &str = "--json-schema";
    let Some(value) = value else { return };
    let source = report.flag(FLAG, value);
    let at = report.whole(source);
    let (key, other, kind) = if value.trim_start().starts_with('{') {
        match serde_json::from_str::<Value>(value) {
            Ok(schema) => ("schema", "schema_file", Node::of_json(schema, at).kind),
            Err(error) => {
                let message = format!("the schema is no JSON: {error}");
                let hint = "write a file's name as `@FILE` or `FILE`".to_owned();
                return report.error_with(at, "bad_schema", message, hint);
            }
        }
    } else {
        let path = value.strip_prefix('@').unwrap_or(value);
        ("schema_file", "schema", Kind::Text(path.to_owned()))
    };
    if let Some(Kind::Map(entries)) = root.get_mut("response").map(|node| &mut node.kind) {
        entries.retain(|entry| entry.key != other);
    }
    replace(root, &["response", key], Node::literal(kind, at), report);
}

/// Registers a flag with its value.
fn place(flag: &str, value: &Kind, report: &mut Report) -> At {
    let text = match value {
        Kind::Text(text) => text.clone(),
        Kind::Number(number) => number.to_string(),
        _ => flag.to_owned(),
    };
    let source = report.flag(flag, text);
    report.whole(source)
}

/// Does `--set path=value`.
fn set(root: &mut Node, path: &str, value: &str, report: &mut Report) {
    let keys: Vec<&str> = path.split('.').collect();
    if keys.iter().any(|key| key.is_empty()) {
        let source = report.source("--set", format!("{path}={value}"));
        let at = report.whole(source);
        let hint = "write for example `--set limits.max_turns=20`".to_owned();
        return report.error_with(at, "bad_path", format!("`{path}` is no path of keys"), hint);
    }
    let source = report.source(format!("--set {path}"), value);
    let node = if value.trim().is_empty() {
        Some(Node::literal(
            Kind::Text(String::new()),
            report.whole(source),
        ))
    } else {
        yaml::parse(report, source)
    };
    if let Some(node) = node {
        replace(root, &keys, node, report);
    }
}

/// Puts `value` at `path`, unless what is on the way is no map: then it is reported.
fn replace(root: &mut Node, path: &[&str], value: Node, report: &mut Report) {
    let through = path.split_last().map_or(path, |(_, through)| through);
    for depth in 0..=through.len() {
        let Some(way) = through.get(..depth) else {
            continue;
        };
        let Some(node) = root.at_path(way) else { break };
        if !matches!(node.kind, Kind::Map(_) | Kind::Null) {
            let message = format!(
                "`{}` is no map, so `{}` cannot be set",
                way.join("."),
                path.join(".")
            );
            return report.error(value.at, "bad_path", message);
        }
    }
    root.set(path, value);
}

/// Adds `item` to the list at `path`, which is made when it is not there.
fn push(root: &mut Node, path: &[&str], item: Node, report: &mut Report) {
    if root.at_path(path).is_none() {
        replace(
            root,
            path,
            Node::literal(Kind::List(Vec::new()), item.at),
            report,
        );
    }
    let mut node = root;
    for key in path {
        // What is no map or list is reported when the tree is checked.
        let Kind::Map(entries) = &mut node.kind else {
            return;
        };
        let Some(entry) = entries
            .iter_mut()
            .find(|entry: &&mut Entry| entry.key == *key)
        else {
            return;
        };
        node = &mut entry.value;
    }
    if let Kind::List(items) = &mut node.kind {
        items.push(item);
    }
}
