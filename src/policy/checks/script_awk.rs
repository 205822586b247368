//! awk programs: whether one calls out, reads a pipe, or prints to a file.

use std::iter::Peekable;
use std::str::Chars;

/// The kind of what stood before, as far as a slash depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A slash begins an expression.
    Operator,
    /// A slash divides.
    Operand,
    /// It may be either.
    Either,
}

/// Names that run programs, read files or show the environment.
const ACTIVE: &[&str] = &[
    "system",
    "getline",
    "ENVIRON",
    "PROCINFO",
    "fflush",
    "extension",
    "SYMTAB",
    "ARGV",
];

/// Whether a program only looks at its input and prints.
///
/// # Errors
/// What it may do besides.
pub(super) fn check(program: &str) -> Result<(), String> {
    if let Some(name) = names(program).find(|name| ACTIVE.contains(name)) {
        return Err(refused(name));
    }
    let mut state = State {
        reader: program.chars().peekable(),
        before: Before::Operator,
        printing: None,
    };
    while let Some(c) = state.reader.next() {
        if is_of_name(c) {
            state.name(c);
        } else {
            state.mark(c)?;
        }
    }
    Ok(())
}

/// How far a program is read.
struct State<'a> {
    reader: Peekable<Chars<'a>>,
    before: Before,
    /// Of a statement that prints, how deep its parentheses are.
    printing: Option<u32>,
}

impl State<'_> {
    fn name(&mut self, first: char) {
        let mut name = String::from(first);
        while let Some(c) = self.reader.next_if(|c| is_of_name(*c)) {
            name.push(c);
        }
        if matches!(name.as_str(), "print" | "printf") {
            self.printing = Some(0);
        }
        let keyword = matches!(
            name.as_str(),
            "print" | "printf" | "return" | "in" | "else" | "do"
        );
        self.before = match keyword {
            true => Before::Operator,
            false => Before::Operand,
        };
    }

    fn mark(&mut self, c: char) -> Result<(), String> {
        let mut before = Before::Operator;
        match c {
            ' ' | '\t' => before = self.before,
            '"' => {
                quoted(&mut self.reader, '"')?;
                before = Before::Operand;
            }
            '/' => match self.before {
                Before::Operator => {
                    quoted(&mut self.reader, '/')?;
                    before = Before::Operand;
                }
                Before::Operand => {}
                Before::Either => {
                    return Err("a `/` after `)` or `++` can be read in two ways".to_owned());
                }
            },
            '#' => while self.reader.next_if(|c| *c != '\n').is_some() {},
            '|' if self.reader.next_if_eq(&'|').is_some() => {}
            '|' | '@' | '\\' | '`' => return Err(refused(&c.to_string())),
            '+' | '-' if self.reader.next_if_eq(&c).is_some() => before = Before::Either,
            '>' if self.printing == Some(0) => return Err(refused(">")),
            '(' => self.printing = self.printing.map(|depth| depth + 1),
            ')' => {
                self.printing = self.printing.map(|depth| depth.saturating_sub(1));
                before = Before::Either;
            }
            ']' | '$' => before = Before::Operand,
            ';' | '\n' | '}' | '{' => self.printing = None,
            _ => {}
        }
        self.before = before;
        Ok(())
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn refused(what: &str) -> String {
    format!("`{what}` in an awk program may run a program or write a file")
}

/// The names in a program, those in its texts and expressions included.
fn names(program: &str) -> impl Iterator<Item = &str> {
    program.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
}

/// Reads a text or an expression up to its end.
fn quoted(reader: &mut impl Iterator<Item = char>, end: char) -> Result<(), String> {
    let mut bracket = false;
    loop {
        match reader.next() {
            Some('\\') => {
                reader.next();
            }
            Some('[') if end == '/' => bracket = true,
            Some(']') => bracket = false,
            // In brackets some take it for the end and some do not.
            Some(c) if c == end && bracket => {
                return Err("a `/` in brackets can be read in two ways".to_owned());
            }
            Some(c) if c == end => return Ok(()),
            Some('\n') | None => return Err("a text or an expression is not closed".to_owned()),
            Some(_) => {}
        }
    }
}
