//! Conversations written in a line: a session tree of messages of known sizes.
//!
//! Each word is an entry, a letter and the tokens its text is estimated at:
//! `u8` the user, `a8` a reply, `r8` a result, `b8` a branch summary, `m8` a
//! message of an extension. `c8:read=x` is a reply that calls `read` with the
//! path x, `c8:read=x,edit=y` one with two calls; `a8@500` a reply after which
//! a provider counted 500 tokens, `f8@500` one that failed. `x` is a change of
//! the model. `S3` is a compaction that keeps what follows from the entry 3.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use agent::message::{
    AssistantMessage, Content, Message, StopReason, ToolCall, ToolResult, Usage, UserMessage,
};
use agent::store::{Entry, EntryId, EntryKind, Header, SessionTree};
use serde_json::json;

/// The session that `words` describe. Entry n, from 0, has the id `0000000n`.
pub(crate) fn conversation(words: &str) -> SessionTree {
    let mut tree = SessionTree::new(Header::new("/srv/project"));
    let mut open: Vec<ToolCall> = Vec::new();
    for (at, word) in words.split_whitespace().enumerate() {
        let kind = kind_of(word, at, &mut open);
        let entry = Entry {
            id: id(at),
            parent_id: at.checked_sub(1).map(id),
            timestamp: "2026-01-01T00:00:00.000Z".to_owned(),
            kind,
        };
        tree.push(entry).unwrap();
    }
    tree
}

/// The id of entry `at`.
pub(crate) fn id(at: usize) -> EntryId {
    EntryId::from(format!("{at:08}").as_str())
}

/// A text that is estimated at `tokens`, and says where it stands.
pub(crate) fn text(at: usize, tokens: usize) -> String {
    let mut text = format!("{at} ");
    text.truncate(tokens * 4);
    format!("{text}{}", ".".repeat(tokens * 4 - text.len()))
}

fn kind_of(word: &str, at: usize, open: &mut Vec<ToolCall>) -> EntryKind {
    let (letter, rest) = word.split_at(1);
    let (rest, calls) = rest.split_once(':').unwrap_or((rest, ""));
    let (rest, counted) = rest.split_once('@').unwrap_or((rest, "0"));
    let number: usize = rest.parse().unwrap_or_default();
    let content = || vec![Content::text(text(at, number))];
    let reply = |content, stop_reason| {
        Message::Assistant(AssistantMessage {
            content,
            api: "openai-chat".to_owned(),
            provider: "scripted".to_owned(),
            model: "words".to_owned(),
            usage: Usage {
                input: counted.parse().unwrap(),
                ..Usage::default()
            },
            stop_reason,
            error_message: None,
            timestamp: 0,
        })
    };
    let message = match letter {
        "u" => Message::User(UserMessage {
            content: content(),
            timestamp: 0,
        }),
        "a" => reply(content(), StopReason::Stop),
        "f" => reply(content(), StopReason::Error),
        "c" => {
            *open = calls_of(calls, at);
            let calls = open.iter().cloned().map(Content::ToolCall);
            let content = content().into_iter().chain(calls).collect();
            reply(content, StopReason::ToolUse)
        }
        "r" => {
            let call = open.remove(0);
            Message::ToolResult(ToolResult {
                tool_call_id: call.id,
                tool_name: call.name,
                content: content(),
                details: None,
                is_error: false,
                timestamp: 0,
            })
        }
        _ => return other_kind(letter, number, at),
    };
    EntryKind::Message(Arc::new(message))
}

fn calls_of(calls: &str, at: usize) -> Vec<ToolCall> {
    let calls = calls.split(',').enumerate();
    calls
        .map(|(number, call)| {
            let (name, path) = call.split_once('=').unwrap();
            ToolCall {
                id: format!("call-{at}-{number}"),
                name: name.to_owned(),
                arguments: json!({"path": path}),
                invalid_arguments: None,
                thought_signature: None,
            }
        })
        .collect()
}

fn other_kind(letter: &str, number: usize, at: usize) -> EntryKind {
    match letter {
        "b" => EntryKind::BranchSummary {
            from_id: id(0),
            summary: text(at, number),
            details: None,
        },
        "m" => EntryKind::CustomMessage {
            custom_type: "test".to_owned(),
            content: vec![Content::text(text(at, number))],
            display: true,
            details: None,
        },
        "S" => EntryKind::Compaction {
            summary: format!("Summary {at}.\n\n<read-files>\nold\n</read-files>"),
            first_kept_entry_id: id(number),
            tokens_before: 9,
            details: Some(json!({"readFiles": ["old"], "modifiedFiles": []})),
            from_hook: None,
        },
        _ => EntryKind::ModelChange {
            provider: "scripted".to_owned(),
            model_id: "words".to_owned(),
        },
    }
}
