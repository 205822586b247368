//! What a session left: its events under the laws of a log, and its history.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::sync::Arc;

use agent::event::Emission;
use agent::message::Message;
use serde_json::{Value, json};

use super::log;

/// What a session left.
pub(crate) struct Told {
    /// Its events as a log has them.
    pub(crate) events: Vec<Value>,
    /// Its history.
    pub(crate) messages: Vec<Arc<Message>>,
}

impl Told {
    /// The names of the events.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.events
            .iter()
            .map(|event| event["event"].as_str().unwrap())
            .collect()
    }

    /// The payloads of the events with this name.
    pub(crate) fn data(&self, name: &str) -> Vec<&Value> {
        self.events
            .iter()
            .filter(|event| event["event"] == name)
            .map(|event| &event["data"])
            .collect()
    }

    /// One field of the events with this name.
    pub(crate) fn field(&self, name: &str, field: &str) -> Vec<Value> {
        let data = self.data(name);
        data.iter().map(|data| data[field].clone()).collect()
    }

    /// The texts of all results, in the order of the history.
    pub(crate) fn results(&self) -> Vec<String> {
        let result = |message: &Arc<Message>| match message.as_ref() {
            Message::ToolResult(result) => Some(result.text()),
            Message::User(_) | Message::Assistant(_) => None,
        };
        self.messages.iter().filter_map(result).collect()
    }

    /// Who spoke, one letter a message: user, assistant, tool result.
    pub(crate) fn speakers(&self) -> String {
        let letter = |message: &Arc<Message>| match message.as_ref() {
            Message::User(_) => 'u',
            Message::Assistant(_) => 'a',
            Message::ToolResult(_) => 'r',
        };
        self.messages.iter().map(letter).collect()
    }
}

/// The events as lines of a log, which must obey the laws.
pub(super) fn lawful(kept: &[Emission]) -> Vec<Value> {
    let end = json!({"outcome": "success", "reason": "success", "exitCode": 0});
    let mut closing = end.clone();
    closing["result"] = end;
    let mut lines = vec![json!({"event": "run:start", "data": {}})];
    for emission in kept {
        let mut line = serde_json::to_value(&emission.place).unwrap();
        let kind = serde_json::to_value(&emission.kind).unwrap();
        line["event"] = kind["event"].clone();
        line["data"] = kind["data"].clone();
        lines.push(line);
    }
    lines.push(json!({"event": "run:end", "data": closing}));
    let mut text = String::new();
    for (mut line, seq) in lines.into_iter().zip(1u64..) {
        line["v"] = 1.into();
        line["seq"] = seq.into();
        line["ts"] = "2026-01-01T00:00:00.000Z".into();
        line["runId"] = "run".into();
        text.push_str(&format!("{line}\n"));
    }
    let mut events = log::lawful(&text);
    events.pop();
    events.remove(0);
    events
}

/// Every call has exactly one result, right behind its reply and in call order.
pub(super) fn assert_valid(messages: &[Arc<Message>]) {
    let mut open: std::collections::VecDeque<&str> = Default::default();
    for (at, message) in messages.iter().enumerate() {
        match message.as_ref() {
            Message::ToolResult(result) => {
                let expected = open.pop_front();
                assert_eq!(expected, Some(result.tool_call_id.as_str()), "message {at}");
            }
            Message::User(_) => assert!(open.is_empty(), "message {at} comes before {open:?}"),
            Message::Assistant(reply) => {
                assert!(open.is_empty(), "message {at} comes before {open:?}");
                open = reply.tool_calls().map(|call| call.id.as_str()).collect();
                let ids: HashSet<&str> = open.iter().copied().collect();
                assert_eq!(ids.len(), open.len(), "message {at} repeats an id");
            }
        }
    }
    assert!(open.is_empty(), "open calls at the end: {open:?}");
}
