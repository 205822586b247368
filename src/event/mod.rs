//! What happened: the events of the log, their envelope and payloads.
//!
//! The log is schema version 1: one JSON object a line. Adding an event or a
//! field is compatible; anything else raises [`SCHEMA_VERSION`]. Payload names
//! and fields are part of the public interface, `agent schema events` prints
//! them.

mod reason;
mod result;
mod run;
mod schema;
mod session;
mod tool;
mod tree;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use reason::{Outcome, Reason, Rerun};
pub use result::{
    Artifacts, Budget, ChangedFile, Denial, ErrorReport, FileStatus, JobResult, ModelUsed,
    ModelsUsed, ResultDocument, Spent, ToolCount,
};
pub use run::{
    Diff, Heartbeat, JobEnd, JobStart, LimitKind, LimitReached, RunEnd, RunStart, Warning,
};
pub use schema::published;
pub use session::{
    CallSummary, ConversationUsage, ErrorDetail, Interrupted, InterruptedBy, MessageComplete,
    MessageSource, ReplyDiscarded, RetryEnd, RetrySource, RetryStart, SandboxReport, SessionError,
    SessionErrorType, SessionReady, SessionState, StateUpdate, StepEnd, StepStart, TextChunk,
    TierPassedOver, TokenTotals, TurnEnd, TurnStart, TurnStatus, UserMessageEvent, WindowUsage,
};
pub use tool::{
    Decider, LoopAction, LoopDetected, PermissionRequest, PermissionResponse, ToolComplete,
    ToolError, ToolErrorStatus, ToolStart, ToolUpdate,
};
pub use tree::{
    BranchSummary, CompactExec, CompactReason, CompactStart, FileReference, FileReferences,
    HookError, ModelFallback, PendingCounts, QueueUpdate, ReferenceKind, SessionForked,
    SessionResumed, SessionTreeMoved,
};

/// The version of the envelope and of the payloads.
pub const SCHEMA_VERSION: u32 = 1;

/// One line of the event log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// [`SCHEMA_VERSION`].
    pub v: u32,
    /// 1 for the first event of a run, and one more for each that follows.
    pub seq: u64,
    /// RFC 3339 in UTC with milliseconds.
    pub ts: String,
    /// The run's id.
    pub run_id: String,
    /// Where in the run it happened.
    #[serde(flatten)]
    pub place: Place,
    /// What happened: `event` and `data`.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// Where in a run an event happened.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    /// The job's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The session's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// `main`, or the task id of a sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The turn, from 1; present inside a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
    /// The step of the turn, from 1; present inside a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
}

/// What happened, by the name the log gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data")]
#[expect(
    missing_docs,
    reason = "each payload type documents when its event is written"
)]
pub enum EventKind {
    #[serde(rename = "run:start")]
    RunStart(RunStart),
    #[serde(rename = "run:end")]
    RunEnd(Box<RunEnd>),
    #[serde(rename = "job:start")]
    JobStart(JobStart),
    #[serde(rename = "job:end")]
    JobEnd(Box<JobEnd>),
    #[serde(rename = "session:ready")]
    SessionReady(SessionReady),
    #[serde(rename = "session:interrupted")]
    SessionInterrupted(Interrupted),
    #[serde(rename = "session:error")]
    SessionError(SessionError),
    #[serde(rename = "state:update")]
    StateUpdate(StateUpdate),
    #[serde(rename = "turn:start")]
    TurnStart(TurnStart),
    #[serde(rename = "turn:end")]
    TurnEnd(TurnEnd),
    #[serde(rename = "step:start")]
    StepStart(StepStart),
    #[serde(rename = "step:end")]
    StepEnd(StepEnd),
    #[serde(rename = "message:user")]
    MessageUser(UserMessageEvent),
    #[serde(rename = "message:thinking:chunk")]
    ThinkingChunk(TextChunk),
    #[serde(rename = "message:text:chunk")]
    TextChunk(TextChunk),
    #[serde(rename = "message:complete")]
    MessageComplete(Box<MessageComplete>),
    #[serde(rename = "conversation:usage")]
    ConversationUsage(ConversationUsage),
    #[serde(rename = "tool:permission:request")]
    PermissionRequest(PermissionRequest),
    #[serde(rename = "tool:permission:response")]
    PermissionResponse(PermissionResponse),
    #[serde(rename = "tool:execution:start")]
    ToolStart(ToolStart),
    #[serde(rename = "tool:execution:update")]
    ToolUpdate(ToolUpdate),
    #[serde(rename = "tool:execution:complete")]
    ToolComplete(ToolComplete),
    #[serde(rename = "tool:execution:error")]
    ToolError(ToolError),
    #[serde(rename = "reply:discarded")]
    ReplyDiscarded(ReplyDiscarded),
    #[serde(rename = "retry:start")]
    RetryStart(RetryStart),
    #[serde(rename = "retry:end")]
    RetryEnd(RetryEnd),
    #[serde(rename = "queue:update")]
    QueueUpdate(QueueUpdate),
    #[serde(rename = "compact:start")]
    CompactStart(CompactStart),
    #[serde(rename = "compact:exec")]
    CompactExec(CompactExec),
    #[serde(rename = "session:forked")]
    SessionForked(SessionForked),
    #[serde(rename = "session:tree")]
    SessionTree(SessionTreeMoved),
    #[serde(rename = "branch:summary")]
    BranchSummary(BranchSummary),
    #[serde(rename = "model:fallback")]
    ModelFallback(ModelFallback),
    #[serde(rename = "session:resumed")]
    SessionResumed(SessionResumed),
    #[serde(rename = "file:reference")]
    FileReferences(FileReferences),
    #[serde(rename = "hook:error")]
    HookError(HookError),
    #[serde(rename = "limit:warning")]
    LimitWarning(LimitReached),
    #[serde(rename = "limit:reached")]
    LimitReached(LimitReached),
    #[serde(rename = "loop:detected")]
    LoopDetected(LoopDetected),
    #[serde(rename = "diff")]
    Diff(Diff),
    #[serde(rename = "warning")]
    Warning(Warning),
    #[serde(rename = "heartbeat")]
    Heartbeat(Heartbeat),
}

/// An event on its way out, before it has a number and a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Emission {
    /// Where it happened.
    pub place: Place,
    /// What happened.
    pub kind: EventKind,
}

impl Emission {
    /// An event of the run itself, outside any job.
    pub fn of_run(kind: EventKind) -> Self {
        Self {
            place: Place::default(),
            kind,
        }
    }
}
