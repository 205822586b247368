//! The engine: it drives a model and its tools through turns.
//!
//! [`Session`] is a facade. It owns the store, the workbench (tools, policy and
//! what they need), the budget and the feed of events; the work lives in the
//! files beside this one: `turn` loops, `sample` gets one reply, `dispatch`
//! runs the calls of a reply.

mod arguments;
mod budget;
mod call;
mod dispatch;
mod ending;
mod estimate;
mod feed;
mod interrupt;
mod limits;
mod repeat;
mod sample;
mod stop;
mod turn;
mod workbench;
mod working_copy;

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::Activity;
use crate::context::{SystemPrompt, ToolLine};
use crate::event::{
    Emission, EventKind, MessageSource, Place, SessionReady, UserMessageEvent, Warning, WindowUsage,
};
use crate::message::{Message, UserMessage};
use crate::model::{Client, RetryPolicy, ThinkingLevel, ToolDefinition};
use crate::store::{EntryKind, Store};

use budget::Accounts;
use feed::Feed;
use repeat::RepeatGuard;

pub use budget::Budget;
pub use interrupt::{Cause, Interrupt};
pub use limits::{DenialLimits, Limits, OnExhausted, OnUnknownPrice};
pub use stop::{Answer, Stop};
pub use workbench::Workbench;
pub use working_copy::WorkingCopy;

