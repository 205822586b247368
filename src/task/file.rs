//! The task file as it is written: the types that its schema is made from.
//!
//! The schema of these types is also what files are checked against
//! (`validate`), and what `serde` then decodes, so a key cannot be known to
//! one of the three only.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::RepoConfig;
use crate::model::ThinkingLevel;
use crate::policy::{Mode, OnAsk};
use crate::session::{OnExhausted, OnUnknownPrice};
use crate::task::duration::HumanDuration;
use crate::task::hooks::HooksSection;
use crate::task::plan::{Inherit, Isolation};
use crate::task::requires::RequiresSection;
use crate::task::sandbox::SandboxSection;

/// What an agent has to do in one directory, with which model, and what it
/// may use and touch. Every text outside `parameters` may use parameters as
/// `{{ name }}`. Relative paths in the file start at the file's own directory.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Task")]
pub struct TaskFile {
    /// The version of the format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// A short name of lower-case letters, digits, `-` and `_`. By default the
    /// file's name without its extension.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9_-]{0,63}$"))]
    pub name: Option<String>,
    /// What the task is for, for people.
    #[serde(default)]
    pub description: String,
    /// Labels for reports.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What may be given from outside.
    #[serde(default)]
    pub parameters: Vec<Parameter>,
    /// System-side instructions: who the agent is, rules that hold throughout.
    #[serde(default)]
    pub instructions: Option<String>,
    /// A file with the instructions.
    #[serde(default)]
    pub instructions_file: Option<String>,
    /// What to do. Either this or `prompt_file` is needed.
    #[serde(default)]
    pub prompt: Option<String>,
    /// A file with the prompt.
    #[serde(default)]
    pub prompt_file: Option<String>,
    /// The kinds of files through which the repository may speak to the agent.
    /// They are data to it; nothing of the repository ever configures what runs.
    #[serde(default)]
    pub load_repo_config: Vec<RepoConfig>,
    /// The model and how it is called.
    #[serde(default)]
    pub settings: SettingsSection,
    /// What the job may use. Every limit has a finite default.
    #[serde(default)]
    pub limits: LimitsSection,
    /// How failed model calls are tried again.
    #[serde(default)]
    pub retry: RetrySection,
    /// When a long conversation is summarised, and what of it stays.
    #[serde(default)]
    pub compaction: CompactionSection,
    /// What the agent may do.
    #[serde(default)]
    pub permissions: PermissionsSection,
    /// What the final answer must be, for a program that reads it.
    #[serde(default)]
    pub response: Option<ResponseSection>,
    /// What keeps commands in.
    #[serde(default)]
    pub sandbox: SandboxSection,
    /// What commands see of the environment.
    #[serde(default)]
    pub env: EnvSection,
    /// Values that no output may show.
    #[serde(default)]
    pub secrets: Vec<SecretEntry>,
    /// The agent's tools.
    #[serde(default)]
    pub tools: ToolsSection,
    /// Programs that are asked or told at points of the session.
    #[serde(default)]
    pub hooks: HooksSection,
    /// Where the job works.
    #[serde(default)]
    pub workspace: WorkspaceSection,
    /// What must be there before the job starts.
    #[serde(default)]
    pub requires: RequiresSection,
    /// Where runs leave their files.
    #[serde(default)]
    pub reports: ReportsSection,
    /// The conversation's file.
    #[serde(default)]
    pub session: SessionSection,
}

/// A value that may be given from outside. Later sources win: `default`, the
/// environment variable `env`, `--params-file`, `--param`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// The name, used as `{{ key }}`.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"))]
    pub key: String,
    /// What kind of value it is.
    #[serde(default, rename = "type")]
    pub kind: ParameterKind,
    /// The value when none is given; for files a path from the task file.
    #[serde(default)]
    #[schemars(extend("type" = ["string", "number", "boolean", "null"]))]
    pub default: Option<Value>,
    /// Whether a value must be given when there is no default.
    #[serde(default = "yes")]
    pub required: bool,
    /// A regular expression that the whole value must match.
    #[serde(default)]
    pub pattern: Option<String>,
    /// The environment variable that may give the value.
    #[serde(default)]
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub env: Option<String>,
    /// What it is for, for people.
    #[serde(default)]
    pub description: String,
    /// The values of a `choice`.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether the value is believed.
    #[serde(default)]
    pub trust: Trust,
    /// The largest value of a text or file, in bytes.
    #[serde(default = "value_bytes")]
    #[schemars(range(min = 1, max = 16_777_216))]
    pub max_bytes: u64,
}

