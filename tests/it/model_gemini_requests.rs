//! Google's dialect: requests.

use agent::message::{AssistantMessage, Content, Image, Message, ToolResult};
use agent::model::{Model, Request, ThinkingLevel, resolve};
use serde_json::{Value, json};

use crate::support::models::{call, model, reply, request, result, thinking, user};
use crate::support::streams::{assemble, assert_grows, body, lines};

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
fn recorded() -> (AssistantMessage, Vec<String>) {
    let message = assemble(&gemini(), STREAM).expect("whole");
    let ids = message.tool_calls().map(|call| call.id.clone()).collect();
    (message, ids)
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
    // A reply of nothing but thoughts leaves nothing to send, and one who speaks
    // twice speaks once.
    let empty = reply(&older(), vec![thinking("a summary", None, false)]);
    let sent = body(&older(), &request(vec![user("go"), empty, user("more")]));
    assert_eq!(
        sent["contents"],
        json!([{"role": "user", "parts": [{"text": "go"}, {"text": "more"}]}])
    );
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
