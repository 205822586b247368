//! Finds the texts of an edit in a file and replaces them: each exactly once,
//! all against the original, nothing else touched. Pure.

use std::ops::Range;

use serde::Deserialize;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// One replacement as the model asks for it.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Replacement {
    /// What stands in the file.
    pub(super) old_text: String,
    /// What shall stand there.
    pub(super) new_text: String,
}

/// The content after all `edits`.
///
/// # Errors
/// Which edit cannot be applied and why; then none is.
pub(super) fn apply(content: &[u8], edits: &[Replacement]) -> Result<Vec<u8>, String> {
    if edits.is_empty() {
        return Err("there are no edits".to_owned());
    }
    let mut search = Search::new(content);
    let mut changes: Vec<(usize, Range<usize>, Vec<u8>)> = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        let range = search
            .find(edit)
            .map_err(|why| format!("edits[{index}]: {why}; no edit was made"))?;
        let ending = search.line_ending(&range);
        changes.push((index, range, with_ending(&edit.new_text, ending)));
    }
    changes.sort_by_key(|(_, range, _)| (range.start, range.end));
    let mut result = Vec::with_capacity(content.len());
    let mut done = 0;
    let mut last = 0;
    for (index, range, new) in &changes {
        if range.start < done {
            return Err(format!(
                "edits[{}] and edits[{}] overlap; join them into one; no edit was made",
                last.min(*index),
                last.max(*index)
            ));
        }
        result.extend_from_slice(content.get(done..range.start).unwrap_or_default());
        result.extend_from_slice(new);
        done = range.end;
        last = *index;
    }
    result.extend_from_slice(content.get(done..).unwrap_or_default());
    if result == content {
        return Err("the edits change nothing".to_owned());
    }
    Ok(result)
}

/// The file in the forms in which it is searched.
struct Search<'a> {
    content: &'a [u8],
    exact: View,
    /// Made when an exact search has failed.
    tolerant: Option<View>,
    /// The ending that most lines have.
    crlf: bool,
}

impl<'a> Search<'a> {
    fn new(content: &'a [u8]) -> Self {
        let line_feeds = content.iter().filter(|byte| **byte == b'\n').count();
        let both = content.windows(2).filter(|pair| pair == b"\r\n").count();
        Self {
            content,
            exact: View::exact(content),
            tolerant: None,
            crlf: both * 2 > line_feeds,
        }
    }

    /// Where `edit` applies.
    fn find(&mut self, edit: &Replacement) -> Result<Range<usize>, String> {
        if edit.old_text.is_empty() {
            return Err("oldText is empty".to_owned());
        }
        if edit.old_text == edit.new_text {
            return Err("newText is the same as oldText".to_owned());
        }
        let old = edit
            .old_text
            .strip_prefix('\u{feff}')
            .unwrap_or(&edit.old_text);
        let old = old.replace("\r\n", "\n");
        let found = self.exact.find(old.as_bytes(), End::Anywhere);
        if let Some(place) = self.only(found)? {
            return Ok(place);
        }
        let content = self.content;
        let tolerant = self.tolerant.get_or_insert_with(|| View::tolerant(content));
        let wanted = View::tolerant(old.as_bytes()).bytes;
        if wanted.trim_ascii().is_empty() {
            return Err(self.absent(&old));
        }
        // Without its trailing spaces, `foo ` must not be found in `foobar`.
        let end = if old.ends_with([' ', '\t', '\u{a0}']) {
            End::OfLine
        } else {
            End::Anywhere
        };
        let found = tolerant.find(&wanted, end);
        self.only(found)?.ok_or_else(|| self.absent(&old))
    }

    fn only(&self, mut found: Vec<Range<usize>>) -> Result<Option<Range<usize>>, String> {
        if found.len() < 2 {
            return Ok(found.pop());
        }
        let lines: Vec<String> = found
            .iter()
            .map(|range| self.line_of(range.start).to_string())
            .collect();
        Err(format!(
            "oldText is there more than once (lines {}{}); add surrounding lines to make it unique",
            lines.join(", "),
            if lines.len() == MATCHES_MAX {
                ", …"
            } else {
                ""
            },
        ))
    }

    fn line_of(&self, offset: usize) -> usize {
        let before = self.content.get(..offset).unwrap_or_default();
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// The ending of the first line of `range`, or that of most lines.
    fn line_ending(&self, range: &Range<usize>) -> &'static str {
        let inside = self.content.get(range.clone()).unwrap_or_default();
        let crlf = match inside.iter().position(|byte| *byte == b'\n') {
            Some(at) => at > 0 && inside.get(at - 1) == Some(&b'\r'),
            None => self.crlf,
        };
        if crlf { "\r\n" } else { "\n" }
    }

    /// That `old` is not there, and what comes nearest to its first line.
    fn absent(&self, old: &str) -> String {
        const LINES_MAX: usize = 20_000;
        const CHARS_MAX: usize = 200;
        let clip = |line: &str| line.trim().chars().take(CHARS_MAX).collect::<String>();
        let first = clip(
            old.lines()
                .find(|line| !line.trim().is_empty())
                .unwrap_or_default(),
        );
        let mut best: Option<(f64, usize, String)> = None;
        for (index, line) in self
            .content
            .split(|byte| *byte == b'\n')
            .take(LINES_MAX)
            .enumerate()
        {
            let line = clip(&String::from_utf8_lossy(line));
            // A far shorter or longer line cannot be similar.
            if line.len() * 2 < first.len() || first.len() * 2 < line.len() {
                continue;
            }
            let score = strsim::normalized_levenshtein(&first, &line);
            if score >= 0.6 && best.as_ref().is_none_or(|(most, ..)| score > *most) {
                best = Some((score, index + 1, line));
            }
        }
        match best {
            Some((_, number, line)) if line == first => format!(
                "oldText is not in the file, but its first line is line {number}; the lines after it differ"
            ),
            Some((_, number, line)) => {
                format!("oldText is not in the file; the nearest is line {number}: `{line}`")
            }
            None => "oldText is not in the file".to_owned(),
        }
    }
}

