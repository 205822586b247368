//! Anthropic's messages: the request.
//!
//! The fields that change least come first, and messages last, so that bytes
//! once sent stay where they were. The decoding is in `anthropic_stream`.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::message::{Content, Message, Thinking};
use crate::model::description::Model;
use crate::model::wire::normalise::{
    Answer, Block, Turn, called_tools, is_blank, is_left_out, is_own,
};
use crate::model::wire::transcript::{Role, Transcript};
use crate::model::wire::{Dialect, response_schema, write_open};
use crate::model::{Request, ThinkingLevel};

/// The smallest thinking budget that is accepted.
const BUDGET_TOKENS_MIN: u64 = 1024;

/// Anthropic's dialect.
pub(super) struct Anthropic;

impl Dialect for Anthropic {
    fn path(&self, _model: &Model) -> Cow<'static, str> {
        Cow::Borrowed("/v1/messages")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-api-key", key.to_owned()))
            .into_iter()
            .chain([("anthropic-version", "2023-06-01".to_owned())])
            .collect()
    }

    fn head(&self, model: &Model, request: &Request, body: &mut Vec<u8>) {
        write_open(body, &head(model, request), "messages");
    }

    fn turn(&self, _model: &Model, turn: Turn<'_>, transcript: &mut Transcript) {
        let (role, blocks) = match turn {
            Turn::User(blocks) => (Role::User, blocks),
            Turn::Assistant(blocks) => (Role::Assistant, blocks),
            Turn::Results(answers) => {
                for result in answers.into_iter().map(answer) {
                    transcript.block(Role::User, &result);
                }
                return;
            }
        };
        for block in blocks.into_iter().filter_map(block) {
            transcript.block(role, &block);
        }
    }
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    max_tokens: u64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<ToolChoice>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[BlockField<'a>; 1]>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ThinkingField {
    Adaptive,
    Enabled { budget_tokens: u64 },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<response_schema::AnthropicFormat<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ToolChoice {
    None,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    input_schema: Cow<'a, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize, Clone, Copy)]
#[serde(tag = "type", rename_all = "lowercase")]
enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum BlockField<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: ImageSource<'a>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<BlockField<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
struct ImageSource<'a> {
    media_type: &'a str,
    data: &'a str,
}

fn head<'a>(model: &'a Model, request: &'a Request) -> Head<'a> {
    let asked = Thought::of(model, request);
    let mut tools: Vec<Tool<'a>> = request
        .tools
        .iter()
        .map(|tool| Tool {
            name: Cow::Borrowed(&tool.name),
            description: &tool.description,
            input_schema: Cow::Borrowed(&tool.parameters),
            cache_control: None,
        })
        .collect();
    let mut tool_choice = None;
    if tools.is_empty() {
        tools = remembered_tools(&request.messages);
        tool_choice = (!tools.is_empty()).then_some(ToolChoice::None);
    }
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    let thinks = matches!(
        asked.field,
        Some(ThinkingField::Adaptive | ThinkingField::Enabled { .. })
    );
    let takes_temperature = !thinks && model.quirks.temperature != Some(false);
    let (effort, format) = (asked.effort, response_schema::anthropic(request));
    let configured = effort.is_some() || format.is_some();
    Head {
        model: &model.id,
        max_tokens: asked.max_tokens,
        stream: true,
        temperature: request.temperature.filter(|_| takes_temperature),
        thinking: asked.field,
        output_config: configured.then_some(OutputConfig { effort, format }),
        tools,
        tool_choice,
        system: (!request.system.trim().is_empty()).then_some([BlockField::Text {
            text: &request.system,
            cache_control: Some(CacheControl::Ephemeral),
        }]),
    }
}

/// A conversation that holds calls is refused without tools: the ones it names
/// stand in, and may not be called.
fn remembered_tools(messages: &[Arc<Message>]) -> Vec<Tool<'_>> {
    called_tools(messages)
        .into_iter()
        .map(|name| Tool {
            name,
            description: "Not available now.",
            input_schema: Cow::Owned(serde_json::json!({"type": "object"})),
            cache_control: None,
        })
        .collect()
}

/// How thinking is asked for.
struct Thought<'a> {
    field: Option<ThinkingField>,
    effort: Option<&'a str>,
    max_tokens: u64,
}

