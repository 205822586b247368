//! Token estimates, for what no provider has counted yet.
//!
//! A token is taken for four UTF-16 units of a message's text. What a provider
//! has counted goes before any estimate, unless a compaction came after it: the
//! conversation that was counted is then no longer the one that is sent.

use std::sync::Arc;

use crate::message::{AssistantMessage, Content, Message, StopReason};
use crate::model::ToolDefinition;
use crate::store::{EntryKind, SessionTree};

/// UTF-16 units of a text that are taken for one token.
const UNITS_PER_TOKEN: u64 = 4;

/// UTF-16 units that one image is taken for.
const IMAGE_UNITS: u64 = 4_800;

/// The UTF-16 units of a text.
pub(super) fn text_units(text: &str) -> u64 {
    if text.is_ascii() {
        text.len() as u64
    } else {
        text.encode_utf16().count() as u64
    }
}

/// The estimate of a text: a quarter of its UTF-16 units, rounded up.
pub(super) fn text_tokens(text: &str) -> u64 {
    text_units(text).div_ceil(UNITS_PER_TOKEN)
}

/// The estimate of a message: all its text taken together.
pub(super) fn message_tokens(message: &Message) -> u64 {
    content_tokens(match message {
        Message::User(message) => &message.content,
        Message::Assistant(message) => &message.content,
        Message::ToolResult(message) => &message.content,
    })
}

/// The estimate of a reply's output.
pub(super) fn reply_tokens(reply: &AssistantMessage) -> u64 {
    content_tokens(&reply.content)
}

fn content_tokens(content: &[Content]) -> u64 {
    let units: u64 = content.iter().map(content_units).sum();
    units.div_ceil(UNITS_PER_TOKEN)
}

fn content_units(content: &Content) -> u64 {
    match content {
        Content::Text(block) => text_units(&block.text),
        Content::Thinking(block) => text_units(&block.thinking),
        Content::Image(_) => IMAGE_UNITS,
        Content::ToolCall(call) => {
            let arguments = match &call.invalid_arguments {
                Some(raw) => text_units(raw),
                None => text_units(&call.arguments.to_string()),
            };
            text_units(&call.name) + arguments
        }
    }
}

/// The tokens that a provider counted up to and with this message; none for
/// what nobody counted, and for replies that failed.
fn counted_tokens(message: &Message) -> Option<u64> {
    let Message::Assistant(reply) = message else {
        return None;
    };
    let failed = matches!(reply.stop_reason, StopReason::Error | StopReason::Aborted);
    let tokens = reply.usage.total_tokens();
    (tokens > 0 && !failed).then_some(tokens)
}

/// The tokens of a conversation: what was counted, and an estimate of the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ContextTokens {
    /// The newest count of a provider that still holds, if there is one.
    pub counted: Option<u64>,
    /// The estimate of what came after it, or of everything.
    pub estimated: u64,
}

impl ContextTokens {
    /// The tokens of the messages that the leaf of `tree` sends. The system
    /// prompt and the tools are in a count, but not in an estimate.
    pub fn of(tree: &SessionTree) -> Self {
        let path = tree.path();
        let compacted = path
            .iter()
            .rposition(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
        let fresh = path.get(compacted.map_or(0, |at| at + 1)..);
        let mut after = 0;
        for entry in fresh.unwrap_or_default().iter().rev() {
            let Some(message) = tree.sent(entry) else {
                continue;
            };
            if let Some(counted) = counted_tokens(&message) {
                return Self {
                    counted: Some(counted),
                    estimated: after,
                };
            }
            after += message_tokens(&message);
        }
        Self {
            counted: None,
            estimated: tree.messages().iter().map(|one| message_tokens(one)).sum(),
        }
    }

    /// All of them.
    pub fn total(&self) -> u64 {
        self.counted.unwrap_or(0).saturating_add(self.estimated)
    }
}

/// The estimated tokens of messages, by who speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EstimatedTokens {
    /// All messages.
    pub total: u64,
    /// The user's side, summaries included.
    pub user: u64,
    /// The model's replies.
    pub assistant: u64,
    /// The results of tools.
    pub tool_result: u64,
}

impl EstimatedTokens {
    /// The estimates of `messages`, whatever a provider counted.
    pub fn of(messages: &[Arc<Message>]) -> Self {
        let mut sums = Self::default();
        for message in messages {
            let tokens = message_tokens(message);
            sums.total += tokens;
            match message.as_ref() {
                Message::User(_) => sums.user += tokens,
                Message::Assistant(_) => sums.assistant += tokens,
                Message::ToolResult(_) => sums.tool_result += tokens,
            }
        }
        sums
    }
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
    /// How many messages that are, and the first and the last one of them.
    seen: usize,
    ends: Option<(Arc<Message>, Arc<Message>)>,
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
            ends: None,
        }
    }

    /// The estimate of what every request carries besides messages.
    pub(super) fn fixed(&self) -> u64 {
        self.fixed
    }

    /// The tokens of a prompt with the messages of the leaf.
    pub(super) fn tokens(&mut self, tree: &SessionTree) -> u64 {
        let messages = tree.messages();
        if self.is_continued_by(messages) {
            for message in messages.iter().skip(self.seen) {
                self.tokens = match counted_tokens(message) {
                    None => self.tokens.saturating_add(message_tokens(message)),
                    Some(counted) => counted,
                };
            }
        } else {
            let tokens = ContextTokens::of(tree);
            self.tokens = match tokens.counted {
                None => tokens.total().saturating_add(self.fixed),
                Some(_) => tokens.total(),
            };
        }
        self.seen = messages.len();
        self.ends = messages.first().cloned().zip(messages.last().cloned());
        self.tokens
    }

    /// Whether these are the messages that were seen, and later ones: a
    /// history can also be replaced, by one of the same length too.
    fn is_continued_by(&self, messages: &[Arc<Message>]) -> bool {
        let Some((first, last)) = &self.ends else {
            return false;
        };
        let same = |at: usize, message| {
            messages
                .get(at)
                .is_some_and(|one| Arc::ptr_eq(one, message))
        };
        same(0, first) && self.seen.checked_sub(1).is_some_and(|at| same(at, last))
    }
}

/// How full the model's window is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ContextUsage {
    /// The tokens of the context; unknown between a compaction and the next
    /// reply, because nobody has counted what is left.
    pub tokens: Option<u64>,
    /// The tokens of the model's window.
    pub window: u64,
    /// The share of the window in per cent; unknown with the tokens.
    pub percent: Option<f64>,
}

impl ContextUsage {
    pub(super) fn of(tree: &SessionTree, window: u64) -> Self {
        let tokens = ContextTokens::of(tree);
        let compacted = tokens.counted.is_none()
            && tree
                .context()
                .first()
                .is_some_and(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
        let tokens = (!compacted).then(|| tokens.total());
        Self {
            tokens,
            window,
            percent: tokens.map(|tokens| tokens as f64 * 100.0 / window.max(1) as f64),
        }
    }
}
