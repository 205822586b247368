//! The decision about a command that no deny or ask rule speaks about.

use std::path::{Path, PathBuf};

use super::bash::{CommandLine, Coverage};
use super::command::{NotPlain, split};
use super::decide::allow;
use super::globs;
use super::guard::{self, Reach};
use super::list;
use super::pattern::BoundPattern;
use super::rule::{PathAccess, Target};
use super::scope::{Located, Unresolved};
use super::suggest;
use super::sweep::sweep;
use super::touched::{Touched, touched};
use super::tree;
use super::writes;
use super::{Bound, Decision, Policy};
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
    /// The line that it is a part of.
    line: Option<&'a str>,
    /// The files that it meets on a walk; none when there are too many.
    walked: Option<Vec<PathBuf>>,
}

impl Exec<'_> {
    /// Whether the command may write what it touches there.
    pub(super) fn may_write(&self, touched: &Touched) -> bool {
        match (&self.command.words, touched.at) {
            (Ok(words), Some(at)) => writes::is_written(words, self.spelled, at),
            (Ok(_) | Err(_), _) => true,
        }
    }

    /// Whether the command leaves what is below its operands as it is.
    fn leaves_files_alone(&self) -> bool {
        let words = self.command.words.as_ref();
        words.is_ok_and(|words| writes::leaves_files_alone(words))
    }
}

