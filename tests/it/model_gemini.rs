//! Google's dialect: requests, streams, errors.

use agent::clock::Activity;
use agent::message::{Content, Image, Message, StopReason, ToolResult};
use agent::model::{
    Assembler, Client, ClientOptions, Model, ModelErrorKind, Request, ThinkingLevel, http_error,
    resolve,
};
use proptest::prelude::*;
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::models::{call, model, reply, request, result, thinking, user};
use crate::support::streams::{
    assemble, assemble_document, assert_cuts, assert_grows, body, decode, kind, lines, summary,
};

const STREAM: &str = include_str!("../fixtures/streams/gemini_tools.sse");

fn gemini() -> Model {
    model("google/gemini-3-flash-preview")
}

fn older() -> Model {
    model("google/gemini-2.5-flash")
}

fn image_result(id: &str) -> Message {
    Message::ToolResult(ToolResult {
        tool_call_id: id.to_owned(),
        tool_name: "read".to_owned(),
        content: vec![Content::Image(Image {
            data: "AAAA".to_owned(),
            mime_type: "image/png".to_owned(),
        })],
        details: None,
        is_error: true,
        timestamp: 0,
    })
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
fn recorded() -> (agent::message::AssistantMessage, Vec<String>) {
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
fn the_reply_goes_back_as_it_came() {
    let (answer, ids) = recorded();
    let mut sent = body(
        &gemini(),
        &request(vec![
            user("go"),
            Message::Assistant(answer),
            result(&ids[1], "second"),
            image_result(&ids[0]),
            user("and now?"),
        ]),
    );
    let image = json!({"inlineData": {"mimeType": "image/png", "data": "AAAA"}});
    assert_eq!(
        sent["contents"].take(),
        json!([
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [
                {"text": "Ich prüfe zwei Dateien."},
                {"functionCall": {"name": "read", "args": {"path": "ü/a.rs"}}, "thoughtSignature": "EqoBCkgI"},
                {"functionCall": {"name": "ls", "args": {}}},
                {"text": "", "thoughtSignature": "AAAA"},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"name": "read", "response": {"error": "(an image, attached)"}, "parts": [image]}},
                {"functionResponse": {"name": "ls", "response": {"output": "second"}}},
            ]},
            {"role": "user", "parts": [{"text": "and now?"}]},
        ])
    );
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    assert_eq!(
        sent,
        json!({
            "systemInstruction": {"parts": [{"text": "You are terse."}]},
            "tools": [{"functionDeclarations": [
                {"name": "bash", "description": "Does bash.", "parametersJsonSchema": schema},
                {"name": "read", "description": "Does read.", "parametersJsonSchema": schema},
            ]}],
            "generationConfig": {"maxOutputTokens": 8000, "thinkingConfig": {"includeThoughts": true, "thinkingLevel": "minimal"}},
            "contents": null,
        })
    );
}

#[test]
fn ids_that_were_given_go_back() {
    let part = json!([{"functionCall": {"id": "8f2b1a3c", "name": "ls", "args": {}}}]);
    let stream = lines(&[chunk(part, Some("STOP"))]);
    let answer = assemble(&gemini(), &stream).expect("whole");
    let history = vec![
        user("go"),
        Message::Assistant(answer),
        result("8f2b1a3c", "x"),
    ];
    let ids = |model: &Model| {
        let sent = body(model, &request(history.clone()));
        json!([
            sent["contents"][1]["parts"][0]["functionCall"]["id"],
            sent["contents"][2]["parts"][0]["functionResponse"]["id"],
        ])
    };
    assert_eq!(ids(&gemini()), json!(["8f2b1a3c", "8f2b1a3c"]));
    // To another model they mean nothing.
    assert_eq!(ids(&older()), json!([null, null]));
}

#[test]
fn thinking_levels_and_budgets() {
    use ThinkingLevel as L;
    let check = |name: &str, level: L, config: Value, most: u64| {
        let mut asked = request(vec![user("go")]);
        asked.thinking = level;
        asked.temperature = Some(0.5);
        let sent = body(&model(name), &asked);
        let sent = &sent["generationConfig"];
        assert_eq!(sent["thinkingConfig"], config, "{name} {level:?}");
        assert_eq!(sent["maxOutputTokens"], most, "{name} {level:?}");
        assert_eq!(sent["temperature"], 0.5);
    };
    let budget = |tokens: u64| json!({"includeThoughts": true, "thinkingBudget": tokens});
    let named = |name: &str| json!({"includeThoughts": true, "thinkingLevel": name});
    check(
        "gemini-2.5-flash",
        L::Off,
        json!({"thinkingBudget": 0}),
        8000,
    );
    check("gemini-2.5-flash", L::Minimal, budget(128), 8128);
    check("gemini-2.5-flash", L::Medium, budget(8192), 16_192);
    check("gemini-2.5-flash", L::Max, budget(24_576), 32_576);
    check("gemini-2.5-flash-lite", L::Minimal, budget(512), 8512);
    check(
        "gemini-2.5-pro",
        L::Off,
        json!({"thinkingBudget": 128}),
        8128,
    );
    check("gemini-2.5-pro", L::High, budget(32_768), 40_768);
    check("gemini-3-flash-preview", L::Off, named("minimal"), 8000);
    check("gemini-3-flash-preview", L::Max, named("high"), 8000);
    check("gemini-3.1-pro-preview", L::Minimal, named("low"), 8000);
    check("google/gemma-4-31b-it", L::Medium, named("HIGH"), 8000);
    check(
        "deep-research-preview-04-2026",
        L::High,
        json!({"includeThoughts": true}),
        8000,
    );
    check("deep-research-preview-04-2026", L::Off, json!(null), 8000);
}

