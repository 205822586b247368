//! A conversation is encoded as it grows: the body is always that of the whole.

use std::sync::Arc;

use agent::message::{Content, Image, Message, StopReason, Text, Thinking, ToolCall, ToolResult};
use agent::model::wire::Encoder;
use agent::model::{Model, Request, ThinkingLevel, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::models::{call, model, reply, request, result, user};

/// A model of each dialect, and one that sees no images.
fn models() -> Vec<Model> {
    vec![
        model("anthropic/claude-sonnet-4-5"),
        model("openai/gpt-5"),
        model("google/gemini-3-flash-preview"),
        model("google/gemini-2.5-flash"),
        model("deepseek/deepseek-flash"),
        resolve("openai-chat/m", Some("http://127.0.0.1:1/v1")).expect("ad hoc"),
    ]
}

fn whole(model: &Model, request: &Request) -> String {
    text(&Encoder::new(model.clone()).encode(request))
}

fn text(body: &[u8]) -> String {
    String::from_utf8(body.to_vec()).expect("UTF-8")
}

/// What happens to a conversation between two requests.
#[derive(Debug, Clone)]
enum Change {
    Say(Vec<Content>),
    Reply {
        content: Vec<Content>,
        /// Which of the models said it.
        by: usize,
        stop: StopReason,
    },
    Result {
        id: String,
        content: Vec<Content>,
        is_error: bool,
    },
    /// The first messages give way to a summary.
    Compact(usize),
    /// The last messages are taken back.
    Truncate(usize),
    /// All is read again: the same messages at other addresses.
    Reload,
    /// Only what the user said is made anew.
    Renew,
    Tools,
    System(String),
    Thinking(ThinkingLevel),
    /// Somebody holds on to the newest body.
    Hold,
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(" \n".to_owned()),
        Just("a \"quoted\" \\ line\nand \u{e9}\u{1f600}[".to_owned()),
        "[a-z\\[\\]{}\",]{1,12}",
    ]
}

