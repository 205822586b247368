//! The decision about a command that no deny or ask rule speaks about.

use super::bash::{CommandLine, Coverage};
use super::decide::allow;
use super::guard::Reach;
use super::rule::{PathAccess, Target};
use super::scope::Unresolved;
use super::suggest;
use super::touched::Touched;
use super::writes;
use super::{Bound, Decision, Mode, Policy};
use crate::event::Decider;

/// A command that a call wants to run, looked at once.
pub(super) struct Exec<'a> {
    pub(super) command: CommandLine<'a>,
    pub(super) touched: Option<Vec<Touched>>,
    /// An exact rule allows this very string.
    pub(super) vetted: bool,
    /// Whether the program is known only to read.
    pub(super) reads_only: bool,
    /// How many of the first words a rule that grants the command spells.
    pub(super) spelled: usize,
}

impl Exec<'_> {
    /// Whether the command may write what it touches there.
    pub(super) fn may_write(&self, touched: &Touched) -> bool {
        match (&self.command.words, touched.at) {
            (Ok(words), Some(at)) => writes::is_written(words, self.spelled, at),
            (Ok(_) | Err(_), _) => true,
        }
    }
}

impl Policy {
    /// Whether a command that no rule denies may run.
    pub(super) fn grant_exec(&self, exec: &Exec<'_>) -> Decision {
        let covering = |wanted: fn(&Coverage) -> bool| {
            self.allow
                .iter()
                .find_map(|bound| match &bound.rule.target {
                    Target::Bash(pattern) => {
                        let coverage = pattern.allows(&exec.command);
                        wanted(&coverage).then_some((bound, coverage))
                    }
                    Target::Path { .. } => None,
                })
        };
        let by_rule = |bound: &Bound| {
            let rule = bound.rule.to_string();
            allow(
                Decider::Rule,
                Some(rule.clone()),
                format!("allowed by {rule}"),
            )
        };
        if let Some((bound, _)) = covering(|coverage| *coverage == Coverage::Exactly) {
            return by_rule(bound);
        }
        let suggestion = suggest::exact_bash_rule(&exec.command);
        if let Some(why) = self.protected_in(exec) {
            return self.refused(Decider::Policy, &why, suggestion);
        }
        if let Some((bound, _)) = covering(|coverage| *coverage == Coverage::Everything) {
            return by_rule(bound);
        }
        let mut refusal = None;
        let arguments = covering(|coverage| matches!(coverage, Coverage::Arguments(_)));
        if let Some((bound, Coverage::Arguments(reach))) = arguments {
            match self.leaves_workspace(exec, reach) {
                None => return by_rule(bound),
                Some(why) => refusal = Some(why),
            }
        }
        if self.permissions.mode == Mode::Bypass {
            return allow(Decider::Mode, None, "allowed by mode bypass".to_owned());
        }
        if let Some((bound, Coverage::Refused(why))) =
            covering(|coverage| matches!(coverage, Coverage::Refused(_)))
        {
            refusal.get_or_insert(format!("{} matches, but {why}", bound.rule));
        }
        let (why, suggestion) = match (refusal, &exec.command.words) {
            (Some(why), _) => (why, suggestion),
            (None, Err(not_plain)) => (
                format!("no rule allows exactly this command, and it is {not_plain}"),
                suggestion,
            ),
            (None, Ok(words)) => (
                format!(
                    "no rule allows this command in mode {}",
                    self.permissions.mode
                ),
                suggest::bash_rule(&exec.command, words),
            ),
        };
        self.refused(Decider::Mode, &why, suggestion)
    }

    /// The first thing among a command's arguments that is protected.
    fn protected_in(&self, exec: &Exec<'_>) -> Option<String> {
        let Some(touched) = &exec.touched else {
            return Some("the command has too many paths to look at".to_owned());
        };
        let kinds: &[PathAccess] = if exec.reads_only {
            &[PathAccess::Read]
        } else {
            &[PathAccess::Read, PathAccess::Write]
        };
        touched.iter().find_map(|touched| match &touched.place {
            Err(Unresolved::Magic) => {
                let text = &touched.text;
                Some(format!("`{text}` is not allowed: {}", Unresolved::Magic))
            }
            Err(_) => None,
            Ok(place) => kinds.iter().find_map(|kind| {
                let protection = self.protections.of(*kind, place)?;
                let (rule, what) = (
                    self.path_rule("bash", *kind, place, Some(&protection)),
                    &protection.what,
                );
                rule.is_none().then(|| {
                    format!(
                        "`{}` is not allowed: it is {what}, and no rule names it",
                        touched.text
                    )
                })
            }),
        })
    }

    /// Why a covered command reaches further than its rule.
    fn leaves_workspace(&self, exec: &Exec<'_>, reach: Reach) -> Option<String> {
        if reach == Reach::Read {
            return None;
        }
        let outside = exec.touched.iter().flatten().find(|touched| {
            !touched
                .place
                .as_ref()
                .is_ok_and(|place| self.scope.contains(&place.real))
        })?;
        Some(format!(
            "`{}` is outside the workspace, and a prefix rule does not cover that",
            outside.text
        ))
    }
}
