//! Here-documents: their text begins on the line after the one that announces
//! them.

use std::cell::OnceCell;
use std::rc::Rc;

use super::read::{Announced, Pieces, Quoting, Reader, Within};
use super::syntax::{Piece, Target};
use super::{Refusal, refuse};

/// More of them on one line are nobody's work.
const ANNOUNCED_MAX: usize = 8;

impl Reader<'_> {
    /// Reads the delimiter after `<<` or `<<-`.
    pub(super) fn announce(&mut self, operator: &str) -> Result<Target, Refusal> {
        self.skip_blanks();
        let Some(word) = self.word(Within::Command)? else {
            return refuse("a here-document has no delimiter");
        };
        let mut delimiter = String::new();
        let mut any_quoted = false;
        for piece in &word.pieces {
            let Piece::Text { text, quoted } = piece else {
                return refuse("the delimiter of a here-document has an expansion");
            };
            delimiter.push_str(text);
            any_quoted |= quoted;
        }
        if delimiter.is_empty() || delimiter.contains(['\n', '\\', '$', '`']) {
            return refuse("the delimiter of a here-document is unusual");
        }
        let pieces = Rc::new(OnceCell::new());
        if self.pending.len() >= ANNOUNCED_MAX {
            return refuse("it has too many here-documents");
        }
        self.pending.push(Announced {
            delimiter,
            strips: operator == "<<-",
            quoted: any_quoted,
            pieces: Rc::clone(&pieces),
        });
        Ok(Target::Document(pieces))
    }

    /// Takes a line end, and the here-documents that were announced before it.
    pub(super) fn line_end(&mut self) -> Result<bool, Refusal> {
        if !self.eat("\n") {
            return Ok(false);
        }
        for announced in std::mem::take(&mut self.pending) {
            self.document(&announced)?;
        }
        Ok(true)
    }

    fn document(&mut self, announced: &Announced) -> Result<(), Refusal> {
        let mut body = String::new();
        loop {
            let Some(line) = self.rest().split_inclusive('\n').next() else {
                return refuse("a here-document does not end");
            };
            self.at += line.len();
            let mut content = line.strip_suffix('\n').unwrap_or(line);
            if announced.strips {
                content = content.trim_start_matches('\t');
            }
            if content == announced.delimiter {
                break;
            }
            let joins = content.len() - content.trim_end_matches('\\').len();
            if !announced.quoted && joins % 2 == 1 {
                return refuse("a line of a here-document ends with a backslash");
            }
            body.push_str(content);
            body.push('\n');
        }
        let mut pieces = Pieces::default();
        if !announced.quoted {
            let mut reader = Reader::new(&body, self.depth);
            while let Some(c) = reader.take() {
                reader.expanding(c, &mut pieces, Quoting::Document)?;
            }
            if !reader.pending.is_empty() {
                return refuse("here-documents are announced inside each other");
            }
        }
        let _ = announced.pieces.set(pieces.done);
        Ok(())
    }
}
