//! The page as it is written: literals as they are, everything else redacted
//! and escaped.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::report::grouped;
use crate::secret::Redactor;

/// A page that is being written.
pub(super) struct Page<'a> {
    out: &'a mut dyn Write,
    redactor: &'a Redactor,
}

impl<'a> Page<'a> {
    /// A page without the secrets that `redactor` knows.
    pub(super) fn new(out: &'a mut dyn Write, redactor: &'a Redactor) -> Self {
        Self { out, redactor }
    }

    /// Markup. It is always a literal: nothing that was read can get here.
    pub(super) fn raw(&mut self, html: &'static str) -> io::Result<()> {
        self.out.write_all(html.as_bytes())
    }

    /// Text, which stays text whatever it holds.
    pub(super) fn text(&mut self, text: &str) -> io::Result<()> {
        let clean = self.redactor.redact(text);
        escape(&clean, self.out)
    }

    /// An attribute of the open tag.
    pub(super) fn attribute(&mut self, name: &'static str, value: &str) -> io::Result<()> {
        self.raw(" ")?;
        self.raw(name)?;
        self.raw("=\"")?;
        self.text(value)?;
        self.raw("\"")
    }

    /// The `id` attribute of the open tag, or a part of it.
    pub(super) fn anchor(&mut self, anchor: &Anchor) -> io::Result<()> {
        self.out.write_all(anchor.0.as_bytes())
    }

    /// `text` as one line of at most `chars` characters.
    pub(super) fn preview(&mut self, text: &str, chars: usize) -> io::Result<()> {
        // A secret cut in two would not be known any more.
        let short = one_line(&self.redact(text), chars);
        self.text(&short)
    }

    /// `text` without secrets, for whoever takes it apart.
    pub(super) fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.redactor.redact(text)
    }

    /// `12,345`.
    pub(super) fn number(&mut self, number: u64) -> io::Result<()> {
        self.text(&grouped(number))
    }

    /// `1 reply`, `2 replies`.
    pub(super) fn count(
        &mut self,
        number: u64,
        one: &'static str,
        many: &'static str,
    ) -> io::Result<()> {
        self.number(number)?;
        self.raw(" ")?;
        self.raw(if number == 1 { one } else { many })
    }
}

/// The name of a place on the page: letters, digits and hyphens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor(String);

impl Anchor {
    /// Of the entry with this id, which is the `place`-th of its session. An
    /// id of another form than ours is left out.
    pub(super) fn of_entry(id: &str, place: usize) -> Self {
        let ours = id.len() == 8
            && id
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if ours {
            Self(format!("e-{id}"))
        } else {
            Self(format!("n-{place}"))
        }
    }
}

/// `text` with single spaces and at most `chars` characters.
pub(super) fn one_line(text: &str, chars: usize) -> String {
    let mut line = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        for character in word.chars() {
            if used >= chars {
                line.push('…');
                return line;
            }
            line.push(character);
            used += 1;
        }
    }
    line
}

/// Writes `text` so that no browser takes any of it for markup, a reader sees
/// what is in it, and a CI system that reads along takes no line for a command.
fn escape(text: &str, out: &mut dyn Write) -> io::Result<()> {
    let mut written = 0;
    let mut line_starts = true;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let instead = match character {
            ':' if line_starts && next == Some(':') => Some(Cow::Borrowed("&#58;")),
            '#' if next == Some('#') => Some(Cow::Borrowed("&#35;")),
            other => stands_for(other, next),
        };
        line_starts = character == '\n' || (line_starts && character.is_whitespace());
        if let Some(instead) = instead {
            out.write_all(text.get(written..at).unwrap_or_default().as_bytes())?;
            out.write_all(instead.as_bytes())?;
            written = at + character.len_utf8();
        }
    }
    out.write_all(text.get(written..).unwrap_or_default().as_bytes())
}

/// What is written for a character that cannot stand for itself.
fn stands_for(character: char, next: Option<char>) -> Option<Cow<'static, str>> {
    Some(match character {
        '&' => "&amp;".into(),
        '<' => "&lt;".into(),
        '>' => "&gt;".into(),
        '"' => "&quot;".into(),
        '\'' => "&#39;".into(),
        '\t' | '\n' => return None,
        '\r' if next == Some('\n') => "".into(),
        unseen if is_unseen(unseen) => format!("⟨U+{:04X}⟩", u32::from(unseen)).into(),
        _ => return None,
    })
}

/// Characters that hide, reorder what is read, or are none at all. The joiners
/// stay, which some scripts and emoji need.
fn is_unseen(character: char) -> bool {
    matches!(character,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{fdd0}'..='\u{fdef}' | '\u{e0000}'..='\u{e007f}')
        || u32::from(character) & 0xfffe == 0xfffe
}
