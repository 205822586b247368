//! The conversation as a tree: forks into sessions of their own, moves of the
//! leaf inside this one, labels and the name.

use std::sync::Arc;

use crate::event::{EventKind, SessionForked, SessionTreeMoved};
use crate::message::{Content, Message};
use crate::store::{Entry, EntryId, EntryKind, SessionTree, Store};

use super::compact::left_behind;
use super::engine::Engine;
use super::interrupt::Interrupt;
use super::refusal::SessionError;
use super::{Created, Session};

/// Where a fork begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForkPoint {
    /// It has all that is complete.
    Whole,
    /// It has what precedes the user message at this index of
    /// [`Tree::entries`], so that it can be said differently.
    Before(usize),
}

/// A user message at which a fork can begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forkable {
    /// Its index in [`Tree::entries`].
    pub entry_index: usize,
    /// The entry.
    pub entry_id: EntryId,
    /// Its text.
    pub text: String,
}

/// A leaf that was moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Navigated {
    /// The text of the user message that was gone back behind, to say it anew.
    pub text: Option<String>,
    /// The entry with the summary of the branch that was left.
    pub summary: Option<EntryId>,
}

/// What becomes of the branch that a move leaves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LeftBranch {
    /// It stays in the file, and the model hears no more of it.
    #[default]
    Silent,
    /// The model summarises it, and attends above all to this.
    Summarised(Option<String>),
}

/// The session's tree of entries, to look at and to move in.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'s> {
    pub(super) session: &'s Session,
}

impl Tree<'_> {
    /// The entries from the first one to the leaf.
    pub fn entries(&self) -> Vec<Entry> {
        self.read(|tree| tree.path().into_iter().cloned().collect())
    }

    /// The entry that the next one follows.
    pub fn leaf(&self) -> Option<EntryId> {
        self.read(|tree| tree.leaf().map(|leaf| leaf.id.clone()))
    }

    /// The session's name.
    pub fn name(&self) -> Option<String> {
        self.read(|tree| tree.name().map(str::to_owned))
    }

    /// The label of an entry.
    pub fn label_of(&self, entry: &EntryId) -> Option<String> {
        self.read(|tree| tree.label(entry).map(str::to_owned))
    }

    /// The user messages of the path to the leaf, oldest first.
    pub fn forkable(&self) -> Vec<Forkable> {
        self.read(|tree| {
            let path = tree.path().into_iter().enumerate();
            path.filter_map(|(entry_index, entry)| {
                Some(Forkable {
                    entry_index,
                    entry_id: entry.id.clone(),
                    text: user_text(entry)?,
                })
            })
            .collect()
        })
    }

    /// Makes `entry` the leaf, in the same file: what is said next follows it. A
    /// user message is gone back behind, and its text is given back. With
    /// [`LeftBranch::Summarised`] the model writes down what is left behind, and
    /// the conversation goes on from that summary; [`Session::cancel`] ends it.
    ///
    /// # Errors
    /// [`SessionError::Busy`] while a prompt runs; [`SessionError::UnknownEntry`];
    /// [`SessionError::CancelledByHook`]; [`SessionError::NotSummarised`] and
    /// [`SessionError::Stopped`] when there is no summary: nothing moved then.
    pub async fn navigate(
        &self,
        entry: &EntryId,
        left: LeftBranch,
    ) -> Result<Navigated, SessionError> {
        // Nobody may prompt in between.
        let interrupt = Interrupt::default();
        let mut lease = self.session.lease(&interrupt)?;
        self.move_to(entry, left, lease.engine(), &interrupt).await
    }

    async fn move_to(
        &self,
        entry: &EntryId,
        left: LeftBranch,
        engine: &mut Engine,
        interrupt: &Interrupt,
    ) -> Result<Navigated, SessionError> {
        let session = self.session;
        let target = self.read(|tree| tree.entry(entry).cloned());
        let target = target.ok_or_else(|| SessionError::UnknownEntry(entry.clone()))?;
        let text = user_text(&target);
        let leaf = match text {
            Some(_) => target.parent_id,
            None => Some(target.id),
        };
        let old_leaf = self.leaf();
        let verdict = session
            .hooks
            .before_tree(old_leaf.as_ref(), entry, &session.feed, interrupt.token())
            .await;
        SessionError::unless_cancelled("move", verdict)?;
        let messages = self.read(|tree| left_behind(tree, leaf.as_ref()));
        let summary = match (left, old_leaf.clone()) {
            (LeftBranch::Summarised(instructions), Some(from)) if !messages.is_empty() => {
                let instructions = instructions.as_deref();
                let asked = engine.summarise_branch(&messages, from, instructions, interrupt);
                Some(asked.await?)
            }
            _ => None,
        };
        // On the disk before anybody learns of it.
        let summary_entry = session.record.write(|store| {
            store.move_leaf(leaf.as_ref())?;
            match summary {
                Some(summary) => store.append(summary).map(Some),
                None => store.keep_leaf().map(|()| None),
            }
        })?;
        let moved = EventKind::SessionTree(SessionTreeMoved {
            old_leaf_id: old_leaf.map(|id| id.to_string()),
            new_leaf_id: self.leaf().map(|id| id.to_string()),
            summary_entry_id: summary_entry.as_ref().map(ToString::to_string),
        });
        session.feed.send(moved).await;
        Ok(Navigated {
            text,
            summary: summary_entry,
        })
    }

    /// Sets the label of an entry, or takes it away.
    ///
    /// # Errors
    /// [`SessionError::UnknownEntry`]; [`SessionError::Stopped`] when the file
    /// cannot be written.
    pub fn label(&self, entry: &EntryId, label: Option<&str>) -> Result<(), SessionError> {
        if self.read(|tree| tree.entry(entry).is_none()) {
            return Err(SessionError::UnknownEntry(entry.clone()));
        }
        self.note(EntryKind::Label {
            target_id: entry.clone(),
            label: label.map(str::to_owned),
        })
    }

    /// Names the session.
    ///
    /// # Errors
    /// [`SessionError::Stopped`] when the file cannot be written.
    pub fn rename(&self, name: &str) -> Result<(), SessionError> {
        self.note(EntryKind::SessionInfo {
            name: Some(name.to_owned()),
        })
    }

    /// Goes on from these entries, which another session told: its path from the
    /// first entry to a leaf. What this one held stays as a branch of its own.
    ///
    /// # Errors
    /// [`SessionError::Busy`] while a prompt runs; [`SessionError::Stopped`] when
    /// an entry does not follow another one of them, or is there already;
    /// [`SessionError::CancelledByHook`].
    pub async fn restore(&self, entries: Vec<Entry>) -> Result<(), SessionError> {
        let session = self.session;
        let interrupt = Interrupt::default();
        let _lease = session.lease(&interrupt)?;
        let target = entries.last().map(|entry| &entry.id);
        let verdict = session
            .hooks
            .before_switch(target, &session.feed, interrupt.token())
            .await;
        SessionError::unless_cancelled("go on from another one", verdict)?;
        Ok(session.record.write(|store| store.restore(entries))?)
    }

    fn note(&self, kind: EntryKind) -> Result<(), SessionError> {
        self.session.record.append(kind)?;
        Ok(())
    }

    fn read<T>(&self, look: impl FnOnce(&SessionTree) -> T) -> T {
        self.session.record.read(|store| look(store.tree()))
    }
}

