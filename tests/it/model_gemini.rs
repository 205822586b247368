//! Google's dialect: streams and errors.

use agent::clock::Activity;
use agent::message::{AssistantMessage, StopReason};
use agent::model::{Assembler, Client, ClientOptions, Model, ModelErrorKind, http_error, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::models::{model, request, user};
use crate::support::streams::{
    assemble, assemble_document, assert_cuts, decode, kind, lines, pieces, summary,
};

const STREAM: &str = include_str!("../fixtures/streams/gemini_tools.sse");
fn gemini() -> Model {
    model("google/gemini-3-flash-preview")
}

/// A chunk with these parts, and perhaps a reason to finish.
fn chunk(parts: Value, finish: Option<&str>) -> String {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    json!({"candidates": [candidate]}).to_string()
}

/// The message of the stream, with the ids that it lacked taken out.
fn recorded() -> (AssistantMessage, Vec<String>) {
    let message = assemble(&gemini(), STREAM).expect("whole");
    let ids = message.tool_calls().map(|call| call.id.clone()).collect();
    (message, ids)
}

#[test]
fn thoughts_text_and_calls_without_ids() {
    let (message, ids) = recorded();
    assert_ne!(ids[0], ids[1]);
    assert!(ids.iter().all(|id| id.starts_with("call_")), "{ids:?}");
    assert_eq!(
        summary(&message),
        json!({
            "content": [
                {"type": "thinking", "thinking": "Two files – 看看 🙂"},
                {"type": "text", "text": "Ich prüfe zwei Dateien."},
                {"type": "toolCall", "id": ids[0], "name": "read", "arguments": {"path": "ü/a.rs"}, "thoughtSignature": "EqoBCkgI"},
                {"type": "toolCall", "id": ids[1], "name": "ls", "arguments": {}},
                {"type": "text", "text": "", "textSignature": "AAAA"},
            ],
            "stop": "toolUse",
            "tokens": [312, 89, 4000, 0, 40],
        })
    );
}

#[test]
fn every_cut_gives_the_same_and_no_end_is_no_reply() {
    let last = STREAM.rfind("data: ").expect("a last event");
    let whole_from = last + STREAM[last..].find('\r').expect("its line ends");
    assert_cuts(&gemini(), STREAM.as_bytes(), whole_from);
}

proptest! {
    #[test]
    fn every_piece_size_gives_the_same_events(sizes in proptest::collection::vec(1usize..200, 1..400)) {
        let pieces = pieces(STREAM.as_bytes(), &sizes);
        prop_assert_eq!(decode(&gemini(), &pieces), decode(&gemini(), &[STREAM.as_bytes()]));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let stream = [b"data: ".as_slice(), &bytes].concat();
        let (_, outcome) = decode(&gemini(), &[&stream]);
        prop_assert!(outcome.is_err());
    }
}

#[test]
fn reasons_to_finish() {
    let text = json!([{"text": "hi"}]);
    for (reason, expect) in [
        ("STOP", StopReason::Stop),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("RECITATION", StopReason::Refusal),
        ("ONE_OF_TOMORROW", StopReason::Stop),
    ] {
        let message = assemble(&gemini(), &lines(&[chunk(text.clone(), Some(reason))]));
        assert_eq!(message.expect("whole").stop_reason, expect, "{reason}");
    }
    for (reason, expect, retryable) in [
        ("MALFORMED_FUNCTION_CALL", ModelErrorKind::BadResponse, true),
        ("UNEXPECTED_TOOL_CALL", ModelErrorKind::BadResponse, true),
        (
            "MISSING_THOUGHT_SIGNATURE",
            ModelErrorKind::InvalidRequest,
            false,
        ),
        ("OTHER", ModelErrorKind::Unavailable, true),
        ("FINISH_REASON_UNSPECIFIED", ModelErrorKind::Truncated, true),
    ] {
        let error = assemble(&gemini(), &lines(&[chunk(text.clone(), Some(reason))]));
        let error = error.expect_err("an error");
        assert_eq!(
            (error.kind, error.is_retryable()),
            (expect, retryable),
            "{reason}"
        );
    }
    let malformed = json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "Malformed function call: read("}]});
    let error = assemble(&gemini(), &lines(&[malformed.to_string()])).expect_err("an error");
    assert_eq!(error.message, "Malformed function call: read(");
    assert_eq!(error.code.as_deref(), Some("MALFORMED_FUNCTION_CALL"));
    // Some servers give a reason with every chunk, and text after it.
    let twice = [chunk(text.clone(), Some("STOP")), chunk(text, Some("STOP"))];
    assert_eq!(
        assemble(&gemini(), &lines(&twice)).expect("whole").text(),
        "hihi"
    );
    // A count that is cut off behind the end costs only the count.
    let cut = [twice[0].clone(), "{\"usageMeta".to_owned()];
    assert_eq!(
        assemble(&gemini(), &lines(&cut)).expect("whole").text(),
        "hi"
    );
}

