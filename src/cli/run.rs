//! `agent run` and `agent -p`: load, open every output, run, close, exit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use serde_json::json;

use crate::clock;
use crate::event::Reason;
use crate::model::Catalog;
use crate::process;
use crate::report::{self, Deltas, Opening, Recorder, RecorderOptions};
use crate::run::{self, HEARTBEAT, RunDirectory, RunSettings, Tape};
use crate::session::Chunks;
use crate::task::{self, Diagnostics, Job, Overrides};

use super::cassette::{self, CassetteSink};
use super::console::Console;
use super::engine::{self, Engine};
use super::exit::Exit;
use super::flags::{DeltaChoice, OutputFlags, ParameterFlags, ProvidersFlag, RunFlags};
use super::refusal::{self, Refusal};
use super::sandbox_watch::SANDBOX_WATCH;
use super::{outputs, stdin};

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
        if overrides.resume.is_some() && self.tasks.len() > 1 {
            let message = "several tasks cannot go on with one session".to_owned();
            let refusal = Refusal::new(Reason::Usage, message);
            return refusal::refuse(refusal, &flags.output, console);
        }
        match load_all(&self.tasks, &overrides) {
            Ok(jobs) => run_jobs(jobs, &overrides, flags, console),
            Err(problems) => refusal::refuse(Refusal::of_tasks(&problems), &flags.output, console),
        }
    }
}

/// Runs one prompt as an implicit task. `files` are mentioned at its end.
pub(super) fn prompt(text: &str, files: &[String], flags: &RunFlags, console: &Console) -> Exit {
    let run = || {
        let overrides = overrides(flags, console)?;
        let mentions = mentions(files, &overrides)?;
        let text = if text == "-" {
            stdin::read_prompt()
                .map_err(|problem| Refusal::new(problem.reason(), problem.to_string()))?
        } else {
            text.to_owned()
        };
        let job = task::implicit(&format!("{text}{mentions}"), &overrides)
            .map_err(|problems| Refusal::of_tasks(&[problems]))?;
        Ok((job, overrides))
    };
    match run() {
        Ok((job, overrides)) => run_jobs(vec![job], &overrides, flags, console),
        Err(refusal) => refusal::refuse(refusal, &flags.output, console),
    }
}

/// What mentions files in a prompt. A file that is not there is not waited for
/// until a model has been paid.
fn mentions(files: &[String], overrides: &Overrides) -> Result<String, Refusal> {
    let mut text = String::new();
    for file in files {
        let below_home = file.strip_prefix("~/").zip(overrides.home.as_ref());
        let path = match below_home {
            Some((rest, home)) => home.join(rest),
            None => overrides.cwd.join(file),
        };
        if path.symlink_metadata().is_err() {
            let message = format!("there is no file {}", path.display());
            return Err(Refusal::new(Reason::NoInput, message));
        }
        text.push_str(if text.is_empty() { "\n\n" } else { " " });
        text.push_str(&format!("@\"{file}\""));
    }
    Ok(text)
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
        if let Some(fields) = job.resolved.as_object_mut() {
            fields.insert("name".to_owned(), json!(free));
        }
        job.name = free;
    }
}

fn run_jobs(
    mut jobs: Vec<Job>,
    overrides: &Overrides,
    flags: &RunFlags,
    console: &Console,
) -> Exit {
    let flags = &RunFlags {
        output: flags.output.within(&overrides.cwd),
        cassette: flags.cassette.within(&overrides.cwd),
        task: flags.task.clone(),
    };
    match started(&mut jobs, overrides, flags, console) {
        Ok(run) => run.finish(jobs, console),
        Err(refusal) => refusal::refuse(refusal, &flags.output, console),
    }
}