/// Everything a session is made of.
#[derive(Debug)]
pub struct SessionOptions {
    /// The model.
    pub client: Client,
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
    /// Touched when a model or a tool is heard; the same that `client` touches.
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
    /// How much to think; clamped to the model.
    pub thinking: ThinkingLevel,
    /// The most tokens of a reply.
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

/// A conversation with a model that may use tools.
#[derive(Debug)]
pub struct Session {
    id: String,
    client: Client,
    sampling: Sampling,
    system: String,
    tools: Arc<[ToolDefinition]>,
    workbench: Workbench,
    working_copy: WorkingCopy,
    store: Store,
    accounts: Accounts,
    repeats: RepeatGuard,
    deadline: Instant,
    activity: Activity,
    feed: Feed,
    turns: u32,
    last_text: String,
}

impl Session {
    /// Creates a session and announces it with `session:ready`.
    ///
    /// # Errors
    /// [`Stop::UnknownPrice`] when the limits need a price that nobody knows.
    pub async fn create(mut options: SessionOptions) -> Result<Self, Stop> {
        let model = options.client.model().clone();
        let id = options.store.tree().header().id.clone();
        let feed = Feed::new(
            options.events,
            Place {
                job: Some(options.job),
                session_id: Some(id.clone()),
                agent_id: Some("main".to_owned()),
                turn: None,
                step: None,
            },
        );
        let accounts = Accounts::new(options.limits, &model);
        options.sampling.thinking = model.clamp_thinking(options.sampling.thinking);
        let mut session = Self {
            id,
            system: system_prompt(&options.workbench, &options.instructions),
            tools: options.workbench.definitions(),
            client: options.client,
            sampling: options.sampling,
            workbench: options.workbench,
            working_copy: options.working_copy,
            store: options.store,
            repeats: RepeatGuard::new(accounts.limits().max_repeats),
            accounts,
            deadline: options.deadline,
            activity: options.activity,
            feed,
            turns: 0,
            last_text: String::new(),
        };
        session.record_start()?;
        session.announce().await;
        session.accounts.check_price(&model, &session.feed).await?;
        Ok(session)
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The model's last text, whole or not.
    pub fn last_text(&self) -> &str {
        &self.last_text
    }

    /// Each budget with what was used of it.
    pub fn budget(&self) -> Budget {
        self.accounts.budget()
    }

    /// How many calls policy refused.
    pub fn denials(&self) -> u32 {
        self.accounts.denials()
    }

    /// The conversation as it is kept.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Runs one prompt to its end: replies, tools, retries.
    ///
    /// The history stays valid on every path: each call has its result.
    ///
    /// # Errors
    /// Why the turn stopped without a final answer.
    pub async fn prompt(&mut self, text: &str, interrupt: &Interrupt) -> Result<Answer, Stop> {
        let limits = self.accounts.limits();
        let watchdog = interrupt::watch(
            interrupt.clone(),
            self.deadline,
            limits.idle_timeout,
            self.activity.clone(),
        );
        self.activity.touch();
        tokio::select! {
            biased;
            outcome = turn::run(self, text, interrupt) => outcome,
            never = watchdog => match never {},
        }
    }

    /// Ends the session: everything is on disk, and what the working copy
    /// became is told. `cancel` gives up on the diff.
    pub async fn close(mut self, cancel: &CancellationToken) -> Closed {
        let stored = self.store.close();
        let changes = self
            .working_copy
            .changes(self.workbench.files(), cancel)
            .await;
        let scripted = self.client.finish();
        Closed {
            stored,
            changes,
            scripted,
        }
    }

    /// Appends a user message and tells of it.
    async fn say(&mut self, text: &str, source: MessageSource, feed: &Feed) -> Result<(), Stop> {
        let message = UserMessage::text(text, crate::clock::unix_ms());
        let entry = self
            .store
            .append(EntryKind::Message(Arc::new(Message::User(message))))?;
        feed.send(EventKind::MessageUser(UserMessageEvent {
            entry_id: entry.to_string(),
            content: text.to_owned(),
            source,
        }))
        .await;
        Ok(())
    }

    /// Writes what a reader of the session file needs to know of its start.
    fn record_start(&mut self) -> Result<(), Stop> {
        let model = self.client.model();
        self.store.append(EntryKind::ModelChange {
            provider: model.provider.clone(),
            model_id: model.id.clone(),
        })?;
        self.store.append(EntryKind::ThinkingLevelChange {
            thinking_level: self.sampling.thinking.name().to_owned(),
        })?;
        Ok(())
    }

    async fn announce(&self) {
        let model = self.client.model();
        self.feed
            .send(EventKind::SessionReady(SessionReady {
                working_dir: self.workbench.place().workspace.display().to_string(),
                session_id: self.id.clone(),
                history_loaded: false,
                usage: WindowUsage {
                    use_tokens: 0,
                    max_tokens: model.context_window,
                    prompt_tokens: 0,
                },
                project_input_history: Vec::new(),
                model: model.full_id(),
                thinking_level: self.sampling.thinking.name().to_owned(),
                tools: self.workbench.tool_names(),
                permission_mode: self.workbench.policy().mode().to_string(),
            }))
            .await;
        if model.sends_key_in_clear() {
            self.feed
                .send(EventKind::Warning(Warning {
                    code: "key_in_clear".to_owned(),
                    message: format!(
                        "the key for {} travels unencrypted to {}",
                        model.provider, model.base_url
                    ),
                }))
                .await;
        }
    }
}

/// What the end of a session tells.
#[derive(Debug)]
pub struct Closed {
    /// Whether the session file is whole.
    pub stored: Result<(), crate::store::StoreError>,
    /// What changed in the working copy; none when nothing could have.
    pub changes: Option<Result<crate::workspace::Changes, crate::workspace::WorkspaceError>>,
    /// Whether a strict script was played to its end.
    pub scripted: Result<(), crate::model::ModelError>,
}

fn system_prompt(workbench: &Workbench, instructions: &Instructions) -> String {
    let specs = workbench.tools().specs();
    let tools: Vec<ToolLine<'_>> = specs
        .iter()
        .map(|spec| ToolLine {
            name: &spec.name,
            short_description: &spec.short_description,
            guidelines: &spec.guidelines,
        })
        .collect();
    let mode = workbench.policy().mode();
    SystemPrompt {
        tools: &tools,
        workspace: &workbench.place().workspace,
        date: &crate::clock::date(),
        mode: mode.name(),
        allowed: mode.allows(),
        instructions: instructions.task.as_deref(),
        append: instructions.append.as_deref(),
    }
    .render()
}
