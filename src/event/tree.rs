//! Payloads of the events around a conversation: queue, compaction, the session
//! tree, references, hooks, models.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::Usage;

use super::result::ModelsUsed;

/// `queue:update`: the queue of waiting messages changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueUpdate {
    /// The id of an item that was put in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<String>,
    /// The id of an item that a turn took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<String>,
    /// The id of an item that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<String>,
    /// Whether waiting items were thrown away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cleared: bool,
    /// What waits now.
    pub pending: PendingCounts,
}

/// Waiting messages, by where they came from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PendingCounts {
    /// Prompts that wait for their own answer.
    pub prompt_follow_up: u32,
    /// Messages for the running turn.
    pub steer: u32,
    /// Messages for when the running turn would end.
    pub follow_up: u32,
}

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CompactReason {
    /// The context came near the model's window.
    Threshold,
    /// The provider refused the request as too long.
    Overflow,
    /// Somebody asked.
    Manual,
}

/// `compact:start`: a compaction begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactStart {
    /// Pairs with `compact:exec`.
    pub compaction_id: String,
    /// Why.
    pub reason: CompactReason,
    /// The tokens of the context.
    pub token_before: u64,
}

/// `compact:exec`: a compaction ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactExec {
    /// As in `compact:start`.
    pub compaction_id: String,
    /// Why.
    pub reason: CompactReason,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub err_msg: Option<String>,
    /// The tokens of the context before.
    pub token_before: u64,
    /// The estimate of the context after.
    pub token_compact: u64,
    /// After over before, 0 to 1; 0 when before is 0.
    pub compact_rate: f64,
    /// What the model calls for the summary used.
    pub usage: Usage,
    /// Their cost in US dollars; none when a price or a usage is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The same by the models that wrote it.
    #[serde(default, skip_serializing_if = "ModelsUsed::is_empty")]
    pub models: ModelsUsed,
    /// Whether it was cut short and the conversation is as before.
    pub aborted: bool,
    /// Whether the model call that overflowed is made again.
    pub will_retry: bool,
}

/// `session:forked`: a new session begins at an entry of this one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionForked {
    /// The session that goes on as it was.
    pub parent_session_id: String,
    /// The new session.
    pub session_id: String,
    /// The last entry that both share; none for an empty fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_entry: Option<String>,
}

/// `session:tree`: the leaf moved inside the session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionTreeMoved {
    /// The leaf before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_leaf_id: Option<String>,
    /// The leaf now; none before the first entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_leaf_id: Option<String>,
    /// The entry that summarises the branch left behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary_entry_id: Option<String>,
}

/// `branch:summary`: models were asked for the summary of a branch that is left.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BranchSummary {
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub err_msg: Option<String>,
    /// What the calls used.
    pub usage: Usage,
    /// Their cost in US dollars; none when a price or a usage is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The same by model.
    #[serde(default, skip_serializing_if = "ModelsUsed::is_empty")]
    pub models: ModelsUsed,
}

/// `model:fallback`: another model takes over for the rest of the turn. What was
/// streamed of the step's reply must be forgotten.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelFallback {
    /// The model that could not be asked, `provider/id`.
    pub from: String,
    /// The one that takes over.
    pub to: String,
    /// Why, for people.
    pub reason: String,
    /// The error's kind.
    pub error_code: String,
    /// The HTTP status, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
}

/// `session:resumed`: a session was opened again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResumed {
    /// The session.
    pub session_id: String,
    /// Its entries.
    pub entries: u64,
    /// Bytes of a torn last line that were cut off.
    pub repaired_bytes: u64,
}

/// `file:reference`: the references of an input were resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileReferences {
    /// In the order of the text.
    pub references: Vec<FileReference>,
}

/// One `@file` of an input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FileReference {
    /// What it names.
    #[serde(rename = "type")]
    pub kind: ReferenceKind,
    /// As it was written, without the `@`.
    pub name: String,
    /// What the model is given of it.
    pub content: String,
}

/// What an `@file` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReferenceKind {
    /// A file.
    File,
    /// A directory.
    Dir,
}

/// `hook:error`: a hook failed or ran out of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HookError {
    /// The point at which it was called, `before_tool` for example.
    pub hook: String,
    /// Which hook it was.
    pub name: String,
    /// For people.
    pub error: String,
}
