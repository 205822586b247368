//! OpenAI's responses: the request.
//!
//! Nothing is stored at the provider: the whole conversation goes along, the
//! model's reasoning in encrypted items that only the provider can read. The
//! decoding is in `openai_responses_stream`.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::message::{Image, Thinking};
use crate::model::description::Model;
use crate::model::wire::normalise::{Answer, Block, Turn};
use crate::model::wire::transcript::Transcript;
use crate::model::wire::{Dialect, bearer, response_schema, write_open};
use crate::model::{Request, ThinkingLevel, ToolDefinition};

/// The smallest output cap that is accepted.
const OUTPUT_TOKENS_MIN: u64 = 16;
/// The longest id of an item, and the longest cache key.
const ID_CHARS_MAX: usize = 64;

/// The responses dialect.
pub(super) struct OpenaiResponses;

impl Dialect for OpenaiResponses {
    fn path(&self, _model: &Model) -> Cow<'static, str> {
        Cow::Borrowed("/responses")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn head(&self, model: &Model, request: &Request, body: &mut Vec<u8>) {
        write_open(body, &head(model, request), "input");
    }

    fn turn(&self, _model: &Model, turn: Turn<'_>, transcript: &mut Transcript) {
        match turn {
            Turn::User(blocks) => transcript.item(&Item::Message {
                role: "user",
                id: None,
                phase: None,
                status: None,
                content: blocks.into_iter().filter_map(part).collect(),
            }),
            Turn::Assistant(blocks) => {
                for item in replied(blocks) {
                    transcript.item(&item);
                }
            }
            Turn::Results(answers) => {
                for item in answers.into_iter().map(result) {
                    transcript.item(&item);
                }
            }
        }
    }
}

/// Id and phase of a message of the model, kept as the signature of its text.
#[derive(Serialize, Deserialize)]
pub(super) struct MessageSignature<'a> {
    v: u32,
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    phase: Option<Cow<'a, str>>,
}

impl<'a> MessageSignature<'a> {
    pub(super) fn new(id: &'a str, phase: Option<&'a str>) -> Self {
        Self {
            v: 1,
            id: Cow::Borrowed(id),
            phase: phase.map(Cow::Borrowed),
        }
    }
}

