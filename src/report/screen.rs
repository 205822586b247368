//! The reader's screen: its width, its colours, its characters.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::neutral::{cut, neutral, neutral_line};
use super::phrase::counted;
use crate::access::{self, OpenFile};
use crate::secret::Redactor;

/// What the reader's screen can show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Style {
    /// Colours by ANSI sequences.
    pub color: bool,
    /// Characters beyond ASCII in our own words.
    pub unicode: bool,
}

/// How progress is shown to people.
#[derive(Debug, Clone, Default)]
pub struct HumanOptions {
    /// What the screen can show.
    pub style: Style,
    /// Columns of a line; none is 120.
    pub width: Option<u16>,
    /// The run directory, from which the final patch is read.
    pub run_dir: Option<PathBuf>,
    /// Takes out secrets that show only in a text that was made harmless.
    pub redactor: Redactor,
}

/// The most lines of a patch that are shown.
const PATCH_LINES_MAX: usize = 200;
/// The most bytes of a patch that are read.
const PATCH_BYTES_MAX: u64 = 1024 * 1024;

/// What a line means, as a colour.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tone {
    Plain,
    Bold,
    Dim,
    Good,
    Bad,
    Warn,
    Accent,
}

/// Lays lines out.
pub(super) struct Screen {
    options: HumanOptions,
}

impl Screen {
    pub(super) fn new(options: HumanOptions) -> Self {
        Self { options }
    }

    /// The patch `name` of the run directory, its first lines.
    pub(super) fn patch(&self, name: Option<&str>) -> Vec<String> {
        let (Some(folder), Some(name)) = (&self.options.run_dir, name) else {
            return Vec::new();
        };
        // A log may be anybody's, and so may what it calls its patch.
        let Ok(OpenFile { file, .. }) = access::open_below(folder, Path::new(name)) else {
            return Vec::new();
        };
        let mut bytes = Vec::new();
        let mut part = file.take(PATCH_BYTES_MAX);
        if part.read_to_end(&mut bytes).is_err() {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut all = text.lines();
        let mut lines: Vec<String> = all
            .by_ref()
            .take(PATCH_LINES_MAX)
            .map(|line| self.patch_line(line))
            .collect();
        let more = all.count();
        if more > 0 {
            let text = format!("{} more in {}", counted(more as u64, "line"), neutral(name));
            lines.push(self.line(Tone::Dim, self.dots(), &text));
        }
        lines
    }

    fn patch_line(&self, line: &str) -> String {
        let tone = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => {
                Tone::Bold
            }
            [b'+', ..] => Tone::Good,
            [b'-', ..] => Tone::Bad,
            [b'@', ..] => Tone::Accent,
            _ => Tone::Plain,
        };
        self.paint(tone, &self.fitted(&neutral_line(line)))
    }

    /// A mark in colour and a text, cut to the width of the screen.
    pub(super) fn line(&self, tone: Tone, mark: &str, text: &str) -> String {
        let whole = self.fitted(&format!("{mark} {text}"));
        match whole.strip_prefix(mark) {
            Some(rest) if self.options.style.color => format!("{}{rest}", self.paint(tone, mark)),
            _ => whole,
        }
    }

    /// As [`Self::line`], for what must not be lost.
    pub(super) fn uncut(&self, tone: Tone, mark: &str, text: &str) -> String {
        let text = self.options.redactor.redact(text);
        format!("{} {text}", self.paint(tone, mark))
    }

    /// A text without secrets, cut to the width of the screen: of one that was
    /// cut first, the beginning would be shown.
    pub(super) fn fitted(&self, text: &str) -> String {
        let columns = usize::from(self.options.width.unwrap_or(120)).max(20);
        cut(&self.options.redactor.redact(text), columns, self.dots())
    }

    fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Bold => "1",
            Tone::Dim => "2",
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Warn => "33",
            Tone::Accent => "36",
        };
        if self.options.style.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn cross(&self) -> &'static str {
        if self.options.style.unicode {
            "✗"
        } else {
            "FAILED"
        }
    }

    pub(super) fn dots(&self) -> &'static str {
        if self.options.style.unicode {
            "…"
        } else {
            "..."
        }
    }

    pub(super) fn check(&self) -> &'static str {
        if self.options.style.unicode {
            "✓"
        } else {
            "ok"
        }
    }
}
