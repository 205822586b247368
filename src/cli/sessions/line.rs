//! An entry of a session on one line.

use serde_json::{Value, json};

use crate::message::{Content, Message};
use crate::report::{cut, neutral};
use crate::store::{Entry, EntryKind, SessionTree};

/// The columns of what an entry says.
const COLUMNS_MAX: usize = 100;

/// What an entry is: its role, or its type.
pub(super) fn kind_of(entry: &Entry) -> &str {
    match &entry.kind {
        EntryKind::Message(message) => match message.as_ref() {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "tool result",
        },
        EntryKind::BashExecution(_) => "shell",
        EntryKind::ModelChange { .. } => "model",
        EntryKind::ThinkingLevelChange { .. } => "thinking",
        EntryKind::Compaction { .. } => "compaction",
        EntryKind::BranchSummary { .. } => "branch summary",
        EntryKind::Custom { custom_type, .. } | EntryKind::CustomMessage { custom_type, .. } => {
            custom_type
        }
        EntryKind::Label { .. } => "label",
        EntryKind::SessionInfo { .. } => "name",
        EntryKind::Unknown { type_name, .. } => type_name,
    }
}

/// The beginning of what an entry says.
pub(super) fn preview(entry: &Entry) -> String {
    cut(&neutral(&said(entry)), COLUMNS_MAX, "…")
}

fn said(entry: &Entry) -> String {
    match &entry.kind {
        EntryKind::Message(message) => match message.as_ref() {
            Message::User(user) => text(&user.content),
            Message::Assistant(reply) => {
                let calls = reply.tool_calls();
                let calls = calls.map(|call| format!("[{} {}]", call.name, call.arguments));
                let mut parts: Vec<String> = vec![reply.text()];
                parts.extend(calls);
                parts.extend(reply.error_message.clone());
                parts.retain(|part| !part.trim().is_empty());
                parts.join(" ")
            }
            Message::ToolResult(result) => {
                let failed = if result.is_error { " failed" } else { "" };
                format!("{}{failed}: {}", result.tool_name, text(&result.content))
            }
        },
        EntryKind::BashExecution(ran) => format!("$ {}", ran.command),
        EntryKind::ModelChange { provider, model_id } => format!("{provider}/{model_id}"),
        EntryKind::ThinkingLevelChange { thinking_level } => thinking_level.clone(),
        EntryKind::Compaction { summary, .. } | EntryKind::BranchSummary { summary, .. } => {
            summary.clone()
        }
        EntryKind::Custom { data, .. } => data.as_ref().map(Value::to_string).unwrap_or_default(),
        EntryKind::CustomMessage { content, .. } => text(content),
        EntryKind::Label { target_id, label } => match label {
            Some(label) => format!("{label} at {target_id}"),
            None => format!("none at {target_id}"),
        },
        EntryKind::SessionInfo { name } => name.clone().unwrap_or_default(),
        EntryKind::Unknown { fields, .. } => json!(fields).to_string(),
    }
}

fn text(content: &[Content]) -> String {
    let parts = content.iter().map(|block| match block {
        Content::Text(text) => text.text.as_str(),
        Content::Thinking(thinking) => thinking.thinking.as_str(),
        Content::Image(_) => "[image]",
        Content::ToolCall(call) => call.name.as_str(),
    });
    parts.collect::<Vec<_>>().join(" ")
}

/// An entry as it stands in its file, with its label.
pub(super) fn document(entry: &Entry, tree: &SessionTree) -> Value {
    // Every entry was a line of JSON.
    let mut document = serde_json::to_value(entry).unwrap_or_default();
    if let (Some(label), Some(fields)) = (tree.label(&entry.id), document.as_object_mut()) {
        fields.insert("bookmark".to_owned(), label.into());
    }
    document
}
