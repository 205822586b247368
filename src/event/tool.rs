//! Payloads of tool events.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Access;

/// `tool:permission:request`: a call needs a decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest {
    /// `main`, or a sub-agent's task id.
    pub agent_id: String,
    /// The tool.
    pub tool_name: String,
    /// One line for people.
    pub title: String,
    /// What the call would touch.
    pub content: String,
    /// The possible answers by key.
    pub options: BTreeMap<String, String>,
    /// Pairs with the response.
    pub request_id: String,
    /// The call.
    pub tool_call_id: String,
    /// What the call would touch, for machines.
    pub accesses: Vec<Access>,
    /// A rule that would have allowed it; present when it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggested_rule: Option<String>,
}

/// `tool:permission:response`: the decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PermissionResponse {
    /// The tool.
    pub tool_name: String,
    /// `allow` or `refuse`.
    pub selected: String,
    /// Pairs with the request.
    pub request_id: String,
    /// The call.
    pub tool_call_id: String,
    /// Who decided.
    pub by: Decider,
    /// The rule and its place, as `permissions.deny[0] Edit(.github/**)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// Why, as the model is told.
    pub reason: String,
}

/// Who decided about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decider {
    /// A protection that always holds.
    Policy,
    /// A rule of the task or the command line.
    Rule,
    /// The permission mode.
    Mode,
    /// A hook, before anything else was asked.
    Hook,
}

/// `tool:execution:start`: a call is taken up.
///
/// Written for every call of a reply before anything is decided about it, so
/// for refused ones too. What follows is the permission request and response,
/// when there is something to decide, and always `tool:execution:complete` or
/// `tool:execution:error`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStart {
    /// The call.
    pub tool_call_id: String,
    /// The tool.
    pub tool_name: String,
    /// The arguments after coercion; as the model sent them when they do not fit.
    pub args: Value,
    /// One line for people.
    pub title: String,
    /// What the call touches.
    pub accesses: Vec<Access>,
    /// Calls of one reply with the same group run side by side; from 1.
    pub parallel_group: u32,
}

/// `tool:execution:update`: partial output, at most every 100 ms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolUpdate {
    /// The call.
    pub tool_call_id: String,
    /// What is new.
    pub delta: String,
}

/// `tool:execution:complete`: a tool succeeded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolComplete {
    /// `main`, or a sub-agent's task id.
    pub agent_id: String,
    /// The tool.
    pub tool_name: String,
    /// One line: what was asked.
    pub title: String,
    /// One line: what came of it.
    pub summary: String,
    /// What the model is told.
    pub content: String,
    /// The call.
    pub tool_call_id: String,
    /// Milliseconds from `tool:execution:start`.
    pub duration_ms: u64,
    /// The command's exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether the content is a part; the whole is in the run directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// The files that the call wrote, relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// `tool:execution:error`: a tool failed, or never ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolError {
    /// `main`, or a sub-agent's task id.
    pub agent_id: String,
    /// The tool.
    pub tool_name: String,
    /// One line: what was asked.
    pub title: String,
    /// What the model is told.
    pub content: String,
    /// The call.
    pub tool_call_id: String,
    /// Milliseconds from `tool:execution:start`; 0 when it never ran.
    pub duration_ms: u64,
    /// Why it failed.
    pub status: ToolErrorStatus,
    /// The command's exit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// Why a tool call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolErrorStatus {
    /// The tool ran and failed.
    Error,
    /// Policy refused it.
    Denied,
    /// The arguments do not fit the tool.
    InvalidInput,
    /// There is no such tool.
    NotFound,
    /// It ran out of time.
    Timeout,
    /// The run was cancelled while it ran.
    Aborted,
    /// The run ended before it started.
    Skipped,
}

/// `loop:detected`: the same call with the same result again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopDetected {
    /// The tool.
    pub tool_name: String,
    /// How many times in a row.
    pub count: u32,
    /// What the engine did.
    pub action: LoopAction,
}

/// What the engine does about a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoopAction {
    /// The result carries a reminder.
    Remind,
    /// The turn is stopped.
    Stop,
}
