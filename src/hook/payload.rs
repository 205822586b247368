//! What hooks are told: one snapshot for each point at which they are called.
//!
//! The fields of the four observers, their names and their order are part of
//! the public interface: commands read them as JSON.

use std::sync::Arc;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::event::{CompactReason, TurnStatus};
use crate::message::{Content, Message, Usage};

use super::HookPoint;

/// What is told at one point.
pub trait Payload: Serialize + Send + Sync {
    /// The point.
    const POINT: HookPoint;

    /// The tool that it is about.
    fn tool(&self) -> Option<&str> {
        None
    }
}

/// The conversation as it is sent to the model. Cheap to clone: clones share
/// the messages.
#[derive(Debug, Clone, Default)]
pub struct History(Arc<Vec<HistoryMessage>>);

/// One message of a [`History`].
#[derive(Debug, Clone)]
pub struct HistoryMessage(Arc<Message>);

impl History {
    /// Follows a conversation to where it is now. What is already here is kept,
    /// and only what is new is added, unless somebody still holds a clone.
    pub fn follow(&mut self, messages: &[Arc<Message>]) {
        let known = self.0.len();
        let grew = known <= messages.len()
            && self
                .0
                .iter()
                .zip(messages)
                .all(|(known, message)| Arc::ptr_eq(&known.0, message));
        if !grew {
            self.0 = messages
                .iter()
                .cloned()
                .map(HistoryMessage)
                .collect::<Vec<_>>()
                .into();
            return;
        }
        let new = messages.get(known..).unwrap_or_default();
        if !new.is_empty() {
            Arc::make_mut(&mut self.0).extend(new.iter().cloned().map(HistoryMessage));
        }
    }

    /// The messages, oldest first.
    pub fn messages(&self) -> &[HistoryMessage] {
        &self.0
    }
}

impl FromIterator<Arc<Message>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self(Arc::new(messages.into_iter().map(HistoryMessage).collect()))
    }
}

impl HistoryMessage {
    /// `user`, `assistant` or `toolResult`.
    pub fn role(&self) -> &'static str {
        match &*self.0 {
            Message::User(_) => "user",
            Message::Assistant(_) => "assistant",
            Message::ToolResult(_) => "toolResult",
        }
    }

    /// Text, images, thinking and calls, in order.
    pub fn content(&self) -> &[Content] {
        match &*self.0 {
            Message::User(message) => &message.content,
            Message::Assistant(message) => &message.content,
            Message::ToolResult(message) => &message.content,
        }
    }
}

impl Serialize for History {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter())
    }
}

impl Serialize for HistoryMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", self.role())?;
        map.serialize_entry("content", self.content())?;
        map.end()
    }
}

/// `on_turn_start`: the input is accepted and `turn:start` recorded.
#[derive(Debug, Clone, Serialize)]
pub struct OnTurnStart {
    /// The session.
    pub session_id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The input.
    pub input: String,
    /// The conversation, the input included.
    pub history: History,
}

/// `on_action`: a call is parsed and has not run. The hooks that may change it
/// have been asked.
#[derive(Debug, Clone, Serialize)]
pub struct OnAction {
    /// The session.
    pub session_id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The call.
    pub action: Action,
    /// The conversation, the reply that makes the call included.
    pub history: History,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Action {
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub input: Value,
}

/// `on_observation`: the result of a call is in the history.
#[derive(Debug, Clone, Serialize)]
pub struct OnObservation {
    /// The session.
    pub session_id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The tool's name.
    pub tool: String,
    /// The text of the result, as the model gets it.
    pub observation: String,
    /// The conversation, the result included.
    pub history: History,
}

/// `on_final`: the final text is decided, on whatever path; once a turn.
#[derive(Debug, Clone, Serialize)]
pub struct OnFinal {
    /// The session.
    pub session_id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The last step that gave a reply, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// The model's last text; an answer only when `status` says so.
    pub final_text: String,
    /// How the turn ended.
    pub status: TurnStatus,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// The usage of the last reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_usage: Option<Usage>,
    /// The usage of the whole turn.
    pub turn_usage: Usage,
    /// What the turn did, step by step.
    pub steps: Vec<StepTrace>,
}

/// One step of a turn that ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepTrace {
    /// The step, from 1.
    pub step: u32,
    /// The text of the reply.
    pub text: String,
    /// Its calls with their results.
    pub actions: Vec<TracedAction>,
    /// The usage of the reply.
    pub token_usage: Usage,
}

