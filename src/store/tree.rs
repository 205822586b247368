//! The session as a tree of entries: no I/O.
//!
//! Each entry names its parent, which stands before it, so a session may
//! branch; the leaf is the entry that the next one follows. The messages of the
//! path to the leaf are kept up to date as entries come, so that asking for
//! them costs one reference count a message.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::message::{Message, Messages};
use crate::store::entry::{Entry, EntryId, EntryKind, Header};
use crate::store::line::HeaderLine;
use crate::store::sent;

/// An entry does not fit into the tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// The id is taken.
    #[error("entry {0} is already in the session")]
    DuplicateId(EntryId),
    /// The parent is not there.
    #[error("entry {id} follows {parent}, which is not before it in the session")]
    UnknownParent {
        /// The entry.
        id: EntryId,
        /// The parent that it names.
        parent: EntryId,
    },
    /// No entry has this id.
    #[error("there is no entry {0} in the session")]
    UnknownEntry(EntryId),
}

/// The entries of a session, in the order in which they were appended.
#[derive(Debug, Clone)]
pub struct SessionTree {
    first: HeaderLine,
    entries: Vec<Entry>,
    /// Where each entry hangs; as many as entries.
    nodes: Vec<Node>,
    /// Those that follow nothing.
    roots: Vec<usize>,
    positions: HashMap<EntryId, usize>,
    labels: HashMap<EntryId, String>,
    leaf: Option<usize>,
    /// Of the path to the leaf; empty until somebody asks.
    messages: OnceLock<Messages>,
}

#[derive(Debug, Clone, Default)]
struct Node {
    parent: Option<usize>,
    children: Vec<usize>,
}

impl SessionTree {
    /// A session without entries.
    pub fn new(header: Header) -> Self {
        Self::after(HeaderLine::new(header))
    }

    /// A session of which the first line was read.
    pub(crate) fn after(first: HeaderLine) -> Self {
        Self {
            first,
            entries: Vec::new(),
            nodes: Vec::new(),
            roots: Vec::new(),
            positions: HashMap::new(),
            labels: HashMap::new(),
            leaf: None,
            messages: OnceLock::new(),
        }
    }

    /// What stands at the top of the file.
    pub fn header(&self) -> &Header {
        &self.first.header
    }

    /// All entries of all branches, oldest first.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The entry with this id.
    pub fn entry(&self, id: &EntryId) -> Option<&Entry> {
        self.entries.get(*self.positions.get(id)?)
    }

    /// The entry that the next one follows: the one that came last, unless the
    /// leaf was moved.
    pub fn leaf(&self) -> Option<&Entry> {
        self.entries.get(self.leaf?)
    }

    /// Makes another entry the one that the next one follows; none starts the
    /// session afresh, beside what is there.
    ///
    /// # Errors
    /// When there is no such entry; the leaf is then as before.
    pub fn set_leaf(&mut self, id: Option<&EntryId>) -> Result<(), TreeError> {
        let leaf = match id {
            Some(id) => Some(self.position(id)?),
            None => None,
        };
        if leaf != self.leaf {
            self.leaf = leaf;
            self.messages = OnceLock::new();
        }
        Ok(())
    }

    /// The entries from the first one to the leaf along the parents.
    pub fn path(&self) -> Vec<&Entry> {
        self.climb(self.leaf)
    }

    /// The entries from the first one to this one along the parents.
    pub fn path_to(&self, id: &EntryId) -> Option<Vec<&Entry>> {
        let position = *self.positions.get(id)?;
        Some(self.climb(Some(position)))
    }

    /// The entries that follow this one at once, oldest first; those that
    /// follow nothing, for none.
    pub fn children(&self, id: Option<&EntryId>) -> Vec<&Entry> {
        let children = match id {
            None => self.roots.as_slice(),
            Some(id) => self
                .positions
                .get(id)
                .and_then(|position| self.nodes.get(*position))
                .map(|node| node.children.as_slice())
                .unwrap_or_default(),
        };
        let entries = children.iter();
        entries.filter_map(|at| self.entries.get(*at)).collect()
    }

    /// The bookmark at an entry.
    pub fn label(&self, id: &EntryId) -> Option<&str> {
        self.labels.get(id).map(String::as_str)
    }

    /// The session's name: the one that was given last.
    pub fn name(&self) -> Option<&str> {
        let named = self
            .entries
            .iter()
            .rev()
            .find_map(|entry| match &entry.kind {
                EntryKind::SessionInfo { name } => Some(name.as_deref()),
                _ => None,
            });
        named
            .flatten()
            .map(str::trim)
            .filter(|name| !name.is_empty())
    }

