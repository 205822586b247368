//! Text that arrives in pieces, redacted across their borders.

use super::Deltas;
use crate::event::{Emission, EventKind, Place, TextChunk, ToolUpdate};
use crate::secret::{Redactor, StreamRedactor};

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Thinking,
    Text,
    Tool(String),
}

struct Stream {
    place: Place,
    source: Source,
    redactor: StreamRedactor,
    /// The text so far, kept only for [`Deltas::Full`].
    so_far: String,
}

/// The open streams of all sessions.
pub(super) struct Streams {
    deltas: Deltas,
    open: Vec<Stream>,
}

impl Streams {
    pub(super) fn new(deltas: Deltas) -> Self {
        Self {
            deltas,
            open: Vec::new(),
        }
    }

    /// `emission`, or for a piece of text what of it may be shown by now.
    pub(super) fn pass(&mut self, emission: Emission, redactor: &Redactor) -> Option<Emission> {
        let (source, delta) = match &emission.kind {
            EventKind::ThinkingChunk(chunk) => (Source::Thinking, chunk.delta.as_str()),
            EventKind::TextChunk(chunk) => (Source::Text, chunk.delta.as_str()),
            EventKind::ToolUpdate(update) => (
                Source::Tool(update.tool_call_id.clone()),
                update.delta.as_str(),
            ),
            _ => return Some(emission),
        };
        let full = self.deltas == Deltas::Full;
        let stream = self.stream(&emission.place, source, redactor);
        let shown = stream.redactor.push(delta);
        (!shown.is_empty()).then(|| stream.emission(shown, full))
    }

    /// What streams still hold back and must say before `next`.
    pub(super) fn finish_before(&mut self, next: &Emission) -> Vec<Emission> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let place = &next.place;
        match &next.kind {
            EventKind::MessageComplete(_)
            | EventKind::ReplyDiscarded(_)
            | EventKind::RetryStart(_)
            | EventKind::RetryEnd(_)
            | EventKind::ModelFallback(_)
            | EventKind::StepEnd(_)
            | EventKind::TurnEnd(_) => self.finish_where(|stream| {
                !matches!(stream.source, Source::Tool(_)) && same_agent(&stream.place, place)
            }),
            EventKind::ToolComplete(end) => self.finish_tool(&end.tool_call_id, place),
            EventKind::ToolError(end) => self.finish_tool(&end.tool_call_id, place),
            _ => Vec::new(),
        }
    }

    /// What the streams of a job still hold back.
    pub(super) fn finish_job(&mut self, job: Option<&str>) -> Vec<Emission> {
        self.finish_where(|stream| stream.place.job.as_deref() == job)
    }

    /// What all streams still hold back.
    pub(super) fn finish_all(&mut self) -> Vec<Emission> {
        self.finish_where(|_| true)
    }

    fn finish_tool(&mut self, id: &str, place: &Place) -> Vec<Emission> {
        self.finish_where(|stream| {
            matches!(&stream.source, Source::Tool(open) if open == id)
                && same_agent(&stream.place, place)
        })
    }

    fn finish_where(&mut self, ends: impl Fn(&Stream) -> bool) -> Vec<Emission> {
        let full = self.deltas == Deltas::Full;
        let mut held = Vec::new();
        self.open.retain_mut(|stream| {
            if !ends(stream) {
                return true;
            }
            let rest = stream.redactor.finish();
            if !rest.is_empty() {
                held.push(stream.emission(rest, full));
            }
            false
        });
        held
    }

    fn stream(&mut self, place: &Place, source: Source, redactor: &Redactor) -> &mut Stream {
        let known = self
            .open
            .iter()
            .position(|open| open.source == source && same_agent(&open.place, place));
        let index = known.unwrap_or_else(|| {
            self.open.push(Stream {
                place: place.clone(),
                source,
                redactor: redactor.stream(),
                so_far: String::new(),
            });
            self.open.len() - 1
        });
        self.open
            .get_mut(index)
            .expect("the index was found or made just now")
    }
}

impl Stream {
    fn emission(&mut self, delta: String, full: bool) -> Emission {
        if let Source::Tool(id) = &self.source {
            return Emission {
                place: self.place.clone(),
                kind: EventKind::ToolUpdate(ToolUpdate {
                    tool_call_id: id.clone(),
                    delta,
                }),
            };
        }
        if full {
            self.so_far.push_str(&delta);
        }
        let chunk = TextChunk {
            content: full.then(|| self.so_far.clone()),
            delta,
        };
        Emission {
            place: self.place.clone(),
            kind: if self.source == Source::Thinking {
                EventKind::ThinkingChunk(chunk)
            } else {
                EventKind::TextChunk(chunk)
            },
        }
    }
}

/// Whether two events belong to the same agent of the same job.
pub(super) fn same_agent(a: &Place, b: &Place) -> bool {
    a.job == b.job && a.session_id == b.session_id && a.agent_id == b.agent_id
}