impl Policy {
    /// The commands of a line that are judged by themselves: several when it
    /// is a list of plain commands, else one.
    pub(super) fn commands<'a>(&self, text: &'a str) -> Vec<Exec<'a>> {
        let whole = CommandLine::new(text);
        let by_exact_rule = |rules: &[Bound]| {
            rules.iter().any(|bound| match &bound.rule.target {
                Target::Bash(pattern) => pattern.is_exactly(&whole),
                Target::Path { .. } | Target::Named(_) => false,
            })
        };
        let as_whole = whole.words.is_ok()
            || [&self.allow, &self.ask, &self.deny]
                .map(|rules| by_exact_rule(rules))
                .contains(&true);
        let parts = match split(text) {
            Ok(parts) if !as_whole => parts,
            _ => return vec![self.exec(whole, None)],
        };
        match list::check(&parts) {
            Err(reason) => vec![self.exec(CommandLine::unclear(text, NotPlain { reason }), None)],
            Ok(()) => parts
                .into_iter()
                .map(|part| self.exec(CommandLine::of(part), Some(text)))
                .collect(),
        }
    }

    fn exec<'a>(&self, command: CommandLine<'a>, line: Option<&'a str>) -> Exec<'a> {
        let (command, expanded) = match globs::expand(&command, &self.scope) {
            Ok(expanded) => (command, expanded),
            Err(not_plain) => (CommandLine::unclear(command.text, not_plain), Vec::new()),
        };
        let vetted = self.allow.iter().any(|bound| match &bound.rule.target {
            Target::Bash(pattern) => pattern.allows(&command) == Coverage::Exactly,
            Target::Path { .. } | Target::Named(_) => false,
        });
        let spelled = self.allow.iter().map(|bound| match &bound.rule.target {
            Target::Bash(pattern) => pattern.spells(&command),
            Target::Path { .. } | Target::Named(_) => 0,
        });
        let words = command.words.as_ref();
        let mut walk = words.ok().and_then(|words| sweep(words));
        if let Some(walk) = walk.as_mut().filter(|_| !expanded.is_empty()) {
            // Of several names the first may be a pattern, and then it is not.
            if walk.roots.is_empty() {
                walk.roots.push(".".to_owned());
            }
            walk.roots
                .extend(expanded.iter().map(|(_, name)| name.clone()));
        }
        Exec {
            spelled: spelled.max().unwrap_or(0),
            touched: touched(&command, &expanded, &self.scope),
            reads_only: words.is_ok_and(|words| guard::check(words, 1) == Ok(Reach::Read)),
            walked: walk.map_or_else(|| Some(Vec::new()), |walk| tree::files(&walk, &self.scope)),
            command,
            vetted,
            line,
        }
    }

    /// Why a command touches what a path rule that denies speaks about; a rule
    /// without a pattern speaks about every path.
    pub(super) fn command_breaks(
        &self,
        kind: PathAccess,
        pattern: Option<&BoundPattern>,
        exec: &Exec<'_>,
    ) -> Option<String> {
        // An exact rule is the author's word that this very command is fine:
        // `bash test.sh` may run though `Edit(test.sh)` is denied.
        if kind == PathAccess::Write && (exec.reads_only || exec.vetted) {
            return None;
        }
        let (Some(touched), Some(walked)) = (&exec.touched, &exec.walked) else {
            return Some("a command with that many paths is".to_owned());
        };
        let denies = |path: &Path| pattern.is_none_or(|pattern| pattern.denies(path));
        let counts = |touched: &&Touched| kind == PathAccess::Read || exec.may_write(touched);
        let hit = touched.iter().filter(counts).find(|touched| {
            touched.place.as_ref().is_ok_and(|place| {
                let above = |pattern: &BoundPattern| {
                    pattern.is_below(&place.real) && !exec.leaves_files_alone()
                };
                denies(&place.real)
                    || denies(&place.lexical)
                    || (kind == PathAccess::Write && pattern.is_some_and(above))
            })
        });
        if let Some(hit) = hit {
            return Some(format!("a command with `{}` is", hit.text));
        }
        if kind == PathAccess::Write {
            let words = exec.command.words.as_ref().ok()?;
            let inside = pattern.is_none_or(|pattern| pattern.is_inside(&self.scope));
            let wide = inside && writes::rewrites_tree(words);
            return wide.then(|| "a command that may rewrite every file is".to_owned());
        }
        let met = walked.iter().find(|path| denies(path))?;
        Some(format!(
            "a command that also reads {} is",
            self.scope.shown(met)
        ))
    }

    /// A rule that would do for a part would not do for its line.
    pub(super) fn suggested(&self, exec: &Exec<'_>, decision: Decision) -> Decision {
        let Some(line) = exec.line.filter(|_| !decision.is_allowed()) else {
            return decision;
        };
        let no_denials = [&self.deny, &self.ask].iter().all(|rules| {
            rules
                .iter()
                .all(|bound| !matches!(bound.rule.target, Target::Bash(_)))
        });
        Decision {
            suggested_rule: suggest::exact_bash_rule(&CommandLine::new(line))
                .filter(|_| no_denials),
            ..decision
        }
    }

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
                    Target::Path { .. } | Target::Named(_) => None,
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
        let mode = self.permissions.mode;
        if mode.runs_commands(self.sandbox) {
            return allow(Decider::Mode, None, format!("allowed by mode {mode}"));
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
                    "no rule allows this command {}",
                    mode.refuses_commands(self.sandbox)
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
        let named = touched.iter().find_map(|touched| match &touched.place {
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
        });
        named.or_else(|| self.protected_on_walk(exec))
    }

    /// The first protected file that a command would read on its walk.
    fn protected_on_walk(&self, exec: &Exec<'_>) -> Option<String> {
        let Some(walked) = &exec.walked else {
            let why = "the command walks over too many files to look at, or over the state of \
                       processes";
            return Some(why.to_owned());
        };
        walked.iter().find_map(|path| {
            let place = Located {
                lexical: path.clone(),
                real: path.clone(),
            };
            let protection = self.protections.of(PathAccess::Read, &place)?;
            let rule = self.path_rule("bash", PathAccess::Read, &place, Some(&protection));
            rule.is_none().then(|| {
                format!(
                    "the command would also read {}, which is {}: name other directories, or \
                     leave it out (`--exclude=…`)",
                    self.scope.shown(path),
                    protection.what
                )
            })
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
