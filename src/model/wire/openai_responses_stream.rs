//! OpenAI's responses: the stream.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::message::StopReason;
use crate::model::StreamEvent;
use crate::model::classify::body_error;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::sse::Frame;
use crate::model::wire::json::{Loose, Text};
use crate::model::wire::openai_responses::MessageSignature;
use crate::model::wire::openai_responses_event::{Counted, Event, Incomplete, Response};
use crate::model::wire::tokens::Tokens;
use crate::model::wire::{
    Decoder, Events, bad_document, bad_frame, disorder, json, truncated, without,
};

/// Decodes one reply.
#[derive(Default)]
pub(super) struct ResponsesDecoder {
    started: bool,
    items: BTreeMap<u64, Open>,
    /// The keys of the items that are told apart by their ids: llama.cpp
    /// numbers none.
    ids: BTreeMap<String, u64>,
    calls: bool,
    refused: bool,
    over: bool,
}

/// An item of the output; `index` is ours, the provider's is the key.
enum Open {
    Text {
        index: usize,
        spoken: bool,
    },
    Thinking {
        index: usize,
        spoken: bool,
    },
    Call {
        index: usize,
        /// All of the arguments so far.
        spoken: bool,
    },
    /// A kind that we do not know: its deltas say nothing.
    Ignored,
    Closed,
}

impl Decoder for ResponsesDecoder {
    fn frame(&mut self, frame: &Frame, events: &mut Events) -> Result<(), ModelError> {
        if self.over || frame.data == "[DONE]" {
            return Ok(());
        }
        let mut mended = String::new();
        let mut event: Event<'_> = match json::parse(&frame.data, &mut mended, events) {
            Ok(event) => event,
            Err(_) if frame.event == "error" => return Err(body_error(&frame.data)),
            Err(error) => return Err(bad_frame(&error)),
        };
        let kind = match std::mem::take(&mut event.kind) {
            kind if kind.is_empty() => Text(frame.event.as_str().into()),
            kind => kind,
        };
        match &*kind {
            "error" => return Err(reported(event)),
            "" if event.error.is_some() => return Err(reported(event)),
            "response.created" | "response.in_progress" | "response.queued" => {
                self.begin(event.response.and_then(|response| response.model), events);
            }
            "response.output_item.added" => {
                let item = event.item.ok_or_else(|| without("an item"))?;
                let known = self.ids.contains_key(text_of(&item, "id"));
                let key = match event.output_index {
                    None if !known => self.items.len() as u64,
                    number => self.key(number, text_of(&item, "id")),
                };
                self.open(key, &item, events)?;
            }
            "response.output_item.done" => {
                let item = event.item.ok_or_else(|| without("an item"))?;
                let key = self.key(event.output_index, text_of(&item, "id"));
                if !self.items.contains_key(&key) {
                    self.open(key, &item, events)?;
                }
                self.close(key, &item, events);
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled"
            | "response.done" => {
                let response = event.response.ok_or_else(|| without("a response"))?;
                self.settle(&kind, response, events)?;
            }
            // Parts, annotations, and what may be added one day.
            _ => self.delta(&kind, event, events)?,
        }
        Ok(())
    }

    fn document(&mut self, body: &str, events: &mut Events) -> Result<(), ModelError> {
        let mut mended = String::new();
        let value: Value =
            json::parse(body, &mut mended, events).map_err(|error| bad_document(&error))?;
        let says = |field: &str| value.get(field).is_some_and(|value| !value.is_null());
        if !says("output")
            && !says("status")
            && (says("error") || says("message") || says("detail"))
        {
            return Err(body_error(body));
        }
        let response: Response =
            serde_json::from_value(value).map_err(|error| bad_frame(&error))?;
        if response.output.is_none() && response.status.is_none() {
            return Err(without("an output"));
        }
        self.settle("response.completed", response, events)
    }

    fn end(&mut self, _events: &mut Events) -> Result<(), ModelError> {
        if self.over { Ok(()) } else { Err(truncated()) }
    }

    fn is_whole(&self) -> bool {
        self.over
    }
}

impl ResponsesDecoder {
    fn begin(&mut self, model: Option<String>, events: &mut Events) {
        if !self.started {
            self.started = true;
            events.push_back(StreamEvent::Start { model });
        }
    }

    /// Which item an event is about: the one with this number, else the one with
    /// this id, else the newest.
    fn key(&self, number: Option<u64>, id: &str) -> u64 {
        number
            .or_else(|| self.ids.get(id).copied())
            .or_else(|| self.items.keys().next_back().copied())
            .unwrap_or_default()
    }