/// Everything up to the first event.
fn started(
    jobs: &mut [Job],
    overrides: &Overrides,
    flags: &RunFlags,
    console: &Console,
) -> Result<Opened, Refusal> {
    let flags = &contained(flags, jobs, &overrides.cwd)?;
    let cassette = flags.cassette.load(&overrides.cwd)?;
    for job in jobs.iter_mut() {
        run::find_session(job, console.environment())
            .map_err(|error| Refusal::new(run::find_reason(&error), error.to_string()))?;
        if let Some(cassette) = &cassette {
            run::choose_recorded(job, cassette);
        }
    }
    let catalog = choose_models(jobs, overrides, &flags.task.providers, console)
        .map_err(|problems| Refusal::of_tasks(&[problems]))?;
    let redactor = console.redactor();
    let tape = flags.cassette.tape(cassette, jobs, &catalog, &redactor)?;
    let order = Order {
        jobs,
        catalog,
        tape,
        run_id: clock::new_id(),
        cwd: &overrides.cwd,
    };
    let run_id = order.run_id.clone();
    opened(order, &flags.output, console).map_err(|refusal| refusal.of_run(run_id))
}

/// The flags with the files that are written at their real places: no link of a
/// working copy leads one of them elsewhere.
fn contained(flags: &RunFlags, jobs: &[Job], cwd: &Path) -> Result<RunFlags, Refusal> {
    let mut flags = flags.clone();
    let RunFlags {
        output, cassette, ..
    } = &mut flags;
    for job in jobs {
        let copies = job.working_copies(cwd);
        for path in output.written().chain(cassette.written()) {
            let real = copies.resolve(path).map_err(|error| {
                let message = format!("cannot write {}: {error}", path.display());
                Refusal::new(Reason::Io, message)
            })?;
            // A pipe or a device is what it is called.
            if path
                .metadata()
                .map_or(true, |found| found.is_file() || found.is_dir())
            {
                *path = real;
            }
        }
    }
    Ok(flags)
}

/// Reads the catalog of this machine, and gives a job that names no model that of
/// the environment. The secrets of both are concealed from now on.
pub(super) fn choose_models(
    jobs: &mut [Job],
    overrides: &Overrides,
    providers: &ProvidersFlag,
    console: &Console,
) -> Result<Catalog, Diagnostics> {
    let (catalog, warning) = providers.catalog(&overrides.cwd, console)?;
    for job in &mut *jobs {
        job.warnings.extend(warning.clone());
        run::choose_model(job, console.environment(), &catalog, &overrides.cwd);
    }
    console.conceal(jobs, &catalog);
    Ok(catalog)
}

/// What is to be run, and how it is known.
struct Order<'a> {
    jobs: &'a [Job],
    catalog: Catalog,
    tape: Tape,
    run_id: String,
    cwd: &'a Path,
}

/// A run whose every output is open.
struct Opened {
    engine: Engine,
    settings: Arc<RunSettings>,
    recorder: Recorder,
    opening: Opening,
}

impl Opened {
    /// Runs the jobs and closes the log and the result.
    fn finish(mut self, jobs: Vec<Job>, console: &Console) -> Exit {
        let ending = self.engine.drive(jobs, &self.settings, &mut self.recorder);
        let recorder = self.recorder;
        let closed = catch_unwind(AssertUnwindSafe(|| recorder.close(ending)));
        let (reason, kept) = match closed {
            Ok(report) => {
                for failure in &report.failures {
                    console.complain(&format!("agent: {failure}\n"));
                }
                let reason = report.result.reason;
                if let Tape::Recording(_, path) = &self.settings.tape
                    && !cassette::is_kept(reason.outcome())
                {
                    let path = path.display();
                    let message = "the run was interrupted, so its recording is not kept";
                    console.complain(&format!("agent: {path}: {message}\n"));
                }
                if !report.failures.is_empty() {
                    // Progress was told before, and may have said another.
                    let (code, meaning) = (reason.exit_code(), reason.meaning());
                    console.complain(&format!("agent: exit status {code}: {meaning}\n"));
                }
                let kept = outputs::close_result(&self.settings.directory, &report);
                (reason, kept)
            }
            Err(_) => {
                let error = engine::internal("agent failed while it closed the log".to_owned());
                let reason = Reason::Internal;
                let directory = &self.settings.directory;
                let kept = outputs::end_result(directory, self.opening, reason, error);
                (reason, kept)
            }
        };
        match kept {
            Err(error) if reason != Reason::Io => {
                console.complain(&format!("agent: {error}\n"));
                Exit::Reason(Reason::Io)
            }
            _ => Exit::Reason(reason),
        }
    }
}

