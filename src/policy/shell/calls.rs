//! Simple commands: what their first word means, and what they run.

use std::rc::Rc;

use super::builtin::Standing;
use super::plain::split_assignment;
use super::state::{Field, Function, State, Value};
use super::syntax::{Assigned, Assignment, Word};
use super::walk::Walker;
use super::{Glob, Outer, Refusal, Simple, refuse};
use crate::policy::assignment::{CODE_PATH, is_workspace_path, loads_workspace};

/// Programs that run what they read, unless they are given a file.
const INTERPRETERS: &[&str] = &[
    "awk", "irb", "jshell", "lua", "luajit", "node", "nodejs", "perl", "php", "pypy", "python",
    "ruby", "tclsh",
];

/// Programs that run the commands which they read, whatever their arguments.
const READ_COMMANDS: &[&str] = &[
    "at", "batch", "crontab", "dc", "ed", "ex", "gdb", "lldb", "m4", "nvim", "red", "vi", "view",
    "vim",
];

/// More elements than this are not kept.
const LIST_MAX: usize = 64;

impl Walker {
    pub(super) fn simple(
        &mut self,
        assignments: &[Assignment],
        words: &[Word],
        state: &mut State,
    ) -> Result<(), Refusal> {
        let fields = self.all_fields(words, state)?;
        let Some(first) = words.first() else {
            for assignment in assignments {
                self.assign(assignment, state)?;
            }
            return Ok(());
        };
        if !first.is_literal() {
            return refuse("its command word is not literal, so what runs cannot be known");
        }
        let name = first.literal_text();
        let function = state.functions.get(&name).cloned();
        for assignment in assignments {
            self.assign_for_one(assignment, &fields, function.is_some(), state)?;
        }
        if let Some(function) = function {
            self.call(&name, &function, fields.get(1..).unwrap_or_default(), state)?;
            if !function.perhaps {
                self.last = None;
                return Ok(());
            }
        }
        self.run(&fields, words.get(1..).unwrap_or_default(), state)?;
        self.last = Some(fields);
        Ok(())
    }

    /// An assignment that holds for one command.
    fn assign_for_one(
        &mut self,
        assignment: &Assignment,
        fields: &[Field],
        is_function: bool,
        state: &mut State,
    ) -> Result<(), Refusal> {
        let mut inner = state.clone();
        let words: Vec<&str> = fields.iter().map(|field| field.text.as_str()).collect();
        let command = words.first().copied().unwrap_or_default();
        let splits_input =
            assignment.name == "IFS" && matches!(command, "read" | "mapfile" | "readarray");
        if splits_input && !is_function && assignment.subscript.is_none() {
            if let Assigned::Scalar(word) = &assignment.value {
                self.text(&word.pieces, &mut inner)?;
            }
            return Ok(());
        }
        if let Assigned::Scalar(word) = &assignment.value
            && assignment.name == CODE_PATH
            && loads_workspace(&words)
            && !is_function
            && !assignment.append
            && assignment.subscript.is_none()
            && let Value::Known(value) = self.assigned(word, &mut inner)?
            && is_workspace_path(&value)
        {
            return Ok(());
        }
        self.assign(assignment, &mut inner)?;
        if is_function {
            state.values.insert(assignment.name.clone(), Value::Unknown);
        }
        Ok(())
    }

    pub(super) fn assign(
        &mut self,
        assignment: &Assignment,
        state: &mut State,
    ) -> Result<(), Refusal> {
        let name = &assignment.name;
        if let Some(subscript) = &assignment.subscript {
            let plain = subscript
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
            if !plain {
                return refuse(format!(
                    "it assigns to an element of `{name}` by an expression"
                ));
            }
            self.expression(subscript, state)?;
        }
        let value = match &assignment.value {
            Assigned::Scalar(word) => self.assigned(word, state)?,
            Assigned::Array(elements) => self.elements_of(elements, state)?,
        };
        let value = match (assignment.append, assignment.subscript.is_some()) {
            (false, false) => value,
            (_, true) => {
                // What the element is called is checked with the name.
                self.set(name, value, state)?;
                Value::Unknown
            }
            (true, false) => match (state.values.get(name), value) {
                (Some(Value::Known(old)), Value::Known(new)) => Value::Known(format!("{old}{new}")),
                (Some(Value::List(old)), Value::List(new)) => {
                    let all = [old.as_slice(), &new].concat();
                    if all.len() > LIST_MAX {
                        Value::Unknown
                    } else {
                        Value::List(all)
                    }
                }
                _ => Value::Unknown,
            },
        };
        self.set(name, value, state)
    }