#[test]
fn an_endpoint_of_ones_own_is_asked_for_nothing_special() {
    let own = resolve(
        "google-generative-ai/any",
        Some("http://127.0.0.1:1/v1beta"),
    )
    .expect("ad hoc");
    let mut plain = request(vec![user("go")]);
    plain.tools = std::sync::Arc::new([]);
    plain.system = String::new();
    assert_eq!(
        body(&own, &plain),
        json!({
            "generationConfig": {"maxOutputTokens": 8000},
            "contents": [{"role": "user", "parts": [{"text": "go"}]}],
        })
    );
}

#[test]
fn replies_of_other_models_are_made_to_fit() {
    let sonnet = model("claude-sonnet-4-5");
    let history = vec![
        user("go"),
        reply(
            &sonnet,
            vec![
                thinking("foreign thought", Some("SIG"), false),
                thinking("", Some("secret"), true),
                call("toolu_1", "read", json!({"a": 1})),
                call("toolu_2", "ls", json!({})),
            ],
        ),
        result("toolu_2", "fine"),
    ];
    let contents = |model: &Model| body(model, &request(history.clone()))["contents"].take();
    let answers = json!({"role": "user", "parts": [
        {"functionResponse": {"name": "read", "response": {"error": "no result: the call was not completed"}}},
        {"functionResponse": {"name": "ls", "response": {"output": "fine"}}},
    ]});
    let sent = contents(&gemini());
    // The first of the calls must be signed; this is what Google asks for then.
    assert_eq!(
        sent[1]["parts"],
        json!([
            {"text": "foreign thought"},
            {"functionCall": {"name": "read", "args": {"a": 1}}, "thoughtSignature": "skip_thought_signature_validator"},
            {"functionCall": {"name": "ls", "args": {}}},
        ])
    );
    assert_eq!(sent[2], answers);
    let sent = contents(&older());
    assert_eq!(
        sent[1]["parts"][1],
        json!({"functionCall": {"name": "read", "args": {"a": 1}}})
    );
    assert_eq!(sent[2], answers);
    // The signatures of this model mean nothing to others.
    let (answer, ids) = recorded();
    let own = vec![user("go"), Message::Assistant(answer), result(&ids[0], "x")];
    for name in [
        "claude-sonnet-4-5",
        "gpt-5.2",
        "gemini-2.5-flash",
        "groq/openai/gpt-oss-120b",
    ] {
        let text = body(&model(name), &request(own.clone())).to_string();
        assert!(
            !text.contains("EqoBCkgI") && !text.contains("AAAA"),
            "{text}"
        );
        assert!(!text.contains("\"text\":\"\""), "{text}");
        assert!(text.contains("Two files"), "{text}");
    }
}

#[test]
fn signed_thoughts_and_images() {
    let own = vec![
        user("go"),
        reply(
            &older(),
            vec![
                thinking("signed", Some("SIG"), false),
                thinking("a summary", None, false),
                call("x1", "read", json!({})),
            ],
        ),
        image_result("x1"),
    ];
    let sent = body(&older(), &request(own));
    assert_eq!(
        sent["contents"][1]["parts"],
        json!([
            {"text": "signed", "thought": true, "thoughtSignature": "SIG"},
            {"functionCall": {"id": "x1", "name": "read", "args": {}}},
        ])
    );
    assert_eq!(
        sent["contents"][2]["parts"],
        json!([{"functionResponse": {"id": "x1", "name": "read", "response": {"error": "(an image, attached below)"}}}])
    );
    assert_eq!(
        sent["contents"][3]["parts"],
        json!([
            {"text": "Images from the tool results above:"},
            {"inlineData": {"mimeType": "image/png", "data": "AAAA"}},
        ])
    );
    // A reply of nothing but thoughts leaves nothing to send.
    let empty = reply(&older(), vec![thinking("a summary", None, false)]);
    let sent = body(&older(), &request(vec![user("go"), empty, user("more")]));
    assert_eq!(sent["contents"].as_array().map(Vec::len), Some(2));
}

#[test]
fn bytes_once_sent_stay_the_same() {
    for model in [gemini(), older()] {
        let mut history = vec![user("go")];
        let mut requests: Vec<Request> = Vec::new();
        for step in 0..5 {
            requests.push(request(history.clone()));
            let id = format!("id{step}");
            history.push(reply(
                &model,
                vec![
                    thinking("t", Some("s"), false),
                    call(&id, "read", json!({"z": step, "a": [1.5, "ü"]})),
                ],
            ));
            history.push(result(&id, "line\n\"quoted\" \u{1}"));
        }
        assert_grows(&model, &requests);
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
