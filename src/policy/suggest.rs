//! The rule that would have allowed what was denied.

use super::bash::{BashPattern, Coverage};
use super::command::CommandLine;
use super::decide::Judged;
use super::exec::Exec;
use super::guard::{self, Reach};
use super::rule::{PathAccess, Rule, Target};
use super::shell::{NUMBER, UNKNOWN};
use super::uncertain;
use super::{Decision, Policy};

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
/// `stays` says whether the command keeps to what a rule of that reach covers.
pub(crate) fn bash_rule(
    command: &CommandLine,
    words: &[String],
    stays: impl Fn(Reach) -> bool,
) -> Option<String> {
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
        // A rule on an option of all subcommands would allow each of them.
        Ok(Reach::Workspace) => {
            named == 2
                && !words.get(1).is_some_and(|word| word.starts_with('-'))
                && stays(Reach::Workspace)
        }
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

impl Policy {
    /// A denial with the rule that would have been enough: of a line in which one
    /// command lacks a rule, the one for that command; where more is missing, the
    /// one for the whole line.
    pub(super) fn suggested_for_all(
        &self,
        denial: Decision,
        tool: &str,
        judged: &[Judged<'_>],
    ) -> Decision {
        let mut commands = Vec::new();
        let mut others = false;
        for access in judged {
            let decision = self.grant(tool, access);
            match access {
                _ if decision.is_allowed() => {}
                Judged::Exec(exec) => commands.push((exec, decision.suggested_rule)),
                _ => others = true,
            }
        }
        if commands.is_empty() {
            return denial;
        }
        let line = || {
            let mut execs = judged.iter().filter_map(|access| match access {
                Judged::Exec(exec) => Some(exec),
                _ => None,
            });
            execs.find_map(|exec| self.line_rule(exec))
        };
        // Beside a command with a rule they need none.
        if commands.iter().any(|(exec, _)| !exec.companion) {
            commands.retain(|(exec, _)| !exec.companion);
        }
        let missing = commands.first().and_then(|(_, rule)| rule.clone());
        let one = commands.iter().all(|(_, rule)| *rule == missing);
        Decision {
            suggested_rule: missing.filter(|_| one && !others).or_else(line),
            ..denial
        }
    }

    /// The rule with exactly the line of a command, when it has more than that.
    fn line_rule(&self, exec: &Exec) -> Option<String> {
        let no_denials = [&self.deny, &self.ask].iter().all(|rules| {
            rules
                .iter()
                .all(|bound| !matches!(bound.rule.target, Target::Bash(_)))
        });
        exact_line_rule(exec.line.as_ref()?).filter(|_| no_denials)
    }
}
