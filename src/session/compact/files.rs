//! Which files a conversation read and modified.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Message, ToolCall};

/// How many files of a kind a summary names.
const LISTED_MAX: usize = 300;

/// Files by what was done to them, as the `details` of a compaction keep them.
/// A path is as the model wrote it. A modified file is not also a read one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TouchedFiles {
    /// Files that were only read.
    #[serde(rename = "readFiles")]
    pub read: BTreeSet<String>,
    /// Files that were written or edited.
    #[serde(rename = "modifiedFiles")]
    pub modified: BTreeSet<String>,
}

impl TouchedFiles {
    /// What an earlier compaction noted. Details of another shape hold nothing
    /// that could be relied on.
    pub(super) fn of_details(details: Option<&Value>) -> Self {
        details
            .and_then(|details| Self::deserialize(details).ok())
            .unwrap_or_default()
    }

    /// Notes the calls of a message. A call counts whether or not it succeeded:
    /// a file that could not be read was still looked for.
    pub(super) fn note(&mut self, message: &Message) {
        match message {
            Message::Assistant(reply) => {
                for call in reply.tool_calls() {
                    self.note_call(call);
                }
            }
            Message::User(_) | Message::ToolResult(_) => {}
        }
    }

    fn note_call(&mut self, call: &ToolCall) {
        let Some(path) = call.arguments.get("path").and_then(Value::as_str) else {
            return;
        };
        match call.name.as_str() {
            "read" if !self.modified.contains(path) => {
                self.read.insert(path.to_owned());
            }
            "edit" | "write" => {
                self.read.remove(path);
                self.modified.insert(path.to_owned());
            }
            _ => {}
        }
    }

    /// The lists as a summary ends with them; empty without files.
    pub(super) fn appendix(&self) -> String {
        let mut text = String::new();
        for (tag, files) in [
            ("read-files", &self.read),
            ("modified-files", &self.modified),
        ] {
            if !files.is_empty() {
                text.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", listed(files)));
            }
        }
        text
    }
}

fn listed(files: &BTreeSet<String>) -> String {
    let shown = files.iter().take(LISTED_MAX).map(String::as_str);
    let mut text = shown.collect::<Vec<_>>().join("\n");
    if files.len() > LISTED_MAX {
        text.push_str(&format!("\n… and {} more", files.len() - LISTED_MAX));
    }
    text
}