/// A call with its result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TracedAction {
    /// The tool's name.
    pub tool: String,
    /// The arguments as the model gave them.
    pub input: Value,
    /// The text of the result; none when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<String>,
}

/// `input`: a prompt came in, before anything of it is expanded.
#[derive(Debug, Clone, Serialize)]
pub struct Input {
    /// The session.
    pub session_id: String,
    /// The text.
    pub text: String,
}

/// `before_agent_start`: a prompt is about to run.
#[derive(Debug, Clone, Serialize)]
pub struct BeforeAgentStart {
    /// The session.
    pub session_id: String,
    /// The prompt, expanded.
    pub prompt: String,
    /// The system prompt of this run.
    pub system_prompt: String,
    /// What earlier hooks add behind the prompt.
    pub messages: Vec<Injected>,
}

/// A message that a hook adds to the conversation; the model sees it as the
/// user's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Injected {
    /// Whose message it is, for viewers.
    pub custom_type: String,
    /// Text and images.
    pub content: Vec<Content>,
    /// Whether viewers show it.
    pub display: bool,
}

/// `context`: the messages of a request, before every model call. What a hook
/// makes of them is sent once and not kept.
#[derive(Debug, Clone, Serialize)]
pub struct Context {
    /// The session.
    pub session_id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The messages, oldest first.
    #[serde(serialize_with = "messages")]
    pub messages: Vec<Arc<Message>>,
}

/// `before_tool`: a call that fits its tool, before policy decides about it.
#[derive(Debug, Clone, Serialize)]
pub struct BeforeTool {
    /// The session.
    pub session_id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The call.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments.
    pub input: Value,
}

/// `after_tool`: a call ended, before its result enters the history.
#[derive(Debug, Clone, Serialize)]
pub struct AfterTool {
    /// The session.
    pub session_id: String,
    /// The turn, from 1.
    pub turn: u32,
    /// The step of the turn, from 1.
    pub step: u32,
    /// The call.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments it ran with.
    pub input: Value,
    /// What the model will be told.
    pub content: Vec<Content>,
    /// Whether it failed.
    pub is_error: bool,
}

/// `before_compact`: a compaction is about to happen.
#[derive(Debug, Clone, Serialize)]
pub struct BeforeCompact {
    /// The session.
    pub session_id: String,
    /// Why.
    pub reason: CompactReason,
    /// The tokens of the context.
    pub tokens_before: u64,
    /// What the summary shall stress, when somebody asked for it by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The summary that an earlier hook supplied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// What will be summarised.
    pub history: History,
}

/// `before_fork`: a session is about to be forked.
#[derive(Debug, Clone, Serialize)]
pub struct BeforeFork {
    /// The session.
    pub session_id: String,
    /// The entry that the fork will end with; none forks before the first.
    pub entry_id: Option<String>,
}

/// `before_tree`: the leaf is about to move within the session.
#[derive(Debug, Clone, Serialize)]
pub struct BeforeTree {
    /// The session.
    pub session_id: String,
    /// Where the leaf is.
    pub old_leaf_id: Option<String>,
    /// The entry that was chosen.
    pub target_id: String,
}

/// `before_switch`: the session is about to go on from what another one held.
#[derive(Debug, Clone, Serialize)]
pub struct BeforeSwitch {
    /// The session.
    pub session_id: String,
    /// The entry that it will go on from.
    pub target_id: Option<String>,
}

/// `before_request`: a request is about to be sent, in the provider's own
/// dialect.
#[derive(Debug, Clone, Serialize)]
pub struct BeforeRequest {
    /// The session.
    pub session_id: String,
    /// `provider/id`.
    pub model: String,
    /// The body.
    pub payload: Value,
}

fn messages<S: Serializer>(messages: &[Arc<Message>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(messages.iter().map(|message| &**message))
}

macro_rules! points {
    ($($payload:ident $(about $tool:expr)?;)*) => {$(
        impl Payload for $payload {
            const POINT: HookPoint = HookPoint::$payload;
            $(fn tool(&self) -> Option<&str> {
                let tool: fn(&Self) -> &str = $tool;
                Some(tool(self))
            })?
        }
    )*};
}

points! {
    OnTurnStart;
    OnAction about |call| &call.action.tool;
    OnObservation about |call| &call.tool;
    OnFinal;
    Input;
    BeforeAgentStart;
    Context;
    BeforeTool about |call| &call.tool;
    AfterTool about |call| &call.tool;
    BeforeCompact;
    BeforeFork;
    BeforeTree;
    BeforeSwitch;
    BeforeRequest;
}
