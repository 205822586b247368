//! Simple commands: assignments, words, redirections.

use std::rc::Rc;

use super::read::{Reader, Within};
use super::syntax::{Assigned, Assignment, Command, Kind, Piece, Word};
use super::{Refusal, refuse};

/// Builtins whose arguments are read as assignments.
pub(super) const DECLARING: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

impl Reader<'_> {
    /// The simple command, or the function definition, that begins here.
    pub(super) fn simple(&mut self) -> Result<Command, Refusal> {
        let mut assignments = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut redirections = Vec::new();
        loop {
            self.skip_blanks();
            if self.peek() == Some('#') {
                break;
            }
            if let Some(redirection) = self.redirection()? {
                redirections.push(redirection);
                continue;
            }
            let from = self.at;
            let Some(mut word) = self.word(Within::Command)? else {
                break;
            };
            let raw = self.text.get(from..self.at).unwrap_or_default();
            let declares = words
                .first()
                .and_then(Word::bare)
                .is_some_and(|word| DECLARING.contains(&word));
            if (words.is_empty() || declares) && opens_subscript(&word) {
                return refuse("a subscript has a blank or a quote in it");
            }
            if self.peek().is_some_and(|c| "<>".contains(c)) && names_element(&word) {
                return refuse("the number of a descriptor is assigned to an element of an array");
            }
            if self.peek() == Some('(') {
                if is_array_begin(&word) && (words.is_empty() || declares) {
                    self.at += 1;
                    word.array = Some(Rc::new(self.elements()?));
                } else {
                    let alone =
                        words.is_empty() && assignments.is_empty() && redirections.is_empty();
                    return self.definition(word.bare().filter(|_| alone));
                }
            }
            match split_assignment(&word)? {
                Some(assignment) if words.is_empty() => assignments.push(assignment),
                // It may be a keyword, which bash joins before it looks for one.
                _ if words.is_empty() && raw.trim_end_matches("\\\n").contains("\\\n") => {
                    return refuse("the name of a command goes on in another line");
                }
                _ => words.push(word),
            }
        }
        if assignments.is_empty() && words.is_empty() && redirections.is_empty() {
            return refuse("a command is missing");
        }
        Ok(Command {
            kind: Kind::Simple { assignments, words },
            redirections,
        })
    }

    /// `name()` and its body.
    fn definition(&mut self, name: Option<&str>) -> Result<Command, Refusal> {
        let Some(name) = name.map(str::to_owned) else {
            return refuse("a parenthesis stands where none can");
        };
        self.at += 1;
        self.skip_blanks();
        if !self.eat(")") {
            return refuse("a parenthesis stands where none can");
        }
        let kind = self.function_body(name)?;
        Ok(Command {
            kind,
            redirections: Vec::new(),
        })
    }

    /// The elements, when nothing is joined to their array: what is belongs to
    /// the assignment, and is not the command.
    fn array_ends(&self, elements: Vec<Word>) -> Result<Vec<Word>, Refusal> {
        let rest = self.rest();
        let ends =
            rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '&', '|', '<', '>', ')']);
        match ends && !rest.starts_with("<(") && !rest.starts_with(">(") {
            true => Ok(elements),
            false => refuse("something is joined to an array"),
        }
    }

    /// The elements of an array, up to the `)`.
    fn elements(&mut self) -> Result<Vec<Word>, Refusal> {
        let mut elements = Vec::new();
        loop {
            self.skip_lines()?;
            if self.eat(")") {
                return self.array_ends(elements);
            }
            match self.word(Within::Command)? {
                Some(word) if opens_subscript(&word) => {
                    return refuse("a subscript has a blank or a quote in it");
                }
                Some(word) => elements.push(word),
                None => return refuse("an array is not closed"),
            }
        }
    }
}

/// Whether bash may read on for the `]` of `name[`, or of an element's `[`, and
/// past blanks and all else that ends a word.
fn opens_subscript(word: &Word) -> bool {
    let plain = |piece: &Piece| match piece {
        Piece::Text {
            text,
            quoted: false,
        } => text.clone(),
        _ => String::new(),
    };
    let text: String = word.pieces.iter().map(plain).collect();
    let is_test = matches!(word.bare(), Some("[" | "[["));
    let named = text.split_once('[').map(|(name, _)| name);
    !is_test
        && named.is_some_and(|name| name.is_empty() || is_name(name))
        && text.matches('[').count() > text.matches(']').count()
}

/// Whether a word is `{name[subscript]}`: before a redirection bash assigns to
/// that element, and evaluates the subscript.
fn names_element(word: &Word) -> bool {
    let plain = |piece: Option<&Piece>| match piece {
        Some(Piece::Text {
            text,
            quoted: false,
        }) => text.clone(),
        _ => String::new(),
    };
    let (begin, end) = (plain(word.pieces.first()), plain(word.pieces.last()));
    let name = begin
        .strip_prefix('{')
        .and_then(|rest| rest.split_once('['));
    name.is_some_and(|(name, _)| is_name(name)) && end.ends_with('}')
}

/// Whether a word is `name=` or `name+=`, which a parenthesis may follow.
fn is_array_begin(word: &Word) -> bool {
    word.bare().is_some_and(|text| {
        let name = text
            .strip_suffix('=')
            .map(|name| name.strip_suffix('+').unwrap_or(name));
        name.is_some_and(is_name)
    })
}

/// Whether a text is a variable's name.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The assignment that a word is before a command.
pub(super) fn split_assignment(word: &Word) -> Result<Option<Assignment>, Refusal> {
    let Some(Piece::Text {
        text,
        quoted: false,
    }) = word.pieces.first()
    else {
        return Ok(None);
    };
    let opened = text
        .find('[')
        .filter(|at| text.get(..*at).is_some_and(is_name));
    let Some(equals) = text.find('=') else {
        // `a[$i]=x` is an assignment too, as far as bash can tell.
        return match opened {
            Some(_) if word.pieces.len() > 1 => {
                refuse("it may assign to an element by a subscript")
            }
            _ => Ok(None),
        };
    };
    let target = text.get(..equals).unwrap_or_default();
    let append = target.ends_with('+');
    let target = target.strip_suffix('+').unwrap_or(target);
    let (name, subscript) = match target.split_once('[') {
        Some((name, rest)) => match rest.strip_suffix(']') {
            Some(subscript) => (name, Some(subscript.to_owned())),
            None if is_name(name) => return refuse("it may assign to an element by a subscript"),
            None => return Ok(None),
        },
        None => (target, None),
    };
    if !is_name(name) {
        return Ok(None);
    }
    let value = match &word.array {
        Some(elements) => Assigned::Array(elements.as_ref().clone()),
        None => {
            let mut value = word.clone();
            if let Some(Piece::Text { text, .. }) = value.pieces.first_mut() {
                text.drain(..=equals);
            }
            value.pieces.retain(
                |piece| !matches!(piece, Piece::Text { text, quoted: false } if text.is_empty()),
            );
            Assigned::Scalar(value)
        }
    };
    Ok(Some(Assignment {
        name: name.to_owned(),
        subscript,
        append,
        value,
    }))
}
