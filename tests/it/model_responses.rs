//! The responses dialect: streams and errors.

use agent::clock::Activity;
use agent::message::StopReason;
use agent::model::{Assembler, Client, ClientOptions, Model, ModelErrorKind, StreamEvent, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::models::{model, request, user};
use crate::support::streams::{
    assemble, assemble_document, assert_cuts, decode, kind, lines, pieces, summary,
};

const STREAM: &str = include_str!("../fixtures/streams/responses_tools.sse");
/// The reasoning of the stream as it goes back.
const REASONING: &str = r#"{"id":"rs_01","type":"reasoning","encrypted_content":"gAAAAAB-final","summary":[{"type":"summary_text","text":"Two files – 看看 🙂"},{"type":"summary_text","text":"Then answer."}]}"#;
const MESSAGE: &str = r#"{"v":1,"id":"msg_01","phase":"commentary"}"#;
fn gpt() -> Model {
    model("openai/gpt-5.2")
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
        StreamEvent::Start {
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
        let pieces = pieces(STREAM.as_bytes(), &sizes);
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

/// llama.cpp numbers no item: their ids tell them apart, and the calls begin
/// before the text has ended.
#[test]
fn items_without_numbers_are_told_apart_by_their_ids() {
    let message = json!({"type": "message", "id": "msg_1"});
    let call = |id: &str| json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": "ls"});
    let added = |item: &Value| event("response.output_item.added", json!({"item": item}));
    let done = |item: &Value| event("response.output_item.done", json!({"item": item}));
    let delta = |kind: &str, id: &str, delta: &str| {
        let kind = format!("response.{kind}.delta");
        event(&kind, json!({"item_id": id, "delta": delta}))
    };
    let stream = lines(&[
        added(&message),
        delta("output_text", "msg_1", "Let me "),
        added(&call("a")),
        delta("function_call_arguments", "fc_a", "{\"path\":\"a\"}"),
        added(&call("b")),
        delta("function_call_arguments", "fc_b", "{\"path\":\"b\"}"),
        delta("output_text", "msg_1", "look."),
        done(&message),
        done(&call("a")),
        done(&call("b")),
        completed(),
    ]);
    let reply = assemble(&gpt(), &stream).expect("whole");
    assert_eq!(reply.text(), "Let me look.");
    let calls: Vec<_> = reply.tool_calls().map(|call| &call.arguments).collect();
    assert_eq!(calls, [&json!({"path": "a"}), &json!({"path": "b"})]);
    // Neither number nor id: one after the other.
    let bare = json!({"type": "message"});
    let text = event("response.output_text.delta", json!({"delta": "hi"}));
    let stream = lines(&[
        added(&bare),
        text,
        done(&bare),
        added(&call("c")),
        completed(),
    ]);
    let reply = assemble(&gpt(), &stream).expect("whole");
    assert_eq!(
        (reply.text().as_str(), reply.tool_calls().count()),
        ("hi", 1)
    );
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

/// The kind and the code of the error that one event is.
fn typed(data: &str) -> (ModelErrorKind, Option<String>) {
    let error = assemble(&gpt(), &lines(&[data])).expect_err("an error");
    (error.kind, error.code)
}

#[test]
fn a_failed_response_is_typed_at_once() {
    use ModelErrorKind as K;
    for (code, message, expect) in [
        ("server_error", "sorry", K::Unavailable),
        (
            "rate_limit_exceeded",
            "Rate limit reached for gpt-5",
            K::RateLimited,
        ),
        (
            "insufficient_quota",
            "You exceeded your current quota",
            K::Quota,
        ),
        (
            "context_length_exceeded",
            "Your input exceeds the context window of this model.",
            K::ContextOverflow,
        ),
        (
            "invalid_prompt",
            "Invalid prompt: your prompt was flagged as potentially violating our usage policy.",
            K::ContentFilter,
        ),
        ("invalid_image_format", "no", K::InvalidRequest),
    ] {
        let error = json!({"code": code, "message": message});
        let response = json!({"response": {"status": "failed", "error": error}});
        let data = event("response.failed", response);
        assert_eq!(typed(&data), (expect, Some(code.to_owned())), "{data}");
    }
    let silent = event("response.failed", json!({"response": {"error": null}}));
    assert_eq!(typed(&silent), (K::Unavailable, None));
    let cancelled = event("response.cancelled", json!({"response": {}}));
    assert_eq!(typed(&cancelled), (K::Unavailable, None));
}

#[test]
fn errors_inside_a_200_are_typed() {
    use ModelErrorKind as K;
    let flat = event(
        "error",
        json!({"code": "server_is_overloaded", "message": "Our servers are currently overloaded."}),
    );
    let expect = (K::Overloaded, Some("server_is_overloaded".to_owned()));
    assert_eq!(typed(&flat), expect);
    let nested = json!({"error": {"type": "invalid_request_error", "message": "no"}});
    let expect = (K::InvalidRequest, Some("invalid_request_error".to_owned()));
    assert_eq!(typed(&event("error", nested)), expect);
    let bare = json!({"error": {"message": "Upstream timed out", "code": 504}}).to_string();
    assert_eq!(typed(&bare), (K::Unavailable, None));
    assert_eq!(kind(&gpt(), "event: error\ndata: down\n\n"), K::Unavailable);
    assert_eq!(kind(&gpt(), &lines(&["{broken"])), K::BadResponse);
    let error = assemble_document(&gpt(), r#"{"error":{"message":"rate limit","code":429}}"#);
    assert_eq!(error.expect_err("an error").kind, K::RateLimited);
    let error = assemble_document(&gpt(), r#"{"hello":1}"#).expect_err("no reply");
    assert_eq!(error.kind, K::BadResponse);
    // Half of a surrogate pair costs only the character.
    let message = json!({"type": "message", "content": [{"type": "output_text", "text": "a"}]});
    let half = done(0, message).replace("\"a\"", r#""a\ud83d""#);
    let message = assemble(&gpt(), &lines(&[half, completed()])).expect("whole");
    assert_eq!(message.text(), "a\u{fffd}");
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
