//! `agent run` and `agent -p`: load, open every output, run, close, exit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use crate::clock;
use crate::event::{ErrorReport, Reason};
use crate::process;
use crate::report::{self, Deltas, Ending, Opening, Recorder, RecorderOptions};
use crate::run::{self, Flow, RunDirectory, RunSettings, Signals};
use crate::secret::Redactor;
use crate::session::Chunks;
use crate::task::{self, Diagnostics, Job, Overrides};

use super::console::Console;
use super::exit::Exit;
use super::flags::{DeltaChoice, OutputFlags, ParameterFlags, RunFlags};
use super::refusal::{self, Refusal};
use super::{outputs, stdin};

/// Threads for blocking work: searches, the session file's sync.
const BLOCKING_THREADS_MAX: usize = 4;

/// Runs task files.
#[derive(Debug, Args)]
pub(super) struct RunCommand {
    /// The task files, run one after the other.
    #[arg(required = true, value_name = "TASK.yaml")]
    tasks: Vec<PathBuf>,

    #[command(flatten)]
    parameters: ParameterFlags,

    #[command(flatten)]
    flags: RunFlags,
}

impl RunCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let flags = &self.flags;
        let mut overrides = match overrides(flags, console) {
            Ok(overrides) => overrides,
            Err(refusal) => return refusal::refuse(refusal, &flags.output, console),
        };
        self.parameters.add_to(&mut overrides);
        match load_all(&self.tasks, &overrides) {
            Ok(jobs) => run_jobs(jobs, &overrides, &flags.output, console),
            Err(problems) => refusal::refuse(Refusal::of_tasks(&problems), &flags.output, console),
        }
    }
}

/// Runs one prompt as an implicit task.
pub(super) fn prompt(text: &str, flags: &RunFlags, console: &Console) -> Exit {
    let run = || {
        let overrides = overrides(flags, console)?;
        let text = if text == "-" {
            stdin::read_prompt().map_err(|message| Refusal::new(Reason::NoInput, message))?
        } else {
            text.to_owned()
        };
        let job =
            task::implicit(&text, &overrides).map_err(|problems| Refusal::of_tasks(&[problems]))?;
        Ok((job, overrides))
    };
    match run() {
        Ok((job, overrides)) => run_jobs(vec![job], &overrides, &flags.output, console),
        Err(refusal) => refusal::refuse(refusal, &flags.output, console),
    }
}

fn overrides(flags: &RunFlags, console: &Console) -> Result<Overrides, Refusal> {
    let wanted = flags.task.directory.as_ref();
    let cwd = console.directory(wanted).map_err(|error| {
        let place = wanted.map_or_else(
            || "the current directory".to_owned(),
            |path| path.display().to_string(),
        );
        Refusal::new(Reason::NoInput, format!("cannot work in {place}: {error}"))
    })?;
    Ok(flags.task.overrides(cwd, console))
}

/// Loads every task before the first one runs, and reports all problems.
pub(super) fn load_all(
    paths: &[PathBuf],
    overrides: &Overrides,
) -> Result<Vec<Job>, Vec<Diagnostics>> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut problems = Vec::new();
    for path in paths {
        match task::load(path, overrides) {
            Ok(mut job) => {
                distinguish(&mut job, &jobs);
                jobs.push(job);
            }
            Err(diagnostics) => problems.push(diagnostics),
        }
    }
    if problems.is_empty() {
        Ok(jobs)
    } else {
        Err(problems)
    }
}

/// Two jobs of one name would share their files.
fn distinguish(job: &mut Job, others: &[Job]) {
    let taken = |name: &str| others.iter().any(|other| other.name == name);
    if !taken(&job.name) {
        return;
    }
    let numbered = (2..).map(|number| format!("{}-{number}", job.name));
    if let Some(free) = numbered.into_iter().find(|name| !taken(name)) {
        job.name = free;
    }
}

fn run_jobs(jobs: Vec<Job>, overrides: &Overrides, flags: &OutputFlags, console: &Console) -> Exit {
    let environment = console.environment();
    let redactor = Redactor::new(run::known_secrets(&jobs, environment));
    let run_id = clock::new_id();
    let opened = open_run(&jobs, &run_id, &redactor, flags, console);
    let (settings, mut recorder) = match opened {
        Ok(opened) => opened,
        Err(refusal) => return refusal::refuse(refusal, flags, console),
    };
    let settings = Arc::new(RunSettings {
        cwd: overrides.cwd.display().to_string(),
        ..settings
    });
    let ending = drive(jobs, &settings, &mut recorder, console);
    let report = recorder.close(ending);
    for failure in &report.failures {
        console.complain(&format!("agent: {failure}\n"));
    }
    let reason = report.result.reason;
    if let Err(error) = outputs::close_result(&settings.directory, &report) {
        console.complain(&format!("agent: {error}\n"));
        return Exit::Reason(Reason::Io);
    }
    Exit::Reason(reason)
}