/// Opens the run directory, the result that holds so far, and every output.
fn opened(order: Order<'_>, flags: &OutputFlags, console: &Console) -> Result<Opened, Refusal> {
    let io = |error: &dyn std::fmt::Display| Refusal::new(Reason::Io, error.to_string());
    if let Some(program) = console.environment().program() {
        process::set_watchdog(program, SANDBOX_WATCH);
    }
    let engine = Engine::start().map_err(|message| Refusal::new(Reason::Internal, message))?;
    console.environment().crash_if_asked("start");
    let directory = run_directory(&order, flags)?;
    let Order {
        jobs,
        catalog,
        tape,
        run_id,
        cwd,
    } = order;
    let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
    let opening = Opening {
        run_id: run_id.clone(),
        task: names.join(", "),
        model: jobs
            .first()
            .map(|job| job.model_name(&catalog))
            .unwrap_or_default(),
        started_at: clock::timestamp(),
        run_dir: Some(directory.path().display().to_string()),
    };
    let config_hash = write_run_document(jobs, &directory, &opening, console)?;
    outputs::open_result(&directory, opening.clone()).map_err(|error| io(&error))?;
    engine.answers_for(&directory, &opening);
    let redactor = console.redactor();
    let mut sinks = outputs::open(flags, Some(&directory), console).map_err(|error| {
        let refusal = io(&error);
        // The run directory may be what cannot be written; then nobody can.
        let _ = outputs::end_result(&directory, opening.clone(), Reason::Io, refusal.error());
        refusal
    })?;
    // First, so that all the others know when it cannot be kept.
    sinks.splice(0..0, CassetteSink::of(&tape));
    let recorder = Recorder::new(RecorderOptions {
        run_id: run_id.clone(),
        redactor: redactor.clone(),
        sinks,
        spill_dir: Some(directory.path().to_path_buf()),
        deltas: match flags.deltas {
            DeltaChoice::None => Deltas::None,
            DeltaChoice::Delta => Deltas::Delta,
            DeltaChoice::Full => Deltas::Full,
        },
    });
    let settings = Arc::new(RunSettings {
        run_id,
        directory,
        environment: Arc::new(console.environment().clone()),
        catalog,
        redactor,
        tape,
        chunks: chunks(flags, console),
        cwd: cwd.display().to_string(),
        config_hash,
        heartbeat: HEARTBEAT,
    });
    Ok(Opened {
        engine,
        settings,
        recorder,
        opening,
    })
}

/// The directory of the run: the one that is named, else a new one.
fn run_directory(order: &Order<'_>, flags: &OutputFlags) -> Result<RunDirectory, Refusal> {
    match (&flags.run_dir, order.jobs.first()) {
        (Some(path), _) => RunDirectory::at(path),
        (None, Some(job)) => RunDirectory::create(&job.reports_dir, &order.run_id, order.cwd),
        (None, None) => return Err(Refusal::new(Reason::NoInput, "no task is given".to_owned())),
    }
    .map_err(|error| match error.is_misuse() {
        true => Refusal::new(Reason::Usage, error.to_string()),
        false => Refusal::new(Reason::Io, error.to_string()),
    })
}

/// Writes `run.json` and gives the fingerprint of the resolved tasks.
fn write_run_document(
    jobs: &[Job],
    directory: &RunDirectory,
    opening: &Opening,
    console: &Console,
) -> Result<String, Refusal> {
    let resolved: Vec<_> = jobs.iter().map(|job| job.resolved.clone()).collect();
    let config_hash = task::config_hash(&json!(resolved));
    let document = json!({
        "schemaVersion": 1,
        "runId": opening.run_id,
        "agentVersion": env!("CARGO_PKG_VERSION"),
        "startedAt": opening.started_at,
        "configHash": config_hash,
        "tasks": resolved,
    });
    directory
        .write_run_document(&report::redact_document(document, &console.redactor()))
        .map_err(|error| Refusal::new(Reason::Io, error.to_string()))?;
    Ok(config_hash)
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
