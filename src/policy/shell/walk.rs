//! Goes through a tree as bash would run it, and notes every simple command.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::state::{Field, Function, Names, State, Value};
use super::syntax::{Command, Join, Kind, Pipeline, Script, Statement, Word};
use super::{Analysis, Namer, Outer, Refusal, Start, refuse};

/// More commands than this are not gone through.
const STEPS_MAX: usize = 20_000;

/// How deep functions, nested shells and compound commands may be entered.
const DEPTH_MAX: usize = 40;

/// Rounds after which a loop should change nothing any more.
const ROUNDS_MAX: usize = 4;

/// Goes through a line.
#[derive(Debug, Default)]
pub(super) struct Walker {
    pub(super) analysis: Analysis,
    /// The command that runs what is gone through.
    pub(super) outer: Option<Rc<Outer>>,
    /// The fields of the last simple command.
    pub(super) last: Option<Vec<Field>>,
    /// Whether an assignment may have been jumped over (`break`, `return`).
    pub(super) jumps: bool,
    /// Whether a jump was met.
    pub(super) met_jump: bool,
    pub(super) depth: usize,
    /// Where the line begins.
    pub(super) workspace: Option<PathBuf>,
    /// The top of the repository that the workspace is.
    pub(super) top: Option<PathBuf>,
    /// What `$TMPDIR` is.
    pub(super) tmpdir: Option<PathBuf>,
    /// Where the last `cd` leads.
    pub(super) moved: Option<Vec<PathBuf>>,
    /// Where the shell has been before a `cd`.
    pub(super) visited: Vec<PathBuf>,
    /// Whether there was a `cd`.
    pub(super) moves: bool,
    /// What traps run.
    pub(super) traps: Vec<String>,
    /// How many loops and functions are open, out of which a jump leads.
    open_bodies: usize,
    steps: usize,
    defined: Vec<(String, Rc<Command>)>,
    pub(super) called: BTreeSet<String>,
    /// The command that prints what the unknown words are of what is looked at.
    pub(super) named_by: Option<Rc<Namer>>,
}

/// Where a pipeline may leave the shell; none when it ends it.
struct Ends {
    succeeded: Option<State>,
    failed: Option<State>,
}

impl Walker {
    pub(super) fn new(jumps: bool, start: &Start<'_>) -> Self {
        Self {
            jumps,
            workspace: Some(start.workspace.to_owned()),
            top: start.top.map(Path::to_owned),
            tmpdir: start.tmpdir.map(Path::to_owned),
            ..Self::default()
        }
    }

    /// Whether a directory is the workspace, as named or as it is.
    pub(super) fn is_workspace(&self, place: &PathBuf) -> bool {
        self.top.as_ref() == Some(place) || self.workspace.as_ref() == Some(place)
    }

    /// Enters something nested.
    pub(super) fn deeper<T>(
        &mut self,
        go: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth >= DEPTH_MAX {
            return refuse("it is nested too deep to be looked at");
        }
        self.depth += 1;
        let result = go(self);
        self.depth -= 1;
        result
    }

    /// Enters the body of a loop or a function.
    pub(super) fn jumpable<T>(
        &mut self,
        go: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.open_bodies += 1;
        let result = self.deeper(go);
        self.open_bodies -= 1;
        result
    }

    /// Whether a jump may have left out what is being done.
    pub(super) fn may_be_left_out(&self) -> bool {
        self.jumps && self.open_bodies > 0
    }

