//! The difference that an edit made, in colour.
//!
//! Two forms are known: the unified one, and one that numbers its lines itself
//! (`+12 text`), which other writers of the session format use. Both tell by
//! the first character of a line what became of it.

use std::borrow::Cow;
use std::io;

use serde_json::Value;

use super::output;
use super::page::Page;

/// How many lines came and went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) added: usize,
    pub(super) removed: usize,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Added,
    Removed,
    Kept,
    /// The place of a hunk.
    Place,
    /// The name of a file.
    Name,
}

/// A difference as text.
pub(super) struct Diff<'a> {
    text: Cow<'a, str>,
    /// Whether hunks tell where they stand.
    unified: bool,
}

impl<'a> Diff<'a> {
    /// The one that a tool's details hold.
    pub(super) fn of_details(details: Option<&'a Value>) -> Option<Self> {
        let text = details?.get("diff")?.as_str()?;
        let unified = text.starts_with("--- ") || text.starts_with("@@ ");
        (!text.trim().is_empty()).then_some(Self {
            text: Cow::Borrowed(text),
            unified,
        })
    }

    /// The one that the arguments of an edit ask for.
    pub(super) fn of_edit(arguments: &Value) -> Option<Self> {
        let mut text = String::new();
        let edits = match arguments.get("edits") {
            Some(edits) => edits.as_array()?.as_slice(),
            None => std::slice::from_ref(arguments),
        };
        for edit in edits {
            let old = edit.get("oldText")?.as_str()?;
            let new = edit.get("newText")?.as_str()?;
            if !text.is_empty() {
                text.push_str("@@\n");
            }
            for (mark, part) in [("-", old), ("+", new)] {
                for line in part.lines() {
                    text.push_str(mark);
                    text.push_str(line);
                    text.push('\n');
                }
            }
        }
        Some(Self {
            text: Cow::Owned(text),
            unified: false,
        })
    }

    /// Counts its lines.
    pub(super) fn counts(&self) -> Counts {
        let mut counts = Counts {
            added: 0,
            removed: 0,
        };
        self.each(&self.text, |fate, _, _| {
            match fate {
                Fate::Added => counts.added += 1,
                Fate::Removed => counts.removed += 1,
                Fate::Kept | Fate::Place | Fate::Name => {}
            }
            Ok(())
        })
        // Counting cannot fail.
        .unwrap_or_default();
        counts
    }

    /// Writes it.
    pub(super) fn write(&self, page: &mut Page<'_>) -> io::Result<()> {
        page.raw(if output::is_long(&self.text) {
            "<pre class=\"diff long\" tabindex=\"0\">"
        } else {
            "<pre class=\"diff\">"
        })?;
        let text = page.redact(&self.text).into_owned();
        self.each(&text, |fate, number, line| {
            page.raw(match fate {
                Fate::Added => "<span class=\"a\"",
                Fate::Removed => "<span class=\"r\"",
                Fate::Kept => "<span class=\"k\"",
                Fate::Place => "<span class=\"p\"",
                Fate::Name => "<span class=\"n\"",
            })?;
            if let Some(number) = number {
                page.attribute("data-n", &number.to_string())?;
            }
            page.raw(">")?;
            page.text(line)?;
            page.raw("\n</span>")
        })?;
        page.raw("</pre>\n")
    }

    /// Hands on each line with its fate, and its number in the file where the
    /// hunks tell it.
    fn each(
        &self,
        text: &str,
        mut take: impl FnMut(Fate, Option<u64>, &str) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut hunk: Option<(u64, u64)> = None;
        for line in text.lines() {
            let (fate, number) = match line.as_bytes().first() {
                Some(b'-' | b'+') if self.unified && hunk.is_none() => (Fate::Name, None),
                Some(b'@') => {
                    hunk = starts(line);
                    (Fate::Place, None)
                }
                Some(b'+') => (Fate::Added, hunk.as_mut().map(|(_, new)| step(new))),
                Some(b'-') => (Fate::Removed, hunk.as_mut().map(|(old, _)| step(old))),
                Some(b'\\') => (Fate::Place, None),
                _ => {
                    let number = hunk.as_mut().map(|(old, new)| {
                        step(old);
                        step(new)
                    });
                    (Fate::Kept, number)
                }
            };
            take(fate, number, line)?;
        }
        Ok(())
    }
}

fn step(number: &mut u64) -> u64 {
    let now = *number;
    *number = now.saturating_add(1);
    now
}

/// The first lines of a hunk: `@@ -3,7 +3,9 @@`.
fn starts(line: &str) -> Option<(u64, u64)> {
    let mut ranges = line.strip_prefix("@@ ")?.split(' ');
    let mut first = |mark| {
        let range = ranges.next()?.strip_prefix(mark)?;
        range.split(',').next()?.parse().ok()
    };
    Some((first('-')?, first('+')?))
}