/// What kind of value a parameter has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterKind {
    /// Any text.
    #[default]
    String,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Boolean,
    /// One of `options`.
    Choice,
    /// The content of the text file that the value names.
    File,
}

/// Whether a value is believed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// It comes from the one who starts the job.
    #[default]
    Trusted,
    /// It comes from elsewhere: fenced as data, and usable in the prompt only.
    Untrusted,
}

/// The model and how it is called.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsSection {
    /// `provider/id`, an id that only one provider has, or `scripted/FILE`.
    #[schemars(length(min = 1))]
    pub model: Option<String>,
    /// The models that take over, in this order, while `model` is overloaded or
    /// cannot be reached, each for the rest of the turn.
    #[schemars(length(max = 10), inner(length(min = 1)))]
    pub fallback_models: Vec<String>,
    /// The model that writes summaries; by default `model` does.
    #[schemars(length(min = 1))]
    pub small_model: Option<String>,
    /// How much the model thinks before it answers.
    pub thinking: ThinkingLevel,
    /// The most tokens of a reply; by default the model's own limit, at most 32,000.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature, for models that take one.
    #[schemars(range(min = 0, max = 2))]
    pub temperature: Option<f64>,
    /// Replaces the provider's base URL.
    #[schemars(regex(pattern = r"^https?://[^\s]+$"))]
    pub base_url: Option<String>,
    /// The longest time until a connection to the provider stands; by default `10s`.
    pub connect_timeout: Option<HumanDuration>,
    /// The longest time until the provider begins to answer; by default `2m`, or
    /// three quarters of `limits.idle_timeout` if that is less.
    pub response_timeout: Option<HumanDuration>,
    /// The longest silence within an answer; by default `5m`, or three quarters of
    /// `limits.idle_timeout` if that is less.
    pub stream_idle_timeout: Option<HumanDuration>,
}

/// What the job may use.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsSection {
    /// Replies of the model.
    #[schemars(range(min = 1, max = 100_000))]
    pub max_turns: u32,
    /// US dollars.
    #[schemars(range(min = 0.0001, max = 100_000))]
    pub max_cost_usd: f64,
    /// Tokens, input and output.
    #[schemars(range(min = 1, max = 1_000_000_000_000_u64))]
    pub max_tokens: u64,
    /// Tool calls. A reply that asks for over 1,000 more is broken off.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub max_tool_calls: u32,
    /// The same call with the same result in a row.
    #[schemars(range(min = 2, max = 1_000))]
    pub max_repeats: u32,
    /// Denied calls.
    pub max_denials: DenialsSection,
    /// Wall clock of the whole job.
    pub timeout: HumanDuration,
    /// The longest time without a byte from the model or a tool.
    pub idle_timeout: HumanDuration,
    /// The longest time for one command.
    pub command_timeout: HumanDuration,
    /// The longest wait that a provider may ask for.
    pub max_retry_wait: HumanDuration,
    /// Shares of a limit at which to warn.
    #[schemars(inner(range(min = 0.01, max = 1)), length(max = 10))]
    pub warn_at: Vec<f64>,
    /// What happens when a budget is almost spent.
    pub on_exhausted: OnExhausted,
    /// What happens when the model's price is unknown.
    pub on_unknown_price: OnUnknownPrice,
}

/// Breakers for a model that does not take no for an answer.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DenialsSection {
    /// Denied calls in a row.
    #[schemars(range(min = 1, max = 100_000))]
    pub consecutive: u32,
    /// Denied calls in all.
    #[schemars(range(min = 1, max = 100_000))]
    pub total: u32,
}

/// How failed model calls are tried again.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RetrySection {
    /// Attempts in all; 1 never tries again.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// The wait after the first failure; it doubles with each further one.
    pub base_delay: HumanDuration,
    /// The longest of these waits.
    pub max_delay: HumanDuration,
}

