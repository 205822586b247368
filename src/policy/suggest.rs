//! The rule that would have allowed what was denied.

use super::bash::{BashPattern, Coverage};
use super::command::CommandLine;
use super::guard::{self, Reach};
use super::rule::{PathAccess, Rule};
use super::shell::{NUMBER, UNKNOWN};
use super::uncertain;

/// The rule for one path, as [`super::scope::Scope::shown`] writes it, and what
/// is below it as far as the glob `below` says.
pub(crate) fn path_rule(kind: PathAccess, shown: &str, below: &str) -> String {
    let mut glob = String::new();
    for c in shown.chars() {
        if "*?[]{}\\".contains(c) {
            glob.push('\\');
        }
        glob.push(c);
    }
    glob.push_str(below);
    match kind {
        PathAccess::Read => format!("Read({glob})"),
        PathAccess::Write => format!("Edit({glob})"),
    }
}

/// The rule with exactly this command, when a rule can say it.
pub(crate) fn exact_bash_rule(command: &CommandLine) -> Option<String> {
    let text = command.text.trim();
    if text.contains([UNKNOWN, NUMBER]) {
        return None;
    }
    let covers =
        BashPattern::parse(text).is_ok_and(|pattern| pattern.allows(command) == Coverage::Exactly);
    let rule = format!("Bash({text})");
    (covers && !text.contains('\n') && Rule::parse(&rule, "").is_ok()).then_some(rule)
}

/// The rule with exactly this line, when a rule can say it.
pub(crate) fn exact_line_rule(line: &str) -> Option<String> {
    let text = line.trim();
    let covers = BashPattern::parse(text).is_ok_and(|pattern| pattern.is_exactly(text));
    let rule = format!("Bash({text})");
    (covers && !text.contains('\n') && Rule::parse(&rule, "").is_ok()).then_some(rule)
}

/// The rule for commands like this one: by its program and subcommand when
/// that is harmless, else with exactly its words.
pub(crate) fn bash_rule(command: &CommandLine, words: &[String]) -> Option<String> {
    let plain = |word: &&String| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    let named = if guard::has_subcommands(words) { 2 } else { 1 };
    let prefix: Vec<&str> = words
        .iter()
        .take(named)
        .filter(plain)
        .map(String::as_str)
        .collect();
    let harmless = match guard::check(words, named) {
        Ok(Reach::Read) => true,
        Ok(Reach::Workspace) => named == 2,
        Err(_) => false,
    };
    if uncertain::check(words).is_err() {
        return None;
    }
    if harmless && prefix.len() == named && words.len() >= named {
        return Some(format!("Bash({}:*)", prefix.join(" ")));
    }
    exact_bash_rule(command)
}
