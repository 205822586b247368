//! The batch: it starts the jobs, runs the one event loop, and says how it
//! all ended.
//!
//! [`execute`] gives every event to a closure and knows nothing of sinks,
//! files or terminals. It emits everything between `run:start` and the last
//! `job:end`; whoever owns the log closes it with `run:end`, on every path,
//! a panic included.

mod blocking;
mod changes;
mod default_model;
mod directory;
mod environment;
mod gateway;
mod git_identity;
mod hook_home;
mod job;
mod path_rules;
mod preflight;
pub(crate) mod probe;
mod protected;
mod protected_values;
mod providers;
mod resources;
mod response_file;
mod resume;
mod sandbox;
mod scratch;
mod seals;
mod session_file;
mod signal;
mod surveyed;
mod tape;
mod version;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::event::{
    Emission, ErrorReport, EventKind, Heartbeat, JobEnd, JobResult, JobStart, Place, Reason,
    RunStart,
};
use crate::model::Catalog;
use crate::process;
use crate::session::{Cause, Chunks, Interrupt, Stop};
use crate::task::Job;

pub use default_model::{choose_model, model_of, models, models_left_out};
pub use directory::{DirectoryError, JobPaths, RunDirectory};
pub use environment::{Environment, command_env, known_secrets, trusted_env};
pub use path_rules::rules_not_held;
pub use preflight::{Finding, Unmet, look_for};
pub use providers::catalog;
pub use resume::{find_reason, find_session, session_roots, session_roots_here, store_reason};
pub use signal::Signals;
pub use tape::{Tape, choose_recorded};

/// Events that may wait for the loop.
const EVENTS_WAITING_MAX: usize = 256;

/// Silence after which the loop says that it is alive.
pub const HEARTBEAT: Duration = Duration::from_secs(30);

/// What a run gets, after a first signal or a failed sink, to put things in
/// order. The whole must end within five seconds.
const GRACE: Duration = Duration::from_secs(4);

/// What all jobs of a run share.
#[derive(Debug)]
pub struct RunSettings {
    /// The run's id.
    pub run_id: String,
    /// Where its files go.
    pub directory: RunDirectory,
    /// The process's environment, as read at start.
    pub environment: Arc<Environment>,
    /// The models that can be named.
    pub catalog: Catalog,
    /// Known secrets, for the session files and streamed text.
    pub redactor: crate::secret::Redactor,
    /// What calls are recorded on, or answered from.
    pub tape: Tape,
    /// Which pieces of streaming replies become events.
    pub chunks: Chunks,
    /// The directory in which the command was started.
    pub cwd: String,
    /// A fingerprint of the resolved tasks.
    pub config_hash: String,
    /// Silence after which a heartbeat is told; [`HEARTBEAT`].
    pub heartbeat: Duration,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Why.
    pub reason: Reason,
    /// What went wrong.
    pub error: Option<ErrorReport>,
}

/// Whether the loop may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// All outputs still work.
    Continue,
    /// An output failed: the run must stop before its next side effect.
    Stop,
}

/// How one job ended.
#[derive(Debug, Clone)]
struct Verdict {
    reason: Reason,
    conclusion: JobResult,
}

impl Verdict {
    /// A signal outranks whatever else a job that it met would have said.
    fn blame(&mut self, cause: Cause) {
        let reason = cause_reason(cause);
        if self.reason != reason {
            self.reason = reason;
            self.conclusion.structured_output = None;
            self.conclusion.error = Some(ErrorReport {
                code: reason.name().to_owned(),
                message: Stop::Interrupted(cause).to_string(),
                ..ErrorReport::default()
            });
        }
    }
}

/// Runs `jobs` one after the other and gives every event to `emit`.
pub async fn execute(
    jobs: Vec<Job>,
    settings: Arc<RunSettings>,
    signals: &mut Signals,
    emit: &mut dyn FnMut(Emission) -> Flow,
) -> Ending {
    let mut batch = Batch::new(jobs, settings);
    let never = CancellationToken::new();
    batch.emit(Emission::of_run(batch.run_start()), emit);
    if let Some(ending) = batch.preflight(signals).await {
        return ending;
    }
    batch.start_next(emit);
    while !batch.running.is_empty() {
        let (gives_up_at, quiet) = (batch.gives_up_at(), batch.until_heartbeat());
        tokio::select! {
            biased;
            Some(emission) = batch.events.recv() => batch.emit(emission, emit),
            // Before signals: what a job has finished, a later one cannot undo.
            Some(finished) = batch.running.join_next() => {
                batch.drain(emit);
                batch.finish(finished, emit);
                batch.start_next(emit);
            }
            number = signals.next() => {
                if batch.interrupted_at.is_some() {
                    break;
                }
                batch.interrupt(Cause::Signal(number));
            }
            () = clock::until(gives_up_at) => break,
            _ = clock::sleep(quiet, &never) => batch.heartbeat(emit),
        }
    }
    batch.end(emit).await
}

