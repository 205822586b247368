//! What a session is made of.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::clock::{self, Activity};
use crate::context::Resources;
use crate::event::Emission;
use crate::hook::Hooks;
use crate::model::{Client, RetryPolicy, ThinkingLevel};
use crate::policy::{Permissions, Policy, Surroundings};
use crate::process::CommandSandbox;
use crate::store::{Header, Store};
use crate::tool::{CommandSettings, Place, Toolset};

use super::compact::Compaction;
use super::limits::Limits;
use super::models::Models;
use super::queue::QueueModes;
use super::response::ResponseSpec;
use super::workbench::Workbench;
use super::working_copy::WorkingCopy;

/// The output cap of a reply when the model has no lower one.
const OUTPUT_TOKENS_DEFAULT: u64 = 32_000;

/// Everything a session is made of.
#[derive(Debug)]
pub struct SessionOptions {
    /// The models that it may ask.
    pub models: Models,
    /// The model to ask, `provider/id`; none leaves the choice to the session
    /// that goes on, the default, or the credentials that there are.
    pub model: Option<String>,
    /// The models that take over, in this order, while the one that is asked is
    /// overloaded or cannot be reached. A fallback without a key is left out.
    pub fallback_models: Vec<String>,
    /// The model that writes summaries; none is the one that is asked.
    pub small_model: Option<String>,
    /// How much it thinks; none as in the session that goes on, else the default.
    pub thinking: Option<ThinkingLevel>,
    /// How it is asked.
    pub sampling: Sampling,
    /// The tools, the policy over them, and what they need.
    pub workbench: Workbench,
    /// The watched working copy.
    pub working_copy: WorkingCopy,
    /// Where the conversation is kept.
    pub store: Store,
    /// What it may use.
    pub limits: Limits,
    /// When its time is up, on the monotonic clock.
    pub deadline: Instant,
    /// What the system prompt says beyond its own.
    pub instructions: Instructions,
    /// What final answers must be; none lets them be anything.
    pub response: Option<ResponseSpec>,
    /// Who is told and asked at the points of the session.
    pub hooks: Hooks,
    /// Project files and skills of the system prompt, and what a `/name` stands
    /// for. Its warnings are for whoever loaded it.
    pub resources: Arc<Resources>,
    /// When the conversation is compacted, and how.
    pub compaction: Compaction,
    /// How many waiting messages a poll takes.
    pub queue: QueueModes,
    /// Touched when a model or a tool is heard; the same that `models` touch.
    pub activity: Activity,
    /// Where events go; bounded, so that a slow reader slows the session.
    pub events: mpsc::Sender<Emission>,
    /// The job's name in events.
    pub job: String,
}

/// What a system prompt says beyond its own text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Instructions {
    /// The task's instructions.
    pub task: Option<String>,
    /// What the command line adds, at the end.
    pub append: Option<String>,
}

/// How a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampling {
    /// The most tokens of a reply, unless the model's own limit is lower.
    pub max_output_tokens: u64,
    /// The sampling temperature.
    pub temperature: Option<f64>,
    /// How failed calls are tried again.
    pub retry: RetryPolicy,
    /// Which pieces of a streaming reply become events.
    pub chunks: Chunks,
}

/// Which pieces of a streaming reply become events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Chunks {
    /// None; `message:complete` is whole.
    #[default]
    None,
    /// What is new.
    Delta,
    /// What is new, and the reply so far.
    Full,
}

impl SessionOptions {
    /// A session with one model in `workspace` without tools and without a file, under the
    /// default limits, of which nobody is told what changes. Every field may be
    /// replaced.
    pub fn new(
        client: Client,
        activity: Activity,
        workspace: impl Into<PathBuf>,
        events: mpsc::Sender<Emission>,
    ) -> Self {
        let model = Some(client.model().full_id());
        let models = Models::of(client, activity.clone());
        Self {
            model,
            ..Self::with_models(models, activity, workspace, events)
        }
    }

    /// The same with a choice of models, of which it asks the default.
    pub fn with_models(
        models: Models,
        activity: Activity,
        workspace: impl Into<PathBuf>,
        events: mpsc::Sender<Emission>,
    ) -> Self {
        let workspace = workspace.into();
        let limits = Limits::default();
        let surroundings = Surroundings {
            workspace: workspace.clone(),
            ..Surroundings::default()
        };
        let commands = CommandSettings {
            env: Vec::new(),
            shell_path: String::new(),
            timeout: limits.command_timeout,
            timeout_max: limits.command_timeout,
            sandbox: CommandSandbox::default(),
        };
        let header = Header::new(workspace.display().to_string());
        let place = Place {
            workspace,
            home: None,
        };
        Self {
            models,
            model: None,
            fallback_models: Vec::new(),
            small_model: None,
            thinking: None,
            sampling: Sampling::default(),
            workbench: Workbench::new(
                Toolset::default(),
                Arc::new(Policy::new(Permissions::default(), surroundings)),
                place,
                commands,
                None,
            ),
            working_copy: WorkingCopy::unwatched(),
            store: Store::in_memory(header),
            deadline: clock::monotonic() + limits.timeout,
            limits,
            instructions: Instructions::default(),
            response: None,
            hooks: Hooks::new(),
            resources: Arc::default(),
            compaction: Compaction::default(),
            queue: QueueModes::default(),
            activity,
            events,
            job: "session".to_owned(),
        }
    }
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            max_output_tokens: OUTPUT_TOKENS_DEFAULT,
            temperature: None,
            retry: RetryPolicy::default(),
            chunks: Chunks::None,
        }
    }
}
