//! What was asked, resolved: nothing here is optional that need not be.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::WorkingCopies;
use crate::context::RepoConfig;
use crate::event::Warning;
use crate::hook::HookCommand;
use crate::model::{Catalog, RetryPolicy, ThinkingLevel};
use crate::policy::Permissions;
use crate::sandbox::SandboxOptions;
use crate::session::{Compaction, Limits, ResponseSpec};
use crate::task::requires::Requirement;

/// One job: a task file with its parameters, or an implicit task of the command line.
#[derive(Debug, Clone)]
pub struct Job {
    /// A slug.
    pub name: String,
    /// One line for people.
    pub description: String,
    /// For reports.
    pub labels: BTreeMap<String, String>,
    /// The parameters as resolved.
    pub params: BTreeMap<String, Value>,
    /// The task.
    pub prompt: String,
    /// Where in the prompt untrusted parameters stand, each in its fence: byte
    /// ranges in order. In them nothing is ever expanded.
    pub untrusted: Vec<Range<usize>>,
    /// System-side instructions.
    pub instructions: Option<String>,
    /// What the command line adds to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Which files of the repository may speak to the model.
    pub load_repo_config: Vec<RepoConfig>,
    /// The model and how it is called.
    pub settings: Settings,
    /// What the job may use.
    pub limits: Limits,
    /// How failed model calls are tried again.
    pub retry: RetryPolicy,
    /// When the conversation is compacted.
    pub compaction: Compaction,
    /// What the model may do.
    pub permissions: Permissions,
    /// What the final answer must be; none lets it be anything.
    pub response: Option<ResponseJob>,
    /// What keeps commands in.
    pub sandbox: SandboxOptions,
    /// What commands see of the environment.
    pub env: CommandEnv,
    /// Values that no output may show. A command gets one as a variable when
    /// [`CommandEnv::pass`] has its name; it then goes before a variable of
    /// the environment of that name.
    pub secrets: Vec<Secret>,
    /// The names of the enabled tools.
    pub tools: Vec<String>,
    /// The programs that are called at points of the session, in order.
    pub hooks: Vec<HookCommand>,
    /// Where the job works.
    pub workspace: WorkspaceSpec,
    /// What must be there before it starts.
    pub requires: Vec<Requirement>,
    /// The parent of run directories, absolute; it need not exist.
    pub reports_dir: PathBuf,
    /// Whether the session is written to disk.
    pub persist_session: bool,
    /// The session that it goes on with.
    pub resume: Option<Resume>,
    /// The task file, absolute; none for an implicit task.
    pub file: Option<PathBuf>,
    /// The task as resolved, for `run.json` and the configuration hash: keys
    /// in camel case, no value of a secret.
    pub resolved: Value,
    /// What is worth a look but no error.
    pub warnings: Vec<Warning>,
}

impl Job {
    /// Whether a command could start: a hook, or a call that could be allowed.
    pub fn may_start_commands(&self) -> bool {
        let bash = self.tools.iter().any(|tool| tool == "bash");
        !self.hooks.is_empty() || (bash && self.permissions.may_start_commands())
    }

    /// The model as reports name it: `provider/id`, or the name as given when
    /// there is no such model; empty when none is named.
    pub fn model_name(&self, catalog: &Catalog) -> String {
        let Some(name) = &self.settings.model else {
            return String::new();
        };
        catalog
            .resolve(name, self.settings.base_url.as_deref())
            .map_or_else(|_| name.clone(), |model| model.full_id())
    }

    /// The directories around a job whose links may be anybody's: its workspace,
    /// and the repositories of that, of the task, and of `cwd`.
    pub fn working_copies(&self, cwd: &Path) -> WorkingCopies {
        let copies = WorkingCopies::around([self.workspace.path.as_path()]);
        let task_dir = self.file.as_deref().and_then(Path::parent);
        copies
            .with_repository_of(cwd)
            .with_repository_of(task_dir.unwrap_or(cwd))
    }

    /// Names the model of a job that names none, in its resolved form too.
    pub fn name_model(&mut self, name: String) {
        if let Some(field) = self.resolved.pointer_mut("/settings/model") {
            *field = json!(name);
        }
        self.settings.model = Some(name);
    }
}

/// What a job's final answer must be, and where it goes.
#[derive(Debug, Clone)]
pub struct ResponseJob {
    /// The schema, and how often an answer is asked for again.
    pub spec: ResponseSpec,
    /// The file that gets the answer, absolute.
    pub file: Option<PathBuf>,
    /// The file that the schema was read from, absolute.
    pub schema_file: Option<PathBuf>,
}

/// A session that a job goes on with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resume {
    /// As it was asked for: the beginning of an id, a path, or [`NEWEST`].
    pub session: String,
    /// Whether that session stays as it is, and the job has a new one.
    pub fork: bool,
    /// Its file, once it was found.
    pub file: Option<PathBuf>,
    /// Whether this user's runner is known to have written it.
    pub believed: bool,
    /// The provider and the model that answered last in it.
    pub model: Option<(String, String)>,
}

/// Asks for the newest session of the workspace.
pub const NEWEST: &str = "newest";

/// Where runs leave their files, below the current directory, unless the task
/// names another place.
pub const RUNS: &str = ".agent/runs";

/// The model and how it is called.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `provider/id`, a bare id, `openai-chat/any-id`, or `scripted/<absolute
    /// path>`; none leaves the choice to the credentials that there are.
    pub model: Option<String>,
    /// What takes over, in this order, while that is overloaded.
    pub fallback_models: Vec<String>,
    /// What writes summaries; none is `model`.
    pub small_model: Option<String>,
    /// Replaces the provider's base URL.
    pub base_url: Option<String>,
    /// How much to think.
    pub thinking: ThinkingLevel,
    /// The most tokens of a reply; none is the model's own limit, at most 32,000.
    pub max_output_tokens: Option<u64>,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// How long a call may stay silent.
    pub patience: Patience,
}

/// How long a call of the model may stay silent before it is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Until the connection stands.
    pub connect: Duration,
    /// Until the provider begins to answer.
    pub response: Duration,
    /// Between two pieces of the answer.
    pub stream: Duration,
}

/// What commands see of the environment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CommandEnv {
    /// What they get without being named.
    pub inherit: Inherit,
    /// Variables with a value of the task's own.
    pub set: BTreeMap<String, String>,
    /// Variables passed on by name.
    pub pass: Vec<String>,
}

/// What commands inherit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Inherit {
    /// `PATH`, `HOME`, locale, terminal, `TMPDIR`, `USER`, `SHELL`, `TZ`, `CI`, and the
    /// directories of toolchains such as `CARGO_HOME`.
    #[default]
    Minimal,
    /// Only what `set` and `pass` name, and `PATH`.
    None,
}

/// A declared secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its name, for diagnostics.
    pub name: String,
    /// Its value; never printed.
    pub value: String,
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Secret({}, ***)", self.name)
    }
}

/// Where a job works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSpec {
    /// An existing directory, absolute and real.
    pub path: PathBuf,
    /// What of it the job sees.
    pub isolation: Isolation,
    /// Whether uncommitted changes refuse the run.
    pub require_clean: bool,
}

/// How a job's workspace relates to the directory it names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// The job works in the directory itself.
    #[default]
    None,
    /// The job works in a temporary copy; the patch is what remains.
    Copy,
}
