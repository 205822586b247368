//! What a call on a session can fail with.

use std::sync::Arc;

use crate::hook::CancelVerdict;
use crate::store::{EntryId, StoreError, TreeError};

use super::interrupt::Cause;
use super::models::ChoiceError;
use super::stop::Stop;

/// Why a session did not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SessionError {
    /// A prompt runs, and the new one does not say how it would wait.
    #[error(
        "a prompt is running already: give it a streaming behavior, or wait for the running one"
    )]
    PromptAlreadyRunning,
    /// The operation needs a session at rest.
    #[error("the session is busy with a prompt")]
    Busy,
    /// No fork can begin there: this is no user message of the path to the leaf.
    #[error("entry {0} is no user message that a fork could begin at")]
    InvalidForkEntryIndex(usize),
    /// The session has no such entry.
    #[error("there is no entry {0} in the session")]
    UnknownEntry(EntryId),
    /// A hook cancelled it.
    #[error("a hook does not let the session {what}: {reason}")]
    CancelledByHook {
        /// What was asked for.
        what: &'static str,
        /// Why, in the hook's words.
        reason: String,
    },
    /// All messages stay, whatever a compaction does.
    #[error("there is nothing to compact: the conversation is short, or was compacted just now")]
    NothingToCompact,
    /// A compaction failed; the conversation is as before.
    #[error("the conversation was not compacted: {0}")]
    NotCompacted(String),
    /// The branch that would be left got no summary; the leaf is where it was.
    #[error("the branch was not summarised: {0}")]
    NotSummarised(String),
    /// Too many messages wait.
    #[error("the queue is full: {0} messages wait")]
    QueueFull(usize),
    /// The model that was named cannot be asked.
    #[error(transparent)]
    NoModel(#[from] ChoiceError),
    /// The command could not be started.
    #[error("{0}")]
    Command(String),
    /// A tool of that name exists already.
    #[error(transparent)]
    DuplicateTool(#[from] crate::tool::DuplicateTool),
    /// There is no tool of that name.
    #[error("there is no tool `{0}`")]
    UnknownTool(String),
    /// The turn stopped without a final answer.
    #[error(transparent)]
    Stopped(Arc<Stop>),
    /// The engine crashed in an earlier prompt, or the session was closed.
    #[error("the session takes no more prompts")]
    Closed,
}

impl SessionError {
    /// What a caller gets whose message was thrown away.
    pub(super) fn cancelled() -> Self {
        Stop::Interrupted(Cause::User).into()
    }

    /// Goes on unless a hook says no.
    pub(super) fn unless_cancelled(what: &'static str, verdict: CancelVerdict) -> Result<(), Self> {
        match verdict {
            CancelVerdict::Continue => Ok(()),
            CancelVerdict::Cancel(reason) => Err(Self::CancelledByHook { what, reason }),
        }
    }

    /// Whether somebody cancelled it.
    pub fn is_cancelled(&self) -> bool {
        matches!(self, Self::Stopped(stop) if matches!(**stop, Stop::Interrupted(_)))
    }
}

impl From<Stop> for SessionError {
    fn from(stop: Stop) -> Self {
        Self::Stopped(Arc::new(stop))
    }
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        Stop::Store(error).into()
    }
}

impl From<TreeError> for SessionError {
    fn from(error: TreeError) -> Self {
        StoreError::Tree(error).into()
    }
}
