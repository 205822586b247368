//! Google's generative language API: the stream.
//!
//! There is no last event: a reply is whole when its connection ends after a
//! chunk with a reason to finish.

use serde::Deserialize;
use serde_json::Value;

use crate::message::{StopReason, Usage};
use crate::model::StreamEvent;
use crate::model::classify::body_error;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::sse::Frame;
use crate::model::wire::json::Text;
use crate::model::wire::tokens::count;
use crate::model::wire::{Decoder, Events, bad_document, bad_frame, json, truncated};

/// Decodes one reply.
#[derive(Default)]
pub(super) struct GeminiDecoder {
    started: bool,
    /// Blocks begun so far; the next one's index.
    blocks: usize,
    prose: Prose,
    calls: bool,
    finish: Option<StopReason>,
    over: bool,
}

/// The block of text or thinking that is open.
#[derive(Default)]
enum Prose {
    #[default]
    None,
    Text(usize),
    Thinking {
        index: usize,
        signature: Option<String>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Chunk<'t> {
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'t>>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Tokens>,
    model_version: Option<Text<'t>>,
    error: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'t> {
    content: Option<Content>,
    #[serde(borrow)]
    finish_reason: Option<Text<'t>>,
    finish_message: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    parts: Option<Vec<Part>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    text: Option<String>,
    thought: Option<bool>,
    #[serde(alias = "thought_signature")]
    thought_signature: Option<String>,
    function_call: Option<FunctionCall>,
}

#[derive(Deserialize)]
struct FunctionCall {
    id: Option<String>,
    name: Option<String>,
    args: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
    block_reason_message: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Option<f64>,
    tool_use_prompt_token_count: Option<f64>,
    cached_content_token_count: Option<f64>,
    candidates_token_count: Option<f64>,
    thoughts_token_count: Option<f64>,
}

impl Decoder for GeminiDecoder {
    fn frame(&mut self, frame: &Frame, events: &mut Events) -> Result<(), ModelError> {
        let data = frame.data.trim();
        if self.over || data == "[DONE]" {
            return Ok(());
        }
        if frame.event == "error" {
            return Err(body_error(data));
        }
        let mut mended = String::new();
        let chunk = match json::parse(data, &mut mended, events) {
            Ok(chunk) => chunk,
            // The reply is whole; only its count may be lost.
            Err(_) if self.finish.is_some() => return Ok(()),
            Err(error) => return Err(bad_frame(&error)),
        };
        self.chunk(chunk, data, events)
    }

    /// One chunk, or a list of them: how the answer comes without `alt=sse`.
    fn document(&mut self, body: &str, events: &mut Events) -> Result<(), ModelError> {
        if body.starts_with('[') {
            let chunks: Vec<&serde_json::value::RawValue> =
                serde_json::from_str(body).map_err(|error| bad_document(&error))?;
            for raw in chunks {
                let mut mended = String::new();
                let chunk = json::parse(raw.get(), &mut mended, events)
                    .map_err(|error| bad_frame(&error))?;
                self.chunk(chunk, raw.get(), events)?;
            }
        } else {
            let mut mended = String::new();
            let chunk: Chunk<'_> =
                json::parse(body, &mut mended, events).map_err(|error| bad_document(&error))?;
            if chunk.candidates.is_none() && chunk.prompt_feedback.is_none() {
                return Err(body_error(body));
            }
            self.chunk(chunk, body, events)?;
        }
        self.end(events)
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ModelError> {
        if self.over {
            return Ok(());
        }
        let reason = self.finish.ok_or_else(truncated)?;
        self.close_prose(events);
        self.over = true;
        events.push_back(StreamEvent::Stop(match reason {
            StopReason::Stop if self.calls => StopReason::ToolUse,
            other => other,
        }));
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.over || self.finish.is_some()
    }
}

impl GeminiDecoder {
    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        raw: &str,
        events: &mut Events,
    ) -> Result<(), ModelError> {
        if chunk.error.is_some() {
            return Err(body_error(raw));
        }
        if !self.started {
            self.started = true;
            events.push_back(StreamEvent::Start {
                model: chunk.model_version.map(Text::into_string),
            });
        }
        count_tokens(chunk.usage_metadata, events);
        if let Some(error) = chunk.prompt_feedback.and_then(blocked) {
            return Err(error);
        }
        // We ask for one candidate only.
        let candidate = chunk.candidates.into_iter().flatten().next();
        let Some(candidate) = candidate else {
            return Ok(());
        };
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.into_iter().flatten() {
            self.part(part, events);
        }
        if let Some(reason) = candidate.finish_reason {
            self.finish = finish_of(&reason, candidate.finish_message)?.or(self.finish);
        }
        Ok(())
    }

    fn part(&mut self, part: Part, events: &mut Events) {
        let signature = part.thought_signature.filter(|text| !text.is_empty());
        if let Some(call) = part.function_call {
            self.call(call, signature, events);
            return;
        }
        match part.text {
            Some(text) if part.thought == Some(true) => self.thinking(text, signature, events),
            Some(text) => self.text(text, signature, events),
            // Code, files and the like; but a signature is never lost.
            None if signature.is_some() => self.text(String::new(), signature, events),
            None => {}
        }
    }

