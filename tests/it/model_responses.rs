//! The responses dialect: requests, streams, errors.

use agent::clock::Activity;
use agent::message::{Content, Image, Message, StopReason, ToolResult};
use agent::model::{
    Assembler, Client, ClientOptions, Model, ModelErrorKind, Request, ThinkingLevel, resolve,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::models::{call, model, reply, request, result, thinking, user};
use crate::support::streams::{
    assemble, assemble_document, assert_cuts, assert_grows, body, decode, kind, lines, summary,
};

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

/// An event of the stream.
fn event(kind: &str, fields: Value) -> String {
    let mut data = fields;
    data["type"] = kind.into();
    data.to_string()
}

fn added(at: u64, item: Value) -> String {
    event(
        "response.output_item.added",
        json!({"output_index": at, "item": item}),
    )
}

fn done(at: u64, item: Value) -> String {
    event(
        "response.output_item.done",
        json!({"output_index": at, "item": item}),
    )
}

fn completed() -> String {
    event(
        "response.completed",
        json!({"response": {"status": "completed"}}),
    )
}

#[test]
fn reasoning_text_and_interleaved_calls() {
    let message = assemble(&gpt(), STREAM).expect("whole");
    assert_eq!(
        summary(&message),
        json!({
            "content": [
                {"type": "thinking", "thinking": "Two files – 看看 🙂\n\nThen answer.", "thinkingSignature": REASONING},
                {"type": "text", "text": "Ich prüfe zwei Dateien.", "textSignature": MESSAGE},
                {"type": "toolCall", "id": "call_01|fc_01", "name": "read", "arguments": {"path": "ü/a.rs"}},
                {"type": "toolCall", "id": "call_02|fc_02", "name": "ls", "arguments": {}},
            ],
            "stop": "toolUse",
            "tokens": [312, 89, 4000, 0, 40],
        })
    );
    let (events, _) = decode(&gpt(), &[STREAM.as_bytes()]);
    assert_eq!(
        events[0],
        agent::model::StreamEvent::Start {
            model: Some("gpt-5.2-2025-12-11".to_owned())
        }
    );
}

#[test]
fn every_cut_gives_the_same_and_no_end_is_no_reply() {
    let last = STREAM.rfind("data: ").expect("a last event");
    let whole_from = last + STREAM[last..].find('\n').expect("its line ends");
    assert_cuts(&gpt(), STREAM.as_bytes(), whole_from);
    let twice = format!("{STREAM}{STREAM}");
    assert_eq!(
        decode(&gpt(), &[twice.as_bytes()]),
        decode(&gpt(), &[STREAM.as_bytes()])
    );
}

proptest! {
    #[test]
    fn every_piece_size_gives_the_same_events(sizes in proptest::collection::vec(1usize..200, 1..400)) {
        let mut rest = STREAM.as_bytes();
        let mut pieces = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(decode(&gpt(), &pieces), decode(&gpt(), &[STREAM.as_bytes()]));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let stream = [b"data: ".as_slice(), &bytes].concat();
        let (_, outcome) = decode(&gpt(), &[&stream]);
        prop_assert!(outcome.is_err());
    }
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

#[test]
fn the_ways_to_end() {
    let message = json!({"type": "message", "id": "msg_1"});
    let text = |kind: &str| event(kind, json!({"output_index": 0, "delta": "hi"}));
    let spoken = [
        added(0, message.clone()),
        text("response.output_text.delta"),
    ];
    let incomplete = |details: Value| {
        event(
            "response.incomplete",
            json!({"response": {"status": "incomplete", "incomplete_details": details}}),
        )
    };
    for (last, expect) in [
        (completed(), StopReason::Stop),
        (
            incomplete(json!({"reason": "max_output_tokens"})),
            StopReason::Length,
        ),
        (
            incomplete(json!({"reason": "content_filter"})),
            StopReason::Refusal,
        ),
        (incomplete(Value::Null), StopReason::Length),
    ] {
        let stream = lines(&[spoken[0].clone(), spoken[1].clone(), last]);
        let message = assemble(&gpt(), &stream).expect("whole");
        assert_eq!(
            (message.stop_reason, message.text()),
            (expect, "hi".to_owned())
        );
    }
    let refusal = [
        added(0, message),
        text("response.refusal.delta"),
        completed(),
    ];
    let message = assemble(&gpt(), &lines(&refusal)).expect("whole");
    assert_eq!(message.stop_reason, StopReason::Refusal);
    let other = lines(&[incomplete(json!({"reason": "interrupted"}))]);
    assert_eq!(kind(&gpt(), &other), ModelErrorKind::Unavailable);
    assert_eq!(kind(&gpt(), &lines(&spoken)), ModelErrorKind::Truncated);
    assert_eq!(kind(&gpt(), ""), ModelErrorKind::Truncated);
    assert_eq!(kind(&gpt(), &lines(&["[DONE]"])), ModelErrorKind::Truncated);
}

/// A call that the output limit cut keeps its raw text and is never run.
#[test]
fn a_cut_call_is_invalid() {
    let item = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read"});
    let mut ended = item.clone();
    ended["status"] = "incomplete".into();
    ended["arguments"] = "{\"path\":".into();
    let delta = event(
        "response.function_call_arguments.delta",
        json!({"output_index": 0, "delta": "{\"path\":"}),
    );
    let incomplete = event(
        "response.incomplete",
        json!({"response": {"incomplete_details": {"reason": "max_output_tokens"}}}),
    );
    for data in [
        vec![added(0, item.clone()), delta.clone(), incomplete.clone()],
        vec![added(0, item.clone()), delta, done(0, ended), incomplete],
    ] {
        let message = assemble(&gpt(), &lines(&data)).expect("whole");
        let call = message.tool_calls().next().expect("a call");
        assert_eq!(message.stop_reason, StopReason::Length);
        assert_eq!(call.invalid_arguments.as_deref(), Some("{\"path\":"));
    }
}

/// Servers that send no deltas, no items, or raw reasoning.
#[test]
fn what_simpler_servers_leave_out() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "hi"}]});
    let call =
        json!({"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{\"a\":1}"});
    let expect = json!([
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "hi"},
        {"type": "toolCall", "id": "c", "name": "ls", "arguments": {"a": 1}},
    ]);
    let whole = json!({"status": "completed", "model": "m", "output": [reasoning, message, call]});
    let at_the_end = lines(&[event("response.completed", json!({"response": whole}))]);
    let by_items = lines(&[
        added(0, json!({"type": "reasoning"})),
        done(0, reasoning),
        done(1, message),
        added(2, json!({"type": "web_search_call"})),
        event(
            "response.web_search_call.searching",
            json!({"output_index": 2}),
        ),
        added(
            3,
            json!({"type": "function_call", "call_id": "c", "name": "ls"}),
        ),
        event(
            "response.function_call_arguments.done",
            json!({"output_index": 3, "arguments": "{\"a\":1}"}),
        ),
        done(3, call),
        event("response.new.delta", json!({"delta": {"not": "text"}})),
        completed(),
    ]);
    for stream in [at_the_end, by_items] {
        let message = assemble(&gpt(), &stream).expect("whole");
        assert_eq!(summary(&message)["content"], expect);
        assert_eq!(message.stop_reason, StopReason::ToolUse);
    }
    let message = assemble_document(&gpt(), &whole.to_string()).expect("a document");
    assert_eq!(summary(&message)["content"], expect);
}

