//! What the tests of compaction in a session share: a model with a small
//! window, long files to read, and the conversation as text.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::sync::Arc;

use agent::message::{Content, Message};
use agent::session::{Compacted, Compaction, SessionError};
use agent::tool::Toolset;
use serde_json::{Value, json};

use crate::support::session::{Play, Stage};

/// What the compactions of these tests are asked to be like: in a window of
/// 20,000 tokens, a conversation of over 16,000 is too long.
pub(crate) fn stage(replies: Value) -> Stage {
    let mut stage = Stage::new(replies);
    stage.tools = Toolset::built_in(&["read".to_owned()]);
    stage.model.context_window = 20_000;
    stage.compaction = Compaction {
        reserve_tokens: 4_000,
        keep_recent_tokens: 500,
        ..Compaction::default()
    };
    stage
}

/// Opens it, with the files `a` and `b`, each of about 2,000 tokens.
pub(crate) async fn open(stage: Stage) -> Play {
    let play = stage.open().await;
    for name in ["a", "b"] {
        let line = format!("{name} {}\n", "o".repeat(37));
        std::fs::write(play.workspace().join(name), line.repeat(200)).unwrap();
    }
    play
}

/// Compacts by hand and keeps all events.
pub(crate) async fn compact(
    play: &mut Play,
    instructions: Option<&str>,
) -> Result<Compacted, SessionError> {
    let outcome = play.session.compact(instructions).await;
    play.drain();
    outcome
}

/// A prompt that is estimated at about 2,000 tokens.
pub(crate) fn long(text: &str) -> String {
    format!("{text} {}", "p".repeat(8_000))
}

/// A reply that reads `path`, after which the context has `tokens`.
pub(crate) fn read(path: &str, tokens: u64) -> Value {
    json!({
        "calls": [{"name": "read", "arguments": {"path": path}}],
        "usage": {"input": tokens},
    })
}

/// A reply that says `text`, after which the context has `tokens`.
pub(crate) fn said(text: &str, tokens: u64) -> Value {
    json!({"text": text, "usage": {"input": tokens}})
}

/// The provider's refusal of a conversation that is too long.
pub(crate) fn overflow() -> Value {
    json!({"error": {
        "status": 400,
        "code": "invalid_request_error",
        "message": "prompt is too long: 20777 tokens > 20000 maximum",
    }})
}

/// A conversation, a line for each block of it, long lines cut.
pub(crate) fn layout(messages: &[Arc<Message>]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        let (speaker, content) = match message.as_ref() {
            Message::User(message) => ("user", &message.content),
            Message::Assistant(reply) => ("assistant", &reply.content),
            Message::ToolResult(result) => ("result", &result.content),
        };
        for block in content {
            lines.push(match block {
                Content::Text(block) if speaker == "result" => {
                    let first = block.text.lines().next().unwrap_or_default();
                    format!("result: {first} ({} characters)", block.text.len())
                }
                Content::Text(block) => format!("{speaker}: {}", short(&block.text)),
                Content::ToolCall(call) => {
                    format!("{speaker} calls {} {}", call.name, call.arguments)
                }
                Content::Thinking(_) | Content::Image(_) => format!("{speaker}: (other)"),
            });
        }
    }
    lines.join("\n")
}

fn short(text: &str) -> String {
    let lines = text.lines().map(|line| match line.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n  ")
}