    fn open(&mut self, key: u64, item: &Value, events: &mut Events) -> Result<(), ModelError> {
        if self.items.contains_key(&key) {
            return Err(disorder(&format!("item {key} begins twice")));
        }
        self.begin(None, events);
        let index = self.items.len();
        let open = match text_of(item, "type") {
            "message" => {
                events.push_back(StreamEvent::TextStart { index });
                Open::Text {
                    index,
                    spoken: false,
                }
            }
            "reasoning" => {
                events.push_back(StreamEvent::ThinkingStart { index });
                Open::Thinking {
                    index,
                    spoken: false,
                }
            }
            "function_call" => {
                self.calls = true;
                events.push_back(StreamEvent::ToolCallStart {
                    index,
                    id: call_id(item),
                    name: text_of(item, "name").to_owned(),
                });
                Open::Call {
                    index,
                    spoken: false,
                }
            }
            _ => Open::Ignored,
        };
        self.items.insert(key, open);
        self.ids.insert(text_of(item, "id").to_owned(), key);
        Ok(())
    }

    fn delta(
        &mut self,
        kind: &str,
        event: Event<'_>,
        events: &mut Events,
    ) -> Result<(), ModelError> {
        let says = match kind {
            "response.output_text.delta" | "response.refusal.delta" => Says::Text,
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                Says::Thinking
            }
            "response.reasoning_summary_part.added" => Says::ThinkingPart,
            "response.function_call_arguments.delta" => Says::Arguments,
            "response.function_call_arguments.done" => Says::AllArguments,
            _ => return Ok(()),
        };
        let key = self.key(
            event.output_index,
            event.item_id.as_deref().unwrap_or_default(),
        );
        self.refused |= kind == "response.refusal.delta";
        let delta = match says {
            Says::AllArguments => event.arguments,
            // The parts of a summary are paragraphs.
            Says::ThinkingPart => Some(Loose::Text(Text("\n\n".into()))),
            Says::Text | Says::Thinking | Says::Arguments => event.delta,
        };
        let Some(delta) = delta.and_then(Loose::into_string) else {
            return Err(without("a delta"));
        };
        let open = self
            .items
            .get_mut(&key)
            .ok_or_else(|| disorder(&format!("item {key} continues before it begins")))?;
        match (open, says) {
            (Open::Ignored, _) => {}
            (Open::Closed, _) => {
                return Err(disorder(&format!("item {key} continues after its end")));
            }
            (Open::Call { spoken: true, .. }, Says::AllArguments) => {}
            (Open::Thinking { spoken, .. }, Says::ThinkingPart)
                if !*spoken || event.summary_index == Some(0) => {}
            (_, _) if delta.is_empty() => {}
            (Open::Text { index, spoken }, Says::Text) => {
                *spoken = true;
                let index = *index;
                events.push_back(StreamEvent::TextDelta { index, delta });
            }
            (Open::Thinking { index, spoken }, Says::Thinking | Says::ThinkingPart) => {
                *spoken = true;
                let index = *index;
                events.push_back(StreamEvent::ThinkingDelta { index, delta });
            }
            (Open::Call { index, spoken }, Says::Arguments | Says::AllArguments) => {
                *spoken = true;
                let index = *index;
                events.push_back(StreamEvent::ToolCallDelta { index, delta });
            }
            (_, _) => return Err(disorder(&format!("item {key} mixes two kinds"))),
        }
        Ok(())
    }

    /// Ends an item. What no delta has said, the whole item says.
    fn close(&mut self, key: u64, item: &Value, events: &mut Events) {
        let Some(open) = self.items.get_mut(&key) else {
            return;
        };
        match std::mem::replace(open, Open::Closed) {
            Open::Text { index, spoken } => {
                let (text, refused) = said(item);
                self.refused |= refused;
                let empty = !spoken && text.is_empty();
                if !spoken && !empty {
                    let delta = text;
                    events.push_back(StreamEvent::TextDelta { index, delta });
                }
                let id = text_of(item, "id");
                if !id.is_empty() && !empty {
                    let phase = item.get("phase").and_then(Value::as_str);
                    let signature = serde_json::json!(MessageSignature::new(id, phase)).to_string();
                    events.push_back(StreamEvent::Signature { index, signature });
                }
                events.push_back(StreamEvent::TextEnd { index });
            }
            Open::Thinking { index, spoken } => {
                let thought = thought(item);
                if !spoken && !thought.is_empty() {
                    let delta = thought;
                    events.push_back(StreamEvent::ThinkingDelta { index, delta });
                }
                // Without its encrypted part it could not be read again.
                let readable = !text_of(item, "encrypted_content").is_empty();
                events.push_back(StreamEvent::ThinkingEnd {
                    index,
                    signature: readable.then(|| item.to_string()),
                    redacted: false,
                });
            }
            Open::Call { index, spoken } => {
                let arguments = text_of(item, "arguments");
                if !spoken && !arguments.is_empty() {
                    let delta = arguments.to_owned();
                    events.push_back(StreamEvent::ToolCallDelta { index, delta });
                }
                // A call that was cut has no end.
                if text_of(item, "status") != "incomplete" {
                    events.push_back(StreamEvent::ToolCallEnd { index });
                }
            }
            Open::Ignored | Open::Closed => {}
        }
    }

    /// The last word about the response.
    fn settle(
        &mut self,
        kind: &str,
        response: Response,
        events: &mut Events,
    ) -> Result<(), ModelError> {
        let status = response.status.as_deref().unwrap_or_default();
        if kind == "response.failed" || status == "failed" {
            return Err(failed(response.error));
        }
        if kind == "response.cancelled" || status == "cancelled" {
            return Err(ModelError::new(
                ModelErrorKind::Unavailable,
                "the provider cancelled the reply",
            ));
        }
        let cut = if kind == "response.incomplete" || status == "incomplete" {
            Some(incomplete(response.incomplete_details)?)
        } else {
            None
        };
        self.begin(response.model, events);
        // Some servers say everything at the end only.
        if self.items.is_empty() {
            for (key, item) in (0..).zip(response.output.into_iter().flatten()) {
                self.open(key, &item, events)?;
                self.close(key, &item, events);
            }
        }
        let left: Vec<u64> = self.items.keys().copied().collect();
        // An item that is open at the end of a whole reply is whole too.
        let rest =
            serde_json::json!({"status": if cut.is_some() { "incomplete" } else { "completed" }});
        for key in left {
            self.close(key, &rest, events);
        }
        count_tokens(response.usage, events);
        self.over = true;
        events.push_back(StreamEvent::Stop(match cut {
            Some(reason) => reason,
            None if self.refused => StopReason::Refusal,
            None if self.calls => StopReason::ToolUse,
            None => StopReason::Stop,
        }));
        Ok(())
    }
}

