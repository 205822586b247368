//! The result document: what `result.json`, `run:end` and
//! `--output-format json` say of a run.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{LimitKind, Outcome, Reason};
use crate::message::Usage;

/// The result of a run. With one job its fields are that job's; with several
/// they are sums, and `jobs` has each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultDocument {
    /// 1.
    pub schema_version: u32,
    /// The run's id.
    pub run_id: String,
    /// The task's name; several are joined by commas.
    pub task: String,
    /// How the run ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// The process's exit status.
    pub exit_code: u8,
    /// The model's answer, or what it said when a limit made it wrap up. Empty
    /// when the run stopped before either; `turn:end` has its last text.
    pub final_text: String,
    /// The document in the answer, when the task has a response schema and
    /// ended with success; only then.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_output: Option<Value>,
    /// How often an answer that did not fit the response schema was asked for
    /// again; there when the task has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u32>,
    /// The model that was asked for, `provider/id`.
    pub model: String,
    /// Every model that replied, with what it used; summaries included.
    #[serde(default)]
    pub models: ModelsUsed,
    /// RFC 3339 in UTC.
    pub started_at: String,
    /// Milliseconds from start to end.
    pub duration_ms: u64,
    /// Model calls that gave a reply.
    pub turns: u32,
    /// Tool calls by tool.
    pub tool_calls: BTreeMap<String, ToolCount>,
    /// Tokens.
    pub usage: Usage,
    /// US dollars; none when a price is unknown.
    pub cost_usd: Option<f64>,
    /// Each budget, with what was used of it.
    pub budget: Budget,
    /// What changed in the workspace.
    pub files_changed: Vec<ChangedFile>,
    /// Calls that policy refused.
    pub denials: Vec<Denial>,
    /// Model calls that were tried again.
    pub retries: u32,
    /// Compactions that shortened the conversation.
    #[serde(default)]
    pub compactions: u32,
    /// Warnings, in order.
    pub warnings: Vec<super::Warning>,
    /// How commands were kept in; none when there were none to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<super::SandboxReport>,
    /// The session file, relative to the run directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// Where the other files are, relative to the run directory.
    pub artifacts: Artifacts,
    /// The cassette that answered in place of the providers: nothing of the
    /// usage and the cost was spent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
    /// One entry a job, when there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<ResultDocument>,
}

/// Models by name, `provider/id`, with what each used.
pub type ModelsUsed = BTreeMap<String, ModelUsed>;

/// What one model used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsed {
    /// Its replies.
    pub replies: u32,
    /// Their tokens.
    pub usage: Usage,
    /// Their cost in US dollars, at this model's own price; none when a price or
    /// a usage is unknown.
    pub cost_usd: Option<f64>,
}

impl Default for ModelUsed {
    fn default() -> Self {
        Self {
            replies: 0,
            usage: Usage::default(),
            cost_usd: Some(0.0),
        }
    }
}

impl ModelUsed {
    /// One reply.
    pub fn reply(usage: &Usage, cost_usd: Option<f64>) -> Self {
        Self {
            replies: 1,
            usage: *usage,
            cost_usd,
        }
    }

    /// Adds what it used elsewhere.
    pub fn add(&mut self, other: &Self) {
        self.replies = self.replies.saturating_add(other.replies);
        self.usage.add(&other.usage);
        self.cost_usd = self
            .cost_usd
            .zip(other.cost_usd)
            .map(|(sum, cost)| sum + cost);
    }
}

/// What a job's end adds to what its events already said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobResult {
    /// Each budget, with what was used of it.
    pub budget: Budget,
    /// The document in the answer, when there must be one and the job ended
    /// with success.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    pub structured_output: Option<Value>,
    /// How often an answer was asked for again because it did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<u32>,
    /// The session file, relative to the run directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_file: Option<String>,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// Calls of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCount {
    /// All calls.
    pub count: u32,
    /// Those that failed, denied ones included.
    pub errors: u32,
    /// Those that policy refused.
    pub denied: u32,
}

/// Budgets by kind.
pub type Budget = BTreeMap<LimitKind, Spent>;

/// What was used of a budget.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// The limit, in the budget's unit.
    pub limit: f64,
    /// What was used.
    pub used: f64,
}

/// One file that a job changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedFile {
    /// Relative to the workspace, with `/`.
    pub path: String,
    /// What happened to it.
    pub status: FileStatus,
    /// Lines added; 0 for binary files.
    pub additions: u64,
    /// Lines removed; 0 for binary files.
    pub deletions: u64,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    /// It is new.
    Added,
    /// Its content, type or mode changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// A call that policy refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Denial {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub input: Value,
    /// The rule and its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, as the model was told.
    pub reason: String,
    /// A rule that would have allowed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_rule: Option<String>,
}

/// Where a run's files are, relative to the run directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifacts {
    /// The run directory as an absolute path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_dir: Option<String>,
    /// `change.patch`, when something changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

/// An error in the result document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// A stable name.
    pub code: String,
    /// For people; redacted.
    pub message: String,
    /// The provider's HTTP status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The provider's id of the request, for its support.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hints: Vec<String>,
}

/// A document that is there, `null` too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
