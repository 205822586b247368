//! A command line that runs to its end within its time: what `bash` runs for a
//! model, and what a user runs beside the conversation.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use crate::process::{self, CommandSpec, Ending, Process, Progress, SpawnError, Streams};
use crate::tool::CallContext;
use crate::tool::capture::{Capture, Updates};

/// What a command printed, and how it ended.
#[derive(Debug)]
pub struct CommandOutput {
    pub(super) capture: Capture,
    pub(super) limit: TimeLimit,
    /// How it ended.
    pub ending: Ending,
    /// What it did against the rules and what was undone, for the model.
    pub undone: Vec<String>,
}

impl CommandOutput {
    /// What it printed, cleaned; only the end of it when the flag is set.
    pub fn printed(&self) -> (String, bool) {
        self.capture.end()
    }

    /// How it ended, in words.
    pub fn summary(&self) -> String {
        match self.ending {
            Ending::Exited(code) => format!("exit code {code}"),
            Ending::Signalled(signal) => {
                format!("killed by signal {signal}{}", signal_name(signal))
            }
            Ending::TimedOut => {
                format!("timed out after {} and was stopped", self.limit.seconds())
            }
            Ending::Crowded(most) => {
                format!("was more than {most} processes at a time and was stopped")
            }
            Ending::Cancelled => "cancelled and stopped".to_owned(),
        }
    }

    /// The file with all that it printed, when that is too much to be shown.
    pub fn full_output(&self) -> Option<&Path> {
        self.capture.spilled()
    }
}

/// Checks that this can be a command line.
pub(super) fn check_command(command: &str) -> Result<(), String> {
    if command.trim().is_empty() {
        return Err("the command is empty".to_owned());
    }
    if command.contains('\0') {
        return Err("the command contains a NUL character".to_owned());
    }
    Ok(())
}

/// Runs a command line with `bash -c` in the workspace, at most for `timeout`
/// seconds; without it, for the default time. Partial output goes to the updates
/// of `cx`.
///
/// # Errors
/// When it could not be started, in words.
pub async fn run_command(
    command: &str,
    timeout: Option<f64>,
    cx: &CallContext<'_>,
) -> Result<CommandOutput, String> {
    let limit = TimeLimit::choose(timeout, cx.commands.timeout, cx.commands.timeout_max)?;
    check_command(command)?;
    let root = Path::new("/");
    let shell = process::locate(OsStr::new("bash"), cx.commands.shell_path.as_ref(), root);
    let shell = shell.map_err(|source| {
        let program = "bash".to_owned();
        cannot_start(&SpawnError { program, source }, &cx.place.workspace)
    })?;
    let confinement = cx.commands.sandbox.for_command();
    let confinement = confinement.map_err(|missing| not_started(&missing))?;
    let mut process = Process::spawn(CommandSpec {
        program: shell.into(),
        // `--` keeps a command that begins with a dash from being an option.
        args: vec!["-c".into(), "--".into(), command.into()],
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
        confinement,
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
    Ok(CommandOutput {
        capture,
        limit,
        ending,
        undone: process.undone().to_vec(),
    })
}

fn cannot_start(error: &SpawnError, workspace: &Path) -> String {
    if !workspace.is_dir() {
        return "the command was not started: the workspace does not exist any more".to_owned();
    }
    if error.source.kind() == ErrorKind::NotFound {
        return "the command was not started: there is no `bash` in the PATH that commands get, \
                outside of what they can write"
            .to_owned();
    }
    not_started(error)
}

fn not_started(why: &dyn std::fmt::Display) -> String {
    format!("the command was not started: {why}")
}

/// How long a command may take.
#[derive(Debug)]
pub(super) struct TimeLimit {
    pub(super) duration: Duration,
    /// Whether the call asked for more.
    pub(super) clamped: bool,
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

    pub(super) fn seconds(&self) -> String {
        format!("{} s", self.duration.as_secs_f64())
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