/// Where a match may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Anywhere,
    OfLine,
}

/// More matches than this are not told apart.
const MATCHES_MAX: usize = 5;

/// Content in a simplified form, with the way back to the original offsets.
struct View {
    bytes: Vec<u8>,
    /// For each byte where it came from, and the content's end at last. None
    /// when the view is the content shifted by `base`.
    origin: Option<Vec<usize>>,
    base: usize,
}

impl View {
    /// With `\n` line ends and without a byte-order mark.
    fn exact(content: &[u8]) -> Self {
        let base = if content.starts_with(BOM) {
            BOM.len()
        } else {
            0
        };
        let text = content.get(base..).unwrap_or_default();
        if !text.windows(2).any(|pair| pair == b"\r\n") {
            return Self {
                bytes: text.to_vec(),
                origin: None,
                base,
            };
        }
        let mut bytes = Vec::with_capacity(text.len());
        let mut origin = Vec::with_capacity(text.len() + 1);
        let mut at = base;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let (body, ending) = split_ending(line);
            bytes.extend_from_slice(body);
            origin.extend(at..at + body.len());
            if !ending.is_empty() {
                bytes.push(b'\n');
                origin.push(at + body.len());
            }
            at += line.len();
        }
        origin.push(at);
        Self {
            bytes,
            origin: Some(origin),
            base,
        }
    }

    /// As the model saw it, and without trailing spaces, with plain punctuation.
    fn tolerant(content: &[u8]) -> Self {
        let base = if content.starts_with(BOM) {
            BOM.len()
        } else {
            0
        };
        let mut bytes = Vec::with_capacity(content.len());
        let mut origin = Vec::with_capacity(content.len() + 1);
        let mut at = base;
        for line in content
            .get(base..)
            .unwrap_or_default()
            .split_inclusive(|byte| *byte == b'\n')
        {
            let (body, ending) = split_ending(line);
            plain_line(body, at, &mut bytes, &mut origin);
            if !ending.is_empty() {
                bytes.push(b'\n');
                origin.push(at + body.len());
            }
            at += line.len();
        }
        origin.push(at);
        Self {
            bytes,
            origin: Some(origin),
            base,
        }
    }

    /// The places of `wanted` in the original, overlapping ones too, the first
    /// few.
    fn find(&self, wanted: &[u8], end: End) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let Some(first) = wanted.first() else {
            return found;
        };
        let mut from = 0;
        while found.len() < MATCHES_MAX {
            let rest = self.bytes.get(from..).unwrap_or_default();
            let Some(step) = rest.iter().position(|byte| byte == first) else {
                break;
            };
            let start = from + step;
            let after = start + wanted.len();
            from = start + 1;
            let matches = self.bytes.get(start..after) == Some(wanted)
                && (end == End::Anywhere || matches!(self.bytes.get(after), None | Some(b'\n')));
            if matches {
                found.push(self.original(start)..self.original(after));
            }
        }
        found
    }

    fn original(&self, offset: usize) -> usize {
        match &self.origin {
            Some(origin) => origin.get(offset).copied().unwrap_or(self.base),
            None => offset + self.base,
        }
    }
}

/// Appends the simplified `line`, which begins at offset `at`.
fn plain_line(line: &[u8], at: usize, bytes: &mut Vec<u8>, origin: &mut Vec<usize>) {
    let start = bytes.len();
    let mut offset = at;
    for chunk in line.utf8_chunks() {
        for c in chunk.valid().chars() {
            if !c.is_control() || c == '\t' {
                let mut room = [0; 4];
                let plain = plain_char(c).encode_utf8(&mut room).as_bytes();
                bytes.extend_from_slice(plain);
                origin.extend(std::iter::repeat_n(offset, plain.len()));
            }
            offset += c.len_utf8();
        }
        if !chunk.invalid().is_empty() {
            let replaced = "\u{fffd}".as_bytes();
            bytes.extend_from_slice(replaced);
            origin.extend(std::iter::repeat_n(offset, replaced.len()));
            offset += chunk.invalid().len();
        }
    }
    while bytes.len() > start && matches!(bytes.last(), Some(b' ' | b'\t')) {
        bytes.pop();
        origin.pop();
    }
}

/// The ASCII sign that people type for a typographic one.
fn plain_char(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' => '\'',
        '\u{201c}'..='\u{201f}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        c => c,
    }
}

fn split_ending(line: &[u8]) -> (&[u8], &[u8]) {
    let ending = if line.ends_with(b"\r\n") {
        2
    } else {
        usize::from(line.ends_with(b"\n"))
    };
    line.split_at(line.len() - ending)
}

fn with_ending(text: &str, ending: &str) -> Vec<u8> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let unix = text.replace("\r\n", "\n");
    if ending == "\n" {
        return unix.into_bytes();
    }
    unix.replace('\n', ending).into_bytes()
}
