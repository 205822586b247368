//! Chat completions: the messages of a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::message::{Image, Thinking};
use crate::model::Request;
use crate::model::description::{Model, ThinkingFormat};
use crate::model::wire::normalise::{Answer, Block, Turn, is_blank};
use crate::model::wire::transcript::Transcript;

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum MessageField<'a> {
    System {
        content: Said<'a>,
    },
    Developer {
        content: Said<'a>,
    },
    User {
        content: Said<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<String>,
        #[serde(flatten)]
        reasoning: ReasoningFields<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: Said<'a>,
    },
}

/// Reasoning as OpenRouter takes it back.
#[derive(Serialize, Default)]
struct ReasoningFields<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_details: Option<&'a RawValue>,
}

/// What the user's side says: a string wherever it can be one, because the
/// simplest servers know nothing else.
#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ImageUrl {
        image_url: ImageUrl,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum CacheControl {
    Ephemeral,
}

impl<'a> Part<'a> {
    fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text {
            text: text.into(),
            cache_control: None,
        }
    }

    fn image(image: &Image) -> Self {
        Self::ImageUrl {
            image_url: ImageUrl {
                url: format!("data:{};base64,{}", image.mime_type, image.data),
            },
        }
    }
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
    name: Cow<'a, str>,
    arguments: String,
}

/// The instructions, when there are any.
pub(super) fn instructions<'a>(
    model: &Model,
    request: &'a Request,
) -> Option<impl Serialize + use<'a>> {
    let text = request.system.as_str();
    if is_blank(text) {
        return None;
    }
    let content = if model.quirks.relays_anthropic {
        Said::Parts(vec![Part::Text {
            text: Cow::Borrowed(text),
            cache_control: Some(CacheControl::Ephemeral),
        }])
    } else {
        Said::Text(Cow::Borrowed(text))
    };
    if model.reasoning && model.quirks.developer_role != Some(false) {
        return Some(MessageField::Developer { content });
    }
    Some(MessageField::System { content })
}

/// Adds what a turn becomes.
pub(super) fn add(model: &Model, turn: Turn<'_>, transcript: &mut Transcript) {
    match turn {
        Turn::User(blocks) => {
            let parts = blocks.into_iter().filter_map(part).collect();
            say(model, None, parts, transcript);
        }
        Turn::Assistant(blocks) => {
            if let Some(message) = replied(model, blocks) {
                transcript.item(&message);
            }
        }
        Turn::Results(answers) => results(model, answers, transcript),
    }
}

/// Adds a message of the user, or the result of `call`.
fn say<'a>(
    model: &Model,
    call: Option<Cow<'a, str>>,
    parts: Vec<Part<'a>>,
    transcript: &mut Transcript,
) {
    let ends_with_text = matches!(parts.last(), Some(Part::Text { .. }));
    let content = if model.quirks.relays_anthropic {
        Said::Parts(parts)
    } else {
        said(parts)
    };
    let message = match call {
        None => MessageField::User { content },
        Some(tool_call_id) => MessageField::Tool {
            tool_call_id,
            content,
        },
    };
    // Only a text may bear the mark.
    if model.quirks.relays_anthropic && ends_with_text {
        transcript.parts_item(&message);
    } else {
        transcript.item(&message);
    }
}

fn said(mut parts: Vec<Part<'_>>) -> Said<'_> {
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text, .. } => Some(&**text),
            Part::ImageUrl { .. } => None,
        })
        .collect();
    match texts {
        None => Said::Parts(parts),
        Some(texts) if texts.len() > 1 => Said::Text(Cow::Owned(texts.join("\n"))),
        Some(_) => match parts.pop() {
            Some(Part::Text { text, .. }) => Said::Text(text),
            Some(Part::ImageUrl { .. }) | None => Said::Text(Cow::Borrowed("")),
        },
    }
}

fn part(block: Block<'_>) -> Option<Part<'_>> {
    match block {
        Block::Text(text) | Block::SignedText { text, .. } => Some(Part::text(text)),
        Block::Image(image) => Some(Part::image(image)),
        Block::Thinking(_) | Block::Call { .. } => None,
    }
}

/// Nothing when all that was said cannot be sent back.
fn replied<'a>(model: &Model, blocks: Vec<Block<'a>>) -> Option<MessageField<'a>> {
    let mut content: Option<String> = None;
    let mut thought: Vec<&'a Thinking> = Vec::new();
    let mut tool_calls = Vec::new();
    for block in blocks {
        match block {
            Block::SignedText { text, .. } if is_blank(text) => {}
            Block::Text(text) | Block::SignedText { text, .. } => {
                content.get_or_insert_default().push_str(text)
            }
            Block::Thinking(thinking) => thought.push(thinking),
            Block::Call {
                id,
                name,
                arguments,
                ..
            } => tool_calls.push(Call::Function {
                id,
                function: CalledFunction {
                    name,
                    arguments: arguments.to_string(),
                },
            }),
            Block::Image(_) => {}
        }
    }
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    let text = || thought.iter().map(|block| &*block.thinking).collect();
    Some(MessageField::Assistant {
        content,
        // Such endpoints refuse replies without it, even an empty one.
        reasoning_content: model.quirks.echo_reasoning_content.then(text),
        reasoning: match model.quirks.thinking_format {
            ThinkingFormat::Openrouter => reasoning(&thought, text()),
            ThinkingFormat::Openai
            | ThinkingFormat::Together
            | ThinkingFormat::Zai
            | ThinkingFormat::Deepseek => ReasoningFields::default(),
        },
        tool_calls,
    })
}

/// The details, which may be signed, else the text.
fn reasoning<'a>(thought: &[&'a Thinking], text: String) -> ReasoningFields<'a> {
    let details = thought.iter().rev().find_map(|block| {
        let signature = block.thinking_signature.as_deref()?;
        let details: &RawValue = serde_json::from_str(signature).ok()?;
        details.get().starts_with('[').then_some(details)
    });
    ReasoningFields {
        reasoning: Some(text).filter(|text| details.is_none() && !is_blank(text)),
        reasoning_details: details,
    }
}

/// Results are text only: images follow in a message of the user.
fn results<'a>(model: &Model, answers: Vec<Answer<'a>>, transcript: &mut Transcript) {
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
                Block::Image(image) => images.push(Part::image(image)),
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
        say(
            model,
            Some(answer.id),
            vec![Part::text(content)],
            transcript,
        );
    }
    if !images.is_empty() {
        images.insert(0, Part::text("Images from the tool results above:"));
        say(model, None, images, transcript);
    }
}
