//! Chat completions: the stream, in all the ways in which servers vary it.

use std::collections::HashMap;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::message::StopReason;
use crate::model::StreamEvent;
use crate::model::classify::body_error;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::sse::Frame;
use crate::model::wire::json::{Loose, Text};
use crate::model::wire::reasoning_details::ReasoningDetails;
use crate::model::wire::tokens::Tokens;
use crate::model::wire::{Decoder, Events, bad_document, bad_frame, json, truncated};

/// Decodes one reply.
#[derive(Default)]
pub(super) struct ChatDecoder {
    started: bool,
    /// Blocks begun so far; the next one's index.
    blocks: usize,
    prose: Prose,
    calls: Vec<Call>,
    /// The newest call of each index of the server's, and of each id.
    by_key: HashMap<u64, usize>,
    by_id: HashMap<String, usize>,
    details: ReasoningDetails,
    finish: Option<Finish>,
    refused: bool,
    over: bool,
}

/// The block of text or thinking that is open.
#[derive(Default, Clone, Copy)]
enum Prose {
    #[default]
    None,
    Text(usize),
    Thinking(usize),
}

struct Call {
    id: String,
    /// Ours, once the call's name is known.
    index: Option<usize>,
    /// Arguments that came before the name.
    early: String,
}

#[derive(Clone, Copy)]
enum Finish {
    /// A normal end: of tool calls when there are any.
    Whole,
    Length,
    Refusal,
}

#[derive(Deserialize)]
struct Chunk<'t> {
    #[serde(borrow)]
    model: Option<Text<'t>>,
    choices: Option<Vec<Choice<'t>>>,
    usage: Option<Counted>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice<'t> {
    #[serde(alias = "message", borrow)]
    delta: Option<Delta<'t>>,
    finish_reason: Option<String>,
    /// Some servers count here.
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Delta<'t> {
    #[serde(borrow)]
    content: Option<Loose<'t>>,
    reasoning_content: Option<String>,
    reasoning: Option<Loose<'t>>,
    reasoning_details: Option<Vec<Value>>,
    refusal: Option<String>,
    tool_calls: Option<Vec<CallDelta<'t>>>,
}

#[derive(Deserialize)]
struct CallDelta<'t> {
    index: Option<u64>,
    id: Option<String>,
    #[serde(borrow)]
    function: Option<FunctionDelta<'t>>,
}

#[derive(Deserialize)]
struct FunctionDelta<'t> {
    name: Option<String>,
    /// Text, but some servers send the object itself.
    #[serde(borrow)]
    arguments: Option<Loose<'t>>,
}

#[derive(Deserialize)]
struct Counted {
    prompt_tokens: Option<f64>,
    completion_tokens: Option<f64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<OutputDetails>,
    prompt_cache_hit_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<f64>,
    cache_write_tokens: Option<f64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<f64>,
}

