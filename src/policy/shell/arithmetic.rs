//! Arithmetic: variables in it are evaluated again as expressions, and the
//! subscripts in those can run commands (`x='a[$(id)]'; echo $((x))`).

use super::expand::NUMBERS;
use super::state::{State, Value, is_number};
use super::syntax::{Form, Piece};
use super::walk::Walker;
use super::{NUMBER, Refusal, UNKNOWN, refuse};

/// How many variables may name each other.
const CHAIN_MAX: usize = 4;

/// What follows the name of a variable that is assigned; `==` is not among them.
const ASSIGNING: &[&str] = &[
    "=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|=", "++", "--",
];

/// What evaluating an expression touches.
#[derive(Default)]
struct Evaluated {
    /// The variables that it assigns.
    assigned: Vec<String>,
    /// Whether some of them may keep their values.
    perhaps: bool,
}

impl Walker {
    /// Looks at an expression, and does what it assigns; gives its text.
    pub(super) fn arithmetic(
        &mut self,
        pieces: &[Piece],
        state: &mut State,
    ) -> Result<String, Refusal> {
        let mut text = String::new();
        for piece in pieces {
            let plain = match piece {
                Piece::Parameter(parameter) if matches!(parameter.form, Form::Plain) => {
                    Some(parameter.name.as_str())
                }
                _ => None,
            };
            let is_integer = plain.is_some_and(|name| is_integer(name, state));
            match self.value(piece, state)?.0 {
                Value::Known(value) => text.push_str(&value),
                Value::Number => text.push('0'),
                Value::Unknown if is_integer => text.push('0'),
                Value::Names(_) | Value::Commit | Value::List(_) | Value::Unknown => {
                    text.push(UNKNOWN);
                }
            }
        }
        self.expression(&text, state)?;
        Ok(text)
    }

    /// Looks at the text of an expression.
    pub(super) fn expression(&mut self, text: &str, state: &mut State) -> Result<(), Refusal> {
        let text = &text.replace(NUMBER, "0");
        if text.contains(UNKNOWN) {
            return refuse("an arithmetic expression has a part that is not known");
        }
        let mut evaluated = Evaluated::default();
        evaluated.check(text, state, 0)?;
        for name in evaluated.assigned {
            let number = match state.value(&name) {
                None => !evaluated.perhaps,
                Some(Value::Number) => true,
                Some(Value::Known(old)) => old.is_empty() || is_number(old),
                Some(Value::Names(_) | Value::Commit | Value::List(_) | Value::Unknown) => false,
            };
            let value = if number {
                Value::Number
            } else {
                Value::Unknown
            };
            self.set(&name, value, state)?;
        }
        Ok(())
    }
}

impl Evaluated {
    /// Goes through an expression and what its variables stand for, which are
    /// expressions as well.
    fn check(&mut self, text: &str, state: &State, depth: usize) -> Result<(), Refusal> {
        if depth > CHAIN_MAX {
            return refuse("variables in arithmetic name each other");
        }
        let odd =
            |c: char| !(c.is_ascii_alphanumeric() || "_+-*/%<>=!&|^~?:,;() \t\n#[]@.".contains(c));
        if let Some(c) = text.chars().find(|c| odd(*c)) {
            return refuse(format!("an arithmetic expression has a `{c}`"));
        }
        // A part that is left out assigns nothing.
        self.perhaps |= text.contains("&&") || text.contains("||") || text.contains('?');
        let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = text;
        while let Some(from) = rest.find(part) {
            let before = rest.get(..from).unwrap_or_default();
            let tail = rest.get(from..).unwrap_or_default();
            let end = tail.find(|c| !part(c)).unwrap_or(tail.len());
            let (name, behind) = tail.split_at(end);
            rest = behind;
            if name.starts_with(|c: char| c.is_ascii_digit()) {
                continue;
            }
            let before_it = self.assigned.iter().any(|one| one == name) && !self.perhaps;
            if !before_it && !is_replaced(behind) {
                self.evaluate(name, state, depth)?;
            }
            if is_assigned(before, behind) {
                self.perhaps |= depth > 0;
                self.assigned.push(name.to_owned());
            }
        }
        Ok(())
    }

    /// Looks at what a variable stands for.
    fn evaluate(&mut self, name: &str, state: &State, depth: usize) -> Result<(), Refusal> {
        match state.value(name) {
            None if is_integer(name, state) => Ok(()),
            None => refuse(format!(
                "arithmetic evaluates `{name}`, which the line does not set"
            )),
            Some(Value::Number) => Ok(()),
            Some(Value::Known(value)) if is_number(value) || value.is_empty() => Ok(()),
            Some(Value::Known(value)) => self.check(value, state, depth + 1),
            Some(Value::List(fields))
                if fields
                    .iter()
                    .all(|field| field.known().is_some_and(is_number)) =>
            {
                Ok(())
            }
            Some(Value::Names(_) | Value::Commit | Value::List(_) | Value::Unknown) => refuse(
                format!("arithmetic evaluates `{name}`, whose value is not known"),
            ),
        }
    }
}

/// Whether a variable that the line did not assign is an integer, or unset and so
/// zero. What the runner passes has names in capitals or is a proxy; its values
/// are evaluated as expressions too (`cat='a[$(id)]'; ((PAGER))`).
fn is_integer(name: &str, state: &State) -> bool {
    let passed = name.ends_with("_proxy") || !name.contains(|c: char| c.is_ascii_lowercase());
    let passed = passed || name.contains(|c: char| c.is_ascii_uppercase());
    let variable = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let number = NUMBERS.contains(&name) || name == "PIPESTATUS";
    variable && state.value(name).is_none() && (number || !passed)
}

/// Whether the name before this part of an expression only gets a new value.
fn is_replaced(behind: &str) -> bool {
    let behind = behind.trim_start();
    behind.starts_with('=') && !behind.starts_with("==")
}

/// Whether the name between two parts of an expression is assigned.
fn is_assigned(before: &str, behind: &str) -> bool {
    let before = before.trim_end();
    let mut behind = behind.trim_start();
    if behind.starts_with('[') {
        let mut open = 0_usize;
        let end = behind.find(|c| {
            open += usize::from(c == '[');
            open -= usize::from(c == ']').min(open);
            open == 0
        });
        behind = end
            .and_then(|end| behind.get(end + 1..))
            .unwrap_or_default()
            .trim_start();
    }
    let compares = behind.starts_with("==");
    let assigns = !compares && ASSIGNING.iter().any(|mark| behind.starts_with(mark));
    assigns || before.ends_with("++") || before.ends_with("--")
}
