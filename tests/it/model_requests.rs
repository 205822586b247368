//! Request bodies of both dialects.

use agent::message::{Content, Image, Message, StopReason, ToolResult};
use agent::model::{Model, Request, ThinkingLevel, resolve, wire};
use serde_json::{Value, json};

use crate::support::models::{call, model, reply, request, result, thinking, user};

fn text_of(model: &Model, request: &Request) -> String {
    String::from_utf8(wire::Encoder::new(model.clone()).encode(request).to_vec()).expect("UTF-8")
}

fn body(model: &Model, request: &Request) -> Value {
    serde_json::from_str(&text_of(model, request)).expect("JSON")
}

fn image() -> Content {
    Content::Image(Image {
        data: "AAAA".to_owned(),
        mime_type: "image/png".to_owned(),
    })
}

fn image_result(id: &str) -> Message {
    Message::ToolResult(ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content: vec![image()],
        details: None,
        is_error: true,
        timestamp: 0,
    })
}

fn level(request: &Request, thinking: ThinkingLevel) -> Request {
    Request {
        thinking,
        ..request.clone()
    }
}

#[test]
fn anthropic_conversation() {
    let model = model("anthropic/claude-sonnet-4-5");
    let history = vec![
        user("go"),
        reply(
            &model,
            vec![
                thinking("hm", Some("SIG"), false),
                thinking("", Some("DATA"), true),
                Content::text("two calls"),
                call("toolu_1", "read", json!({"path": "b", "a": 1})),
                call("toolu_2", "read", json!({})),
            ],
        ),
        result("toolu_2", "second"),
        result("toolu_1", "first"),
        user("and now?"),
    ];
    assert_eq!(
        body(&model, &request(history)),
        json!({
            "model": "claude-sonnet-4-5",
            "max_tokens": 8000,
            "stream": true,
            "thinking": {"type": "disabled"},
            "tools": [
                {"name": "bash", "description": "Does bash.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}},
                {"name": "read", "description": "Does read.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}, "cache_control": {"type": "ephemeral"}},
            ],
            "system": [{"type": "text", "text": "You are terse.", "cache_control": {"type": "ephemeral"}}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "go"}]},
                {"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "SIG"},
                    {"type": "redacted_thinking", "data": "DATA"},
                    {"type": "text", "text": "two calls"},
                    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "b", "a": 1}},
                    {"type": "tool_use", "id": "toolu_2", "name": "read", "input": {}},
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "first"}]},
                    {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "second"}]},
                    {"type": "text", "text": "and now?", "cache_control": {"type": "ephemeral"}},
                ]},
            ],
        })
    );
}

#[test]
fn anthropic_thinking() {
    let plain = request(vec![user("go")]);
    let fields = |name: &str, level_: ThinkingLevel| {
        let mut body = body(&model(name), &level(&plain, level_));
        json!([
            body["thinking"].take(),
            body["output_config"].take(),
            body["max_tokens"].take()
        ])
    };
    use ThinkingLevel as L;
    let budget = |tokens: u64| json!({"type": "enabled", "budget_tokens": tokens});
    assert_eq!(
        fields("claude-sonnet-4-5", L::Minimal),
        json!([budget(1024), null, 9024])
    );
    assert_eq!(
        fields("claude-sonnet-4-5", L::Low),
        json!([budget(2048), null, 10048])
    );
    assert_eq!(
        fields("claude-sonnet-4-5", L::Medium),
        json!([budget(8192), null, 16192])
    );
    assert_eq!(
        fields("claude-sonnet-4-5", L::Max),
        json!([budget(16384), null, 24384])
    );
    let adaptive = json!({"type": "adaptive"});
    assert_eq!(
        fields("claude-opus-5", L::Minimal),
        json!([adaptive, {"effort": "low"}, 8000])
    );
    assert_eq!(
        fields("claude-opus-5", L::Xhigh),
        json!([adaptive, {"effort": "xhigh"}, 8000])
    );
    assert_eq!(
        fields("claude-opus-5", L::Off),
        json!([{"type": "disabled"}, null, 8000])
    );
    // A model that always thinks is asked for the least.
    assert_eq!(
        fields("claude-opus-5-5", L::Off),
        json!([adaptive, {"effort": "low"}, 8000])
    );
}

#[test]
fn temperature_goes_only_where_it_is_taken() {
    let mut warm = request(vec![user("go")]);
    warm.temperature = Some(0.5);
    assert_eq!(body(&model("claude-sonnet-4-5"), &warm)["temperature"], 0.5);
    assert_eq!(
        body(&model("claude-opus-5"), &warm)["temperature"],
        Value::Null
    );
    let thinks = level(&warm, ThinkingLevel::High);
    assert_eq!(
        body(&model("claude-sonnet-4-5"), &thinks)["temperature"],
        Value::Null
    );
    assert_eq!(
        body(&model("groq/openai/gpt-oss-120b"), &warm)["temperature"],
        0.5
    );
}