/// When a long conversation is summarised, and what of it stays.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionSection {
    /// Whether a conversation that nears the model's window is summarised.
    pub enabled: bool,
    /// The tokens of the window that a request leaves free; of a small window
    /// at most half.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub reserve_tokens: u64,
    /// The newest tokens that stay as they are; of a small window less.
    #[schemars(range(min = 1, max = 10_000_000))]
    pub keep_recent_tokens: u64,
    /// How often a conversation is summarised at most.
    #[schemars(range(min = 0, max = 1_000))]
    pub max_compactions: u32,
    /// The share of the context that must be saved; where a summary saves
    /// less, old output of tools and then old turns are left out.
    #[schemars(range(min = 0, max = 0.9))]
    pub min_reduction: f64,
}

/// What the agent may do.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PermissionsSection {
    /// What is allowed without a rule.
    pub mode: Mode,
    /// Calls that are allowed, such as `Bash(cargo test:*)`.
    pub allow: Vec<RuleEntry>,
    /// Calls that somebody would have to be asked about; see `on_ask`.
    pub ask: Vec<RuleEntry>,
    /// Calls that are denied, whatever else allows them.
    pub deny: Vec<RuleEntry>,
    /// What becomes of a call that somebody would have to be asked about.
    pub on_ask: OnAsk,
    /// Whether one denied call makes the run fail.
    pub fail_on_denied: bool,
    /// Directories besides the workspace that files may be read and edited in.
    pub additional_directories: Vec<String>,
}

/// A rule, alone or with examples that are checked when the task is read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RuleEntry {
    /// The rule.
    Text(String),
    /// The rule with examples.
    Checked(CheckedRule),
}

/// A rule with examples of what it must and must not match.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckedRule {
    /// The rule.
    pub rule: String,
    /// Calls that it must match.
    #[serde(default, rename = "match")]
    pub matching: Vec<String>,
    /// Calls that it must not match.
    #[serde(default)]
    pub not_match: Vec<String>,
}

/// What the final answer must be. It is one JSON document that fits the schema,
/// or the job fails.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ResponseSection {
    /// The JSON Schema. Either this or `schema_file` is needed.
    pub schema: Option<Map<String, Value>>,
    /// A file with the schema, in JSON or YAML.
    #[schemars(length(min = 1))]
    pub schema_file: Option<String>,
    /// How often an answer that does not fit is asked for again.
    #[schemars(range(min = 0, max = 10))]
    pub repairs: u32,
    /// The file that gets the answer when the job succeeds. An older one is
    /// removed at the start.
    #[schemars(length(min = 1))]
    pub file: Option<String>,
}

/// What commands see of the environment.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EnvSection {
    /// What they see without its being named.
    pub inherit: Inherit,
    /// Variables with a value of the task's own.
    pub set: BTreeMap<String, String>,
    /// Variables and secrets passed on by name.
    #[schemars(inner(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$")))]
    pub pass: Vec<String>,
}

/// A value that no output may show.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SecretEntry {
    /// Its name; commands get it under this name when `env.pass` lists it.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub name: String,
    /// The environment variable that holds the value.
    #[schemars(regex(pattern = r"^[A-Za-z_][A-Za-z0-9_]*$"))]
    pub from_env: String,
    /// Whether the run needs it.
    #[serde(default = "yes")]
    pub required: bool,
}

/// The agent's tools.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsSection {
    /// The tools that the model is told about.
    pub enabled: Vec<ToolName>,
}

/// Where the job works.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WorkspaceSection {
    /// An existing directory; by default the current one.
    #[schemars(length(min = 1))]
    pub path: Option<String>,
    /// Whether the job works in the directory itself or in a copy.
    pub isolation: Isolation,
    /// Whether uncommitted changes refuse the run.
    pub require_clean: bool,
}

/// Where runs leave their files.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReportsSection {
    /// The parent of run directories; by default `.agent/runs` in the current
    /// directory.
    #[schemars(length(min = 1))]
    pub dir: Option<String>,
}

/// The conversation's file.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SessionSection {
    /// Whether the conversation is written to disk.
    pub persist: bool,
    /// Goes on with this session: its id, the beginning of it, its file or run
    /// directory, or `newest` for the newest one of the workspace.
    #[schemars(length(min = 1))]
    pub resume: Option<String>,
    /// Leaves that session as it is and goes on in a file of its own.
    pub fork: bool,
}

/// The tools there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolName {
    Read,
    Grep,
    Find,
    Ls,
    Edit,
    Write,
    Bash,
}

fn yes() -> bool {
    true
}

fn value_bytes() -> u64 {
    256 * 1024
}
