//! The engine behind the facade: what runs a turn. One caller at a time has it;
//! it rests at the desk between turns.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::clock::Activity;
use crate::context::{Resources, SystemPrompt, ToolLine};
use crate::event::{
    EventKind, MessageSource, SessionReady, UserMessageEvent, Warning, WindowUsage,
};
use crate::message::{Content, Message, UserMessage};
use crate::model::{Client, Model};
use crate::sandbox;
use crate::store::{EntryId, EntryKind, StoreError};

use super::asked::{self, Asked, Asking};
use super::budget::{Accounts, Budget};
use super::compact::Compaction;
use super::desk::Desk;
use super::estimate::ContextMeter;
use super::feed::Feed;
use super::hooks::SessionHooks;
use super::interrupt::{self, Interrupt};
use super::options::{Instructions, Sampling};
use super::queue::Input;
use super::record::Record;
use super::repeat::RepeatGuard;
use super::response::Response;
use super::stop::{Answer, Stop};
use super::toolbox::ActiveTools;
use super::turn;
use super::windows::Windows;
use super::workbench::Workbench;
use super::working_copy::WorkingCopy;

/// The allow rules that the system prompt names.
const ALLOW_RULES_SHOWN: usize = 50;

/// What runs the turns of a session.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) id: String,
    pub(super) asked: Arc<Asked>,
    /// The model of the next request.
    pub(super) asking: Arc<Asking>,
    /// The model for summaries, until it fails.
    pub(super) small: Option<Client>,
    pub(super) sampling: Sampling,
    pub(super) words: Words,
    /// What final answers must be.
    pub(super) response: Response,
    pub(super) compaction: Compaction,
    pub(super) windows: Windows,
    /// How often the conversation was compacted unasked.
    pub(super) compactions: u32,
    pub(super) workbench: Arc<Workbench>,
    pub(super) record: Arc<Record>,
    pub(super) progress: Arc<Mutex<Progress>>,
    /// The tools of the next request, and the prompt that lists them.
    pub(super) tools: Arc<ActiveTools>,
    pub(super) system: String,
    /// What a hook put in its place, for the running turn.
    pub(super) system_override: Option<String>,
    pub(super) hooks: SessionHooks,
    pub(super) context: ContextMeter,
    pub(super) working_copy: WorkingCopy,
    pub(super) accounts: Accounts,
    pub(super) repeats: RepeatGuard,
    pub(super) deadline: Instant,
    pub(super) activity: Activity,
    pub(super) feed: Feed,
    pub(super) turns: u32,
    pub(super) last_text: String,
}

/// What the system prompt says beyond tools and permissions. It stays the same
/// as long as the session lives, so that requests go on beginning with the
/// same bytes.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) instructions: Instructions,
    pub(super) resources: Arc<Resources>,
    /// The day on which the session was created.
    pub(super) date: String,
}

/// What a turn is run for.
pub(super) struct Prompt<'p> {
    pub(super) input: &'p Input,
    pub(super) source: MessageSource,
    pub(super) interrupt: &'p Interrupt,
    pub(super) desk: &'p Desk,
}

/// How far the session is, for those who ask while a turn runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub(super) budget: Budget,
    pub(super) denials: u32,
    pub(super) repairs: Option<u32>,
    pub(super) last_text: String,
}

impl Engine {
    /// Ends the work that it is raced against when its time is over, or when
    /// nothing has moved for too long from now on.
    pub(super) fn watchdog(
        &self,
        interrupt: &Interrupt,
    ) -> impl Future<Output = Infallible> + use<> {
        self.activity.touch();
        interrupt::watch(
            interrupt.clone(),
            self.deadline,
            self.accounts.limits().idle_timeout,
            self.activity.clone(),
        )
    }

