//! Anthropic's messages: the stream.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::message::{StopReason, Usage};
use crate::model::StreamEvent;
use crate::model::classify::body_error;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::sse::Frame;
use crate::model::wire::json::Text;
use crate::model::wire::tokens::count;
use crate::model::wire::{
    Decoder, Events, bad_document, bad_frame, disorder, json, truncated, without,
};

/// Decodes one reply.
#[derive(Default)]
pub(super) struct AnthropicDecoder {
    blocks: BTreeMap<u64, Open>,
    usage: Usage,
    /// Whether prompt and output were counted; half of a count is none.
    counted: (bool, bool),
    stop: Option<StopReason>,
    over: bool,
}

/// A block of the stream; `index` is ours, the provider's is the key.
enum Open {
    Text {
        index: usize,
    },
    Thinking {
        index: usize,
        signature: String,
    },
    Call {
        index: usize,
        id: String,
        input: Option<Value>,
    },
    /// A kind that we do not know, or a repetition: its deltas say nothing.
    Ignored,
    Closed,
}

/// Any event: flat, because a tagged enum would buffer every delta.
#[derive(Deserialize)]
struct Event<'t> {
    #[serde(rename = "type", default, borrow)]
    kind: Text<'t>,
    #[serde(default)]
    index: u64,
    message: Option<Started>,
    content_block: Option<BlockStart>,
    #[serde(borrow)]
    delta: Option<Delta<'t>>,
    usage: Option<Tokens>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Started {
    model: Option<String>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct BlockStart {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    thinking: String,
    #[serde(default)]
    signature: String,
    #[serde(default)]
    data: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    input: Option<Value>,
}

/// Any delta, that of `message_delta` included.
#[derive(Deserialize)]
struct Delta<'t> {
    #[serde(rename = "type", default, borrow)]
    kind: Text<'t>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

/// Each count is the newest one; an absent one keeps the older.
#[derive(Deserialize)]
struct Tokens {
    input_tokens: Option<f64>,
    output_tokens: Option<f64>,
    cache_read_input_tokens: Option<f64>,
    cache_creation_input_tokens: Option<f64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    #[serde(alias = "thinking_tokens")]
    reasoning_tokens: Option<f64>,
}

/// A reply as one document.
#[derive(Deserialize)]
struct Document {
    model: Option<String>,
    content: Vec<BlockStart>,
    stop_reason: Option<String>,
    usage: Option<Tokens>,
}

impl Decoder for AnthropicDecoder {
    fn frame(&mut self, frame: &Frame, events: &mut Events) -> Result<(), ModelError> {
        if self.over || frame.event == "ping" || frame.data == "[DONE]" {
            return Ok(());
        }
        if frame.event == "error" {
            return Err(body_error(&frame.data));
        }
        let mut mended = String::new();
        let event: Event<'_> =
            json::parse(&frame.data, &mut mended, events).map_err(|error| bad_frame(&error))?;
        if &*event.kind == "error" || event.error.is_some() {
            return Err(body_error(&frame.data));
        }
        match &*event.kind {
            "message_start" => {
                let (model, usage) = event
                    .message
                    .map_or((None, None), |message| (message.model, message.usage));
                events.push_back(StreamEvent::Start { model });
                self.count(usage, events);
            }
            "content_block_start" => {
                let block = event.content_block.ok_or_else(|| without("a block"))?;
                self.start(event.index, block, events)?;
            }
            "content_block_delta" => {
                let delta = event.delta.ok_or_else(|| without("a delta"))?;
                self.delta(event.index, delta, events)?;
            }
            "content_block_stop" => self.close(event.index, events),
            "message_delta" => {
                self.count(event.usage, events);
                self.stopped(event.delta.and_then(|delta| delta.stop_reason).as_deref())?;
            }
            "message_stop" => self.finish(events),
            // Pings, and what may be added one day.
            _ => {}
        }
        Ok(())
    }

    fn document(&mut self, body: &str, events: &mut Events) -> Result<(), ModelError> {
        let mut mended = String::new();
        let document: Document = match json::parse(body, &mut mended, events) {
            Ok(document) => document,
            Err(_) if is_error_object(body) => return Err(body_error(body)),
            Err(error) => return Err(bad_document(&error)),
        };
        events.push_back(StreamEvent::Start {
            model: document.model,
        });
        for (index, block) in (0..).zip(document.content) {
            self.start(index, block, events)?;
            self.close(index, events);
        }
        self.count(document.usage, events);
        self.stopped(document.stop_reason.as_deref())?;
        if self.stop.is_none() {
            return Err(truncated());
        }
        self.finish(events);
        Ok(())
    }

    fn end(&mut self, _events: &mut Events) -> Result<(), ModelError> {
        if self.over { Ok(()) } else { Err(truncated()) }
    }

    fn is_whole(&self) -> bool {
        self.over
    }
}

impl AnthropicDecoder {
    fn start(
        &mut self,
        key: u64,
        block: BlockStart,
        events: &mut Events,
    ) -> Result<(), ModelError> {
        match self.blocks.get(&key) {
            None => {}
            Some(Open::Call { id, input, .. }) if *id == block.id && input.is_some() => {
                return Ok(());
            }
            Some(_) => return Err(disorder(&format!("block {key} begins twice"))),
        }
        let index = self.blocks.len();
        let open = match block.kind.as_str() {
            "text" => {
                events.push_back(StreamEvent::TextStart { index });
                if !block.text.is_empty() {
                    events.push_back(StreamEvent::TextDelta {
                        index,
                        delta: block.text,
                    });
                }
                Open::Text { index }
            }
            "thinking" => {
                events.push_back(StreamEvent::ThinkingStart { index });
                if !block.thinking.is_empty() {
                    events.push_back(StreamEvent::ThinkingDelta {
                        index,
                        delta: block.thinking,
                    });
                }
                Open::Thinking {
                    index,
                    signature: block.signature,
                }
            }
            "redacted_thinking" => {
                events.push_back(StreamEvent::ThinkingStart { index });
                events.push_back(StreamEvent::ThinkingEnd {
                    index,
                    signature: Some(block.data),
                    redacted: true,
                });
                Open::Ignored
            }
            "tool_use" => {
                events.push_back(StreamEvent::ToolCallStart {
                    index,
                    id: block.id.clone(),
                    name: block.name,
                });
                // Usually an empty object, and the deltas bring the input.
                Open::Call {
                    index,
                    id: block.id,
                    input: Some(block.input.unwrap_or_default()),
                }
            }
            _ => Open::Ignored,
        };
        self.blocks.insert(key, open);
        Ok(())
    }

    fn delta(&mut self, key: u64, delta: Delta<'_>, events: &mut Events) -> Result<(), ModelError> {
        let Some(open) = self.blocks.get_mut(&key) else {
            return Err(disorder(&format!("block {key} continues before it begins")));
        };
        match (open, &*delta.kind) {
            (Open::Ignored, _) => {}
            (Open::Closed, _) => {
                return Err(disorder(&format!("block {key} continues after its end")));
            }
            (Open::Text { index }, "text_delta") => {
                let delta = delta.text.ok_or_else(|| without("text"))?;
                events.push_back(StreamEvent::TextDelta {
                    index: *index,
                    delta,
                });
            }
            (Open::Thinking { index, .. }, "thinking_delta") => {
                let delta = delta.thinking.ok_or_else(|| without("thinking"))?;
                events.push_back(StreamEvent::ThinkingDelta {
                    index: *index,
                    delta,
                });
            }
            (Open::Thinking { signature, .. }, "signature_delta") => {
                signature.push_str(&delta.signature.ok_or_else(|| without("a signature"))?);
            }
            (Open::Call { index, input, .. }, "input_json_delta") => {
                let delta = delta.partial_json.ok_or_else(|| without("input"))?;
                if !delta.is_empty() {
                    *input = None;
                    events.push_back(StreamEvent::ToolCallDelta {
                        index: *index,
                        delta,
                    });
                }
            }
            (_, "text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta") => {
                return Err(disorder(&format!("block {key} mixes two kinds")));
            }
            // Citations and what may be added one day.
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, key: u64, events: &mut Events) {
        let Some(open) = self.blocks.get_mut(&key) else {
            return;
        };
        match std::mem::replace(open, Open::Closed) {
            Open::Text { index } => events.push_back(StreamEvent::TextEnd { index }),
            Open::Thinking { index, signature } => events.push_back(StreamEvent::ThinkingEnd {
                index,
                signature: Some(signature).filter(|signature| !signature.is_empty()),
                redacted: false,
            }),
            Open::Call { index, input, .. } => {
                if let Some(input) = input.filter(says_something) {
                    events.push_back(StreamEvent::ToolCallDelta {
                        index,
                        delta: input.to_string(),
                    });
                }
                events.push_back(StreamEvent::ToolCallEnd { index });
            }
            Open::Ignored | Open::Closed => {}
        }
    }

    fn count(&mut self, tokens: Option<Tokens>, events: &mut Events) {
        let Some(tokens) = tokens else {
            return;
        };
        let reasoning = tokens
            .output_tokens_details
            .and_then(|details| details.reasoning_tokens);
        self.counted.0 |= count(tokens.input_tokens).is_some();
        self.counted.1 |= count(tokens.output_tokens).is_some();
        for (field, value) in [
            (&mut self.usage.input, tokens.input_tokens),
            (&mut self.usage.output, tokens.output_tokens),
            (&mut self.usage.cache_read, tokens.cache_read_input_tokens),
            (
                &mut self.usage.cache_write,
                tokens.cache_creation_input_tokens,
            ),
            (&mut self.usage.reasoning, reasoning),
        ] {
            if let Some(value) = count(value) {
                *field = value;
            }
        }
        // No request has an empty prompt: a count of zero is a server that does
        // not count.
        if self.counted == (true, true) && self.usage.prompt_tokens() > 0 {
            events.push_back(StreamEvent::Usage(self.usage));
        }
    }

    fn stopped(&mut self, reason: Option<&str>) -> Result<(), ModelError> {
        let Some(reason) = reason else {
            return Ok(());
        };
        self.stop = Some(match reason {
            "tool_use" => StopReason::ToolUse,
            "max_tokens" => StopReason::Length,
            "pause_turn" => StopReason::Pause,
            "refusal" | "sensitive" => StopReason::Refusal,
            "model_context_window_exceeded" => {
                return Err(ModelError::new(
                    ModelErrorKind::ContextOverflow,
                    "the reply ran into the end of the context window",
                )
                .with_code(Some(reason.to_owned())));
            }
            _ => StopReason::Stop,
        });
        Ok(())
    }

    fn finish(&mut self, events: &mut Events) {
        let keys: Vec<u64> = self.blocks.keys().copied().collect();
        for key in keys {
            self.close(key, events);
        }
        self.over = true;
        events.push_back(StreamEvent::Stop(self.stop.unwrap_or(StopReason::Stop)));
    }
}

fn says_something(input: &Value) -> bool {
    match input {
        Value::Null => false,
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    }
}

fn is_error_object(body: &str) -> bool {
    serde_json::from_str::<Value>(body)
        .is_ok_and(|value| value.get("error").is_some_and(|error| !error.is_null()))
}