#[test]
fn parts_in_odd_shapes() {
    let parts = |parts: Value| {
        let stream = lines(&[chunk(parts, None), chunk(json!([]), Some("STOP"))]);
        let mut sum = summary(&assemble(&gemini(), &stream).expect("whole"));
        sum["content"].take()
    };
    assert_eq!(
        parts(json!([{"text": "a"}, {"text": "b", "thoughtSignature": "S1"}, {"text": "c"}])),
        json!([{"type": "text", "text": "ab", "textSignature": "S1"}, {"type": "text", "text": "c"}])
    );
    assert_eq!(
        parts(
            json!([{"text": "a", "thought": true, "thoughtSignature": "S"}, {"thoughtSignature": "T"}])
        ),
        json!([
            {"type": "thinking", "thinking": "a", "thinkingSignature": "S"},
            {"type": "text", "text": "", "textSignature": "T"},
        ])
    );
    assert_eq!(
        parts(json!([{"text": ""}, {"executableCode": {"code": "x"}}, {"text": "a"}])),
        json!([{"type": "text", "text": "a"}])
    );
    let calls = parts(json!([
        {"functionCall": {"id": "a", "name": "ls"}},
        {"functionCall": {"id": "b", "name": "ls", "args": null}},
        {"functionCall": {"id": "c", "name": "ls", "args": [1]}},
    ]));
    assert_eq!(calls[0]["arguments"], json!({}));
    assert_eq!(calls[1]["invalidArguments"], json!(null));
    assert_eq!(calls[2]["invalidArguments"], "[1]");
}

