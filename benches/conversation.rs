//! Conversations of any length.

use std::sync::Arc;

use agent::message::{
    AssistantMessage, Content, Message, StopReason, ToolCall, ToolResult, Usage, UserMessage,
};
use agent::model::{Model, Request, ThinkingLevel, ToolDefinition, resolve};
use serde_json::json;

/// A model of the catalog, or an endpoint of one's own that is never called.
pub(crate) fn model(name: &str) -> Model {
    resolve(
        name,
        name.starts_with("openai-chat/")
            .then_some("http://127.0.0.1:1/v1"),
    )
    .unwrap()
}

/// What the user asks, then steps of two messages each: a call of a tool and its
/// result of about 600 bytes.
pub(crate) fn steps(model: &Model, entries: usize) -> Vec<Arc<Message>> {
    (0..entries)
        .map(|at| {
            Arc::new(match at {
                0 => Message::User(UserMessage::text("make it work", 0)),
                at if at % 2 == 1 => Message::Assistant(reply(model, at)),
                at => Message::ToolResult(result(at - 1)),
            })
        })
        .collect()
}

fn reply(model: &Model, at: usize) -> AssistantMessage {
    AssistantMessage {
        content: vec![
            Content::text("Next I look at the file that the test names."),
            Content::ToolCall(ToolCall {
                id: format!("call_{at}"),
                name: "read".to_owned(),
                arguments: json!({"path": format!("src/part_{at}.rs"), "offset": at}),
                invalid_arguments: None,
                thought_signature: None,
            }),
        ],
        api: model.api.name().to_owned(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        // Small, so that no window is ever full.
        usage: Usage {
            input: 100,
            output: 10,
            ..Usage::default()
        },
        stop_reason: StopReason::ToolUse,
        error_message: None,
        timestamp: 0,
    }
}

fn result(call: usize) -> ToolResult {
    ToolResult {
        tool_call_id: format!("call_{call}"),
        tool_name: "read".to_owned(),
        content: vec![Content::text(
            "    let value = \"quoted\";\n    assert_eq!(value, 1);\n".repeat(12),
        )],
        details: None,
        is_error: false,
        timestamp: 0,
    }
}

/// A request with a system prompt and tools of the usual size.
pub(crate) fn request(messages: Vec<Arc<Message>>) -> Request {
    let tool = |name: &str| ToolDefinition {
        name: name.to_owned(),
        description: "What the tool does, and when to use it. ".repeat(12),
        parameters: json!({"type": "object", "properties": {
            "path": {"type": "string", "description": "The file, relative to the workspace."},
            "offset": {"type": "integer", "description": "The first line, from 1."},
        }}),
    };
    Request {
        system: "You work on a repository, with care. ".repeat(100),
        messages: messages.into(),
        tools: ["bash", "edit", "find", "grep", "ls", "read", "write"]
            .map(tool)
            .into(),
        thinking: ThinkingLevel::Off,
        max_output_tokens: 8_000,
        temperature: None,
        response_format: None,
        session_id: "session-1".to_owned(),
    }
}
