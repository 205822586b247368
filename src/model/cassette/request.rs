//! A request as it is recorded and compared: what it says, in no dialect, and
//! without what differs from run to run.
//!
//! Calls are numbered instead of named, images and signatures are told by a
//! fingerprint, times and usage are left out, and so are the date and the
//! operating system in the system prompt. A message is taken over once in its
//! life.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::fingerprint::Fnv1a;
use crate::message::{AssistantMessage, Content, Message, Messages, StopReason, ToolResult};
use crate::model::assemble::is_fresh_id;
use crate::model::{Request, ResponseFormat, ThinkingLevel};

use super::scrub::Scrub;

/// Lines of the system prompt that differ from day to day and between machines.
const PASSING_LINES: [&str; 2] = ["- Date: ", "- Operating system: "];

/// Everything of a request but its messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// `provider/id`.
    pub(super) model: String,
    pub(super) system: String,
    pub(super) thinking: ThinkingLevel,
    pub(super) max_output_tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) temperature: Option<f64>,
    /// What the provider is asked to make of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response_format: Option<Value>,
    pub(super) tools: Vec<Offer>,
    /// The body that a hook put in place of the request's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<Value>,
}

/// A tool as it was offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Offer {
    pub(super) name: String,
    pub(super) description: String,
    pub(super) parameters: Value,
}

/// A request, whole.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said {
    pub(super) head: Head,
    pub(super) messages: Vec<Arc<Value>>,
    /// 16 hexadecimal digits over all of it.
    pub(super) fingerprint: String,
}

/// The conversation so far, as it was taken over.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    known: Vec<Arc<Message>>,
    said: Vec<Arc<Value>>,
    hash: Fnv1a,
    calls: Calls,
}

impl Ledger {
    /// What `request` says. `payload` is the body that a hook put in its place.
    pub(super) fn say(
        &mut self,
        model: String,
        request: &Request,
        payload: Option<&Value>,
        scrub: &Scrub,
    ) -> Said {
        self.extend(&request.messages, scrub);
        let head = head(model, request, payload, scrub);
        let mut hash = self.hash;
        add(&mut hash, &serde_json::to_string(&head).unwrap_or_default());
        Said {
            head,
            messages: self.said.clone(),
            fingerprint: hash.to_string(),
        }
    }

    /// Takes over what is new; a conversation that is another begins anew.
    fn extend(&mut self, messages: &Messages, scrub: &Scrub) {
        let goes_on = self.known.len() <= messages.len()
            && self
                .known
                .iter()
                .zip(messages.iter())
                .all(|(known, message)| Arc::ptr_eq(known, message));
        if !goes_on {
            *self = Self::default();
        }
        for message in messages.iter().skip(self.known.len()) {
            if let Some(value) = self.calls.message(message) {
                let value = scrub.value(value);
                add(&mut self.hash, &value.to_string());
                self.said.push(Arc::new(value));
            }
            self.known.push(Arc::clone(message));
        }
    }
}

fn head(model: String, request: &Request, payload: Option<&Value>, scrub: &Scrub) -> Head {
    let tools = request.tools.iter().map(|tool| Offer {
        name: tool.name.clone(),
        description: scrub.text(&tool.description).into_owned(),
        parameters: scrub.value(tool.parameters.clone()),
    });
    Head {
        model,
        system: scrub.text(&lasting(&request.system)).into_owned(),
        thinking: request.thinking,
        max_output_tokens: request.max_output_tokens,
        temperature: request.temperature,
        response_format: request.response_format.as_ref().map(|format| match format {
            ResponseFormat::JsonObject => json!("json_object"),
            ResponseFormat::JsonSchema { schema, strict } => json!({
                "schema": scrub.value(schema.as_ref().clone()),
                "strict": strict,
            }),
        }),
        tools: tools.collect(),
        payload: payload.map(|payload| scrub.value(payload.clone())),
    }
}

/// The system prompt without its lines of the day.
fn lasting(system: &str) -> String {
    let line = |line: &str| {
        let passing = PASSING_LINES.iter().find(|start| line.starts_with(**start));
        passing.map_or_else(|| line.to_owned(), |start| format!("{start}…"))
    };
    let lines: Vec<String> = system.split('\n').map(line).collect();
    lines.join("\n")
}

