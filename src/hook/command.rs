//! Hooks that are programs: JSON in, a verdict or an exit status out.
//!
//! The program is started without a shell, in the workspace, with the
//! environment that commands get. It reads one JSON object: `event` has the
//! name of the point, `cwd` the workspace, the rest is the payload. With exit
//! status 0 everything goes on, and what it wrote on standard output, if
//! anything, is its verdict. With 2 it blocks, and standard error is the
//! reason. Everything else is a failure of the hook.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::process::{Captured, CommandSandbox, CommandSpec, Ending, Streams, capture};

use super::matcher::Matcher;
use super::payload::{
    AfterTool, BeforeAgentStart, BeforeCompact, BeforeRequest, BeforeTool, Context, Input,
    OnAction, OnFinal, OnObservation, OnTurnStart, Payload,
};
use super::reply::{Answer, Said};
use super::verdict::{
    AgentStart, CompactVerdict, ContextVerdict, InputVerdict, RequestVerdict, ResultVerdict,
    ToolVerdict,
};
use super::{Fault, Hook, HookFuture, HookPoint};

/// The time for an answer when nothing is said about it.
pub const TIMEOUT_DEFAULT: Duration = Duration::from_secs(60);
/// The longest time that a command hook may be given.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);
/// What ending a command that is out of time may take beyond that.
const ENDING: Duration = Duration::from_secs(6);
/// A verdict is at most this long.
const OUTPUT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Of a reason at most this much is kept.
const REASON_CHARS_MAX: usize = 4_000;

/// What a command hook is, before it is known where it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookCommand {
    /// The point at which it is called.
    pub point: HookPoint,
    /// The tools that it is for; none is all.
    pub matcher: Option<Matcher>,
    /// Its name in the log: the command as somebody wrote it.
    pub name: String,
    /// The program: absolute, or a name to look up in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// How long it may take.
    pub timeout: Duration,
}

/// A hook that runs a program.
#[derive(Debug)]
pub struct CommandHook {
    command: HookCommand,
    cwd: PathBuf,
    env: Vec<(String, String)>,
    sandbox: CommandSandbox,
}

/// What a program is told.
#[derive(Serialize)]
struct Told<'a, P> {
    event: HookPoint,
    cwd: &'a std::path::Path,
    #[serde(flatten)]
    payload: &'a P,
}

impl CommandHook {
    /// A hook that runs in `cwd` with exactly this environment, and in this
    /// sandbox.
    pub fn new(
        command: HookCommand,
        cwd: PathBuf,
        env: Vec<(String, String)>,
        sandbox: CommandSandbox,
    ) -> Self {
        Self {
            command,
            cwd,
            env,
            sandbox,
        }
    }

    /// Asks for a verdict.
    fn ask<'a, P: Payload, A: Answer + Send + 'a>(
        &'a self,
        payload: &'a P,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, A> {
        Box::pin(async move {
            if !self.is_for(payload) {
                return Ok(A::nothing());
            }
            self.run(payload, cancel).await?.verdict()
        })
    }

