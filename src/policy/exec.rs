//! The decision about a command that no deny or ask rule speaks about.

use std::path::{Path, PathBuf};

use super::bash::{Coverage, base_name};
use super::command::CommandLine;
use super::decide::allow;
use super::guard::{self, Reach};
use super::order;
use super::pattern::BoundPattern;
use super::rule::{PathAccess, Target};
use super::scope::{Located, Unresolved, normal};
use super::shell::{self, Opening};
use super::suggest;
use super::sweep::sweep;
use super::touched::{Touched, touched};
use super::tree;
use super::uncertain;
use super::writes;
use super::{Bound, Decision, Policy};
use crate::event::Decider;

/// Programs whose words are texts and not paths.
const PRINTERS: &[&str] = &[
    "basename", "dirname", "echo", "expr", "printf", "seq", "sleep", "tr",
];

/// A line that a call wants to run, looked at once.
pub(super) struct Line {
    pub(super) commands: Vec<Exec>,
    pub(super) openings: Vec<Opening>,
    /// The rule that allows exactly this text.
    pub(super) exact: Option<String>,
}

/// A path that a redirection may open, and where it leads.
pub(super) type Opened = (PathBuf, Result<Located, Unresolved>);

/// A command that a call wants to run, looked at once.
pub(super) struct Exec {
    pub(super) command: CommandLine,
    pub(super) touched: Option<Vec<Touched>>,
    /// An exact rule allows this very string.
    pub(super) vetted: bool,
    /// Whether the program is known only to read.
    pub(super) reads_only: bool,
    /// How many of the first words a rule that grants the command spells.
    pub(super) spelled: usize,
    /// The line, when it has more than this command.
    line: Option<String>,
    /// The files that it meets on a walk; none when there are too many.
    walked: Option<Vec<PathBuf>>,
}

impl Exec {
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

    pub(super) fn program(&self) -> &str {
        let words = self.command.words.as_ref().ok();
        words
            .and_then(|words| words.first())
            .map_or("", |word| base_name(word))
    }
}

impl Policy {
    /// What a line runs and opens.
    pub(super) fn line(&self, text: &str) -> Line {
        let exactly = |rules: &[Bound]| {
            let mut rules = rules.iter();
            rules
                .find(|bound| matches!(&bound.rule.target, Target::Bash(pattern) if pattern.is_exactly(text)))
                .map(|bound| bound.rule.to_string())
        };
        let exact = exactly(&self.allow);
        let unclear = |refusal| {
            let directories = vec![self.scope.workspace.clone()];
            self.exec(CommandLine::unclear(text, refusal, directories), None)
        };
        let (mut analysis, refusal) = match shell::analyse(text, &self.scope.workspace) {
            Ok(analysis) => (analysis, None),
            Err(unread) => (unread.before, Some(unread.refusal)),
        };
        if refusal.is_none() && analysis.commands.is_empty() && analysis.openings.is_empty() {
            // Nothing but assignments: as if it were the command that does nothing.
            analysis
                .commands
                .push(shell::Simple::nothing(&self.scope.workspace));
        }
        let alone =
            refusal.is_none() && analysis.commands.len() == 1 && analysis.openings.is_empty();
        let line = (!alone).then(|| text.to_owned());
        let commands = analysis.commands.into_iter().map(CommandLine::of);
        let mut commands: Vec<Exec> = commands
            .map(|command| self.exec(command, line.clone()))
            .collect();
        order::check(&mut commands);
        commands.extend(refusal.map(unclear));
        if [&self.ask, &self.deny]
            .iter()
            .any(|rules| exactly(rules).is_some())
        {
            // A rule about this very text is about the text: to the others it
            // is what its commands are.
            let reason = "a rule names exactly this text".to_owned();
            commands.push(Exec {
                vetted: true,
                ..unclear(shell::Refusal { reason })
            });
        }
        Line {
            commands,
            openings: analysis.openings,
            exact,
        }
    }

