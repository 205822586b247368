//! Where the results of tools go, or come from, when a run is recorded or
//! replayed.

use std::path::PathBuf;

use crate::model::{ModelError, Recording, Replay, TapedCall, TapedOutput};
use crate::tool::{Failure, ToolOutput};

/// What a session does with the results of its tools.
#[derive(Debug, Clone, Default)]
pub enum ToolTape {
    /// The tools run, and that is all.
    #[default]
    None,
    /// They run, and their results are recorded.
    Recording(Recording),
    /// None runs: the results are those of the cassette.
    Replaying(Replay),
}

impl ToolTape {
    /// The recorded output, when tools do not run. A call that the cassette
    /// does not know fails, and the next call of a model tells why.
    pub(super) fn played(&self, call: TapedCall<'_>) -> Option<ToolOutput> {
        let Self::Replaying(replay) = self else {
            return None;
        };
        let output = replay.tool(call).map(output);
        Some(output.unwrap_or_else(|error: ModelError| ToolOutput::error(error.message)))
    }

    /// Whether what a tool answers is to be kept.
    pub(super) fn is_recording(&self) -> bool {
        matches!(self, Self::Recording(_))
    }

    /// Records what a tool answered.
    pub(super) fn keep(&self, call: TapedCall<'_>, output: &ToolOutput) {
        if let Self::Recording(recording) = self {
            recording.tool(call, taped(output));
        }
    }
}

fn taped(output: &ToolOutput) -> TapedOutput {
    TapedOutput {
        content: output.content.clone(),
        summary: output.summary.clone(),
        failure: output.failure.map(|failure| word(failure).to_owned()),
        details: output.details.clone(),
        exit_code: output.exit_code,
        truncated: output.truncated,
        files: output
            .files
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
    }
}

fn output(taped: TapedOutput) -> ToolOutput {
    let failures = [Failure::Error, Failure::Timeout, Failure::Aborted];
    let failure = taped.failure.map(|name| {
        let known = failures.into_iter().find(|failure| word(*failure) == name);
        known.unwrap_or(Failure::Error)
    });
    ToolOutput {
        content: taped.content,
        summary: taped.summary,
        failure,
        details: taped.details,
        exit_code: taped.exit_code,
        truncated: taped.truncated,
        files: taped.files.into_iter().map(PathBuf::from).collect(),
    }
}

fn word(failure: Failure) -> &'static str {
    match failure {
        Failure::Error => "error",
        Failure::Timeout => "timeout",
        Failure::Aborted => "aborted",
    }
}
