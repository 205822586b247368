//! Counts and sums over a whole session: all branches, and what compactions
//! hide from the model.

use crate::event::PendingCounts;
use crate::message::{Message, Usage};
use crate::store::{EntryKind, SessionTree};

/// Counts and sums over a whole session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Messages of the user's side.
    pub user_messages: u64,
    /// Replies.
    pub assistant_messages: u64,
    /// Calls inside the replies.
    pub tool_calls: u64,
    /// Results of calls.
    pub tool_results: u64,
    /// All entries of the session file, those without a message too.
    pub entries: u64,
    /// Tokens and cost of all replies.
    pub usage: Usage,
    /// Messages that wait, by source.
    pub pending: PendingCounts,
    /// When the newest message came, in milliseconds since the Unix epoch; none
    /// while there is no message.
    pub last_updated: Option<i64>,
}

impl Stats {
    /// Of a whole session for which `pending` messages wait.
    pub fn of(tree: &SessionTree, pending: PendingCounts) -> Self {
        let mut stats = Self {
            entries: tree.entries().len() as u64,
            pending,
            ..Self::default()
        };
        for entry in tree.entries() {
            if let EntryKind::Message(message) = &entry.kind {
                stats.add(message);
            }
        }
        stats
    }

    /// User messages, replies and tool results together.
    pub fn total_messages(&self) -> u64 {
        self.user_messages + self.assistant_messages + self.tool_results
    }

    /// Messages that wait, whatever their source.
    pub fn total_pending(&self) -> u64 {
        let pending = self.pending;
        u64::from(pending.prompt_follow_up)
            + u64::from(pending.steer)
            + u64::from(pending.follow_up)
    }

    fn add(&mut self, message: &Message) {
        let timestamp = match message {
            Message::User(message) => {
                self.user_messages += 1;
                message.timestamp
            }
            Message::Assistant(reply) => {
                self.assistant_messages += 1;
                self.tool_calls += reply.tool_calls().count() as u64;
                self.usage.add(&reply.usage);
                reply.timestamp
            }
            Message::ToolResult(result) => {
                self.tool_results += 1;
                result.timestamp
            }
        };
        self.last_updated = self.last_updated.max(Some(timestamp));
    }
}
