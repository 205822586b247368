//! Words, as bash reads them: quoting, expansions, and where a word ends.
//!
//! Whatever bash versions read differently, or what is too rare to be worth
//! the doubt, is refused with the reason.

use std::cell::OnceCell;
use std::rc::Rc;

use super::syntax::{Piece, Word};
use super::{Refusal, refuse};

/// How deep commands, substitutions and expansions may be nested.
const DEPTH_MAX: usize = 40;

/// A text that is being read.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    /// Here-documents that were announced on this line, still without text.
    pub(super) pending: Vec<Announced>,
}

/// A here-document whose operator was read.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) delimiter: String,
    /// `<<-`: tabs at the begin of lines do not count.
    pub(super) strips: bool,
    /// A quoted delimiter: nothing in it expands.
    pub(super) quoted: bool,
    pub(super) pieces: Rc<OnceCell<Vec<Piece>>>,
}

/// What words stand in, which decides where they end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    /// A command.
    Command,
    /// The right side of `=~` and `==` in `[[ ]]`: parentheses belong to it.
    Pattern,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            pending: Vec::new(),
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Takes a text if it comes next.
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        let found = self.rest().starts_with(expected);
        if found {
            self.at += expected.len();
        }
        found
    }

    /// Runs a reading one level deeper.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if self.depth >= DEPTH_MAX {
            return refuse("it is nested too deep to be looked at");
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// Passes over blanks and joined lines.
    pub(super) fn skip_blanks(&mut self) {
        while self.eat(" ") || self.eat("\t") || self.eat("\\\n") {}
    }

    /// The word that begins here; none where no word begins.
    pub(super) fn word(&mut self, within: Within) -> Result<Option<Word>, Refusal> {
        let from = self.at;
        let mut pieces = Pieces::default();
        let mut open = 0_usize;
        while let Some(c) = self.peek() {
            let process = matches!(c, '<' | '>')
                && self
                    .rest()
                    .get(1..)
                    .is_some_and(|rest| rest.starts_with('('));
            if process && within == Within::Pattern {
                return refuse("a pattern has a process substitution in it");
            }
            if process {
                self.at += 2;
                pieces.push(Piece::Process(Rc::new(self.nested_script()?)));
                continue;
            }
            match c {
                '(' if within == Within::Pattern => open += 1,
                ')' if within == Within::Pattern && open > 0 => open -= 1,
                '|' if within == Within::Pattern && open > 0 => {}
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => break,
                _ => {
                    self.piece(&mut pieces)?;
                    continue;
                }
            }
            self.at += 1;
            pieces.plain(c);
        }
        if open > 0 {
            return refuse("it has a pattern with a blank or an open parenthesis");
        }
        if self.at == from || pieces.only_joins {
            return Ok(None);
        }
        Ok(Some(Word {
            pieces: pieces.done,
            array: None,
        }))
    }

    /// What stands next in unquoted text, and is no end of a word.
    pub(super) fn piece(&mut self, pieces: &mut Pieces) -> Result<(), Refusal> {
        match self.take() {
            Some('\'') => pieces.quoted(&self.single_quoted()?),
            Some('"') => {
                pieces.quoted("");
                self.double_quoted(pieces)?;
            }
            Some('\\') => match self.take() {
                Some('\n') => {}
                Some(c) => pieces.quoted(c.encode_utf8(&mut [0; 4])),
                None => return refuse("it ends with a backslash"),
            },
            Some('$') => self.dollar(pieces, Quoting::None)?,
            Some('`') => self.backticks(pieces, Quoting::None)?,
            Some(c) if !c.is_ascii() && (c.is_whitespace() || c.is_control()) => {
                return refuse("it has a blank outside ASCII that is not quoted");
            }
            Some(c) => pieces.plain(c),
            None => {}
        }
        Ok(())
    }

    fn single_quoted(&mut self) -> Result<String, Refusal> {
        let Some(end) = self.rest().find('\'') else {
            return refuse("a single quote is not closed");
        };
        let text = self.rest().get(..end).unwrap_or_default();
        self.no_line_end_before_documents(text)?;
        self.at += end + 1;
        Ok(text.to_owned())
    }

    /// Reads on behind a `"`, up to the next.
    fn double_quoted(&mut self, pieces: &mut Pieces) -> Result<(), Refusal> {
        loop {
            match self.take() {
                None => return refuse("a double quote is not closed"),
                Some('"') => return Ok(()),
                Some('\n') => {
                    self.no_line_end_before_documents("\n")?;
                    pieces.quoted("\n");
                }
                Some(c) => self.expanding(c, pieces, Quoting::Double)?,
            }
        }
    }

    /// A character of a text in which only `$`, backticks and `\` count.
    pub(super) fn expanding(
        &mut self,
        c: char,
        pieces: &mut Pieces,
        quoting: Quoting,
    ) -> Result<(), Refusal> {
        match c {
            '$' => self.dollar(pieces, quoting)?,
            '`' => self.backticks(pieces, quoting)?,
            '\\' => match self.peek() {
                Some('\n') => self.at += 1,
                Some(marked @ ('$' | '`' | '\\')) => {
                    self.at += 1;
                    pieces.quoted(marked.encode_utf8(&mut [0; 4]));
                }
                Some('"') if quoting == Quoting::Double => {
                    self.at += 1;
                    pieces.quoted("\"");
                }
                // Before anything else it stands for itself.
                Some(_) | None => pieces.quoted("\\"),
            },
            c => pieces.quoted(c.encode_utf8(&mut [0; 4])),
        }
        Ok(())
    }

    /// Bash takes `\` and a line break out before it reads: what stands on both
    /// sides of them is one.
    pub(super) fn no_continuation(&self) -> Result<(), Refusal> {
        match self.rest().starts_with("\\\n") {
            true => refuse("a line break with a backslash stands within a `$` or `(`"),
            false => Ok(()),
        }
    }

    /// What follows a `$`.
    pub(super) fn dollar(&mut self, pieces: &mut Pieces, quoting: Quoting) -> Result<(), Refusal> {
        let quoted = quoting != Quoting::None;
        self.no_continuation()?;
        match self.peek() {
            Some('\'') if !quoted => {
                self.at += 1;
                let text = super::ansi::ansi_quoted(self)?;
                pieces.quoted(&text);
            }
            Some('"') if !quoted => {
                return refuse("`$\"…\"` is translated before it is used; leave the `$` out");
            }
            Some('(') if self.rest().starts_with("((") => {
                self.at += 2;
                let inner = self.arithmetic()?;
                pieces.push(Piece::Arithmetic(Rc::new(inner)));
            }
            Some('(') => {
                self.at += 1;
                self.no_continuation()?;
                let script = Rc::new(self.nested_script()?);
                pieces.push(Piece::Substitution { script, quoted });
            }
            Some('[') => return refuse("`$[…]` is obsolete; write `$((…))`"),
            Some('{') => {
                self.at += 1;
                let parameter = self.deeper(|reader| reader.braced_parameter(quoting))?;
                pieces.push(Piece::Parameter(Rc::new(parameter)));
            }
            _ => match self.parameter_name() {
                Some(parameter) => {
                    self.no_continuation()?;
                    pieces.push(Piece::Parameter(Rc::new(super::syntax::Parameter {
                        quoted,
                        ..parameter
                    })));
                }
                None if quoted => pieces.quoted("$"),
                None => pieces.plain('$'),
            },
        }
        Ok(())
    }

    /// The text between backticks is unescaped and read by itself.
    fn backticks(&mut self, pieces: &mut Pieces, quoting: Quoting) -> Result<(), Refusal> {
        let mut inner = String::new();
        loop {
            match self.take() {
                None => return refuse("a backtick is not closed"),
                Some('`') => break,
                Some('\\') => match self.take() {
                    Some(c @ ('$' | '`' | '\\')) => inner.push(c),
                    Some('"') if quoting == Quoting::Double => inner.push('"'),
                    Some(c) => inner.extend(['\\', c]),
                    None => return refuse("a backtick is not closed"),
                },
                Some(c) => inner.push(c),
            }
        }
        self.no_line_end_before_documents(&inner)?;
        if inner.contains("<<") {
            return refuse("it has a here-document between backticks; use `$(…)`");
        }
        let script = self.deeper(|reader| {
            let mut reader = Reader::new(&inner, reader.depth);
            let script = reader.whole()?;
            Ok(script)
        })?;
        pieces.push(Piece::Substitution {
            script: Rc::new(script),
            quoted: quoting != Quoting::None,
        });
        Ok(())
    }

    /// The commands up to the `)` that closes them.
    pub(super) fn nested_script(&mut self) -> Result<super::syntax::Script, Refusal> {
        let outer = std::mem::take(&mut self.pending);
        let from = self.at;
        let script = self.deeper(|reader| reader.script(&[]))?;
        if !self.pending.is_empty() {
            return refuse("a here-document has no text before its substitution ends");
        }
        self.pending = outer;
        let text = self.text.get(from..self.at).unwrap_or_default();
        self.no_line_end_before_documents(text)?;
        if !self.eat(")") {
            return refuse("a substitution is not closed");
        }
        Ok(script)
    }

    /// What is between `((` and `))`.
    pub(super) fn arithmetic(&mut self) -> Result<Vec<Piece>, Refusal> {
        self.deeper(|reader| {
            let mut pieces = Pieces::default();
            let mut open = 0_usize;
            loop {
                match reader.take() {
                    None => return refuse("an arithmetic expression is not closed"),
                    Some(')') if open == 0 && reader.eat(")") => return Ok(pieces.done),
                    Some(')') if open == 0 => {
                        return refuse(
                            "`((` may be arithmetic or two subshells; put a blank between",
                        );
                    }
                    Some('(') => {
                        open += 1;
                        pieces.plain('(');
                    }
                    Some(')') => {
                        open -= 1;
                        pieces.plain(')');
                    }
                    Some('$') => reader.dollar(&mut pieces, Quoting::Arithmetic)?,
                    Some('\n') => {
                        reader.no_line_end_before_documents("\n")?;
                        pieces.plain(' ');
                    }
                    Some('"') => {}
                    Some(c @ ('\'' | '`' | '\\')) => {
                        return refuse(format!("`{c}` in arithmetic is read in several ways"));
                    }
                    Some(c) => pieces.plain(c),
                }
            }
        })
    }

    /// Here-documents begin at the next line end; where that is, when a quote
    /// or a substitution goes over it, differs between versions of bash.
    pub(super) fn no_line_end_before_documents(&self, text: &str) -> Result<(), Refusal> {
        if text.contains('\n') && !self.pending.is_empty() {
            return refuse("a here-document is announced on a line that a quote continues");
        }
        Ok(())
    }
}

/// What an expansion stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quoting {
    None,
    Double,
    /// A here-document: `"` is a character like others.
    Document,
    /// Split by nobody.
    Arithmetic,
}

/// The pieces of a word so far.
#[derive(Debug)]
pub(super) struct Pieces {
    pub(super) done: Vec<Piece>,
    /// Whether nothing but joined lines was read.
    only_joins: bool,
}

impl Default for Pieces {
    fn default() -> Self {
        Self {
            done: Vec::new(),
            only_joins: true,
        }
    }
}

impl Pieces {
    pub(super) fn push(&mut self, piece: Piece) {
        self.only_joins = false;
        self.done.push(piece);
    }

    pub(super) fn plain(&mut self, c: char) {
        self.add(c.encode_utf8(&mut [0; 4]), false);
    }

    pub(super) fn quoted(&mut self, text: &str) {
        self.add(text, true);
    }

    fn add(&mut self, more: &str, as_quoted: bool) {
        self.only_joins = false;
        match self.done.last_mut() {
            Some(Piece::Text { text, quoted }) if *quoted == as_quoted => text.push_str(more),
            _ => self.done.push(Piece::Text {
                text: more.to_owned(),
                quoted: as_quoted,
            }),
        }
    }
}
