//! `agent doctor`: whether and how a task, or a prompt, can run on this machine.
//!
//! It looks where a run would look and in the same ways. It asks nobody over the
//! network, leaves nothing behind, and waits for no program longer than
//! [`TIMEOUT`], or as a run would for those that the task requires.

mod finding;
mod machine;
mod model;
mod place;
mod programs;
mod requires;
mod sandbox;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::runtime::Builder;

use crate::event::Reason;
use crate::model::Catalog;
use crate::report::{self, neutral_json};
use crate::run::{self, Environment};
use crate::task::{self, Diagnostics, Job, Overrides};

use super::check::{self, Usable};
use super::console::Console;
use super::exit::Exit;
use super::flags::{ColorChoice, OutputFormat, ParameterFlags, RunFlags};
use super::refusal;

pub(super) use finding::schema;

use finding::{DoctorDocument, Finding};

/// How long a program may take to say what it is.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Checks whether a task, or a prompt, can run on this machine, and how; sends
/// nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 when it can run, 78 when it cannot, 65 or 66 when the task \
                        itself is wrong or missing."
)]
pub(super) struct DoctorCommand {
    /// The task file; without one a prompt of the command line is looked at.
    #[arg(value_name = "TASK.yaml")]
    task: Option<PathBuf>,

    #[command(flatten)]
    parameters: ParameterFlags,

    #[command(flatten)]
    flags: RunFlags,
}

/// What is looked at.
struct Patient<'a> {
    job: &'a Job,
    catalog: &'a Catalog,
    environment: &'a Environment,
    /// Where the run directory is to be, when it is named.
    run_dir: Option<PathBuf>,
    /// Whether somebody asked for this very job.
    is_task: bool,
}

impl DoctorCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let overrides = match check::overrides(&self.flags.task, &self.parameters, console) {
            Ok(overrides) => overrides,
            Err(exit) => return exit,
        };
        let (job, catalog) = match self.prepare(&overrides, console) {
            Ok(prepared) => prepared,
            Err(problems) => return self.refuse(&problems, console),
        };
        let patient = Patient {
            job: &job,
            catalog: &catalog,
            environment: console.environment(),
            run_dir: self.flags.output.within(&overrides.cwd).run_dir,
            is_task: self.task.is_some(),
        };
        let (task, mut exit) = about_task(&patient);
        let mut findings = vec![task];
        match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => findings.extend(runtime.block_on(examine(&patient, console))),
            Err(error) => findings.push(Finding::error(
                "runtime",
                format!("it cannot be started: {error}"),
                "raise the limits on open files and processes",
            )),
        }
        if exit == Exit::Done && findings.iter().any(Finding::is_error) {
            exit = Exit::Reason(Reason::Config);
        }
        let name = self.task.is_some().then(|| job.name.clone());
        self.print(&DoctorDocument::new(name, findings), console);
        exit
    }

    /// The job, as a run would have it.
    fn prepare(
        &self,
        overrides: &Overrides,
        console: &Console,
    ) -> Result<(Job, Catalog), Vec<Diagnostics>> {
        let jobs = match &self.task {
            Some(task) => run_jobs(task, overrides)?,
            None => vec![task::implicit("prompt", overrides).map_err(|problems| vec![problems])?],
        };
        let (mut jobs, catalog) =
            check::with_models(jobs, overrides, &self.flags.task.providers, console)?;
        let job = jobs.pop().ok_or_else(Vec::new)?;
        Ok((job, catalog))
    }

    /// Tells what is wrong with the task file, or a file that it needs.
    fn refuse(&self, problems: &[Diagnostics], console: &Console) -> Exit {
        if self.flags.output.output_format == OutputFormat::Text {
            refusal::tell(problems, &self.flags.output, console);
        } else {
            let findings = problems.iter().flat_map(|diagnostics| &diagnostics.list);
            let findings = findings.map(|problem| {
                let (line, column) = (problem.line, problem.column);
                let found = format!("{}:{line}:{column}: {}", problem.file, problem.message);
                let advice = "`agent check` shows the place".to_owned();
                Finding::error("task", found, advice)
            });
            self.print(&DoctorDocument::new(None, findings.collect()), console);
        }
        Exit::Reason(refusal::reason_of(problems))
    }

    fn print(&self, document: &DoctorDocument, console: &Console) {
        let output = &self.flags.output;
        let redactor = console.redactor();
        if output.output_format == OutputFormat::Text {
            let mut style = console.style(output.color);
            let forced = output.color == ColorChoice::Always;
            style.color &= forced || console.stdout_width().is_some();
            console.print(&document.text(style, &redactor));
            return;
        }
        let value = serde_json::to_value(document).unwrap_or(Value::Null);
        let value = report::redact_document(value, &redactor);
        let text = format!("{value:#}\n");
        console.print(&match console.stdout_is_watched() {
            true => neutral_json(&text).into_owned(),
            false => text,
        });
    }
}

fn run_jobs(task: &PathBuf, overrides: &Overrides) -> Result<Vec<Job>, Vec<Diagnostics>> {
    super::run::load_all(std::slice::from_ref(task), overrides)
}

/// What `agent check` says of the task.
fn about_task(patient: &Patient<'_>) -> (Finding, Exit) {
    let job = patient.job;
    let usable = Usable::of(job, patient.catalog, patient.environment);
    if let Err((reason, message)) = usable {
        let advice = match patient.is_task {
            true => "correct the task file or the file that it names",
            false => "name another model with --model",
        };
        let finding = Finding::error("task", message, advice);
        return (finding, Exit::Reason(reason));
    }
    let name = match (&job.file, patient.is_task) {
        (Some(file), true) => format!("{}, {}", job.name, file.display()),
        _ => "none named; this holds for a prompt of the command line".to_owned(),
    };
    let warnings: Vec<&str> = job
        .warnings
        .iter()
        .map(|warning| warning.message.as_str())
        .collect();
    let finding = match warnings.is_empty() {
        true => Finding::ok("task", name),
        false => Finding::warning("task", name, warnings.join("; ")),
    };
    (finding, Exit::Done)
}

/// Everything else, in the order in which it is told.
async fn examine(patient: &Patient<'_>, console: &Console) -> Vec<Finding> {
    let mut findings = vec![
        machine::kernel(),
        model::credentials(patient),
        model::model(patient),
    ];
    findings.extend(model::price(patient));
    findings.push(model::proxy(patient));
    findings.push(model::certificates(patient));
    let (sandbox, programs) = tokio::join!(sandbox::examine(patient), programs::examine(patient));
    findings.extend(sandbox);
    findings.extend(programs);
    findings.extend(requires::examine(patient).await);
    findings.extend(place::examine(patient));
    findings.push(machine::clock(&crate::clock::date()));
    findings.push(machine::core_dumps());
    findings.push(machine::terminal(patient.environment, console));
    findings
}

/// The environment of the job's commands for programs that are asked what they are:
/// none of those is the workspace's.
fn trusted_env(patient: &Patient<'_>) -> Vec<(String, String)> {
    run::trusted_env(patient.job, patient.environment)
}

/// The environment of the job's commands.
fn command_env(patient: &Patient<'_>) -> Vec<(String, String)> {
    run::command_env(patient.job, patient.environment)
}
