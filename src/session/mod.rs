//! The engine: it drives a model and its tools through turns.
//!
//! [`Session`] is a facade over a few parts: the record (the conversation and
//! its file), the workbench (tools, policy and what they need), the desk (where
//! messages wait for the engine). The work lives in the files beside this one:
//! `turn` loops, `reply` gets and keeps one reply, which `sample` asks for,
//! `judge` says whether it is the answer, `dispatch` runs its calls.
//!
//! A conversation with a scripted model, without tools and files:
//!
//! ```
//! use agent::clock::Activity;
//! use agent::event::EventKind;
//! use agent::model::{Client, ClientOptions, Script, resolve};
//! use agent::session::{PromptOptions, Session, SessionOptions};
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
//! let options = SessionOptions::new(client, activity, "/srv/project", sender);
//! let session = Session::create(options).await?.session;
//! let answer = session.prompt("Say hello.", PromptOptions::default()).await?;
//! println!("{} ({} messages)", answer.text, session.stats().total_messages());
//!
//! drop(session); // The events end with it.
//! let mut replies = Vec::new();
//! while let Some(emission) = events.recv().await {
//!     if let EventKind::MessageComplete(reply) = emission.kind {
//!         replies.push(reply.content);
//!     }
//! }
//! # assert_eq!(replies, ["Hello, world."]);
//! # Ok(())
//! # }
//! ```

mod arguments;
mod asked;
mod blueprint;
mod budget;
mod call;
mod compact;
mod desk;
mod dispatch;
mod ending;
mod engine;
mod estimate;
mod expand;
mod fallback;
mod feed;
mod gate;
mod hooks;
mod intake;
mod interrupt;
mod judge;
mod lease;
mod limits;
mod mend;
mod models;
mod options;
mod page;
mod prepare;
mod queue;
mod record;
mod refusal;
mod repeat;
mod reply;
mod response;
mod sample;
mod shell;
mod stats;
mod stop;
mod tape;
mod toolbox;
mod transcript;
mod tree;
mod turn;
mod windows;
mod workbench;
mod working_copy;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::event::{EventKind, PendingCounts};
use crate::message::{Image, Message};
use crate::store::Store;

use asked::{Asked, Choice};
use blueprint::Blueprint;
use desk::{Admission, Desk, Next};
use engine::{Engine, Progress};
use feed::Feed;
use hooks::SessionHooks;
use intake::Intake;
use queue::{Input, Item, Settlement};
use record::Record;

pub use budget::{Budget, check_price};
pub use compact::{Compacted, Compaction, CompactionPlan, SummaryRequest, TouchedFiles};
pub use estimate::{ContextTokens, ContextUsage, EstimatedTokens};
pub use expand::Expand;
pub use interrupt::{Cause, Interrupt};
pub use limits::{DenialLimits, Limits, OnExhausted, OnUnknownPrice};
pub use models::{ChoiceError, Chosen, Credential, Credentials, Models, Pick};
pub use options::{Chunks, Instructions, Sampling, SessionOptions};
pub use queue::{
    ClearPending, PendingMessage, PendingQuery, PendingStatus, QueueMode, QueueModes, QueueSource,
    StreamingBehavior,
};
pub use refusal::SessionError;
pub use response::{Misfit, ResponseSchema, ResponseSpec, SchemaError, Violation};
pub use shell::BashOptions;
pub use stats::Stats;
pub use stop::{Answer, Stop};
pub use tape::ToolTape;
pub use toolbox::{ToolDescriptor, ToolSource, Tools};
pub use transcript::{Transcript, TranscriptKind, TranscriptSource};
pub use tree::{ForkPoint, Forkable, LeftBranch, Navigated, Tree};
pub use workbench::Workbench;
pub use working_copy::WorkingCopy;

/// A conversation with a model that may use tools.
///
/// All methods take `&self`: while a prompt runs, others may steer it, look at
/// it, cancel it. Dropping the session ends whatever runs.
#[derive(Debug)]
pub struct Session {
    id: String,
    record: Arc<Record>,
    workbench: Arc<Workbench>,
    desk: Arc<Desk>,
    asked: Arc<Asked>,
    progress: Arc<Mutex<Progress>>,
    blueprint: Blueprint,
    hooks: SessionHooks,
    feed: Feed,
    /// The drivers; at most one of them still works.
    drivers: Mutex<JoinSet<()>>,
}

/// A session that was created.
#[derive(Debug)]
pub struct Created {
    /// The session.
    pub session: Session,
    /// Why another model answers than was expected, when it does.
    pub model_fallback_message: Option<String>,
}

/// How a prompt is taken.
#[derive(Debug, Clone, Default)]
pub struct PromptOptions {
    /// Images that follow the text.
    pub images: Vec<Image>,
    /// How it waits while another prompt runs; without one it is refused then.
    pub streaming_behavior: Option<StreamingBehavior>,
    /// What of its text may stand for more than itself.
    pub expand: Expand,
    /// Ends the prompt's turn; a triggered one stays triggered.
    pub interrupt: Interrupt,
}

