//! Sessions under test: a scripted model, tools of the test's own, every event
//! kept, every law checked.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;
use std::time::Duration;

use agent::clock::{self, Activity};
use agent::context::Resources;
use agent::event::{Emission, EventKind};
use agent::hook::{Hook, Hooks};
use agent::model::{Client, ClientOptions, Model, RetryPolicy, Script, resolve};
use agent::policy::{Mode, Permissions, Policy, Surroundings};
use agent::process::CommandSandbox;
use agent::session::{
    Answer, Compaction, Interrupt, Limits, PromptOptions, QueueModes, ResponseSchema, ResponseSpec,
    Session, SessionError, SessionOptions, Stop, Workbench, WorkingCopy,
};
use agent::store::{Durability, Header, Store};
use agent::tool::{CommandSettings, Place, Toolset};
use agent::workspace::GitSettings;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use super::test_tool::TestTool;
pub(crate) use super::told::Told;
use super::told::{assert_valid, lawful};

/// No prompt of a test takes longer, unless it says so.
pub(super) const PROMPT_MAX: Duration = Duration::from_secs(30);

/// What a session under test is made of.
pub(crate) struct Stage {
    pub(super) dir: tempfile::TempDir,
    script: Value,
    /// The model, priced at zero.
    pub(crate) model: Model,
    /// None but those added.
    pub(crate) tools: Toolset,
    /// The default ones.
    pub(crate) limits: Limits,
    /// Read-only.
    pub(crate) permissions: Permissions,
    /// Without any wait.
    pub(crate) retry: RetryPolicy,
    /// None but those added.
    pub(crate) hooks: Hooks,
    /// 4,000.
    pub(crate) max_output_tokens: u64,
    /// The default one.
    pub(crate) compaction: Compaction,
    /// One at a time.
    pub(crate) queue: QueueModes,
    /// Whether the conversation is kept in a file.
    pub(crate) on_disk: bool,
    /// None.
    pub(crate) resources: Resources,
    /// None.
    pub(crate) response: Option<ResponseSpec>,
    /// None but those added.
    fallbacks: Vec<(Model, Value)>,
    /// None.
    small: Option<(Model, Value)>,
}