    fn exec(&self, command: CommandLine, line: Option<String>) -> Exec {
        let vetted = self.allow.iter().any(|bound| match &bound.rule.target {
            Target::Bash(pattern) => pattern.allows(&command) == Coverage::Exactly,
            Target::Path { .. } | Target::Named(_) => false,
        });
        let spelled = self.allow.iter().map(|bound| match &bound.rule.target {
            Target::Bash(pattern) => pattern.spells(&command),
            Target::Path { .. } | Target::Named(_) => 0,
        });
        let spelled = spelled.max().unwrap_or(0);
        if command.free {
            return Exec {
                touched: Some(Vec::new()),
                walked: Some(Vec::new()),
                reads_only: true,
                command,
                vetted,
                spelled,
                line,
            };
        }
        let words = command.words.as_ref();
        let mut walk = words.ok().and_then(|words| sweep(words));
        if let Some(walk) = walk.as_mut().filter(|_| command.had_globs) {
            // Of several names the first may be a pattern, and then it is not.
            if walk.roots.is_empty() {
                walk.roots.push(".".to_owned());
            }
        }
        let reach = words.map(|words| guard::check(command.own_words(words), 1));
        Exec {
            spelled,
            touched: touched(&command, &self.scope),
            reads_only: reach.is_ok_and(|reach| reach == Ok(Reach::Read)),
            walked: walk.map_or_else(
                || Some(Vec::new()),
                |walk| tree::files(&walk, &command.directories),
            ),
            command,
            vetted,
            line,
        }
    }

    /// The paths that a redirection may open, as named and located; an error
    /// when that is not known.
    pub(super) fn opened(&self, opening: &Opening) -> Result<Vec<Opened>, String> {
        if opening.path.contains(shell::UNKNOWN) {
            return Err(opening.path.replace(shell::UNKNOWN, "…"));
        }
        let named = opening.path.replace(shell::NUMBER, "0");
        if opening.writes && named != opening.path {
            return Err(named);
        }
        let mut paths = Vec::new();
        for directory in &opening.directories {
            let path = match (named.strip_prefix("~/"), &self.scope.home) {
                (Some(rest), Some(home)) => home.join(rest),
                (None, Some(home)) if named == "~" => home.clone(),
                _ => directory.join(&named),
            };
            let mut places = vec![normal(&path)];
            // The kernel follows a link before it goes up: `link/../x`.
            if opening.path.contains("..")
                && let Some(parent) = path.parent().and_then(|parent| parent.canonicalize().ok())
            {
                places.extend(path.file_name().map(|name| parent.join(name)));
            }
            paths.extend(places.into_iter().map(|path| {
                let place = self.scope.locate(&path);
                (path, place)
            }));
        }
        Ok(paths)
    }

    /// Whether a rule allows every command, and so what its redirections open.
    pub(super) fn any_command(&self) -> Option<String> {
        let mut rules = self.allow.iter();
        rules
            .find(|bound| matches!(&bound.rule.target, Target::Bash(pattern) if pattern.is_any()))
            .map(|bound| bound.rule.to_string())
    }

