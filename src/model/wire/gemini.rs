//! Google's generative language API: the request.
//!
//! The decoding is in `gemini_stream`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::message::{Image, Thinking};
use crate::model::description::Model;
use crate::model::wire::normalise::{Answer, Block, Turn};
use crate::model::wire::transcript::{Role, Transcript};
use crate::model::wire::{Dialect, response_schema, write_open};
use crate::model::{Request, ThinkingLevel, ToolDefinition};

/// What stands for the signature of a call that another model made, or that
/// came without one; the provider documents it for that purpose.
const UNSIGNED_CALL_SIGNATURE: &str = "skip_thought_signature_validator";

/// Google's dialect.
pub(super) struct Gemini;

impl Dialect for Gemini {
    fn path(&self, model: &Model) -> Cow<'static, str> {
        // The only letters of an id that would end the path.
        let id = model
            .id
            .replace('%', "%25")
            .replace('?', "%3F")
            .replace('#', "%23");
        let id = id.strip_prefix("models/").unwrap_or(&id);
        Cow::Owned(format!("/models/{id}:streamGenerateContent?alt=sse"))
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        key.map(|key| ("x-goog-api-key", key.to_owned()))
            .into_iter()
            .collect()
    }

    fn head(&self, model: &Model, request: &Request, body: &mut Vec<u8>) {
        write_open(body, &head(model, request), "contents");
    }

    fn turn(&self, model: &Model, turn: Turn<'_>, transcript: &mut Transcript) {
        match turn {
            Turn::User(blocks) => {
                for part in blocks.into_iter().filter_map(part) {
                    transcript.block(Role::GoogleUser, &part);
                }
            }
            Turn::Assistant(blocks) => {
                for part in replied(blocks, is_modern(model)) {
                    transcript.block(Role::GoogleModel, &part);
                }
            }
            Turn::Results(answers) => results(answers, is_modern(model), transcript),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Instruction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[Tools<'a>; 1]>,
    generation_config: GenerationConfig<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    max_output_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig<'a>>,
    #[serde(flatten)]
    format: response_schema::GeminiFormat<'a>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig<'a> {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<u64>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools<'a> {
    function_declarations: Vec<Declaration<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters_json_schema: &'a Value,
}

#[derive(Serialize)]
struct Instruction<'a> {
    parts: [Part<'a>; 1],
}

/// A part: what it is, and what belongs to a part of any kind.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    kind: Kind<'a>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Kind<'a> {
    Text(&'a str),
    InlineData(Blob<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    args: &'a Value,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    id: Cow<'a, str>,
    name: Cow<'a, str>,
    response: Outcome,
    /// Images, where the model takes them inside of a result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Output(String),
    Error(String),
}

impl<'a> Part<'a> {
    fn new(kind: Kind<'a>) -> Self {
        Self {
            kind,
            thought: false,
            thought_signature: None,
        }
    }

    fn image(image: &'a Image) -> Self {
        Self::new(Kind::InlineData(Blob {
            mime_type: &image.mime_type,
            data: &image.data,
        }))
    }
}

fn head<'a>(model: &'a Model, request: &'a Request) -> Head<'a> {
    let mut tools: Vec<&ToolDefinition> = request.tools.iter().collect();
    tools.sort_by(|a, b| a.name.cmp(&b.name));
    let declarations: Vec<Declaration<'_>> = tools
        .into_iter()
        .map(|tool| Declaration {
            name: &tool.name,
            description: &tool.description,
            parameters_json_schema: &tool.parameters,
        })
        .collect();
    let thinking = thinking(model, request.thinking);
    // What is thought counts as output.
    let budget = thinking
        .as_ref()
        .and_then(|thinking| thinking.thinking_budget)
        .unwrap_or(0);
    Head {
        system_instruction: (!request.system.trim().is_empty()).then(|| Instruction {
            parts: [Part::new(Kind::Text(&request.system))],
        }),
        tools: (!declarations.is_empty()).then_some([Tools {
            function_declarations: declarations,
        }]),
        generation_config: GenerationConfig {
            max_output_tokens: request
                .max_output_tokens
                .saturating_add(budget)
                .clamp(1, model.max_output_tokens.max(1)),
            temperature: request
                .temperature
                .filter(|_| model.quirks.temperature != Some(false)),
            thinking_config: thinking,
            format: response_schema::gemini(request),
        },
    }
}

/// Models whose levels have names take the name, older ones a budget.
fn thinking(model: &Model, asked: ThinkingLevel) -> Option<ThinkingConfig<'_>> {
    if !model.reasoning {
        return None;
    }
    let level = model.clamp_thinking(asked);
    let on = level != ThinkingLevel::Off;
    let named = model.thinking_levels.values().any(Option::is_some);
    if named {
        let name = model.thinking_levels.get(&level).and_then(Option::as_deref);
        let thinking_level = name.or_else(|| on.then(|| level.name()));
        return (on || thinking_level.is_some()).then_some(ThinkingConfig {
            include_thoughts: on,
            thinking_level,
            thinking_budget: None,
        });
    }
    let thinking_budget = Budgets::of(model).map(|budgets| budgets.tokens(level));
    (on || thinking_budget.is_some()).then_some(ThinkingConfig {
        include_thoughts: on,
        thinking_level: None,
        thinking_budget,
    })
}

/// The budgets that a model takes.
struct Budgets {
    /// With 0, thinking can be switched off.
    off: u64,
    min: u64,
    max: u64,
}

impl Budgets {
    /// None for models that decide on their own.
    fn of(model: &Model) -> Option<Self> {
        let (off, min, max) = if model.id.contains("2.5-flash-lite") {
            (0, 512, 24_576)
        } else if model.id.contains("2.5-flash") {
            (0, 128, 24_576)
        } else if model.id.contains("2.5") {
            (128, 128, 32_768)
        } else {
            return None;
        };
        Some(Self { off, min, max })
    }

    fn tokens(&self, level: ThinkingLevel) -> u64 {
        match level {
            ThinkingLevel::Off => self.off,
            ThinkingLevel::Minimal => self.min,
            ThinkingLevel::Low => 2048,
            ThinkingLevel::Medium => 8192,
            ThinkingLevel::High | ThinkingLevel::Xhigh | ThinkingLevel::Max => self.max,
        }
    }
}

/// Whether the model is of the third generation or later, which checks the
/// signatures of calls and takes images inside of results.
pub(super) fn is_modern(model: &Model) -> bool {
    let id = model.id.strip_prefix("models/").unwrap_or(&model.id);
    id.strip_prefix("gemini-")
        .is_some_and(|rest| !rest.starts_with("1.") && !rest.starts_with("2."))
}

fn part(block: Block<'_>) -> Option<Part<'_>> {
    match block {
        Block::Text(text) => Some(Part::new(Kind::Text(text))),
        Block::SignedText { text, signature } => Some(Part {
            thought_signature: Some(signature),
            ..Part::new(Kind::Text(text))
        }),
        Block::Image(image) => Some(Part::image(image)),
        Block::Thinking(thinking) => thought(thinking),
        Block::Call {
            id,
            name,
            arguments,
            signature,
        } => Some(Part {
            thought_signature: signature,
            ..Part::new(Kind::FunctionCall(FunctionCall {
                id,
                name,
                args: arguments,
            }))
        }),
    }
}

/// A summary of thoughts is for people; only its signature is worth sending.
fn thought(thinking: &Thinking) -> Option<Part<'_>> {
    let signature = thinking.thinking_signature.as_deref()?;
    Some(Part {
        thought: true,
        thought_signature: Some(signature),
        ..Part::new(Kind::Text(&thinking.thinking))
    })
}

/// Nothing when all that was said cannot be sent back.
fn replied(blocks: Vec<Block<'_>>, modern: bool) -> Vec<Part<'_>> {
    let mut parts = Vec::with_capacity(blocks.len());
    let mut called = false;
    for block in blocks {
        let is_call = matches!(block, Block::Call { .. });
        let Some(mut part) = part(block) else {
            continue;
        };
        // The first of the calls that are made together bears the signature.
        if is_call && !called && modern && part.thought_signature.is_none() {
            part.thought_signature = Some(UNSIGNED_CALL_SIGNATURE);
        }
        called |= is_call;
        parts.push(part);
    }
    parts
}

/// All results in one content, which must hold nothing else; the images of older
/// models in one behind it.
fn results(answers: Vec<Answer<'_>>, modern: bool, transcript: &mut Transcript) {
    let mut behind = Vec::new();
    for answer in answers {
        let mut text = String::new();
        let mut images = Vec::new();
        for block in answer.content {
            match block {
                Block::Text(more) | Block::SignedText { text: more, .. } => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(more);
                }
                Block::Image(image) => images.push(Part::image(image)),
                Block::Thinking(_) | Block::Call { .. } => {}
            }
        }
        if text.is_empty() {
            text = match (images.is_empty(), modern) {
                (true, _) => "(no output)".to_owned(),
                (false, true) => "(an image, attached)".to_owned(),
                (false, false) => "(an image, attached below)".to_owned(),
            };
        }
        if !modern {
            behind.append(&mut images);
        }
        let result = Part::new(Kind::FunctionResponse(FunctionResponse {
            id: answer.id,
            name: answer.name,
            response: if answer.is_error {
                Outcome::Error(text)
            } else {
                Outcome::Output(text)
            },
            parts: images,
        }));
        transcript.block(Role::GoogleResults, &result);
    }
    if !behind.is_empty() {
        let heading = Part::new(Kind::Text("Images from the tool results above:"));
        transcript.block(Role::GoogleUser, &heading);
        for image in behind {
            transcript.block(Role::GoogleUser, &image);
        }
    }
}
