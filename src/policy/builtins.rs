//! The decision about what bash does by itself: builtins that only compute.
//!
//! In a sandbox they need no rule. Bash is a process all the same, and what it
//! runs was only read, not seen: without a sandbox a line of builtins is granted
//! by a rule or the mode, as any command is. Beside a command that is granted they
//! run with it.

use std::path::PathBuf;

use super::bash::Coverage;
use super::decide::allow;
use super::exec::Exec;
use super::rule::Target;
use super::scope::normal;
use super::suggest;
use super::{Decision, Enforcement, Policy};
use crate::event::Decider;

impl Policy {
    /// The decision about a builtin that only computes; none where it has to be
    /// granted as any command is.
    pub(super) fn grant_builtin(&self, exec: &Exec) -> Option<Decision> {
        if !exec.command.free {
            return None;
        }
        if exec.only_builtins && self.sandbox == Enforcement::NotEnforced {
            return (!self.is_granted(exec)).then(|| self.without_sandbox(exec));
        }
        Some(self.grant_free(exec))
    }

    /// Whether a rule or the mode grants it as it would any command.
    fn is_granted(&self, exec: &Exec) -> bool {
        let by_rule = self.allow.iter().any(|bound| match &bound.rule.target {
            Target::Bash(pattern) => matches!(
                pattern.allows(&exec.command),
                Coverage::Exactly | Coverage::Everything | Coverage::Arguments(_)
            ),
            Target::Path { .. } | Target::Named(_) => false,
        });
        by_rule || self.permissions.mode.runs_commands(self.sandbox)
    }

    /// Bash itself is a process: where nothing keeps it in, it needs a rule.
    fn without_sandbox(&self, exec: &Exec) -> Decision {
        let words = exec.command.words.as_deref().unwrap_or_default();
        let why = format!(
            "no sandbox is enforced here, and without one even what bash does by itself needs a \
             rule; none allows `{}`",
            exec.command.text
        );
        let suggestion = suggest::bash_rule(&exec.command, words, |reach| {
            self.leaves_workspace(exec, reach).is_none()
        });
        self.refused(Decider::Policy, &why, suggestion)
    }

    /// Whether it may run in a sandbox: `cd` stays inside, unless nothing runs
    /// where it leads. Where a glob leads is known here only.
    fn grant_free(&self, exec: &Exec) -> Decision {
        let free = allow(
            Decider::Policy,
            None,
            "it runs nothing by itself".to_owned(),
        );
        if !matches!(exec.program(), "cd" | "pushd")
            || (!exec.strays && exec.command.globs.is_empty())
            || self.permissions.mode.runs_commands(self.sandbox)
            || self.any_command().is_some()
        {
            return free;
        }
        let words = exec.command.words.iter().flatten().skip(1);
        let mut operands: Vec<&str> = words
            .map(String::as_str)
            .filter(|word| !word.starts_with('-'))
            .collect();
        if operands.is_empty() {
            operands.push("");
        }
        let leads_out = |path: PathBuf| {
            let place = self.scope.locate(&normal(&path));
            !place.is_ok_and(|place| self.scope.contains(&place.real))
        };
        // In a loop it gets the names one after another.
        let mut places = exec.command.directories.iter();
        let leaves = places.any(|from| operands.iter().any(|target| leads_out(from.join(target))));
        if leaves {
            let why = format!("`{}` leaves the workspace", exec.command.text);
            return self.refused(Decider::Policy, &why, None);
        }
        free
    }
}