impl Session {
    /// A session of its own that begins with a part of this one: the same model
    /// and tools, an own id, an empty queue and empty books. Its file, if this
    /// one has one, is beside that of this one. This session stays as it is, and
    /// may be running.
    ///
    /// # Errors
    /// [`SessionError::InvalidForkEntryIndex`]; [`SessionError::Stopped`] when
    /// the new file cannot be written; [`SessionError::CancelledByHook`].
    pub async fn fork(&self, point: ForkPoint) -> Result<Session, SessionError> {
        let at = self.record.read(|store| fork_end(store, point))?;
        let verdict = self.hooks.before_fork(at.as_ref(), &self.feed).await;
        SessionError::unless_cancelled("fork", verdict)?;
        let store = self.record.read(|store| store.fork_at(at.as_ref()))?;
        let from_entry = store.tree().leaf().map(|leaf| leaf.id.to_string());
        let session_id = store.tree().header().id.clone();
        let options = self.blueprint.options(store, &self.workbench, &self.asked);
        let Created { session, .. } = Session::create(options).await?;
        self.feed
            .send(EventKind::SessionForked(SessionForked {
                parent_session_id: self.id.clone(),
                session_id,
                from_entry,
            }))
            .await;
        Ok(session)
    }
}

/// The entry that a fork ends with.
fn fork_end(store: &Store, point: ForkPoint) -> Result<Option<EntryId>, SessionError> {
    let path = store.tree().path();
    match point {
        ForkPoint::Whole => Ok(complete(&path).map(|entry| entry.id.clone())),
        ForkPoint::Before(index) => {
            let invalid = SessionError::InvalidForkEntryIndex(index);
            match path.get(index) {
                Some(entry) if user_text(entry).is_some() => Ok(entry.parent_id.clone()),
                _ => Err(invalid),
            }
        }
    }
}

/// The newest entry at which no call waits for its result.
fn complete<'t>(path: &[&'t Entry]) -> Option<&'t Entry> {
    let mut answered: Vec<&str> = Vec::new();
    for (at, entry) in path.iter().enumerate().rev() {
        let EntryKind::Message(message) = &entry.kind else {
            continue;
        };
        match message.as_ref() {
            Message::ToolResult(result) => answered.push(&result.tool_call_id),
            Message::Assistant(reply) => {
                let open = |id: &str| !answered.contains(&id);
                if reply.tool_calls().any(|call| open(&call.id)) {
                    return at.checked_sub(1).and_then(|at| path.get(at)).copied();
                }
                break;
            }
            Message::User(_) => break,
        }
    }
    path.last().copied()
}

/// What a user said in a message: its first text. Files that it mentions are
/// attached in blocks behind it, and would be attached again.
fn user_text(entry: &Entry) -> Option<String> {
    let EntryKind::Message(message) = &entry.kind else {
        return None;
    };
    let Message::User(message) = Arc::as_ref(message) else {
        return None;
    };
    let text = message.content.iter().find_map(|block| match block {
        Content::Text(block) => Some(block.text.clone()),
        Content::Image(_) | Content::Thinking(_) | Content::ToolCall(_) => None,
    });
    Some(text.unwrap_or_default())
}
