//! Redirections: which files they open, and what they feed.

use super::state::{Field, State, Value, is_number};
use super::syntax::{Descriptor, Operator, Redirect, Target, Word};
use super::walk::Walker;
use super::{Opening, Refusal, UNKNOWN, refuse};

/// Names for what is open already, and for nothing.
const OPEN_ALREADY: &[&str] = &["/dev/null", "/dev/stderr", "/dev/stdin", "/dev/stdout"];

impl Walker {
    /// Notes what a redirection opens; says whether it replaces standard input.
    pub(super) fn redirect(
        &mut self,
        redirect: &Redirect,
        state: &mut State,
    ) -> Result<bool, Refusal> {
        let input = match &redirect.descriptor {
            None => true,
            Some(Descriptor::Number(number)) => number.trim_start_matches('0').is_empty(),
            Some(Descriptor::Named(name)) => {
                // Nothing is assigned where a descriptor is closed, or cannot be opened.
                let value = match state.values.get(name) {
                    None | Some(Value::Number) => Value::Number,
                    Some(Value::Known(old)) if is_number(old) => Value::Number,
                    Some(_) => Value::Unknown,
                };
                self.set(name, value, state)?;
                false
            }
        };
        let word = match &redirect.target {
            Target::Document(pieces) => {
                if let Some(pieces) = pieces.get() {
                    self.text(pieces, state)?;
                }
                return Ok(input);
            }
            Target::Word(word) => word,
        };
        match redirect.operator {
            Operator::Text => {
                let text = self.text(&word.pieces, state)?;
                for part in text.split_whitespace() {
                    self.may_turn_out(part);
                }
                Ok(input)
            }
            Operator::DuplicateInput | Operator::DuplicateOutput => {
                self.duplicate(redirect, word, state)
            }
            Operator::Read => {
                self.open(word, Use::Read, state)?;
                Ok(input)
            }
            Operator::Write => {
                self.open(word, Use::Write, state)?;
                Ok(false)
            }
            Operator::ReadWrite => {
                self.open(word, Use::Read, state)?;
                self.open(word, Use::Write, state)?;
                Ok(input)
            }
            Operator::Document => Ok(input),
        }
    }

    fn duplicate(
        &mut self,
        redirect: &Redirect,
        word: &Word,
        state: &mut State,
    ) -> Result<bool, Refusal> {
        let output = redirect.operator == Operator::DuplicateOutput;
        let text = match self.assigned(word, state)? {
            Value::Number => return Ok(!output),
            Value::Known(text) => text,
            Value::Names(_) | Value::Commit | Value::List(_) | Value::Unknown => {
                return refuse("where a redirection leads is not known");
            }
        };
        let digits = text.strip_suffix('-').unwrap_or(&text);
        if digits.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
            return Ok(!output);
        }
        if !output {
            return refuse("`<&` is followed by what is no number");
        }
        self.open(word, Use::Write, state)?;
        Ok(false)
    }

    fn open(&mut self, word: &Word, usage: Use, state: &mut State) -> Result<(), Refusal> {
        let fields = self.fields(word, state)?;
        let [field] = fields.as_slice() else {
            return refuse("a redirection leads to several files or to none");
        };
        let path = path_of(field);
        if path.starts_with("/dev/tcp/") || path.starts_with("/dev/udp/") {
            return refuse("a redirection opens a connection");
        }
        let number = path.strip_prefix("/dev/fd/");
        let open_already = OPEN_ALREADY.contains(&path.as_str())
            || number.is_some_and(|number| {
                !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
            });
        if open_already {
            return Ok(());
        }
        let opening = Opening {
            path,
            writes: usage == Use::Write,
            directories: state.directories.clone(),
        };
        if !self.analysis.openings.contains(&opening) {
            self.analysis.openings.push(opening);
        }
        Ok(())
    }
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Read,
    Write,
}

/// The path of a redirection: of a glob, as far as it is certain.
fn path_of(field: &Field) -> String {
    if !field.glob {
        return field.text.clone();
    }
    let end = field.text.find(['*', '?', '[']).unwrap_or_default();
    let mut path = field.text.get(..end).unwrap_or_default().to_owned();
    path.push(UNKNOWN);
    path
}