/// The calls of a conversation, numbered as they come: their ids are the
/// provider's, or random, and may be there twice.
#[derive(Debug, Default)]
struct Calls {
    count: u32,
    numbers: HashMap<String, String>,
}

impl Calls {
    /// Nothing for a reply that is never sent again.
    fn message(&mut self, message: &Message) -> Option<Value> {
        match message {
            Message::User(user) => Some(json!({"role": "user", "content": said(&user.content)})),
            Message::Assistant(reply)
                if matches!(reply.stop_reason, StopReason::Error | StopReason::Aborted) =>
            {
                None
            }
            Message::Assistant(reply) => Some(self.reply(reply)),
            Message::ToolResult(result) => Some(self.result(result)),
        }
    }

    fn reply(&mut self, reply: &AssistantMessage) -> Value {
        let mut content = Vec::new();
        for block in &reply.content {
            let Content::ToolCall(call) = block else {
                content.extend(block_said(block));
                continue;
            };
            self.count += 1;
            let number = format!("call {}", self.count);
            let mut fields = Map::from_iter([
                ("call".to_owned(), json!(number)),
                ("name".to_owned(), json!(call.name)),
                ("arguments".to_owned(), call.arguments.clone()),
            ]);
            if let Some(raw) = &call.invalid_arguments {
                fields.insert("invalid_arguments".to_owned(), json!(raw));
            }
            sign(&mut fields, call.thought_signature.as_deref());
            content.push(Value::Object(fields));
            self.numbers.insert(call.id.clone(), number);
        }
        json!({"role": "assistant", "content": content})
    }

    fn result(&self, result: &ToolResult) -> Value {
        let id = &result.tool_call_id;
        let number = self.numbers.get(id).map_or(id.as_str(), String::as_str);
        let mut content = said(&result.content);
        if is_fresh_id(id) {
            // The name of the file with the whole output has it.
            rename(&mut content, id, number);
        }
        let mut fields = Map::from_iter([
            ("role".to_owned(), json!("tool")),
            ("call".to_owned(), json!(number)),
            ("name".to_owned(), json!(result.tool_name)),
        ]);
        if result.is_error {
            fields.insert("error".to_owned(), json!(true));
        }
        fields.insert("content".to_owned(), Value::Array(content));
        Value::Object(fields)
    }
}

fn rename(content: &mut [Value], id: &str, number: &str) {
    for block in content {
        if let Some(Value::String(text)) = block.get_mut("text") {
            *text = text.replace(id, number);
        }
    }
}

fn said(content: &[Content]) -> Vec<Value> {
    content.iter().filter_map(block_said).collect()
}

fn block_said(block: &Content) -> Option<Value> {
    match block {
        Content::Text(text) => {
            let mut fields = Map::from_iter([("text".to_owned(), json!(text.text))]);
            sign(&mut fields, text.text_signature.as_deref());
            Some(Value::Object(fields))
        }
        Content::Thinking(thinking) => {
            let mut fields = Map::from_iter([("thinking".to_owned(), json!(thinking.thinking))]);
            sign(&mut fields, thinking.thinking_signature.as_deref());
            Some(Value::Object(fields))
        }
        Content::Image(image) => Some(json!({
            "image": image.mime_type,
            "fingerprint": fingerprint(&image.data),
        })),
        Content::ToolCall(_) => None,
    }
}

/// That there is a signature. What it is came from the recording itself, and a
/// secret may have been taken out of it.
fn sign(fields: &mut Map<String, Value>, signature: Option<&str>) {
    if signature.is_some_and(|signature| !signature.is_empty()) {
        fields.insert("signed".to_owned(), json!(true));
    }
}

/// Adds a text, and the zero that ends it: two texts are not one longer one.
fn add(hash: &mut Fnv1a, text: &str) {
    hash.add(text.as_bytes());
    hash.add(&[0]);
}

fn fingerprint(text: &str) -> String {
    let mut hash = Fnv1a::default();
    add(&mut hash, text);
    hash.to_string()
}
