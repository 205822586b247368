//! What another session of the same kind is made of: forks are built from it,
//! also while the engine is at work.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::mpsc;

use crate::clock::{self, Activity};
use crate::context::Resources;
use crate::event::{Emission, Place};
use crate::hook::Hooks;
use crate::store::Store;

use super::asked::Asked;
use super::budget::Accounts;
use super::compact::Compaction;
use super::engine::{Engine, Progress, Words, system_prompt};
use super::estimate::ContextMeter;
use super::feed::Feed;
use super::hooks::SessionHooks;
use super::limits::Limits;
use super::options::{Instructions, Sampling, SessionOptions};
use super::queue::QueueModes;
use super::record::Record;
use super::repeat::RepeatGuard;
use super::response::{Misfit, Response, ResponseSpec};
use super::stop::{Answer, Stop};
use super::windows::Windows;
use super::workbench::Workbench;
use super::working_copy::WorkingCopy;

/// The parts of a session's options that a fork shares.
#[derive(Debug)]
pub(super) struct Blueprint {
    fallback_models: Vec<String>,
    small_model: Option<String>,
    sampling: Sampling,
    limits: Limits,
    deadline: Instant,
    instructions: Instructions,
    response: Option<ResponseSpec>,
    hooks: Hooks,
    resources: Arc<Resources>,
    compaction: Compaction,
    queue: QueueModes,
    activity: Activity,
    events: mpsc::Sender<Emission>,
    job: String,
    working_copy: WorkingCopy,
}

impl Blueprint {
    pub(super) fn of(options: &SessionOptions) -> Self {
        Self {
            fallback_models: options.fallback_models.clone(),
            small_model: options.small_model.clone(),
            sampling: options.sampling.clone(),
            limits: options.limits.clone(),
            deadline: options.deadline,
            instructions: options.instructions.clone(),
            response: options.response.clone(),
            hooks: options.hooks.clone(),
            resources: Arc::clone(&options.resources),
            compaction: options.compaction,
            queue: options.queue,
            activity: options.activity.clone(),
            events: options.events.clone(),
            job: options.job.clone(),
            working_copy: options.working_copy.anew(),
        }
    }

    /// When the session's time is up.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// The answer that a hook gave in the model's place; it must be what the
    /// model's would have to be.
    pub(super) fn hook_answer(&self, text: String) -> Result<Answer, Stop> {
        let structured = match &self.response {
            None => None,
            Some(spec) => Some(spec.schema.read(&text).map_err(|violations| {
                let repairs = 0;
                Stop::InvalidResponse(Box::new(Misfit {
                    violations,
                    repairs,
                }))
            })?),
        };
        Ok(Answer::of_hook(text, structured))
    }

    /// The options of a session of the same kind over `store`, with books,
    /// tools and a memory of files of its own.
    pub(super) fn options(
        &self,
        store: Store,
        workbench: &Workbench,
        asked: &Asked,
    ) -> SessionOptions {
        let (models, model, thinking) = asked.handed_on();
        SessionOptions {
            models,
            model: Some(model),
            fallback_models: self.fallback_models.clone(),
            small_model: self.small_model.clone(),
            thinking: Some(thinking),
            sampling: self.sampling.clone(),
            workbench: workbench.forked(),
            working_copy: self.working_copy.anew(),
            store,
            limits: self.limits.clone(),
            deadline: self.deadline,
            instructions: self.instructions.clone(),
            response: self.response.clone(),
            hooks: self.hooks.clone(),
            resources: Arc::clone(&self.resources),
            compaction: self.compaction,
            queue: self.queue,
            activity: self.activity.clone(),
            events: self.events.clone(),
            job: self.job.clone(),
        }
    }
}

impl Engine {
    /// Puts an engine together.
    pub(super) fn assemble(options: SessionOptions, asked: Arc<Asked>) -> (Self, QueueModes) {
        let asking = asked.asking();
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
        let accounts = Accounts::new(options.limits, options.deadline, asking.client.model());
        let tools = options.workbench.toolbox().active();
        let words = Words {
            instructions: options.instructions,
            resources: options.resources,
            date: clock::date(),
        };
        let model = asking.client.model();
        let response = Response::new(options.response, model, tools.definitions());
        let system = response.complete(system_prompt(&options.workbench, &tools, &words));
        let record = Arc::new(Record::new(options.store));
        let activity = options.activity;
        let hooks = SessionHooks::new(options.hooks, &id, Arc::clone(&record), activity.clone());
        let engine = Self {
            id,
            hooks,
            system_override: None,
            context: ContextMeter::new(&system, tools.definitions()),
            system,
            tools,
            small: asked.small(),
            asked,
            asking,
            sampling: options.sampling,
            words,
            response,
            compaction: options.compaction,
            compactions: 0,
            windows: Windows::default(),
            workbench: options.workbench.into(),
            working_copy: options.working_copy,
            record,
            progress: Mutex::new(Progress::default()).into(),
            repeats: RepeatGuard::new(accounts.limits().max_repeats),
            accounts,
            deadline: options.deadline,
            activity,
            feed,
            turns: 0,
            last_text: String::new(),
        };
        (engine, options.queue)
    }
}
