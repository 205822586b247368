//! Any conversation becomes a request that keeps the rules of its dialect:
//! speakers take turns where they must, each result stands behind its call, ids
//! and names are such as providers take, and nothing is empty.

use std::sync::Arc;

use agent::message::{Content, Image, Message, StopReason, Text, Thinking, ToolCall, ToolResult};
use agent::model::wire::Encoder;
use agent::model::{Api, Model, Request, ThinkingLevel};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::models::{model, reply, request, user};
use crate::support::transcript::breaches;

/// A model of each dialect, and of each way to differ from it.
fn models() -> Vec<Model> {
    [
        "anthropic/claude-sonnet-4-5",
        "anthropic/claude-opus-5",
        "openai/gpt-5",
        "google/gemini-3-flash-preview",
        "google/gemini-2.5-flash",
        "deepseek/deepseek-flash",
        "mistral/codestral-2508",
        "mistral/mistral-large-4",
        "openrouter/anthropic/claude-opus-5:batch",
        "openrouter/google/gemini-3-flash-preview",
        "groq/openai/gpt-oss-120b",
    ]
    .map(model)
    .to_vec()
}

fn path(model: &Model) -> &'static str {
    match model.api {
        Api::AnthropicMessages => "/v1/messages",
        Api::OpenaiChat => "/chat/completions",
        Api::OpenaiResponses => "/responses",
        Api::GoogleGenerativeAi => "/models/m:streamGenerateContent?alt=sse",
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        1 => Just(" \n".to_owned()),
        1 => Just("words".to_owned()),
        1 => "[a-z ]{1,8}",
    ]
}

fn ids() -> impl Strategy<Value = String> {
    prop_oneof![
        1 => Just(String::new()),
        4 => Just("call_0".to_owned()),
        2 => Just("a".to_owned()),
        1 => Just("functions.read:0".to_owned()),
        1 => Just("call_9|fc_9".to_owned()),
        1 => Just("call_9|fc_8".to_owned()),
        1 => Just("é".repeat(30)),
        1 => Just("x".repeat(70)),
        1 => Just("call_0123456789abcdef0123456789abcdef".to_owned()),
    ]
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => Just("read".to_owned()),
        1 => Just(String::new()),
        1 => Just("functions.read".to_owned()),
        1 => Just("read file é".to_owned()),
        1 => Just("n".repeat(70)),
    ]
}

fn signatures() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        2 => Just(None),
        1 => Just(Some(String::new())),
        2 => Just(Some("SIG".to_owned())),
        1 => Just(Some(r#"{"v":1,"id":"msg_1"}"#.to_owned())),
        1 => Just(Some(
            r#"{"type":"reasoning","id":"rs_1","encrypted_content":"E"}"#.to_owned()
        )),
        1 => Just(Some(
            r#"[{"type":"reasoning.encrypted","data":"E"}]"#.to_owned()
        )),
    ]
}

fn arguments() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => Just(json!({"path": "a"})),
        1 => Just(json!({})),
        1 => Just(Value::Null),
        1 => Just(json!([1])),
        1 => Just(json!("text")),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    prop_oneof![
        2 => (texts(), signatures()).prop_map(|(text, text_signature)| Content::Text(Text {
            text,
            text_signature
        })),
        2 => (texts(), signatures(), any::<bool>()).prop_map(|(thinking, signature, redacted)| {
            Content::Thinking(Thinking {
                thinking,
                thinking_signature: signature,
                redacted,
            })
        }),
        1 => Just(Content::Image(Image {
            data: "AAAA".to_owned(),
            mime_type: "image/png".to_owned(),
        })),
        3 => (ids(), names(), arguments(), signatures()).prop_map(
            |(id, name, arguments, thought_signature)| {
                Content::ToolCall(ToolCall {
                    id,
                    name,
                    arguments,
                    invalid_arguments: None,
                    thought_signature,
                })
            }
        ),
    ]
}

fn contents() -> impl Strategy<Value = Vec<Content>> {
    prop::collection::vec(content(), 0..5)
}

fn stops() -> impl Strategy<Value = StopReason> {
    prop_oneof![
        4 => Just(StopReason::ToolUse),
        2 => Just(StopReason::Stop),
        1 => Just(StopReason::Error),
        1 => Just(StopReason::Aborted),
    ]
}

fn messages(models: Vec<Model>) -> impl Strategy<Value = Vec<Message>> {
    let said = contents().prop_map(|content| {
        let Message::User(mut said) = user("") else {
            unreachable!("it is the user's")
        };
        said.content = content;
        Message::User(said)
    });
    let by = 0..models.len();
    let replied = (contents(), by, stops()).prop_map(move |(content, by, stop)| {
        let Message::Assistant(mut replied) = reply(&models[by], content) else {
            unreachable!("it is a reply")
        };
        replied.stop_reason = stop;
        Message::Assistant(replied)
    });
    let result = (ids(), contents(), any::<bool>()).prop_map(|(id, content, is_error)| {
        Message::ToolResult(ToolResult {
            tool_call_id: id,
            tool_name: "read".to_owned(),
            content,
            details: None,
            is_error,
            timestamp: 0,
        })
    });
    prop::collection::vec(prop_oneof![2 => said, 5 => replied, 5 => result], 0..16)
}

fn levels() -> impl Strategy<Value = ThinkingLevel> {
    prop::sample::select(ThinkingLevel::ALL.to_vec())
}

fn sent(model: &Model, request: &Request) -> Value {
    let body = Encoder::new(model.clone()).encode(request);
    serde_json::from_slice(&body).expect("JSON")
}

/// What only one endpoint asks for.
fn more_breaches(model: &Model, body: &Value) -> Vec<String> {
    let text = body.to_string();
    let marks = text.matches(r#""cache_control":"#).count();
    let mut found = Vec::new();
    if marks > 4 {
        found.push(format!("{marks} marks of the cache"));
    }
    let messages = body["messages"].as_array().into_iter().flatten();
    if model.quirks.nine_letter_ids {
        let calls = messages.filter_map(|message| message["tool_calls"].as_array());
        for call in calls.flatten() {
            let id = call["id"].as_str().unwrap_or_default();
            if id.len() != 9 || !id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
                found.push(format!("the id {id:?}"));
            }
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_conversation_keeps_the_rules(
        messages in messages(models()),
        level in levels(),
        tools in any::<bool>(),
    ) {
        // A request begins with the user, and ends with the user's side.
        let mut all = vec![user("go")];
        all.extend(messages);
        all.push(user("and now?"));
        let mut request = request(all);
        request.thinking = level;
        if !tools {
            request.tools = Arc::new([]);
        }
        for model in models() {
            let body = sent(&model, &request);
            let mut found = breaches(path(&model), &body);
            found.extend(more_breaches(&model, &body));
            prop_assert!(found.is_empty(), "{}: {found:#?}\n{body:#}", model.full_id());
        }
    }
}