#[test]
fn without_tools_calls_are_forbidden() {
    let sonnet = model("claude-sonnet-4-5");
    let history = vec![
        user("go"),
        reply(&sonnet, vec![call("a", "read", json!({}))]),
        result("a", "x"),
    ];
    let mut closing = request(history);
    closing.tools = std::sync::Arc::new([]);
    let sent = body(&sonnet, &closing);
    assert_eq!(sent["tool_choice"], json!({"type": "none"}));
    assert_eq!(sent["tools"][0]["name"], "read");
    let chat = body(&model("groq/openai/gpt-oss-120b"), &closing);
    assert_eq!(
        (&chat["tools"], &chat["tool_choice"]),
        (&Value::Null, &Value::Null)
    );
}

#[test]
fn chat_conversation() {
    let model = resolve("openai-chat/m", Some("http://127.0.0.1:1/v1")).expect("ad hoc");
    let history = vec![
        user("go"),
        reply(
            &model,
            vec![
                thinking("hm", None, false),
                call("functions.read:0", "read", json!({"path": "a"})),
                call("c2", "read", json!({})),
            ],
        ),
        result("functions.read:0", "first"),
        image_result("c2"),
    ];
    let mut sent = body(&model, &request(history));
    assert_eq!(sent["tools"].as_array().map(Vec::len), Some(2));
    assert_eq!(sent["tools"][0]["function"]["name"], "bash");
    sent.as_object_mut()
        .expect("an object")
        .shift_remove("tools");
    assert_eq!(
        sent,
        json!({
            "model": "m",
            "stream": true,
            "stream_options": {"include_usage": true},
            "max_tokens": 8000,
            "messages": [
                {"role": "system", "content": "You are terse."},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"type": "function", "id": "functions.read:0", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
                    {"type": "function", "id": "c2", "function": {"name": "read", "arguments": "{}"}},
                ]},
                {"role": "tool", "tool_call_id": "functions.read:0", "content": "first"},
                {"role": "tool", "tool_call_id": "c2", "content": "error: (an image, attached below)"},
                {"role": "user", "content": [
                    {"type": "text", "text": "Images from the tool results above:"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                ]},
            ],
        })
    );
}

#[test]
fn chat_quirks() {
    use ThinkingLevel as L;
    let plain = request(vec![user("go")]);
    let check = |name: &str, level_: L, expect: Value| {
        let sent = body(&model(name), &level(&plain, level_));
        for (field, value) in expect.as_object().expect("an object") {
            assert_eq!(&sent[field], value, "{name} {level_:?} {field}");
        }
    };
    check(
        "groq/openai/gpt-oss-120b",
        L::Low,
        json!({"reasoning_effort": "low", "store": false, "max_completion_tokens": 8000, "max_tokens": null}),
    );
    check(
        "deepseek/deepseek-flash",
        L::High,
        json!({"thinking": {"type": "enabled"}, "reasoning_effort": "high", "max_tokens": 8000, "store": null}),
    );
    check(
        "deepseek/deepseek-flash",
        L::Off,
        json!({"thinking": {"type": "disabled"}, "reasoning_effort": null}),
    );
    check(
        "zai/glm-5-turbo",
        L::High,
        json!({"thinking": {"type": "enabled"}, "reasoning_effort": null}),
    );
    check(
        "together/moonshotai/Kimi-K3",
        L::High,
        json!({"reasoning": {"enabled": true}, "reasoning_effort": null}),
    );
    check(
        "together/moonshotai/Kimi-K3",
        L::Off,
        json!({"reasoning": {"enabled": false}}),
    );
    check(
        "openrouter/ibm-granite/granite-4.2-8b",
        L::Off,
        json!({"reasoning": {"effort": "none"}}),
    );
    check(
        "openrouter/ibm-granite/granite-4.2-8b",
        L::High,
        json!({"reasoning": {"effort": "high"}}),
    );
    check(
        "mistral/codestral-2508",
        L::High,
        json!({"reasoning_effort": null, "max_tokens": 8000}),
    );
    let role = |name: &str| body(&model(name), &plain)["messages"][0]["role"].clone();
    assert_eq!(role("groq/openai/gpt-oss-120b"), "developer");
    assert_eq!(role("mistral/codestral-2508"), "system");
    let openai = resolve("openai-chat/gpt-x", None).expect("ad hoc");
    assert_eq!(body(&openai, &plain)["prompt_cache_key"], "session-1");
}

