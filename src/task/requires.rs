//! The `requires` section of a task: as it is written, and as what is looked for
//! before the job starts.

use std::cmp::Ordering;
use std::fmt;
use std::path::{Component, Path, PathBuf};

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::task::diagnostics::At;
use crate::task::resolve::Resolution;
use crate::task::tree::Node;
use crate::task::validate::PATTERN_IN_WORDS;

/// What the job needs besides its model. It is looked for before the first
/// request and before anything is changed; when something is missing, all of it
/// is told, and the run ends with exit code 78.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RequiresSection {
    /// Programs in the `PATH` of the job's commands: `git`, or with a version
    /// `cargo >= 1.80`. The others are `>`, `=`, `<` and `<=`, and parts that are
    /// not written are not compared: `= 1.80` is also 1.80.1.
    #[schemars(
        length(max = 100),
        transform = told_in_words,
        inner(regex(
            pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}( *(>=|<=|=|>|<) *[0-9]{1,9}(\.[0-9]{1,9}){0,3})?$"
        ))
    )]
    pub commands: Vec<String>,
    /// Variables that are set, and not empty, where the run is started.
    #[schemars(length(max = 100), inner(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$")))]
    pub env: Vec<String>,
    /// Files and directories of the workspace, as paths from its root.
    #[schemars(length(max = 100), inner(length(min = 1)))]
    pub files: Vec<String>,
}

/// What a command looks like, for people.
const COMMAND_IN_WORDS: &str = "write the name of a program, or one with a version: `git >= 2.40`; \
     `>`, `=`, `<` and `<=` also work, and a version is up to 4 numbers with dots";

fn told_in_words(schema: &mut Schema) {
    let items = schema.get_mut("items").and_then(Value::as_object_mut);
    if let Some(items) = items {
        items.insert(PATTERN_IN_WORDS.to_owned(), COMMAND_IN_WORDS.into());
    }
}

/// Something that a job needs, and where the task says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// What is needed.
    pub need: Need,
    /// Where it is written.
    pub place: Written,
}

/// What a job may need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A program in the `PATH` of commands, of a version when one is named.
    Command(String, Option<VersionRange>),
    /// A variable of the environment.
    Variable(String),
    /// A file or directory, relative to the workspace.
    File(PathBuf),
}

/// Where something is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The file or the flag.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
}

/// The versions that will do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange {
    comparison: Comparison,
    parts: Vec<u64>,
}

/// How a version is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    AtLeast,
    AtMost,
    Equal,
    More,
    Less,
}

/// The longer of two that begin alike comes first.
const COMPARISONS: [(&str, Comparison); 5] = [
    (">=", Comparison::AtLeast),
    ("<=", Comparison::AtMost),
    ("=", Comparison::Equal),
    (">", Comparison::More),
    ("<", Comparison::Less),
];

impl VersionRange {
    /// Reads `>= 1.80`.
    fn parse(text: &str) -> Option<Self> {
        COMPARISONS.iter().find_map(|(sign, comparison)| {
            let parts = text.strip_prefix(sign)?.trim().split('.');
            let parts: Result<Vec<u64>, _> = parts.map(str::parse).collect();
            Some(Self {
                comparison: *comparison,
                parts: parts.ok()?,
            })
        })
    }

    /// Whether a version will do. Only the parts that are written are compared; a
    /// part that the version does not have is 0.
    pub fn holds(&self, version: &[u64]) -> bool {
        let part = |index| version.get(index).copied().unwrap_or_default();
        let found: Vec<u64> = (0..self.parts.len()).map(part).collect();
        let order = found.cmp(&self.parts);
        match self.comparison {
            Comparison::AtLeast => order != Ordering::Less,
            Comparison::AtMost => order != Ordering::Greater,
            Comparison::Equal => order == Ordering::Equal,
            Comparison::More => order == Ordering::Greater,
            Comparison::Less => order == Ordering::Less,
        }
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = COMPARISONS.iter().find(|(_, one)| *one == self.comparison);
        let parts: Vec<String> = self.parts.iter().map(u64::to_string).collect();
        write!(
            f,
            "{} {}",
            sign.map_or("", |(sign, _)| sign),
            parts.join(".")
        )
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(name, None) => f.write_str(name),
            Self::Command(name, Some(range)) => write!(f, "{name} {range}"),
            Self::Variable(name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Need {
    /// What kind of thing it is: `command`, `variable` or `file`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Command(..) => "command",
            Self::Variable(_) => "variable",
            Self::File(_) => "file",
        }
    }

    /// Reads `cargo >= 1.80`.
    fn command(text: &str) -> Option<Self> {
        let end = text.find([' ', '>', '<', '=']).unwrap_or(text.len());
        let (name, range) = text.split_at_checked(end)?;
        let range = match range.trim() {
            "" => None,
            range => Some(VersionRange::parse(range)?),
        };
        Some(Self::Command(name.to_owned(), range))
    }
}

impl Resolution<'_> {
    /// What the section names, in its order; what is wrong with it is reported.
    pub(super) fn requires(&mut self, section: &RequiresSection, root: &Node) -> Vec<Requirement> {
        let mut all = Vec::new();
        for (key, texts) in [
            ("commands", &section.commands),
            ("env", &section.env),
            ("files", &section.files),
        ] {
            let nodes = root.at_path(&["requires", key]);
            let nodes = nodes.map_or(&[][..], Node::items);
            for (text, node) in texts.iter().zip(nodes) {
                let Some(need) = self.need(key, text, node.at) else {
                    continue;
                };
                if all.iter().any(|other: &Requirement| other.need == need) {
                    let message = format!("`requires.{key}` has `{need}` twice");
                    self.report.error(node.at, "duplicate_value", message);
                    continue;
                }
                let place = self.report.written(node.at);
                all.push(Requirement { need, place });
            }
        }
        all
    }

    fn need(&mut self, key: &str, text: &str, at: At) -> Option<Need> {
        match key {
            "commands" => Need::command(text),
            "env" => Some(Need::Variable(text.to_owned())),
            _ if leads_outside(Path::new(text)) => {
                let message = format!("`{text}` leads outside of the workspace");
                let hint = "write a path from the root of the workspace".to_owned();
                self.report
                    .error_with(at, "outside_workspace", message, hint);
                None
            }
            _ => Some(Need::File(plain(Path::new(text)))),
        }
    }
}

/// Whether a path from the root of the workspace leaves it, as it is written.
/// Where links lead is seen when the file is looked for.
fn leads_outside(path: &Path) -> bool {
    let mut depth = 0_usize;
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => return true,
            Component::CurDir => {}
            Component::Normal(name) if name == "~" && depth == 0 => return true,
            Component::Normal(_) => depth += 1,
            Component::ParentDir => match depth.checked_sub(1) {
                Some(above) => depth = above,
                None => return true,
            },
        }
    }
    false
}

/// The path without parts that lead nowhere.
fn plain(path: &Path) -> PathBuf {
    let parts = path.components();
    let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
    match path.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => path,
    }
}

/// The resolved section, for the task's document.
pub(super) fn document(requires: &[Requirement]) -> Value {
    let of = |kind: &str| -> Vec<String> {
        let needs = requires.iter().map(|requirement| &requirement.need);
        let needs = needs.filter(|need| need.kind() == kind);
        needs.map(ToString::to_string).collect()
    };
    json!({
        "commands": of("command"),
        "env": of("variable"),
        "files": of("file"),
    })
}
