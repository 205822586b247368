//! `result.json`: truthful from the first moment, and replaced whole.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use super::SinkError;
use crate::access::Folder;
use crate::event::{
    Artifacts, Budget, ErrorReport, ModelsUsed, Outcome, Reason, ResultDocument, SCHEMA_VERSION,
};
use crate::message::Usage;

/// What is known of a run before it starts.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The run's id.
    pub run_id: String,
    /// The task's name; several are joined by commas.
    pub task: String,
    /// `provider/id`.
    pub model: String,
    /// RFC 3339 in UTC.
    pub started_at: String,
    /// The run directory as an absolute path.
    pub run_dir: Option<String>,
}

/// The document that stands in `result.json` while a run has not ended, and
/// for ever when it is killed.
pub fn incomplete(opening: Opening) -> ResultDocument {
    let reason = Reason::Incomplete;
    ResultDocument {
        schema_version: SCHEMA_VERSION,
        run_id: opening.run_id,
        task: opening.task,
        // Not the reason's own `failure`: nobody judged the task.
        outcome: Outcome::Error,
        reason,
        exit_code: reason.exit_code(),
        final_text: String::new(),
        model: opening.model,
        models: ModelsUsed::new(),
        started_at: opening.started_at,
        duration_ms: 0,
        turns: 0,
        tool_calls: BTreeMap::new(),
        usage: Usage::default(),
        cost_usd: None,
        budget: Budget::new(),
        files_changed: Vec::new(),
        denials: Vec::new(),
        retries: 0,
        compactions: 0,
        warnings: Vec::new(),
        sandbox: None,
        structured_output: None,
        repairs: None,
        session_file: None,
        artifacts: Artifacts {
            run_dir: opening.run_dir,
            patch: None,
        },
        replay: None,
        error: Some(ErrorReport {
            code: "incomplete".to_owned(),
            message: "the run has not ended, or was killed before it could end".to_owned(),
            http_status: None,
            request_id: None,
            hints: vec!["the event log has everything up to that point".to_owned()],
        }),
        jobs: Vec::new(),
    }
}

/// Replaces `path` by the document, as a file that only its owner may read.
/// A reader sees the old file or the new one, whole.
///
/// # Errors
///
/// When the file cannot be written or put in place.
pub fn write_result(path: &Path, result: &ResultDocument) -> Result<(), SinkError> {
    let mut text = serde_json::to_string_pretty(result)
        .map_err(|error| SinkError::new("write", path.display().to_string(), error.into()))?;
    text.push('\n');
    replace(path, text.as_bytes())
        .map_err(|source| SinkError::new("write", path.display().to_string(), source))
}

fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    // The run's directory is a real path: a link on the way is a command's work.
    let folder = Folder::open(folder)?;
    let mut draft = folder.draft(0o600)?;
    draft.file.write_all(bytes)?;
    // Not forced to the disk: that costs milliseconds at the start and the end
    // of every run, and guards only against a loss of power, which takes the
    // job that would read the file with it.
    draft.replace(name)
}