/// What a delta adds to.
#[derive(Clone, Copy)]
enum Says {
    Text,
    Thinking,
    ThinkingPart,
    Arguments,
    AllArguments,
}

/// The id of the call and that of its item, both of which are needed later.
fn call_id(item: &Value) -> String {
    match (text_of(item, "call_id"), text_of(item, "id")) {
        ("", id) => id.to_owned(),
        (call, "") => call.to_owned(),
        (call, id) => format!("{call}|{id}"),
    }
}

fn text_of<'a>(item: &'a Value, field: &str) -> &'a str {
    item.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a message item, and whether it is a refusal.
fn said(item: &Value) -> (String, bool) {
    let mut text = String::new();
    let mut refused = false;
    let parts = item.get("content").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        text.push_str(text_of(part, "text"));
        let refusal = text_of(part, "refusal");
        refused |= text_of(part, "type") == "refusal";
        text.push_str(refusal);
    }
    (text, refused)
}

/// The text of a reasoning item: its summary, or all of it where it is open.
fn thought(item: &Value) -> String {
    let texts = |field: &str| -> Vec<&str> {
        let parts = item.get(field).and_then(Value::as_array);
        parts
            .into_iter()
            .flatten()
            .map(|part| text_of(part, "text"))
            .filter(|text| !text.is_empty())
            .collect()
    };
    let mut all = texts("summary");
    if all.is_empty() {
        all = texts("content");
    }
    all.join("\n\n")
}

fn incomplete(details: Option<Incomplete>) -> Result<StopReason, ModelError> {
    let reason = details.and_then(|details| details.reason);
    match reason.as_deref() {
        None | Some("max_output_tokens" | "max_tokens" | "length") => Ok(StopReason::Length),
        Some("content_filter") => Ok(StopReason::Refusal),
        Some(other) => Err(ModelError::new(
            ModelErrorKind::Unavailable,
            format!("the provider left the reply incomplete: {other}"),
        )
        .with_code(reason.clone())),
    }
}

fn failed(error: Option<Value>) -> ModelError {
    match error {
        Some(error) if !error.is_null() => {
            body_error(&serde_json::json!({ "error": error }).to_string())
        }
        _ => ModelError::new(
            ModelErrorKind::Unavailable,
            "the provider failed in the middle of the reply",
        ),
    }
}

/// An `error` event: its fields are its own, or those of an object inside.
fn reported(event: Event<'_>) -> ModelError {
    if event.error.as_ref().is_some_and(|error| !error.is_null()) {
        return failed(event.error);
    }
    let message = event.message.unwrap_or_else(|| "no explanation".into());
    failed(Some(
        serde_json::json!({"code": event.code, "message": message}),
    ))
}

fn count_tokens(counted: Option<Counted>, events: &mut Events) {
    let Some(counted) = counted else {
        return;
    };
    let input = counted.input_tokens_details.as_ref();
    let output = counted.output_tokens_details.as_ref();
    Tokens {
        prompt: counted.input_tokens,
        output: counted.output_tokens,
        cache_read: input.and_then(|details| details.cached_tokens),
        cache_write: input.and_then(|details| details.cache_write_tokens),
        reasoning: output.and_then(|details| details.reasoning_tokens),
    }
    .tell(events);
}
