//! `agent permissions check`: what policy says of a call, and why.

use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Deserialize;
use serde_json::Value;

use crate::event::Reason;
use crate::model::Catalog;
use crate::policy::{
    Decision, Enforcement, Explanation, Mode, Permissions, Policy, Rule, Surroundings,
};
use crate::report::{neutral_text, redact_document};
use crate::sandbox::SandboxMode;
use crate::task;
use crate::tool::{Place, Toolset};

mod answer;
mod call;

use call::Call;

use super::console::Console;
use super::exit::Exit;
use super::flags::{OutputFormat, TaskFlags};
use super::refusal;

/// A question is at most this long.
const LINE_BYTES_MAX: usize = 1024 * 1024;

/// Explains permission decisions.
#[derive(Debug, Args)]
pub(super) struct PermissionsCommand {
    #[command(subcommand)]
    command: PermissionsSubcommand,
}

#[derive(Debug, Subcommand)]
enum PermissionsSubcommand {
    /// Decides about one call, or with --jsonl about a stream of them. Exits 0
    /// when the call is allowed, 3 when not.
    ///
    /// The answer is that of a run on a machine where a sandbox works; with
    /// `sandbox.mode: off` in the task, that of a run without one.
    Check(CheckCommand),
}

/// The calls to decide about.
#[derive(Debug, Args)]
struct CheckCommand {
    /// Takes mode and rules from this task file.
    #[arg(long, value_name = "TASK.yaml")]
    task: Option<PathBuf>,

    /// What is allowed without a rule: read_only, accept_edits, workspace, bypass.
    #[arg(long)]
    mode: Option<Mode>,

    /// Allows calls; may be repeated.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,

    /// Wants somebody to be asked about calls; may be repeated.
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,

    /// Denies calls; may be repeated.
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,

    /// The tool that is called.
    #[arg(long, required_unless_present = "jsonl")]
    tool: Option<String>,

    /// Its arguments as a JSON object.
    #[arg(long, value_name = "JSON", required_unless_present = "jsonl")]
    input: Option<String>,

    /// Reads calls from standard input, one {"id","policy":{"allow","ask","deny"},"tool","input"} a line.
    #[arg(long, conflicts_with_all = ["tool", "input"])]
    jsonl: bool,

    /// The explanation as text or as JSON.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    output_format: OutputFormat,

    /// The workspace.
    #[arg(short = 'C', value_name = "DIR")]
    directory: Option<PathBuf>,
}

/// One line of the stream. Whatever else is in it is its author's own.
#[derive(Debug, Deserialize)]
struct Question {
    id: Value,
    #[serde(default)]
    policy: QuestionPolicy,
    tool: String,
    input: Value,
}

/// The rules of one question, besides those of the command line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionPolicy {
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
}

/// What all decisions of one command share.
struct Bench {
    permissions: Permissions,
    workspace: PathBuf,
    home: Option<PathBuf>,
    protected: Vec<PathBuf>,
    keys: Vec<PathBuf>,
    tools: Toolset,
    /// Whether commands have a sandbox where one works.
    sandboxed: bool,
    /// Whether a command could start whatever is allowed.
    has_hooks: bool,
}

impl PermissionsCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let PermissionsSubcommand::Check(command) = &self.command;
        let bench = match command.bench(console) {
            Ok(bench) => bench,
            Err((reason, message)) => {
                console.complain(&message);
                return Exit::Reason(reason);
            }
        };
        if command.jsonl {
            return command.stream(&bench, console);
        }
        command.one(&bench, console)
    }
}

impl CheckCommand {
    fn bench(&self, console: &Console) -> Result<Bench, (Reason, String)> {
        let cwd = console
            .directory(self.directory.as_ref())
            .map_err(|error| {
                (
                    Reason::NoInput,
                    format!("agent: cannot work there: {error}\n"),
                )
            })?;
        let mut workspace = cwd.clone();
        let mut permissions = Permissions::default();
        let mut protected = Vec::new();
        let mut sandboxed = true;
        let mut has_hooks = false;
        if let Some(path) = &self.task {
            let flags = TaskFlags {
                allow_bypass: true,
                ..TaskFlags::default()
            };
            let overrides = flags.overrides(cwd, console);
            let job = task::load(path, &overrides).map_err(|problems| {
                let text = neutral_text(&problems.render(false));
                (refusal::reason_of(&[problems]), text)
            })?;
            console.conceal(std::slice::from_ref(&job), &Catalog::default());
            permissions = job.permissions;
            workspace = job.workspace.path;
            has_hooks = !job.hooks.is_empty();
            sandboxed = job.sandbox.mode != SandboxMode::Off;
            protected.extend(job.file);
        }
        if let Some(mode) = self.mode {
            permissions.mode = mode;
        }
        let malformed =
            |error: crate::policy::RuleError| (Reason::Usage, format!("agent: {error}\n"));
        add_rules(&mut permissions.allow, &self.allow, "--allow").map_err(malformed)?;
        add_rules(&mut permissions.ask, &self.ask, "--ask").map_err(malformed)?;
        add_rules(&mut permissions.deny, &self.deny, "--deny").map_err(malformed)?;
        let names: Vec<String> = Toolset::BUILT_IN.iter().map(ToString::to_string).collect();
        Ok(Bench {
            permissions,
            workspace,
            home: console.environment().home(),
            protected,
            keys: console.environment().key_files().collect(),
            tools: Toolset::built_in(&names),
            sandboxed,
            has_hooks,
        })
    }

