//! Payloads of the session engine's events.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{StopReason, Usage};

/// `session:ready`: the session exists and takes input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionReady {
    /// Where relative paths and commands start.
    pub working_dir: String,
    /// The session's id.
    pub session_id: String,
    /// Whether earlier messages were restored.
    pub history_loaded: bool,
    /// The context as it stands.
    pub usage: WindowUsage,
    /// Earlier inputs of this project; empty for a new session.
    pub project_input_history: Vec<String>,
    /// `provider/id`.
    pub model: String,
    /// The thinking level, clamped to the model.
    pub thinking_level: String,
    /// The names of the active tools.
    pub tools: Vec<String>,
    /// The permission mode.
    pub permission_mode: String,
    /// How commands are kept in; none when there are none to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxReport>,
    /// The project files in the system prompt, the most general first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub project_files: Vec<String>,
    /// The names of the skills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
    /// The names of the prompt templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub templates: Vec<String>,
}

/// How the commands of a session are kept in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxReport {
    /// `namespaces`, `landlock` or `none`.
    pub tier: String,
    /// What of the network they reach: `off`, `on`, or `hosts` that are listed.
    pub network: String,
    /// The tiers that were wanted and do not work here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<TierPassedOver>,
}

/// A tier of the sandbox that does not work here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TierPassedOver {
    /// Its name.
    pub tier: String,
    /// Why.
    pub reason: String,
}

/// Tokens of the context window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WindowUsage {
    /// Tokens in the context.
    pub use_tokens: u64,
    /// The model's context window.
    pub max_tokens: u64,
    /// The prompt's share of the last reply.
    pub prompt_tokens: u64,
}

/// `session:interrupted`: the run of an agent was cut short.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Interrupted {
    /// `main`, or a sub-agent's task id.
    pub agent_id: String,
    /// The reason, for people.
    pub content: String,
    /// Who did it.
    pub by: InterruptedBy,
}

/// Who interrupted a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InterruptedBy {
    /// The embedding program.
    User,
    /// A signal to the process.
    Signal,
    /// The wall clock or the idle limit.
    Timeout,
    /// A budget.
    Budget,
    /// The permission policy.
    Policy,
}

/// `session:error`: an error that the session cannot recover from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionError {
    /// Its class.
    #[serde(rename = "type")]
    pub error_type: SessionErrorType,
    /// The error.
    pub error: ErrorDetail,
}

/// The class of a session error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionErrorType {
    /// The provider answered with an error, or not at all.
    ApiError,
    /// Our own failure: disk, bug.
    FatalError,
    /// The conversation no longer fits the model's window.
    ContextLengthExceeded,
    /// The model's reply could not be used.
    ModelError,
}

/// An error, for machines and people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorDetail {
    /// A stable name.
    pub code: String,
    /// For people; redacted.
    pub message: String,
    /// HTTP status, request id and the like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

/// `state:update`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StateUpdate {
    /// The state from now on.
    pub state: SessionState,
}

/// Whether a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// It waits for input.
    Idle,
    /// A turn runs.
    Processing,
}

/// `turn:start`: the input is accepted and on disk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnStart {
    /// The input.
    pub input: String,
}

/// `turn:end`: the final text is decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// How the turn ended.
    pub status: TurnStatus,
    /// The model's last text; an answer only when `status` is `ok`, or `limit`
    /// after a closing step. With `invalid` it is the one that does not fit.
    pub final_text: String,
    /// The number of model calls that gave a reply.
    pub steps: u32,
    /// The turn's own usage.
    pub usage: Usage,
    /// Milliseconds from `turn:start`.
    pub duration_ms: u64,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
}

/// How a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// With a final answer.
    Ok,
    /// With an answer that does not fit the response schema.
    Invalid,
    /// With an error.
    Error,
    /// At a limit.
    Limit,
    /// Cancelled.
    Cancelled,
}

