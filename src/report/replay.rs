//! A recorded log, read back: checked against the laws of the log and folded
//! again into the result that the run wrote.

use std::io::BufRead;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::spill;
use super::summary::{RunEnding, Summary};
use crate::event::{Event, EventKind, ResultDocument, RunEnd, SCHEMA_VERSION};

/// A whole log that keeps the laws, folded.
#[derive(Debug, Clone, PartialEq)]
pub struct Folded {
    /// The result, equal to the one in `run:end`.
    pub result: ResultDocument,
    /// The number of events.
    pub events: u64,
    /// How many of them this version does not know.
    pub unknown: u64,
}

/// Why a log cannot be believed. Lines are counted from 1.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The log could not be read.
    #[error("cannot read line {line} of the event log: {source}")]
    Read {
        /// The line.
        line: u64,
        /// What the system said.
        source: std::io::Error,
    },
    /// There is no event.
    #[error("the event log is empty")]
    Empty,
    /// The line is no event.
    #[error("line {line} of the event log is not an event: {source}")]
    Invalid {
        /// The line.
        line: u64,
        /// What does not fit.
        source: serde_json::Error,
    },
    /// The last line lacks its end.
    #[error("line {line} of the event log is torn: the run was cut while it was written")]
    Torn {
        /// The line.
        line: u64,
    },
    /// The log is of a version that is not known here.
    #[error(
        "line {line} of the event log has version {found}; this program reads version {SCHEMA_VERSION}"
    )]
    Version {
        /// The line.
        line: u64,
        /// Its version.
        found: u32,
    },
    /// Events are missing or doubled.
    #[error("line {line} of the event log has seq {found} where {expected} was due")]
    Gap {
        /// The line.
        line: u64,
        /// The number that was due.
        expected: u64,
        /// The number that is there.
        found: u64,
    },
    /// The first event is another.
    #[error("line {line} of the event log should be the run:start that opens a run")]
    NoStart {
        /// The line.
        line: u64,
    },
    /// Something follows `run:end`, or a second run starts.
    #[error("line {line} of the event log is outside the run")]
    Outside {
        /// The line.
        line: u64,
    },
    /// The last event is another.
    #[error("the event log ends after line {line} without run:end: the run was cut")]
    NoEnd {
        /// The last line.
        line: u64,
    },
    /// The events tell something else than the recorded result.
    #[error("line {line}: the events do not give the recorded result; it differs in {}", fields.join(", "))]
    Differs {
        /// The line of `run:end`.
        line: u64,
        /// The fields of the result document that differ.
        fields: Vec<String>,
    },
}

#[derive(Deserialize)]
struct Envelope {
    v: u32,
    seq: u64,
    event: String,
}

/// Reads a log, hands each known event to `each`, and folds them.
///
/// `run_dir` has the values that were too large for their lines; without it
/// they are stand-ins that say where the text is. Events and fields of later
/// versions are passed over.
///
/// # Errors
///
/// When the log cannot be read, breaks a law, or tells something else than its
/// recorded result. `each` has had all events before that line.
pub fn fold_log(
    reader: impl BufRead,
    run_dir: Option<&Path>,
    mut each: impl FnMut(&Event),
) -> Result<Folded, LogError> {
    let mut reader = reader;
    let mut summary = Summary::new();
    let mut bytes = Vec::new();
    let (mut line, mut unknown) = (0, 0);
    let mut end: Option<(Box<RunEnd>, String)> = None;
    loop {
        bytes.clear();
        let read = reader.read_until(b'\n', &mut bytes);
        if read.map_err(|source| LogError::Read {
            line: line + 1,
            source,
        })? == 0
        {
            break;
        }
        line += 1;
        if bytes.pop_if(|byte| *byte == b'\n').is_none() {
            return Err(LogError::Torn { line });
        }
        if end.is_some() {
            return Err(LogError::Outside { line });
        }
        let Some(event) = parse(&bytes, line, run_dir)? else {
            unknown += 1;
            continue;
        };
        if matches!(event.kind, EventKind::RunStart(_)) != (line == 1) {
            return Err(if line == 1 {
                LogError::NoStart { line }
            } else {
                LogError::Outside { line }
            });
        }
        summary.observe(&event);
        each(&event);
        if let EventKind::RunEnd(recorded) = event.kind {
            end = Some((recorded, event.ts));
        }
    }
    match end {
        Some((recorded, ended_at)) => {
            verify(&summary, *recorded, &ended_at, line).map(|result| Folded {
                result,
                events: line,
                unknown,
            })
        }
        None if line == 0 => Err(LogError::Empty),
        None => Err(LogError::NoEnd { line }),
    }
}

/// The event of a line; none when its name is not known.
fn parse(bytes: &[u8], line: u64, run_dir: Option<&Path>) -> Result<Option<Event>, LogError> {
    let invalid = |source| LogError::Invalid { line, source };
    let envelope: Envelope = serde_json::from_slice(bytes).map_err(invalid)?;
    if envelope.v != SCHEMA_VERSION {
        let found = envelope.v;
        return Err(LogError::Version { line, found });
    }
    if envelope.seq != line {
        return Err(LogError::Gap {
            line,
            expected: line,
            found: envelope.seq,
        });
    }
    if !is_known(&envelope.event) {
        return if line == 1 {
            Err(LogError::NoStart { line })
        } else {
            Ok(None)
        };
    }
    let mut event: Value = serde_json::from_slice(bytes).map_err(invalid)?;
    if let Some(data) = event.get_mut("data") {
        spill::restore(data, run_dir);
    }
    serde_json::from_value(event).map(Some).map_err(invalid)
}

/// Whether an event has this name. The decoder itself is asked, so that there
/// is no second list: it refuses an unknown name before it misses the payload.
fn is_known(name: &str) -> bool {
    #[derive(Deserialize)]
    struct Probe {
        #[serde(flatten)]
        #[expect(dead_code, reason = "only whether it decodes is of interest")]
        kind: EventKind,
    }
    let probe = serde_json::json!({"event": name});
    match serde_json::from_value::<Probe>(probe) {
        Ok(_) => true,
        Err(error) => !error.to_string().starts_with("unknown variant"),
    }
}

fn verify(
    summary: &Summary,
    recorded: RunEnd,
    ended_at: &str,
    line: u64,
) -> Result<ResultDocument, LogError> {
    let folded = summary.result(&RunEnding {
        reason: recorded.reason,
        error: recorded.result.error.clone(),
        ended_at,
    });
    if folded == recorded.result && recorded.exit_code == folded.exit_code {
        return Ok(folded);
    }
    let fields = differing(&folded, &recorded.result);
    Err(LogError::Differs { line, fields })
}

fn differing(folded: &ResultDocument, recorded: &ResultDocument) -> Vec<String> {
    let fields = |document| match serde_json::to_value(document) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let (folded, recorded) = (fields(folded), fields(recorded));
    let mut names: Vec<String> = folded
        .keys()
        .chain(recorded.keys())
        .filter(|name| folded.get(*name) != recorded.get(*name))
        .cloned()
        .collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        names.push("exitCode".to_owned());
    }
    names
}