    fn text(&mut self, delta: String, signature: Option<String>, events: &mut Events) {
        if delta.is_empty() && signature.is_none() {
            return;
        }
        let index = match self.prose {
            Prose::Text(index) => index,
            Prose::None | Prose::Thinking { .. } => {
                self.close_prose(events);
                let index = self.next_block();
                self.prose = Prose::Text(index);
                events.push_back(StreamEvent::TextStart { index });
                index
            }
        };
        if !delta.is_empty() {
            events.push_back(StreamEvent::TextDelta { index, delta });
        }
        // A signature is over the part that ends here.
        if let Some(signature) = signature {
            events.push_back(StreamEvent::Signature { index, signature });
            self.close_prose(events);
        }
    }

    fn thinking(&mut self, delta: String, signed: Option<String>, events: &mut Events) {
        if delta.is_empty() && signed.is_none() {
            return;
        }
        if !matches!(self.prose, Prose::Thinking { .. }) {
            self.close_prose(events);
            let index = self.next_block();
            self.prose = Prose::Thinking {
                index,
                signature: None,
            };
            events.push_back(StreamEvent::ThinkingStart { index });
        }
        let Prose::Thinking { index, signature } = &mut self.prose else {
            return;
        };
        if !delta.is_empty() {
            let index = *index;
            events.push_back(StreamEvent::ThinkingDelta { index, delta });
        }
        if signed.is_some() {
            *signature = signed;
            self.close_prose(events);
        }
    }

    fn close_prose(&mut self, events: &mut Events) {
        match std::mem::take(&mut self.prose) {
            Prose::None => {}
            Prose::Text(index) => events.push_back(StreamEvent::TextEnd { index }),
            Prose::Thinking { index, signature } => events.push_back(StreamEvent::ThinkingEnd {
                index,
                signature,
                redacted: false,
            }),
        }
    }

    /// Calls come whole, and mostly without ids.
    fn call(&mut self, call: FunctionCall, signature: Option<String>, events: &mut Events) {
        self.close_prose(events);
        self.calls = true;
        let index = self.next_block();
        events.push_back(StreamEvent::ToolCallStart {
            index,
            id: call.id.unwrap_or_default(),
            name: call.name.unwrap_or_default(),
        });
        if let Some(args) = call.args.filter(|args| !args.is_null()) {
            events.push_back(StreamEvent::ToolCallDelta {
                index,
                delta: args.to_string(),
            });
        }
        if let Some(signature) = signature {
            events.push_back(StreamEvent::Signature { index, signature });
        }
        events.push_back(StreamEvent::ToolCallEnd { index });
    }

    fn next_block(&mut self) -> usize {
        let index = self.blocks;
        self.blocks += 1;
        index
    }
}

/// Why the reply ends; nothing when the provider says that it does not.
fn finish_of(reason: &str, message: Option<String>) -> Result<Option<StopReason>, ModelError> {
    let error = |kind, words: &str| {
        let message = message.filter(|message| !message.is_empty());
        let message = message.unwrap_or_else(|| words.to_owned());
        Err(ModelError::new(kind, message).with_code(Some(reason.to_owned())))
    };
    match reason {
        "" | "FINISH_REASON_UNSPECIFIED" => Ok(None),
        "MAX_TOKENS" => Ok(Some(StopReason::Length)),
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => Ok(Some(StopReason::Refusal)),
        "MALFORMED_FUNCTION_CALL" => error(
            ModelErrorKind::BadResponse,
            "the model wrote a call that its provider could not read",
        ),
        "UNEXPECTED_TOOL_CALL" | "TOO_MANY_TOOL_CALLS" | "MALFORMED_RESPONSE" => error(
            ModelErrorKind::BadResponse,
            "the model wrote what its provider could not read",
        ),
        "MISSING_THOUGHT_SIGNATURE" => {
            error(ModelErrorKind::InvalidRequest, "a call lacks its signature")
        }
        "OTHER" => error(
            ModelErrorKind::Unavailable,
            "the provider ended the reply without a reason",
        ),
        _ => Ok(Some(StopReason::Stop)),
    }
}

/// The error of a prompt that a filter stopped.
fn blocked(feedback: Feedback) -> Option<ModelError> {
    let reason = feedback
        .block_reason
        .filter(|reason| !matches!(reason.as_str(), "" | "BLOCK_REASON_UNSPECIFIED"))?;
    let message = feedback
        .block_reason_message
        .filter(|message| !message.is_empty())
        .unwrap_or_else(|| "the prompt was blocked".to_owned());
    Some(ModelError::new(ModelErrorKind::ContentFilter, message).with_code(Some(reason)))
}

/// The prompt's count includes the cached tokens, ours does not; thoughts are
/// counted beside the output, ours among it.
fn count_tokens(tokens: Option<Tokens>, events: &mut Events) {
    let Some(tokens) = tokens else {
        return;
    };
    let Some(prompt) = count(tokens.prompt_token_count) else {
        return;
    };
    let or_none = |value| count(value).unwrap_or(0);
    let prompt = prompt.saturating_add(or_none(tokens.tool_use_prompt_token_count));
    let cache_read = or_none(tokens.cached_content_token_count).min(prompt);
    let reasoning = or_none(tokens.thoughts_token_count);
    events.push_back(StreamEvent::Usage(Usage {
        input: prompt - cache_read,
        output: or_none(tokens.candidates_token_count).saturating_add(reasoning),
        cache_read,
        reasoning,
        ..Usage::default()
    }));
}
