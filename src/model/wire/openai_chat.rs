//! Chat completions, the dialect that most endpoints speak: the request.
//!
//! Its messages are in `openai_chat_messages`, the decoding in
//! `openai_chat_stream`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::model::description::{MaxTokensField, Model, ThinkingFormat};
use crate::model::wire::normalise::{Turn, called_tools};
use crate::model::wire::openai_chat_messages::{add, instructions};
use crate::model::wire::transcript::Transcript;
use crate::model::wire::{Dialect, bearer, response_schema, write_json, write_open};
use crate::model::{Request, ThinkingLevel, ToolDefinition};

/// The chat dialect.
pub(super) struct OpenaiChat;

impl Dialect for OpenaiChat {
    fn path(&self, _model: &Model) -> Cow<'static, str> {
        Cow::Borrowed("/chat/completions")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn head(&self, model: &Model, request: &Request, body: &mut Vec<u8>) {
        write_open(body, &head(model, request), "messages");
        if let Some(message) = instructions(model, request) {
            write_json(body, &message);
        }
    }

    fn turn(&self, model: &Model, turn: Turn<'_>, transcript: &mut Transcript) {
        add(model, turn, transcript);
    }
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(flatten)]
    thinking: ThinkingFields<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<response_schema::ChatFormat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// The ways in which endpoints are asked to think.
#[derive(Serialize, Default)]
struct ThinkingFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Switch>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Reasoning<'a> {
    Effort(&'a str),
    Enabled(bool),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Switch {
    Enabled,
    Disabled,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Tool<'a> {
    Function { function: Function<'a> },
}

#[derive(Serialize)]
struct Function<'a> {
    name: Cow<'a, str>,
    description: &'a str,
    parameters: Cow<'a, Value>,
}

fn head<'a>(model: &'a Model, request: &'a Request) -> Head<'a> {
    let quirks = &model.quirks;
    let cap = request
        .max_output_tokens
        .clamp(1, model.max_output_tokens.max(1));
    let (max_tokens, max_completion_tokens) = match quirks.max_tokens_field {
        MaxTokensField::MaxTokens => (Some(cap), None),
        MaxTokensField::MaxCompletionTokens => (None, Some(cap)),
    };
    let (tools, tool_choice) = tools(model, request);
    Head {
        model: &model.id,
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        max_tokens,
        max_completion_tokens,
        temperature: request
            .temperature
            .filter(|_| quirks.temperature != Some(false)),
        store: (quirks.store != Some(false)).then_some(false),
        prompt_cache_key: (quirks.prompt_cache_key == Some(true)).then_some(&request.session_id),
        session_id: quirks.session_id.then_some(&request.session_id),
        thinking: thinking(model, request.thinking),
        response_format: response_schema::chat(request),
        tools,
        tool_choice,
    }
}

/// The tools, and how they may be called when that is not free. Without tools
/// there are no calls, but Anthropic refuses a conversation that holds calls
/// then: the called ones stand in, and may not be called.
fn tools<'a>(model: &Model, request: &'a Request) -> (Vec<Tool<'a>>, Option<&'static str>) {
    let mut tools: Vec<&ToolDefinition> = request.tools.iter().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let tools: Vec<Tool<'_>> = tools
        .into_iter()
        .map(|tool| Tool::Function {
            function: Function {
                name: Cow::Borrowed(&tool.name),
                description: &tool.description,
                parameters: Cow::Borrowed(&tool.parameters),
            },
        })
        .collect();
    if !tools.is_empty() || !model.quirks.relays_anthropic {
        return (tools, None);
    }
    let called: Vec<Tool<'_>> = called_tools(&request.messages)
        .into_iter()
        .map(|name| Tool::Function {
            function: Function {
                name,
                description: "Not available now.",
                parameters: Cow::Owned(serde_json::json!({"type": "object"})),
            },
        })
        .collect();
    let tool_choice = (!called.is_empty()).then_some("none");
    (called, tool_choice)
}

fn thinking(model: &Model, asked: ThinkingLevel) -> ThinkingFields<'_> {
    if !model.reasoning {
        return ThinkingFields::default();
    }
    let level = model.clamp_thinking(asked);
    let on = level != ThinkingLevel::Off;
    // Off has a name of its own only where the catalog gives one.
    let name = if on {
        Some(model.level_name(level))
    } else {
        model.thinking_levels.get(&level).and_then(Option::as_deref)
    };
    let effort = name.filter(|_| model.quirks.reasoning_effort != Some(false));
    let switch = if on {
        Switch::Enabled
    } else {
        Switch::Disabled
    };
    match model.quirks.thinking_format {
        ThinkingFormat::Openai => ThinkingFields {
            reasoning_effort: effort,
            ..ThinkingFields::default()
        },
        ThinkingFormat::Openrouter => ThinkingFields {
            reasoning: Some(Reasoning::Effort(name.unwrap_or("none"))),
            ..ThinkingFields::default()
        },
        ThinkingFormat::Together => ThinkingFields {
            reasoning: Some(Reasoning::Enabled(on)),
            reasoning_effort: effort.filter(|_| on),
            thinking: None,
        },
        ThinkingFormat::Zai | ThinkingFormat::Deepseek => ThinkingFields {
            thinking: Some(switch),
            reasoning_effort: effort.filter(|_| on),
            reasoning: None,
        },
    }
}
