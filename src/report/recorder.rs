//! What the event loop writes into: numbers, stamps, redacts, folds and hands
//! events to the sinks, and closes the log truthfully on every path.

use std::path::PathBuf;

use super::line::{self, Line};
use super::pairs::{OpenPairs, Scope};
use super::spill::Spill;
use super::streams::Streams;
use super::summary::{RunEnding, Summary};
use super::{Deltas, Sink, SinkError, Streaming};
use crate::clock;
use crate::event::{
    Emission, ErrorReport, Event, EventKind, Outcome, Reason, ResultDocument, RunEnd,
    SCHEMA_VERSION,
};
use crate::secret::Redactor;

/// What a [`Recorder`] is made of.
pub struct RecorderOptions {
    /// The run's id.
    pub run_id: String,
    /// Takes secrets out of every event.
    pub redactor: Redactor,
    /// Where events go. A sink that is likely to fail, such as standard output,
    /// stands before the files: see [`Recorder::close`].
    pub sinks: Vec<Box<dyn Sink>>,
    /// The run directory, whose `tool-output/` takes values too large for a
    /// line. Without one all values stay in their lines.
    pub spill_dir: Option<PathBuf>,
    /// Which pieces of streamed replies become events.
    pub deltas: Deltas,
}

/// How a run ended, as the event loop knows it.
#[derive(Debug, Clone)]
pub struct Ending {
    /// Why.
    pub reason: Reason,
    /// What went wrong, when no job has said it already.
    pub error: Option<ErrorReport>,
}

/// A closed run.
#[derive(Debug)]
pub struct Report {
    /// The result: what `result.json` has to say, exit status included.
    pub result: ResultDocument,
    /// Everything that could not be written, first failure first.
    pub failures: Vec<SinkError>,
    /// The number of events.
    pub events: u64,
}

/// Records a run. See the module's documentation.
pub struct Recorder {
    run_id: String,
    seq: u64,
    redactor: Redactor,
    summary: Summary,
    open: OpenPairs,
    streams: Streams,
    spill: Option<Spill>,
    sinks: Vec<Box<dyn Sink>>,
    deltas: Deltas,
    failures: Vec<SinkError>,
}

impl Recorder {
    /// A recorder that has written nothing yet. The first event it is given
    /// has to be `run:start`.
    pub fn new(options: RecorderOptions) -> Self {
        Self {
            run_id: options.run_id,
            seq: 0,
            redactor: options.redactor,
            summary: Summary::new(),
            open: OpenPairs::default(),
            streams: Streams::new(options.deltas),
            spill: options.spill_dir.map(Spill::new),
            sinks: options.sinks,
            deltas: options.deltas,
            failures: Vec::new(),
        }
    }

    /// Records one event. Never fails: a sink that does is dropped and
    /// remembered, the others go on.
    ///
    /// Before the end of a job the missing ends of what it left open are
    /// written. A `run:end` is ignored, because [`Self::close`] writes it.
    pub fn write(&mut self, emission: Emission) {
        match &emission.kind {
            EventKind::RunEnd(_) => return,
            EventKind::TextChunk(chunk) if self.deltas == Deltas::None => {
                self.streaming(Streaming::Text, chunk.delta.len());
                return;
            }
            EventKind::ThinkingChunk(chunk) if self.deltas == Deltas::None => {
                self.streaming(Streaming::Thinking, chunk.delta.len());
                return;
            }
            EventKind::JobEnd(end) => {
                let job = emission.place.job.clone();
                for held in self.streams.finish_job(job.as_deref()) {
                    self.record(held);
                }
                let missing =
                    self.open
                        .missing_ends(Scope::InsideJob(job.as_deref()), end.reason, None);
                for end in missing {
                    self.record(end);
                }
            }
            _ => {
                for held in self.streams.finish_before(&emission) {
                    self.record(held);
                }
            }
        }
        if let Some(emission) = self.streams.pass(emission, &self.redactor) {
            self.record(emission);
        }
    }

    /// The first failure of a sink, if any: a reason to end the run with
    /// [`Reason::Io`].
    pub fn failure(&self) -> Option<&SinkError> {
        self.failures.first()
    }

