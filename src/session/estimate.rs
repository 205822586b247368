//! Token estimates, for what no provider has counted yet.

use std::sync::Arc;

use crate::message::{AssistantMessage, Content, Message};

/// Tokens that one image is taken for.
const IMAGE_TOKENS: u64 = 4_800 / 4;

/// The estimate of a text: a quarter of its UTF-16 units, rounded up.
pub(super) fn text_tokens(text: &str) -> u64 {
    (text.encode_utf16().count() as u64).div_ceil(4)
}

/// Tokens that the next request's prompt will hold: the newest reply's own
/// count, plus an estimate of what came after it. Without a reply, all of it
/// is estimated on top of `fixed` (system prompt and tools).
pub(super) fn context_tokens(messages: &[Arc<Message>], fixed: u64) -> u64 {
    let mut after = 0u64;
    for message in messages.iter().rev() {
        if let Message::Assistant(reply) = message.as_ref() {
            let counted = reply.usage.total_tokens();
            if counted > 0 {
                return counted.saturating_add(after);
            }
        }
        after = after.saturating_add(message_tokens(message));
    }
    fixed.saturating_add(after)
}

/// The estimate of a reply's output.
pub(super) fn reply_tokens(reply: &AssistantMessage) -> u64 {
    reply.content.iter().map(content_tokens).sum()
}

fn message_tokens(message: &Message) -> u64 {
    let content = match message {
        Message::User(message) => &message.content,
        Message::Assistant(message) => &message.content,
        Message::ToolResult(message) => &message.content,
    };
    content.iter().map(content_tokens).sum()
}

fn content_tokens(content: &Content) -> u64 {
    match content {
        Content::Text(block) => text_tokens(&block.text),
        Content::Thinking(block) => text_tokens(&block.thinking),
        Content::Image(_) => IMAGE_TOKENS,
        Content::ToolCall(call) => {
            let arguments = match &call.invalid_arguments {
                Some(raw) => text_tokens(raw),
                None => text_tokens(&call.arguments.to_string()),
            };
            text_tokens(&call.name) + arguments
        }
    }
}
