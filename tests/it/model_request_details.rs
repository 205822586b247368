//! Details of requests that single providers insist on.

use std::sync::Arc;

use agent::message::{Content, Image, Message, Text, ToolResult};
use agent::model::{Model, Request, ThinkingLevel, wire::Encoder};
use serde_json::{Value, json};

use crate::support::models::{call, model, reply, request, result, thinking, user};
use crate::support::streams::{assemble, body, lines};

const SONNET: &str = "anthropic/claude-sonnet-4-5";
const ROUTED: &str = "openrouter/anthropic/claude-opus-5:batch";

fn image() -> Content {
    Content::Image(Image {
        data: "AAAA".to_owned(),
        mime_type: "image/png".to_owned(),
    })
}

fn said(content: Vec<Content>) -> Message {
    let Message::User(mut said) = user("") else {
        unreachable!("it is the user's")
    };
    said.content = content;
    Message::User(said)
}

fn results(id: &str, content: Vec<Content>) -> Message {
    Message::ToolResult(ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content,
        details: None,
        is_error: false,
        timestamp: 0,
    })
}

fn at(level: ThinkingLevel, messages: Vec<Message>) -> Request {
    let mut asked = request(messages);
    asked.thinking = level;
    asked
}

/// With a budget, a reply in the middle of calls must have begun with thinking.
#[test]
fn thinking_begins_with_a_turn_or_not_at_all() {
    let sonnet = model(SONNET);
    let other = model("openai/gpt-5");
    let calls = |by: &Model, thought: Option<Content>| {
        let content = thought.into_iter().chain([call("a", "read", json!({}))]);
        reply(by, content.collect())
    };
    let signed = || Some(thinking("hm", Some("SIG"), false));
    let check = |rest: Vec<Message>, expect: &str| {
        let messages = [user("go")].into_iter().chain(rest).collect();
        let sent = body(&sonnet, &at(ThinkingLevel::Low, messages));
        assert_eq!(sent["thinking"]["type"], expect);
    };
    check(vec![], "enabled");
    check(vec![calls(&sonnet, signed()), result("a", "x")], "enabled");
    check(vec![calls(&sonnet, None), result("a", "x")], "disabled");
    check(vec![calls(&other, signed()), result("a", "x")], "disabled");
    let unsigned = Some(thinking("hm", None, false));
    check(vec![calls(&sonnet, unsigned), result("a", "x")], "disabled");
    let redacted = Some(thinking("", Some("DATA"), true));
    check(vec![calls(&sonnet, redacted), result("a", "x")], "enabled");
    // The first of several replies thought, and nobody ended the calls.
    check(
        vec![
            calls(&sonnet, signed()),
            result("a", "x"),
            calls(&sonnet, None),
            result("a", "x"),
            user("hurry"),
        ],
        "enabled",
    );
    // An answer ends them.
    let answer = || reply(&other, vec![Content::text("done")]);
    check(
        vec![
            calls(&other, None),
            result("a", "x"),
            answer(),
            user("more"),
        ],
        "enabled",
    );
    // A model that decides for itself is always asked.
    let opus = model("anthropic/claude-opus-5");
    let messages = vec![user("go"), calls(&other, None), result("a", "x")];
    let sent = body(&opus, &at(ThinkingLevel::Low, messages));
    assert_eq!(sent["thinking"]["type"], "adaptive");
}

