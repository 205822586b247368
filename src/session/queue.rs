//! The messages that wait for a turn, and those that had one. No I/O and no
//! waiting: the desk holds it behind its lock.

use std::collections::VecDeque;

use tokio::sync::oneshot;
use unicode_segmentation::UnicodeSegmentation;

use crate::clock;
use crate::event::{MessageSource, PendingCounts};
use crate::message::Image;

use super::expand::Expand;
use super::interrupt::Interrupt;
use super::refusal::SessionError;
use super::stop::Answer;

/// Messages that wait at most.
const WAITING_MAX: usize = 1_000;

/// Settled messages that are remembered.
const SETTLED_MAX: usize = 20;

/// Grapheme clusters of a preview.
const PREVIEW_MAX: usize = 120;

/// Where a waiting message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueSource {
    /// A prompt that waits for its own turn.
    PromptFollowUp,
    /// Said to the running turn.
    Steer,
    /// Said for when the running turn would end.
    FollowUp,
}

/// How many waiting messages a poll takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueMode {
    /// One, so that the model answers each.
    #[default]
    OneAtATime,
    /// All that wait.
    All,
}

/// How many a poll takes, by what waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueModes {
    /// Steering messages, after the tools of a step.
    pub steering: QueueMode,
    /// Follow-ups that nobody waits for, when a turn would end; several share
    /// one turn.
    pub follow_up: QueueMode,
}

/// How a prompt waits while another one runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamingBehavior {
    /// It joins the running turn, after the tools that run now.
    Steer,
    /// It has a turn of its own, after what waits already.
    FollowUp,
}

/// What is thrown away of the pending state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClearPending {
    /// What waits.
    Waiting,
    /// What waits, and the running turn.
    WaitingAndActive,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PendingStatus {
    /// It waits.
    Queued,
    /// It had its answer.
    Resolved,
    /// It was cancelled, or its turn failed.
    Failed,
}

/// A message as a snapshot of the queue shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingMessage {
    /// As events name it.
    pub id: String,
    /// Where it came from.
    pub source: QueueSource,
    /// What became of it.
    pub status: PendingStatus,
    /// The beginning of its text, with `...` where it goes on.
    pub preview: String,
}

/// What a snapshot of the queue shall hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PendingQuery {
    /// Grapheme clusters of a preview, not counting the dots.
    pub max_length: usize,
    /// Whether the settled messages follow, oldest first.
    pub include_resolved: bool,
}

impl Default for PendingQuery {
    fn default() -> Self {
        Self {
            max_length: PREVIEW_MAX,
            include_resolved: false,
        }
    }
}

/// What somebody says to the session.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Input {
    pub(super) text: String,
    pub(super) images: Vec<Image>,
    pub(super) expand: Expand,
}

/// Where a caller gets the answer to its message.
pub(super) type Waiter = oneshot::Sender<Settlement>;

/// How a message was settled.
pub(super) enum Settlement {
    Settled(Result<Answer, SessionError>),
    /// The engine panicked; the panic goes on at the caller.
    Panicked(Box<dyn std::any::Any + Send>),
}

/// A message on its way to a turn.
pub(super) struct Item {
    pub(super) id: String,
    /// None for a prompt that never waited.
    pub(super) queued_as: Option<QueueSource>,
    pub(super) input: Input,
    pub(super) interrupt: Interrupt,
    pub(super) waiter: Option<Waiter>,
}

struct Settled {
    id: String,
    source: QueueSource,
    status: PendingStatus,
    text: String,
}

/// The waiting and the settled messages.
#[derive(Default)]
pub(super) struct Queue {
    waiting: VecDeque<Item>,
    settled: VecDeque<Settled>,
}

impl Input {
    /// A text that stands for itself.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            images: Vec::new(),
            expand: Expand::Nothing,
        }
    }

    /// What a user says.
    pub(super) fn said(text: impl Into<String>) -> Self {
        Self {
            expand: Expand::All,
            ..Self::text(text)
        }
    }
}

