//! Payloads of the runner's own events.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::result::{ChangedFile, JobResult, ResultDocument};
use super::{Outcome, Reason};

/// `run:start`, the first event of every run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStart {
    /// The version of this program.
    pub agent_version: String,
    /// The task files as given; none for `agent -p`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub task_files: Vec<String>,
    /// The names of the jobs, in the order in which they start.
    pub jobs: Vec<String>,
    /// The directory in which the command was started.
    pub cwd: String,
    /// The run directory; none when nothing is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_dir: Option<String>,
    /// The model, as `provider/id`.
    pub model: String,
    /// The permission mode.
    pub permission_mode: String,
    /// The limits of the first job, resolved.
    pub limits: Value,
    /// A fingerprint of the resolved task: the same configuration, the same hash.
    pub config_hash: String,
    /// The cassette that answers in place of the providers, when one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
}

/// `run:end`, the last event of every run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// The process's exit status.
    pub exit_code: u8,
    /// The whole result document, as in `result.json`.
    pub result: ResultDocument,
}

/// `job:start`: one task of the run begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobStart {
    /// The job's name.
    pub name: String,
    /// From 1.
    pub attempt: u32,
    /// The parameters as resolved, secrets redacted.
    pub params: BTreeMap<String, Value>,
}

/// `job:end`: one task of the run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobEnd {
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// Milliseconds from `job:start`.
    pub duration_ms: u64,
    /// What only the engine knows of the job's end; the rest of the result is
    /// the fold of the events before.
    pub conclusion: JobResult,
}

/// `diff`: what the job changed in the workspace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The changed files, by path.
    pub files: Vec<ChangedFile>,
    /// The patch in the run directory, relative to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch_path: Option<String>,
    /// What the patch was made from: `git` or `before-images`.
    pub source: String,
}

/// A budget.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LimitKind {
    /// Model calls.
    Turns,
    /// US dollars.
    Cost,
    /// Tokens, input and output.
    Tokens,
    /// Tool calls.
    ToolCalls,
    /// The same call with the same result in a row.
    Repeats,
    /// Denied calls, in a row.
    DenialsInARow,
    /// Denied calls, in all.
    Denials,
    /// Wall-clock seconds.
    Time,
    /// Seconds without a byte from the model or a tool.
    Idle,
}

/// `limit:warning` at a warning level of a budget, `limit:reached` when it is spent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitReached {
    /// Which budget.
    pub kind: LimitKind,
    /// What was used, in the budget's unit.
    pub value: f64,
    /// What is allowed.
    pub max: f64,
}

/// `warning`: worth a human's look, not an error.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// A stable name.
    pub code: String,
    /// For people.
    pub message: String,
}

/// `heartbeat`: nothing else happened for 30 s.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Heartbeat {
    /// Milliseconds since the run started.
    pub elapsed_ms: u64,
    /// What the run waits for: a model or a tool call.
    pub waiting_for: String,
}
