//! Where a conversation may be cut, and where it is.

use std::sync::Arc;

use crate::message::Message;
use crate::session::estimate::message_tokens;
use crate::store::{Entry, EntryKind, SessionTree};

/// The path of a session as compaction sees it.
pub(super) struct Conversation<'t> {
    pub(super) lines: Vec<Line<'t>>,
    /// The first line that no summary stands for.
    pub(super) start: usize,
    /// The newest compaction.
    pub(super) compaction: Option<usize>,
}

/// One entry of the path.
pub(super) struct Line<'t> {
    pub(super) entry: &'t Entry,
    /// What the model sees of it in its place. A compaction's summary stands
    /// at the top, not here.
    pub(super) message: Option<Arc<Message>>,
}

/// Where a conversation is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// The first line that stays.
    pub(super) first_kept: usize,
    /// Where the turn begins that the cut goes through.
    pub(super) turn_start: Option<usize>,
}

impl<'t> Conversation<'t> {
    /// The path to the leaf.
    pub(super) fn of(tree: &'t SessionTree) -> Self {
        let path = tree.path();
        let compaction = path.iter().rposition(|entry| is_compaction(entry));
        let start = compaction.map_or(0, |at| kept_since(&path, at));
        let lines = path
            .into_iter()
            .map(|entry| Line {
                message: tree.sent(entry).filter(|_| !is_compaction(entry)),
                entry,
            })
            .collect();
        Self {
            lines,
            start,
            compaction,
        }
    }

    /// Where to cut so that about `keep_tokens` of the newest messages stay.
    ///
    /// From the end back to where the messages reach that many tokens; there,
    /// or at the next place that may be cut, or else at the last such place: a
    /// trailing result of any size must not keep everything.
    pub(super) fn cut(&self, keep_tokens: u64) -> Cut {
        let mut kept = 0;
        let reached = (self.start..self.lines.len()).rev().find(|at| {
            kept += self.message(*at).map_or(0, message_tokens);
            kept >= keep_tokens && self.message(*at).is_some()
        });
        let Some(reached) = reached else {
            return self.keep_all();
        };
        let mut after = reached..self.lines.len();
        let mut before = (self.start..reached).rev();
        let place = after
            .find(|at| self.may_cut(*at))
            .or_else(|| before.find(|at| self.may_cut(*at)));
        match place {
            Some(at) => self.cut_at(at),
            None => self.keep_all(),
        }
    }

    fn keep_all(&self) -> Cut {
        Cut {
            first_kept: self.start,
            turn_start: None,
        }
    }

    fn cut_at(&self, at: usize) -> Cut {
        let turn_start = if self.starts_turn(at) {
            None
        } else {
            (self.start..at).rev().find(|at| self.starts_turn(*at))
        };
        // What is set right before a message goes with it.
        let before = (self.start..at).rev();
        let settings = before.take_while(|at| self.is_silent(*at)).count();
        Cut {
            first_kept: at - settings,
            turn_start,
        }
    }

    pub(super) fn message(&self, at: usize) -> Option<&Message> {
        self.lines.get(at)?.message.as_deref()
    }

    /// Never at a result: it belongs to the call before it.
    fn may_cut(&self, at: usize) -> bool {
        match self.message(at) {
            Some(Message::User(_) | Message::Assistant(_)) => true,
            Some(Message::ToolResult(_)) | None => false,
        }
    }

    /// Whatever comes from the user's side begins a turn.
    fn starts_turn(&self, at: usize) -> bool {
        matches!(self.message(at), Some(Message::User(_)))
    }

    /// Whether the line says nothing to the model and is no boundary.
    fn is_silent(&self, at: usize) -> bool {
        self.lines
            .get(at)
            .is_some_and(|line| line.message.is_none() && !is_compaction(line.entry))
    }

    /// The messages of a range of lines.
    pub(super) fn messages(&self, range: std::ops::Range<usize>) -> Vec<Arc<Message>> {
        let lines = self.lines.get(range).unwrap_or_default();
        lines
            .iter()
            .filter_map(|line| line.message.clone())
            .collect()
    }
}

fn is_compaction(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Compaction { .. })
}

/// The first entry that the compaction at `at` kept; without it on the path,
/// what follows the compaction.
fn kept_since(path: &[&Entry], at: usize) -> usize {
    let first_kept = path.get(at).and_then(|entry| match &entry.kind {
        EntryKind::Compaction {
            first_kept_entry_id,
            ..
        } => path
            .iter()
            .take(at)
            .position(|entry| entry.id == *first_kept_entry_id),
        _ => None,
    });
    first_kept.unwrap_or(at + 1)
}
