//! `agent check`: validates task files and shows what they resolve to.

mod requires;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Value, json};

use crate::event::{Reason, Warning};
use crate::message::Usage;
use crate::model::{self, Catalog, Model, Source, UnknownModel};
use crate::report::{self, neutral};
use crate::run::Environment;
use crate::sandbox::{GitAccess, SandboxMode, TierChoice};
use crate::session::Limits;
use crate::task::{self, Diagnostics, Job, Overrides, ResponseJob};

use requires::Requirements;

use super::console::Console;
use super::exit::Exit;
use super::flags::{OutputFormat, ParameterFlags, ProvidersFlag, RunFlags, TaskFlags};
use super::refusal;
use super::run;

/// Validates task files and shows what they resolve to; calls no model.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 when they are right, 65 or 66 when one is wrong or needs a file \
                  that is missing, 78 when something is missing that one requires."
)]
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
        let overrides = match overrides(&self.flags.task, &self.parameters, console) {
            Ok(overrides) => overrides,
            Err(exit) => return exit,
        };
        let as_json = output.output_format != OutputFormat::Text;
        let loaded = run::load_all(&self.tasks, &overrides)
            .and_then(|jobs| with_models(jobs, &overrides, &self.flags.task.providers, console));
        match loaded {
            Ok((jobs, catalog)) => describe_all(&jobs, &catalog, output.output_format, console),
            Err(problems) => {
                if as_json {
                    let document = problems_json(&problems);
                    let document = report::redact_document(document, &console.redactor());
                    console.print_json(&format!("{document:#}\n"));
                } else {
                    refusal::tell(&problems, output, console);
                }
                Exit::Reason(refusal::reason_of(&problems))
            }
        }
    }
}

/// The flags, for commands that run nothing.
///
/// # Errors
/// When there is no such directory; that is told.
pub(super) fn overrides(
    flags: &TaskFlags,
    parameters: &ParameterFlags,
    console: &Console,
) -> Result<Overrides, Exit> {
    let cwd = console.directory(flags.directory.as_ref());
    let cwd = cwd.map_err(|error| {
        console.complain(&format!("agent: cannot work there: {error}\n"));
        Exit::Reason(Reason::NoInput)
    })?;
    let mut overrides = flags.overrides(cwd, console);
    parameters.add_to(&mut overrides);
    Ok(overrides)
}

