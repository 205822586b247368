//! The body of an answer as it is recorded: its frames as they came, without
//! secrets and paths, those that are spread over many frames included.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use crate::model::sse::{Frame, SseDecoder};

use super::scrub::Scrub;

/// The pieces of a body; together they are the body, as far as nothing had to
/// be taken out. What is no UTF-8 is replaced, as decoding it would.
pub(super) fn of_body(body: &[u8], scrub: &Scrub) -> Vec<String> {
    let text = String::from_utf8_lossy(body);
    let start =
        text.trim_start_matches(|symbol: char| symbol.is_whitespace() || symbol == '\u{feff}');
    if start.is_empty() {
        return Vec::new();
    }
    if start.starts_with(['{', '[', '<']) {
        return vec![document(&text, scrub)];
    }
    let mut blocks: Vec<Block> = split(&text).into_iter().map(Block::new).collect();
    rewrite(&mut blocks, scrub);
    blocks.into_iter().map(|block| block.text).collect()
}

/// A body that is one document.
fn document(text: &str, scrub: &Scrub) -> String {
    let Ok(value) = serde_json::from_str::<Value>(text) else {
        return scrub.text(text).into_owned();
    };
    let clean = scrub.value(value.clone());
    if clean == value {
        text.to_owned()
    } else {
        clean.to_string()
    }
}

/// Cuts behind every blank line.
fn split(text: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let (mut start, mut line_start) = (0, 0);
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let ends_line = matches!(byte, b'\n' | b'\r');
        let blank = ends_line && at == line_start;
        at += match (byte, bytes.get(at + 1)) {
            (b'\r', Some(b'\n')) => 2,
            _ => 1,
        };
        if ends_line {
            line_start = at;
        }
        if blank {
            blocks.extend(text.get(start..at));
            start = at;
        }
    }
    blocks.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    blocks
}

/// A frame with the comments around it.
struct Block {
    text: String,
    frame: Option<Frame>,
    /// Its data, when that is JSON.
    data: Option<Value>,
    /// Whether a blank line ends it.
    whole: bool,
}

impl Block {
    fn new(text: &str) -> Self {
        let mut frames = Vec::new();
        let mut decoder = SseDecoder::new();
        let pushed = decoder.push(text.as_bytes(), &mut frames);
        let whole = !frames.is_empty();
        if pushed.is_ok() {
            // A frame that is too large is an error again when it is read.
            let _ = decoder.finish(&mut frames);
        }
        let frame = frames.into_iter().next();
        let data = frame
            .as_ref()
            .and_then(|frame| serde_json::from_str(&frame.data).ok())
            .filter(|data: &Value| data.is_object() || data.is_array());
        Self {
            text: text.to_owned(),
            frame,
            data,
            whole,
        }
    }

    /// Writes the frame anew, with this data.
    fn replace(&mut self, data: &str) {
        let event = self.frame.as_ref().map_or("", |frame| &frame.event);
        let mut text = String::new();
        if !event.is_empty() {
            text.push_str(&format!("event: {event}\n"));
        }
        for line in data.split('\n') {
            text.push_str(&format!("data: {line}\n"));
        }
        if self.whole {
            text.push('\n');
        }
        self.text = text;
    }
}

/// Takes secrets and paths out of all blocks.
fn rewrite(blocks: &mut [Block], scrub: &Scrub) {
    let mut pieces = Pieces::default();
    for data in blocks.iter().filter_map(|block| block.data.as_ref()) {
        visit(data, &Path::default(), &mut |path, text| {
            pieces.take(path, text);
        });
    }
    let spread = pieces.scrubbed(scrub);
    let mut next = 0;
    for block in blocks {
        let Some(data) = block.data.take() else {
            opaque(block, scrub);
            continue;
        };
        let mut clean = data.clone();
        replace(&mut clean, &Path::default(), &mut |path, text| {
            if path.streams() {
                if let Some(other) = spread.get(&next) {
                    other.clone_into(text);
                }
            } else if let Cow::Owned(other) = scrub.text(text) {
                *text = other;
            }
            next += 1;
        });
        let clean = scrub.secrets(clean);
        if clean != data {
            block.replace(&clean.to_string());
        } else if let Cow::Owned(clean) = scrub.redactor.redact(&block.text) {
            // A comment, or the name of the event.
            block.text = clean;
        }
    }
}

