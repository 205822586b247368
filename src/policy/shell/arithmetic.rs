//! Arithmetic: variables in it are evaluated again as expressions, and the
//! subscripts in those can run commands (`x='a[$(id)]'; echo $((x))`).

use super::state::{State, Value, is_number};
use super::syntax::{Form, Piece};
use super::walk::Walker;
use super::{NUMBER, Refusal, UNKNOWN, refuse};

/// How many variables may name each other.
const CHAIN_MAX: usize = 4;

impl Walker {
    /// Looks at an expression, and does what it assigns; gives its text.
    pub(super) fn arithmetic(
        &mut self,
        pieces: &[Piece],
        state: &mut State,
    ) -> Result<String, Refusal> {
        let mut text = String::new();
        for piece in pieces {
            match piece {
                Piece::Text { text: more, .. } => text.push_str(more),
                Piece::Parameter(parameter) => {
                    let unset = matches!(parameter.form, Form::Plain)
                        && self.only_runner_sets(&parameter.name, state);
                    match self.parameter(parameter, state)? {
                        Value::Known(value) => text.push_str(&value),
                        Value::Number => text.push('0'),
                        Value::Unknown if unset => text.push('0'),
                        Value::Names(_) | Value::List(_) | Value::Unknown => text.push(UNKNOWN),
                    }
                }
                other => text.push_str(&self.text(std::slice::from_ref(other), state)?),
            }
        }
        self.expression(&text, state)?;
        Ok(text)
    }

    /// Whether nothing in the line can have assigned a variable.
    fn only_runner_sets(&self, name: &str, state: &State) -> bool {
        let variable = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        variable && state.value(name).is_none()
    }

    /// Looks at the text of an expression.
    pub(super) fn expression(&mut self, text: &str, state: &mut State) -> Result<(), Refusal> {
        let text = &text.replace(NUMBER, "0");
        if text.contains(UNKNOWN) {
            return refuse("an arithmetic expression has a part that is not known");
        }
        let names = check(text, state, 0)?;
        let assigns = {
            let plain = text
                .replace("==", "")
                .replace("!=", "")
                .replace("<=", "")
                .replace(">=", "");
            plain.contains('=') || text.contains("++") || text.contains("--")
        };
        if assigns {
            let sometimes = text.contains("&&") || text.contains("||") || text.contains('?');
            for name in names {
                let value = if sometimes {
                    Value::Unknown
                } else {
                    Value::Number
                };
                self.set(&name, value, state)?;
            }
        }
        Ok(())
    }
}

/// The variables of an expression, when all that they stand for is harmless.
fn check(text: &str, state: &State, depth: usize) -> Result<Vec<String>, Refusal> {
    if depth > CHAIN_MAX {
        return refuse("variables in arithmetic name each other");
    }
    let odd =
        |c: char| !(c.is_ascii_alphanumeric() || "_+-*/%<>=!&|^~?:,;() \t\n#[]@.".contains(c));
    if let Some(c) = text.chars().find(|c| odd(*c)) {
        return refuse(format!("an arithmetic expression has a `{c}`"));
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names = Vec::new();
    for name in text.split(|c| !part(c)).filter(|name| !name.is_empty()) {
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        match state.value(name) {
            None | Some(Value::Number) => {}
            Some(Value::Known(value)) if is_number(value) || value.is_empty() => {}
            Some(Value::Known(value)) => {
                check(value, state, depth + 1)?;
            }
            Some(Value::List(fields))
                if fields
                    .iter()
                    .all(|field| field.known().is_some_and(is_number)) => {}
            Some(Value::Names(_) | Value::List(_) | Value::Unknown) => {
                return refuse(format!(
                    "arithmetic evaluates `{name}`, whose value is not known"
                ));
            }
        }
        names.push(name.to_owned());
    }
    Ok(names)
}