    fn elements_of(&mut self, elements: &[Word], state: &mut State) -> Result<Value, Refusal> {
        let mut keyed = false;
        for element in elements {
            let text = match element.pieces.first() {
                Some(super::syntax::Piece::Text {
                    text,
                    quoted: false,
                }) => text.as_str(),
                _ => "",
            };
            let Some(rest) = text.strip_prefix('[') else {
                continue;
            };
            keyed = true;
            let key = rest.split(']').next().unwrap_or_default();
            let plain = !key.is_empty()
                && key
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
            if !plain {
                return refuse("an array has a key that is an expression");
            }
            self.expression(key, state)?;
        }
        let fields = self.all_fields(elements, state)?;
        Ok(if keyed || fields.len() > LIST_MAX {
            Value::Unknown
        } else {
            Value::List(fields)
        })
    }

    fn call(
        &mut self,
        name: &str,
        function: &Function,
        arguments: &[Field],
        state: &mut State,
    ) -> Result<(), Refusal> {
        self.called.insert(name.to_owned());
        let before = state.clone();
        // What is local inside is as before outside.
        for body in &function.bodies {
            let mut inside = before.clone();
            inside.arguments = Some(arguments.to_vec());
            self.jumpable(|walker| walker.command(body, &mut inside))?;
            inside.arguments.clone_from(&before.arguments);
            *state = state.clone().joined(&inside);
        }
        Ok(())
    }

    /// A command that is no function: a builtin or a program. `words` are its
    /// arguments before expansion, where they are at hand.
    pub(super) fn run(
        &mut self,
        fields: &[Field],
        words: &[Word],
        state: &mut State,
    ) -> Result<(), Refusal> {
        self.step()?;
        let Some(first) = fields.first() else {
            return Ok(());
        };
        if !first.literal {
            return refuse("the word for a command is not literal, so what runs cannot be known");
        }
        let before = state.directories.clone();
        let notes = match self.builtin(fields, words, state)? {
            Standing::Free => Some(Notes::Free),
            Standing::Judged => Some(Notes::Judged),
            Standing::Program => None,
        };
        if let Some(notes) = notes {
            let after = std::mem::replace(&mut state.directories, before);
            self.note(fields, None, notes, state);
            state.directories = after;
            return Ok(());
        }
        self.program(fields, state)
    }

    /// A program, also where a builtin has its name.
    pub(super) fn program(&mut self, fields: &[Field], state: &mut State) -> Result<(), Refusal> {
        self.step()?;
        let Some(first) = fields.first() else {
            return Ok(());
        };
        if !first.literal {
            return refuse("the word for a command is not literal, so what runs cannot be known");
        }
        if matches!(first.text.as_str(), "true" | "false" | "test" | "[") {
            self.note(fields, None, Notes::Free, state);
            return Ok(());
        }
        if self.look_through(fields, state)? {
            return Ok(());
        }
        let base = first.text.rsplit('/').next().unwrap_or_default();
        let versionless = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let rest = fields.get(1..).unwrap_or_default();
        let runs = |name: &&str| runs_input(name, rest);
        if state.fed && [base, versionless].iter().any(runs) {
            return refuse(format!("`{base}` reads its program from standard input"));
        }
        self.note(fields, None, Notes::Judged, state);
        Ok(())
    }

    /// Notes a command, once.
    pub(super) fn note(
        &mut self,
        fields: &[Field],
        own: Option<Vec<String>>,
        notes: Notes,
        state: &State,
    ) {
        let mut words: Vec<String> = Vec::new();
        let mut globs = Vec::new();
        for field in fields {
            if field.glob {
                globs.push(Glob {
                    at: words.len(),
                    splits: field.splits,
                    edit: field.edit.clone(),
                });
            }
            words.push(field.text.clone());
            // What may be several words is at least two.
            if *field == Field::anything() {
                words.push(field.text.clone());
            }
        }
        let simple = Simple {
            text: fields.iter().map(shown).collect::<Vec<_>>().join(" "),
            own,
            globs,
            free: notes == Notes::Free,
            outer: self.outer.clone(),
            directories: state.directories.clone(),
            fed: state.fed,
            once: self.is_at_top(),
            named_by: self.named_by.clone(),
            words,
        };
        // The same script may be another one later.
        let script = matches!(
            simple.words.first().map(String::as_str),
            Some("." | "source")
        );
        if script || !self.analysis.commands.contains(&simple) {
            self.analysis.commands.push(simple);
        }
    }