/// Opens the run directory, every output, and the result that holds so far.
fn open_run(
    jobs: &[Job],
    run_id: &str,
    redactor: &Redactor,
    flags: &OutputFlags,
    console: &Console,
) -> Result<(RunSettings, Recorder), Refusal> {
    let io = |error: &dyn std::fmt::Display| Refusal::new(Reason::Io, error.to_string());
    let directory = match (&flags.run_dir, jobs.first()) {
        (Some(path), _) => RunDirectory::at(path),
        (None, Some(job)) => RunDirectory::create(&job.reports_dir, run_id),
        (None, None) => return Err(Refusal::new(Reason::NoInput, "no task is given".to_owned())),
    }
    .map_err(|error| io(&error))?;
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let started_at = clock::timestamp();
    let resolved: Vec<_> = jobs.iter().map(|job| job.resolved.clone()).collect();
    let config_hash = task::config_hash(&json!(resolved));
    let document = json!({
        "schemaVersion": 1,
        "runId": run_id,
        "agentVersion": env!("CARGO_PKG_VERSION"),
        "startedAt": started_at,
        "configHash": config_hash,
        "tasks": resolved,
    });
    let document = report::redact_document(document, redactor);
    directory
        .write_run_document(&document)
        .map_err(|error| io(&error))?;
    let opening = Opening {
        run_id: run_id.to_owned(),
        task: names.join(","),
        model: jobs.first().map(Job::model_name).unwrap_or_default(),
        started_at,
        run_dir: Some(directory.path().display().to_string()),
    };
    outputs::open_result(&directory, opening).map_err(|error| io(&error))?;
    let sinks = outputs::open(flags, Some(&directory), console).map_err(|error| io(&error))?;
    let recorder = Recorder::new(RecorderOptions {
        run_id: run_id.to_owned(),
        redactor: redactor.clone(),
        sinks,
        spill_dir: Some(directory.path().to_path_buf()),
        deltas: match flags.deltas {
            DeltaChoice::None => Deltas::None,
            DeltaChoice::Delta => Deltas::Delta,
            DeltaChoice::Full => Deltas::Full,
        },
    });
    let settings = RunSettings {
        run_id: run_id.to_owned(),
        directory,
        environment: Arc::new(console.environment().clone()),
        redactor: redactor.clone(),
        chunks: chunks(flags, console),
        cwd: String::new(),
        config_hash,
    };
    Ok((settings, recorder))
}

/// Pieces of replies are worth their events when a log keeps them or a person
/// watches.
fn chunks(flags: &OutputFlags, console: &Console) -> Chunks {
    match flags.deltas {
        DeltaChoice::Full => Chunks::Full,
        DeltaChoice::Delta => Chunks::Delta,
        DeltaChoice::None if !flags.quiet && console.is_interactive() => Chunks::Delta,
        DeltaChoice::None => Chunks::None,
    }
}

/// Runs the jobs on a runtime of their own. A panic of ours is an ending like
/// any other.
fn drive(
    jobs: Vec<Job>,
    settings: &Arc<RunSettings>,
    recorder: &mut Recorder,
    console: &Console,
) -> Ending {
    process::adopt_orphans();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return internal(format!("cannot start the runtime: {error}")),
    };
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            let mut signals = match Signals::listen() {
                Ok(signals) => signals,
                Err(error) => return internal(format!("cannot listen to signals: {error}")),
            };
            let mut emit = |emission| {
                recorder.write(emission);
                match recorder.failure() {
                    None => Flow::Continue,
                    Some(_) => Flow::Stop,
                }
            };
            let ending = run::execute(jobs, Arc::clone(settings), &mut signals, &mut emit).await;
            Ending {
                reason: ending.reason,
                error: ending.error,
            }
        })
    }));
    runtime.shutdown_background();
    outcome.unwrap_or_else(|_| {
        process::kill_all_children();
        console.complain("agent: internal error; please report it\n");
        internal("agent itself failed".to_owned())
    })
}

fn internal(message: String) -> Ending {
    Ending {
        reason: Reason::Internal,
        error: Some(ErrorReport {
            code: Reason::Internal.name().to_owned(),
            message,
            hints: vec!["this is a bug in agent; please report it".to_owned()],
            ..ErrorReport::default()
        }),
    }
}