    /// Tells; what the program writes is of no interest.
    fn tell<'a, P: Payload>(
        &'a self,
        payload: &'a P,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        Box::pin(async move {
            if !self.is_for(payload) {
                return Ok(());
            }
            match self.run(payload, cancel).await? {
                Said::Output(_) => Ok(()),
                Said::Block(reason) => Err(Fault::Failed(format!(
                    "exit status 2 means to block, which is not possible here: {reason}"
                ))),
            }
        })
    }

    fn is_for<P: Payload>(&self, payload: &P) -> bool {
        match (&self.command.matcher, payload.tool()) {
            (Some(matcher), Some(tool)) => matcher.matches(tool),
            (Some(_) | None, _) => true,
        }
    }

    async fn run<P: Payload>(
        &self,
        payload: &P,
        cancel: &CancellationToken,
    ) -> Result<Said, Fault> {
        let told = Told {
            event: P::POINT,
            cwd: &self.cwd,
            payload,
        };
        let told = serde_json::to_vec(&told).map_err(Fault::failed)?;
        let spec = CommandSpec {
            program: self.command.program.clone().into_os_string(),
            args: self.command.args.iter().map(OsString::from).collect(),
            cwd: self.cwd.clone(),
            env: self
                .env
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
            stdin: Some(told),
            streams: Streams::Apart,
            timeout: Some(self.command.timeout),
            confinement: self.sandbox.for_command().map_err(Fault::failed)?,
        };
        let captured = capture(spec, OUTPUT_BYTES_MAX, cancel)
            .await
            .map_err(Fault::failed)?;
        self.said(captured)
    }

    fn said(&self, captured: Captured) -> Result<Said, Fault> {
        let reason = reason(&captured.errors);
        match captured.ending {
            Ending::Exited(0) if captured.truncated => Err(Fault::Failed(format!(
                "it wrote more than {} MiB",
                OUTPUT_BYTES_MAX >> 20
            ))),
            Ending::Exited(0) => Ok(Said::Output(captured.output)),
            Ending::Exited(2) if reason.is_empty() => Ok(Said::Block(format!(
                "`{}` gave no reason",
                self.command.name
            ))),
            Ending::Exited(2) => Ok(Said::Block(reason)),
            Ending::Exited(code) => Err(failed(&format!("exit status {code}"), &reason)),
            Ending::Signalled(signal) => {
                Err(failed(&format!("killed by signal {signal}"), &reason))
            }
            Ending::Crowded(most) => Err(failed(
                &format!("more than {most} processes at a time"),
                &reason,
            )),
            Ending::TimedOut => Err(Fault::TimedOut(self.command.timeout)),
            Ending::Cancelled => Err(Fault::Cancelled),
        }
    }
}

/// A failure with what the program said about it.
fn failed(what: &str, reason: &str) -> Fault {
    if reason.is_empty() {
        Fault::failed(what)
    } else {
        Fault::Failed(format!("{what}: {reason}"))
    }
}

/// Standard error as a text for the model and the log.
fn reason(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let clean: String = text
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect();
    let clean = clean.trim();
    match clean.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()),
        None => clean.to_owned(),
    }
}

impl Hook for CommandHook {
    fn name(&self) -> &str {
        &self.command.name
    }

    fn listens(&self, point: HookPoint) -> bool {
        self.command.point == point
    }

    /// The program is ended in time by whoever started it, with its children.
    fn timeout(&self) -> Duration {
        self.command.timeout + ENDING
    }

    fn on_turn_start<'a>(
        &'a self,
        turn: &'a OnTurnStart,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        self.tell(turn, cancel)
    }

    fn on_action<'a>(
        &'a self,
        call: &'a OnAction,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        self.tell(call, cancel)
    }

    fn on_observation<'a>(
        &'a self,
        result: &'a OnObservation,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        self.tell(result, cancel)
    }

    fn on_final<'a>(
        &'a self,
        turn: &'a OnFinal,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ()> {
        self.tell(turn, cancel)
    }

    fn input<'a>(
        &'a self,
        input: &'a Input,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, InputVerdict> {
        self.ask(input, cancel)
    }

    fn before_agent_start<'a>(
        &'a self,
        start: &'a BeforeAgentStart,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, AgentStart> {
        self.ask(start, cancel)
    }

    fn context<'a>(
        &'a self,
        context: &'a Context,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ContextVerdict> {
        self.ask(context, cancel)
    }

    fn before_tool<'a>(
        &'a self,
        call: &'a BeforeTool,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ToolVerdict> {
        self.ask(call, cancel)
    }

    fn after_tool<'a>(
        &'a self,
        result: &'a AfterTool,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, ResultVerdict> {
        self.ask(result, cancel)
    }

    fn before_compact<'a>(
        &'a self,
        compaction: &'a BeforeCompact,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, CompactVerdict> {
        self.ask(compaction, cancel)
    }

    fn before_request<'a>(
        &'a self,
        request: &'a BeforeRequest,
        cancel: &'a CancellationToken,
    ) -> HookFuture<'a, RequestVerdict> {
        self.ask(request, cancel)
    }
}
