//! A model that plays replies from a script, without a network.
//!
//! Each call takes the next reply, a repeated call too. What a reply expects is
//! looked for in the whole request: `contains` in the system prompt and in every
//! text, result and argument of the conversation; `tools` among the names of the
//! offered tools, where an empty list means that none may be offered. A reply
//! that says something and has an `error` fails behind its last word, as a
//! provider does that breaks down inside a stream.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::message::{Content, Message, StopReason};
use crate::model::classify::http_error;
use crate::model::client::ClientOptions;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::script::{Expect, Failure, ReplySpec, Script, Stop};
use crate::model::transport::timed_out;
use crate::model::wire::Events;
use crate::model::{Request, StreamEvent};

/// How much of a request a difference shows.
const SHOWN_CHARS_MAX: usize = 600;
/// Characters of one delta.
const DELTA_CHARS: usize = 16;

/// Plays a script.
pub(super) struct Player {
    name: String,
    strict: bool,
    replies: Mutex<Replies>,
    options: ClientOptions,
}

struct Replies {
    left: VecDeque<ReplySpec>,
    played: usize,
}

impl Player {
    pub(super) fn new(script: Script, options: ClientOptions) -> Self {
        Self {
            name: script.name,
            strict: script.strict,
            replies: Mutex::new(Replies {
                left: script.replies.into(),
                played: 0,
            }),
            options,
        }
    }

    pub(super) async fn send(&self, request: &Request) -> Result<ScriptedReply, ModelError> {
        let (number, reply) = self.take();
        let Some(reply) = reply else {
            return Err(ModelError::new(
                ModelErrorKind::Script,
                format!("{} has no reply {number}", self.name),
            ));
        };
        if let Some(difference) = reply
            .expect
            .as_ref()
            .and_then(|expect| differs(expect, request))
        {
            return Err(ModelError::new(
                ModelErrorKind::Script,
                format!("{}, reply {number}: {difference}", self.name),
            ));
        }
        if let Some(delay) = reply.delay {
            let limit = self.options.header_timeout;
            clock::sleep(delay.min(limit), &CancellationToken::new()).await;
            if delay > limit {
                return Err(timed_out("no answer", limit, "settings.response_timeout"));
            }
        }
        self.options.activity.touch();
        match &reply.error {
            Some(failure) if !reply.says_something() => Err(failed(failure)),
            failure => Ok(ScriptedReply {
                events: events(&reply),
                failed: failure.as_ref().map(failed),
                over: false,
            }),
        }
    }

    pub(super) fn finish(&self) -> Result<(), ModelError> {
        let left = self.locked().left.len();
        if self.strict && left > 0 {
            return Err(ModelError::new(
                ModelErrorKind::Script,
                format!("{} is strict and has {left} unplayed replies", self.name),
            ));
        }
        Ok(())
    }

