//! Anthropic's messages: the request.
//!
//! The fields that change least come first, and messages last, so that bytes
//! once sent stay where they were. The decoding is in `anthropic_stream`.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::message::Thinking;
use crate::model::description::Model;
use crate::model::error::ModelError;
use crate::model::sse::Frame;
use crate::model::wire::anthropic_stream::Decoder;
use crate::model::wire::normalise::{Answer, Block, Turn, normalise};
use crate::model::wire::{Events, Wire, write_json};
use crate::model::{Request, ThinkingLevel};

/// The smallest thinking budget that is accepted.
const BUDGET_TOKENS_MIN: u64 = 1024;

/// A call in Anthropic's dialect.
#[derive(Default)]
pub(super) struct Anthropic {
    decoder: Decoder,
}

impl Wire for Anthropic {
    fn path(&self, _model: &Model) -> Cow<'static, str> {
        Cow::Borrowed("/v1/messages")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-api-key", key.to_owned()))
            .into_iter()
            .chain([("anthropic-version", "2023-06-01".to_owned())])
            .collect()
    }

    fn body(&self, model: &Model, request: &Request) -> Vec<u8> {
        body(model, request)
    }

    fn frame(&mut self, frame: &Frame, events: &mut Events) -> Result<(), ModelError> {
        self.decoder.frame(frame, events)
    }

    fn document(&mut self, body: &str, events: &mut Events) -> Result<(), ModelError> {
        self.decoder.document(body, events)
    }

    fn end(&mut self, _events: &mut Events) -> Result<(), ModelError> {
        self.decoder.end()
    }

    fn is_whole(&self) -> bool {
        self.decoder.is_whole()
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
    effort: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum ToolChoice {
    None,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
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
struct MessageField<'a> {
    role: &'static str,
    content: Vec<BlockField<'a>>,
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
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
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
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Vec<BlockField<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "base64")]
struct ImageSource<'a> {
    media_type: &'a str,
    data: &'a str,
}

fn body(model: &Model, request: &Request) -> Vec<u8> {
    let mut messages = messages(model, request);
    mark_last_user_block(&mut messages);
    let head = head(model, request, &messages);
    let mut body = Vec::with_capacity(16 * 1024);
    write_json(&mut body, &head);
    // The head is an object that is never empty: it continues with messages.
    body.pop();
    body.extend_from_slice(b",\"messages\":");
    write_json(&mut body, &messages);
    body.push(b'}');
    body
}

fn head<'a>(model: &'a Model, request: &'a Request, messages: &[MessageField<'a>]) -> Head<'a> {
    let asked = Thought::of(model, request);
    let mut tools: Vec<Tool<'a>> = request
        .tools
        .iter()
        .map(|tool| Tool {
            name: &tool.name,
            description: &tool.description,
            input_schema: Cow::Borrowed(&tool.parameters),
            cache_control: None,
        })
        .collect();
    let mut tool_choice = None;
    if tools.is_empty() {
        tools = remembered_tools(messages);
        tool_choice = (!tools.is_empty()).then_some(ToolChoice::None);
    }
    tools.sort_by(|a, b| a.name.cmp(b.name));
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(CacheControl::Ephemeral);
    }
    let thinks = matches!(
        asked.field,
        Some(ThinkingField::Adaptive | ThinkingField::Enabled { .. })
    );
    let takes_temperature = !thinks && model.quirks.temperature != Some(false);
    Head {
        model: &model.id,
        max_tokens: asked.max_tokens,
        stream: true,
        temperature: request.temperature.filter(|_| takes_temperature),
        thinking: asked.field,
        output_config: asked.effort.map(|effort| OutputConfig { effort }),
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
fn remembered_tools<'a>(messages: &[MessageField<'a>]) -> Vec<Tool<'a>> {
    let names: BTreeSet<&'a str> = messages
        .iter()
        .flat_map(|message| &message.content)
        .filter_map(|block| match block {
            BlockField::ToolUse { name, .. } => Some(*name),
            _ => None,
        })
        .collect();
    names
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

fn messages<'a>(model: &Model, request: &'a Request) -> Vec<MessageField<'a>> {
    let mut fields: Vec<MessageField<'a>> = Vec::with_capacity(request.messages.len());
    for turn in normalise(model, &request.messages) {
        let (role, content): (_, Vec<BlockField<'a>>) = match turn {
            Turn::User(blocks) => ("user", blocks.into_iter().filter_map(block).collect()),
            Turn::Assistant(blocks) => {
                ("assistant", blocks.into_iter().filter_map(block).collect())
            }
            Turn::Results(answers) => ("user", answers.into_iter().map(answer).collect()),
        };
        if content.is_empty() {
            continue;
        }
        match fields.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            _ => fields.push(MessageField { role, content }),
        }
    }
    fields
}

fn block(block: Block<'_>) -> Option<BlockField<'_>> {
    match block {
        Block::Text(text) | Block::SignedText { text, .. } => Some(BlockField::Text {
            text,
            cache_control: None,
        }),
        Block::Image(image) => Some(BlockField::Image {
            source: ImageSource {
                media_type: &image.mime_type,
                data: &image.data,
            },
            cache_control: None,
        }),
        Block::Thinking(thinking) => thinking_block(thinking),
        Block::Call { id, call, .. } => Some(BlockField::ToolUse {
            id,
            name: &call.name,
            input: &call.arguments,
        }),
    }
}

/// Thinking without its signature would be refused; as text it still helps.
fn thinking_block(block: &Thinking) -> Option<BlockField<'_>> {
    match block
        .thinking_signature
        .as_deref()
        .filter(|signature| !signature.is_empty())
    {
        Some(data) if block.redacted => Some(BlockField::RedactedThinking { data }),
        Some(signature) => Some(BlockField::Thinking {
            thinking: &block.thinking,
            signature,
        }),
        None if block.redacted || block.thinking.trim().is_empty() => None,
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
        cache_control: None,
    }
}

/// Everything up to here is cached for the next step.
fn mark_last_user_block(messages: &mut [MessageField<'_>]) {
    let last = messages
        .iter_mut()
        .rev()
        .find(|message| message.role == "user")
        .and_then(|message| message.content.last_mut());
    if let Some(
        BlockField::Text { cache_control, .. }
        | BlockField::Image { cache_control, .. }
        | BlockField::ToolResult { cache_control, .. },
    ) = last
    {
        *cache_control = Some(CacheControl::Ephemeral);
    }
}