fn ids() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just("c1".to_owned()),
        Just("c1".to_owned()),
        Just("functions.read:0".to_owned()),
        Just("call_9|fc_9".to_owned()),
        Just("x".repeat(70)),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    let signature = || {
        prop_oneof![
            Just(None),
            Just(Some(String::new())),
            Just(Some("SIG".to_owned())),
            Just(Some(r#"{"v":1,"id":"msg_1"}"#.to_owned())),
            Just(Some(
                r#"{"type":"reasoning","id":"rs_1","encrypted_content":"E"}"#.to_owned()
            )),
        ]
    };
    prop_oneof![
        (texts(), signature()).prop_map(|(text, text_signature)| Content::Text(Text {
            text,
            text_signature
        })),
        (texts(), signature(), any::<bool>()).prop_map(|(thinking, signature, redacted)| {
            Content::Thinking(Thinking {
                thinking,
                thinking_signature: signature,
                redacted,
            })
        }),
        Just(Content::Image(Image {
            data: "AAAA".to_owned(),
            mime_type: "image/png".to_owned(),
        })),
        (ids(), signature(), texts()).prop_map(|(id, thought_signature, path)| {
            Content::ToolCall(ToolCall {
                id,
                name: "read".to_owned(),
                arguments: json!({ "path": path, "a": [1, 2.5, null] }),
                invalid_arguments: None,
                thought_signature,
            })
        }),
    ]
}

fn contents() -> impl Strategy<Value = Vec<Content>> {
    prop::collection::vec(content(), 0..4)
}

fn stops() -> impl Strategy<Value = StopReason> {
    prop_oneof![
        4 => Just(StopReason::ToolUse),
        1 => Just(StopReason::Stop),
        1 => Just(StopReason::Pause),
        1 => Just(StopReason::Error),
        1 => Just(StopReason::Aborted),
    ]
}

fn levels() -> impl Strategy<Value = ThinkingLevel> {
    prop_oneof![
        Just(ThinkingLevel::Off),
        Just(ThinkingLevel::Low),
        Just(ThinkingLevel::High)
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => contents().prop_map(Change::Say),
        8 => (contents(), 0..6_usize, stops())
            .prop_map(|(content, by, stop)| Change::Reply { content, by, stop }),
        8 => (ids(), contents(), any::<bool>())
            .prop_map(|(id, content, is_error)| Change::Result { id, content, is_error }),
        1 => (0..12_usize).prop_map(Change::Compact),
        1 => (0..6_usize).prop_map(Change::Truncate),
        1 => Just(Change::Reload),
        1 => Just(Change::Renew),
        1 => Just(Change::Tools),
        1 => texts().prop_map(Change::System),
        1 => levels().prop_map(Change::Thinking),
        2 => Just(Change::Hold),
    ]
}

fn said(content: Vec<Content>) -> Message {
    let Message::User(mut message) = user("") else {
        unreachable!("it is the user's")
    };
    message.content = content;
    Message::User(message)
}

fn apply(change: &Change, request: &mut Request, models: &[Model]) {
    let messages = Arc::make_mut(&mut request.messages);
    match change {
        Change::Say(content) => messages.push(Arc::new(said(content.clone()))),
        Change::Reply { content, by, stop } => {
            let Message::Assistant(mut said) = reply(&models[*by], content.clone()) else {
                unreachable!("it is a reply")
            };
            said.stop_reason = *stop;
            messages.push(Arc::new(Message::Assistant(said)));
        }
        Change::Result {
            id,
            content,
            is_error,
        } => messages.push(Arc::new(Message::ToolResult(ToolResult {
            tool_call_id: id.clone(),
            tool_name: "read".to_owned(),
            content: content.clone(),
            details: None,
            is_error: *is_error,
            timestamp: 0,
        }))),
        Change::Compact(count) => {
            let count = (*count).min(messages.len());
            messages.splice(..count, [Arc::new(user("a summary"))]);
        }
        Change::Truncate(count) => messages.truncate(messages.len().saturating_sub(*count)),
        Change::Reload => {
            for message in messages {
                *message = Arc::new(Message::clone(message));
            }
        }
        Change::Renew => {
            for message in messages {
                if matches!(**message, Message::User(_)) {
                    *message = Arc::new(Message::clone(message));
                }
            }
        }
        Change::Tools if request.tools.is_empty() => {
            request.tools = super::support::models::request(Vec::new()).tools;
        }
        Change::Tools => request.tools = Arc::new([]),
        Change::System(system) => request.system.clone_from(system),
        Change::Thinking(level) => request.thinking = *level,
        Change::Hold => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn each_body_is_that_of_the_whole(changes in prop::collection::vec(change(), 1..48)) {
        let models = models();
        let mut encoders: Vec<Encoder> = models.iter().cloned().map(Encoder::new).collect();
        let mut request = request(vec![user("go")]);
        let mut held = Vec::new();
        for change in &changes {
            apply(change, &mut request, &models);
            for (model, encoder) in models.iter().zip(&mut encoders) {
                let body = encoder.encode(&request);
                let expected = whole(model, &request);
                prop_assert_eq!(&text(&body), &expected, "{} after {:?}", model.full_id(), change);
                serde_json::from_str::<Value>(&expected).expect("JSON");
                if matches!(change, Change::Hold) {
                    held.push((body, expected));
                }
            }
        }
        // What is still being sent never changes.
        for (body, expected) in held {
            prop_assert_eq!(text(&body), expected);
        }
    }
}

/// A conversation of steps, each with two calls whose results may be images.
fn steps(model: &Model, count: usize) -> Vec<Message> {
    let mut messages = vec![user("go")];
    for step in 0..count {
        let ids = [format!("a{step}"), format!("b{step}")];
        let calls = ids.iter().map(|id| call(id, "read", json!({"step": step})));
        messages.push(reply(model, calls.collect()));
        messages.extend(ids.iter().map(|id| result(id, "some text")));
        if step % 3 == 0 {
            messages.push(user("and on"));
        }
    }
    messages
}

/// The places at which a request could end: behind results or the user.
fn ends(messages: &[Message]) -> Vec<usize> {
    let is_reply = |at: usize| {
        messages
            .get(at)
            .is_none_or(|message| matches!(message, Message::Assistant(_)))
    };
    (1..=messages.len()).filter(|end| is_reply(*end)).collect()
}

#[test]
fn a_body_begins_with_the_one_before_up_to_the_cache_mark() {
    for model in models() {
        let messages = steps(&model, 6);
        let mut encoder = Encoder::new(model.clone());
        let mut request = request(Vec::new());
        let mut before: Option<String> = None;
        let all: Vec<Arc<Message>> = messages.iter().cloned().map(Arc::new).collect();
        for end in ends(&messages) {
            request.messages = all[..end].to_vec().into();
            let now = text(&encoder.encode(&request));
            if let Some(before) = before {
                let mark = before.rfind(r#","cache_control":{"type":"ephemeral"}}]}]}"#);
                let kept = mark.unwrap_or(before.len() - "]}".len());
                assert_eq!(now.get(..kept), before.get(..kept), "{}", model.full_id());
            }
            before = Some(now);
        }
    }
}

#[test]
fn a_retry_sends_the_same_bytes_from_the_same_place() {
    for model in models() {
        let mut encoder = Encoder::new(model.clone());
        let request = request(steps(&model, 3));
        let first = encoder.encode(&request);
        let again = encoder.encode(&request.clone());
        assert_eq!(first.as_ptr(), again.as_ptr(), "{}", model.full_id());
        assert_eq!(first, again);
    }
}

#[test]
fn a_growing_body_stays_where_it_is_once_it_was_sent() {
    for model in models() {
        let all: Vec<Arc<Message>> = steps(&model, 400).into_iter().map(Arc::new).collect();
        let mut encoder = Encoder::new(model.clone());
        let mut request = request(Vec::new());
        let mut places = std::collections::BTreeSet::new();
        // Steps of three or four messages: some requests end inside of one.
        for end in (1..all.len()).step_by(3) {
            request.messages = all[..end].to_vec().into();
            // The body is dropped here, as it is when it has been sent.
            places.insert(encoder.encode(&request).as_ptr() as usize);
        }
        // It moves when the buffer doubles, not with each of hundreds of steps.
        assert!(places.len() < 30, "{}: {}", model.full_id(), places.len());
    }
}