    fn take(&self) -> (usize, Option<ReplySpec>) {
        let mut replies = self.locked();
        replies.played += 1;
        (replies.played, replies.left.pop_front())
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Replies> {
        // A list stays a list even if another thread died while it held it.
        self.replies
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A reply of a script on its way.
pub(super) struct ScriptedReply {
    events: Events,
    /// What ends it in place of the stop.
    failed: Option<ModelError>,
    over: bool,
}

impl ScriptedReply {
    pub(super) fn next(&mut self) -> Result<Option<StreamEvent>, ModelError> {
        match self.events.pop_front() {
            Some(event) => {
                self.over = matches!(event, StreamEvent::Stop(_));
                Ok(Some(event))
            }
            None if self.over => Ok(None),
            None => Err(self.failed.clone().unwrap_or_else(|| {
                ModelError::new(
                    ModelErrorKind::Truncated,
                    "the stream ended before the reply was whole",
                )
            })),
        }
    }
}

fn failed(failure: &Failure) -> ModelError {
    let body = serde_json::json!({
        "error": {
            "type": failure.code.clone().unwrap_or_default(),
            "message": failure.message.clone().unwrap_or_else(|| "as the script says".to_owned()),
        }
    });
    let mut error = http_error(failure.status, &body.to_string());
    if error.is_retryable() {
        error.retry_after = failure.retry_after;
    }
    error
}

fn events(reply: &ReplySpec) -> Events {
    let mut events = Events::from([StreamEvent::Start { model: None }]);
    let mut index = 0;
    if let Some(thinking) = &reply.thinking {
        events.push_back(StreamEvent::ThinkingStart { index });
        events.extend(pieces(thinking).map(|delta| StreamEvent::ThinkingDelta { index, delta }));
        events.push_back(StreamEvent::ThinkingEnd {
            index,
            signature: None,
            redacted: false,
        });
        index += 1;
    }
    if let Some(text) = &reply.text {
        events.push_back(StreamEvent::TextStart { index });
        events.extend(pieces(text).map(|delta| StreamEvent::TextDelta { index, delta }));
        events.push_back(StreamEvent::TextEnd { index });
        index += 1;
    }
    for call in &reply.calls {
        events.push_back(StreamEvent::ToolCallStart {
            index,
            id: call.id.clone().unwrap_or_default(),
            name: call.name.clone(),
        });
        let arguments = call.arguments_text();
        events.extend(pieces(&arguments).map(|delta| StreamEvent::ToolCallDelta { index, delta }));
        events.push_back(StreamEvent::ToolCallEnd { index });
        index += 1;
    }
    if reply.cut {
        // The end of the last block is what gets lost, and all after it.
        events.truncate(1 + (events.len() - 1) / 2);
    }
    if reply.error.is_some() {
        return events;
    }
    if let Some(usage) = reply.usage {
        events.insert(1, StreamEvent::Usage(usage));
    }
    if reply.cut {
        return events;
    }
    events.push_back(StreamEvent::Stop(match reply.stop {
        Some(Stop::Stop) => StopReason::Stop,
        Some(Stop::Length) => StopReason::Length,
        Some(Stop::ToolUse) => StopReason::ToolUse,
        Some(Stop::Refusal) => StopReason::Refusal,
        None if reply.calls.is_empty() => StopReason::Stop,
        None => StopReason::ToolUse,
    }));
    events
}

/// A few deltas, each of some characters; a long text in at most about 64.
fn pieces(text: &str) -> impl Iterator<Item = String> + '_ {
    let size = DELTA_CHARS.max(text.chars().count() / 64 + 1);
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = rest
            .char_indices()
            .nth(size)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(at);
        rest = after;
        Some(piece.to_owned())
    })
}

/// What the request lacks, for people.
fn differs(expect: &Expect, request: &Request) -> Option<String> {
    let offered: Vec<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    if let Some(wanted) = &expect.tools {
        let missing: Vec<&str> = wanted
            .iter()
            .map(String::as_str)
            .filter(|name| !offered.contains(name))
            .collect();
        if wanted.is_empty() && !offered.is_empty() {
            return Some(format!(
                "expected no tools, the request offers {}",
                offered.join(", ")
            ));
        }
        if !missing.is_empty() {
            let offered = if offered.is_empty() {
                "none".to_owned()
            } else {
                offered.join(", ")
            };
            return Some(format!(
                "expected the tools {}, the request offers {offered}",
                missing.join(", ")
            ));
        }
    }
    if expect.contains.is_empty() {
        return None;
    }
    let text = request_text(request);
    let missing = expect
        .contains
        .iter()
        .find(|wanted| !text.contains(wanted.as_str()))?;
    Some(format!(
        "expected the request to contain {missing:?}; what is new in it: {:?}",
        tail(&new_text(request))
    ))
}

fn request_text(request: &Request) -> String {
    let mut text = request.system.clone();
    for message in request.messages.iter() {
        text.push('\n');
        write_message(&mut text, message);
    }
    text
}

/// What was said since the last reply.
fn new_text(request: &Request) -> String {
    let start = request
        .messages
        .iter()
        .rposition(|message| matches!(message.as_ref(), Message::Assistant(_)))
        .map_or(0, |at| at + 1);
    let mut text = String::new();
    for message in request.messages.iter().skip(start) {
        write_message(&mut text, message);
        text.push('\n');
    }
    text
}

fn write_message(text: &mut String, message: &Message) {
    let content = match message {
        Message::User(message) => &message.content,
        Message::Assistant(message) => &message.content,
        Message::ToolResult(message) => &message.content,
    };
    for block in content {
        let written = match block {
            Content::Text(block) => text.write_str(&block.text),
            Content::Thinking(block) => text.write_str(&block.thinking),
            Content::ToolCall(call) => write!(text, "{} {}", call.name, call.arguments),
            Content::Image(_) => text.write_str("[image]"),
        };
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
        text.push('\n');
    }
}

fn tail(text: &str) -> &str {
    let text = text.trim();
    match text.char_indices().rev().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => text.get(at..).unwrap_or(text),
        None => text,
    }
}
