//! The messages that a hook puts in place of others: only what a model takes.

use std::sync::Arc;

use agent::hook::{Context, ContextVerdict, Hooks};
use agent::message::{
    AssistantMessage, Content, Message, StopReason, ToolCall, ToolResult, Usage, UserMessage,
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::hooks::{Heard, Probe};

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::text(text, 0)))
}

fn reply(calls: &[&str]) -> Arc<Message> {
    let calls = calls.iter().map(|id| {
        Content::ToolCall(ToolCall {
            id: (*id).to_owned(),
            name: "ls".to_owned(),
            arguments: json!({}),
            invalid_arguments: None,
            thought_signature: None,
        })
    });
    Arc::new(Message::Assistant(AssistantMessage {
        content: calls.collect(),
        api: "a".to_owned(),
        provider: "p".to_owned(),
        model: "m".to_owned(),
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 0,
    }))
}

fn result(id: &str) -> Arc<Message> {
    Arc::new(Message::ToolResult(ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: "ls".to_owned(),
        content: Vec::new(),
        details: None,
        is_error: false,
        timestamp: 0,
    }))
}

#[tokio::test]
async fn messages_that_no_model_takes_are_not_sent() {
    let cases: [(Vec<Arc<Message>>, Option<&str>); 8] = [
        (vec![user("other")], None),
        (
            vec![user("x"), reply(&["1", "2"]), result("2"), result("1")],
            None,
        ),
        (vec![user("x"), reply(&[]), user("y")], None),
        (vec![], Some("there are no messages")),
        (
            vec![user("x"), reply(&[])],
            Some("the messages end with a reply"),
        ),
        (
            vec![result("1")],
            Some("the result of `1` has no call before it"),
        ),
        (
            vec![user("x"), reply(&["1"]), user("y"), result("1")],
            Some("the call `1` has no result"),
        ),
        (
            vec![user("x"), reply(&["1", "2"]), result("1")],
            Some("the call `2` has no result"),
        ),
    ];
    for (messages, fault) in cases {
        let heard = Heard::default();
        let mut probe = Probe::new("a", &heard);
        let said = messages.clone();
        probe.context = Box::new(move |_| ContextVerdict::Replace(said.clone()));
        let before = vec![user("before")];
        let context = Context {
            session_id: "s".to_owned(),
            turn: 1,
            step: 1,
            messages: before.clone(),
        };
        let ran = Hooks::new()
            .with_hook(Arc::new(probe))
            .context(context, &CancellationToken::new())
            .await;
        let faults: Vec<_> = ran.failures.iter().map(|f| f.error.to_string()).collect();
        match fault {
            None => assert_eq!((ran.verdict, faults), (messages, vec![])),
            Some(fault) => assert_eq!((ran.verdict, faults), (before, vec![fault.to_owned()])),
        }
    }
}
