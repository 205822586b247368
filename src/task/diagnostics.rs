//! Everything wrong with a task, in one report: where, what, and what to do.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};
use serde::Serialize;

use crate::event::Reason;
use crate::task::requires::Written;

/// The most problems that are kept; a hostile file must not make a long report.
const PROBLEMS_MAX: usize = 100;

/// The longest line that is shown as a snippet, in bytes.
const SNIPPET_LINE_MAX: usize = 400;

/// What a report of problems means for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The task, a parameter or a script is wrong.
    BadTask,
    /// A file that is needed is missing or cannot be read.
    NoInput,
    /// Nothing but flags is wrong.
    Usage,
    /// The user's file of providers is wrong.
    Config,
}

impl Kind {
    /// The reason that a run ends with.
    pub fn reason(self) -> Reason {
        match self {
            Self::BadTask => Reason::BadTask,
            Self::NoInput => Reason::NoInput,
            Self::Usage => Reason::Usage,
            Self::Config => Reason::Config,
        }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// A stable name such as `unknown_key`.
    pub code: &'static str,
    /// What is wrong, for people; one line.
    pub message: String,
    /// The file or the flag that it is in.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip)]
    at: At,
}

/// A place in one of the sources.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct At {
    /// Index of the source.
    pub(super) source: usize,
    /// First byte.
    pub(super) start: usize,
    /// Behind the last byte.
    pub(super) end: usize,
}

/// A text that was read, with the name that people know it by.
#[derive(Debug, Clone)]
struct Source {
    name: String,
    text: String,
    is_flag: bool,
}

/// All problems of a task, in reading order.
#[derive(Debug, Clone)]
pub struct Diagnostics {
    /// What they mean for the exit code.
    pub kind: Kind,
    /// The problems; never empty.
    pub list: Vec<Diagnostic>,
    sources: Vec<Source>,
}