impl Stage {
    /// A session whose model plays these replies, all of them.
    pub(crate) fn new(replies: Value) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            script: json!({"strict": true, "replies": replies}),
            model: resolve("scripted/replies.yaml", None).unwrap(),
            tools: Toolset::default(),
            limits: Limits::default(),
            permissions: Permissions::default(),
            retry: RetryPolicy {
                base_delay: Duration::ZERO,
                ..RetryPolicy::default()
            },
            hooks: Hooks::new(),
            max_output_tokens: 4_000,
            compaction: Compaction::default(),
            queue: QueueModes::default(),
            on_disk: false,
            resources: Resources::default(),
            response: None,
            fallbacks: Vec::new(),
            small: None,
        }
    }

    /// Writes a file of the workspace.
    pub(crate) fn file(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// A session whose model may have replies left over.
    pub(crate) fn lenient(replies: Value) -> Self {
        let mut stage = Self::new(replies);
        stage.script["strict"] = false.into();
        stage
    }

    /// Adds a tool.
    pub(crate) fn tool(mut self, tool: TestTool) -> Self {
        self.tools.register(Arc::new(tool)).unwrap();
        self
    }

    /// Adds a model that takes over, and plays these replies, all of them when it
    /// is asked at all.
    pub(crate) fn fallback(mut self, model: Model, replies: Value) -> Self {
        self.fallbacks.push((model, replies));
        self
    }

    /// The model that writes summaries, and its replies.
    pub(crate) fn small(mut self, model: Model, replies: Value) -> Self {
        self.small = Some((model, replies));
        self
    }

    /// Adds a hook.
    pub(crate) fn hook(mut self, hook: impl Hook + 'static) -> Self {
        self.hooks = self.hooks.with_hook(Arc::new(hook));
        self
    }

    /// Allows writing in the workspace.
    pub(crate) fn edits(mut self) -> Self {
        self.permissions.mode = Mode::AcceptEdits;
        self
    }

    /// Final answers must fit this schema, and are asked for again so often.
    pub(crate) fn answers(mut self, schema: Value, repairs: u32) -> Self {
        let schema = Arc::new(ResponseSchema::compile(schema).unwrap());
        self.response = Some(ResponseSpec { schema, repairs });
        self
    }

    /// Changes the limits.
    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Creates the session.
    pub(crate) async fn open(self) -> Play {
        self.try_open()
            .await
            .unwrap_or_else(|(stop, _)| panic!("{stop}"))
    }

    /// Creates the session, or tells why not and what was told until then.
    pub(crate) async fn try_open(self) -> Result<Play, (Stop, Vec<Value>)> {
        let (sender, mut events) = mpsc::channel(16);
        let mut kept = Vec::new();
        match Session::create(self.options(sender)).await {
            Ok(created) => Ok(Play {
                session: created.session,
                events,
                kept,
                dir: self.dir,
                patience: PROMPT_MAX,
            }),
            Err(stop) => {
                drain(&mut events, &mut kept);
                Err((stop, lawful(&kept)))
            }
        }
    }

    /// What the session is made of.
    pub(crate) fn options(&self, events: mpsc::Sender<Emission>) -> SessionOptions {
        let workspace = self.dir.path().canonicalize().unwrap();
        let activity = Activity::new();
        let script = Script::parse(&self.script.to_string(), "replies.yaml").unwrap();
        let options = ClientOptions::new(activity.clone());
        let client = Client::scripted(self.model.clone(), script, options);
        let mut options = SessionOptions::new(client, activity.clone(), &workspace, events);
        let mut spare = |(model, replies): &(Model, Value)| {
            let script = json!({"strict": true, "replies": replies}).to_string();
            let script = Script::parse(&script, "spare.yaml").unwrap();
            let asking = ClientOptions::new(activity.clone());
            let client = Client::scripted(model.clone(), script, asking);
            options.models = options.models.clone().with_client(client);
            model.full_id()
        };
        let fallbacks = self.fallbacks.iter().map(&mut spare).collect();
        options.small_model = self.small.as_ref().map(&mut spare);
        options.fallback_models = fallbacks;
        options.workbench = self.workbench(&workspace);
        options.working_copy = WorkingCopy::new(
            workspace.clone(),
            GitSettings::new(super::cli::path(), workspace.join(".scratch")),
        );
        if self.on_disk {
            let header = Header::new(workspace.display().to_string());
            let file = workspace.join("session.jsonl");
            options.store =
                Store::create(&file, header, Durability::Step, Default::default()).unwrap();
        }
        options.hooks = self.hooks.clone();
        options.sampling.max_output_tokens = self.max_output_tokens;
        options.sampling.retry = self.retry.clone();
        options.deadline = clock::monotonic() + self.limits.timeout;
        options.limits = self.limits.clone();
        options.resources = Arc::new(self.resources.clone());
        options.compaction = self.compaction;
        options.queue = self.queue;
        options.response = self.response.clone();
        options
    }

    fn workbench(&self, workspace: &std::path::Path) -> Workbench {
        let surroundings = Surroundings {
            workspace: workspace.to_owned(),
            ..Surroundings::default()
        };
        Workbench::new(
            self.tools.clone(),
            Arc::new(Policy::new(self.permissions.clone(), surroundings)),
            Place {
                workspace: workspace.to_owned(),
                home: None,
            },
            CommandSettings {
                env: vec![("PATH".to_owned(), super::cli::path().into_string().unwrap())],
                shell_path: super::cli::path().into_string().unwrap(),
                timeout: Duration::from_secs(20),
                timeout_max: Duration::from_secs(20),
                sandbox: CommandSandbox::Off,
            },
            None,
        )
    }
}