/// A job that runs.
struct Current {
    name: String,
    started: Instant,
    interrupt: Interrupt,
}

/// The state of the loop.
struct Batch {
    settings: Arc<RunSettings>,
    waiting: VecDeque<Job>,
    single: bool,
    running: JoinSet<Verdict>,
    current: Option<Current>,
    verdicts: Vec<Verdict>,
    sender: mpsc::Sender<Emission>,
    events: mpsc::Receiver<Emission>,
    cause: Option<Cause>,
    interrupted_at: Option<Instant>,
    started: Instant,
    last_event: Instant,
    waiting_for: String,
}

impl Batch {
    fn new(jobs: Vec<Job>, settings: Arc<RunSettings>) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_WAITING_MAX);
        let now = clock::monotonic();
        Self {
            settings,
            single: jobs.len() == 1,
            waiting: jobs.into(),
            running: JoinSet::new(),
            current: None,
            verdicts: Vec::new(),
            sender,
            events,
            cause: None,
            interrupted_at: None,
            started: now,
            last_event: now,
            waiting_for: "the start".to_owned(),
        }
    }

    fn run_start(&self) -> EventKind {
        let first = self.waiting.front();
        EventKind::RunStart(RunStart {
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            task_files: self
                .waiting
                .iter()
                .filter_map(|job| job.file.as_ref())
                .map(|file| file.display().to_string())
                .collect(),
            jobs: self.waiting.iter().map(|job| job.name.clone()).collect(),
            cwd: self.settings.cwd.clone(),
            run_dir: Some(self.settings.directory.path().display().to_string()),
            model: first
                .map(|job| job.model_name(&self.settings.catalog))
                .unwrap_or_default(),
            permission_mode: first
                .map(|job| job.permissions.mode.to_string())
                .unwrap_or_default(),
            limits: first
                .and_then(|job| job.resolved.get("limits").cloned())
                .unwrap_or_default(),
            config_hash: self.settings.config_hash.clone(),
            replay: self.settings.tape.replayed().map(str::to_owned),
        })
    }

    /// Gives an event to the sinks; a failed sink interrupts the run.
    fn emit(&mut self, emission: Emission, emit: &mut dyn FnMut(Emission) -> Flow) {
        self.last_event = clock::monotonic();
        match &emission.kind {
            EventKind::StepStart(step) => {
                self.settings.environment.crash_if_asked("loop");
                self.waiting_for = format!("the model {}", step.model);
            }
            EventKind::ModelFallback(fallback) => {
                self.waiting_for = format!("the model {}", fallback.to);
            }
            EventKind::ToolStart(call) => self.waiting_for = call.title.clone(),
            _ => {}
        }
        if emit(emission) == Flow::Stop {
            self.interrupt(Cause::Output);
        }
    }

    fn interrupt(&mut self, cause: Cause) {
        self.cause.get_or_insert(cause);
        self.interrupted_at.get_or_insert(clock::monotonic());
        if let Some(current) = &self.current {
            current.interrupt.trigger(cause);
        }
    }

    fn gives_up_at(&self) -> Option<Instant> {
        self.interrupted_at.map(|at| at + GRACE)
    }

    fn until_heartbeat(&self) -> Duration {
        let silence = self.settings.heartbeat;
        silence.saturating_sub(clock::monotonic().duration_since(self.last_event))
    }

    fn heartbeat(&mut self, emit: &mut dyn FnMut(Emission) -> Flow) {
        let beat = Heartbeat {
            elapsed_ms: clock::elapsed_ms(self.started),
            waiting_for: self.waiting_for.clone(),
        };
        self.emit(Emission::of_run(EventKind::Heartbeat(beat)), emit);
    }

    /// Looks for what the jobs require, before the first of them costs or changes
    /// anything. Where a cassette plays the tools too, nothing of it is used.
    async fn preflight(&self, signals: &mut Signals) -> Option<Ending> {
        if self.interrupted_at.is_some() || self.settings.tape.plays_tools() {
            return None;
        }
        let looking = preflight::refusal(&self.waiting, &self.settings.environment);
        tokio::select! {
            biased;
            number = signals.next() => {
                process::kill_all_children();
                let stop = Stop::Interrupted(Cause::Signal(number));
                Some(Ending {
                    reason: stop.reason(),
                    error: Some(ErrorReport {
                        code: stop.code().to_owned(),
                        message: stop.to_string(),
                        ..ErrorReport::default()
                    }),
                })
            }
            refusal = looking => refusal.map(|error| Ending {
                reason: Reason::Config,
                error: Some(error),
            }),
        }
    }

    /// Starts the next job, unless the run was interrupted.
    fn start_next(&mut self, emit: &mut dyn FnMut(Emission) -> Flow) {
        if self.interrupted_at.is_some() {
            return;
        }
        let Some(job) = self.waiting.pop_front() else {
            return;
        };
        let current = Current {
            name: job.name.clone(),
            started: clock::monotonic(),
            interrupt: Interrupt::default(),
        };
        let interrupt = current.interrupt.clone();
        self.current = Some(current);
        let start = JobStart {
            name: job.name.clone(),
            attempt: 1,
            params: job.params.clone(),
        };
        self.emit(self.of_job(EventKind::JobStart(start)), emit);
        for warning in &job.warnings {
            self.emit(self.of_job(EventKind::Warning(warning.clone())), emit);
        }
        let context = job::JobContext {
            settings: Arc::clone(&self.settings),
            single: self.single,
            events: self.sender.clone(),
        };
        self.running.spawn(job::run(job, context, interrupt));
    }

    fn of_job(&self, kind: EventKind) -> Emission {
        Emission {
            place: Place {
                job: self.current.as_ref().map(|job| job.name.clone()),
                ..Place::default()
            },
            kind,
        }
    }

    /// Takes what a finished job had sent before it ended.
    fn drain(&mut self, emit: &mut dyn FnMut(Emission) -> Flow) {
        while let Ok(emission) = self.events.try_recv() {
            self.emit(emission, emit);
        }
    }

    fn finish(
        &mut self,
        finished: Result<Verdict, tokio::task::JoinError>,
        emit: &mut dyn FnMut(Emission) -> Flow,
    ) {
        let mut verdict = finished.unwrap_or_else(|error| crashed(&error));
        if let Some(cause @ Cause::Signal(_)) = self.cause {
            verdict.blame(cause);
        }
        let duration_ms = self
            .current
            .as_ref()
            .map_or(0, |job| clock::elapsed_ms(job.started));
        let end = JobEnd {
            outcome: verdict.reason.outcome(),
            reason: verdict.reason,
            duration_ms,
            conclusion: verdict.conclusion.clone(),
        };
        self.emit(self.of_job(EventKind::JobEnd(Box::new(end))), emit);
        self.verdicts.push(verdict);
        self.current = None;
    }

    /// Ends what still runs and sums the verdicts up.
    async fn end(mut self, emit: &mut dyn FnMut(Emission) -> Flow) -> Ending {
        if !self.running.is_empty() {
            self.running.abort_all();
            process::kill_all_children();
            while self.running.join_next().await.is_some() {}
            self.drain(emit);
            self.finish(Ok(torn_down(self.cause)), emit);
        }
        process::kill_all_children();
        sum_up(&self.verdicts, self.cause, self.single)
    }
}

