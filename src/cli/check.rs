//! `agent check`: validates task files and shows what they resolve to.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use crate::event::Reason;
use crate::message::Usage;
use crate::model;
use crate::report;
use crate::session::Limits;
use crate::task::{Diagnostics, Job};

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
            Ok(jobs) => {
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

/// Tells what each job would be. An unknown model is a problem too.
fn describe_all(jobs: &[Job], as_json: bool, console: &Console) -> Exit {
    let mut exit = Exit::Done;
    let mut rows = Vec::new();
    for job in jobs {
        let row = match worst_cost(job) {
            Ok(cost) => json!({
                "name": job.name,
                "ok": true,
                "worstCaseCostUsd": cost,
                "warnings": job.warnings,
                "task": job.resolved,
            }),
            Err(message) => {
                exit = Exit::Reason(Reason::BadTask);
                json!({ "name": job.name, "ok": false, "error": message })
            }
        };
        if !as_json {
            match worst_cost(job) {
                Ok(cost) => console.print(&describe(job, cost)),
                Err(message) => console.complain(&format!("agent: {}: {message}\n", job.name)),
            }
        }
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
