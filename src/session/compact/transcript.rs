//! A conversation as text, so that a model reads it instead of going on with it.

use std::sync::Arc;

use crate::message::{AssistantMessage, Content, Message, ToolCall};
use crate::session::estimate::text_units;

/// UTF-16 units of a result that a transcript shows.
const RESULT_UNITS: u64 = 2_000;

/// How much of a conversation its transcript shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Detail {
    /// UTF-16 units of each result; none leaves results out.
    pub(super) result_units: Option<u64>,
    /// UTF-16 units of the arguments of each call.
    pub(super) arguments_units: u64,
}

impl Detail {
    /// For a model to summarise.
    pub(super) const FULL: Self = Self {
        result_units: Some(RESULT_UNITS),
        arguments_units: u64::MAX,
    };
    /// The same when it does not fit otherwise.
    pub(super) const SHORT: Self = Self {
        result_units: Some(400),
        arguments_units: 400,
    };
    /// Without what tools put out.
    pub(super) const PRUNED: Self = Self {
        result_units: None,
        arguments_units: 200,
    };
}

/// The conversation as text, a paragraph for each thing that was said.
pub(super) fn transcript(messages: &[Arc<Message>], detail: Detail) -> String {
    let mut paragraphs = Vec::new();
    for message in messages {
        match message.as_ref() {
            Message::User(message) => push(&mut paragraphs, "User", &spoken(&message.content)),
            Message::Assistant(reply) => write_reply(&mut paragraphs, reply, detail),
            Message::ToolResult(result) => {
                if let Some(units) = detail.result_units {
                    let text = cut(&spoken(&result.content), units);
                    push(&mut paragraphs, "Tool result", &text);
                }
            }
        }
    }
    paragraphs.join("\n\n")
}

fn write_reply(paragraphs: &mut Vec<String>, reply: &AssistantMessage, detail: Detail) {
    push(paragraphs, "Assistant", &spoken(&reply.content));
    let calls: Vec<String> = reply
        .tool_calls()
        .map(|call| call_text(call, detail))
        .collect();
    push(paragraphs, "Assistant tool calls", &calls.join("; "));
}

fn push(paragraphs: &mut Vec<String>, speaker: &str, text: &str) {
    if !text.trim().is_empty() {
        paragraphs.push(format!("[{speaker}]: {text}"));
    }
}

/// The text of a message; an image is named, thinking is left out.
pub(super) fn spoken(content: &[Content]) -> String {
    let parts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            Content::Text(block) => Some(block.text.as_str()),
            Content::Image(_) => Some("(an image)"),
            Content::Thinking(_) | Content::ToolCall(_) => None,
        })
        .collect();
    parts.join("\n")
}

fn call_text(call: &ToolCall, detail: Detail) -> String {
    let arguments = match (&call.invalid_arguments, call.arguments.as_object()) {
        (Some(raw), _) => raw.clone(),
        (None, Some(fields)) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
            fields.collect::<Vec<_>>().join(", ")
        }
        (None, None) => call.arguments.to_string(),
    };
    format!("{}({})", call.name, cut(&arguments, detail.arguments_units))
}

/// The first `units` UTF-16 units of a text, with a note on what is missing.
pub(super) fn cut(text: &str, units: u64) -> String {
    let start = prefix_of(text, units);
    let missing = text_units(text) - text_units(start);
    if missing == 0 {
        return text.to_owned();
    }
    format!("{start}\n[… {missing} more characters are left out]")
}

/// The longest start of a text that has at most `units` UTF-16 units.
fn prefix_of(text: &str, units: u64) -> &str {
    let mut left = units;
    for (at, symbol) in text.char_indices() {
        let size = symbol.len_utf16() as u64;
        if size > left {
            return text.get(..at).unwrap_or_default();
        }
        left -= size;
    }
    text
}

/// The beginning and the end of a text, together at most `units` UTF-16 units
/// and the note between them; the end, where the work stands, gets the most.
pub(super) fn cut_middle(text: &str, units: u64) -> String {
    if text_units(text) <= units {
        return text.to_owned();
    }
    let head = prefix_of(text, units / 4);
    let mut left = units - units / 4;
    let mut start = text.len();
    for (at, symbol) in text.char_indices().rev() {
        let size = symbol.len_utf16() as u64;
        if size > left {
            break;
        }
        left -= size;
        start = at;
    }
    let tail = text.get(start..).unwrap_or_default();
    format!("{head}\n\n[… the middle of the conversation is left out]\n\n{tail}")
}