fn sum_up(verdicts: &[Verdict], cause: Option<Cause>, single: bool) -> Ending {
    if let (true, Some(verdict)) = (single, verdicts.last()) {
        return Ending {
            reason: verdict.reason,
            error: verdict.conclusion.error.clone(),
        };
    }
    let reason = match cause {
        Some(cause) => cause_reason(cause),
        None if verdicts.iter().all(|job| job.reason == Reason::Success) => Reason::Success,
        None => Reason::BatchPartial,
    };
    let error = verdicts.iter().find_map(|job| job.conclusion.error.clone());
    Ending { reason, error }
}

fn cause_reason(cause: Cause) -> Reason {
    Stop::Interrupted(cause).reason()
}

/// A job that did not end in time after an interruption, or got a second signal.
fn torn_down(cause: Option<Cause>) -> Verdict {
    let reason = cause.map_or(Reason::Internal, cause_reason);
    let why = cause.map_or_else(
        || "the run ended first".to_owned(),
        |cause| Stop::Interrupted(cause).to_string(),
    );
    Verdict {
        reason,
        conclusion: JobResult {
            error: Some(ErrorReport {
                code: reason.name().to_owned(),
                message: format!("{why}; the job was torn down before it could end by itself"),
                ..ErrorReport::default()
            }),
            ..JobResult::default()
        },
    }
}

/// A job that panicked, or was torn down.
fn crashed(error: &tokio::task::JoinError) -> Verdict {
    Verdict {
        reason: Reason::Internal,
        conclusion: JobResult {
            error: Some(ErrorReport {
                code: "internal".to_owned(),
                message: format!("the job crashed: {error}"),
                hints: vec!["this is a bug in agent; please report it".to_owned()],
                ..ErrorReport::default()
            }),
            ..JobResult::default()
        },
    }
}