/// Whether a block of the newest message bears the mark, whatever it is.
#[test]
fn the_newest_block_bears_the_mark() {
    let sonnet = model(SONNET);
    let mark = json!({"type": "ephemeral"});
    let calls = || reply(&sonnet, vec![call("a", "read", json!({}))]);
    let ends = [
        vec![user("go")],
        vec![said(vec![Content::text("see"), image()])],
        vec![user("go"), calls(), result("a", "x")],
        vec![user("go"), calls(), results("a", vec![image()])],
        vec![user("go"), calls(), result("a", "x"), user("hurry")],
        vec![user("go"), calls(), result("a", "x"), said(vec![image()])],
    ];
    for messages in ends {
        let sent = body(&sonnet, &request(messages));
        let messages = sent["messages"].as_array().unwrap();
        let last = messages.last().unwrap();
        let blocks = last["content"].as_array().unwrap();
        assert_eq!(last["role"], "user");
        assert_eq!(blocks.last().unwrap()["cache_control"], mark, "{sent:#}");
        assert_eq!(sent.to_string().matches("cache_control").count(), 3);
    }
}

#[test]
fn images_stand_inside_of_results_and_steering_behind_them() {
    let sonnet = model(SONNET);
    let messages = vec![
        user("go"),
        reply(
            &sonnet,
            vec![call("a", "read", json!({})), call("b", "read", json!({}))],
        ),
        results(
            "b",
            vec![Content::text("a cat"), image(), Content::text(" ")],
        ),
        results("a", vec![]),
        user("hurry"),
    ];
    let sent = body(&sonnet, &request(messages));
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    assert_eq!(
        sent["messages"][2],
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "(no output)"}]},
            {"type": "tool_result", "tool_use_id": "b", "content": [
                {"type": "text", "text": "a cat"}, {"type": "image", "source": source}]},
            {"type": "text", "text": "hurry", "cache_control": {"type": "ephemeral"}},
        ]})
    );
}

/// The ids of calls and of their results, in order.
fn call_ids(model: &Model, messages: Vec<Message>) -> Vec<String> {
    let sent = body(model, &request(messages));
    let mut found = Vec::new();
    collect(&sent, &mut found);
    found
}

