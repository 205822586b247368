//! Commands that the user runs beside the conversation.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::{self, Activity};
use crate::process::Ending;
use crate::store::BashExecution;
use crate::tool::{CommandOutput, run_command};

use super::Session;
use super::engine::Engine;
use super::refusal::SessionError;

/// Pieces of output that may wait for the caller.
const CHUNKS_WAITING_MAX: usize = 16;

/// How a command of the user's runs.
#[derive(Debug, Clone, Default)]
pub struct BashOptions {
    /// The model does not get to see it; the session keeps it all the same.
    pub exclude_from_context: bool,
    /// The most that it may take; none for the session's usual limit.
    pub timeout: Option<Duration>,
    /// Stops it.
    pub cancel: CancellationToken,
}

impl Session {
    /// Runs a command line in the workspace on the user's own account, and keeps
    /// it with its output for the model to read with the next prompt.
    ///
    /// It runs like those of the `bash` tool: same environment, same limits, long
    /// output whole in a file without secrets. Policy is not asked, because it
    /// speaks of what the model may do. `on_chunk` gets what is printed as it
    /// comes; a caller that is slow gets the newest of it. While a prompt runs the
    /// command runs beside it and is kept when that prompt ends. Dropping the
    /// future kills the command and keeps nothing.
    ///
    /// # Errors
    /// [`SessionError::Command`] when it could not be started;
    /// [`SessionError::Stopped`] when it cannot be kept. A command that fails is
    /// no error.
    pub async fn execute_bash(
        &self,
        command: &str,
        options: BashOptions,
        on_chunk: impl FnMut(&str),
    ) -> Result<Arc<BashExecution>, SessionError> {
        let ran = self.run_bash(command, &options, on_chunk).await;
        let ran = ran.map_err(SessionError::Command)?;
        let record = Arc::new(record(command, &ran, &options));
        self.record.defer(Arc::clone(&record));
        // At rest it is kept at once.
        self.desk
            .with_engine(|engine: &mut Engine| engine.record.keep_deferred())
            .unwrap_or(Ok(()))?;
        Ok(record)
    }

    async fn run_bash(
        &self,
        command: &str,
        options: &BashOptions,
        mut on_chunk: impl FnMut(&str),
    ) -> Result<CommandOutput, String> {
        let (updates, mut chunks) = mpsc::channel(CHUNKS_WAITING_MAX);
        let call_id = format!("user-{}", clock::short_id());
        let permit = self.workbench.permit("bash");
        // The silence of the model is no less one because of it.
        let activity = Activity::new();
        let watched = (&options.cancel, &activity);
        let context = self.workbench.context(&call_id, &permit, updates, watched);
        let timeout = options.timeout.map(|timeout| timeout.as_secs_f64());
        let running = run_command(command, timeout, &context);
        tokio::pin!(running);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(chunk) = chunks.recv() => on_chunk(&chunk),
                outcome = &mut running => break outcome,
            }
        };
        while let Ok(chunk) = chunks.try_recv() {
            on_chunk(&chunk);
        }
        outcome
    }
}

fn record(command: &str, ran: &CommandOutput, options: &BashOptions) -> BashExecution {
    let (mut output, truncated) = ran.printed();
    let (exit_code, cancelled) = match ran.ending {
        Ending::Exited(code) => (Some(code), false),
        Ending::Cancelled => (None, true),
        Ending::Signalled(_) | Ending::TimedOut | Ending::Crowded(_) => {
            let end = if output.is_empty() || output.ends_with('\n') {
                ""
            } else {
                "\n"
            };
            output = format!("{output}{end}[{}]", ran.summary());
            (None, false)
        }
    };
    BashExecution {
        command: command.to_owned(),
        output,
        exit_code,
        cancelled,
        truncated,
        full_output_path: ran.full_output().map(|path| path.display().to_string()),
        exclude_from_context: options.exclude_from_context,
        timestamp: clock::unix_ms(),
    }
}