    /// The provider and the model that answered last on the path to the leaf,
    /// or that were set after that.
    pub fn model(&self) -> Option<(&str, &str)> {
        let named = self
            .back_from(self.leaf)
            .find_map(|entry| match &entry.kind {
                EntryKind::ModelChange { provider, model_id } => Some((provider, model_id)),
                EntryKind::Message(message) => match message.as_ref() {
                    Message::Assistant(reply) => Some((&reply.provider, &reply.model)),
                    Message::User(_) | Message::ToolResult(_) => None,
                },
                _ => None,
            });
        let first = || {
            self.first
                .model
                .as_ref()
                .map(|(provider, model)| (provider, model))
        };
        let (provider, model) = named.or_else(first)?;
        Some((provider, model))
    }

    /// The thinking level that was set last on the path to the leaf.
    pub fn thinking_level(&self) -> Option<&str> {
        let set = self
            .back_from(self.leaf)
            .find_map(|entry| match &entry.kind {
                EntryKind::ThinkingLevelChange { thinking_level } => Some(thinking_level.as_str()),
                _ => None,
            });
        set.or(self.first.thinking_level.as_deref())
    }

    /// The entries of the path to the leaf of which a model sees a message, in
    /// the order in which it does.
    ///
    /// The newest compaction of the path stands first, for its summary, and
    /// hides what came before its first kept entry.
    pub fn context(&self) -> Vec<&Entry> {
        sent::context(self.path())
    }

    /// The message that a model sees for an entry of the context.
    pub fn sent(&self, entry: &Entry) -> Option<Arc<Message>> {
        sent::sent(entry)
    }

    /// The messages of [`SessionTree::context`]. No text is copied, and an entry
    /// that follows the leaf only adds its own.
    pub fn messages(&self) -> &[Arc<Message>] {
        self.sent_messages()
    }

    /// The same, to be shared: the next entry does not change what was handed
    /// out.
    pub fn shared_messages(&self) -> Messages {
        Arc::clone(self.sent_messages())
    }

    fn sent_messages(&self) -> &Messages {
        self.messages.get_or_init(|| {
            let context = self.context().into_iter();
            Arc::new(context.filter_map(sent::sent).collect())
        })
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
        self.parent_of(entry).map(|_| ())
    }

    /// Adds `entry` below its parent and makes it the leaf.
    ///
    /// # Errors
    /// As [`SessionTree::check`]; the tree is then as before.
    pub fn push(&mut self, entry: Entry) -> Result<(), TreeError> {
        let parent = self.parent_of(&entry)?;
        let position = self.entries.len();
        if parent != self.leaf || sent::is_compaction(&entry) {
            self.messages = OnceLock::new();
        } else if let Some(messages) = self.messages.get_mut() {
            // Nobody holds them but the tree, unless a request is on its way.
            Arc::make_mut(messages).extend(sent::sent(&entry));
        }
        if let EntryKind::Label { target_id, label } = &entry.kind {
            match label.as_deref().filter(|label| !label.is_empty()) {
                Some(label) => self.labels.insert(target_id.clone(), label.to_owned()),
                None => self.labels.remove(target_id),
            };
        }
        match parent.and_then(|parent| self.nodes.get_mut(parent)) {
            Some(parent) => parent.children.push(position),
            None => self.roots.push(position),
        }
        self.nodes.push(Node {
            parent,
            children: Vec::new(),
        });
        self.positions.insert(entry.id.clone(), position);
        self.entries.push(entry);
        self.leaf = Some(position);
        Ok(())
    }

    fn parent_of(&self, entry: &Entry) -> Result<Option<usize>, TreeError> {
        if self.positions.contains_key(&entry.id) {
            return Err(TreeError::DuplicateId(entry.id.clone()));
        }
        let Some(parent) = &entry.parent_id else {
            return Ok(None);
        };
        match self.positions.get(parent) {
            Some(position) => Ok(Some(*position)),
            None => Err(TreeError::UnknownParent {
                id: entry.id.clone(),
                parent: parent.clone(),
            }),
        }
    }

    fn position(&self, id: &EntryId) -> Result<usize, TreeError> {
        let found = self.positions.get(id).copied();
        found.ok_or_else(|| TreeError::UnknownEntry(id.clone()))
    }

    fn climb(&self, from: Option<usize>) -> Vec<&Entry> {
        let mut path: Vec<&Entry> = self.back_from(from).collect();
        path.reverse();
        path
    }

    /// From an entry to the first one. A parent always stands before its child,
    /// so this ends.
    fn back_from(&self, from: Option<usize>) -> impl Iterator<Item = &Entry> {
        std::iter::successors(from, |at| self.nodes.get(*at)?.parent)
            .filter_map(|at| self.entries.get(at))
    }
}