#[test]
fn reasoning_goes_back_where_it_must() {
    let deepseek = model("deepseek/deepseek-flash");
    let history = vec![
        user("go"),
        reply(
            &deepseek,
            vec![thinking("hm", None, false), Content::text("a")],
        ),
        user("more"),
        reply(&deepseek, vec![Content::text("b")]),
        user("more"),
    ];
    let sent = body(&deepseek, &request(history));
    assert_eq!(
        sent["messages"][2],
        json!({"role": "assistant", "content": "a", "reasoning_content": "hm"})
    );
    assert_eq!(sent["messages"][4]["reasoning_content"], "");
}

#[test]
fn a_session_of_pi_names_the_chat_dialect_in_its_own_way() {
    let deepseek = model("deepseek/deepseek-flash");
    let mut said = reply(
        &deepseek,
        vec![thinking("hm", None, false), Content::text("a")],
    );
    if let Message::Assistant(said) = &mut said {
        said.api = "openai-completions".to_owned();
    }
    let sent = body(&deepseek, &request(vec![user("go"), said, user("more")]));
    assert_eq!(
        sent["messages"][2],
        json!({"role": "assistant", "content": "a", "reasoning_content": "hm"})
    );
}

#[test]
fn a_conversation_of_another_model_is_made_to_fit() {
    let chat = model("groq/openai/gpt-oss-120b");
    let sonnet = model("claude-sonnet-4-5");
    let odd = "functions.read:0|".repeat(8);
    let Message::Assistant(mut failed) = reply(
        &chat,
        vec![Content::text("half"), call("x", "read", json!({}))],
    ) else {
        unreachable!("a reply is a reply")
    };
    failed.stop_reason = StopReason::Error;
    let history = vec![
        user("go"),
        Message::Assistant(failed),
        result("x", "an answer to a call that is left out"),
        reply(
            &chat,
            vec![
                thinking("foreign thought", None, false),
                thinking("", Some("secret"), true),
                call(&odd, "read", json!({})),
                call("never-answered", "read", json!({})),
            ],
        ),
        result(&odd, "fine"),
        result("nobody-asked", "orphan"),
        user("next"),
    ];
    let sent = body(&sonnet, &request(history.clone()));
    let blocks = &sent["messages"][1]["content"];
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        blocks[0],
        json!({"type": "text", "text": "foreign thought"})
    );
    let id = blocks[1]["id"].as_str().expect("an id");
    assert!(
        id.len() == 64
            && id
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'),
        "{id}"
    );
    let results = &sent["messages"][2]["content"];
    assert_eq!(results[0]["tool_use_id"], id);
    assert_eq!(results[1]["tool_use_id"], "never-answered");
    assert_eq!(results[1]["is_error"], true);
    assert_eq!(results.as_array().map(Vec::len), Some(3));
    let other = model("cerebras/gpt-oss-120b");
    let sent = body(&other, &request(history));
    let id = sent["messages"][2]["tool_calls"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(id.len(), 40);
    assert_eq!(sent["messages"][3]["tool_call_id"], id);
}

#[test]
fn images_become_a_note_for_models_that_cannot_see() {
    let blind = model("mistral/codestral-2508");
    let history = vec![
        user("go"),
        reply(&blind, vec![call("a", "read", json!({}))]),
        image_result("a"),
    ];
    let sent = body(&blind, &request(history));
    assert_eq!(
        sent["messages"][3]["content"],
        "error: [an image, left out because this model cannot see images]"
    );
}

/// Cuts `cache_control` out, which alone may move.
fn without_cache_marks(text: &str) -> String {
    text.replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "")
}

#[test]
fn bytes_once_sent_stay_the_same() {
    for name in [
        "claude-sonnet-4-5",
        "groq/openai/gpt-oss-120b",
        "deepseek/deepseek-flash",
    ] {
        let model = model(name);
        let mut history = vec![user("go")];
        let mut before: Option<String> = None;
        for step in 0..6 {
            let now = without_cache_marks(&text_of(&model, &request(history.clone())));
            if let Some(before) = before {
                let prefix = before.strip_suffix("]}").expect("messages come last");
                assert!(
                    now.starts_with(prefix),
                    "{name} step {step}\n{before}\n{now}"
                );
            }
            before = Some(now);
            let id = format!("toolu_{step}");
            history.push(reply(
                &model,
                vec![
                    thinking("t", Some("s"), false),
                    call(&id, "read", json!({"z": step, "a": [1.5, "ü"]})),
                ],
            ));
            history.push(result(&id, "line\n\"quoted\" \u{1}"));
        }
    }
}