impl Session {
    /// Creates a session and announces it with `session:ready`.
    ///
    /// # Errors
    /// [`Stop::NoModel`] when there is no model to ask, and [`Stop::Model`] when
    /// it has no usable key; [`Stop::UnknownPrice`] when the limits need a price that nobody knows;
    /// [`Stop::Store`] when the session file cannot be written.
    pub async fn create(options: SessionOptions) -> Result<Created, Stop> {
        let Choice {
            asked,
            fallback,
            warnings,
        } = Asked::choose(&options)?;
        let asked = Arc::new(asked);
        let blueprint = Blueprint::of(&options);
        let (engine, queue) = Engine::assemble(options, Arc::clone(&asked));
        let mut engine = Box::new(engine);
        engine.record_model()?;
        engine.announce().await;
        if let Some(message) = fallback.clone() {
            engine.feed.warn("model_fallback", message).await;
        }
        let model = engine.model();
        let unpriced = budget::check_price(engine.accounts.limits(), model)?;
        engine.feed.warn_of(unpriced).await;
        engine.feed.warn_of(warnings).await;
        engine.publish();
        Ok(Created {
            session: Self {
                id: engine.id.clone(),
                record: Arc::clone(&engine.record),
                workbench: Arc::clone(&engine.workbench),
                progress: Arc::clone(&engine.progress),
                hooks: engine.hooks.clone(),
                feed: engine.feed.clone(),
                asked,
                desk: Arc::new(Desk::new(engine, queue)),
                blueprint,
                drivers: Mutex::default(),
            },
            model_fallback_message: fallback,
        })
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session file.
    pub fn file(&self) -> Option<PathBuf> {
        self.record.read(|store| store.path().map(PathBuf::from))
    }

    /// The model's last text, whole or not.
    pub fn last_text(&self) -> String {
        self.progress().last_text.clone()
    }

    /// Each budget with what was used of it, as of the newest step.
    pub fn budget(&self) -> Budget {
        self.progress().budget.clone()
    }

    /// How many calls policy refused, as of the newest step.
    pub fn denials(&self) -> u32 {
        self.progress().denials
    }

    /// How often final answers were asked for again because they did not fit, as
    /// of the newest step; none when they may be anything.
    pub fn repairs(&self) -> Option<u32> {
        self.progress().repairs
    }

    /// The messages that the next request would hold.
    pub fn messages(&self) -> Vec<Arc<Message>> {
        self.record.read(|store| store.tree().messages().to_vec())
    }

    /// The tree of its entries.
    pub fn tree(&self) -> Tree<'_> {
        Tree { session: self }
    }

