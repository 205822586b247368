//! A message as a session line has it.
//!
//! The line says `totalTokens` beside the parts: viewers of the format read the
//! size of the context there. Everything else is as in [`Message`].

use serde::{Serialize, Serializer};

use crate::message::{AssistantMessage, Content, Cost, Message, StopReason, Usage};

/// Serialises a message into a session line.
pub(crate) struct MessageLine<'a>(pub(crate) &'a Message);

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AssistantLine<'a> {
    role: &'static str,
    content: &'a [Content],
    api: &'a str,
    provider: &'a str,
    model: &'a str,
    usage: UsageLine,
    stop_reason: StopReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    timestamp: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UsageLine {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    reasoning: u64,
    total_tokens: u64,
    cost: Cost,
}

impl Serialize for MessageLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Message::Assistant(reply) => AssistantLine::of(reply).serialize(serializer),
            message @ (Message::User(_) | Message::ToolResult(_)) => message.serialize(serializer),
        }
    }
}

impl<'a> AssistantLine<'a> {
    fn of(reply: &'a AssistantMessage) -> Self {
        // No field is left out unnoticed.
        let AssistantMessage {
            content,
            api,
            provider,
            model,
            usage,
            stop_reason,
            error_message,
            timestamp,
        } = reply;
        Self {
            role: "assistant",
            content,
            api,
            provider,
            model,
            usage: UsageLine::of(usage),
            stop_reason: *stop_reason,
            error_message: error_message.as_deref(),
            timestamp: *timestamp,
        }
    }
}

impl UsageLine {
    fn of(usage: &Usage) -> Self {
        let Usage {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
            cost,
        } = *usage;
        Self {
            input,
            output,
            cache_read,
            cache_write,
            reasoning,
            total_tokens: usage.total_tokens(),
            cost,
        }
    }
}