    fn one(&self, bench: &Bench, console: &Console) -> Exit {
        let (Some(tool), Some(input)) = (&self.tool, &self.input) else {
            return Exit::Reason(Reason::Usage);
        };
        let input: Value = match serde_json::from_str(input) {
            Ok(input) => input,
            Err(error) => {
                console.complain(&format!("agent: --input is not JSON: {error}\n"));
                return Exit::Reason(Reason::Usage);
            }
        };
        let explanation = match bench.explain(tool, &input) {
            Ok(explanation) => explanation,
            Err(message) => {
                console.complain(&format!("agent: {message}\n"));
                return Exit::Reason(Reason::Usage);
            }
        };
        let redactor = console.redactor();
        if self.output_format == OutputFormat::Text {
            console.print_text(&answer::text(&explanation));
        } else {
            let document = redact_document(answer::document(&explanation), &redactor);
            console.print_json(&format!("{document}\n"));
        }
        if explanation.decision.is_allowed() {
            Exit::Done
        } else {
            Exit::Refused
        }
    }

    /// Answers every line. A question that cannot be understood is denied.
    fn stream(&self, bench: &Bench, console: &Console) -> Exit {
        let mut stdout = io::BufWriter::new(io::stdout().lock());
        let mut stdin = io::stdin().lock();
        let mut line = Vec::new();
        let redactor = console.redactor();
        loop {
            match next_line(&mut stdin, &mut line) {
                Ok(Next::End) => return Exit::Done,
                Ok(Next::Line) if line.trim_ascii().is_empty() => continue,
                Ok(Next::Line) => {}
                Err(error) => {
                    console.complain(&format!("agent: cannot read standard input: {error}\n"));
                    return Exit::Reason(Reason::Io);
                }
            }
            let answer = redact_document(bench.answer_line(&line), &redactor);
            if let Err(error) = writeln!(stdout, "{answer}").and_then(|()| stdout.flush()) {
                if error.kind() == io::ErrorKind::BrokenPipe {
                    return Exit::Done;
                }
                console.complain(&format!(
                    "agent: cannot write to standard output: {error}\n"
                ));
                return Exit::Reason(Reason::Io);
            }
        }
    }
}

/// What standard input had.
enum Next {
    Line,
    End,
}

/// Reads a line into `line`. Of one that is too long it keeps one byte more
/// than is allowed, and passes over the rest.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Next> {
    line.clear();
    let most = LINE_BYTES_MAX + 1;
    let read = input.by_ref().take(most as u64).read_until(b'\n', line)?;
    let mut more = read == most && !line.ends_with(b"\n");
    while more {
        let piece = input.fill_buf()?;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(piece.len(), |at| at + 1);
        more = end.is_none() && used > 0;
        input.consume(used);
    }
    Ok(if read == 0 { Next::End } else { Next::Line })
}

impl Bench {
    fn policy(&self, permissions: Permissions) -> Policy {
        // As a run: without a command that could start it makes no sandbox.
        let starts = self.has_hooks || permissions.may_start_commands();
        let sandbox = match self.sandboxed && starts {
            true => Enforcement::Enforced,
            false => Enforcement::NotEnforced,
        };
        Policy::new(
            permissions,
            Surroundings {
                workspace: self.workspace.clone(),
                home: self.home.clone(),
                protected: self.protected.clone(),
                keys: self.keys.clone(),
                sandbox,
                // Which tier a run takes, and where its files are, is not known here.
                ..Surroundings::default()
            },
        )
    }

    fn call(&self, tool: &str, input: &Value) -> Result<Call, String> {
        let place = Place {
            workspace: self.workspace.clone(),
            home: self.home.clone(),
        };
        call::read(tool, input, &self.tools, &place)
    }

    fn explain(&self, tool: &str, input: &Value) -> Result<Explanation, String> {
        let call = self.call(tool, input)?;
        let policy = self.policy(self.permissions.clone());
        Ok(policy.explain(&call.tool, &call.accesses))
    }

    fn answer_line(&self, line: &[u8]) -> Value {
        let refuse = |why: String| {
            let reason = format!("the question cannot be understood: {why}");
            answer::refusal(&id_of(line), &reason)
        };
        if line.len() > LINE_BYTES_MAX {
            return refuse(format!("it is over {LINE_BYTES_MAX} bytes"));
        }
        let question: Question = match serde_json::from_slice(line) {
            Ok(question) => question,
            Err(error) => return refuse(error.to_string()),
        };
        match self.answer(&question) {
            Ok(decision) => answer::line(&question.id, &decision),
            Err(reason) => answer::refusal(&question.id, &reason),
        }
    }

    fn answer(&self, question: &Question) -> Result<Decision, String> {
        let mut permissions = self.permissions.clone();
        let QuestionPolicy {
            mode,
            allow,
            ask,
            deny,
        } = &question.policy;
        permissions.mode = mode.unwrap_or(permissions.mode);
        for (rules, texts, origin) in [
            (&mut permissions.allow, allow, "policy.allow"),
            (&mut permissions.ask, ask, "policy.ask"),
            (&mut permissions.deny, deny, "policy.deny"),
        ] {
            add_rules(rules, texts, origin).map_err(|error| error.to_string())?;
        }
        let call = self.call(&question.tool, &question.input)?;
        Ok(self.policy(permissions).decide(&call.tool, &call.accesses))
    }
}

/// Parses `texts` with their places.
fn add_rules(
    rules: &mut Vec<Rule>,
    texts: &[String],
    origin: &str,
) -> Result<(), crate::policy::RuleError> {
    for (index, text) in texts.iter().enumerate() {
        rules.push(Rule::parse(text, &format!("{origin}[{index}]"))?);
    }
    Ok(())
}

/// The id of a line that is JSON but no question.
fn id_of(line: &[u8]) -> Value {
    serde_json::from_slice::<Value>(line)
        .ok()
        .and_then(|value| value.get("id").cloned())
        .unwrap_or_default()
}