#[test]
fn failures_inside_a_stream_are_typed_at_once() {
    use ModelErrorKind as K;
    let failed = |error: Value| {
        event(
            "response.failed",
            json!({"response": {"status": "failed", "error": error}}),
        )
    };
    for (data, expect, code) in [
        (
            failed(json!({"code": "server_error", "message": "sorry"})),
            K::Unavailable,
            Some("server_error"),
        ),
        (
            failed(
                json!({"code": "rate_limit_exceeded", "message": "Rate limit reached for gpt-5"}),
            ),
            K::RateLimited,
            Some("rate_limit_exceeded"),
        ),
        (
            failed(
                json!({"code": "insufficient_quota", "message": "You exceeded your current quota"}),
            ),
            K::Quota,
            Some("insufficient_quota"),
        ),
        (
            failed(
                json!({"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}),
            ),
            K::ContextOverflow,
            Some("context_length_exceeded"),
        ),
        (
            failed(
                json!({"code": "invalid_prompt", "message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy."}),
            ),
            K::ContentFilter,
            Some("invalid_prompt"),
        ),
        (
            failed(json!({"code": "invalid_image_format", "message": "no"})),
            K::InvalidRequest,
            Some("invalid_image_format"),
        ),
        (failed(Value::Null), K::Unavailable, None),
        (
            event("response.cancelled", json!({"response": {}})),
            K::Unavailable,
            None,
        ),
        (
            event(
                "error",
                json!({"code": "server_is_overloaded", "message": "Our servers are currently overloaded."}),
            ),
            K::Overloaded,
            Some("server_is_overloaded"),
        ),
        (
            event(
                "error",
                json!({"error": {"type": "invalid_request_error", "message": "no"}}),
            ),
            K::InvalidRequest,
            Some("invalid_request_error"),
        ),
        (
            json!({"error": {"message": "Upstream timed out", "code": 504}}).to_string(),
            K::Unavailable,
            None,
        ),
    ] {
        let error = assemble(&gpt(), &lines(&[&data])).expect_err("an error");
        assert_eq!(
            (error.kind, error.code.as_deref()),
            (expect, code),
            "{data}"
        );
    }
    assert_eq!(kind(&gpt(), "event: error\ndata: down\n\n"), K::Unavailable);
    assert_eq!(kind(&gpt(), &lines(&["{broken"])), K::BadResponse);
    let error = assemble_document(&gpt(), r#"{"error":{"message":"rate limit","code":429}}"#);
    assert_eq!(error.expect_err("an error").kind, K::RateLimited);
    let error = assemble_document(&gpt(), r#"{"hello":1}"#).expect_err("no reply");
    assert_eq!(error.kind, K::BadResponse);
}

#[test]
fn events_out_of_order_are_refused() {
    let item = json!({"type": "message", "id": "m"});
    let start = added(0, item.clone());
    let delta = event(
        "response.output_text.delta",
        json!({"output_index": 0, "delta": "a"}),
    );
    let wrong = event(
        "response.function_call_arguments.delta",
        json!({"output_index": 0, "delta": "a"}),
    );
    for data in [
        vec![delta.clone()],
        vec![start.clone(), start.clone()],
        vec![start.clone(), wrong],
        vec![start.clone(), done(0, item), delta],
        vec![event("response.output_item.added", json!({}))],
        vec![
            start,
            event("response.output_text.delta", json!({"output_index": 0})),
        ],
    ] {
        assert_eq!(
            kind(&gpt(), &lines(&data)),
            ModelErrorKind::BadResponse,
            "{data:?}"
        );
    }
}

#[tokio::test]
async fn over_http() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/responses"))
        .and(header("authorization", "Bearer sk-test"))
        .and(body_partial_json(
            json!({"model": "gpt-5.2", "store": false}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_raw(STREAM, "text/event-stream"))
        .expect(1)
        .mount(&server)
        .await;
    let model = resolve("gpt-5.2", Some(&format!("{}/v1", server.uri()))).expect("known");
    let options = ClientOptions::new(Activity::new());
    let client = Client::http(model, Some("sk-test".to_owned()), options).expect("a client");
    let mut reply = client.send(&request(vec![user("hi")])).await.expect("open");
    let mut assembler = Assembler::new(client.model());
    while let Some(event) = reply.next().await.expect("a stream") {
        assembler.push(event);
    }
    let message = assembler.finish().expect("whole");
    assert_eq!(message.tool_calls().count(), 2);
    // 312 input, 89 output and 4,000 read.
    let dollars = (312.0 * 1.75 + 89.0 * 14.0 + 4000.0 * 0.175) / 1e6;
    assert!((message.usage.cost.total - dollars).abs() < 1e-12);
}
