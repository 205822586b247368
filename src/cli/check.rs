//! `agent check`: validates task files and shows what they resolve to.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::event::Reason;
use crate::message::Usage;
use crate::model;
use crate::report::{self, neutral};
use crate::session::Limits;
use crate::task::{self, Diagnostics, Job};

use super::console::Console;
use super::exit::Exit;
use super::flags::{OutputFormat, ParameterFlags, RunFlags};
use super::refusal;
use super::run;

/// Validates task files and shows what they resolve to; calls no model.
#[derive(Debug, Args)]
pub(super) struct CheckCommand {
    /// The task files.
    #[arg(required = true, value_name = "TASK.yaml")]
    tasks: Vec<PathBuf>,

    #[command(flatten)]
    parameters: ParameterFlags,

    #[command(flatten)]
    flags: RunFlags,
}

impl CheckCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let output = &self.flags.output;
        let wanted = self.flags.task.directory.as_ref();
        let cwd = match console.directory(wanted) {
            Ok(cwd) => cwd,
            Err(error) => {
                console.complain(&format!("agent: cannot work there: {error}\n"));
                return Exit::Reason(Reason::NoInput);
            }
        };
        let mut overrides = self.flags.task.overrides(cwd, console);
        self.parameters.add_to(&mut overrides);
        let as_json = output.output_format != OutputFormat::Text;
        match run::load_all(&self.tasks, &overrides) {
            Ok(mut jobs) => {
                run::choose_models(&mut jobs, &overrides, console);
                console.conceal(&jobs);
                describe_all(&jobs, as_json, console)
            }
            Err(problems) => {
                if as_json {
                    let document = problems_json(&problems);
                    let document = report::redact_document(document, &console.redactor());
                    console.print(&format!("{document:#}\n"));
                } else {
                    refusal::tell(&problems, output, console);
                }
                Exit::Reason(refusal::reason_of(&problems))
            }
        }
    }
}

fn problems_json(problems: &[Diagnostics]) -> Value {
    let list: Vec<_> = problems
        .iter()
        .flat_map(|diagnostics| &diagnostics.list)
        .collect();
    json!({ "ok": false, "problems": list })
}

/// Tells what each job would be. An unknown model or a script that
/// cannot be played is a problem too.
fn describe_all(jobs: &[Job], as_json: bool, console: &Console) -> Exit {
    let mut exit = Exit::Done;
    let mut rows = Vec::new();
    for job in jobs {
        let row = match usable(job) {
            Ok(cost) => {
                if !as_json {
                    console.print(&describe(job, cost));
                }
                json!({
                    "name": job.name,
                    "ok": true,
                    "worstCaseCostUsd": cost,
                    "warnings": job.warnings,
                    "task": job.resolved,
                })
            }
            Err((reason, message)) => {
                // What is wrong outweighs what is missing.
                if exit != Exit::Reason(Reason::BadTask) {
                    exit = Exit::Reason(reason);
                }
                if !as_json {
                    let message = neutral(&message);
                    console.complain(&format!("agent: {}: {message}\n", job.name));
                }
                json!({ "name": job.name, "ok": false, "error": message })
            }
        };
        rows.push(row);
    }
    if as_json {
        let document = json!({ "ok": exit == Exit::Done, "tasks": rows });
        let document = report::redact_document(document, &console.redactor());
        console.print(&format!("{document:#}\n"));
    }
    exit
}

fn describe(job: &Job, worst_cost: Option<f64>) -> String {
    let limits = &job.limits;
    let mut text = format!("{}: ok\n", job.name);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<12} {value}\n"));
    line(
        "model",
        job.settings
            .model
            .clone()
            .unwrap_or_else(|| "none named".to_owned()),
    );
    line("workspace", job.workspace.path.display().to_string());
    line(
        "permissions",
        format!(
            "{} ({} allow, {} ask, {} deny)",
            job.permissions.mode,
            job.permissions.allow.len(),
            job.permissions.ask.len(),
            job.permissions.deny.len()
        ),
    );
    line("tools", job.tools.join(", "));
    line("limits", describe_limits(limits));
    line(
        "worst case",
        worst_cost.map_or_else(
            || "unknown price: limits.max_tokens holds".to_owned(),
            |cost| format!("${cost:.2}"),
        ),
    );
    for warning in &job.warnings {
        line("warning", warning.message.clone());
    }
    text
}

fn describe_limits(limits: &Limits) -> String {
    format!(
        "{} turns, {} tool calls, {} tokens, ${:.2}, {} s wall clock, {} s idle, {} s a command",
        limits.max_turns,
        limits.max_tool_calls,
        limits.max_tokens,
        limits.max_cost_usd,
        limits.timeout.as_secs(),
        limits.idle_timeout.as_secs(),
        limits.command_timeout.as_secs()
    )
}

/// Finds the model, or the script that stands for one, and the worst cost.
fn usable(job: &Job) -> Result<Option<f64>, (Reason, String)> {
    let cost = worst_cost(job).map_err(|message| (Reason::BadTask, message))?;
    let model = job.settings.model.as_deref().unwrap_or_default();
    if let Some(path) = model.strip_prefix(task::SCRIPTED) {
        task::load_script(Path::new(path))
            .map_err(|problem| (problem.kind.reason(), problem.message))?;
    }
    Ok(cost)
}

/// What the job costs when it uses all that its limits allow; none when the
/// price is unknown.
fn worst_cost(job: &Job) -> Result<Option<f64>, String> {
    let Some(name) = &job.settings.model else {
        return Ok(None);
    };
    let model = model::resolve(name, job.settings.base_url.as_deref())
        .map_err(|error| error.to_string())?;
    let all_output = Usage {
        output: job.limits.max_tokens,
        ..Usage::default()
    };
    let cost = model.cost(&all_output).map(|cost| cost.total);
    Ok(cost.map(|cost| cost.min(job.limits.max_cost_usd)))
}