    /// Runs one prompt to its end: replies, tools, retries.
    ///
    /// The history stays valid on every path: each call has its result, so a
    /// later prompt goes on from there.
    pub(super) async fn run(&mut self, prompt: &Prompt<'_>) -> Result<Answer, Stop> {
        let watchdog = self.watchdog(prompt.interrupt);
        let outcome = tokio::select! {
            biased;
            outcome = turn::run(self, prompt) => outcome,
            never = watchdog => match never {},
        };
        // What was changed during the last reply is written down, too, and what
        // the user ran meanwhile.
        let changed = self.recall_model();
        let outcome = match changed.and_then(|()| self.record.keep_deferred()) {
            Ok(()) => outcome,
            Err(error) => outcome.and(Err(error.into())),
        };
        self.publish();
        outcome
    }

    /// Lets everybody know how far the session is.
    pub(super) fn publish(&self) {
        let progress = Progress {
            budget: self.accounts.budget(),
            denials: self.accounts.denials(),
            repairs: self.response.repairs(),
            last_text: self.last_text.clone(),
        };
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    /// Takes up the tools as they are now.
    pub(super) fn take_up_tools(&mut self) {
        let tools = self.workbench.toolbox().active();
        if !Arc::ptr_eq(&tools, &self.tools) {
            self.tools = tools;
            self.take_up_response();
            self.write_system();
        }
    }

    /// Takes up what is asked of final answers, as model and tools are now.
    pub(super) fn take_up_response(&mut self) {
        let model = self.asking.client.model();
        if self.response.take_up(model, self.tools.definitions()) {
            self.write_system();
        }
    }

    /// Gives up asking the provider for the form of answers, if it refuses to be
    /// asked: from now on they are asked for in words.
    pub(super) fn give_up_format(&mut self, stop: &Stop) -> Option<Warning> {
        let warning = self.response.give_up(stop, self.asking.client.model())?;
        self.take_up_response();
        Some(warning)
    }

    fn write_system(&mut self) {
        let system = system_prompt(&self.workbench, &self.tools, &self.words);
        self.system = self.response.complete(system);
        let replaced = self.system_override.take();
        self.system_override = replaced.map(|system| self.response.complete(system));
        self.measure_anew();
    }

    /// Takes up the model and the thinking level as they are now, and writes
    /// down what changed.
    pub(super) fn take_up_model(&mut self) -> Result<(), StoreError> {
        let asking = self.asked.asking();
        if Arc::ptr_eq(&asking, &self.asking) {
            return Ok(());
        }
        self.accounts.take_up(asking.client.model());
        self.asking = asking;
        self.take_up_response();
        self.record_model()
    }

    /// Ends the time of a fallback.
    pub(super) fn recall_model(&mut self) -> Result<(), StoreError> {
        self.asked.end_turn();
        self.take_up_model()
    }

    /// The model of the next request.
    pub(super) fn model(&self) -> &Model {
        self.asking.client.model()
    }

    /// The tokens of its window.
    pub(super) fn window(&self) -> u64 {
        self.windows.of(self.model())
    }

    /// The system prompt of the next request.
    pub(super) fn system(&self) -> &str {
        self.system_override.as_deref().unwrap_or(&self.system)
    }

    /// Sends this system prompt from now on; none is the session's own.
    pub(super) fn override_system(&mut self, system: Option<String>) {
        let system = system.map(|system| self.response.complete(system));
        if system != self.system_override {
            self.system_override = system;
            self.measure_anew();
        }
    }

    fn measure_anew(&mut self) {
        self.context = ContextMeter::new(self.system(), self.tools.definitions());
    }

    /// Puts a message of the user's side into the history.
    pub(super) fn append_user(
        &self,
        content: Vec<Content>,
        source: MessageSource,
    ) -> Result<EntryId, StoreError> {
        let message = UserMessage {
            content,
            timestamp: crate::clock::unix_ms(),
        };
        let entry = self.record.append_message(Message::User(message))?;
        self.record.came_from(&entry, source);
        Ok(entry)
    }

    /// Writes which model answers and how much it thinks, where the session
    /// does not say so yet.
    pub(super) fn record_model(&self) -> Result<(), StoreError> {
        let model = self.model();
        let thinking = self.asking.thinking.name();
        let (same_model, same_thinking) = self.record.read(|store| {
            let tree = store.tree();
            (
                tree.model() == Some((model.provider.as_str(), model.id.as_str())),
                tree.thinking_level() == Some(thinking),
            )
        });
        if !same_model {
            self.record.append(EntryKind::ModelChange {
                provider: model.provider.clone(),
                model_id: model.id.clone(),
            })?;
        }
        if !same_thinking {
            self.record.append(EntryKind::ThinkingLevelChange {
                thinking_level: thinking.to_owned(),
            })?;
        }
        Ok(())
    }

    /// Says that the session takes input.
    pub(super) async fn announce(&mut self) {
        let usage = self.usage_at_start();
        let model = self.model();
        let resources = &self.words.resources;
        self.feed
            .send(EventKind::SessionReady(SessionReady {
                working_dir: self.workbench.place().workspace.display().to_string(),
                session_id: self.id.clone(),
                history_loaded: usage.use_tokens > 0,
                usage,
                project_input_history: Vec::new(),
                model: model.full_id(),
                thinking_level: self.asking.thinking.name().to_owned(),
                tools: self.tools.names(),
                permission_mode: self.workbench.policy().mode().to_string(),
                sandbox: self.workbench.sandbox().cloned(),
                project_files: names(&resources.project, |file| &file.path),
                skills: names(&resources.skills, |skill| &skill.name),
                templates: names(&resources.templates, |template| &template.name),
            }))
            .await;
        self.feed.warn_of(asked::key_in_clear(model)).await;
    }

    /// How full the window is before anything is said: empty, or with the history
    /// that is gone on with.
    fn usage_at_start(&mut self) -> WindowUsage {
        let max_tokens = self.window();
        let prompt_tokens = self.record.read(|store| {
            let mut messages = store.tree().messages().iter().rev();
            let newest = messages.find_map(|message| match message.as_ref() {
                Message::Assistant(reply) => Some(reply.usage.prompt_tokens()),
                Message::User(_) | Message::ToolResult(_) => None,
            });
            (!store.tree().messages().is_empty()).then(|| newest.unwrap_or(0))
        });
        WindowUsage {
            use_tokens: prompt_tokens.map_or(0, |_| self.context_tokens()),
            max_tokens,
            prompt_tokens: prompt_tokens.unwrap_or(0),
        }
    }
}

fn names<T>(all: &[T], name: impl Fn(&T) -> &String) -> Vec<String> {
    all.iter().map(|one| name(one).clone()).collect()
}

/// Tells of a user message.
pub(super) async fn tell_user(entry: &EntryId, text: &str, source: MessageSource, feed: &Feed) {
    feed.send(EventKind::MessageUser(UserMessageEvent {
        entry_id: entry.to_string(),
        content: text.to_owned(),
        source,
    }))
    .await;
}

/// The system prompt of a session with these tools.
pub(super) fn system_prompt(workbench: &Workbench, tools: &ActiveTools, words: &Words) -> String {
    let specs = tools.toolset().specs();
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
        date: &words.date,
        mode: mode.name(),
        allowed: &allowed(workbench),
        instructions: words.instructions.task.as_deref(),
        append: words.instructions.append.as_deref(),
        project: &words.resources.project,
        skills: &words.resources.skills,
    }
    .render()
}

/// What the mode allows, and each rule that allows more; and what commands find
/// otherwise than usual.
fn allowed(workbench: &Workbench) -> String {
    let policy = workbench.policy();
    let rules = &policy.permissions().allow;
    let mut allowed = policy.mode().allows(policy.sandbox()).to_owned();
    for rule in rules.iter().take(ALLOW_RULES_SHOWN) {
        allowed.push_str(", ");
        allowed.push_str(rule.text());
    }
    if rules.len() > ALLOW_RULES_SHOWN {
        let more = rules.len() - ALLOW_RULES_SHOWN;
        allowed.push_str(&format!(" and {more} more rules"));
    }
    let report = workbench.sandbox();
    if let Some(about) = report.and_then(|report| sandbox::about(&report.tier, &report.network)) {
        allowed.push_str(". ");
        allowed.push_str(&about);
    }
    allowed
}