    /// The tools.
    pub fn tools(&self) -> Tools<'_> {
        self.workbench.toolbox().handle()
    }

    /// What was said and done along the path to the leaf, piece by piece.
    pub fn transcript(&self) -> Vec<Transcript> {
        let entries = self.tree().entries();
        transcript::of(&entries, &self.record.sources())
    }

    /// Counts and sums over the whole session.
    pub fn stats(&self) -> Stats {
        let pending = self.desk.counts();
        self.record.read(|store| Stats::of(store.tree(), pending))
    }

    /// How full the model's window is.
    pub fn context_usage(&self) -> ContextUsage {
        let window = self.asked.asking().client.model().context_window;
        self.record
            .read(|store| ContextUsage::of(store.tree(), window))
    }

    /// Whether a turn runs.
    pub fn is_running(&self) -> bool {
        self.desk.is_running()
    }

    /// Says something and waits for the answer: replies, tools and retries
    /// included. Dropping the future cancels its turn.
    ///
    /// Unless [`PromptOptions::expand`] forbids it, a text that begins with
    /// `/skill:name` or `/template` stands for that, and the files that it
    /// mentions as `@path` are attached, as far as policy lets the `read` tool
    /// read them.
    ///
    /// While another prompt runs, [`PromptOptions::streaming_behavior`] says how
    /// this one waits: [`StreamingBehavior::FollowUp`] gets a turn of its own,
    /// [`StreamingBehavior::Steer`] joins the running one and shares its answer.
    ///
    /// # Errors
    /// [`SessionError::PromptAlreadyRunning`] without a behavior while another
    /// prompt runs; [`SessionError::Stopped`] when the turn ended without a final
    /// answer. The history stays valid and a later prompt goes on from there.
    pub async fn prompt(
        &self,
        text: impl Into<String>,
        options: PromptOptions,
    ) -> Result<Answer, SessionError> {
        let said = text.into();
        let text = match self
            .take_in(said.clone(), options.interrupt.token())
            .await?
        {
            Intake::Goes(text) => text,
            Intake::Answered(text) => return Ok(self.blueprint.hook_answer(text)?),
        };
        let input = Input {
            expand: options.expand.carried(&said, &text),
            text,
            images: options.images,
        };
        let source = options.streaming_behavior.map(|behavior| match behavior {
            StreamingBehavior::Steer => QueueSource::Steer,
            StreamingBehavior::FollowUp => QueueSource::PromptFollowUp,
        });
        let (waiter, answer) = oneshot::channel();
        let item = Item::new(input, options.interrupt, Some(waiter));
        let mut leaving = Leaving {
            desk: &self.desk,
            id: Some(item.id.clone()),
        };
        self.bring(item, source).await?;
        let settlement = answer.await;
        leaving.id = None;
        match settlement {
            Ok(Settlement::Settled(outcome)) => outcome,
            Ok(Settlement::Panicked(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(SessionError::Closed),
        }
    }

    /// Says something to the running turn, which hears it after the tools that
    /// run now. At rest it runs at once. Nobody waits for the answer.
    ///
    /// # Errors
    /// When the queue is full or the session takes no more prompts.
    pub async fn steer(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.say(text.into(), QueueSource::Steer).await
    }

    /// Says something for when the running turn would end. At rest it runs at
    /// once. Nobody waits for the answer.
    ///
    /// # Errors
    /// As [`Session::steer`].
    pub async fn follow_up(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.say(text.into(), QueueSource::FollowUp).await
    }

    /// Keeps a message that joins the next prompt, behind its text.
    ///
    /// # Errors
    /// When too many are kept already.
    pub fn send_message(&self, text: impl Into<String>) -> Result<(), SessionError> {
        self.desk.keep_for_next_turn(Input::text(text))
    }

    /// Cancels the running turn and everything that waits. Their callers get an
    /// error for which [`SessionError::is_cancelled`] holds.
    pub async fn cancel(&self) {
        if let Some(update) = self.desk.cancel(Cause::User) {
            self.feed.send(EventKind::QueueUpdate(update)).await;
        }
    }

    /// Waits until no turn runs and nothing waits.
    pub async fn at_rest(&self) {
        self.desk.at_rest().await;
    }

    /// How many messages wait, by source.
    pub fn pending(&self) -> PendingCounts {
        self.desk.counts()
    }

    /// The waiting messages in the order in which they came, and after them, if
    /// asked for, the newest 20 that had their turn.
    pub fn pending_messages(&self, query: PendingQuery) -> Vec<PendingMessage> {
        self.desk.snapshot(query)
    }

    /// Forgets the messages that had their turn.
    pub fn clear_pending_history(&self) {
        self.desk.forget();
    }

    /// Throws away all that waits and all that is remembered. Callers that wait
    /// get a cancelled error.
    pub async fn clear_pending_state(&self, what: ClearPending) {
        let update = self.desk.clear(what);
        self.feed.send(EventKind::QueueUpdate(update)).await;
    }

    /// Ends the session: what runs is cancelled, everything is on disk, and what
    /// the working copy became is told. `cancel` gives up on the diff.
    pub async fn close(self, cancel: &CancellationToken) -> Closed {
        self.cancel().await;
        self.desk.at_rest().await;
        let kept = self.record.keep_deferred();
        let stored = kept.and(self.record.write(Store::close));
        let Some(engine) = self.desk.take_engine() else {
            return Closed {
                stored,
                changes: None,
                scripted: Ok(()),
            };
        };
        let changes = engine
            .working_copy
            .changes(self.workbench.files(), cancel)
            .await;
        Closed {
            stored,
            changes,
            scripted: self.asked.finish(),
        }
    }

    /// Says something that nobody waits for.
    async fn say(&self, text: String, source: QueueSource) -> Result<(), SessionError> {
        let interrupt = Interrupt::default();
        match self.take_in(text, interrupt.token()).await? {
            Intake::Goes(text) => {
                let item = Item::new(Input::said(text), interrupt, None);
                self.bring(item, Some(source)).await
            }
            Intake::Answered(_) => Ok(()),
        }
    }

    /// Brings a message to the engine, or to its desk.
    async fn bring(&self, item: Item, source: Option<QueueSource>) -> Result<(), SessionError> {
        match self.desk.admit(item, source)? {
            Admission::Run(next) => self.drive(next),
            Admission::Queued(update) => self.feed.send(EventKind::QueueUpdate(update)).await,
        }
        Ok(())
    }

    fn drive(&self, next: Next) {
        let desk = Arc::clone(&self.desk);
        let feed = self.feed.clone();
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        // Those that are done; a driver hands its panics on and has none itself.
        while drivers.try_join_next().is_some() {}
        drivers.spawn(desk::drive(desk, feed, next));
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells the desk when the future of a prompt is dropped.
struct Leaving<'d> {
    desk: &'d Desk,
    id: Option<String>,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.desk.abandon(id);
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
