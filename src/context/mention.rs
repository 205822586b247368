//! `@file` in a prompt: where it stands and what it may name. Whether there is
//! such a file, and what is in it, is looked up elsewhere.

use std::ops::Range;

use super::prompt_text::PromptText;

/// More mentions of one prompt are not looked at.
const MENTIONS_MAX: usize = 256;
/// As many signs may close a sentence behind a name.
const CLOSING_MAX: usize = 4;

/// An `@` that may name a file or a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention<'t> {
    /// Where it stands, from the `@` to the end of the longest name.
    pub range: Range<usize>,
    /// What it may name, the longest first: `@src/lib.rs.` names `src/lib.rs.`
    /// when that exists, and otherwise `src/lib.rs`.
    pub names: Vec<&'t str>,
    /// Whether the name was in quotes, so that it can be nothing else.
    pub quoted: bool,
}

/// The mentions of a prompt, in order. An `@` behind a letter, a digit or a
/// sign of addresses is none (`me@example.org`), nor is one in or right before
/// data.
pub fn mentions(prompt: PromptText<'_>) -> Vec<Mention<'_>> {
    let mut found: Vec<Mention<'_>> = Vec::new();
    let mut from = 0;
    while found.len() < MENTIONS_MAX
        && let Some(at) = prompt.text.get(from..).and_then(|rest| rest.find('@'))
    {
        let at = from + at;
        from = at + 1;
        if prompt.is_data(at) || continues_a_word(prompt.text, at) {
            continue;
        }
        if let Some(mention) = quoted(prompt, at).or_else(|| plain(prompt, at)) {
            from = mention.range.end;
            found.push(mention);
        }
    }
    found
}

fn continues_a_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|text| text.chars().next_back());
    before.is_some_and(|c| c.is_ascii_alphanumeric() || "._%+-/\\@".contains(c))
}

/// `@"name"`, on one line.
fn quoted(prompt: PromptText<'_>, at: usize) -> Option<Mention<'_>> {
    let start = at + 2;
    let rest = prompt.text.get(at..)?.strip_prefix("@\"")?;
    let name = rest.split(['"', '\n']).next()?;
    let end = start + name.len();
    let closed = prompt.text.get(end..)?.starts_with('"');
    let believed = (at..end).all(|at| !prompt.is_data(at));
    (closed && believed && !name.trim().is_empty()).then(|| Mention {
        range: at..end + 1,
        names: vec![name],
        quoted: true,
    })
}

fn plain(prompt: PromptText<'_>, at: usize) -> Option<Mention<'_>> {
    let start = at + 1;
    let mut end = start;
    while let Some(c) = prompt.char_at(end)
        && !ends_name(c)
    {
        if prompt.is_data(end) {
            return None;
        }
        end += c.len_utf8();
    }
    let mut name = prompt.text.get(start..end)?;
    if name.starts_with('@') || !name.contains(char::is_alphanumeric) {
        return None;
    }
    let mut names = vec![name];
    for _ in 0..CLOSING_MAX {
        let Some(shorter) = name.strip_suffix(closes_sentence) else {
            break;
        };
        name = shorter;
        names.push(name);
    }
    Some(Mention {
        range: at..end,
        names,
        quoted: false,
    })
}

/// Signs that no name without quotes has: white space, quotes, brackets of
/// markup, separators of lists, and the punctuation of scripts that are
/// written without spaces.
fn ends_name(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || "\"'`<>|,;".contains(c)
        || matches!(c, '\u{2018}'..='\u{201f}' | '\u{2026}' | '\u{3000}'..='\u{3020}')
        || matches!(c, '\u{ff01}'..='\u{ff0f}' | '\u{ff1a}'..='\u{ff20}')
        || matches!(c, '\u{ff3b}'..='\u{ff40}' | '\u{ff5b}'..='\u{ff65}')
}

fn closes_sentence(c: char) -> bool {
    ".:!?)]}*_".contains(c)
}
