//! `$x` and `${x…}`.

use super::read::{Pieces, Quoting, Reader};
use super::syntax::{Form, Parameter, Piece};
use super::{Refusal, refuse};

/// Parameters with a name of one mark.
const SPECIAL: &str = "@*#?-$!";

impl Reader<'_> {
    /// The name after a `$`, if one is there.
    pub(super) fn parameter_name(&mut self) -> Option<Parameter> {
        let name = match self.peek()? {
            c if SPECIAL.contains(c) || c.is_ascii_digit() => {
                self.at += 1;
                c.to_string()
            }
            _ => self.identifier()?,
        };
        Some(Parameter {
            name,
            subscript: None,
            form: Form::Plain,
            quoted: false,
        })
    }

    /// A name of a variable or function.
    pub(super) fn identifier(&mut self) -> Option<String> {
        let rest = self.rest();
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| !part(c)).unwrap_or(rest.len());
        let name = rest.get(..end)?;
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += end;
        Some(name.to_owned())
    }

    /// What follows `${`, with the closing brace.
    pub(super) fn braced_parameter(&mut self, quoting: Quoting) -> Result<Parameter, Refusal> {
        let quoted = quoting != Quoting::None;
        let rest = self.rest();
        if rest.starts_with('!') {
            return refuse("`${!…}` expands a variable that another one names");
        }
        let counts = rest.starts_with('#') && !rest.starts_with("#}");
        if counts {
            self.at += 1;
        }
        let digits = self.rest().chars().take_while(char::is_ascii_digit).count();
        let name = if digits > 0 {
            let name = self.rest().get(..digits).unwrap_or_default().to_owned();
            self.at += digits;
            name
        } else if let Some(parameter) = self.parameter_name() {
            parameter.name
        } else {
            return refuse("a `${…}` has no name");
        };
        let subscript = if self.eat("[") {
            Some(self.until(&["]"], quoting)?.0)
        } else {
            None
        };
        let form = if self.eat("}") {
            if counts { Form::Length } else { Form::Plain }
        } else if counts {
            return refuse("a `${#…}` has more than a name");
        } else {
            self.form(quoting)?
        };
        Ok(Parameter {
            name,
            subscript,
            form,
            quoted,
        })
    }

    fn form(&mut self, quoting: Quoting) -> Result<Form, Refusal> {
        for operator in [":=", "="] {
            if self.eat(operator) {
                return Ok(Form::Assign(self.until(&["}"], quoting)?.0));
            }
        }
        if self.eat("%") {
            // `%%` is the same for an end without wildcards.
            self.eat("%");
            return Ok(Form::Cut(self.until(&["}"], quoting)?.0));
        }
        for operator in [":-", ":+", ":?", "-", "+", "?", "#", "/", "^", ","] {
            if self.eat(operator) {
                return Ok(Form::Changed(self.until(&["}"], quoting)?.0));
            }
        }
        if self.eat(":") {
            return Ok(Form::Slice(self.until(&["}"], Quoting::Arithmetic)?.0));
        }
        for operator in ["@Q}", "@U}", "@L}", "@u}"] {
            if self.eat(operator) {
                return Ok(Form::Changed(Vec::new()));
            }
        }
        refuse("a `${…}` has an operator that is not looked into")
    }

    /// The pieces up to one of some ends, which is passed over.
    fn until(&mut self, ends: &[&str], quoting: Quoting) -> Result<(Vec<Piece>, ()), Refusal> {
        let mut pieces = Pieces::default();
        loop {
            if ends.iter().any(|end| self.eat(end)) {
                return Ok((pieces.done, ()));
            }
            match self.peek() {
                None => return refuse("a `${…}` is not closed"),
                Some('\'' | '"') if quoting != Quoting::None => {
                    return refuse("a `${…}` in quotes has quotes of its own");
                }
                Some('\n') => {
                    self.no_line_end_before_documents("\n")?;
                    self.at += 1;
                    pieces.plain('\n');
                }
                Some('<' | '>')
                    if self
                        .rest()
                        .get(1..)
                        .is_some_and(|rest| rest.starts_with('(')) =>
                {
                    return refuse("a `${…}` has a process substitution");
                }
                Some(c) if quoting != Quoting::None => {
                    self.at += c.len_utf8();
                    self.expanding(c, &mut pieces, quoting)?;
                }
                Some(_) => self.piece(&mut pieces)?,
            }
        }
    }
}
