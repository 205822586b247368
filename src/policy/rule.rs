//! Permission rules: `Tool` or `Tool(specifier)`, read once and checked.

use std::fmt;
use std::path::{Path, PathBuf};

use super::bash::{BashPattern, Coverage};
use super::command::CommandLine;
use super::named::NamedPattern;
use super::pattern::PathPattern;
use super::scope::{Scope, normal};
use crate::message::is_unseen;

/// A permission rule. It is compiled when it is read.
#[derive(Debug, Clone)]
pub struct Rule {
    text: String,
    origin: String,
    pub(crate) target: Target,
}

/// What a rule speaks about.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Reads or writes, of one tool or of all, everywhere or by pattern.
    Path {
        kind: PathAccess,
        tool: Option<&'static str>,
        pattern: Option<PathPattern>,
    },
    /// Commands.
    Bash(BashPattern),
    /// Hosts, tools of servers, agents, skills.
    Named(NamedPattern),
}

/// The two ways to touch a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathAccess {
    Read,
    Write,
}

/// What a rule is for; examples are judged by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It allows: strictly what it says.
    Allow,
    /// It denies or asks: also what may amount to it.
    Deny,
}

/// A rule that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: rule `{text}`{}: {problem}", place(*.position))]
pub struct RuleError {
    /// Where the rule stands, as `permissions.deny[0]`.
    pub origin: String,
    /// The rule as written.
    pub text: String,
    /// The character at which it goes wrong, from 0, when it is one place.
    pub position: Option<usize>,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

/// Characters that mean something in rules: in globs, in command lines, or to the
/// rule itself.
const META: &str = "*?[]{}(),\\\"'`;&|$<>#";

/// What in a text would change the meaning of a rule that it is put into, in words
/// that follow "because"; none when the text only stands for itself.
pub fn changes_rules(text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("it is empty".to_owned());
    }
    if let Some(found) = text.chars().find(|c| META.contains(*c)) {
        return Some(format!("it has `{found}`"));
    }
    if text.contains(|c: char| c.is_whitespace() || c.is_control() || is_unseen(c)) {
        return Some("it has a blank, a line break or a character that is not seen".to_owned());
    }
    if let Some(first) = text.chars().next().filter(|c| "-/~=".contains(*c)) {
        return Some(format!("it begins with `{first}`"));
    }
    if text.split('/').any(|part| matches!(part, "." | "..")) {
        return Some("it has a part `.` or `..`".to_owned());
    }
    text.ends_with(':').then(|| "it ends with `:`".to_owned())
}

fn place(position: Option<usize>) -> String {
    position.map_or_else(String::new, |at| format!(" at character {}", at + 1))
}

/// The tools that rules can name: what each covers, and whether it takes a
/// specifier.
const TOOLS: &[(&str, PathAccess, Option<&str>)] = &[
    ("read", PathAccess::Read, None),
    ("edit", PathAccess::Write, None),
    ("grep", PathAccess::Read, Some("grep")),
    ("find", PathAccess::Read, Some("find")),
    ("ls", PathAccess::Read, Some("ls")),
    ("write", PathAccess::Write, Some("write")),
];

const EXIST: &str = "rules can name Read, Edit, Bash, WebFetch, Task, Skill, mcp__server__tool, and \
                     as whole tools Grep, Find, Ls and Write";

impl Rule {
    /// Whether it speaks of commands.
    pub fn is_about_commands(&self) -> bool {
        matches!(self.target, Target::Bash(_))
    }

