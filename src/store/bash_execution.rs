//! A command that the user ran beside the conversation.

use std::fmt::Write;

use serde::{Deserialize, Serialize};

/// A command that the user ran, and what it printed: a message of the role
/// `bashExecution`. The model reads it as text of the user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename = "bashExecution", rename_all = "camelCase")]
pub struct BashExecution {
    /// The command line.
    pub command: String,
    /// What it printed, cut when `truncated` is set.
    pub output: String,
    /// Its exit code; none when a signal ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Whether the user stopped it.
    #[serde(default)]
    pub cancelled: bool,
    /// Whether `output` is only the end of what it printed.
    #[serde(default)]
    pub truncated: bool,
    /// The file with all that it printed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_output_path: Option<String>,
    /// Whether the model must not see it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclude_from_context: bool,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}

impl BashExecution {
    /// What the model reads.
    pub fn text(&self) -> String {
        let mut text = format!("The user ran this command:\n\n{}", fenced(&self.command));
        if self.output.is_empty() {
            text.push_str("\n\nIt printed nothing.");
        } else {
            let _ = write!(text, "\n\nIt printed:\n\n{}", fenced(&self.output));
        }
        if self.cancelled {
            text.push_str("\n\nThe user stopped it.");
        } else if let Some(code) = self.exit_code.filter(|code| *code != 0) {
            let _ = write!(text, "\n\nIt failed with exit code {code}.");
        }
        if let (true, Some(path)) = (self.truncated, &self.full_output_path) {
            let _ = write!(
                text,
                "\n\nThat is the end of its output; all of it is in {path}."
            );
        }
        text
    }
}

/// `text` between fences that are longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text
        .split(|symbol| symbol != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end_matches('\n'))
}
