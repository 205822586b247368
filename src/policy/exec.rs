//! The decision about a command that no deny or ask rule speaks about.

use std::path::PathBuf;

use super::bash::{Coverage, base_name};
use super::breach::opens_nothing;
use super::command::CommandLine;
use super::companion;
use super::decide::allow;
use super::guard::{self, Reach};
use super::listing::{hands_names, listed_by};
use super::order;
use super::overlap::PathGlob;
use super::rule::Target;
use super::scope::{normal, real_or_same};
use super::shell::{self, Opening};
use super::suggest;
use super::sweep::Sweep;
use super::touched::{Touched, touched};
use super::tree;
use super::uncertain;
use super::walkers::sweep;
use super::writes;
use super::{Bound, Decision, Policy};
use crate::event::Decider;

/// A line that a call wants to run, looked at once.
pub(super) struct Line {
    pub(super) commands: Vec<Exec>,
    pub(super) openings: Vec<Opening>,
    /// The rule that allows exactly this text.
    pub(super) exact: Option<String>,
}

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
    pub(super) line: Option<String>,
    /// Whether a program of the line would run outside the workspace.
    pub(super) strays: bool,
    /// Whether it needs no rule beside an allowed command.
    pub(super) companion: bool,
    /// Whether a rule allows another command of the line.
    beside: bool,
    /// Whether nothing but builtins that only compute stands in the line.
    pub(super) only_builtins: bool,
    /// The files that it meets on a walk, or that another command names to it;
    /// none when there are too many.
    pub(super) walked: Option<Vec<PathBuf>>,
    /// Where the names begin that another command names to it, when that is known.
    pub(super) named_below: Option<Vec<String>>,
    /// What its globs, and those of the command that names files to it, may mean.
    pub(super) globs: Vec<PathGlob>,
}

impl Exec {
    /// Whether the command may write what it touches there.
    pub(super) fn may_write(&self, touched: &Touched) -> bool {
        match (&self.command.words, touched.at) {
            (Ok(words), Some(at)) => writes::is_written(words, self.spelled, at),
            (Ok(_) | Err(_), _) => true,
        }
    }

    /// Whether the command only takes note of the files that it is given.
    pub(super) fn only_records(&self) -> bool {
        let words = self.command.words.as_ref();
        words.is_ok_and(|words| writes::only_records(words))
    }

    /// Whether the command leaves what is below its operands as it is.
    pub(super) fn leaves_files_alone(&self) -> bool {
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
        let top = &self.scope.real_workspace;
        let asks = text.contains("--show-toplevel") && top.join(".git").exists();
        let top = asks.then_some(top.as_path());
        let place = shell::Start {
            workspace: &self.scope.workspace,
            top,
            tmpdir: self.temporary.variable.as_deref(),
        };
        let (mut analysis, refusal) = match shell::analyse(text, &place) {
            Ok(analysis) => (analysis, None),
            Err(unread) => (unread.before, Some(unread.refusal)),
        };
        if refusal.is_none() && analysis.commands.is_empty() && analysis.openings.is_empty() {
            // Nothing but assignments: as if it were the command that does nothing.
            analysis
                .commands
                .push(shell::Simple::nothing(&self.scope.workspace));
        }
        self.open_what_is_meant(&mut analysis);
        let alone =
            refusal.is_none() && analysis.commands.len() == 1 && analysis.openings.is_empty();
        let line = (!alone).then(|| text.to_owned());
        let commands = analysis.commands.into_iter().map(CommandLine::of);
        let mut commands: Vec<Exec> = commands
            .map(|command| self.exec(command, line.clone()))
            .collect();
        order::check(&mut commands);
        self.activated(&mut commands, &analysis.openings);
        let strays = commands
            .iter()
            .any(|exec| !exec.command.free && self.away(exec).is_some());
        let beside = commands.iter().any(|exec| exec.companion)
            && commands.iter().any(|exec| self.is_allowed_by_rule(exec));
        let only_builtins = commands.iter().all(|exec| exec.command.free);
        for exec in &mut commands {
            exec.strays = strays;
            exec.beside = beside;
            exec.only_builtins = only_builtins;
        }
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

    /// Where words are not known, the protected paths that they may turn out to
    /// be count as read.
    fn open_what_is_meant(&self, analysis: &mut shell::Analysis) {
        let texts = std::mem::take(&mut analysis.texts);
        let unknown = |command: &shell::Simple| {
            let mut words = command.words.iter();
            !command.free && words.any(|word| word.contains(shell::UNKNOWN))
        };
        if analysis.commands.iter().any(unknown) {
            let meant = texts.into_iter().filter(|text| self.is_off_limits(text));
            analysis.openings.extend(meant.map(|path| Opening {
                path,
                writes: false,
                directories: vec![self.scope.workspace.clone()],
            }));
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
                named_below: None,
                globs: Vec::new(),
                reads_only: true,
                command,
                vetted,
                spelled,
                line,
                strays: false,
                companion: false,
                beside: false,
                only_builtins: false,
            };
        }
        let words = command.words.as_ref();
        let reach = words.map(|words| guard::check(command.own_words(words), 1));
        let named = self.named_to(&command);
        Exec {
            spelled,
            touched: touched(&command, &self.scope),
            reads_only: reach.is_ok_and(|reach| reach == Ok(Reach::Read)),
            walked: self.walked(&command, named.as_ref()),
            globs: globs_of(&command, named.as_ref()),
            named_below: named
                .filter(|_| self.knows_names(&command))
                .map(|named| named.roots),
            companion: companion::is_companion(&command),
            beside: false,
            command,
            vetted,
            line,
            strays: false,
            only_builtins: false,
        }
    }

