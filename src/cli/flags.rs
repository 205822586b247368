//! The flags that `agent run`, `agent check` and `agent -p` share.

use std::path::{Path, PathBuf};

use clap::{Args, CommandFactory as _, ValueEnum};

use crate::event::{Reason, Warning};
use crate::model::Catalog;
use crate::report::neutral;
use crate::run;
use crate::task::{self, Diagnostics, Overrides};

use super::cassette::CassetteFlags;
use super::console::Console;
use super::exit::Exit;
use super::refusal;

/// Flags that change what a task says, and where output goes.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct RunFlags {
    #[command(flatten)]
    pub(super) task: TaskFlags,

    #[command(flatten)]
    pub(super) output: OutputFlags,

    #[command(flatten)]
    pub(super) cassette: CassetteFlags,
}

/// Flags that change what a task says.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Task")]
pub(super) struct TaskFlags {
    /// The model: provider/id, scripted/<file>, or openai-chat/<id> with --base-url.
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,

    /// Takes over while the model is overloaded; may be repeated, or a list
    /// with commas.
    #[arg(long = "fallback-model", value_name = "MODEL", value_delimiter = ',')]
    pub(super) fallback_models: Vec<String>,

    /// Replaces the provider's base URL.
    #[arg(long, value_name = "URL")]
    pub(super) base_url: Option<String>,

    #[command(flatten)]
    pub(super) providers: ProvidersFlag,

    /// How much the model thinks: off, minimal, low, medium, high, xhigh, max.
    #[arg(long, value_name = "LEVEL")]
    pub(super) thinking: Option<String>,

    /// Model calls at most.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(super) max_turns: Option<u32>,

    /// US dollars at most.
    #[arg(long, value_name = "USD", allow_negative_numbers = true)]
    pub(super) max_cost_usd: Option<f64>,

    /// Wall clock at most, as 90s or 45m.
    #[arg(long, value_name = "DURATION")]
    pub(super) timeout: Option<String>,

    /// What is allowed without a rule: read_only, accept_edits, workspace, bypass.
    #[arg(long, value_name = "MODE")]
    pub(super) permission_mode: Option<String>,

    /// Whether commands are kept in: require (unless written otherwise), prefer, off.
    #[arg(long, value_name = "MODE")]
    pub(super) sandbox: Option<String>,

    /// Allows calls, as 'Bash(cargo test:*)'; may be repeated.
    #[arg(long, value_name = "RULE")]
    pub(super) allow: Vec<String>,

    /// Denies calls, as 'Edit(.github/**)'; may be repeated.
    #[arg(long, value_name = "RULE")]
    pub(super) deny: Vec<String>,

    /// Lets a task use permission mode bypass.
    #[arg(long)]
    pub(super) allow_bypass: bool,

    /// Makes the answer a JSON document that fits this JSON Schema: the schema
    /// itself when it begins with {, else a file, as FILE or @FILE.
    #[arg(long, value_name = "SCHEMA")]
    pub(super) json_schema: Option<String>,

    /// Adds text to the end of the system prompt.
    #[arg(long, value_name = "TEXT")]
    pub(super) append_system_prompt: Option<String>,

    /// Sets a value of the task, as limits.max_tokens=90000 or
    /// load_repo_config=[agents_md,skills]; may be repeated.
    #[arg(long = "set", value_name = "PATH=VALUE", value_parser = pair)]
    pub(super) set: Vec<(String, String)>,

    /// Keeps the conversation in memory only.
    #[arg(long, conflicts_with_all = ["resume", "continue_newest", "fork_session"])]
    pub(super) no_session: bool,

    /// Goes on with this session: its id, the beginning of it, its file, or its
    /// run directory.
    #[arg(long, value_name = "SESSION", conflicts_with = "continue_newest")]
    pub(super) resume: Option<String>,

    /// Goes on with the newest session of the workspace.
    #[arg(short = 'c', long = "continue")]
    pub(super) continue_newest: bool,

    /// Leaves the session that it goes on with as it is, and has a new one.
    #[arg(long)]
    pub(super) fork_session: bool,

    /// Works in this directory.
    #[arg(short = 'C', value_name = "DIR")]
    pub(super) directory: Option<PathBuf>,
}

/// The flag that names endpoints of one's own.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct ProvidersFlag {
    /// The file of providers, instead of providers.yaml in $AGENT_DIR, or in
    /// agent below $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE")]
    providers: Option<PathBuf>,
}

impl ProvidersFlag {
    /// The catalog of this machine, whose secrets are concealed from now on.
    ///
    /// # Errors
    /// Everything that is wrong with the file.
    pub(super) fn catalog(
        &self,
        cwd: &Path,
        console: &Console,
    ) -> Result<(Catalog, Option<Warning>), Diagnostics> {
        let found = run::catalog(console.environment(), self.providers.as_deref(), cwd)?;
        if found.0.file().is_some() {
            console.conceal(&[], &found.0);
        }
        Ok(found)
    }