    /// The result as it would be if the run ended now.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Writes the missing ends of everything still open, then `run:end`, and
    /// finishes all sinks.
    ///
    /// A sink that failed makes the reason [`Reason::Io`] unless a signal or a
    /// bug of ours outranks it. When a sink fails at `run:end` itself or while
    /// finishing, the sinks before it already have a `run:end` with the old
    /// reason; those after it, and the report returned here, have the new one.
    /// `result.json` and the exit status are both made from the report, so they
    /// always agree.
    pub fn close(mut self, ending: Ending) -> Report {
        for held in self.streams.finish_all() {
            self.record(held);
        }
        let reason = self.worsened(ending.reason);
        for end in self
            .open
            .missing_ends(Scope::All, reason, ending.error.as_ref())
        {
            self.record(end);
        }
        let ended_at = clock::timestamp();
        self.seq += 1;
        let mut result = self.end_run(&ending, &ended_at);
        for mut sink in std::mem::take(&mut self.sinks) {
            if let Err(failure) = sink.finish() {
                self.failures.push(failure);
            }
        }
        let reason = self.worsened(ending.reason);
        if reason != result.reason {
            result.reason = reason;
            result.outcome = reason.outcome();
            result.exit_code = reason.exit_code();
            self.explain(&mut result, ending.reason);
        }
        Report {
            result,
            failures: self.failures,
            events: self.seq,
        }
    }

    /// Hands `run:end` to one sink after the other, made anew after a failure.
    fn end_run(&mut self, ending: &Ending, ended_at: &str) -> ResultDocument {
        let (mut event, mut line) = self.run_end(ending, ended_at);
        let mut failures = self.failures.len();
        for mut sink in std::mem::take(&mut self.sinks) {
            match sink.write(&event, &line) {
                Ok(()) => self.sinks.push(sink),
                Err(failure) => self.failures.push(failure),
            }
            if self.failures.len() > failures {
                (event, line) = self.run_end(ending, ended_at);
                failures = self.failures.len();
            }
        }
        match event.kind {
            EventKind::RunEnd(end) => end.result,
            _ => self.result(ending, ended_at),
        }
    }

    fn run_end(&mut self, ending: &Ending, ended_at: &str) -> (Event, String) {
        let result = self.result(ending, ended_at);
        let kind = EventKind::RunEnd(Box::new(RunEnd {
            outcome: result.outcome,
            reason: result.reason,
            exit_code: result.exit_code,
            result,
        }));
        let emission = Emission::of_run(kind);
        let Line { event, text } =
            line::render(self.stamped(emission, ended_at.to_owned()), &self.redactor);
        let text = self.shortened(text);
        (event, text)
    }

    fn result(&self, ending: &Ending, ended_at: &str) -> ResultDocument {
        let mut result = self.summary.result(&RunEnding {
            reason: self.worsened(ending.reason),
            error: ending.error.clone(),
            ended_at,
        });
        self.explain(&mut result, ending.reason);
        result
    }

    /// A failed sink is the error of a run that would have ended otherwise.
    fn explain(&self, result: &mut ResultDocument, without: Reason) {
        let Some(failure) = self.failures.first() else {
            return;
        };
        if result.reason != Reason::Io || (without == Reason::Io && result.error.is_some()) {
            return;
        }
        let otherwise = result.error.take().map(|error| {
            let reason = without.name();
            format!(
                "apart from that the run ended with {reason}: {}",
                error.message
            )
        });
        let message = failure.to_string();
        result.error = Some(ErrorReport {
            code: "io".to_owned(),
            message: self.redactor.redact(&message).into_owned(),
            http_status: None,
            request_id: None,
            hints: otherwise.into_iter().collect(),
        });
    }

    fn worsened(&self, reason: Reason) -> Reason {
        let outranked = reason.outcome() != Outcome::Cancellation && reason != Reason::Internal;
        if self.failures.is_empty() || !outranked {
            reason
        } else {
            Reason::Io
        }
    }

    fn record(&mut self, emission: Emission) {
        self.seq += 1;
        let stamped = self.stamped(emission, clock::timestamp());
        let Line { event, text } = line::render(stamped, &self.redactor);
        self.open.observe(&event);
        self.summary.observe(&event);
        let text = self.shortened(text);
        let failures = &mut self.failures;
        self.sinks
            .retain_mut(|sink| match sink.write(&event, &text) {
                Ok(()) => true,
                Err(failure) => {
                    failures.push(failure);
                    false
                }
            });
    }

    fn stamped(&self, emission: Emission, ts: String) -> Event {
        Event {
            v: SCHEMA_VERSION,
            seq: self.seq,
            ts,
            run_id: self.run_id.clone(),
            place: emission.place,
            kind: emission.kind,
        }
    }

    fn shortened(&mut self, text: String) -> String {
        match &mut self.spill {
            None => text,
            Some(spill) => spill.shorten(text, self.seq, &mut self.failures),
        }
    }

    fn streaming(&mut self, what: Streaming, bytes: usize) {
        for sink in &mut self.sinks {
            sink.streaming(what, bytes);
        }
    }
}