impl Diagnostics {
    /// The report for people: a snippet with a caret for each problem.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        let mut text = String::new();
        for diagnostic in &self.list {
            let group = self.group(diagnostic);
            text.push_str(&renderer.render(&[group]));
            text.push_str("\n\n");
        }
        let count = self.list.len();
        text.push_str(&match count {
            1 => "1 problem found\n".to_owned(),
            PROBLEMS_MAX => format!("{count} problems found; the rest is not shown\n"),
            _ => format!("{count} problems found\n"),
        });
        text
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let title = Level::ERROR
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code);
        let source = self.sources.get(diagnostic.at.source);
        let snippet = source
            .filter(|source| !source.text.is_empty())
            .and_then(|source| {
                let (window, first_byte) = line_window(&source.text, diagnostic.at)?;
                let start = diagnostic
                    .at
                    .start
                    .saturating_sub(first_byte)
                    .min(window.len());
                let end = diagnostic
                    .at
                    .end
                    .saturating_sub(first_byte)
                    .clamp(start, window.len());
                Some(
                    Snippet::source(window)
                        .line_start(diagnostic.line)
                        .path(source.name.as_str())
                        .fold(false)
                        .annotation(AnnotationKind::Primary.span(start..end)),
                )
            });
        let group = match (snippet, source) {
            (Some(snippet), _) => title.element(snippet),
            (None, Some(source)) if diagnostic.line > 0 && !source.text.is_empty() => title
                .element(
                    Origin::path(source.name.as_str())
                        .line(diagnostic.line)
                        .char_column(diagnostic.column),
                ),
            (None, _) => title.element(Origin::path(diagnostic.file.as_str())),
        };
        match &diagnostic.hint {
            Some(hint) => group.element(Level::HELP.message(hint.as_str())),
            None => group,
        }
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, d) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(
                f,
                "{separator}{}:{}:{}: {}",
                d.file, d.line, d.column, d.message
            )?;
            if let Some(hint) = &d.hint {
                write!(f, " ({hint})")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The line that `at` starts in, and its first byte; none when it is too long to show.
fn line_window(text: &str, at: At) -> Option<(&str, usize)> {
    let start = floor_boundary(text, at.start.min(text.len()));
    let first = text
        .get(..start)?
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    let tail = text.get(first..)?;
    let line = tail.get(..tail.find('\n').unwrap_or(tail.len()))?;
    (line.len() <= SNIPPET_LINE_MAX).then_some((line, first))
}

fn floor_boundary(text: &str, mut index: usize) -> usize {
    while index > 0 && !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// Collects problems while a task is read.
#[derive(Debug, Default)]
pub(super) struct Report {
    sources: Vec<Source>,
    list: Vec<Diagnostic>,
    missing_input: bool,
}

impl Report {
    /// Registers a text and gives its index.
    pub(super) fn source(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.sources.push(Source {
            name: name.into(),
            text: text.into(),
            is_flag: false,
        });
        self.sources.len() - 1
    }

    /// Registers the value of a flag and gives its index.
    pub(super) fn flag(&mut self, name: impl Into<String>, value: impl Into<String>) -> usize {
        let index = self.source(name, value);
        if let Some(source) = self.sources.get_mut(index) {
            source.is_flag = true;
        }
        index
    }

    /// The text of a source.
    pub(super) fn text(&self, source: usize) -> &str {
        self.sources.get(source).map_or("", |source| &source.text)
    }

    /// Hides a value in every snippet.
    pub(super) fn mask(&mut self, at: At) {
        let source = self.sources.get_mut(at.source);
        if let Some(source) = source
            && source.text.get(at.start..at.end).is_some()
        {
            let stars = "*".repeat(at.end - at.start);
            source.text.replace_range(at.start..at.end, &stars);
        }
    }

    /// The name of a source.
    pub(super) fn name(&self, source: usize) -> &str {
        self.sources.get(source).map_or("", |source| &source.name)
    }

    /// A place that covers all of a source.
    pub(super) fn whole(&self, source: usize) -> At {
        At {
            source,
            start: 0,
            end: self.text(source).len(),
        }
    }

    /// A place as people and programs read it.
    pub(super) fn written(&self, at: At) -> Written {
        let (line, column) = position(self.text(at.source), at.start);
        let file = self.name(at.source).to_owned();
        Written { file, line, column }
    }

    /// Adds a problem.
    pub(super) fn error(&mut self, at: At, code: &'static str, message: impl Into<String>) {
        self.push(at, code, message.into(), None);
    }

    /// Adds a problem with advice.
    pub(super) fn error_with(
        &mut self,
        at: At,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<Option<String>>,
    ) {
        self.push(at, code, message.into(), hint.into());
    }

    /// Adds a problem that is a missing or unreadable file.
    pub(super) fn no_input(&mut self, at: At, message: impl Into<String>) {
        self.missing_input = true;
        self.push(at, "no_input", message.into(), None);
    }

    fn push(&mut self, at: At, code: &'static str, message: String, hint: Option<String>) {
        if self.list.len() >= PROBLEMS_MAX {
            return;
        }
        let Written { file, line, column } = self.written(at);
        self.list.push(Diagnostic {
            code,
            message,
            file,
            line,
            column,
            hint,
            at,
        });
    }

    /// How many problems there are so far, as far as they are kept.
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_clean(&self) -> bool {
        self.list.is_empty()
    }

    /// All problems, in reading order.
    pub(super) fn into_diagnostics(self) -> Diagnostics {
        let mut list = self.list;
        list.sort_by_key(|d| (d.at.source, d.at.start));
        list.dedup_by(|a, b| a.at == b.at && a.message == b.message);
        // A file that is wrong in itself stays wrong when the missing one
        // appears, so only a report of nothing but missing files is "no input".
        let only_missing = list.iter().all(|d| d.code == "no_input");
        let only_flags = list.iter().all(|d| {
            let source = self.sources.get(d.at.source);
            source.is_some_and(|source| source.is_flag)
        });
        let kind = if self.missing_input && only_missing {
            Kind::NoInput
        } else if only_flags {
            Kind::Usage
        } else {
            Kind::BadTask
        };
        Diagnostics {
            kind,
            list,
            sources: self.sources,
        }
    }
}

/// Line and column (in characters) of a byte, both from 1.
fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = text
        .get(..floor_boundary(text, byte.min(text.len())))
        .unwrap_or_default();
    let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    (line, column)
}

/// A byte range for the place.
impl From<At> for Range<usize> {
    fn from(at: At) -> Self {
        at.start..at.end
    }
}

/// "did you mean `x`?" for the closest of `known`, when one is close enough.
pub(super) fn did_you_mean<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let lower = word.to_lowercase().replace('-', "_");
    nearest(&lower, known).map(|name| format!("did you mean `{name}`?"))
}

/// The one of `known` that `word` is a misspelling of.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = word.chars().count();
    known
        .into_iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .filter(|(distance, name)| *distance <= (name.chars().count().max(length) / 3).max(1))
        .min()
        .map(|(_, name)| name)
}
