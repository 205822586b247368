//! Runs with a scripted model, for the tests of the command line.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::support::cli::{Cli, Output};
use crate::support::log;

/// `agent run task.yaml` with these replies and these further task lines.
pub(crate) fn scripted(replies: &str, more: &str) -> Cli {
    plain(replies, more).args(["run", "task.yaml", "--run-dir", "out"])
}

/// The same files without arguments.
pub(crate) fn plain(replies: &str, more: &str) -> Cli {
    let task = format!(
        "version: 1\nname: demo\nprompt: Do it.\nsettings: {{model: scripted/model.yaml}}\n{more}"
    );
    Cli::new()
        .file("model.yaml", replies)
        .file("task.yaml", task)
}

/// A reply that runs this command.
pub(crate) fn bash(command: &str) -> String {
    let arguments = serde_json::json!({"command": command});
    format!("- calls: [{{name: bash, arguments: {arguments}}}]\n")
}

/// What a run of any kind leaves: log, result and status agree.
pub(crate) fn truthful(output: &Output) -> Value {
    let result = output.result();
    agree(output.code, &output.artifact("events.jsonl"), &result);
    result
}

/// The log keeps its laws, and everything names the same exit status.
pub(crate) fn agree(code: i32, text: &str, result: &Value) -> Vec<Value> {
    let events = log::lawful(text);
    let end = &events.last().unwrap()["data"];
    assert_eq!(end["exitCode"], code, "{end}");
    assert_eq!(&end["result"], result);
    assert_eq!(result["exitCode"], code);
    events
}

/// The permission bits of a file or folder.
pub(crate) fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}