impl Item {
    pub(super) fn new(input: Input, interrupt: Interrupt, waiter: Option<Waiter>) -> Self {
        Self {
            id: clock::new_id(),
            queued_as: None,
            input,
            interrupt,
            waiter,
        }
    }

    /// Where its message comes from, for those who read along.
    pub(super) fn source(&self) -> MessageSource {
        match self.queued_as {
            None | Some(QueueSource::PromptFollowUp) => MessageSource::Prompt,
            Some(QueueSource::Steer) => MessageSource::Steer,
            Some(QueueSource::FollowUp) => MessageSource::FollowUp,
        }
    }

    /// Tells whoever waits; nobody may.
    pub(super) fn settle(self, outcome: Result<Answer, SessionError>) {
        if let Some(waiter) = self.waiter {
            // A caller that is gone needs no answer.
            let _ = waiter.send(Settlement::Settled(outcome));
        }
    }
}

impl Queue {
    /// Puts a message at the end.
    pub(super) fn push(&mut self, item: Item) -> Result<(), SessionError> {
        if self.waiting.len() >= WAITING_MAX {
            return Err(SessionError::QueueFull(WAITING_MAX));
        }
        self.waiting.push_back(item);
        Ok(())
    }

    /// The message that waits longest.
    pub(super) fn pop(&mut self) -> Option<Item> {
        self.waiting.pop_front()
    }

    /// The longest waiting messages of a source.
    pub(super) fn take(&mut self, source: QueueSource, mode: QueueMode) -> Vec<Item> {
        let mut taken = Vec::new();
        let is_wanted = |item: &Item| item.queued_as == Some(source);
        while let Some(at) = self.waiting.iter().position(is_wanted) {
            taken.extend(self.waiting.remove(at));
            if mode == QueueMode::OneAtATime {
                break;
            }
        }
        taken
    }

    /// Takes one waiting message out.
    pub(super) fn remove(&mut self, id: &str) -> Option<Item> {
        let at = self.waiting.iter().position(|item| item.id == id)?;
        self.waiting.remove(at)
    }

    /// Takes all waiting messages out.
    pub(super) fn drain(&mut self) -> Vec<Item> {
        self.waiting.drain(..).collect()
    }

    /// Remembers what became of a message, if it ever waited.
    pub(super) fn remember(&mut self, item: &Item, status: PendingStatus) {
        let Some(source) = item.queued_as else {
            return;
        };
        if self.settled.len() == SETTLED_MAX {
            self.settled.pop_front();
        }
        self.settled.push_back(Settled {
            id: item.id.clone(),
            source,
            status,
            text: item.input.text.clone(),
        });
    }

    /// Forgets the settled messages.
    pub(super) fn forget(&mut self) {
        self.settled.clear();
    }

    /// The waiting messages by source.
    pub(super) fn counts(&self) -> PendingCounts {
        let mut counts = PendingCounts::default();
        for item in &self.waiting {
            match item.queued_as {
                Some(QueueSource::PromptFollowUp) => counts.prompt_follow_up += 1,
                Some(QueueSource::Steer) => counts.steer += 1,
                Some(QueueSource::FollowUp) => counts.follow_up += 1,
                None => {}
            }
        }
        counts
    }

    /// The waiting messages in the order in which they came, then the settled.
    pub(super) fn snapshot(&self, query: PendingQuery) -> Vec<PendingMessage> {
        let waiting = self.waiting.iter().filter_map(|item| {
            Some(PendingMessage {
                id: item.id.clone(),
                source: item.queued_as?,
                status: PendingStatus::Queued,
                preview: preview(&item.input.text, query.max_length),
            })
        });
        let settled = self.settled.iter().map(|settled| PendingMessage {
            id: settled.id.clone(),
            source: settled.source,
            status: settled.status,
            preview: preview(&settled.text, query.max_length),
        });
        let shown = if query.include_resolved {
            SETTLED_MAX
        } else {
            0
        };
        waiting.chain(settled.take(shown)).collect()
    }
}

fn preview(text: &str, max_length: usize) -> String {
    match text.grapheme_indices(true).nth(max_length) {
        Some((cut, _)) => format!("{}...", text.get(..cut).unwrap_or(text)),
        None => text.to_owned(),
    }
}