fn collect(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let is_call = ["tool_use", "function"]
                .iter()
                .any(|kind| fields.get("type") == Some(&json!(kind)));
            for (name, value) in fields {
                match value.as_str() {
                    Some(id)
                        if name == "tool_use_id" || name == "tool_call_id" || name == "call_id" =>
                    {
                        found.push(id.to_owned());
                    }
                    Some(id) if name == "id" && is_call => found.push(id.to_owned()),
                    _ => collect(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

/// Weak servers count from zero in each reply; one id never means two calls.
#[test]
fn an_id_that_returns_is_changed() {
    let local = agent::model::resolve("openai-chat/m", Some("http://127.0.0.1:1/v1")).unwrap();
    for name in [
        SONNET,
        "openai/gpt-5",
        "openai-chat/m",
        "mistral/codestral-2508",
    ] {
        let to = if name == "openai-chat/m" {
            local.clone()
        } else {
            model(name)
        };
        let step = || {
            [
                reply(&local, vec![call("call_0", "read", json!({}))]),
                result("call_0", "x"),
            ]
        };
        let mut messages = vec![user("go")];
        let mut encoder = Encoder::new(to.clone());
        let mut before = Vec::new();
        for steps in 1..=3 {
            messages.extend(step());
            let ids = call_ids(&to, messages.clone());
            assert_eq!(ids.len(), 2 * steps, "{name}: {ids:?}");
            let distinct: std::collections::BTreeSet<&String> = ids.iter().collect();
            assert_eq!(distinct.len(), steps, "{name}: {ids:?}");
            // What was given once is not changed by what comes later.
            assert!(ids.starts_with(&before), "{name}: {ids:?}");
            let pairs = ids.chunks(2).all(|pair| pair[0] == pair[1]);
            assert!(pairs, "{name}: {ids:?}");
            // An encoder that goes on, and one that begins, agree.
            let asked = request(messages.clone());
            assert_eq!(
                encoder.encode(&asked),
                Encoder::new(to.clone()).encode(&asked)
            );
            before = ids;
        }
    }
}

#[test]
fn some_want_ids_of_nine_letters() {
    let messages = |id: &str| {
        vec![
            user("go"),
            reply(&model(SONNET), vec![call(id, "read", json!({}))]),
            result(id, "x"),
        ]
    };
    for name in [
        "mistral/codestral-2508",
        "openrouter/mistralai/mistral-small-2603",
    ] {
        let check = |id: &str| {
            let ids = call_ids(&model(name), messages(id));
            let fits =
                |id: &String| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
            assert!(
                ids.len() == 2 && ids.iter().all(fits) && ids[0] == ids[1],
                "{ids:?}"
            );
            ids[0].clone()
        };
        assert_eq!(check("Ab3dE5g7i"), "Ab3dE5g7i");
        let hashed = check("toolu_01");
        assert_ne!(hashed, check("toolu_02"));
        assert_eq!(hashed, check("toolu_01"));
    }
    // Nobody else is bothered.
    assert_eq!(
        call_ids(&model("groq/openai/gpt-oss-120b"), messages("toolu_01")),
        ["toolu_01"; 2]
    );
}

/// Models call tools that do not exist, by names that must not exist.
#[test]
fn names_and_arguments_are_such_as_may_be_sent() {
    let table = [
        ("read", "read"),
        ("functions.read", "functions_read"),
        ("read file\n", "read_file_"),
        ("", "unnamed"),
    ];
    for name in [
        SONNET,
        "openai/gpt-5",
        "google/gemini-3-flash-preview",
        "zai/glm-5.3",
    ] {
        let model = model(name);
        for (called, sent_as) in table {
            let messages = vec![
                user("go"),
                reply(&model, vec![call("a", called, Value::Null)]),
                result("a", "no such tool"),
            ];
            let mut asked = request(messages);
            asked.tools = Arc::new([]);
            let text = body(&model, &asked).to_string();
            assert!(
                text.contains(&format!(r#""name":"{sent_as}""#)),
                "{name}: {text}"
            );
            let arguments = [r#""input":{}"#, r#""arguments":"{}""#, r#""args":{}"#];
            assert!(
                arguments.iter().any(|none| text.contains(none)),
                "{name}: {text}"
            );
        }
    }
    let long = "n".repeat(70);
    let messages = vec![
        user("go"),
        reply(&model(SONNET), vec![call("a", &long, json!({}))]),
    ];
    let sent = body(&model(SONNET), &request(messages));
    assert_eq!(sent["messages"][1]["content"][0]["name"], "n".repeat(64));
}

#[test]
fn texts_that_say_nothing_are_not_sent() {
    let signed = |text: &str| {
        Content::Text(Text {
            text: text.to_owned(),
            text_signature: Some("SIG".to_owned()),
        })
    };
    for name in [SONNET, "zai/glm-5.3", "openai/gpt-5"] {
        let model = model(name);
        let check = |text: &str, expect: usize| {
            let messages = vec![user("go"), reply(&model, vec![signed(text)]), user("more")];
            let sent = body(&model, &request(messages));
            let list = if sent["input"].is_array() {
                &sent["input"]
            } else {
                &sent["messages"]
            };
            let replies = list.as_array().unwrap().iter();
            let replies = replies.filter(|message| message["role"] == "assistant");
            assert_eq!(replies.count(), expect, "{name} {text:?}: {sent:#}");
        };
        check("word", 1);
        check("", 0);
        check(" \n", 0);
    }
}

/// Behind OpenRouter's Claude is Anthropic, with its marks and its rules.
#[test]
fn what_goes_on_to_anthropic_is_marked() {
    let routed = model(ROUTED);
    let messages = || {
        vec![
            user("go"),
            reply(&routed, vec![call("toolu_1", "read", json!({}))]),
            results("toolu_1", vec![Content::text("seen"), image()]),
            user("more"),
        ]
    };
    let mut sent = body(&routed, &request(messages()));
    let mark = json!({"type": "ephemeral"});
    assert_eq!(
        sent["messages"].take(),
        json!([
            {"role": sent_role(&routed), "content": [{"type": "text", "text": "You are terse.", "cache_control": mark}]},
            {"role": "user", "content": [{"type": "text", "text": "go"}]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"type": "function", "id": "toolu_1", "function": {"name": "read", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "toolu_1", "content": [{"type": "text", "text": "seen"}]},
            {"role": "user", "content": [
                {"type": "text", "text": "Images from the tool results above:"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]},
            {"role": "user", "content": [{"type": "text", "text": "more", "cache_control": mark}]},
        ])
    );
    assert_eq!(sent["session_id"], "session-1");
    assert_eq!(sent["tool_choice"], Value::Null);
    // An image bears no mark: the result before it does.
    let sent = body(&routed, &request(messages()[..3].to_vec()));
    assert_eq!(sent["messages"][3]["content"][0]["cache_control"], mark);
    assert_eq!(sent.to_string().matches("cache_control").count(), 2);
    // Without tools, those that were called stand in.
    let mut closing = request(messages());
    closing.tools = Arc::new([]);
    let sent = body(&routed, &closing);
    assert_eq!(sent["tool_choice"], "none");
    assert_eq!(
        sent["tools"],
        json!([{"type": "function", "function": {
            "name": "read", "description": "Not available now.", "parameters": {"type": "object"}}}])
    );
}

fn sent_role(model: &Model) -> &'static str {
    if model.quirks.developer_role == Some(false) {
        "system"
    } else {
        "developer"
    }
}

/// OpenRouter's details of reasoning, in pieces as they come, and back.
#[test]
fn details_of_reasoning_go_back() {
    let gemini = model("openrouter/google/gemini-3-flash-preview");
    let chunk = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]}).to_string();
    let piece =
        |text: &str| json!({"type": "reasoning.text", "text": text, "format": "f", "index": 0});
    let called = json!([{"index": 0, "id": "c1", "function": {"name": "read", "arguments": "{}"}}]);
    let secret = json!({"type": "reasoning.encrypted", "data": "E/+=", "id": "c1", "index": 1});
    let stream = lines(&[
        chunk(json!({"reasoning": "I ", "reasoning_details": [piece("I ")]})),
        chunk(json!({"reasoning": "look.", "reasoning_details": [piece("look.")]})),
        chunk(
            json!({"reasoning_details": [{"type": "reasoning.text", "signature": "S", "index": 0}]}),
        ),
        chunk(json!({"tool_calls": called, "reasoning_details": [secret]})),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string(),
        "[DONE]".to_owned(),
    ]);
    let answer = assemble(&gemini, &stream).expect("whole");
    assert_eq!(answer.thinking(), "I look.");
    let messages = |by: Message| vec![user("go"), by, result("c1", "x")];
    let sent = body(
        &gemini,
        &request(messages(Message::Assistant(answer.clone()))),
    );
    let replied = &sent["messages"][2];
    assert_eq!(
        replied["reasoning_details"],
        json!([
            {"type": "reasoning.text", "text": "I look.", "format": "f", "index": 0, "signature": "S"},
            {"type": "reasoning.encrypted", "data": "E/+=", "id": "c1", "index": 1},
        ])
    );
    assert_eq!(replied["reasoning"], Value::Null);
    // Without details the text goes back, and to other models it is said.
    let plain = reply(
        &gemini,
        vec![thinking("hm", None, false), call("c1", "read", json!({}))],
    );
    let sent = body(&gemini, &request(messages(plain)));
    assert_eq!(sent["messages"][2]["reasoning"], "hm");
    for name in [
        SONNET,
        "openai/gpt-5",
        "openrouter/z-ai/glm-5.3",
        "zai/glm-5.3",
    ] {
        let text = body(
            &model(name),
            &request(messages(Message::Assistant(answer.clone()))),
        )
        .to_string();
        assert!(
            text.contains("I look.") && !text.contains("E/+="),
            "{name}: {text}"
        );
    }
}