    /// Goes on with what a command runs.
    pub(super) fn inside(
        &mut self,
        fields: &[Field],
        inner_at: Option<usize>,
        go: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let outer = self.outer.take();
        self.outer = Some(Rc::new(Outer {
            words: fields.iter().map(|field| field.text.clone()).collect(),
            inner_at,
            outer: outer.clone(),
        }));
        let result = self.deeper(go);
        self.outer = outer;
        result
    }

    /// `declare`, `export` and their kin; `words` are the arguments.
    pub(super) fn declare(
        &mut self,
        fields: &[Field],
        words: &[Word],
        state: &mut State,
    ) -> Result<(), Refusal> {
        let name = fields.first().map_or("", |field| field.text.as_str());
        if words.is_empty() && fields.len() > 1 {
            return refuse(format!(
                "what `{name}` declares behind another command is not followed"
            ));
        }
        let mut letters = String::new();
        for word in words {
            if let Some(elements) = &word.array {
                let assignment = split_assignment(word)?;
                let Some(assignment) = assignment else {
                    return refuse("it declares something unusual");
                };
                self.elements_of(elements, state)?;
                self.assign(&assignment, state)?;
                continue;
            }
            if let Some(assignment) = split_assignment(word)? {
                self.assign(&assignment, state)?;
                if letters.contains('r') || name == "readonly" {
                    state.frozen.insert(assignment.name.clone());
                }
                continue;
            }
            for field in self.fields(word, state)? {
                let Some(text) = field.known() else {
                    return refuse(format!("what `{name}` declares is not known"));
                };
                if let Some(options) = text.strip_prefix('-').filter(|options| !options.is_empty())
                {
                    if options.contains(|c| !"xgaArpfFn".contains(c))
                        || (options.contains('n') && name != "export")
                    {
                        return refuse(format!("`{name} {text}` changes what assignments mean"));
                    }
                    letters.push_str(options);
                    continue;
                }
                if letters.contains(['f', 'F']) {
                    continue;
                }
                self.declare_one(name, text, state)?;
                if letters.contains('r') || name == "readonly" {
                    let variable = text.split(['=', '+']).next().unwrap_or_default();
                    state.frozen.insert(variable.to_owned());
                }
            }
        }
        Ok(())
    }

    fn declare_one(&mut self, builtin: &str, text: &str, state: &mut State) -> Result<(), Refusal> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if !super::plain::is_name(name) {
            return refuse(format!("`{builtin} {text}` declares something unusual"));
        }
        match value {
            Some(value) => self.set(name, Value::Known(value.to_owned()), state),
            None if matches!(builtin, "export" | "readonly") => Ok(()),
            None => self.set(name, Value::Unknown, state),
        }
    }
}

/// Whether a program with these arguments runs what it reads.
fn runs_input(program: &str, arguments: &[Field]) -> bool {
    let mut texts = arguments.iter().map(|field| field.text.as_str());
    match program {
        "make" | "gmake" => texts.any(|text| {
            let value = text.split_once('=').map_or(text, |(_, value)| value);
            matches!(value, "-" | "-f-") || super::builtin::is_descriptor(value)
        }),
        _ if READ_COMMANDS.contains(&program) => true,
        _ => INTERPRETERS.contains(&program) && texts.all(|text| text.starts_with('-')),
    }
}

/// How a command is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notes {
    /// It needs no rule.
    Free,
    Judged,
}

/// A word as it can be written in a line.
fn shown(field: &Field) -> String {
    let word = field.text.as_str();
    if field.glob {
        return word.to_owned();
    }
    let plain =
        |c: char| c.is_ascii_alphanumeric() || "-_./,:@%+=^".contains(c) || c == super::UNKNOWN;
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
