//! Makes a conversation acceptable to the model that it is sent to.
//!
//! Pure, and the same for the same messages, so that bytes once sent stay the
//! same. A failed or aborted reply is left out; every call gets exactly one
//! result, right behind the reply, in the order of the calls; a result without
//! its call is left out; thinking of another model becomes text; ids and names of
//! calls are made to fit; images become a note for models that cannot see.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::message::{
    AssistantMessage, Content, Image, Message, StopReason, Text, Thinking, ToolCall, ToolResult,
};
use crate::model::description::Model;
use crate::model::wire::call_id::CallIds;

/// What stands for an image that the model could not see.
const UNSEEN_IMAGE: &str = "[an image, left out because this model cannot see images]";
/// The result of a call that was never answered.
const NO_RESULT: &str = "no result: the call was not completed";
/// The longest name of a tool that every provider takes.
const NAME_CHARS_MAX: usize = 64;
/// What stands for arguments that are no object.
static NO_ARGUMENTS: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

/// A part of the conversation, ready for a dialect.
pub(super) enum Turn<'a> {
    /// What the user's side says.
    User(Vec<Block<'a>>),
    /// What the model said.
    Assistant(Vec<Block<'a>>),
    /// All results of the reply before it.
    Results(Vec<Answer<'a>>),
}

/// A block of a turn.
pub(super) enum Block<'a> {
    /// Text that is not empty.
    Text(&'a str),
    /// Text of the model's own that its provider signed.
    SignedText {
        /// May be empty.
        text: &'a str,
        /// To be sent back.
        signature: &'a str,
    },
    /// An image that the model can see.
    Image(&'a Image),
    /// The model's own thinking.
    Thinking(&'a Thinking),
    /// A call.
    Call {
        /// Fit for the dialect.
        id: Cow<'a, str>,
        /// Fit for every dialect.
        name: Cow<'a, str>,
        /// An object.
        arguments: &'a Value,
        /// To be sent back with it.
        signature: Option<&'a str>,
    },
}

/// The result of one call.
pub(super) struct Answer<'a> {
    /// The call's id as sent.
    pub(super) id: Cow<'a, str>,
    /// The tool that was called, as in the call.
    pub(super) name: Cow<'a, str>,
    /// Text and images.
    pub(super) content: Vec<Block<'a>>,
    /// Whether the call failed.
    pub(super) is_error: bool,
}

/// Prepares `messages` for `model`. A reply begins anew: what comes of it and of
/// all up to the next reply depends on nothing else, but that no id of a call is
/// given twice.
pub(super) fn normalise<'a>(
    model: &Model,
    messages: &'a [Arc<Message>],
    ids: &mut CallIds,
) -> Vec<Turn<'a>> {
    let mut turns = Vec::with_capacity(messages.len());
    let mut pending = Pending::default();
    for message in messages {
        match message.as_ref() {
            Message::User(user) => {
                let blocks = said(model, &user.content);
                if !blocks.is_empty() {
                    pending.later.push(Turn::User(blocks));
                }
            }
            Message::ToolResult(result) => pending.answer(result),
            Message::Assistant(reply) => {
                pending.flush(model, &mut turns);
                if is_left_out(reply) {
                    continue;
                }
                let own = is_own(model, reply);
                pending.calls = reply
                    .tool_calls()
                    .map(|call| PendingCall {
                        call,
                        id: ids.fit(model, &call.id, own),
                        result: None,
                    })
                    .collect();
                let blocks = replied(reply, own, &pending.calls);
                if !blocks.is_empty() {
                    turns.push(Turn::Assistant(blocks));
                }
            }
        }
    }
    pending.flush(model, &mut turns);
    turns
}

/// Whether a reply is never sent: it failed, or was aborted.
pub(super) fn is_left_out(reply: &AssistantMessage) -> bool {
    matches!(reply.stop_reason, StopReason::Error | StopReason::Aborted)
}

/// Calls that wait for their results, and what was said meanwhile.
#[derive(Default)]
struct Pending<'a> {
    calls: Vec<PendingCall<'a>>,
    /// How many of the first calls have their results, which mostly come in the
    /// order of the calls.
    answered: usize,
    later: Vec<Turn<'a>>,
}

struct PendingCall<'a> {
    call: &'a ToolCall,
    id: Cow<'a, str>,
    result: Option<&'a ToolResult>,
}

