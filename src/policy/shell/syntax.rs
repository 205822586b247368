//! What a line is made of, as bash would read it: the tree that
//! [`super::grammar`] builds and [`super::walk`] goes through.

use std::cell::OnceCell;
use std::rc::Rc;

/// Statements in their order.
#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) statements: Vec<Statement>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) first: Pipeline,
    pub(super) rest: Vec<(Join, Pipeline)>,
    /// Whether it ends with `&`.
    pub(super) background: bool,
}

/// What joins two pipelines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    /// `&&`
    And,
    /// `||`
    Or,
}

/// Commands joined by `|` and `|&`.
#[derive(Debug)]
pub(super) struct Pipeline {
    pub(super) commands: Vec<Command>,
    /// Whether a `!` turns its status round.
    pub(super) negated: bool,
    /// Whether `time` stands before it.
    pub(super) timed: bool,
}

/// One command with its redirections.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) kind: Kind,
    pub(super) redirections: Vec<Redirect>,
}

/// The kinds of commands.
#[derive(Debug)]
pub(super) enum Kind {
    Simple {
        assignments: Vec<Assignment>,
        words: Vec<Word>,
    },
    Group(Script),
    Subshell(Script),
    If {
        /// Conditions with what they guard.
        branches: Vec<(Script, Script)>,
        otherwise: Option<Script>,
    },
    /// `while` and `until`.
    While {
        condition: Script,
        body: Script,
    },
    /// `for` and `select`; without words it is over the arguments.
    For {
        name: String,
        words: Option<Vec<Word>>,
        body: Script,
        select: bool,
    },
    /// `for ((…))`.
    Counted {
        header: Vec<Piece>,
        body: Script,
    },
    Case {
        subject: Word,
        arms: Vec<(Vec<Word>, Script)>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    /// `[[ … ]]`: operators are words without pieces that expand.
    Test(Vec<Word>),
    /// `(( … ))`.
    Arithmetic(Vec<Piece>),
    Coproc(Box<Command>),
}

/// `name=value`, `name+=value`, `name[subscript]=value`.
#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) name: String,
    pub(super) subscript: Option<String>,
    pub(super) append: bool,
    pub(super) value: Assigned,
}

/// What is assigned.
#[derive(Debug)]
pub(super) enum Assigned {
    Scalar(Word),
    /// `(a b)`, or with keys `([k]=v)`.
    Array(Vec<Word>),
}

/// A word before its expansion.
#[derive(Debug, Default, Clone)]
pub(super) struct Word {
    pub(super) pieces: Vec<Piece>,
    /// The elements, of an argument like `x=(a b)`.
    pub(super) array: Option<Rc<Vec<Word>>>,
}

impl Word {
    /// The text of a word that is only unquoted plain text.
    pub(super) fn bare(&self) -> Option<&str> {
        match self.pieces.as_slice() {
            [
                Piece::Text {
                    text,
                    quoted: false,
                },
            ] if self.array.is_none() => Some(text),
            _ => None,
        }
    }

    /// The text of a word of only text.
    pub(super) fn literal_text(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text { text, .. } => text.as_str(),
            _ => "",
        });
        texts.collect()
    }

    /// Whether the word says itself what it is: no expansion of any kind.
    pub(super) fn is_literal(&self) -> bool {
        let mut plain = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text { quoted: true, .. } => {}
                Piece::Text { text, .. } => plain.push_str(text),
                _ => return false,
            }
        }
        let home = matches!(self.pieces.first(), Some(Piece::Text { text, quoted: false }) if text.starts_with('~'));
        let braces = plain.contains('{')
            && plain.contains('}')
            && (plain.contains(',') || plain.contains(".."));
        let tilde = home || plain.contains("=~") || plain.contains(":~");
        self.array.is_none() && !tilde && !braces && !is_glob(&plain)
    }
}

/// A part of a word.
#[derive(Debug, Clone)]
pub(super) enum Piece {
    Text {
        text: String,
        /// Quoted text is only itself; other text may be a glob or a brace.
        quoted: bool,
    },
    Parameter(Rc<Parameter>),
    /// `$(…)` and backticks.
    Substitution {
        script: Rc<Script>,
        quoted: bool,
    },
    /// `<(…)` and `>(…)`.
    Process(Rc<Script>),
    /// `$((…))`.
    Arithmetic(Rc<Vec<Piece>>),
}

/// `$x`, `${x}` and what braces can say of it.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) subscript: Option<Vec<Piece>>,
    pub(super) form: Form,
    pub(super) quoted: bool,
}

/// What an expansion does with the value.
#[derive(Debug)]
pub(super) enum Form {
    Plain,
    /// `${#x}`
    Length,
    /// `${x:-word}`, `${x:+word}`, `${x:?word}`, patterns and replacements:
    /// anything that may come of the value and these pieces.
    Changed(Vec<Piece>),
    /// `${x%word}`
    Cut(Vec<Piece>),
    /// `${x:=word}`
    Assign(Vec<Piece>),
    /// `${x:1:2}`
    Slice(Vec<Piece>),
}

/// A redirection.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) operator: Operator,
    /// The descriptor before it.
    pub(super) descriptor: Option<Descriptor>,
    pub(super) target: Target,
}

/// What stands before the operator of a redirection.
#[derive(Debug)]
pub(super) enum Descriptor {
    Number(String),
    /// `{name}>`: bash chooses a number and assigns it.
    Named(String),
}

/// The operators of redirections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    /// `<`
    Read,
    /// `>`, `>>`, `>|`, `&>`, `&>>`
    Write,
    /// `<>`
    ReadWrite,
    /// `<&`
    DuplicateInput,
    /// `>&`
    DuplicateOutput,
    /// `<<`, `<<-`
    Document,
    /// `<<<`
    Text,
}

/// Where a redirection leads.
#[derive(Debug)]
pub(super) enum Target {
    Word(Word),
    /// What of a here-document expands; set when its text was read.
    Document(Rc<OnceCell<Vec<Piece>>>),
}

/// Whether unquoted text is a glob; a `[` that nothing closes is none.
pub(super) fn is_glob(text: &str) -> bool {
    let bracket = text
        .split_once('[')
        .is_some_and(|(_, rest)| rest.contains(']'));
    bracket || text.contains(['*', '?'])
}