#[test]
fn errors_inside_a_200() {
    use ModelErrorKind as K;
    let blocked = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 12}});
    let error = assemble(&gemini(), &lines(&[blocked.to_string()])).expect_err("blocked");
    assert_eq!(
        (error.kind, error.is_retryable()),
        (K::ContentFilter, false)
    );
    assert_eq!(error.code.as_deref(), Some("PROHIBITED_CONTENT"));
    for (code, status, expect) in [
        (503, "UNAVAILABLE", K::Overloaded),
        (500, "INTERNAL", K::Unavailable),
        (429, "RESOURCE_EXHAUSTED", K::RateLimited),
    ] {
        let message = if code == 503 {
            "The model is overloaded."
        } else {
            "no"
        };
        let error = json!({"error": {"code": code, "message": message, "status": status}});
        assert_eq!(
            kind(&gemini(), &lines(&[error.to_string()])),
            expect,
            "{status}"
        );
    }
    assert_eq!(kind(&gemini(), &lines(&["{broken"])), K::BadResponse);
    assert_eq!(
        kind(&gemini(), &lines(&[chunk(json!([{"text": "a"}]), None)])),
        K::Truncated
    );
    assert_eq!(kind(&gemini(), ""), K::Truncated);
    // Half of a surrogate pair costs only the character.
    let half = chunk(json!([{"text": "a"}]), Some("STOP")).replace("\"a\"", r#""a\ud83d""#);
    let message = assemble(&gemini(), &lines(&[half])).expect("whole");
    assert_eq!(message.text(), "a\u{fffd}");
    // Without `alt=sse` the answer is a list of chunks.
    let list = format!(
        "[{},\n{}]",
        chunk(json!([{"text": "a"}]), None),
        chunk(json!([{"text": "b"}]), Some("STOP"))
    );
    assert_eq!(
        assemble_document(&gemini(), &list).expect("whole").text(),
        "ab"
    );
    let refused =
        r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#;
    assert_eq!(
        assemble_document(&gemini(), refused)
            .expect_err("an error")
            .kind,
        K::Overloaded
    );
    assert!(assemble_document(&gemini(), r#"{"error":{"code":400,"message":"x"}}"#).is_err());
}

#[test]
fn refused_requests_are_typed() {
    use ModelErrorKind as K;
    let quota = |id: &str, rest: &str| {
        json!({"error": {
            "code": 429,
            "message": format!("You exceeded your current quota, please check your plan and billing details.{rest}"),
            "status": "RESOURCE_EXHAUSTED",
            "details": [
                {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": id}]},
                {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},
            ],
        }})
    };
    let minute = quota(
        "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
        "\nPlease retry in 34.5s.",
    );
    let error = http_error(429, &minute.to_string());
    assert_eq!((error.kind, error.is_retryable()), (K::RateLimited, true));
    assert_eq!(
        error.retry_after,
        Some(std::time::Duration::from_millis(34_500))
    );
    let day = quota(
        "GenerateRequestsPerDayPerProjectPerModel-FreeTier",
        "\nPlease retry in 34.5s.",
    );
    let error = http_error(429, &day.to_string());
    assert_eq!((error.kind, error.retry_after), (K::Quota, None));
}

#[test]
fn other_refusals_are_typed() {
    use ModelErrorKind as K;
    for (status, code, message, expect) in [
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            K::Auth,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
            K::ContextOverflow,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "Function call `read` in the 2. content block is missing a `thought_signature`.",
            K::InvalidRequest,
        ),
        (403, "PERMISSION_DENIED", "no", K::Auth),
        (
            404,
            "NOT_FOUND",
            "models/x is not found for API version v1beta",
            K::InvalidRequest,
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "Resource has been exhausted (e.g. check quota).",
            K::RateLimited,
        ),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "Quota exceeded for metric: x, limit: 0, model: y. You exceeded your current quota. Please retry in 3s.",
            K::Quota,
        ),
        (
            503,
            "UNAVAILABLE",
            "The model is overloaded. Please try again later.",
            K::Overloaded,
        ),
        (504, "DEADLINE_EXCEEDED", "late", K::Unavailable),
    ] {
        let body = json!({"error": {"code": status, "message": message, "status": code}});
        let error = http_error(status, &body.to_string());
        assert_eq!(
            (error.kind, error.code.as_deref()),
            (expect, Some(code)),
            "{message}"
        );
    }
}

#[tokio::test]
async fn over_http() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path(
            "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
        ))
        .and(query_param("alt", "sse"))
        .and(header("x-goog-api-key", "g-test"))
        .respond_with(ResponseTemplate::new(200).set_body_raw(STREAM, "text/event-stream"))
        .expect(1)
        .mount(&server)
        .await;
    let base = format!("{}/v1beta", server.uri());
    let model = resolve("gemini-2.5-flash", Some(&base)).expect("known");
    let options = ClientOptions::new(Activity::new());
    let client = Client::http(model, Some("g-test".to_owned()), options).expect("a client");
    let mut reply = client.send(&request(vec![user("hi")])).await.expect("open");
    let mut assembler = Assembler::new(client.model());
    while let Some(event) = reply.next().await.expect("a stream") {
        assembler.push(event);
    }
    let message = assembler.finish().expect("whole");
    assert_eq!(message.tool_calls().count(), 2);
    // 312 input, 89 output and 4,000 read.
    let dollars = (312.0 * 0.3 + 89.0 * 2.5 + 4000.0 * 0.03) / 1e6;
    assert!((message.usage.cost.total - dollars).abs() < 1e-12);
}
