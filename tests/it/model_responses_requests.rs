//! The responses dialect: requests.

use agent::message::{Content, Image, Message, ToolResult};
use agent::model::{Model, Request, ThinkingLevel};
use serde_json::{Value, json};

use crate::support::models::{call, model, reply, request, result, thinking, user};
use crate::support::streams::{assemble, assert_grows, body};

const STREAM: &str = include_str!("../fixtures/streams/responses_tools.sse");
/// The reasoning of the stream as it goes back.
const REASONING: &str = r#"{"id":"rs_01","type":"reasoning","encrypted_content":"gAAAAAB-final","summary":[{"type":"summary_text","text":"Two files – 看看 🙂"},{"type":"summary_text","text":"Then answer."}]}"#;
const MESSAGE: &str = r#"{"v":1,"id":"msg_01","phase":"commentary"}"#;
fn gpt() -> Model {
    model("openai/gpt-5.2")
}

fn image_result(id: &str) -> Message {
    Message::ToolResult(ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content: vec![
            Content::text("a picture"),
            Content::Image(Image {
                data: "AAAA".to_owned(),
                mime_type: "image/png".to_owned(),
            }),
        ],
        details: None,
        is_error: true,
        timestamp: 0,
    })
}

#[test]
fn the_reply_goes_back_as_it_came() {
    let answer = assemble(&gpt(), STREAM).expect("whole");
    let mut sent = body(
        &gpt(),
        &request(vec![
            user("go"),
            Message::Assistant(answer),
            result("call_02|fc_02", "second"),
            image_result("call_01|fc_01"),
            user("and now?"),
        ]),
    );
    let reasoning: Value = serde_json::from_str(REASONING).expect("JSON");
    assert_eq!(
        sent["input"].take(),
        json!([
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            reasoning,
            {"type": "message", "role": "assistant", "id": "msg_01", "phase": "commentary", "status": "completed",
                "content": [{"type": "output_text", "text": "Ich prüfe zwei Dateien.", "annotations": []}]},
            {"type": "function_call", "id": "fc_01", "call_id": "call_01", "name": "read", "arguments": "{\"path\":\"ü/a.rs\"}"},
            {"type": "function_call", "id": "fc_02", "call_id": "call_02", "name": "ls", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_01", "output": [
                {"type": "input_text", "text": "error:"},
                {"type": "input_text", "text": "a picture"},
                {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AAAA"},
            ]},
            {"type": "function_call_output", "call_id": "call_02", "output": "second"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "and now?"}]},
        ])
    );
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    assert_eq!(
        sent,
        json!({
            "model": "gpt-5.2",
            "stream": true,
            "store": false,
            "max_output_tokens": 8000,
            "reasoning": {"effort": "none"},
            "include": ["reasoning.encrypted_content"],
            "prompt_cache_key": "session-1",
            "parallel_tool_calls": true,
            "tools": [
                {"type": "function", "name": "bash", "description": "Does bash.", "parameters": schema, "strict": false},
                {"type": "function", "name": "read", "description": "Does read.", "parameters": schema, "strict": false},
            ],
            "instructions": "You are terse.",
            "input": null,
        })
    );
}

#[test]
fn thinking_levels_and_temperature() {
    use ThinkingLevel as L;
    let check = |name: &str, level: L, reasoning: Value, temperature: Value| {
        let mut asked = request(vec![user("go")]);
        asked.thinking = level;
        asked.temperature = Some(0.5);
        let sent = body(&model(name), &asked);
        assert_eq!(sent["reasoning"], reasoning, "{name} {level:?}");
        assert_eq!(sent["temperature"], temperature, "{name} {level:?}");
        let encrypted = model(name)
            .reasoning
            .then(|| json!(["reasoning.encrypted_content"]));
        assert_eq!(sent["include"], json!(encrypted), "{name}");
    };
    let effort = |name: &str| json!({"effort": name, "summary": "auto"});
    check("gpt-5.2", L::Off, json!({"effort": "none"}), json!(0.5));
    check("gpt-5.2", L::Minimal, effort("low"), json!(null));
    check("gpt-5.2", L::Xhigh, effort("xhigh"), json!(null));
    check("gpt-5.2", L::Max, effort("xhigh"), json!(null));
    check("gpt-5", L::Off, effort("minimal"), json!(null));
    check("gpt-6-sol", L::Max, effort("max"), json!(null));
    check("o3-mini", L::Medium, effort("medium"), json!(null));
    check("gpt-4.1", L::High, json!(null), json!(0.5));
    check("grok-4.5", L::High, effort("high"), json!(null));
}