/// A frame without JSON. Of one that the end of the connection cut nothing is
/// kept but that it was there: it may end with the rest of a secret.
fn opaque(block: &mut Block, scrub: &Scrub) {
    match &block.frame {
        Some(frame) if !block.whole && frame.data.starts_with(['{', '[']) => block.replace("{"),
        _ => {
            if let Cow::Owned(clean) = scrub.text(&block.text) {
                block.text = clean;
            }
        }
    }
}

/// Where a text stands in a frame: the names on the way to it without the
/// places in lists, and the numbers that tell blocks apart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Path {
    names: String,
    indexes: String,
}

impl Path {
    fn enter(&self, name: &str) -> Self {
        Self {
            names: format!("{}/{name}", self.names),
            indexes: self.indexes.clone(),
        }
    }

    /// The same inside `fields`, which may number a block.
    fn within(&self, fields: &serde_json::Map<String, Value>) -> Self {
        let mut path = self.clone();
        for (name, value) in fields {
            if name.ends_with("index") && value.is_number() {
                path.indexes.push_str(&format!("{name}={value} "));
            }
        }
        path
    }

    /// Whether texts at this place continue each other from frame to frame.
    fn streams(&self) -> bool {
        self.names.split('/').any(|name| name == "delta") || self.names.ends_with("/parts/text")
    }
}

fn visit(value: &Value, path: &Path, see: &mut impl FnMut(&Path, &str)) {
    match value {
        Value::String(text) => see(path, text),
        Value::Array(items) => items.iter().for_each(|item| visit(item, path, see)),
        Value::Object(fields) => {
            let inside = path.within(fields);
            for (name, value) in fields {
                visit(value, &inside.enter(name), see);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn replace(value: &mut Value, path: &Path, change: &mut impl FnMut(&Path, &mut String)) {
    match value {
        Value::String(text) => change(path, text),
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| replace(item, path, change)),
        Value::Object(fields) => {
            let inside = path.within(fields);
            for (name, value) in fields.iter_mut() {
                replace(value, &inside.enter(name), change);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Texts that go on from frame to frame.
#[derive(Default)]
struct Pieces {
    /// How many texts there are.
    count: usize,
    /// Each place with its texts, by their number.
    streams: HashMap<Path, Vec<(usize, String)>>,
}

impl Pieces {
    fn take(&mut self, path: &Path, text: &str) {
        if path.streams() {
            let stream = self.streams.entry(path.clone()).or_default();
            stream.push((self.count, text.to_owned()));
        }
        self.count += 1;
    }

    /// The texts that change, by their number.
    fn scrubbed(&self, scrub: &Scrub) -> HashMap<usize, String> {
        let mut changed = HashMap::new();
        for stream in self.streams.values() {
            let whole: String = stream.iter().map(|(_, text)| text.as_str()).collect();
            if let Cow::Owned(clean) = scrub.text(&whole) {
                spread(stream, &clean, &mut changed);
            }
        }
        changed
    }
}

/// Lays `clean` over the pieces: those before and behind the change stay as
/// they are, the first one between takes what is between.
fn spread(stream: &[(usize, String)], clean: &str, changed: &mut HashMap<usize, String>) {
    let (mut rest, mut pieces) = (clean, stream);
    while let [(_, first), others @ ..] = pieces
        && let Some(after) = rest.strip_prefix(first.as_str())
    {
        (rest, pieces) = (after, others);
    }
    while let [others @ .., (_, last)] = pieces
        && !others.is_empty()
        && let Some(before) = rest.strip_suffix(last.as_str())
    {
        (rest, pieces) = (before, others);
    }
    for (at, (number, _)) in pieces.iter().enumerate() {
        let text = if at == 0 { rest } else { "" };
        changed.insert(*number, text.to_owned());
    }
}