impl<'a> Thought<'a> {
    fn of(model: &'a Model, request: &Request) -> Self {
        let max_tokens = request
            .max_output_tokens
            .clamp(1, model.max_output_tokens.max(1));
        let level = model.clamp_thinking(request.thinking);
        let plain = |field| Thought {
            field,
            effort: None,
            max_tokens,
        };
        if !model.reasoning {
            return plain(None);
        }
        if level == ThinkingLevel::Off {
            return plain(Some(ThinkingField::Disabled));
        }
        if model.quirks.adaptive_thinking {
            return Thought {
                field: Some(ThinkingField::Adaptive),
                effort: Some(effort(model, level)),
                max_tokens,
            };
        }
        if began_without_thinking(model, &request.messages) {
            return plain(Some(ThinkingField::Disabled));
        }
        let max_tokens = max_tokens
            .saturating_add(budget(level))
            .min(model.max_output_tokens);
        // Something must be left to answer with.
        let budget_tokens = budget(level).min(max_tokens.saturating_sub(BUDGET_TOKENS_MIN));
        if budget_tokens < BUDGET_TOKENS_MIN {
            return plain(Some(ThinkingField::Disabled));
        }
        Thought {
            field: Some(ThinkingField::Enabled { budget_tokens }),
            effort: None,
            max_tokens,
        }
    }
}

/// Whether the model is to go on with calls none of whose replies holds thinking
/// of its own: another model began them, or they were begun without thinking.
/// With a budget, such a conversation is refused until the calls have ended.
fn began_without_thinking(model: &Model, messages: &[Arc<Message>]) -> bool {
    let mut calls = false;
    for message in messages.iter().rev() {
        let Message::Assistant(reply) = message.as_ref() else {
            continue;
        };
        if is_left_out(reply) {
            continue;
        }
        if reply.tool_calls().next().is_none() {
            break;
        }
        calls = true;
        let is_signed = |block: &Content| match block {
            Content::Thinking(thinking) => signature(thinking).is_some(),
            Content::Text(_) | Content::Image(_) | Content::ToolCall(_) => false,
        };
        if is_own(model, reply) && reply.content.iter().any(is_signed) {
            return false;
        }
    }
    calls
}

fn signature(thinking: &Thinking) -> Option<&str> {
    let signature = thinking.thinking_signature.as_deref();
    signature.filter(|signature| !signature.is_empty())
}

/// There is no effort below `low`.
fn effort(model: &Model, level: ThinkingLevel) -> &str {
    match (level, model.thinking_levels.get(&level)) {
        (ThinkingLevel::Minimal, None) => "low",
        _ => model.level_name(level),
    }
}

fn budget(level: ThinkingLevel) -> u64 {
    match level {
        ThinkingLevel::Off => 0,
        ThinkingLevel::Minimal => 1024,
        ThinkingLevel::Low => 2048,
        ThinkingLevel::Medium => 8192,
        ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => 16_384,
    }
}

fn block(block: Block<'_>) -> Option<BlockField<'_>> {
    match block {
        Block::SignedText { text, .. } if is_blank(text) => None,
        Block::Text(text) | Block::SignedText { text, .. } => Some(BlockField::Text {
            text,
            cache_control: None,
        }),
        Block::Image(image) => Some(BlockField::Image {
            source: ImageSource {
                media_type: &image.mime_type,
                data: &image.data,
            },
        }),
        Block::Thinking(thinking) => thinking_block(thinking),
        Block::Call {
            id,
            name,
            arguments,
            ..
        } => Some(BlockField::ToolUse {
            id,
            name,
            input: arguments,
        }),
    }
}

/// Thinking without its signature would be refused; as text it still helps.
fn thinking_block(block: &Thinking) -> Option<BlockField<'_>> {
    match signature(block) {
        Some(data) if block.redacted => Some(BlockField::RedactedThinking { data }),
        Some(signature) => Some(BlockField::Thinking {
            thinking: &block.thinking,
            signature,
        }),
        None if block.redacted || is_blank(&block.thinking) => None,
        None => Some(BlockField::Text {
            text: &block.thinking,
            cache_control: None,
        }),
    }
}

fn answer(answer: Answer<'_>) -> BlockField<'_> {
    let mut content: Vec<BlockField<'_>> = answer.content.into_iter().filter_map(block).collect();
    if content.is_empty() {
        content.push(BlockField::Text {
            text: "(no output)",
            cache_control: None,
        });
    }
    BlockField::ToolResult {
        tool_use_id: answer.id,
        content,
        is_error: answer.is_error,
    }
}
