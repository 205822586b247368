//! `bash`: a command line, run to its end within its time.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Access;
use crate::message::Content;
use crate::process::{Confinement, Ending};
use crate::tool::command::{CommandOutput, check_command, run_command};
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
        check_command(&args.command)?;
        Ok(vec![Access::Exec(args.command)])
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

async fn run(args: &Value, cx: &CallContext<'_>) -> Result<ToolOutput, String> {
    let args: Arguments = arguments(args)?;
    if cx.cancel.is_cancelled() {
        return Ok(work::aborted(
            "the call was cancelled before the command started",
        ));
    }
    let ran = run_command(&args.command, args.timeout, cx).await?;
    Ok(output(&ran, cx.commands.sandbox.enforced()))
}

fn output(ran: &CommandOutput, confinement: Option<&dyn Confinement>) -> ToolOutput {
    let (capture, limit) = (&ran.capture, &ran.limit);
    let outcome = ended(ran);
    let (mut text, truncated) = capture.shown();
    if limit.clamped {
        text.push_str(&format!(
            "\n\n[the time limit was lowered to the maximum of {}]",
            limit.seconds()
        ));
    }
    for undone in &ran.undone {
        text.push_str(&format!("\n\n[{undone}]"));
    }
    // A pipe hides the status of what failed, and what waits for an answer runs out of time.
    let ended = outcome.failure != Some(Failure::Aborted);
    if let Some(confinement) = confinement.filter(|_| ended) {
        for reason in confinement.reasons(&text) {
            text.push_str(&format!("\n\n[the sandbox: {reason}]"));
        }
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
fn ended(ran: &CommandOutput) -> ToolOutput {
    let (failure, exit_code) = match ran.ending {
        Ending::Exited(0) => (None, Some(0)),
        Ending::Exited(code) => (Some(Failure::Error), Some(code)),
        Ending::Signalled(signal) => (Some(Failure::Error), Some(128 + signal)),
        Ending::Crowded(_) => (Some(Failure::Error), None),
        Ending::TimedOut => (Some(Failure::Timeout), None),
        Ending::Cancelled => (Some(Failure::Aborted), None),
    };
    ToolOutput {
        summary: ran.summary(),
        failure,
        exit_code,
        ..ToolOutput::default()
    }
}
