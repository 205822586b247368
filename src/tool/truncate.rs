//! How much of a text a model sees, and what is taken out of it first.

use std::mem;

/// The most lines of one result.
pub const LINES_MAX: usize = 2_000;
/// The most bytes of one result.
pub const BYTES_MAX: usize = 50 * 1024;

/// A line up to this length can still be overwritten by a carriage return.
const HELD_BYTES_MAX: usize = 8 * 1024;

/// The part of a text that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut<'a> {
    /// Whole lines, except when a single line is longer than [`BYTES_MAX`].
    pub text: &'a str,
    /// The lines in `text`.
    pub lines: usize,
    /// Whether anything was left out.
    pub truncated: bool,
}

/// The first [`LINES_MAX`] lines or [`BYTES_MAX`] bytes, in whole lines.
pub fn head(text: &str) -> Cut<'_> {
    let mut end = 0;
    let mut lines = 0;
    for line in text.split_inclusive('\n') {
        if lines == LINES_MAX || end + line.len() > BYTES_MAX {
            break;
        }
        end += line.len();
        lines += 1;
    }
    if lines == 0 && !text.is_empty() {
        end = text.floor_char_boundary(BYTES_MAX);
        lines = 1;
    }
    Cut {
        text: text.get(..end).unwrap_or_default(),
        lines,
        truncated: end < text.len(),
    }
}

/// The last [`LINES_MAX`] lines or [`BYTES_MAX`] bytes, in whole lines.
pub fn tail(text: &str) -> Cut<'_> {
    let mut start = text.len();
    let mut lines = 0;
    for line in text.split_inclusive('\n').rev() {
        if lines == LINES_MAX || text.len() - start + line.len() > BYTES_MAX {
            break;
        }
        start -= line.len();
        lines += 1;
    }
    if lines == 0 && !text.is_empty() {
        start = text.ceil_char_boundary(text.len() - BYTES_MAX.min(text.len()));
        lines = 1;
    }
    Cut {
        text: text.get(start..).unwrap_or_default(),
        lines,
        truncated: start > 0,
    }
}

/// Bytes of a file as text: without escape sequences and control characters,
/// with `\n` line ends, invalid UTF-8 replaced.
pub fn clean(bytes: &[u8]) -> String {
    let mut cleaner = Cleaner::new(Return::EndsLine);
    let mut out = String::with_capacity(bytes.len());
    cleaner.push(bytes, &mut out);
    cleaner.finish(&mut out);
    out
}

/// What a carriage return without a line feed means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// The line ends, as in files.
    EndsLine,
    /// What follows overwrites the line, as on a terminal.
    Overwrites,
}

/// Makes clean text of a stream of bytes, wherever it is split. It gives whole
/// lines and holds the line that is still being written.
#[derive(Debug)]
pub struct Cleaner {
    carriage_return: Return,
    escape: Escape,
    /// The begin of a character whose rest has not come yet.
    carry: Vec<u8>,
    line: String,
    /// Whether the line's begin has been given away.
    line_begun: bool,
    returned: bool,
}

/// Where in an escape sequence the stream is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Escape {
    Outside,
    /// After ESC.
    Begun,
    /// After `ESC [`, up to its final byte.
    Control,
    /// In a string (`ESC ]` and its kin), up to BEL or `ESC \`.
    Text,
    /// After an ESC within a string.
    TextEnding,
}

impl Cleaner {
    /// A cleaner at the begin of a stream.
    pub fn new(carriage_return: Return) -> Self {
        Self {
            carriage_return,
            escape: Escape::Outside,
            carry: Vec::new(),
            line: String::new(),
            line_begun: false,
            returned: false,
        }
    }

    /// Takes the next bytes and appends what is complete to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut String) {
        let joined;
        let mut rest = bytes;
        if !self.carry.is_empty() {
            let mut carried = mem::take(&mut self.carry);
            carried.extend_from_slice(bytes);
            joined = carried;
            rest = &joined;
        }
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => return self.push_text(text, out),
                Err(error) => error,
            };
            let (good, bad) = rest.split_at(error.valid_up_to());
            self.push_text(std::str::from_utf8(good).unwrap_or_default(), out);
            let Some(length) = error.error_len() else {
                self.carry = bad.to_vec();
                return;
            };
            self.push_char(char::REPLACEMENT_CHARACTER, out);
            rest = bad.get(length..).unwrap_or_default();
        }
    }

    /// Appends what is still held; the stream has ended.
    pub fn finish(&mut self, out: &mut String) {
        if !mem::take(&mut self.carry).is_empty() {
            self.push_char(char::REPLACEMENT_CHARACTER, out);
        }
        out.push_str(&mem::take(&mut self.line));
    }

    fn push_text(&mut self, text: &str, out: &mut String) {
        let ends_run = |c: char| c.is_control() && c != '\t';
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let mut length = c.len_utf8();
            if self.escape == Escape::Outside && !ends_run(c) {
                length = rest.find(ends_run).unwrap_or(rest.len());
                self.put(rest.get(..length).unwrap_or_default(), out);
            } else {
                self.push_char(c, out);
            }
            rest = rest.get(length..).unwrap_or_default();
        }
    }

    fn push_char(&mut self, c: char, out: &mut String) {
        match self.escape {
            Escape::Outside => self.push_plain(c, out),
            Escape::Begun => self.escape = after_escape(c),
            Escape::Control if ('\x40'..='\x7e').contains(&c) => self.escape = Escape::Outside,
            Escape::Text if c == '\x07' => self.escape = Escape::Outside,
            Escape::Text if c == '\x1b' => self.escape = Escape::TextEnding,
            Escape::TextEnding => self.escape = Escape::Outside,
            // A sequence that never ends must not swallow the rest.
            Escape::Control | Escape::Text if c == '\n' => {
                self.escape = Escape::Outside;
                self.push_plain(c, out);
            }
            Escape::Control | Escape::Text => {}
        }
    }

    fn push_plain(&mut self, c: char, out: &mut String) {
        match c {
            '\x1b' => self.escape = Escape::Begun,
            '\n' => self.end_line(out),
            '\r' => self.returned = true,
            '\x08' if self.carriage_return == Return::Overwrites => {
                self.line.pop();
            }
            c if c.is_control() && c != '\t' => {}
            c => self.put(c.encode_utf8(&mut [0; 4]), out),
        }
    }

    /// Puts a run of plain characters.
    fn put(&mut self, run: &str, out: &mut String) {
        if mem::take(&mut self.returned) {
            match self.carriage_return {
                Return::Overwrites if !self.line_begun => self.line.clear(),
                Return::Overwrites | Return::EndsLine => self.end_line(out),
            }
        }
        let mut rest = run;
        while !rest.is_empty() {
            let room = HELD_BYTES_MAX
                .saturating_sub(self.line.len())
                .min(rest.len());
            let (now, later) = rest.split_at(rest.ceil_char_boundary(room));
            self.line.push_str(now);
            rest = later;
            if self.line.len() >= HELD_BYTES_MAX {
                out.push_str(&mem::take(&mut self.line));
                self.line_begun = true;
            }
        }
    }

    fn end_line(&mut self, out: &mut String) {
        out.push_str(&self.line);
        out.push('\n');
        self.line.clear();
        self.line_begun = false;
        self.returned = false;
    }
}

fn after_escape(c: char) -> Escape {
    match c {
        '[' => Escape::Control,
        ']' | 'P' | 'X' | '^' | '_' => Escape::Text,
        // Intermediate bytes, as in `ESC ( B`: one more follows.
        ' '..='/' => Escape::Begun,
        _ => Escape::Outside,
    }
}