    /// The same for the directory that one is in; what is wrong is told.
    ///
    /// # Errors
    /// How the command ends.
    pub(super) fn catalog_here(&self, console: &Console) -> Result<Catalog, Exit> {
        let cwd = console.directory(None).map_err(|error| {
            console.complain(&format!("agent: cannot work here: {error}\n"));
            Exit::Reason(Reason::NoInput)
        })?;
        let found = self.catalog(&cwd, console);
        let (catalog, warning) =
            found.map_err(|problems| refusal::refuse_file(&problems, console))?;
        if let Some(warning) = warning {
            console.complain(&format!("agent: {}\n", neutral(&warning.message)));
        }
        Ok(catalog)
    }
}

/// Flags that say where output goes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Output")]
pub(super) struct OutputFlags {
    /// What standard output gets: the answer, one result document, or the event log.
    /// On a terminal, and where CI is set and it is no file, without escape
    /// sequences and commands to the CI system.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(super) output_format: OutputFormat,

    /// Also writes the answer to this file.
    #[arg(short = 'o', long, value_name = "FILE")]
    pub(super) output_last_message: Option<PathBuf>,

    /// Also writes the event log to this file.
    #[arg(long, value_name = "FILE")]
    pub(super) events: Option<PathBuf>,

    /// Which pieces of streaming replies the event log holds.
    #[arg(long, value_name = "WHICH", value_enum, default_value_t)]
    pub(super) deltas: DeltaChoice,

    /// The run directory; default .agent/runs/<run id>.
    #[arg(long, value_name = "DIR")]
    pub(super) run_dir: Option<PathBuf>,

    /// No progress on standard error.
    #[arg(long)]
    pub(super) quiet: bool,

    /// Colour on standard error.
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    pub(super) color: ColorChoice,
}

/// What standard output gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// The final answer.
    #[default]
    Text,
    /// The result document.
    Json,
    /// The event log, as it happens.
    Jsonl,
}

/// Which pieces of streaming replies the event log holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum DeltaChoice {
    /// None: each reply is in message:complete.
    #[default]
    None,
    /// What is new in each piece.
    Delta,
    /// What is new and the reply so far.
    Full,
}

/// Colour on standard error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ColorChoice {
    /// On a terminal that can show it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Parameters of task files.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Parameters")]
pub(super) struct ParameterFlags {
    /// A parameter of the task; may be repeated.
    #[arg(long = "param", value_name = "KEY=VALUE", value_parser = pair)]
    pub(super) params: Vec<(String, String)>,

    /// Parameters from a YAML or JSON file.
    #[arg(long, value_name = "FILE")]
    pub(super) params_file: Option<PathBuf>,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it as KEY=VALUE".to_owned()),
    }
}

/// A file that is named as in a prompt, without its `@`.
pub(super) fn mentioned(text: &str) -> Result<String, String> {
    match text.strip_prefix('@') {
        Some(path) if !path.is_empty() && !path.contains(['"', '\n']) => Ok(path.to_owned()),
        Some(_) => Err("this cannot be the name of a file".to_owned()),
        None => Err(match near_command(text) {
            Some(name) => format!("this is no command; did you mean `{name}`?"),
            None => "this is no command; files are named as @PATH".to_owned(),
        }),
    }
}

/// The command that `word` is a misspelling of.
fn near_command(word: &str) -> Option<String> {
    let cli = super::Cli::command();
    let names = cli.get_subcommands().map(clap::Command::get_name);
    task::nearest(word, names).map(str::to_owned)
}

impl OutputFlags {
    /// The same with files below `directory`, the one of `-C`.
    pub(super) fn within(&self, directory: &Path) -> Self {
        let place = |path: &Option<PathBuf>| path.as_ref().map(|path| directory.join(path));
        Self {
            output_last_message: place(&self.output_last_message),
            events: place(&self.events),
            run_dir: place(&self.run_dir),
            ..self.clone()
        }
    }

    /// The files and directories that are written.
    pub(super) fn written(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let Self {
            output_last_message,
            events,
            run_dir,
            ..
        } = self;
        [output_last_message, events, run_dir].into_iter().flatten()
    }
}

impl TaskFlags {
    /// The flags as the task module takes them.
    pub(super) fn overrides(&self, cwd: PathBuf, console: &Console) -> Overrides {
        let environment = console.environment();
        Overrides {
            model: self.model.clone(),
            fallback_models: self.fallback_models.clone(),
            base_url: self.base_url.clone(),
            thinking: self.thinking.clone(),
            max_turns: self.max_turns,
            max_cost_usd: self.max_cost_usd,
            timeout: self.timeout.clone(),
            permission_mode: self.permission_mode.clone(),
            sandbox: self.sandbox.clone(),
            allow: self.allow.clone(),
            deny: self.deny.clone(),
            json_schema: self.json_schema.clone(),
            append_system_prompt: self.append_system_prompt.clone(),
            allow_bypass: self.allow_bypass,
            no_session: self.no_session,
            resume: match self.continue_newest {
                true => Some(task::NEWEST.to_owned()),
                false => self.resume.clone(),
            },
            fork_session: self.fork_session,
            env: environment.variables().clone(),
            home: environment.home(),
            params: Vec::new(),
            params_file: None,
            set: self.set.clone(),
            reports_dir: None,
            cwd,
        }
    }
}

impl ParameterFlags {
    /// Adds the parameters to the other overrides.
    pub(super) fn add_to(&self, overrides: &mut Overrides) {
        overrides.params.clone_from(&self.params);
        overrides.params_file.clone_from(&self.params_file);
    }
}
