//! What a compaction does to a conversation: what it summarises, what stays.

use std::sync::Arc;

use crate::message::Message;
use crate::store::{EntryId, EntryKind, SessionTree};

use super::cut::Conversation;
use super::files::TouchedFiles;
use crate::session::estimate::ContextTokens;

/// What is summarised and what stays. Indices count the entries of the path to
/// the leaf, from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct CompactionPlan {
    /// The entries of the path.
    pub entries: usize,
    /// The tokens of the context before.
    pub tokens_before: u64,
    /// The first entry that stays.
    pub first_kept: usize,
    /// Its id; none in a session without entries.
    pub first_kept_id: Option<EntryId>,
    /// Where the turn begins through which the cut goes, if it does.
    pub turn_start: Option<usize>,
    /// Whole turns to summarise.
    pub history: Vec<Arc<Message>>,
    /// The part of a split turn that is summarised on its own.
    pub prefix: Vec<Arc<Message>>,
    /// The summary that stands for what came before; it is to be updated.
    pub previous_summary: Option<String>,
    /// The files that calls touched up to the cut, earlier compactions included.
    pub files: TouchedFiles,
}

impl CompactionPlan {
    /// The plan that keeps about `keep_recent_tokens` of the newest messages of
    /// the path to the leaf of `tree`.
    pub fn new(tree: &SessionTree, keep_recent_tokens: u64) -> Self {
        let conversation = Conversation::of(tree);
        let cut = conversation.cut(keep_recent_tokens);
        let history_end = cut.turn_start.unwrap_or(cut.first_kept);
        let history = conversation.messages(conversation.start..history_end);
        let prefix = conversation.messages(history_end..cut.first_kept);
        let earlier = earlier(&conversation);
        let mut files = earlier.files;
        for message in history.iter().chain(&prefix) {
            files.note(message);
        }
        let first_kept = conversation.lines.get(cut.first_kept);
        Self {
            entries: conversation.lines.len(),
            tokens_before: ContextTokens::of(tree).total(),
            first_kept: cut.first_kept,
            first_kept_id: first_kept.map(|line| line.entry.id.clone()),
            turn_start: cut.turn_start,
            history,
            prefix,
            previous_summary: earlier.summary,
            files,
        }
    }

    /// Whether everything stays.
    pub fn is_empty(&self) -> bool {
        self.history.is_empty() && self.prefix.is_empty()
    }
}

/// What the newest compaction left to build on.
#[derive(Default)]
pub(super) struct Earlier {
    pub(super) summary: Option<String>,
    pub(super) files: TouchedFiles,
}

pub(super) fn earlier(conversation: &Conversation<'_>) -> Earlier {
    let newest = conversation
        .compaction
        .and_then(|at| conversation.lines.get(at));
    match newest.map(|line| &line.entry.kind) {
        Some(EntryKind::Compaction {
            summary, details, ..
        }) => {
            let files = TouchedFiles::of_details(details.as_ref());
            // The lists are appended again, with what has come since.
            let text = summary.strip_suffix(files.appendix().as_str());
            Earlier {
                summary: Some(text.unwrap_or(summary).to_owned()),
                files,
            }
        }
        _ => Earlier::default(),
    }
}