    /// Why a command touches what a path rule that denies speaks about; a rule
    /// without a pattern speaks about every path.
    pub(super) fn command_breaks(
        &self,
        kind: PathAccess,
        pattern: Option<&BoundPattern>,
        exec: &Exec,
    ) -> Option<String> {
        // An exact rule is the author's word that this very command is fine:
        // `bash test.sh` may run though `Edit(test.sh)` is denied.
        if kind == PathAccess::Write && (exec.reads_only || exec.vetted) {
            return None;
        }
        if let Err(unclear) = &exec.command.words
            && !exec.vetted
        {
            return Some(format!(
                "a command of which cannot be said what it touches ({unclear}) is"
            ));
        }
        let (Some(touched), Some(walked)) = (&exec.touched, &exec.walked) else {
            return Some("a command with that many paths is".to_owned());
        };
        let denies = |path: &Path| pattern.is_none_or(|pattern| pattern.denies(path));
        let counts = |touched: &&Touched| kind == PathAccess::Read || exec.may_write(touched);
        let hit = touched.iter().filter(counts).find(|touched| {
            // What it names may be what is denied.
            if touched.is_uncertain() && !PRINTERS.contains(&exec.program()) {
                return true;
            }
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
            let wide = inside && (writes::rewrites_tree(words) || writes::unpacks(words));
            return wide.then(|| "a command that may rewrite every file is".to_owned());
        }
        let met = walked.iter().find(|path| denies(path))?;
        Some(format!(
            "a command that also reads {} is",
            self.scope.shown(met)
        ))
    }

    /// A rule that would do for a part would not do for its line.
    pub(super) fn suggested(&self, exec: &Exec, decision: Decision) -> Decision {
        let Some(line) = exec.line.as_ref().filter(|_| !decision.is_allowed()) else {
            return decision;
        };
        let no_denials = [&self.deny, &self.ask].iter().all(|rules| {
            rules
                .iter()
                .all(|bound| !matches!(bound.rule.target, Target::Bash(_)))
        });
        Decision {
            suggested_rule: suggest::exact_line_rule(line).filter(|_| no_denials),
            ..decision
        }
    }

    /// Whether a command that no rule denies may run.
    pub(super) fn grant_exec(&self, exec: &Exec) -> Decision {
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
        if exec.command.free {
            return self.grant_free(exec);
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
                format!("no rule allows exactly this command, and {not_plain}"),
                suggestion,
            ),
            (None, Ok(words)) => (
                format!(
                    "no rule allows {} {}",
                    match exec.line {
                        Some(_) => format!("`{}`", exec.command.text),
                        None => "this command".to_owned(),
                    },
                    mode.refuses_commands(self.sandbox)
                ),
                suggest::bash_rule(&exec.command, words),
            ),
        };
        self.refused(Decider::Mode, &why, suggestion)
    }

    /// Whether a builtin that only computes may run: `cd` stays inside.
    fn grant_free(&self, exec: &Exec) -> Decision {
        let free = allow(
            Decider::Policy,
            None,
            "it runs nothing by itself".to_owned(),
        );
        if exec.program() != "cd"
            || self.permissions.mode.runs_commands(self.sandbox)
            || self.any_command().is_some()
        {
            return free;
        }
        let operands = exec.command.words.iter().flatten().skip(1);
        let target = operands.filter(|word| !word.starts_with('-')).last();
        let leads_out = |directory: &PathBuf| {
            let path = normal(&directory.join(target.map_or("", String::as_str)));
            !self
                .scope
                .locate(&path)
                .is_ok_and(|place| self.scope.contains(&place.real))
        };
        if exec.command.directories.iter().any(leads_out) {
            let why = format!("`{}` leaves the workspace", exec.command.text);
            return self.refused(Decider::Policy, &why, None);
        }
        free
    }

    /// The first thing among a command's arguments that is protected.
    fn protected_in(&self, exec: &Exec) -> Option<String> {
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
    fn protected_on_walk(&self, exec: &Exec) -> Option<String> {
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
    fn leaves_workspace(&self, exec: &Exec, reach: Reach) -> Option<String> {
        if reach == Reach::Read {
            return None;
        }
        let away = |directory: &&PathBuf| {
            let place = self.scope.locate(directory);
            !place.is_ok_and(|place| self.scope.contains(&place.real))
        };
        if let Some(directory) = exec.command.directories.iter().find(away) {
            let shown = directory.display();
            return Some(format!("it would run in {shown}, outside the workspace"));
        }
        let words = exec.command.words.as_deref().unwrap_or_default();
        let unnamed = |touched: &&Touched| {
            let text = touched
                .at
                .is_some_and(|at| uncertain::takes_text(words, at));
            touched.is_uncertain() && !text && !guard::has_subcommands(words)
        };
        if let Some(uncertain) = exec.touched.iter().flatten().find(unnamed) {
            let text = &uncertain.text;
            return Some(format!(
                "it is not known where `{text}` is, and the program may write there"
            ));
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
