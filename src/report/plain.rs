//! Progress as plain lines, for CI logs: no carriage returns, nothing moves.

use std::io::Write;

use super::narrate::Narrator;
use super::screen::HumanOptions;
use super::{Sink, SinkError};
use crate::event::{Event, EventKind};

/// Writes a line for every event worth one.
///
/// A stream that cannot be written to ends the narration and nothing else:
/// progress is no result.
pub struct PlainSink {
    narrator: Narrator,
    out: Option<Box<dyn Write + Send>>,
}

impl PlainSink {
    /// Writes to `out`, which is standard error.
    pub fn new(out: Box<dyn Write + Send>, options: HumanOptions) -> Self {
        Self {
            narrator: Narrator::new(options),
            out: Some(out),
        }
    }
}

impl Sink for PlainSink {
    fn write(&mut self, event: &Event, _line: &str) -> Result<(), SinkError> {
        let mut lines = self.narrator.lines(event);
        if let EventKind::Heartbeat(beat) = &event.kind {
            lines.push(self.narrator.heartbeat(beat.elapsed_ms, &beat.waiting_for));
        }
        if lines.is_empty() {
            return Ok(());
        }
        lines.push(String::new());
        let text = lines.join("\n");
        if let Some(out) = &mut self.out
            && (out.write_all(text.as_bytes()).is_err() || out.flush().is_err())
        {
            self.out = None;
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
