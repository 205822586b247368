//! Events, seen: the log, the progress for people, and the result, which is a
//! pure fold over the events.
//!
//! [`Recorder`] stands between the one event loop and the sinks. It numbers and
//! stamps every event, takes the secrets out, folds it into the [`Summary`] and
//! hands it on. Nothing in the engine ever reads a sink.

mod line;
mod log;
mod narrate;
mod neutral;
mod pairs;
mod phrase;
mod plain;
mod recorder;
mod redact;
mod replay;
mod result_file;
mod schema;
mod screen;
mod spill;
mod streams;
mod summary;
mod terminal;

use crate::event::Event;

pub use log::{JsonlSink, create_private};
pub use neutral::{cut, neutral, neutral_json, neutral_line, neutral_text};
pub(crate) use phrase::{counted, dollars, duration, grouped};
pub use plain::PlainSink;
pub use recorder::{Ending, Recorder, RecorderOptions, Report};
pub use redact::redact_document;
pub use replay::{Folded, LogError, fold_log};
pub use result_file::{Opening, incomplete, write_result};
pub use schema::{event_schema, result_schema};
pub use screen::{HumanOptions, Style};
pub use spill::VALUE_BYTES_MAX;
pub use summary::{RunEnding, Summary};
pub use terminal::TerminalSink;

/// Somewhere events go: a file, standard output, a person.
pub trait Sink: Send {
    /// Takes one event. `event` is redacted and whole; `line` is the same event
    /// as the log writes it, without the line feed, with values over
    /// [`VALUE_BYTES_MAX`] replaced by a reference to a file.
    ///
    /// # Errors
    ///
    /// When the event cannot be written. The sink gets no further events.
    fn write(&mut self, event: &Event, line: &str) -> Result<(), SinkError>;

    /// Called once, after the last event.
    ///
    /// # Errors
    ///
    /// When what was written cannot be made durable.
    fn finish(&mut self) -> Result<(), SinkError>;

    /// `bytes` of a reply arrived while the log keeps no deltas. The text
    /// itself is withheld: a piece of it cannot be redacted alone.
    fn streaming(&mut self, what: Streaming, bytes: usize) {
        let _ = (what, bytes);
    }
}

/// What streams, for a sink that shows that something moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streaming {
    /// The model thinks.
    Thinking,
    /// The model writes.
    Text,
}

/// Which pieces of streamed replies become events of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deltas {
    /// None: `message:complete` is whole. Such pieces get no number either.
    #[default]
    None,
    /// What is new in each piece.
    Delta,
    /// What is new, and the reply so far; the log grows with its square.
    Full,
}

/// A sink, or the run directory's store of large values, failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {target}: {source}")]
pub struct SinkError {
    /// The verb: `open`, `write`, `sync`.
    pub action: &'static str,
    /// The file or stream.
    pub target: String,
    /// What the system said.
    pub source: std::io::Error,
}

impl SinkError {
    /// `action` on `target` failed with `source`.
    pub fn new(action: &'static str, target: impl Into<String>, source: std::io::Error) -> Self {
        Self {
            action,
            target: target.into(),
            source,
        }
    }
}