    /// Reads a rule. `origin` is where it stands, as `permissions.deny[0]` or
    /// `--deny`.
    ///
    /// # Errors
    /// When it is malformed, or names a tool that does not exist.
    pub fn parse(text: &str, origin: &str) -> Result<Self, RuleError> {
        let fail = |position: Option<usize>, problem: String| RuleError {
            origin: origin.to_owned(),
            text: text.to_owned(),
            position,
            problem,
        };
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Err(fail(None, format!("it is empty; {EXIST}")));
        }
        let (name, specifier) = match trimmed.find('(') {
            None if trimmed.contains(')') => {
                let at = text.find(')').map(|at| characters(text, at));
                return Err(fail(at, "`)` without `(`".to_owned()));
            }
            None => (trimmed, None),
            Some(open) => {
                let Some(inner) = trimmed
                    .get(open + 1..)
                    .and_then(|rest| rest.strip_suffix(')'))
                else {
                    let end = Some(text.trim_end().chars().count());
                    return Err(fail(end, "it has to end with `)`".to_owned()));
                };
                if inner.trim().is_empty() {
                    let problem = "`()` is empty; leave it out to mean the whole tool";
                    let at = text.find('(').map(|at| characters(text, at));
                    return Err(fail(at, problem.to_owned()));
                }
                (trimmed.get(..open).unwrap_or_default(), Some(inner))
            }
        };
        let target = target(name.trim(), specifier).map_err(|(in_name, problem)| {
            let at = if in_name {
                text.len() - text.trim_start().len()
            } else {
                text.find('(').map_or(0, |open| open + 1)
            };
            fail(Some(characters(text, at)), problem)
        })?;
        Ok(Self {
            text: trimmed.to_owned(),
            origin: origin.to_owned(),
            target,
        })
    }

    /// The rule with examples that it has to match and not to match: commands
    /// for `Bash` rules, paths from the workspace for others.
    ///
    /// # Errors
    /// Names the first example that does not hold.
    pub fn with_examples(
        self,
        effect: Effect,
        matches: &[String],
        not_matches: &[String],
    ) -> Result<Self, RuleError> {
        let wrong = |example: &String, how: &str| RuleError {
            origin: self.origin.clone(),
            text: self.text.clone(),
            position: None,
            problem: format!("its example `{example}` {how}"),
        };
        if let Some(example) = matches.iter().find(|example| !self.fits(effect, example)) {
            return Err(wrong(example, "should match and does not"));
        }
        if let Some(example) = not_matches
            .iter()
            .find(|example| self.fits(effect, example))
        {
            return Err(wrong(example, "should not match and does"));
        }
        Ok(self)
    }

    fn fits(&self, effect: Effect, example: &str) -> bool {
        match &self.target {
            Target::Bash(pattern) => {
                let command = CommandLine::new(example);
                match effect {
                    Effect::Allow => matches!(
                        pattern.allows(&command),
                        Coverage::Exactly | Coverage::Everything | Coverage::Arguments(_)
                    ),
                    Effect::Deny => pattern.forbids(&command, false).is_some(),
                }
            }
            Target::Named(pattern) => pattern.example(example).is_some_and(|access| match effect {
                Effect::Allow => pattern.allows(&access),
                Effect::Deny => pattern.denies(&access),
            }),
            Target::Path { pattern: None, .. } => true,
            Target::Path {
                pattern: Some(pattern),
                ..
            } => {
                let home = Path::new("/home/example");
                let scope = Scope::unresolved(Path::new("/workspace/example"), home);
                let path = match example.strip_prefix("~/") {
                    Some(rest) => home.join(rest),
                    None => normal(&scope.workspace.join(PathBuf::from(example))),
                };
                let bound = pattern.clone().bind(&scope);
                match effect {
                    Effect::Allow => bound.allows(&path),
                    Effect::Deny => bound.denies(&path),
                }
            }
        }
    }

    /// The rule as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it stands.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}

impl fmt::Display for Rule {
    /// The place and the rule: `permissions.deny[0] Edit(.github/**)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.origin, self.text)
    }
}

impl PartialEq for Rule {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.origin == other.origin
    }
}

impl Eq for Rule {}

fn characters(text: &str, bytes: usize) -> usize {
    text.get(..bytes).map_or(0, |before| before.chars().count())
}

/// The target of a rule, or whether the name is wrong, and how.
fn target(name: &str, specifier: Option<&str>) -> Result<Target, (bool, String)> {
    let lower = name.to_ascii_lowercase();
    if lower == "bash" {
        let pattern = specifier.map_or(Ok(BashPattern::Any), BashPattern::parse);
        return pattern
            .map(Target::Bash)
            .map_err(|problem| (false, problem));
    }
    if let Some(named) = NamedPattern::parse(name, specifier) {
        return named.map(Target::Named);
    }
    let Some((_, kind, tool)) = TOOLS.iter().find(|(tool, ..)| *tool == lower) else {
        return Err((true, unknown(name, &lower)));
    };
    let pattern = match (specifier, tool) {
        (None, _) => None,
        (Some(glob), None) => {
            Some(PathPattern::parse(glob.trim()).map_err(|problem| (false, problem))?)
        }
        (Some(glob), Some(_)) => {
            let general = match kind {
                PathAccess::Read => "Read",
                PathAccess::Write => "Edit",
            };
            return Err((
                false,
                format!(
                    "`{name}` takes no pattern; did you mean `{general}({glob})`, which covers \
                     every tool that {}?",
                    if general == "Read" { "reads" } else { "writes" }
                ),
            ));
        }
    };
    Ok(Target::Path {
        kind: *kind,
        tool: *tool,
        pattern,
    })
}

fn unknown(name: &str, lower: &str) -> String {
    let hint = match lower {
        "multiedit" | "notebookedit" | "patch" | "apply_patch" => Some("Edit"),
        "glob" => Some("Find"),
        "list" | "listdir" => Some("Ls"),
        "shell" | "exec" | "run" | "sh" => Some("Bash"),
        "search" => Some("Grep"),
        "agent" | "subagent" => Some("Task"),
        "fetch" | "web_fetch" | "websearch" => Some("WebFetch"),
        _ => [
            "Read", "Edit", "Bash", "Grep", "Find", "Ls", "Write", "WebFetch", "Task", "Skill",
        ]
        .into_iter()
        .find(|tool| strsim::damerau_levenshtein(&tool.to_lowercase(), lower) <= 1),
    };
    match hint {
        Some(hint) => format!("there is no tool `{name}`; did you mean `{hint}`? {EXIST}"),
        None => format!("there is no tool `{name}`; {EXIST}"),
    }
}
