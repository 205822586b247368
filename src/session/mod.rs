//! The engine: it drives a model and its tools through turns.
//!
//! [`Session`] is a facade. It owns the store, the workbench (tools, policy and
//! what they need), the budget and the feed of events; the work lives in the
//! files beside this one: `turn` loops, `sample` gets one reply, `judge` says
//! whether it is the answer, `dispatch` runs the calls of a reply.
//!
//! A conversation with a scripted model, without tools and files:
//!
//! ```
//! use agent::clock::Activity;
//! use agent::event::EventKind;
//! use agent::model::{Client, ClientOptions, Script, resolve};
//! use agent::session::{Interrupt, Session, SessionOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let activity = Activity::new();
//! let script = Script::parse("- text: Hello, world.", "hello.yaml")?;
//! let model = resolve("scripted/hello", None)?;
//! let client = Client::scripted(model, script, ClientOptions::new(activity.clone()));
//!
//! // A reader that falls behind slows the session; nothing is dropped.
//! let (sender, mut events) = tokio::sync::mpsc::channel(64);
//! let mut session = Session::create(SessionOptions::new(client, activity, "/work", sender)).await?;
//! let conversation = async {
//!     let answer = session.prompt("Say hello.", &Interrupt::default()).await;
//!     drop(session); // The events end with it.
//!     answer
//! };
//! let listening = async {
//!     let mut replies = Vec::new();
//!     while let Some(emission) = events.recv().await {
//!         if let EventKind::MessageComplete(reply) = emission.kind {
//!             replies.push(reply.content);
//!         }
//!     }
//!     replies
//! };
//! let (answer, replies) = tokio::join!(conversation, listening);
//! println!("{}", answer?.text);
//! # assert_eq!(replies, ["Hello, world."]);
//! # Ok(())
//! # }
//! ```

mod arguments;
mod budget;
mod call;
mod dispatch;
mod ending;
mod estimate;
mod feed;
mod gate;
mod interrupt;
mod judge;
mod limits;
mod mend;
mod options;
mod repeat;
mod sample;
mod stop;
mod turn;
mod workbench;
mod working_copy;

use std::sync::Arc;
use std::time::Instant;

use tokio_util::sync::CancellationToken;

use crate::clock::Activity;
use crate::context::{SystemPrompt, ToolLine};
use crate::event::{
    EventKind, MessageSource, Place, SessionReady, UserMessageEvent, Warning, WindowUsage,
};
use crate::message::{Message, UserMessage};
use crate::model::{Client, ToolDefinition};
use crate::policy::Policy;
use crate::store::{EntryId, EntryKind, Store};

use budget::Accounts;
use estimate::ContextMeter;
use feed::Feed;
use repeat::RepeatGuard;

pub use budget::Budget;
pub use interrupt::{Cause, Interrupt};
pub use limits::{DenialLimits, Limits, OnExhausted, OnUnknownPrice};
pub use options::{Chunks, Instructions, Sampling, SessionOptions};
pub use stop::{Answer, Stop};
pub use workbench::Workbench;
pub use working_copy::WorkingCopy;

/// The allow rules that the system prompt names.
const ALLOW_RULES_SHOWN: usize = 50;

/// A conversation with a model that may use tools.
#[derive(Debug)]
pub struct Session {
    id: String,
    client: Client,
    sampling: Sampling,
    system: String,
    tools: Arc<[ToolDefinition]>,
    context: ContextMeter,
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
        let accounts = Accounts::new(options.limits, options.deadline, &model);
        options.sampling.thinking = model.clamp_thinking(options.sampling.thinking);
        let system = system_prompt(&options.workbench, &options.instructions);
        let tools = options.workbench.definitions();
        let mut session = Self {
            id,
            context: ContextMeter::new(&system, &tools),
            system,
            tools,
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
    /// The history stays valid on every path: each call has its result, so a
    /// later prompt goes on from there. `interrupt` is this prompt's own; a
    /// triggered one stays triggered. A prompt that is dropped while it runs
    /// leaves its events unfinished; the next one mends the history.
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

    /// Puts the input behind a valid history.
    fn accept(&mut self, text: &str) -> Result<EntryId, Stop> {
        mend::answer_open_calls(&mut self.store)?;
        let entry = self.append_user(text)?;
        // The first flush runs while the model is asked.
        self.store.step_ended()?;
        Ok(entry)
    }

    fn append_user(&mut self, text: &str) -> Result<EntryId, Stop> {
        let message = UserMessage::text(text, crate::clock::unix_ms());
        let entry = EntryKind::Message(Arc::new(Message::User(message)));
        Ok(self.store.append(entry)?)
    }

    async fn tell_user(entry: &EntryId, text: &str, source: MessageSource, feed: &Feed) {
        feed.send(EventKind::MessageUser(UserMessageEvent {
            entry_id: entry.to_string(),
            content: text.to_owned(),
            source,
        }))
        .await;
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
        allowed: &allowed(workbench.policy()),
        instructions: instructions.task.as_deref(),
        append: instructions.append.as_deref(),
    }
    .render()
}

/// What the mode allows, and each rule that allows more.
fn allowed(policy: &Policy) -> String {
    let rules = &policy.permissions().allow;
    let mut allowed = policy.mode().allows().to_owned();
    for rule in rules.iter().take(ALLOW_RULES_SHOWN) {
        allowed.push_str(", ");
        allowed.push_str(rule.text());
    }
    if rules.len() > ALLOW_RULES_SHOWN {
        let more = rules.len() - ALLOW_RULES_SHOWN;
        allowed.push_str(&format!(" and {more} more rules"));
    }
    allowed
}