/// `step:start`: one model call begins.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepStart {
    /// The model that is asked, `provider/id`; where another one takes over,
    /// `message:complete` names it.
    pub model: String,
    /// Whether this is the closing step, which has no tools.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub closing: bool,
}

/// `step:end`: the reply's tools have run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepEnd {
    /// Why the reply stopped.
    pub stop_reason: StopReason,
    /// The reply's usage.
    pub usage: Usage,
    /// The reply's cost in US dollars; none when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Files that the step's tools say they wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// `message:user`: a user message entered the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessageEvent {
    /// The session entry.
    pub entry_id: String,
    /// The text.
    pub content: String,
    /// Where it came from.
    pub source: MessageSource,
}

/// Where a user message came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// The prompt.
    Prompt,
    /// Said to a running turn, taken after its tools.
    Steer,
    /// Said to a running turn, taken when it would end.
    FollowUp,
    /// Joined the prompt that came next.
    NextTurn,
    /// The engine: a nudge, a reminder, the closing request.
    Synthetic,
    /// The engine: a final answer that does not fit is asked for again.
    Repair,
}

/// `message:text:chunk` and `message:thinking:chunk`: the reply streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextChunk {
    /// The reply so far; left out of logs unless `--deltas full`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// What is new.
    pub delta: String,
}

/// `message:complete`: one reply is whole and in the session file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageComplete {
    /// `main`, or a sub-agent's task id.
    pub agent_id: String,
    /// The thinking as text.
    pub reasoning: String,
    /// The text.
    pub content: String,
    /// Whether tools follow.
    pub has_tool_calls: bool,
    /// The calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallSummary>,
    /// The session entry.
    pub message_id: String,
    /// Why the reply stopped.
    pub stop_reason: StopReason,
    /// Tokens.
    pub usage: Usage,
    /// US dollars; none when the price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// `provider/id`.
    pub model: String,
}

/// A tool call as `message:complete` lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallSummary {
    /// The call's id.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub args: Value,
}

/// `conversation:usage`, after each reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationUsage {
    /// The context window.
    pub usage: WindowUsage,
    /// Sums over the session.
    pub totals: TokenTotals,
    /// US dollars so far; none when a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// Sums of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenTotals {
    /// Uncached input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Cache reads.
    pub cache_read: u64,
    /// Cache writes.
    pub cache_write: u64,
    /// Thinking, inside `output`.
    pub reasoning: u64,
}

/// `reply:discarded`: an attempt gave no reply, but is paid for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplyDiscarded {
    /// `provider/id`.
    pub model: String,
    /// The error's kind.
    pub error_code: String,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// What the provider told before it broke off, the output at least as an
    /// estimate of what had come; zero when nothing was told.
    pub usage: Usage,
    /// US dollars; none when the price or the usage is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// `retry:start`: a model call failed and will be tried again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryStart {
    /// Pairs with `retry:end`; one id for all attempts of a call.
    pub retry_id: String,
    /// The attempt that comes next, from 2.
    pub attempt: u32,
    /// Attempts in all.
    pub max_attempts: u32,
    /// The wait before it.
    pub delay_ms: u64,
    /// Who chose the wait.
    pub source: RetrySource,
    /// The error's kind.
    pub error_code: String,
    /// The HTTP status, when there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// For people.
    pub error_message: String,
    /// The provider's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// Whether streamed text of the failed attempt must be forgotten.
    pub discarded_output: bool,
}

/// Who chose the wait before a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RetrySource {
    /// The provider's `retry-after`.
    RetryAfter,
    /// Our own exponential backoff.
    Backoff,
}

/// `retry:end`: the call succeeded after all, or was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryEnd {
    /// As in `retry:start`.
    pub retry_id: String,
    /// Whether a reply came.
    pub success: bool,
    /// Attempts made.
    pub attempts: u32,
    /// The last error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_error: Option<String>,
}