impl<'a> Pending<'a> {
    fn answer(&mut self, result: &'a ToolResult) {
        let mut open = self.calls.iter_mut().skip(self.answered);
        let call = open.find(|call| call.result.is_none() && call.call.id == result.tool_call_id);
        if let Some(call) = call {
            call.result = Some(result);
        }
        let open = self.calls.iter().skip(self.answered);
        self.answered += open.take_while(|call| call.result.is_some()).count();
    }

    fn flush(&mut self, model: &Model, turns: &mut Vec<Turn<'a>>) {
        self.answered = 0;
        let answers: Vec<Answer<'a>> = self
            .calls
            .drain(..)
            .map(|pending| {
                let (content, is_error) = match pending.result {
                    Some(result) => (said(model, &result.content), result.is_error),
                    None => (vec![Block::Text(NO_RESULT)], true),
                };
                Answer {
                    id: pending.id,
                    name: fit_name(&pending.call.name),
                    content,
                    is_error,
                }
            })
            .collect();
        if !answers.is_empty() {
            turns.push(Turn::Results(answers));
        }
        turns.append(&mut self.later);
    }
}

/// Whether the model said this itself.
pub(super) fn is_own(model: &Model, reply: &AssistantMessage) -> bool {
    model.api.is_named(&reply.api) && reply.provider == model.provider && reply.model == model.id
}

fn said<'a>(model: &Model, content: &'a [Content]) -> Vec<Block<'a>> {
    let mut blocks = Vec::with_capacity(content.len());
    for block in content {
        match block {
            Content::Text(text) if is_blank(&text.text) => {}
            Content::Text(text) => blocks.push(Block::Text(&text.text)),
            Content::Image(image) if model.images => blocks.push(Block::Image(image)),
            Content::Image(_) => blocks.push(Block::Text(UNSEEN_IMAGE)),
            // Neither is ever said by the user's side.
            Content::Thinking(_) | Content::ToolCall(_) => {}
        }
    }
    blocks
}

fn replied<'a>(
    reply: &'a AssistantMessage,
    own: bool,
    calls: &[PendingCall<'a>],
) -> Vec<Block<'a>> {
    let mut blocks = Vec::with_capacity(reply.content.len());
    let mut ids = calls.iter().map(|call| call.id.clone());
    for block in &reply.content {
        match block {
            Content::Text(Text {
                text,
                text_signature: Some(signature),
            }) if own => blocks.push(Block::SignedText { text, signature }),
            Content::Text(text) if is_blank(&text.text) => {}
            Content::Text(text) => blocks.push(Block::Text(&text.text)),
            Content::Thinking(thinking) if own => blocks.push(Block::Thinking(thinking)),
            Content::Thinking(thinking) if thinking.redacted || is_blank(&thinking.thinking) => {}
            Content::Thinking(thinking) => blocks.push(Block::Text(&thinking.thinking)),
            Content::ToolCall(call) => blocks.push(Block::Call {
                id: ids.next().unwrap_or_default(),
                name: fit_name(&call.name),
                arguments: match &call.arguments {
                    object @ Value::Object(_) => object,
                    _ => &NO_ARGUMENTS,
                },
                signature: call.thought_signature.as_deref().filter(|_| own),
            }),
            // No dialect takes an image from the assistant.
            Content::Image(_) => {}
        }
    }
    blocks
}

/// Whether a text says nothing, which providers refuse.
pub(super) fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A name of a tool that every provider takes: models call tools that do not
/// exist by names that must not exist.
fn fit_name(name: &str) -> Cow<'_, str> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    if name.is_empty() {
        return Cow::Borrowed("unnamed");
    }
    if name.len() <= NAME_CHARS_MAX && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let letters = name.chars().take(NAME_CHARS_MAX);
    Cow::Owned(
        letters
            .map(|letter| if fits(letter) { letter } else { '_' })
            .collect(),
    )
}

/// The tools that were called, by the names under which they are sent.
pub(super) fn called_tools(messages: &[Arc<Message>]) -> BTreeSet<Cow<'_, str>> {
    messages
        .iter()
        .filter_map(|message| match message.as_ref() {
            Message::Assistant(reply) if !is_left_out(reply) => Some(reply.tool_calls()),
            _ => None,
        })
        .flatten()
        .map(|call| fit_name(&call.name))
        .collect()
}
