//! Models, requests and messages for tests.

use std::sync::Arc;

use agent::message::{
    AssistantMessage, Content, Message, StopReason, Thinking, ToolCall, ToolResult, Usage,
    UserMessage,
};
use agent::model::{Model, Price, Request, ThinkingLevel, ToolDefinition, resolve};
use serde_json::{Value, json};

/// A model of the catalog.
pub(crate) fn model(name: &str) -> Model {
    resolve(name, None).expect("the catalog has it")
}

/// A scripted model of this name, priced at zero.
pub(crate) fn scripted(name: &str) -> Model {
    resolve(&format!("scripted/{name}"), None).expect("it names a script")
}

/// The same at so many dollars a million tokens, in and out.
pub(crate) fn priced(name: &str, dollars: f64) -> Model {
    let mut model = scripted(name);
    model.price = Some(Price {
        input: dollars,
        output: dollars,
        ..Price::default()
    });
    model
}

/// A request with two tools, out of order.
pub(crate) fn request(messages: Vec<Message>) -> Request {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: format!("Does {name}."),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    Request {
        system: "You are terse.".to_owned(),
        messages: Arc::new(messages.into_iter().map(Arc::new).collect()),
        tools: Arc::new([tool("read"), tool("bash")]),
        thinking: ThinkingLevel::Off,
        max_output_tokens: 8000,
        temperature: None,
        response_format: None,
        session_id: "session-1".to_owned(),
    }
}

/// What the user says.
pub(crate) fn user(text: &str) -> Message {
    Message::User(UserMessage::text(text, 0))
}

/// A reply of `model`.
pub(crate) fn reply(model: &Model, content: Vec<Content>) -> Message {
    Message::Assistant(AssistantMessage {
        content,
        api: model.api.name().to_owned(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 0,
    })
}

/// A call.
pub(crate) fn call(id: &str, name: &str, arguments: Value) -> Content {
    Content::ToolCall(ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments,
        invalid_arguments: None,
        thought_signature: None,
    })
}

/// Thinking, signed or not.
pub(crate) fn thinking(text: &str, signature: Option<&str>, redacted: bool) -> Content {
    Content::Thinking(Thinking {
        thinking: text.to_owned(),
        thinking_signature: signature.map(str::to_owned),
        redacted,
    })
}

/// The result of a call.
pub(crate) fn result(id: &str, text: &str) -> Message {
    Message::ToolResult(ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content: vec![Content::text(text)],
        details: None,
        is_error: false,
        timestamp: 0,
    })
}
