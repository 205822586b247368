//! What the deciding hooks may answer.

use std::sync::Arc;

use serde_json::Value;

use crate::message::{Content, Message};

use super::Fault;
use super::payload::Injected;

/// What becomes of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputVerdict {
    /// It goes on.
    Continue,
    /// It goes on with another text.
    Transform(String),
    /// The hook has dealt with it: no turn runs, and this is the answer.
    Handled(String),
    /// It is refused, for this reason.
    Block(String),
}

/// What a hook adds to a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AgentStart {
    /// Messages behind the prompt.
    pub messages: Vec<Injected>,
    /// Another system prompt for this run.
    pub system_prompt: Option<String>,
}

/// What becomes of the messages of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum ContextVerdict {
    /// They are sent.
    Continue,
    /// These are sent.
    Replace(Vec<Arc<Message>>),
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolVerdict {
    /// It goes on to policy.
    Continue,
    /// It goes on to policy with other arguments.
    Replace(Value),
    /// It does not run; the model is told the reason.
    Block(String),
}

/// What becomes of the result of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ResultVerdict {
    /// The model is told it.
    Continue,
    /// The model is told this.
    Replace(Vec<Content>),
}

/// What becomes of a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompactVerdict {
    /// It goes on.
    Continue,
    /// It goes on with this summary; no model is asked for one.
    Summary(String),
    /// It does not happen, for this reason.
    Cancel(String),
}

/// What becomes of a fork, a move in the tree or a switch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CancelVerdict {
    /// It goes on.
    Continue,
    /// It does not happen, for this reason.
    Cancel(String),
}

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestVerdict {
    /// It is sent.
    Continue,
    /// This is sent.
    Replace(Value),
}

/// Whether a model takes these messages: some, not ending with a reply, and
/// calls and results in pairs.
pub(super) fn sendable(messages: &[Arc<Message>]) -> Result<(), Fault> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        match &**message {
            Message::ToolResult(result) => {
                let at = open.iter().position(|id| *id == result.tool_call_id);
                let Some(at) = at else {
                    return Err(Fault::Failed(format!(
                        "the result of `{}` has no call before it",
                        result.tool_call_id
                    )));
                };
                open.remove(at);
            }
            _ if !open.is_empty() => break,
            Message::Assistant(reply) => {
                open.extend(reply.tool_calls().map(|call| call.id.as_str()));
            }
            Message::User(_) => {}
        }
    }
    if let Some(id) = open.first() {
        return Err(Fault::Failed(format!("the call `{id}` has no result")));
    }
    match messages.last().map(|message| &**message) {
        None => Err(Fault::failed("there are no messages")),
        Some(Message::Assistant(_)) => Err(Fault::failed("the messages end with a reply")),
        Some(Message::User(_) | Message::ToolResult(_)) => Ok(()),
    }
}
