//! Token estimates, for what no provider has counted yet.

use std::sync::Arc;

use crate::message::{AssistantMessage, Content, Message};
use crate::model::ToolDefinition;

/// Tokens that one image is taken for.
const IMAGE_TOKENS: u64 = 4_800 / 4;

/// The estimate of a text: a quarter of its UTF-16 units, rounded up.
pub(super) fn text_tokens(text: &str) -> u64 {
    (text.encode_utf16().count() as u64).div_ceil(4)
}

/// How many tokens the next request's prompt will hold: the newest reply's own
/// count, plus an estimate of what came after it. Without a counted reply, all
/// of it is estimated on top of what every request carries.
///
/// Each message is looked at once, however many steps a turn has.
#[derive(Debug)]
pub(super) struct ContextMeter {
    /// The estimate of the system prompt and the tools.
    fixed: u64,
    /// The prompt with all messages so far.
    tokens: u64,
    /// How many messages that are, and the last one of them.
    seen: usize,
    last: Option<Arc<Message>>,
}

impl ContextMeter {
    /// A meter for requests with this system prompt and these tools.
    pub(super) fn new(system: &str, tools: &[ToolDefinition]) -> Self {
        let tools: u64 = tools
            .iter()
            .map(|tool| text_tokens(&tool.description) + text_tokens(&tool.parameters.to_string()))
            .sum();
        let fixed = text_tokens(system).saturating_add(tools);
        Self {
            fixed,
            tokens: fixed,
            seen: 0,
            last: None,
        }
    }

    /// The tokens of a prompt with these messages.
    pub(super) fn tokens(&mut self, messages: &[Arc<Message>]) -> u64 {
        if !self.is_continued_by(messages) {
            self.tokens = self.fixed;
            self.seen = 0;
        }
        for message in messages.iter().skip(self.seen) {
            let counted = match message.as_ref() {
                Message::Assistant(reply) => reply.usage.total_tokens(),
                Message::User(_) | Message::ToolResult(_) => 0,
            };
            self.tokens = match counted {
                0 => self.tokens.saturating_add(message_tokens(message)),
                counted => counted,
            };
        }
        self.seen = messages.len();
        self.last = messages.last().cloned();
        self.tokens
    }

    /// Whether these are the messages that were seen, and later ones: a
    /// history can also be replaced by a shorter one.
    fn is_continued_by(&self, messages: &[Arc<Message>]) -> bool {
        let Some(last) = &self.last else {
            return true;
        };
        let same_place = self.seen.checked_sub(1).and_then(|at| messages.get(at));
        same_place.is_some_and(|message| Arc::ptr_eq(message, last))
    }
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
