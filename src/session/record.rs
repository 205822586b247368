//! The session's store, shared by the running turn and everybody who looks at
//! the conversation meanwhile. The lock is held for single entries only.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::event::MessageSource;
use crate::message::Message;
use crate::store::{BashExecution, EntryId, EntryKind, Store, StoreError};

/// A store that several may look at.
#[derive(Debug)]
pub(super) struct Record {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    store: Store,
    /// Where the user messages of this process came from.
    sources: HashMap<EntryId, MessageSource>,
    /// Commands of the user's that ended while a prompt ran.
    deferred: VecDeque<Arc<BashExecution>>,
}

impl Record {
    pub(super) fn new(store: Store) -> Self {
        Self {
            kept: Mutex::new(Kept {
                store,
                sources: HashMap::new(),
                deferred: VecDeque::new(),
            }),
        }
    }

    /// Looks at the store.
    pub(super) fn read<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.lock().store)
    }

    /// Changes the store.
    pub(super) fn write<T>(&self, change: impl FnOnce(&mut Store) -> T) -> T {
        change(&mut self.lock().store)
    }

    pub(super) fn append(&self, kind: EntryKind) -> Result<EntryId, StoreError> {
        self.lock().store.append(kind)
    }

    pub(super) fn append_message(&self, message: Message) -> Result<EntryId, StoreError> {
        self.append(EntryKind::message(message))
    }

    /// Takes in a command of the user's, to be kept between prompts: within one it
    /// could come between a call and its result.
    pub(super) fn defer(&self, ran: Arc<BashExecution>) {
        self.lock().deferred.push_back(ran);
    }

    /// Keeps the commands that were taken in.
    pub(super) fn keep_deferred(&self) -> Result<(), StoreError> {
        let kept = &mut *self.lock();
        while let Some(ran) = kept.deferred.front() {
            kept.store
                .append(EntryKind::BashExecution(Arc::clone(ran)))?;
            kept.deferred.pop_front();
        }
        Ok(())
    }

    /// Remembers where a user message came from.
    pub(super) fn came_from(&self, entry: &EntryId, source: MessageSource) {
        self.lock().sources.insert(entry.clone(), source);
    }

    /// Where a user message came from; restored ones were prompts.
    pub(super) fn sources(&self) -> HashMap<EntryId, MessageSource> {
        self.lock().sources.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // A panic inside leaves at worst an entry unwritten.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
