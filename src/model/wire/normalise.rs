//! Makes a conversation acceptable to the model that it is sent to.
//!
//! Pure, and the same for the same messages, so that bytes once sent stay the
//! same. A failed or aborted reply is left out; every call gets exactly one
//! result, right behind the reply, in the order of the calls; a result without
//! its call is left out; thinking of another model becomes text; foreign ids of
//! calls are made to fit; images become a note for models that cannot see.

use std::borrow::Cow;
use std::sync::Arc;

use crate::message::{
    AssistantMessage, Content, Image, Message, StopReason, Text, Thinking, ToolCall, ToolResult,
};
use crate::model::assemble::is_fresh_id;
use crate::model::description::{Api, Model};

/// What stands for an image that the model could not see.
const UNSEEN_IMAGE: &str = "[an image, left out because this model cannot see images]";
/// The result of a call that was never answered.
const NO_RESULT: &str = "no result: the call was not completed";
/// The longest id that Anthropic takes.
const ANTHROPIC_ID_CHARS_MAX: usize = 64;
/// The longest id that the responses dialect takes.
const RESPONSES_ID_CHARS_MAX: usize = 64;
/// What ids of items begin with, behind the id of their call.
const RESPONSES_ITEM: &str = "|fc";
/// The longest id that chat endpoints take.
const CHAT_ID_CHARS_MAX: usize = 40;

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
        /// The call.
        call: &'a ToolCall,
        /// To be sent back with it.
        signature: Option<&'a str>,
    },
}

/// The result of one call.
pub(super) struct Answer<'a> {
    /// The call's id as sent.
    pub(super) id: Cow<'a, str>,
    /// The tool that was called.
    pub(super) name: &'a str,
    /// Text and images.
    pub(super) content: Vec<Block<'a>>,
    /// Whether the call failed.
    pub(super) is_error: bool,
}

/// Prepares `messages` for `model`. A reply begins anew: what comes of it and of
/// all up to the next reply depends on nothing else.
pub(super) fn normalise<'a>(model: &Model, messages: &'a [Arc<Message>]) -> Vec<Turn<'a>> {
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
                let blocks = replied(model, reply, own);
                if !blocks.is_empty() {
                    turns.push(Turn::Assistant(blocks));
                }
                pending.calls = reply
                    .tool_calls()
                    .map(|call| PendingCall {
                        original: &call.id,
                        name: &call.name,
                        id: fit_id(model.api, &call.id, own),
                        result: None,
                    })
                    .collect();
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
    later: Vec<Turn<'a>>,
}

struct PendingCall<'a> {
    original: &'a str,
    name: &'a str,
    id: Cow<'a, str>,
    result: Option<&'a ToolResult>,
}

impl<'a> Pending<'a> {
    fn answer(&mut self, result: &'a ToolResult) {
        let call = self
            .calls
            .iter_mut()
            .find(|call| call.result.is_none() && call.original == result.tool_call_id);
        if let Some(call) = call {
            call.result = Some(result);
        }
    }

    fn flush(&mut self, model: &Model, turns: &mut Vec<Turn<'a>>) {
        let answers: Vec<Answer<'a>> = self
            .calls
            .drain(..)
            .map(|call| match call.result {
                Some(result) => Answer {
                    id: call.id,
                    name: call.name,
                    content: said(model, &result.content),
                    is_error: result.is_error,
                },
                None => Answer {
                    id: call.id,
                    name: call.name,
                    content: vec![Block::Text(NO_RESULT)],
                    is_error: true,
                },
            })
            .collect();
        if !answers.is_empty() {
            turns.push(Turn::Results(answers));
        }
        turns.append(&mut self.later);
    }
}

fn is_own(model: &Model, reply: &AssistantMessage) -> bool {
    reply.api == model.api.name() && reply.provider == model.provider && reply.model == model.id
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

fn replied<'a>(model: &Model, reply: &'a AssistantMessage, own: bool) -> Vec<Block<'a>> {
    let mut blocks = Vec::with_capacity(reply.content.len());
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
                id: fit_id(model.api, &call.id, own),
                call,
                signature: call.thought_signature.as_deref().filter(|_| own),
            }),
            // No dialect takes an image from the assistant.
            Content::Image(_) => {}
        }
    }
    blocks
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// An id that the dialect takes. A model's own ids go back as they came, except
/// where the dialect would refuse them; a changed id keeps a hash of the old
/// one, so that two never become the same.
///
/// Where calls need no ids, only those that the model itself gave are kept.
fn fit_id(api: Api, mut id: &str, own: bool) -> Cow<'_, str> {
    let chars_max = match api {
        Api::GoogleGenerativeAi if own && !is_fresh_id(id) => return Cow::Borrowed(id),
        Api::GoogleGenerativeAi => return Cow::Borrowed(""),
        Api::OpenaiResponses if own && !id.is_empty() => return Cow::Borrowed(id),
        Api::OpenaiResponses => {
            // The item is another model's.
            id = id.split_once(RESPONSES_ITEM).map_or(id, |(call, _)| call);
            RESPONSES_ID_CHARS_MAX
        }
        Api::AnthropicMessages => ANTHROPIC_ID_CHARS_MAX,
        Api::OpenaiChat if own && !id.is_empty() => return Cow::Borrowed(id),
        Api::OpenaiChat => CHAT_ID_CHARS_MAX,
    };
    let fits = |id: &str| {
        !id.is_empty()
            && id.len() <= chars_max
            && id
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    if fits(id) {
        return Cow::Borrowed(id);
    }
    let suffix = format!("_{:016x}", fnv1a(id));
    let kept: String = id
        .chars()
        .take(chars_max - suffix.len())
        .map(|letter| match letter {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => letter,
            _ => '_',
        })
        .collect();
    Cow::Owned(kept + &suffix)
}

/// FNV-1a: the same on every machine and in every version, unlike the hashers
/// of the standard library.
fn fnv1a(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
