//! What a model sees of a path: which entries, and as which messages.

use std::sync::Arc;

use crate::message::{Content, Message, UserMessage};
use crate::store::entry::{Entry, EntryKind};

/// The entries of a path that are sent, in the order in which they are.
///
/// The newest compaction stands first, for its summary, and hides what came
/// before its first kept entry. Without that entry on the path it keeps
/// nothing of what came before.
pub(crate) fn context(path: Vec<&Entry>) -> Vec<&Entry> {
    let newest = path.iter().rposition(|entry| is_compaction(entry));
    let Some(newest) = newest else {
        return path.into_iter().filter(|entry| is_sent(entry)).collect();
    };
    let kept_from = path.get(newest).and_then(|compaction| {
        let EntryKind::Compaction {
            first_kept_entry_id,
            ..
        } = &compaction.kind
        else {
            return None;
        };
        let before = path.get(..newest)?;
        before
            .iter()
            .position(|entry| entry.id == *first_kept_entry_id)
    });
    let kept = kept_from
        .and_then(|from| path.get(from..newest))
        .unwrap_or_default();
    let later = path.get(newest + 1..).unwrap_or_default();
    path.get(newest)
        .into_iter()
        // Its summary takes in those of the compactions before.
        .chain(kept.iter().filter(|entry| !is_compaction(entry)))
        .chain(later)
        .copied()
        .filter(|entry| is_sent(entry))
        .collect()
}

pub(crate) fn is_compaction(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Compaction { .. })
}

fn is_sent(entry: &Entry) -> bool {
    match &entry.kind {
        EntryKind::Message(_) | EntryKind::CustomMessage { .. } | EntryKind::Compaction { .. } => {
            true
        }
        EntryKind::BashExecution(ran) => !ran.exclude_from_context,
        EntryKind::BranchSummary { summary, .. } => !summary.is_empty(),
        EntryKind::ModelChange { .. }
        | EntryKind::ThinkingLevelChange { .. }
        | EntryKind::Custom { .. }
        | EntryKind::Label { .. }
        | EntryKind::SessionInfo { .. }
        | EntryKind::Unknown { .. } => false,
    }
}

/// The message that a model sees for an entry, if it sees one.
pub(crate) fn sent(entry: &Entry) -> Option<Arc<Message>> {
    if !is_sent(entry) {
        return None;
    }
    match &entry.kind {
        EntryKind::Message(message) => Some(Arc::clone(message)),
        EntryKind::BashExecution(ran) => Some(Arc::new(Message::User(UserMessage::text(
            ran.text(),
            ran.timestamp,
        )))),
        EntryKind::CustomMessage { content, .. } => Some(user(content.clone(), entry)),
        EntryKind::Compaction { summary, .. } => Some(user(
            vec![Content::text(format!(
                "This is a summary of the earlier conversation, which was compacted:\n\n\
                 <summary>\n{summary}\n</summary>"
            ))],
            entry,
        )),
        EntryKind::BranchSummary { summary, .. } => Some(user(
            vec![Content::text(format!(
                "This is a summary of another branch of the conversation, which was left to \
                 come back here:\n\n<summary>\n{summary}\n</summary>"
            ))],
            entry,
        )),
        EntryKind::ModelChange { .. }
        | EntryKind::ThinkingLevelChange { .. }
        | EntryKind::Custom { .. }
        | EntryKind::Label { .. }
        | EntryKind::SessionInfo { .. }
        | EntryKind::Unknown { .. } => None,
    }
}

fn user(content: Vec<Content>, entry: &Entry) -> Arc<Message> {
    let timestamp = entry
        .timestamp
        .parse::<jiff::Timestamp>()
        .map_or(0, |time| time.as_millisecond());
    Arc::new(Message::User(UserMessage { content, timestamp }))
}
