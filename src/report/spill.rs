//! Large values of the log, kept in files of their own.
//!
//! Only the line is shortened; sinks that look at the event see it whole. A
//! string is replaced by `{"truncated":true,"bytes":N,"path":"tool-output/…"}`,
//! and the same text is kept once, so that the reference to it is the same in
//! every event. That is what lets a log be folded again without the files.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::SinkError;
use crate::access;

/// The most bytes of a string in a line of the log.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;

/// No value is larger; a file that is one is not ours.
const KEPT_BYTES_MAX: u64 = 256 * 1024 * 1024;

const FOLDER: &str = "tool-output";

/// Puts large values into the run directory.
pub(super) struct Spill {
    run_dir: PathBuf,
    written: HashMap<(usize, u64), String>,
}

impl Spill {
    pub(super) fn new(run_dir: PathBuf) -> Self {
        Self {
            run_dir,
            written: HashMap::new(),
        }
    }

    /// `line` with every string of its data that is too large replaced. What
    /// cannot be kept elsewhere stays in the line, and the failure is added.
    pub(super) fn shorten(
        &mut self,
        line: String,
        seq: u64,
        failures: &mut Vec<SinkError>,
    ) -> String {
        if line.len() <= VALUE_BYTES_MAX {
            return line;
        }
        let Ok(mut event) = serde_json::from_str::<Value>(&line) else {
            return line;
        };
        let mut count = 0;
        if let Some(data) = event.get_mut("data") {
            replace(data, &mut |text| {
                count += 1;
                match self.keep(text, &format!("event-{seq}-{count}.txt")) {
                    Ok(path) => Some(reference(text.len(), &path)),
                    Err(failure) => {
                        failures.push(failure);
                        None
                    }
                }
            });
        }
        if count == 0 { line } else { event.to_string() }
    }

    fn keep(&mut self, text: &str, name: &str) -> Result<String, SinkError> {
        let key = (text.len(), hash(text));
        if let Some(path) = self.written.get(&key)
            && read_kept(&self.run_dir, path).is_some_and(|kept| kept == text)
        {
            return Ok(path.clone());
        }
        let path = format!("{FOLDER}/{name}");
        let file = self.run_dir.join(&path);
        access::create_record(&file)
            .and_then(|file| access::write_record(&file, text.as_bytes()))
            .map_err(|source| SinkError::new("write", file.display().to_string(), source))?;
        self.written.insert(key, path.clone());
        Ok(path)
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

fn reference(bytes: usize, path: &str) -> Value {
    json!({"truncated": true, "bytes": bytes, "path": path})
}

fn replace(value: &mut Value, keep: &mut dyn FnMut(&str) -> Option<Value>) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
        Value::String(text) => {
            if text.len() > VALUE_BYTES_MAX
                && let Some(reference) = keep(text)
            {
                *value = reference;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, keep)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace(field, keep)),
    }
}

/// Puts the texts back into an event read from a log: from the files below
/// `run_dir`, or, where a file is not at hand, a short stand-in.
///
/// Only references to files that a recorder names itself are followed, so that
/// text of a model cannot make a reader open anything else.
pub(super) fn restore(value: &mut Value, run_dir: Option<&Path>) {
    if let Some((bytes, path)) = referred(value) {
        let kept = run_dir.and_then(|dir| read_kept(dir, &path));
        let text = kept.filter(|text| text.len() as u64 == bytes);
        *value = Value::String(text.unwrap_or_else(|| format!("[{bytes} bytes in {path}]")));
        return;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => items.iter_mut().for_each(|item| restore(item, run_dir)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| restore(field, run_dir)),
    }
}

/// A text that is kept; none when it is no longer there as it was.
fn read_kept(run_dir: &Path, path: &str) -> Option<String> {
    let opened = access::open_below(run_dir, Path::new(path)).ok()?;
    let mut text = String::new();
    let read = opened
        .file
        .take(KEPT_BYTES_MAX)
        .read_to_string(&mut text)
        .ok()?;
    (read as u64 == opened.metadata.len()).then_some(text)
}

fn referred(value: &Value) -> Option<(u64, String)> {
    let fields = value.as_object().filter(|fields| fields.len() == 3)?;
    if fields.get("truncated")? != &Value::Bool(true) {
        return None;
    }
    let bytes = fields.get("bytes")?.as_u64()?;
    let path = fields.get("path")?.as_str()?;
    let name = path.strip_prefix(FOLDER)?.strip_prefix("/event-")?;
    let numbers = name.strip_suffix(".txt")?;
    let ours = numbers
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'-');
    (ours && bytes > VALUE_BYTES_MAX as u64).then(|| (bytes, path.to_owned()))
}