/// A session that is being played.
pub(crate) struct Play {
    pub(crate) session: Session,
    events: mpsc::Receiver<Emission>,
    kept: Vec<Emission>,
    dir: tempfile::TempDir,
    /// The longest that a prompt may take.
    pub(crate) patience: Duration,
}

impl Play {
    /// The workspace.
    pub(crate) fn workspace(&self) -> std::path::PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    /// Prompts and keeps all events.
    pub(crate) async fn prompt(&mut self, text: &str) -> Result<Answer, Stop> {
        self.prompt_watched(text, &Interrupt::default(), |_| {})
            .await
    }

    /// Prompts and shows every event as it comes.
    pub(crate) async fn prompt_watched(
        &mut self,
        text: &str,
        interrupt: &Interrupt,
        watch: impl FnMut(&EventKind),
    ) -> Result<Answer, Stop> {
        let options = PromptOptions {
            interrupt: interrupt.clone(),
            ..PromptOptions::default()
        };
        self.prompt_with(text, options, watch).await
    }

    /// The same with other options.
    pub(crate) async fn prompt_with(
        &mut self,
        text: &str,
        options: PromptOptions,
        mut watch: impl FnMut(&EventKind),
    ) -> Result<Answer, Stop> {
        let Self {
            session,
            events,
            kept,
            patience,
            ..
        } = self;
        let watched = async {
            let prompt = session.prompt(text, options);
            tokio::pin!(prompt);
            loop {
                tokio::select! {
                    biased;
                    Some(emission) = events.recv() => {
                        watch(&emission.kind);
                        kept.push(emission);
                    }
                    outcome = &mut prompt => break outcome,
                }
            }
        };
        let outcome = tokio::time::timeout(*patience, watched)
            .await
            .expect("the prompt ends in time");
        drain(&mut self.events, &mut self.kept);
        outcome.map_err(|error| match error {
            SessionError::Stopped(stop) => Arc::try_unwrap(stop).unwrap(),
            other => panic!("{other}"),
        })
    }

    /// Keeps the events that came outside prompts.
    pub(crate) fn drain(&mut self) {
        drain(&mut self.events, &mut self.kept);
    }

    /// Drops a running prompt as soon as `until` says so.
    pub(crate) async fn prompt_dropped(&mut self, until: impl Fn(&EventKind) -> bool) {
        let Self {
            session,
            events,
            kept,
            ..
        } = self;
        let prompt = session.prompt("go", PromptOptions::default());
        tokio::pin!(prompt);
        let watched = async {
            loop {
                tokio::select! {
                    biased;
                    Some(emission) = events.recv() => {
                        let now = until(&emission.kind);
                        kept.push(emission);
                        if now { return }
                    }
                    _ = &mut prompt => panic!("the prompt ended by itself"),
                }
            }
        };
        tokio::time::timeout(PROMPT_MAX, watched)
            .await
            .expect("the event comes");
    }

    /// Ends the session. The log must be lawful, the history valid, the script
    /// played to its end.
    pub(crate) async fn end(self) -> Told {
        let messages = self.session.messages();
        let closed = self.session.close(&CancellationToken::new()).await;
        assert_eq!(closed.scripted, Ok(()));
        assert_valid(&messages);
        Told {
            events: lawful(&self.kept),
            messages,
        }
    }
}

pub(super) fn drain(events: &mut mpsc::Receiver<Emission>, kept: &mut Vec<Emission>) {
    while let Ok(emission) = events.try_recv() {
        kept.push(emission);
    }
}

/// A reply with calls of these tools, without arguments.
pub(crate) fn calls(names: &[&str]) -> Value {
    let calls: Vec<Value> = names.iter().map(|name| json!({"name": name})).collect();
    json!({"calls": calls, "usage": {"input": 100, "output": 10}})
}

/// A reply of one text.
pub(crate) fn text(text: &str) -> Value {
    json!({"text": text, "usage": {"input": 100, "output": 10}})
}

/// The same reply, with what its request must hold.
pub(crate) fn expecting(mut reply: Value, expect: Value) -> Value {
    reply["expect"] = expect;
    reply
}
