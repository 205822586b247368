//! The conversation piece by piece, for those who show it: one entry of the
//! session gives one or several pieces, which share its index.

use std::collections::HashMap;

use serde_json::Value;

use crate::event::MessageSource;
use crate::message::{Content, Message};
use crate::store::{Entry, EntryId, EntryKind};

/// One piece of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Transcript {
    /// The entry's place among those from the first one to the leaf, from 0.
    pub entry_index: usize,
    /// The entry.
    pub entry_id: EntryId,
    /// Where the entry came from.
    pub source: TranscriptSource,
    /// What it says.
    pub kind: TranscriptKind,
}

/// Where an entry came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TranscriptSource {
    /// The user's side, in this way.
    User(MessageSource),
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// A command that the user ran beside the conversation.
    Shell,
    /// The engine itself.
    Engine,
}

/// What a piece says.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriptKind {
    /// Text of the user or the model.
    Text(String),
    /// The model's thinking.
    Thinking(String),
    /// An image, by its type.
    Image(String),
    /// A call of the model.
    ToolCall {
        /// The call's id.
        id: String,
        /// The tool.
        name: String,
        /// Its arguments.
        arguments: Value,
    },
    /// What a tool answered.
    ToolResult {
        /// The call.
        id: String,
        /// The tool.
        name: String,
        /// The text of the answer.
        text: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// What the user ran beside the conversation.
    Command {
        /// The command line.
        command: String,
        /// What it printed.
        output: String,
        /// Its exit code; none when it was stopped.
        exit_code: Option<i32>,
    },
    /// The summary that stands for an earlier part or for another branch.
    Summary(String),
}

/// The pieces of these entries.
pub(super) fn of(entries: &[Entry], sources: &HashMap<EntryId, MessageSource>) -> Vec<Transcript> {
    let mut pieces = Vec::new();
    for (entry_index, entry) in entries.iter().enumerate() {
        let source = source_of(entry, sources);
        for kind in pieces_of(entry) {
            pieces.push(Transcript {
                entry_index,
                entry_id: entry.id.clone(),
                source,
                kind,
            });
        }
    }
    pieces
}

fn source_of(entry: &Entry, sources: &HashMap<EntryId, MessageSource>) -> TranscriptSource {
    match &entry.kind {
        EntryKind::Message(message) => match message.as_ref() {
            Message::User(_) => {
                let known = sources.get(&entry.id).copied();
                TranscriptSource::User(known.unwrap_or(MessageSource::Prompt))
            }
            Message::Assistant(_) => TranscriptSource::Assistant,
            Message::ToolResult(_) => TranscriptSource::Tool,
        },
        EntryKind::BashExecution(_) => TranscriptSource::Shell,
        _ => TranscriptSource::Engine,
    }
}

fn pieces_of(entry: &Entry) -> Vec<TranscriptKind> {
    match &entry.kind {
        EntryKind::Message(message) => match message.as_ref() {
            Message::User(message) => message.content.iter().map(piece_of).collect(),
            Message::Assistant(reply) => reply.content.iter().map(piece_of).collect(),
            Message::ToolResult(result) => vec![TranscriptKind::ToolResult {
                id: result.tool_call_id.clone(),
                name: result.tool_name.clone(),
                text: result.text(),
                is_error: result.is_error,
            }],
        },
        EntryKind::BashExecution(ran) => vec![TranscriptKind::Command {
            command: ran.command.clone(),
            output: ran.output.clone(),
            exit_code: ran.exit_code,
        }],
        EntryKind::CustomMessage { content, .. } => content.iter().map(piece_of).collect(),
        EntryKind::Compaction { summary, .. } | EntryKind::BranchSummary { summary, .. } => {
            vec![TranscriptKind::Summary(summary.clone())]
        }
        _ => Vec::new(),
    }
}

fn piece_of(content: &Content) -> TranscriptKind {
    match content {
        Content::Text(block) => TranscriptKind::Text(block.text.clone()),
        Content::Thinking(block) => TranscriptKind::Thinking(block.thinking.clone()),
        Content::Image(image) => TranscriptKind::Image(image.mime_type.clone()),
        Content::ToolCall(call) => TranscriptKind::ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        },
    }
}