    /// Whether a rule allows a command that could not do without.
    fn is_allowed_by_rule(&self, exec: &Exec) -> bool {
        !exec.companion && !exec.command.free && self.grant_exec(exec).rule.is_some()
    }

    /// The files that another command names to this one, when that is known.
    fn named_to(&self, command: &CommandLine) -> Option<Sweep> {
        let named = listed_by(&command.named_by.as_ref()?.words)?;
        let known = !named.roots.iter().any(|root| root.contains(shell::UNKNOWN));
        known.then_some(named)
    }

    /// Whether what another command hands to this one is names of such files.
    fn knows_names(&self, command: &CommandLine) -> bool {
        let top = &self.scope.workspace;
        let top = Some(top.as_path()).filter(|top| top.join(".git").exists());
        let namer = command.named_by.as_ref();
        namer.is_some_and(|namer| hands_names(namer, &command.directories, top))
    }

    /// The files that a command meets; none when there are too many, or when
    /// a home directory is among them.
    fn walked(&self, command: &CommandLine, named: Option<&Sweep>) -> Option<Vec<PathBuf>> {
        let Ok(words) = &command.words else {
            return Some(Vec::new());
        };
        let mut own = sweep(words);
        if let Some(walk) = own.as_mut().filter(|_| !command.globs.is_empty()) {
            // Of several names the first may be a pattern, and then it is not.
            if walk.roots.is_empty() {
                walk.roots.push(".".to_owned());
            }
        }
        let program = words.first().map_or("", |word| base_name(word));
        let named = named
            .filter(|_| !opens_nothing(program))
            .map(|named| Sweep {
                // One that walks itself goes on below the directories that it is given.
                depth: named.depth.filter(|_| own.is_none()),
                directories_only: named.directories_only && own.is_none(),
                ..named.clone()
            });
        let mut found = Vec::new();
        for sweep in [own, named].into_iter().flatten() {
            let sweep = self.at_home(sweep, &command.directories)?;
            found.extend(tree::files(&sweep, &command.directories)?);
        }
        Some(found)
    }

    /// A walk with what `~` stands for; none when it goes over a home directory.
    fn at_home(&self, mut sweep: Sweep, directories: &[PathBuf]) -> Option<Sweep> {
        let Some(home) = self.scope.home.as_deref() else {
            return Some(sweep);
        };
        let homes = [home.to_owned(), real_or_same(home)];
        for root in &mut sweep.roots {
            if let Some(rest) = root.strip_prefix('~') {
                let below = rest.trim_start_matches('/');
                *root = home.join(below).display().to_string();
            }
            let over_home = |from: &PathBuf| {
                let root = real_or_same(&normal(&from.join(root.as_str())));
                !root.starts_with(&self.scope.real_workspace)
                    && homes.iter().any(|home| home.starts_with(&root))
            };
            if directories.iter().any(over_home) {
                return None;
            }
        }
        Some(sweep)
    }

    /// Whether a rule allows every command, and so what its redirections open.
    pub(super) fn any_command(&self) -> Option<String> {
        let mut rules = self.allow.iter();
        rules
            .find(|bound| matches!(&bound.rule.target, Target::Bash(pattern) if pattern.is_any()))
            .map(|bound| bound.rule.to_string())
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
        if let Some(decision) = self.grant_builtin(exec) {
            return decision;
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
        if exec.companion && exec.beside {
            let why = "it needs no rule beside an allowed command";
            return allow(Decider::Policy, None, why.to_owned());
        }
        if let Some((bound, Coverage::Refused(why))) =
            covering(|coverage| matches!(coverage, Coverage::Refused(_)))
        {
            refusal.get_or_insert(format!("{} matches, but {why}", bound.rule));
        }
        self.ungranted(exec, refusal, suggestion)
    }

    /// The denial of a command that nothing allows; `refusal` is why a rule that
    /// matches does not.
    fn ungranted(
        &self,
        exec: &Exec,
        refusal: Option<String>,
        suggestion: Option<String>,
    ) -> Decision {
        let mode = self.permissions.mode;
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
                suggest::bash_rule(&exec.command, words, |reach| {
                    self.leaves_workspace(exec, reach).is_none()
                }),
            ),
        };
        self.refused(Decider::Mode, &why, suggestion)
    }

    /// A directory outside the workspace where the command may run.
    fn away<'e>(&self, exec: &'e Exec) -> Option<&'e PathBuf> {
        let away = |directory: &&PathBuf| {
            let place = self.scope.locate(directory);
            !place.is_ok_and(|place| self.scope.contains(&place.real))
        };
        exec.command.directories.iter().find(away)
    }

    /// Why a covered command reaches further than its rule.
    pub(super) fn leaves_workspace(&self, exec: &Exec, reach: Reach) -> Option<String> {
        if reach == Reach::Read {
            return None;
        }
        if let Some(directory) = self.away(exec) {
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
            !touched.place.as_ref().is_ok_and(|place| {
                self.scope.contains(&place.real)
                    || self.temporary.hold(&place.lexical, &self.scope)
                    || self.is_linked_program(exec, touched)
            })
        })?;
        Some(format!(
            "`{}` is outside the workspace, and a prefix rule does not cover that",
            outside.text
        ))
    }
}

/// What the globs of a command may mean, and those of one that names files to it.
fn globs_of(command: &CommandLine, named: Option<&Sweep>) -> Vec<PathGlob> {
    let of_names = named.into_iter().flat_map(|named| &named.only);
    let globs: Vec<&String> = command.globs.iter().chain(of_names).collect();
    let places = command.directories.iter();
    places
        .flat_map(|place| globs.iter().map(|glob| PathGlob::new(glob, place)))
        .collect()
}
