//! Folds the stream of a reply into one message.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::clock;
use crate::message::{AssistantMessage, Content, StopReason, Text, Thinking, ToolCall, Usage};
use crate::model::StreamEvent;
use crate::model::description::Model;
use crate::model::error::{ModelError, ModelErrorKind};

/// How the ids begin that stand for those a provider did not give.
const FRESH_ID_PREFIX: &str = "call_";
/// The digits behind it.
const FRESH_ID_DIGITS: usize = 32;

/// Whether an id stands for one that the provider did not give, and so means
/// nothing to it.
pub(super) fn is_fresh_id(id: &str) -> bool {
    id.strip_prefix(FRESH_ID_PREFIX).is_some_and(|digits| {
        digits.len() == FRESH_ID_DIGITS && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Folds the stream of a reply into one message.
#[derive(Debug)]
pub struct Assembler {
    model: Model,
    answering: Option<String>,
    blocks: Vec<Block>,
    by_index: HashMap<usize, usize>,
    usage: Usage,
    usage_known: bool,
    replaced: bool,
    stop: Option<StopReason>,
}

#[derive(Debug)]
enum Block {
    Text(Text),
    Thinking(Thinking),
    Call {
        id: String,
        name: String,
        arguments: String,
        signature: Option<String>,
        whole: bool,
    },
}

impl Block {
    fn text() -> Self {
        Self::Text(Text {
            text: String::new(),
            text_signature: None,
        })
    }
}

impl Assembler {
    /// For a reply of `model`.
    pub fn new(model: &Model) -> Self {
        Self {
            model: model.clone(),
            answering: None,
            blocks: Vec::new(),
            by_index: HashMap::new(),
            usage: Usage::default(),
            usage_known: false,
            replaced: false,
            stop: None,
        }
    }

    /// Takes the next event.
    pub fn push(&mut self, event: StreamEvent) {
        match event {
            StreamEvent::Start { model } => self.answering = model,
            StreamEvent::TextStart { index } => self.open(index, Block::text()),
            StreamEvent::ThinkingStart { index } => self.open(
                index,
                Block::Thinking(Thinking {
                    thinking: String::new(),
                    thinking_signature: None,
                    redacted: false,
                }),
            ),
            StreamEvent::ToolCallStart { index, id, name } => self.open(
                index,
                Block::Call {
                    id,
                    name,
                    arguments: String::new(),
                    signature: None,
                    whole: false,
                },
            ),
            StreamEvent::TextDelta { index, delta } => {
                if let Some(Block::Text(block)) = self.block(index) {
                    block.text.push_str(&delta);
                }
            }
            StreamEvent::ThinkingDelta { index, delta } => {
                if let Some(Block::Thinking(block)) = self.block(index) {
                    block.thinking.push_str(&delta);
                }
            }
            StreamEvent::ToolCallDelta { index, delta } => {
                if let Some(Block::Call { arguments, .. }) = self.block(index) {
                    arguments.push_str(&delta);
                }
            }
            StreamEvent::ThinkingEnd {
                index,
                signature,
                redacted,
            } => {
                if let Some(Block::Thinking(block)) = self.block(index) {
                    block.thinking_signature = signature;
                    block.redacted = redacted;
                }
            }
            StreamEvent::ToolCallEnd { index } => {
                if let Some(Block::Call { whole, .. }) = self.block(index) {
                    *whole = true;
                }
            }
            StreamEvent::TextEnd { .. } => {}
            StreamEvent::Signature { index, signature } => self.sign(index, signature),
            StreamEvent::Replaced => self.replaced = true,
            StreamEvent::Usage(usage) => {
                self.usage = usage;
                self.usage_known = true;
            }
            StreamEvent::Stop(reason) => self.stop = Some(reason),
        }
    }

    /// Whether the provider has told the usage so far. A reply without any has
    /// a usage of zero, which a budget must not take for free.
    pub fn usage_known(&self) -> bool {
        self.usage_known
    }

    /// Whether something in the reply was no text, and U+FFFD stands for it.
    pub fn replaced(&self) -> bool {
        self.replaced
    }

    /// The model that the provider says it answered with.
    pub fn answering_model(&self) -> Option<&str> {
        self.answering.as_deref()
    }

    /// The message.
    ///
    /// # Errors
    /// `Truncated` when the stream had no end; `ContextOverflow` when the
    /// provider dropped a part of the prompt without saying so.
    pub fn finish(mut self) -> Result<AssistantMessage, ModelError> {
        let Some(mut stop_reason) = self.stop else {
            return Err(ModelError::new(
                ModelErrorKind::Truncated,
                "the stream ended before the reply was whole",
            ));
        };
        self.check_overflow(stop_reason)?;
        let content = contents(self.blocks, stop_reason);
        let calls = content
            .iter()
            .any(|block| matches!(block, Content::ToolCall(_)));
        stop_reason = match stop_reason {
            StopReason::Stop if calls => StopReason::ToolUse,
            StopReason::ToolUse if !calls => StopReason::Stop,
            other => other,
        };
        self.usage.cost = self.model.cost(&self.usage).unwrap_or_default();
        Ok(AssistantMessage {
            content,
            api: self.model.api.name().to_owned(),
            provider: self.model.provider,
            model: self.model.id,
            usage: self.usage,
            stop_reason,
            error_message: None,
            timestamp: clock::unix_ms(),
        })
    }

    fn open(&mut self, index: usize, block: Block) {
        self.by_index.insert(index, self.blocks.len());
        self.blocks.push(block);
    }

    fn sign(&mut self, index: usize, signed: String) {
        match self.block(index) {
            Some(Block::Text(block)) => block.text_signature = Some(signed),
            Some(Block::Call { signature, .. }) => *signature = Some(signed),
            Some(Block::Thinking(_)) | None => {}
        }
    }

    fn block(&mut self, index: usize) -> Option<&mut Block> {
        let at = *self.by_index.get(&index)?;
        self.blocks.get_mut(at)
    }

    /// Some servers cut the prompt silently; their counts give it away.
    fn check_overflow(&self, stop: StopReason) -> Result<(), ModelError> {
        if !self.model.limits_known {
            return Ok(());
        }
        let window = self.model.context_window;
        let prompt = self.usage.prompt_tokens();
        let over = match stop {
            StopReason::Stop => self.usage.input.saturating_add(self.usage.cache_read) > window,
            StopReason::Length => {
                self.usage.output == 0 && prompt.saturating_mul(100) >= window.saturating_mul(99)
            }
            StopReason::ToolUse
            | StopReason::Pause
            | StopReason::Refusal
            | StopReason::Error
            | StopReason::Aborted => false,
        };
        if over {
            return Err(ModelError::new(
                ModelErrorKind::ContextOverflow,
                format!("a prompt of {prompt} tokens leaves no room in a window of {window}"),
            ));
        }
        Ok(())
    }
}

fn contents(blocks: Vec<Block>, stop: StopReason) -> Vec<Content> {
    let mut seen = SeenCalls::default();
    let mut content = Vec::with_capacity(blocks.len());
    for block in blocks {
        match block {
            Block::Text(block) if block.text.is_empty() && block.text_signature.is_none() => {}
            Block::Text(block) => content.push(Content::Text(block)),
            Block::Thinking(block)
                if block.thinking.is_empty() && block.thinking_signature.is_none() => {}
            Block::Thinking(block) => content.push(Content::Thinking(block)),
            Block::Call {
                id,
                name,
                arguments,
                signature,
                whole,
            } => {
                // A reply cut at its output limit may have lost all of the
                // arguments, which would otherwise pass for a call without any.
                let cut = !whole || (stop == StopReason::Length && arguments.trim().is_empty());
                let mut call = parse_call(id, name, arguments, cut);
                call.thought_signature = signature;
                if let Some(call) = seen.admit(call, &content) {
                    seen.at.insert(call.id.clone(), content.len());
                    content.push(Content::ToolCall(call));
                }
            }
        }
    }
    content
}

fn parse_call(id: String, name: String, arguments: String, cut: bool) -> ToolCall {
    let parsed = if cut {
        None
    } else if arguments.trim().is_empty() {
        Some(Value::Object(Map::new()))
    } else {
        let parse = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
        parse(&arguments).or_else(|| parse(&escape_controls(&arguments)?))
    };
    match parsed {
        Some(arguments) => ToolCall {
            id,
            name,
            arguments,
            invalid_arguments: None,
            thought_signature: None,
        },
        None => ToolCall {
            id,
            name,
            arguments: Value::Object(Map::new()),
            invalid_arguments: Some(arguments),
            thought_signature: None,
        },
    }
}

/// JSON whose strings hold line breaks, tabs and other control characters as they
/// are, with these escaped; none when there are no such characters. Nothing else
/// can be meant by them.
fn escape_controls(json: &str) -> Option<String> {
    let mut escaped = String::with_capacity(json.len() + 16);
    let (mut in_string, mut after_backslash, mut found) = (false, false, false);
    for next in json.chars() {
        if in_string && next < ' ' && !after_backslash {
            found = true;
            escaped.push_str(&format!("\\u{:04x}", u32::from(next)));
            continue;
        }
        in_string ^= next == '"' && !after_backslash;
        after_backslash = in_string && next == '\\' && !after_backslash;
        escaped.push(next);
    }
    found.then_some(escaped)
}

/// The calls of the reply so far: an exact repetition is dropped, an id that is
/// empty or taken is replaced.
#[derive(Default)]
struct SeenCalls {
    /// Where each id stands in the reply.
    at: HashMap<String, usize>,
}

impl SeenCalls {
    fn admit(&self, mut call: ToolCall, content: &[Content]) -> Option<ToolCall> {
        if call.id.is_empty() {
            call.id = self.fresh();
        } else if let Some(at) = self.at.get(&call.id) {
            if matches!(content.get(*at), Some(Content::ToolCall(known)) if *known == call) {
                return None;
            }
            call.id = self.fresh();
        }
        Some(call)
    }

    fn fresh(&self) -> String {
        loop {
            let id = format!("{FRESH_ID_PREFIX}{}", clock::new_id().replace('-', ""));
            if !self.at.contains_key(&id) {
                return id;
            }
        }
    }
}
