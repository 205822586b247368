//! What is said: the messages of a conversation and what they cost.
//!
//! The shapes are durable. They are the `message` of a session entry in the
//! version-3 session format, so their field names follow that format; the event
//! log shares these types and nothing else with the session file.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The messages of a conversation, oldest first. Shared, so that handing it on
/// costs the same however long it is: whoever adds to it while nobody else holds
/// it copies nothing, and otherwise the pointers only.
pub type Messages = Arc<Vec<Arc<Message>>>;

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
pub enum Message {
    /// What the user, the task or the runner said.
    User(UserMessage),
    /// One reply of the model.
    Assistant(AssistantMessage),
    /// What a tool answered.
    ToolResult(ToolResult),
}

/// A message from the user's side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UserMessage {
    /// Text and images, in order.
    pub content: Vec<Content>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}

/// One reply of a model, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    /// Text, thinking and tool calls, in the order in which the model sent them.
    pub content: Vec<Content>,
    /// The wire dialect, as in the catalog (`anthropic-messages`, …).
    pub api: String,
    /// The provider's id.
    pub provider: String,
    /// The model's id at its provider.
    pub model: String,
    /// Tokens and their cost.
    pub usage: Usage,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// What went wrong, when `stop_reason` is `error` or `aborted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}

/// What a tool answered to one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// The call that this answers.
    pub tool_call_id: String,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// Text and images for the model.
    pub content: Vec<Content>,
    /// Facts for viewers, never sent to the model (a diff, an exit code).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
    /// Milliseconds since the Unix epoch.
    pub timestamp: i64,
}

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Content {
    /// Plain text.
    Text(Text),
    /// The model's thinking.
    Thinking(Thinking),
    /// An image.
    Image(Image),
    /// A request to run a tool.
    ToolCall(ToolCall),
}

/// A block of text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Text {
    /// The text.
    pub text: String,
    /// A provider's signature over the text, sent back as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text_signature: Option<String>,
}

/// A block of thinking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Thinking {
    /// The thinking as text; empty when the provider hides it.
    pub thinking: String,
    /// The provider's signature or encrypted payload, sent back as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<String>,
    /// Whether `thinking_signature` holds the whole of a hidden block.
    #[serde(default, skip_serializing_if = "is_false")]
    pub redacted: bool,
}

/// An image, base64-encoded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The bytes in standard base64.
    pub data: String,
    /// For example `image/png`.
    pub mime_type: String,
}

/// A request of the model to run a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Unique within the reply; the result names it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// A JSON object; empty when `invalid_arguments` is set.
    pub arguments: Value,
    /// The raw text of arguments that did not parse as a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid_arguments: Option<String>,
    /// The provider's signature over its thinking before the call, sent back
    /// with the call as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thought_signature: Option<String>,
}

/// Why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StopReason {
    /// The model had nothing more to say.
    Stop,
    /// The output limit cut the reply.
    Length,
    /// The model waits for tool results.
    ToolUse,
    /// The provider paused a long reply; sending the conversation again goes on.
    Pause,
    /// The model or a filter of the provider refused.
    Refusal,
    /// The call failed.
    Error,
    /// The call was cancelled.
    Aborted,
}

/// Tokens of one or many replies and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Usage {
    /// Input tokens that came from no cache.
    pub input: u64,
    /// Output tokens, thinking included.
    pub output: u64,
    /// Input tokens read from the provider's cache.
    pub cache_read: u64,
    /// Input tokens written to the provider's cache.
    pub cache_write: u64,
    /// The thinking tokens inside `output`, where the provider tells.
    pub reasoning: u64,
    /// The cost in US dollars; all zero when the price is unknown.
    pub cost: Cost,
}

/// A cost in US dollars, by kind of token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Cost {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
    /// The sum.
    pub total: f64,
}

impl Usage {
    /// All tokens of the reply: what stands in the context once it is appended.
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens().saturating_add(self.output)
    }

    /// The tokens of the prompt, cached or not.
    pub fn prompt_tokens(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read)
            .saturating_add(self.cache_write)
    }

    /// Adds another reply's usage to this sum.
    pub fn add(&mut self, other: &Usage) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_write = self.cache_write.saturating_add(other.cache_write);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.cost.input += other.cost.input;
        self.cost.output += other.cost.output;
        self.cost.cache_read += other.cost.cache_read;
        self.cost.cache_write += other.cost.cache_write;
        self.cost.total += other.cost.total;
    }
}

impl Content {
    /// A plain text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            text_signature: None,
        })
    }
}

impl UserMessage {
    /// A user message of one text block.
    pub fn text(text: impl Into<String>, timestamp: i64) -> Self {
        Self {
            content: vec![Content::text(text)],
            timestamp,
        }
    }
}

impl AssistantMessage {
    /// The calls of the reply, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|block| match block {
            Content::ToolCall(call) => Some(call),
            Content::Text(_) | Content::Thinking(_) | Content::Image(_) => None,
        })
    }

    /// All text blocks joined.
    pub fn text(&self) -> String {
        joined_text(&self.content)
    }

    /// All thinking blocks joined.
    pub fn thinking(&self) -> String {
        let mut all = String::new();
        for block in &self.content {
            if let Content::Thinking(block) = block {
                all.push_str(&block.thinking);
            }
        }
        all
    }
}

impl ToolResult {
    /// All text blocks joined.
    pub fn text(&self) -> String {
        joined_text(&self.content)
    }
}

/// Whether a reader does not see a character as itself: controls that are no
/// blanks, what reorders text, and what takes no room. Text of strangers hides
/// in them.
pub fn is_unseen(character: char) -> bool {
    let blank = matches!(character, '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' | '\u{85}');
    character.is_control() && !blank
        || matches!(character,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

fn joined_text(content: &[Content]) -> String {
    let mut all = String::new();
    for block in content {
        if let Content::Text(block) = block {
            all.push_str(&block.text);
        }
    }
    all
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature serde asks for"
)]
fn is_false(value: &bool) -> bool {
    !*value
}
