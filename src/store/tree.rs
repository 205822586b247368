//! The session as a tree of entries: no I/O.
//!
//! Each entry names its parent, so a session may branch; the leaf is the entry
//! that the next one follows. The messages of the path to the leaf are kept up
//! to date as entries come, so that asking for them costs one reference count
//! a message.

use std::collections::HashMap;
use std::sync::Arc;

use crate::message::{Content, Message, UserMessage};
use crate::store::entry::{Entry, EntryId, EntryKind, Header};

/// An entry does not fit into the tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The id is taken.
    #[error("entry {0} is already in the session")]
    DuplicateId(EntryId),
    /// The parent is not there.
    #[error("entry {id} follows {parent}, which is not in the session")]
    UnknownParent {
        /// The entry.
        id: EntryId,
        /// The parent that it names.
        parent: EntryId,
    },
}

/// The entries of a session, in the order in which they were appended.
#[derive(Debug, Clone)]
pub struct SessionTree {
    header: Header,
    entries: Vec<Entry>,
    positions: HashMap<EntryId, usize>,
    messages: Vec<Arc<Message>>,
}

impl SessionTree {
    /// A session without entries.
    pub fn new(header: Header) -> Self {
        Self {
            header,
            entries: Vec::new(),
            positions: HashMap::new(),
            messages: Vec::new(),
        }
    }

    /// What stands at the top of the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// All entries of all branches, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry with this id.
    pub fn entry(&self, id: &EntryId) -> Option<&Entry> {
        self.entries.get(*self.positions.get(id)?)
    }

    /// The entry that the next one follows: the one that came last.
    pub fn leaf(&self) -> Option<&Entry> {
        self.entries.last()
    }

    /// The entries from the first one to the leaf along the parents.
    pub fn path(&self) -> Vec<&Entry> {
        let mut path = Vec::new();
        let mut next = self.leaf();
        // A parent always stands before its child, so this ends.
        while let Some(entry) = next {
            path.push(entry);
            next = entry.parent_id.as_ref().and_then(|id| self.entry(id));
        }
        path.reverse();
        path
    }

    /// The messages of the path to the leaf that go to a model, oldest first.
    ///
    /// The newest compaction of the path stands first, as its summary, and
    /// hides what came before its first kept entry. Linear in their number,
    /// without copying any text.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// A random id that no entry has.
    pub fn free_id(&self) -> EntryId {
        loop {
            let id = EntryId::random();
            if !self.positions.contains_key(&id) {
                return id;
            }
        }
    }

    /// Whether `entry` would fit.
    ///
    /// # Errors
    /// When its id is taken or its parent is unknown.
    pub fn check(&self, entry: &Entry) -> Result<(), TreeError> {
        if self.positions.contains_key(&entry.id) {
            return Err(TreeError::DuplicateId(entry.id.clone()));
        }
        match &entry.parent_id {
            Some(parent) if !self.positions.contains_key(parent) => Err(TreeError::UnknownParent {
                id: entry.id.clone(),
                parent: parent.clone(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Adds `entry` below its parent and makes it the leaf.
    ///
    /// # Errors
    /// As [`SessionTree::check`]; the tree is then as before.
    pub fn push(&mut self, entry: Entry) -> Result<(), TreeError> {
        self.check(&entry)?;
        let follows_leaf = entry.parent_id.as_ref() == self.leaf().map(|leaf| &leaf.id);
        let compacts = matches!(entry.kind, EntryKind::Compaction { .. });
        let sent = sent_as(&entry);
        self.positions.insert(entry.id.clone(), self.entries.len());
        self.entries.push(entry);
        if follows_leaf && !compacts {
            self.messages.extend(sent);
        } else {
            self.messages = self.collect_messages();
        }
        Ok(())
    }

    fn collect_messages(&self) -> Vec<Arc<Message>> {
        let path = self.path();
        let newest = path
            .iter()
            .rposition(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
        let Some(newest) = newest else {
            return path.into_iter().filter_map(sent_as).collect();
        };
        let (before, after) = path.split_at(newest);
        let kept_from = after.first().and_then(|compaction| match &compaction.kind {
            EntryKind::Compaction {
                first_kept_entry_id,
                ..
            } => before
                .iter()
                .position(|entry| entry.id == *first_kept_entry_id),
            _ => None,
        });
        // Without its first kept entry on the path a compaction keeps nothing.
        let kept = kept_from
            .and_then(|from| before.get(from..))
            .unwrap_or_default();
        let (summary, later) = match after.split_first() {
            Some((compaction, later)) => (sent_as(compaction), later),
            None => (None, after),
        };
        let not_summaries = kept
            .iter()
            .filter(|entry| !matches!(entry.kind, EntryKind::Compaction { .. }));
        summary
            .into_iter()
            .chain(
                not_summaries
                    .chain(later)
                    .filter_map(|entry| sent_as(entry)),
            )
            .collect()
    }
}

/// The message that a model sees for an entry, if it sees one.
fn sent_as(entry: &Entry) -> Option<Arc<Message>> {
    match &entry.kind {
        EntryKind::Message(message) => Some(Arc::clone(message)),
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