/// The jobs with the models that a run would give them, and what it would tell
/// of those.
///
/// # Errors
/// Everything that is wrong with the file of providers.
pub(super) fn with_models(
    mut jobs: Vec<Job>,
    overrides: &Overrides,
    providers: &ProvidersFlag,
    console: &Console,
) -> Result<(Vec<Job>, Catalog), Vec<Diagnostics>> {
    let catalog = run::choose_models(&mut jobs, overrides, providers, console)
        .map_err(|problems| vec![problems])?;
    for job in &mut jobs {
        let left_out = crate::run::models_left_out(job, console.environment(), &catalog);
        job.warnings.extend(left_out);
    }
    Ok((jobs, catalog))
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
fn describe_all(jobs: &[Job], catalog: &Catalog, format: OutputFormat, console: &Console) -> Exit {
    let mut exit = Exit::Done;
    let mut rows = Vec::new();
    let as_json = format != OutputFormat::Text;
    let requirements = match requires::look_for(jobs, console.environment()) {
        Ok(requirements) => requirements,
        Err(message) => {
            console.complain(&format!("agent: {message}\n"));
            return Exit::Reason(Reason::Internal);
        }
    };
    for (job, requires) in jobs.iter().zip(&requirements) {
        let row = match Usable::of(job, catalog, console.environment()) {
            Ok(usable) => {
                if exit == Exit::Done && !requires.are_met() {
                    exit = Exit::Reason(Reason::Config);
                }
                if !as_json {
                    let text = describe(job, &usable, requires);
                    console.print_text(&text);
                }
                json!({
                    "name": job.name,
                    "ok": requires.are_met(),
                    "requires": requires.json(),
                    "model": usable.model.as_ref().map(model_json),
                    "worstCaseCostUsd": usable.worst_cost,
                    "warnings": warnings(job, requires).collect::<Vec<_>>(),
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
        console.print_json(&format!("{document:#}\n"));
    }
    exit
}

fn model_json(model: &Model) -> Value {
    json!({
        "id": model.full_id(),
        "source": model.source,
        "api": model.api.name(),
        "baseUrl": model::without_login(&model.base_url),
        "contextWindow": model.context_window,
        "maxOutputTokens": model.max_output_tokens,
        "limitsKnown": model.limits_known,
        "priceKnown": model.price.is_some(),
    })
}

fn describe(job: &Job, usable: &Usable, requires: &Requirements) -> String {
    let limits = &job.limits;
    let verdict = match requires.are_met() {
        true => "ok",
        false => "cannot run here, because something that it requires is missing",
    };
    let mut text = format!("{}: {verdict}\n", job.name);
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name:<12} {value}\n"));
    line(
        "model",
        job.settings
            .model
            .clone()
            .unwrap_or_else(|| "none named".to_owned()),
    );
    if let Some(model) = usable
        .model
        .as_ref()
        .filter(|one| one.source != Source::Script)
    {
        let base_url = model::without_login(&model.base_url);
        line("endpoint", format!("{}, {base_url}", model.api.name()));
        line("window", describe_window(model));
        line("price", describe_price(model));
    }
    if !job.settings.fallback_models.is_empty() {
        line("fallback", job.settings.fallback_models.join(", "));
    }
    if let Some(small) = &job.settings.small_model {
        line("summaries", small.clone());
    }
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
    line("sandbox", describe_sandbox(job));
    line("tools", job.tools.join(", "));
    if let Some(response) = &job.response {
        line("response", describe_response(response));
    }
    line("limits", describe_limits(limits));
    line("patience", describe_patience(job));
    line(
        "worst case",
        usable.worst_cost.map_or_else(
            || "unknown price: limits.max_tokens holds".to_owned(),
            |cost| format!("${cost:.2}"),
        ),
    );
    for (name, value) in requires.lines() {
        line(name, value);
    }
    for warning in warnings(job, requires) {
        line("warning", warning.message.clone());
    }
    text
}

/// What the run would warn of, and what this machine does not hold.
fn warnings<'a>(job: &'a Job, requires: &'a Requirements) -> impl Iterator<Item = &'a Warning> {
    job.warnings.iter().chain(&requires.warnings)
}

fn describe_sandbox(job: &Job) -> String {
    let options = &job.sandbox;
    if !job.may_start_commands() {
        return "not needed: nothing in the task allows a command".to_owned();
    }
    let mode = match options.mode {
        SandboxMode::Off => return "off: commands may do what this program may".to_owned(),
        SandboxMode::Require => "required",
        SandboxMode::Prefer => "where it works",
    };
    let tier = match options.tier {
        TierChoice::Auto => "strongest tier",
        TierChoice::Namespaces => "namespaces",
        TierChoice::Landlock => "landlock",
    };
    let git = match options.git {
        GitAccess::ReadOnly => "read-only",
        GitAccess::Writable => "writable",
    };
    let network = task::network_name(&options.network);
    format!("{mode}, {tier}, network {network}, .git {git}")
}

fn describe_window(model: &Model) -> String {
    let assumed = if model.limits_known { "" } else { ", assumed" };
    format!(
        "{} tokens, {} a reply{assumed}",
        model.context_window, model.max_output_tokens
    )
}

fn describe_price(model: &Model) -> String {
    match &model.price {
        None => "unknown".to_owned(),
        Some(price) => format!(
            "${} in, ${} out, ${} cached, per million tokens{}",
            price.input,
            price.output,
            price.cache_read,
            if price.tiers.is_empty() {
                ""
            } else {
                "; more for long prompts"
            }
        ),
    }
}

fn describe_response(response: &ResponseJob) -> String {
    let repairs = response.spec.repairs;
    let mut text = format!("JSON by schema, at most {repairs} repairs");
    if let Some(file) = &response.file {
        text.push_str(&format!(", to {}", file.display()));
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

/// How long a silent provider is waited for.
fn describe_patience(job: &Job) -> String {
    let patience = job.settings.patience;
    format!(
        "{} s to connect, {} s for an answer, {} s within it",
        patience.connect.as_secs_f64(),
        patience.response.as_secs_f64(),
        patience.stream.as_secs_f64()
    )
}

/// A job that can run, as far as that can be told.
pub(super) struct Usable {
    model: Option<Model>,
    /// What the job costs when it uses all that its limits allow, at the price
    /// of its dearest model; none when a price is unknown.
    worst_cost: Option<f64>,
}

impl Usable {
    /// Finds the models, or the scripts that stand for them, and the worst cost.
    ///
    /// # Errors
    /// When the task names a model or a script that is none.
    pub(super) fn of(
        job: &Job,
        catalog: &Catalog,
        environment: &Environment,
    ) -> Result<Self, (Reason, String)> {
        let unknown = |error: UnknownModel| (Reason::BadTask, error.to_string());
        let model = crate::run::model_of(job, environment, catalog).map_err(unknown)?;
        let all_output = Usage {
            output: job.limits.max_tokens,
            ..Usage::default()
        };
        let cost = |model: &Model| model.cost(&all_output).map(|cost| cost.total);
        let mut worst = model.as_ref().and_then(cost);
        for name in others(job) {
            let other = catalog.resolve(name, None).map_err(unknown)?;
            let both = worst.zip(cost(&other));
            worst = both.map(|(worst, cost)| f64::max(worst, cost));
        }
        let names = job.settings.model.iter().map(String::as_str);
        let scripts = names.chain(others(job));
        for path in scripts.filter_map(|name| name.strip_prefix(task::SCRIPTED)) {
            task::load_script(Path::new(path))
                .map_err(|problem| (problem.kind.reason(), problem.message))?;
        }
        Ok(Self {
            model,
            worst_cost: worst.map(|cost| cost.min(job.limits.max_cost_usd)),
        })
    }
}

/// Every model that the job may ask besides its own.
fn others(job: &Job) -> impl Iterator<Item = &str> {
    let settings = &job.settings;
    let others = settings.fallback_models.iter().chain(&settings.small_model);
    others.map(String::as_str)
}