#[test]
fn small_things_of_the_request() {
    let mut plain = request(vec![user("go")]);
    plain.max_output_tokens = 1;
    plain.tools = std::sync::Arc::new([]);
    plain.system = " ".to_owned();
    plain.session_id = "s".repeat(70);
    let sent = body(&gpt(), &plain);
    assert_eq!(sent["max_output_tokens"], 16);
    assert_eq!(sent["prompt_cache_key"], "s".repeat(64));
    for field in ["tools", "parallel_tool_calls", "instructions"] {
        assert_eq!(sent[field], Value::Null, "{field}");
    }
    let mut without = gpt();
    without.quirks.prompt_cache_key = Some(false);
    assert_eq!(body(&without, &plain)["prompt_cache_key"], Value::Null);
    // A session id that no cut can shorten, a larger cap than the model has.
    plain.session_id = "ü".repeat(40) + "x";
    plain.max_output_tokens = u64::MAX;
    let sent = body(&gpt(), &plain);
    assert_eq!(sent["max_output_tokens"], 128_000);
}

/// A reply whose reasoning cannot be read again must not name its items, and
/// reasoning that leads to nothing is left out.
#[test]
fn items_are_named_only_beside_their_reasoning() {
    let signed = Content::Text(agent::message::Text {
        text: "hm".to_owned(),
        text_signature: Some(MESSAGE.to_owned()),
    });
    let input = |content: Vec<Content>| -> Vec<Value> {
        let sent = body(
            &gpt(),
            &request(vec![user("go"), reply(&gpt(), content), user("more")]),
        );
        let items = sent["input"].as_array().expect("a list");
        items[1..items.len() - 1].to_vec()
    };
    let items = input(vec![
        thinking(
            "lost",
            Some(r#"{"type":"reasoning","id":"rs_1","encrypted_content":null}"#),
            false,
        ),
        signed.clone(),
        call("call_1|fc_1", "read", json!({})),
    ]);
    assert_eq!(items.len(), 3, "{items:?}");
    assert!(
        items.iter().all(|item| item.get("id").is_none()),
        "{items:?}"
    );
    assert_eq!(
        items[2]["output"],
        "error:\nno result: the call was not completed"
    );
    let items = input(vec![thinking("a", Some(REASONING), false), signed.clone()]);
    assert_eq!(
        (&items[0]["id"], &items[1]["id"]),
        (&json!("rs_01"), &json!("msg_01"))
    );
    assert_eq!(
        input(vec![thinking("a", Some(REASONING), false)]),
        Vec::<Value>::new()
    );
    let items = input(vec![signed, thinking("a", Some(REASONING), false)]);
    assert_eq!(items.len(), 1, "{items:?}");
    // Junk where a signature should be is not sent.
    assert_eq!(
        input(vec![thinking("a", Some("junk"), false)]),
        Vec::<Value>::new()
    );
}

#[test]
fn replies_of_other_models_are_made_to_fit() {
    let other = model("openai/gpt-5");
    let sonnet = model("claude-sonnet-4-5");
    let odd = "functions.read:0|".repeat(8);
    let history = |from: &Model, id: &str| {
        vec![
            user("go"),
            reply(
                from,
                vec![
                    thinking("foreign thought", Some(REASONING), false),
                    thinking("", Some("secret"), true),
                    call(id, "read", json!({})),
                ],
            ),
            result(id, "fine"),
        ]
    };
    let sent = body(&gpt(), &request(history(&other, "call_9|fc_9")));
    assert_eq!(
        sent["input"][1]["content"],
        json!([{"type": "output_text", "text": "foreign thought", "annotations": []}])
    );
    assert_eq!(
        sent["input"][2],
        json!({"type": "function_call", "call_id": "call_9", "name": "read", "arguments": "{}"})
    );
    assert_eq!(sent["input"][3]["call_id"], "call_9");
    let sent = body(&gpt(), &request(history(&sonnet, &odd)));
    let id = sent["input"][2]["call_id"].as_str().expect("an id");
    assert!(
        id.len() == 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'),
        "{id}"
    );
    assert_eq!(sent["input"][3]["call_id"], id);
    // And what this dialect calls its calls fits the others.
    for (name, chars) in [("claude-sonnet-4-5", 64), ("groq/openai/gpt-oss-120b", 40)] {
        let text = body(&model(name), &request(history(&gpt(), "call_9|fc_9"))).to_string();
        assert!(
            !text.contains('|') && !text.contains("encrypted_content"),
            "{text}"
        );
        assert!(text.contains("call_9_fc_9_") && chars > 0, "{text}");
    }
}

#[test]
fn bytes_once_sent_stay_the_same() {
    let mut history = vec![user("go")];
    let mut requests: Vec<Request> = Vec::new();
    for step in 0..5 {
        requests.push(request(history.clone()));
        let id = format!("call_{step}|fc_{step}");
        history.push(reply(
            &gpt(),
            vec![
                thinking("t", Some(REASONING), false),
                call(&id, "read", json!({"z": step, "a": [1.5, "ü"]})),
            ],
        ));
        history.push(result(&id, "line\n\"quoted\" \u{1}"));
    }
    assert_grows(&gpt(), &requests);
}
