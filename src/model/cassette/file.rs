//! A cassette as it is read: every line is checked before the run begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use crate::model::description::Model;

use super::CASSETTE_BYTES_MAX;
use super::line::{Call, Conversation, End, Line, ToolAnswer, VERSION};
use super::replay::Cassette;

/// The most bytes of an error that a line quotes.
const QUOTED_CHARS_MAX: usize = 200;

/// What a cassette holds.
#[derive(Debug, Default)]
pub(super) struct Tape {
    /// The file, for people.
    pub(super) name: String,
    /// The version of the program that recorded it.
    pub(super) agent: String,
    pub(super) models: Vec<Model>,
    pub(super) calls: Vec<Call>,
    pub(super) tools: Vec<ToolAnswer>,
    /// The calls of each conversation, by their place in `calls`.
    pub(super) index: BTreeMap<Conversation, Vec<usize>>,
}

impl Tape {
    /// The jobs that asked a model.
    pub(super) fn jobs(&self) -> BTreeSet<&str> {
        self.index.keys().map(|known| known.job.as_str()).collect()
    }
}

/// A file that is no cassette, or not a whole one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name}:{line}: {message}")]
pub struct CassetteError {
    /// The file.
    pub name: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Cassette {
    /// Reads a cassette; `name` is how errors call it.
    ///
    /// # Errors
    /// When it is none, is from a newer version, or is not whole.
    pub fn parse(text: &str, name: &str) -> Result<Self, CassetteError> {
        let at = |line: usize, message: String| CassetteError {
            name: name.to_owned(),
            line,
            message,
        };
        if text.len() > CASSETTE_BYTES_MAX {
            let most = CASSETTE_BYTES_MAX >> 20;
            return Err(at(1, format!("a cassette has at most {most} MiB")));
        }
        let mut tape = Tape {
            name: name.to_owned(),
            ..Tape::default()
        };
        let mut lines = text.lines().zip(1..);
        let (first, _) = lines.next().unwrap_or_default();
        tape.agent = opening(first).map_err(|message| at(1, message))?;
        let mut end = None;
        let mut last = 1;
        for (line, number) in lines {
            last = number;
            if end.is_some() {
                return Err(at(number, "there is more behind its end".to_owned()));
            }
            let line =
                serde_json::from_str(line).map_err(|error| at(number, unreadable(line, &error)))?;
            end = tape.take(line).map_err(|message| at(number, message))?;
        }
        match end {
            Some(end)
                if end.calls as usize == tape.calls.len()
                    && end.tools as usize == tape.tools.len() =>
            {
                Ok(Self {
                    tape: Arc::new(tape),
                })
            }
            Some(end) => Err(at(
                last,
                format!(
                    "its end promises {} calls and {} results of tools, and it has {} and {}",
                    end.calls,
                    end.tools,
                    tape.calls.len(),
                    tape.tools.len()
                ),
            )),
            None => Err(at(
                last,
                "it has no end, so it was cut; record it again".to_owned(),
            )),
        }
    }
}

impl Tape {
    /// Takes a line in; the last one is given back.
    fn take(&mut self, line: Line) -> Result<Option<End>, String> {
        match line {
            Line::Cassette(_) => return Err("it begins twice".to_owned()),
            Line::Model(model) => self.models.push(*model),
            Line::Call(call) => {
                let known = self.index.entry(call.conversation.clone()).or_default();
                if known.is_empty() && call.request.head.is_none() {
                    return Err("the first call of a conversation has no `head`".to_owned());
                }
                known.push(self.calls.len());
                self.calls.push(*call);
            }
            Line::Tool(answer) => self.tools.push(*answer),
            Line::End(end) => return Ok(Some(end)),
        }
        Ok(None)
    }
}

/// Reads the first line, of which a newer version may have made something else.
fn opening(line: &str) -> Result<String, String> {
    let not_one = "this is no cassette: record one with --record".to_owned();
    let value: Value = serde_json::from_str(line).map_err(|_| not_one.clone())?;
    let version = value.pointer("/cassette/version").and_then(Value::as_u64);
    let agent = value.pointer("/cassette/agent").and_then(Value::as_str);
    match (version, agent) {
        (Some(version), Some(agent)) if version == u64::from(VERSION) => Ok(agent.to_owned()),
        (Some(version), agent) if version > u64::from(VERSION) => Err(format!(
            "this is a cassette of version {version}, written by agent {}; this program reads \
             version {VERSION}: use a newer one",
            agent.unwrap_or("of a newer version")
        )),
        _ => Err(not_one),
    }
}

fn unreadable(line: &str, error: &serde_json::Error) -> String {
    if line.trim().is_empty() {
        return "an empty line".to_owned();
    }
    let why: String = error.to_string().chars().take(QUOTED_CHARS_MAX).collect();
    if error.is_eof() {
        format!("the line is cut ({why}); record it again")
    } else {
        format!("this is no line of a cassette: {why}")
    }
}