    pub(super) fn step(&mut self) -> Result<(), Refusal> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return refuse("it runs too many commands to be looked at");
        }
        Ok(())
    }

    pub(super) fn script(&mut self, script: &Script, state: &mut State) -> Result<(), Refusal> {
        self.deeper(|walker| {
            for statement in &script.statements {
                if statement.background {
                    walker.deeper(|walker| walker.statement(statement, &mut state.clone()))?;
                } else {
                    walker.statement(statement, state)?;
                }
            }
            Ok(())
        })
    }

    /// A text that this shell, or one that it starts, runs.
    pub(super) fn nested_text(&mut self, text: &str, state: &mut State) -> Result<(), Refusal> {
        self.deeper(|walker| {
            let script = super::parse(text, 0)?;
            walker.script(&script, state)
        })
    }

    fn statement(&mut self, statement: &Statement, state: &mut State) -> Result<(), Refusal> {
        let mut ends = self.pipeline(&statement.first, state)?;
        for (join, pipeline) in &statement.rest {
            let from = match join {
                Join::And => ends.succeeded.take(),
                Join::Or => ends.failed.take(),
            };
            // What cannot be reached is judged all the same.
            let reachable = from.is_some();
            let mut start = from.unwrap_or_else(|| state.clone());
            let next = self.pipeline(pipeline, &mut start)?;
            if !reachable {
                continue;
            }
            match join {
                Join::And => {
                    ends.succeeded = next.succeeded;
                    ends.failed = joined(ends.failed, next.failed);
                }
                Join::Or => {
                    ends.failed = next.failed;
                    ends.succeeded = joined(ends.succeeded, next.succeeded);
                }
            }
        }
        if let Some(end) = joined(ends.succeeded, ends.failed) {
            *state = end;
        }
        if state.is_lost() {
            return refuse("it changes its directory too often");
        }
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, state: &mut State) -> Result<Ends, Refusal> {
        let mut ends = match pipeline.commands.as_slice() {
            [only] => {
                let before = state.clone();
                self.command(only, state)?;
                self.ends_of(only, before, state)
            }
            commands => {
                self.deeper(|walker| walker.parts(commands, state))?;
                both(state)
            }
        };
        if pipeline.negated {
            std::mem::swap(&mut ends.succeeded, &mut ends.failed);
        }
        Ok(ends)
    }

    /// `cd` changes the directory when it succeeds, and `exit` has no end.
    fn ends_of(&mut self, command: &Command, before: State, after: &State) -> Ends {
        let program = match &command.kind {
            Kind::Simple { words, .. } => words.first().and_then(Word::bare),
            Kind::Group(script) => {
                let last = script
                    .statements
                    .last()
                    .filter(|last| last.rest.is_empty() && !last.background);
                let only = last.and_then(|last| match last.first.commands.as_slice() {
                    [only] => Some(only),
                    _ => None,
                });
                return match only {
                    Some(only) if is_exit(only) && !before.functions.contains_key("exit") => Ends {
                        succeeded: None,
                        failed: None,
                    },
                    _ => both(after),
                };
            }
            _ => None,
        };
        let known = program.filter(|program| !before.functions.contains_key(*program));
        match known {
            Some("exit") => Ends {
                succeeded: None,
                failed: None,
            },
            Some("cd" | "pushd" | "popd") => {
                let mut succeeded = after.clone();
                if let Some(moved) = self.moved.take() {
                    succeeded.directories = moved;
                }
                Ends {
                    succeeded: Some(succeeded),
                    failed: Some(before),
                }
            }
            _ => both(after),
        }
    }

    pub(super) fn command(&mut self, command: &Command, state: &mut State) -> Result<(), Refusal> {
        self.step()?;
        let mut replaced = false;
        for redirect in &command.redirections {
            replaced |= self.redirect(redirect, state)?;
        }
        let outside = (state.fed, state.names.clone());
        if replaced {
            state.fed = true;
            state.names = None;
        }
        self.deeper(|walker| walker.kind(&command.kind, state))?;
        (state.fed, state.names) = outside;
        Ok(())
    }

    fn kind(&mut self, kind: &Kind, state: &mut State) -> Result<(), Refusal> {
        match kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words, state),
            Kind::Group(script) => self.script(script, state),
            Kind::Subshell(script) => self.script(script, &mut state.clone()),
            Kind::If {
                branches,
                otherwise,
            } => self.branches(branches, otherwise.as_ref(), state),
            Kind::While { condition, body } => self.repeat(state, |walker, state| {
                walker.script(condition, state)?;
                walker.script(body, state)
            }),
            Kind::For {
                name,
                words,
                body,
                select,
            } => {
                if *select {
                    self.set("REPLY", Value::Unknown, state)?;
                }
                self.for_each(name, words.as_deref(), body, state)
            }
            Kind::Counted { header, body } => {
                self.arithmetic(header, state)?;
                self.repeat(state, |walker, state| {
                    walker.arithmetic(header, state)?;
                    walker.script(body, state)
                })
            }
            Kind::Case { subject, arms } => self.case(subject, arms, state),
            Kind::Function { name, body } => {
                self.define(name, body, state);
                Ok(())
            }
            Kind::Test(words) => self.test(words, state),
            Kind::Arithmetic(pieces) => self.arithmetic(pieces, state).map(drop),
            Kind::Coproc(command) => {
                let mut part = state.clone();
                part.fed = true;
                self.command(command, &mut part)?;
                self.set("COPROC_PID", Value::Number, state)?;
                self.set("COPROC", Value::Unknown, state)
            }
        }
    }

    fn branches(
        &mut self,
        branches: &[(Script, Script)],
        otherwise: Option<&Script>,
        state: &mut State,
    ) -> Result<(), Refusal> {
        let mut ends: Option<State> = None;
        for (condition, body) in branches {
            self.script(condition, state)?;
            let mut taken = state.clone();
            self.script(body, &mut taken)?;
            ends = joined(ends, Some(taken));
        }
        if let Some(otherwise) = otherwise {
            self.script(otherwise, state)?;
        }
        if let Some(ends) = ends {
            *state = ends.joined(state);
        }
        Ok(())
    }

    /// A body that runs any number of times.
    pub(super) fn repeat(
        &mut self,
        state: &mut State,
        mut body: impl FnMut(&mut Self, &mut State) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        for _ in 0..ROUNDS_MAX {
            let mut round = state.clone();
            self.jumpable(|walker| body(walker, &mut round))?;
            let both = state.clone().joined(&round);
            if both == *state {
                return Ok(());
            }
            *state = both;
        }
        refuse("a loop changes what its commands mean in every round")
    }

    fn for_each(
        &mut self,
        name: &str,
        words: Option<&[Word]>,
        body: &Script,
        state: &mut State,
    ) -> Result<(), Refusal> {
        let fields = match (words, &state.arguments) {
            (Some(words), _) => self.all_fields(words, state)?,
            (None, Some(arguments)) => arguments.clone(),
            (None, None) => vec![Field::anything()],
        };
        for field in fields {
            let value = match field.known() {
                Some(text) => Value::Known(text.to_owned()),
                None if field.glob && !field.splits => Value::Names(Names::of(&field)),
                None => Value::Unknown,
            };
            if matches!(value, Value::Known(_)) {
                self.set_loop_variable(name, value, state)?;
                self.jumpable(|walker| walker.script(body, state))?;
                continue;
            }
            self.repeat(state, |walker, state| {
                walker.set_loop_variable(name, value.clone(), state)?;
                walker.script(body, state)
            })?;
        }
        Ok(())
    }

    fn case(
        &mut self,
        subject: &Word,
        arms: &[(Vec<Word>, Script)],
        state: &mut State,
    ) -> Result<(), Refusal> {
        self.text(&subject.pieces, state)?;
        let before = state.clone();
        for (patterns, body) in arms {
            for pattern in patterns {
                self.text(&pattern.pieces, state)?;
            }
            // An arm is entered from the begin, or from the one before it.
            let mut arm = state.clone();
            self.script(body, &mut arm)?;
            *state = before.clone().joined(&arm).joined(state);
        }
        Ok(())
    }

    fn define(&mut self, name: &str, body: &Rc<Command>, state: &mut State) {
        let known = self
            .defined
            .iter()
            .any(|(_, other)| Rc::ptr_eq(other, body));
        if !known {
            self.defined.push((name.to_owned(), Rc::clone(body)));
        }
        let function = Function {
            bodies: vec![Rc::clone(body)],
            perhaps: false,
        };
        match state.functions.get_mut(name) {
            Some(old) if self.may_be_left_out() => old.bodies.push(Rc::clone(body)),
            _ => {
                let perhaps = self.may_be_left_out();
                state.functions.insert(
                    name.to_owned(),
                    Function {
                        perhaps,
                        ..function
                    },
                );
            }
        }
    }

    /// What may run although no command of the line says so: traps, and
    /// functions that nothing calls, by what they are exported to.
    pub(super) fn afterwards(&mut self, start: &State) -> Result<(), Refusal> {
        if self.moves && !self.traps.is_empty() {
            return refuse("a trap may run in one directory or in another");
        }
        let mut at = 0;
        while let Some((name, body)) = self.defined.get(at).cloned() {
            at += 1;
            if !self.called.contains(&name) {
                let mut state = start.clone();
                state.forget_values();
                self.command(&body, &mut state)?;
            }
        }
        Ok(())
    }
}

fn both(state: &State) -> Ends {
    Ends {
        succeeded: Some(state.clone()),
        failed: Some(state.clone()),
    }
}

fn joined(one: Option<State>, two: Option<State>) -> Option<State> {
    match (one, two) {
        (Some(one), Some(two)) => Some(one.joined(&two)),
        (one, two) => one.or(two),
    }
}

fn is_exit(command: &Command) -> bool {
    matches!(&command.kind, Kind::Simple { words, .. } if words.first().and_then(Word::bare) == Some("exit"))
}
