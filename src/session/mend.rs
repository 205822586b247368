//! Calls that a prompt left without a result.

use std::collections::HashSet;
use std::sync::Arc;

use crate::clock;
use crate::context::notes;
use crate::message::{Content, Message, ToolCall, ToolResult};
use crate::store::StoreError;

use super::record::Record;

/// Gives every open call of the newest reply its result: that it was
/// interrupted. They stay open when a running prompt was
/// torn down, with its process for example.
pub(super) fn answer_open_calls(record: &Record) -> Result<(), StoreError> {
    for call in record.read(|store| open_calls(store.tree().messages())) {
        let result = ToolResult {
            tool_call_id: call.id,
            tool_name: call.name,
            content: vec![Content::text(notes::interrupted_call())],
            details: None,
            is_error: true,
            timestamp: clock::unix_ms(),
        };
        record.append_message(Message::ToolResult(result))?;
    }
    Ok(())
}

fn open_calls(messages: &[Arc<Message>]) -> Vec<ToolCall> {
    let mut answered = HashSet::new();
    for message in messages.iter().rev() {
        match message.as_ref() {
            Message::ToolResult(result) => {
                answered.insert(result.tool_call_id.as_str());
            }
            Message::Assistant(reply) => {
                return reply
                    .tool_calls()
                    .filter(|call| !answered.contains(call.id.as_str()))
                    .cloned()
                    .collect();
            }
            Message::User(_) => break,
        }
    }
    Vec::new()
}
