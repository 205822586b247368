//! Chat completions, the dialect that most endpoints speak: the request.
//!
//! The decoding is in `openai_chat_stream`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::message::Image;
use crate::model::description::{MaxTokensField, Model, ThinkingFormat};
use crate::model::wire::normalise::{Answer, Block, Turn};
use crate::model::wire::transcript::Transcript;
use crate::model::wire::{Dialect, bearer, write_json, write_open};
use crate::model::{Request, ThinkingLevel};

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
        if let Some(message) = system(model, request) {
            write_json(body, &message);
        }
    }

    fn turn(&self, model: &Model, turn: Turn<'_>, transcript: &mut Transcript) {
        match turn {
            Turn::User(blocks) => transcript.item(&MessageField::User {
                content: said(blocks),
            }),
            Turn::Assistant(blocks) => {
                if let Some(message) = replied(model, blocks) {
                    transcript.item(&message);
                }
            }
            Turn::Results(answers) => results(answers, transcript),
        }
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
    #[serde(flatten)]
    thinking: ThinkingFields<'a>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
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
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum MessageField<'a> {
    System {
        content: &'a str,
    },
    Developer {
        content: &'a str,
    },
    User {
        content: Said<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: String,
    },
}

/// What the user says: a string wherever it can be one, because the simplest
/// servers know nothing else.
enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

impl Serialize for Said<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Parts(parts) => parts.serialize(serializer),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Call<'a> {
    Function {
        id: Cow<'a, str>,
        function: CalledFunction<'a>,
    },
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: String,
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
    let mut tools: Vec<&crate::model::ToolDefinition> = request.tools.iter().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
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
        prompt_cache_key: quirks.prompt_cache_key.then_some(&request.session_id),
        thinking: thinking(model, request.thinking),
        tools: tools
            .into_iter()
            .map(|tool| Tool::Function {
                function: Function {
                    name: &tool.name,
                    description: &tool.description,
                    parameters: &tool.parameters,
                },
            })
            .collect(),
    }
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

fn system<'a>(model: &Model, request: &'a Request) -> Option<MessageField<'a>> {
    let content = request.system.as_str();
    if content.trim().is_empty() {
        return None;
    }
    if model.reasoning && model.quirks.developer_role != Some(false) {
        return Some(MessageField::Developer { content });
    }
    Some(MessageField::System { content })
}

fn said(blocks: Vec<Block<'_>>) -> Said<'_> {
    if let [Block::Text(text)] = blocks.as_slice() {
        return Said::Text(Cow::Borrowed(text));
    }
    let parts: Vec<Part<'_>> = blocks.into_iter().filter_map(part).collect();
    if parts.iter().all(|part| matches!(part, Part::Text { .. })) {
        let texts: Vec<&str> = parts
            .iter()
            .filter_map(|part| match part {
                Part::Text { text } => Some(*text),
                Part::ImageUrl { .. } => None,
            })
            .collect();
        return Said::Text(Cow::Owned(texts.join("\n")));
    }
    Said::Parts(parts)
}

fn part(block: Block<'_>) -> Option<Part<'_>> {
    match block {
        Block::Text(text) | Block::SignedText { text, .. } => Some(Part::Text { text }),
        Block::Image(image) => Some(image_part(image)),
        Block::Thinking(_) | Block::Call { .. } => None,
    }
}

fn image_part<'a>(image: &Image) -> Part<'a> {
    Part::ImageUrl {
        image_url: ImageUrl {
            url: format!("data:{};base64,{}", image.mime_type, image.data),
        },
    }
}

/// Nothing when all that was said cannot be sent back.
fn replied<'a>(model: &Model, blocks: Vec<Block<'a>>) -> Option<MessageField<'a>> {
    let mut content: Option<String> = None;
    let mut reasoning = String::new();
    let mut tool_calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text(text) | Block::SignedText { text, .. } => {
                content.get_or_insert_default().push_str(text)
            }
            Block::Thinking(thinking) => reasoning.push_str(&thinking.thinking),
            Block::Call { id, call, .. } => tool_calls.push(Call::Function {
                id,
                function: CalledFunction {
                    name: &call.name,
                    arguments: call.arguments.to_string(),
                },
            }),
            Block::Image(_) => {}
        }
    }
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    Some(MessageField::Assistant {
        content,
        // Such endpoints refuse replies without it, even an empty one.
        reasoning_content: model.quirks.echo_reasoning_content.then_some(reasoning),
        tool_calls,
    })
}

/// Results are text only: images follow in a message of the user.
fn results(answers: Vec<Answer<'_>>, transcript: &mut Transcript) {
    let mut images = Vec::new();
    for answer in answers {
        let mut content = String::new();
        let images_before = images.len();
        for block in answer.content {
            match block {
                Block::Text(text) | Block::SignedText { text, .. } => {
                    if !content.is_empty() {
                        content.push('\n');
                    }
                    content.push_str(text);
                }
                Block::Image(image) => images.push(image_part(image)),
                Block::Thinking(_) | Block::Call { .. } => {}
            }
        }
        if content.is_empty() {
            content = if images.len() > images_before {
                "(an image, attached below)".to_owned()
            } else {
                "(no output)".to_owned()
            };
        }
        if answer.is_error {
            content.insert_str(0, "error: ");
        }
        transcript.item(&MessageField::Tool {
            tool_call_id: answer.id,
            content,
        });
    }
    if !images.is_empty() {
        images.insert(
            0,
            Part::Text {
                text: "Images from the tool results above:",
            },
        );
        transcript.item(&MessageField::User {
            content: Said::Parts(images),
        });
    }
}