impl Decoder for ChatDecoder {
    fn frame(&mut self, frame: &Frame, events: &mut Events) -> Result<(), ModelError> {
        if self.over {
            return Ok(());
        }
        let data = frame.data.trim();
        if data == "[DONE]" {
            if !self.started {
                return Err(truncated());
            }
            self.finish(events);
            return Ok(());
        }
        if frame.event == "error" {
            return Err(body_error(data));
        }
        let mut mended = String::new();
        let parsed = json::parse(data, &mut mended, events).map_err(|error| bad_frame(&error));
        match parsed.and_then(|chunk| self.chunk(chunk, data, events)) {
            // The reply is whole; only its count may be lost.
            Err(error) if self.finish.is_some() && error.kind == ModelErrorKind::BadResponse => {
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn document(&mut self, body: &str, events: &mut Events) -> Result<(), ModelError> {
        let mut mended = String::new();
        let chunk = json::parse(body, &mut mended, events).map_err(|error| bad_document(&error))?;
        self.chunk(chunk, body, events)?;
        self.end(events)
    }

    fn end(&mut self, events: &mut Events) -> Result<(), ModelError> {
        if self.over {
            return Ok(());
        }
        if self.finish.is_none() {
            return Err(truncated());
        }
        self.finish(events);
        Ok(())
    }

    fn is_whole(&self) -> bool {
        self.over || self.finish.is_some()
    }
}

impl ChatDecoder {
    fn chunk(
        &mut self,
        chunk: Chunk<'_>,
        data: &str,
        events: &mut Events,
    ) -> Result<(), ModelError> {
        if chunk.error.is_some() {
            return Err(body_error(data));
        }
        let Some(choices) = chunk.choices else {
            // Keep-alives and counts; anything else is no chat completion.
            if chunk.usage.is_none() && !self.started {
                return Err(unlike(data));
            }
            count_tokens(chunk.usage, events);
            return Ok(());
        };
        if !self.started {
            self.started = true;
            let model = chunk.model.map(Text::into_string);
            events.push_back(StreamEvent::Start { model });
        }
        // We ask for one choice only.
        if let Some(choice) = choices.into_iter().next() {
            if let Some(delta) = choice.delta {
                self.delta(delta, events)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.finish = Some(finish_of(&reason)?);
            }
            count_tokens(choice.usage, events);
        }
        count_tokens(chunk.usage, events);
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, events: &mut Events) -> Result<(), ModelError> {
        self.details
            .add(delta.reasoning_details.unwrap_or_default());
        let reasoning = match (delta.reasoning_content, delta.reasoning) {
            (Some(text), _) if !text.is_empty() => Some(text),
            (_, Some(said)) => said.into_string(),
            (_, None) => None,
        };
        if let Some(text) = reasoning {
            self.thinking(text, events);
        }
        match delta.content {
            Some(Loose::Text(text)) => self.text(text.into_string(), events),
            Some(Loose::Other(Value::Array(parts))) => self.parts(parts, events),
            Some(Loose::Other(_)) | None => {}
        }
        if let Some(text) = delta.refusal.filter(|text| !text.is_empty()) {
            self.refused = true;
            self.text(text, events);
        }
        for call in delta.tool_calls.into_iter().flatten() {
            self.call(call, events)?;
        }
        Ok(())
    }

    /// Content as a list of parts, thinking among them.
    fn parts(&mut self, parts: Vec<Value>, events: &mut Events) {
        for part in parts {
            let kind = part.get("type").and_then(Value::as_str);
            match kind {
                Some("thinking") => {
                    let inner = part.get("thinking").and_then(Value::as_array);
                    for text in inner.into_iter().flatten() {
                        if let Some(text) = text.get("text").and_then(Value::as_str) {
                            self.thinking(text.to_owned(), events);
                        }
                    }
                }
                _ => {
                    if let Some(text) = part.get("text").and_then(Value::as_str) {
                        self.text(text.to_owned(), events);
                    }
                }
            }
        }
    }

    fn text(&mut self, delta: String, events: &mut Events) {
        if delta.is_empty() {
            return;
        }
        let index = match self.prose {
            Prose::Text(index) => index,
            Prose::None | Prose::Thinking(_) => {
                self.close_prose(events);
                let index = self.next_block();
                self.prose = Prose::Text(index);
                events.push_back(StreamEvent::TextStart { index });
                index
            }
        };
        events.push_back(StreamEvent::TextDelta { index, delta });
    }

    fn thinking(&mut self, delta: String, events: &mut Events) {
        if delta.is_empty() {
            return;
        }
        let index = match self.prose {
            Prose::Thinking(index) => index,
            Prose::None | Prose::Text(_) => {
                self.close_prose(events);
                let index = self.next_block();
                self.prose = Prose::Thinking(index);
                events.push_back(StreamEvent::ThinkingStart { index });
                index
            }
        };
        events.push_back(StreamEvent::ThinkingDelta { index, delta });
    }

    fn close_prose(&mut self, events: &mut Events) {
        match std::mem::take(&mut self.prose) {
            Prose::None => {}
            Prose::Text(index) => events.push_back(StreamEvent::TextEnd { index }),
            Prose::Thinking(index) => events.push_back(StreamEvent::ThinkingEnd {
                index,
                signature: None,
                redacted: false,
            }),
        }
    }

    fn call(&mut self, delta: CallDelta<'_>, events: &mut Events) -> Result<(), ModelError> {
        let id = delta.id.unwrap_or_default();
        let (name, arguments) = delta
            .function
            .map_or((None, None), |function| (function.name, function.arguments));
        let name = name.unwrap_or_default();
        let at = match self.find_call(delta.index, &id, &name) {
            Some(at) => at,
            None if id.is_empty() && name.is_empty() && delta.index.is_none() => {
                return Err(ModelError::new(
                    ModelErrorKind::BadResponse,
                    "the stream is out of order: a call continues before it begins",
                ));
            }
            None => {
                self.calls.push(Call {
                    id: String::new(),
                    index: None,
                    early: String::new(),
                });
                let at = self.calls.len() - 1;
                if let Some(key) = delta.index {
                    self.by_key.insert(key, at);
                }
                at
            }
        };
        if self.calls.get(at).is_some_and(|call| call.index.is_none()) && !name.is_empty() {
            self.close_prose(events);
        }
        let next = self.blocks;
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        if call.id.is_empty() && !id.is_empty() {
            let newest = self.by_id.entry(id.clone()).or_insert(at);
            *newest = at.max(*newest);
            call.id = id;
        }
        if call.index.is_none() && !name.is_empty() {
            call.index = Some(next);
            self.blocks += 1;
            call.begin(next, name, events);
        }
        let arguments = match arguments {
            Some(Loose::Text(text)) => text.into_string(),
            Some(Loose::Other(Value::Null)) | None => String::new(),
            Some(Loose::Other(other)) => other.to_string(),
        };
        call.more(arguments, events);
        Ok(())
    }

    /// The call that a piece continues. An index that returns with another id
    /// and a name is a new call: some servers number all calls zero.
    fn find_call(&self, key: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let is_new = |call: &Call| {
            !id.is_empty() && !call.id.is_empty() && call.id != id && !name.is_empty()
        };
        if let Some(key) = key {
            let at = self.by_key.get(&key).copied();
            return at.filter(|at| self.calls.get(*at).is_some_and(|call| !is_new(call)));
        }
        if id.is_empty() {
            let last = self.calls.len().checked_sub(1)?;
            return name.is_empty().then_some(last);
        }
        self.by_id.get(id).copied()
    }

    fn finish(&mut self, events: &mut Events) {
        self.close_prose(events);
        let mut calls = std::mem::take(&mut self.calls);
        for call in &mut calls {
            let index = match call.index {
                Some(index) => index,
                None => {
                    let index = self.next_block();
                    call.begin(index, String::new(), events);
                    index
                }
            };
            events.push_back(StreamEvent::ToolCallEnd { index });
        }
        let details = std::mem::take(&mut self.details);
        if !details.is_empty() {
            details.tell(self.next_block(), events);
        }
        let reason = match self.finish {
            _ if self.refused => StopReason::Refusal,
            Some(Finish::Length) => StopReason::Length,
            Some(Finish::Refusal) => StopReason::Refusal,
            Some(Finish::Whole) | None if calls.is_empty() => StopReason::Stop,
            Some(Finish::Whole) | None => StopReason::ToolUse,
        };
        self.over = true;
        events.push_back(StreamEvent::Stop(reason));
    }

    fn next_block(&mut self) -> usize {
        let index = self.blocks;
        self.blocks += 1;
        index
    }
}

impl Call {
    fn begin(&mut self, index: usize, name: String, events: &mut Events) {
        self.index = Some(index);
        events.push_back(StreamEvent::ToolCallStart {
            index,
            id: self.id.clone(),
            name,
        });
        let early = std::mem::take(&mut self.early);
        self.more(early, events);
    }

    fn more(&mut self, delta: String, events: &mut Events) {
        match self.index {
            _ if delta.is_empty() => {}
            Some(index) => events.push_back(StreamEvent::ToolCallDelta { index, delta }),
            None => self.early.push_str(&delta),
        }
    }
}

fn finish_of(reason: &str) -> Result<Finish, ModelError> {
    match reason {
        "length" | "max_tokens" | "model_length" => Ok(Finish::Length),
        "content_filter" | "refusal" | "sensitive" => Ok(Finish::Refusal),
        "error" | "network_error" | "insufficient_system_resource" => Err(ModelError::new(
            ModelErrorKind::Unavailable,
            "the provider failed in the middle of the reply",
        )
        .with_code(Some(reason.to_owned()))),
        "model_context_window_exceeded" => Err(ModelError::new(
            ModelErrorKind::ContextOverflow,
            "the reply ran into the end of the context window",
        )
        .with_code(Some(reason.to_owned()))),
        _ => Ok(Finish::Whole),
    }
}

fn count_tokens(counted: Option<Counted>, events: &mut Events) {
    let Some(counted) = counted else {
        return;
    };
    let details = counted.prompt_tokens_details.as_ref();
    let cached = details.and_then(|details| details.cached_tokens);
    let output = counted.completion_tokens_details.as_ref();
    Tokens {
        prompt: counted.prompt_tokens,
        output: counted.completion_tokens,
        cache_read: cached.or(counted.prompt_cache_hit_tokens),
        cache_write: details.and_then(|details| details.cache_write_tokens),
        reasoning: output.and_then(|details| details.reasoning_tokens),
    }
    .tell(events);
}

/// The error of a document that is no reply: an error in an unusual shape, or
/// something else altogether.
fn unlike(data: &str) -> ModelError {
    let says = |field: &str| {
        serde_json::from_str::<Value>(data).is_ok_and(|value| value.get(field).is_some())
    };
    if says("message") || says("detail") || says("base_resp") {
        return body_error(data);
    }
    let said: String = data.chars().take(200).collect();
    ModelError::new(
        ModelErrorKind::BadResponse,
        format!("the answer is no chat completion: {said}"),
    )
}
