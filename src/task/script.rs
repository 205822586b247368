//! The file of a scripted model, read like a task file.

use std::path::Path;

use crate::model::Script;
use crate::task::diagnostics::Kind;
use crate::task::read::{self, ReadError};

/// Models of this provider are scripts: the rest of the name is a file.
pub const SCRIPTED: &str = "scripted/";

/// The largest script, in bytes; the parser has the same bound.
const SCRIPT_MAX: u64 = 8 << 20;

/// Why there is no script to play.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScriptProblem {
    /// What it means for the exit code.
    pub kind: Kind,
    /// For people; names the file.
    pub message: String,
}

/// Reads and checks the script of a model that is one. A pipe or a device is
/// refused, never waited for.
///
/// # Errors
///
/// When there is no such file, or it is no script.
pub fn load_script(path: &Path) -> Result<Script, ScriptProblem> {
    let problem = |kind, message| ScriptProblem { kind, message };
    let text = read::text(path, SCRIPT_MAX).map_err(|error| match error {
        ReadError::NoInput(message) => problem(Kind::NoInput, message),
        ReadError::Unfit(message) => problem(Kind::BadTask, message),
    })?;
    Script::parse(&text, &path.display().to_string())
        .map_err(|error| problem(Kind::BadTask, error.to_string()))
}
