//! `bash`: a command line, run to its end within its time.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Access;
use crate::message::Content;
use crate::process::{CommandSpec, Ending, Process, Progress, SpawnError, Streams};
use crate::tool::capture::{Capture, Updates};
use crate::tool::{
    CallContext, CallFuture, Failure, Place, Tool, ToolOutput, ToolSpec, arguments, title_text,
    work,
};

/// The tool.
#[derive(Debug)]
pub(super) struct Bash {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    command: String,
    timeout: Option<f64>,
}

impl Bash {
    /// The tool.
    pub(super) fn new() -> Self {
        let spec = ToolSpec {
            name: "bash".to_owned(),
            description: "Run a command with `bash -c` in the workspace and wait for its end. Standard output and \
                          error come together; of long output the end is shown and the whole is kept in a file. \
                          There is no standard input and no terminal, so programs that ask questions fail. \
                          Whatever the command leaves running is ended with it."
                .to_owned(),
            short_description: "Run shell commands".to_owned(),
            guidelines: vec![
                "Use bash to build, test and run programs; use read, grep, find and ls to look at files.".to_owned(),
                "Give options that keep programs from asking, paging or opening an editor.".to_owned(),
            ],
            parameters: json!({
                "type": "object",
                "properties": {
                    "command": {
                        "type": "string",
                        "minLength": 1,
                        "description": "The command line."
                    },
                    "timeout": {
                        "type": "number",
                        "exclusiveMinimum": 0,
                        "description": "The most seconds it may take; the run has a default and a maximum of its own."
                    }
                },
                "required": ["command"],
                "additionalProperties": false
            }),
        };
        Self { spec }
    }
}

impl Tool for Bash {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn title(&self, args: &Value) -> String {
        format!("bash {}", title_text(args, "command"))
    }

    fn accesses(&self, args: &Value, _place: &Place) -> Result<Vec<Access>, String> {
        let args: Arguments = arguments(args)?;
        Ok(vec![Access::Exec(command(args)?)])
    }

    fn call<'a>(&'a self, args: Value, cx: CallContext<'a>) -> CallFuture<'a> {
        Box::pin(async move {
            match run(&args, &cx).await {
                Ok(output) => output,
                Err(message) => ToolOutput::error(message),
            }
        })
    }
}

/// The command as bash is given it.
fn command(args: Arguments) -> Result<String, String> {
    if args.command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    if args.command.contains('\0') {
        return Err("the command contains a NUL character".to_owned());
    }
    Ok(args.command)
}

async fn run(args: &Value, cx: &CallContext<'_>) -> Result<ToolOutput, String> {
    let args: Arguments = arguments(args)?;
    let limit = TimeLimit::choose(args.timeout, cx.commands.timeout, cx.commands.timeout_max)?;
    if cx.cancel.is_cancelled() {
        return Ok(work::aborted(
            "the call was cancelled before the command started",
        ));
    }
    let mut process = Process::spawn(CommandSpec {
        program: "bash".into(),
        // `--` keeps a command that begins with a dash from being an option.
        args: vec!["-c".into(), "--".into(), command(args)?.into()],
        cwd: cx.place.workspace.clone(),
        env: cx
            .commands
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        stdin: None,
        streams: Streams::Merged,
        timeout: Some(limit.duration),
    })
    .map_err(|error| cannot_start(&error, &cx.place.workspace))?;
    let mut capture = Capture::new(
        cx.output_dir
            .map(|dir| dir.join(format!("{}.txt", cx.call_id))),
        cx.redactor.clone(),
    );
    let mut updates = Updates::new(cx);
    let ending = loop {
        let progress = tokio::select! {
            biased;
            progress = process.next(cx.cancel) => progress,
            () = updates.due() => {
                updates.send();
                continue;
            }
        };
        match progress {
            Progress::Output(bytes) => {
                cx.activity.touch();
                let new = capture.push(&bytes);
                updates.push(new);
            }
            Progress::Ended(ending) => break ending,
        }
    };
    updates.push(capture.finish());
    updates.send();
    Ok(output(&capture, ending, &limit))
}

fn cannot_start(error: &SpawnError, workspace: &Path) -> String {
    if !workspace.is_dir() {
        return "the command was not started: the workspace does not exist any more".to_owned();
    }
    if error.source.kind() == ErrorKind::NotFound {
        return "the command was not started: there is no `bash` in the PATH that commands get"
            .to_owned();
    }
    format!("the command was not started: {error}")
}

/// How long a command may take.
#[derive(Debug)]
struct TimeLimit {
    duration: Duration,
    /// Whether the call asked for more.
    clamped: bool,
}

impl TimeLimit {
    fn choose(asked: Option<f64>, default: Duration, most: Duration) -> Result<Self, String> {
        let Some(seconds) = asked else {
            return Ok(Self {
                duration: default.min(most),
                clamped: false,
            });
        };
        if seconds.is_nan() || seconds <= 0.0 {
            return Err("timeout must be more than 0 seconds".to_owned());
        }
        let asked = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        Ok(Self {
            duration: asked.min(most),
            clamped: asked > most,
        })
    }

    fn seconds(&self) -> String {
        format!("{} s", self.duration.as_secs_f64())
    }
}

fn output(capture: &Capture, ending: Ending, limit: &TimeLimit) -> ToolOutput {
    let outcome = ended(ending, limit);
    let (mut text, truncated) = capture.shown();
    if limit.clamped {
        text.push_str(&format!(
            "\n\n[the time limit was lowered to the maximum of {}]",
            limit.seconds()
        ));
    }
    if outcome.failure.is_some() {
        text.push_str(&format!("\n\n[{}]", outcome.summary));
    }
    ToolOutput {
        content: vec![Content::text(text)],
        truncated,
        details: capture.details(),
        ..outcome
    }
}

/// The outcome of a command, still without its output.
fn ended(ending: Ending, limit: &TimeLimit) -> ToolOutput {
    let (summary, failure, exit_code) = match ending {
        Ending::Exited(0) => ("exit code 0".to_owned(), None, Some(0)),
        Ending::Exited(code) => (
            format!("exit code {code}"),
            Some(Failure::Error),
            Some(code),
        ),
        Ending::Signalled(signal) => (
            format!("killed by signal {signal}{}", signal_name(signal)),
            Some(Failure::Error),
            Some(128 + signal),
        ),
        Ending::TimedOut => (
            format!("timed out after {} and was stopped", limit.seconds()),
            Some(Failure::Timeout),
            None,
        ),
        Ending::Cancelled => (
            "cancelled and stopped".to_owned(),
            Some(Failure::Aborted),
            None,
        ),
    };
    ToolOutput {
        summary,
        failure,
        exit_code,
        ..ToolOutput::default()
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        1 => " (SIGHUP)",
        2 => " (SIGINT)",
        3 => " (SIGQUIT)",
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        7 => " (SIGBUS)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL, perhaps out of memory)",
        11 => " (SIGSEGV)",
        13 => " (SIGPIPE)",
        15 => " (SIGTERM)",
        _ => "",
    }
}