#[derive(Serialize)]
struct Head<'a> {
    model: &'a str,
    stream: bool,
    store: bool,
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include: Option<[&'static str; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<response_schema::ResponsesText<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a str>,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Tool<'a> {
    Function {
        name: &'a str,
        description: &'a str,
        parameters: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Input<'a> {
    Item(Item<'a>),
    /// The model's reasoning, in the bytes in which it came.
    Reasoning(&'a RawValue),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Item<'a> {
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<Cow<'a, str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        status: Option<&'static str>,
        content: Vec<Part<'a>>,
    },
    FunctionCall {
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        call_id: String,
        name: Cow<'a, str>,
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        output: Output<'a>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    InputText {
        text: &'a str,
    },
    InputImage {
        detail: &'static str,
        image_url: String,
    },
    OutputText {
        text: &'a str,
        annotations: [(); 0],
    },
}

/// A result: a string wherever it can be one.
#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

fn head<'a>(model: &'a Model, request: &'a Request) -> Head<'a> {
    let most = model.max_output_tokens.max(OUTPUT_TOKENS_MIN);
    let mut tools: Vec<&ToolDefinition> = request.tools.iter().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let thinks = model.reasoning && model.clamp_thinking(request.thinking) != ThinkingLevel::Off;
    let takes_temperature = !thinks && model.quirks.temperature != Some(false);
    Head {
        model: &model.id,
        stream: true,
        store: false,
        max_output_tokens: request.max_output_tokens.clamp(OUTPUT_TOKENS_MIN, most),
        temperature: request.temperature.filter(|_| takes_temperature),
        reasoning: reasoning(model, request.thinking),
        // What is not stored must come along to be sent back.
        include: model.reasoning.then_some(["reasoning.encrypted_content"]),
        prompt_cache_key: request
            .session_id
            .get(..ID_CHARS_MAX.min(request.session_id.len()))
            .filter(|key| !key.is_empty() && model.quirks.prompt_cache_key != Some(false)),
        parallel_tool_calls: (!tools.is_empty()).then_some(true),
        text: response_schema::responses(request),
        tools: tools
            .into_iter()
            .map(|tool| Tool::Function {
                name: &tool.name,
                description: &tool.description,
                parameters: &tool.parameters,
                // Without it the schema would be taken as a strict one.
                strict: (model.quirks.strict_tools != Some(false)).then_some(false),
            })
            .collect(),
        instructions: Some(request.system.as_str()).filter(|text| !text.trim().is_empty()),
    }
}

fn reasoning(model: &Model, asked: ThinkingLevel) -> Option<Reasoning<'_>> {
    if !model.reasoning || model.quirks.reasoning_effort == Some(false) {
        return None;
    }
    let level = model.clamp_thinking(asked);
    if level != ThinkingLevel::Off {
        return Some(Reasoning {
            effort: model.level_name(level),
            summary: Some("auto"),
        });
    }
    // Off has a name of its own only where the catalog gives one.
    let effort = model.thinking_levels.get(&level)?.as_deref()?;
    Some(Reasoning {
        effort,
        summary: None,
    })
}

fn part(block: Block<'_>) -> Option<Part<'_>> {
    match block {
        Block::Text(text) | Block::SignedText { text, .. } => Some(Part::InputText { text }),
        Block::Image(image) => Some(Part::InputImage {
            detail: "auto",
            image_url: data_url(image),
        }),
        Block::Thinking(_) | Block::Call { .. } => None,
    }
}

fn data_url(image: &Image) -> String {
    format!("data:{};base64,{}", image.mime_type, image.data)
}

fn replied(blocks: Vec<Block<'_>>) -> Vec<Input<'_>> {
    let mut items = Vec::with_capacity(blocks.len());
    // The provider knows which items belong to which reasoning: without the
    // reasoning, the others must not be named.
    let named = blocks.iter().all(|block| match block {
        Block::Thinking(thinking) => reasoning_item(thinking).is_some(),
        Block::Text(_) | Block::SignedText { .. } | Block::Image(_) | Block::Call { .. } => true,
    });
    for block in blocks {
        let item = match block {
            Block::Thinking(thinking) => match reasoning_item(thinking) {
                Some(item) => Input::Reasoning(item),
                None => continue,
            },
            Block::Text(text) => message(text, None),
            Block::SignedText { text, signature } => {
                if text.trim().is_empty() {
                    continue;
                }
                message(text, Some(signature).filter(|_| named))
            }
            Block::Call {
                id,
                name,
                arguments,
                ..
            } => {
                let (call_id, item_id) = split_id(&id);
                Input::Item(Item::FunctionCall {
                    id: item_id
                        .filter(|id| named && id.starts_with("fc") && id.len() <= ID_CHARS_MAX)
                        .map(str::to_owned),
                    call_id: call_id.to_owned(),
                    name,
                    arguments: arguments.to_string(),
                })
            }
            Block::Image(_) => continue,
        };
        items.push(item);
    }
    // Reasoning that leads to nothing is refused.
    while matches!(items.last(), Some(Input::Reasoning(_))) {
        items.pop();
    }
    items
}

/// The item of the model's own thinking, if it can be read without being stored.
fn reasoning_item(thinking: &Thinking) -> Option<&RawValue> {
    #[derive(Deserialize)]
    struct Look<'a> {
        #[serde(rename = "type")]
        kind: Cow<'a, str>,
        encrypted_content: Option<Cow<'a, str>>,
    }
    let item = thinking.thinking_signature.as_deref()?;
    let look: Look<'_> = serde_json::from_str(item).ok()?;
    let readable = look.encrypted_content.is_some_and(|text| !text.is_empty());
    if look.kind != "reasoning" || !readable {
        return None;
    }
    serde_json::from_str(item).ok()
}

fn message<'a>(text: &'a str, signature: Option<&'a str>) -> Input<'a> {
    let signature =
        signature.and_then(|text| serde_json::from_str::<MessageSignature<'a>>(text).ok());
    let (id, phase) = signature.map_or((None, None), |signature| {
        (Some(signature.id), signature.phase)
    });
    Input::Item(Item::Message {
        role: "assistant",
        id: id.filter(|id| !id.is_empty() && id.len() <= ID_CHARS_MAX),
        phase,
        status: Some("completed"),
        content: vec![Part::OutputText {
            text,
            annotations: [],
        }],
    })
}

/// The id of the call, and that of the item which made it.
fn split_id(id: &str) -> (&str, Option<&str>) {
    id.split_once('|')
        .map_or((id, None), |(call, item)| (call, Some(item)))
}

fn result(answer: Answer<'_>) -> Item<'_> {
    let (call_id, _) = split_id(&answer.id);
    let call_id = call_id.to_owned();
    let mut parts: Vec<Part<'_>> = Vec::with_capacity(answer.content.len() + 1);
    if answer.is_error {
        parts.push(Part::InputText { text: "error:" });
    }
    parts.extend(answer.content.into_iter().filter_map(part));
    if parts.is_empty() {
        parts.push(Part::InputText {
            text: "(no output)",
        });
    }
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            Part::InputText { text } => Some(*text),
            Part::InputImage { .. } | Part::OutputText { .. } => None,
        })
        .collect();
    Item::FunctionCallOutput {
        call_id,
        output: match texts {
            Some(texts) => Output::Text(texts.join("\n")),
            None => Output::Parts(parts),
        },
    }
}
