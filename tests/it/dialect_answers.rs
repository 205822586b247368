//! Answers over HTTP: what is sent, and every form in which a whole reply comes.

use serde_json::json;
use wiremock::matchers::{body_partial_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::cli::Cli;
use crate::support::dialect::{ANTHROPIC, BOTH, CHAT, KEY, retries, told};
use crate::support::reply::{Reply, sse, status};
use crate::support::server::ModelServer;
use crate::support::{anthropic, chat};

#[test]
fn one_prompt_gives_one_answer() {
    for dialect in BOTH {
        let server = ModelServer::start([(dialect.text)("All done: 42.")]);
        let output = Cli::new()
            .args(["-p", "What is it?", "--quiet", "--model", dialect.model])
            .args(["--base-url", &server.url()])
            .env(dialect.key_env, KEY)
            .run();
        assert_eq!(output.stdout, "All done: 42.\n");
        let requests = server.finish();
        let (name, prefix) = dialect.key_header;
        let request = &requests[0];
        assert_eq!(requests.len(), 1);
        assert_eq!(request.path, dialect.path);
        assert_eq!(request.header(name), Some(&*format!("{prefix}{KEY}")));
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.body["model"], dialect.id);
        let first = &dialect.messages(request)[0];
        assert!(first.to_string().contains("What is it?"), "{first}");
        let result = output.result();
        assert_eq!(result["reason"], "success");
        assert_eq!(result["finalText"], "All done: 42.");
        assert_eq!(result["usage"]["input"], 100);
        assert_eq!(result["usage"]["output"], 10);
        assert_eq!(result["turns"], 1);
    }
}

#[test]
fn the_price_comes_from_the_catalog_or_is_unknown() {
    let server = ModelServer::start([(ANTHROPIC.text)("Done.")]);
    let result = ANTHROPIC.task(&server.url(), "").run().result();
    // 100 in at 2 and 10 out at 10 dollars a million.
    let cost = result["costUsd"].as_f64().unwrap();
    assert!((cost - 0.0003).abs() < 1e-12, "{cost}");
    server.finish();

    let server = ModelServer::start([(CHAT.text)("Done.")]);
    let result = CHAT.task(&server.url(), "").run().result();
    assert_eq!(result["costUsd"], json!(null));
    assert_eq!(result["warnings"][0]["code"], "unknown_price");
    server.finish();
}

#[tokio::test]
async fn a_mocked_provider_is_asked_once() {
    let server = MockServer::start().await;
    let frames = [
        anthropic::event(
            "message_start",
            &json!({"message": {"model": "claude-sonnet-5", "usage": {"input_tokens": 7, "output_tokens": 1,
                "cache_read_input_tokens": 1000, "cache_creation_input_tokens": 200}}}),
        ),
        anthropic::event(
            "content_block_start",
            &json!({"index": 0, "content_block": {"type": "text", "text": ""}}),
        ),
        anthropic::event(
            "content_block_delta",
            &json!({"index": 0, "delta": {"type": "text_delta", "text": "Hello."}}),
        ),
        anthropic::event("content_block_stop", &json!({"index": 0})),
        anthropic::event(
            "message_delta",
            &json!({"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
        ),
        anthropic::event("message_stop", &json!({})),
    ];
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", KEY))
        .and(header("anthropic-version", "2023-06-01"))
        .and(body_partial_json(
            json!({"model": "claude-sonnet-5", "stream": true}),
        ))
        .respond_with(ResponseTemplate::new(200).set_body_raw(frames.concat(), "text/event-stream"))
        .expect(1)
        .mount(&server)
        .await;
    // The address may come from the environment, too.
    let output = Cli::new()
        .args([
            "-p",
            "Hi",
            "--quiet",
            "--model",
            "anthropic/claude-sonnet-5",
        ])
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", server.uri())
        .run();
    assert_eq!(output.stdout, "Hello.\n");
    let usage = &output.result()["usage"];
    let counts = ["input", "output", "cacheRead", "cacheWrite"].map(|field| &usage[field]);
    assert_eq!(counts, [&json!(7), &json!(5), &json!(1000), &json!(200)]);
}

#[tokio::test]
async fn a_mocked_chat_endpoint_is_asked_once() {
    let server = MockServer::start().await;
    let body = json!({"id": "x", "model": "local", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "Hello."}}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}});
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {KEY}")))
        .and(body_partial_json(
            json!({"model": "local", "stream_options": {"include_usage": true}}),
        ))
        // A whole document although a stream was asked for.
        .respond_with(ResponseTemplate::new(200).set_body_json(body))
        .expect(1)
        .mount(&server)
        .await;
    let output = CHAT.task(&format!("{}/v1", server.uri()), "").run();
    assert_eq!(output.stdout, "Hello.\n");
    assert_eq!(output.result()["usage"]["input"], 9);
}

#[test]
fn an_endpoint_on_this_machine_needs_no_key() {
    for (model, dialect) in [("anthropic-messages/x", ANTHROPIC), ("openai-chat/x", CHAT)] {
        let server = ModelServer::start([(dialect.text)("Done.")]);
        let output = Cli::new()
            .args(["-p", "Hi", "--quiet", "--model", model])
            .args(["--base-url", &server.url()])
            .run();
        assert_eq!(output.stdout, "Done.\n");
        let requests = server.finish();
        assert_eq!(requests[0].header(dialect.key_header.0), None);
        assert_eq!(requests[0].body["model"], "x");
    }
}

#[test]
fn a_missing_key_names_its_variable_and_asks_nobody() {
    let table = [
        ("anthropic/claude-sonnet-5", "ANTHROPIC_API_KEY"),
        ("deepseek/deepseek-flash", "DEEPSEEK_API_KEY"),
        ("openai-chat/x", "OPENAI_API_KEY"),
    ];
    for (model, variable) in table {
        let output = Cli::new()
            .args(["-p", "Hi", "--model", model])
            .args(["--base-url", "https://models.invalid"])
            .expect_code(77)
            .run();
        assert!(output.stderr.contains(variable), "{}", output.stderr);
        let result = output.result();
        assert_eq!(result["reason"], "auth");
        assert!(result["error"]["hints"].to_string().contains(variable));
        assert_eq!(told(&output, "step:start").len(), 0);
    }
}

/// `body` as a gzip file of one stored block.
fn gzip(body: &[u8]) -> Vec<u8> {
    let crc = !body.iter().fold(!0_u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    });
    let length = u16::try_from(body.len()).expect("one block is enough");
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(length.to_le_bytes());
    file.extend((!length).to_le_bytes());
    file.extend(body);
    file.extend(crc.to_le_bytes());
    file.extend(u32::from(length).to_le_bytes());
    file
}

#[test]
fn the_form_of_a_stream_does_not_matter() {
    let answer = "Grüße 👋, done.";
    for dialect in BOTH {
        let frames = (dialect.text)(answer).text().to_owned();
        let commented = frames.replace("\n\n", "\n\n: keep alive\n\n");
        let forms: Vec<(&str, Reply)> = vec![
            ("byte for byte", sse(frames.clone()).in_pieces(1)),
            ("CRLF", sse(frames.replace('\n', "\r\n")).in_pieces(3)),
            ("CR", sse(frames.replace('\n', "\r")).into()),
            ("a BOM", sse(format!("\u{feff}{frames}")).in_pieces(2)),
            ("comments", sse(commented).into()),
            (
                "no blank line at the end",
                sse(frames.trim_end()).until_close(),
            ),
            (
                "gzip",
                sse(gzip(frames.as_bytes()))
                    .header("content-encoding", "gzip")
                    .into(),
            ),
            (
                "another content type",
                status(200)
                    .header("content-type", "text/plain")
                    .body(frames.clone())
                    .into(),
            ),
        ];
        for (form, reply) in forms {
            let server = ModelServer::start([reply]);
            let output = dialect.task(&server.url(), "").run();
            assert_eq!(
                output.stdout,
                format!("{answer}\n"),
                "{}: {form}",
                dialect.model
            );
            assert_eq!(output.result()["usage"]["output"], 10, "{form}");
            server.finish();
        }
    }
}

#[test]
fn half_a_character_does_not_spoil_a_reply() {
    for dialect in BOTH {
        // As servers write it that cut texts between UTF-16 units.
        let halves = (dialect.text)("ab")
            .text()
            .replace("\"a\"", r#""wave \ud83d""#);
        let halves = halves.replace("\"b\"", r#""\udc4b, \ud83d\udc4b, \\ud83d""#);
        let server = ModelServer::start([sse(halves)]);
        let output = dialect.task(&server.url(), "").run();
        assert_eq!(output.stdout, "wave \u{fffd}\u{fffd}, 👋, \\ud83d\n");
        assert_eq!(retries(&output), []);
        server.finish();
    }
}

#[test]
fn counts_may_come_as_floats() {
    let stream = (ANTHROPIC.text)("Counted.");
    let stream = stream
        .text()
        .replace("\"input_tokens\":100", "\"input_tokens\":100.0");
    let other = (CHAT.text)("Counted.");
    let other = other.text().replace("_tokens\":100", "_tokens\":1.0e2");
    for (dialect, body) in [(ANTHROPIC, stream), (CHAT, other)] {
        let server = ModelServer::start([sse(body)]);
        let usage = dialect.task(&server.url(), "").run().result()["usage"].clone();
        assert_eq!(
            (&usage["input"], &usage["output"]),
            (&json!(100), &json!(10))
        );
        server.finish();
    }
}

#[test]
fn an_address_is_shown_without_its_login() {
    let table = [
        ("https://u:hunter2pass@a.invalid/v1", "https://a.invalid/v1"),
        ("http://hunter2pass@a.invalid", "http://a.invalid"),
        ("http://u:hunter2p@ss@a.invalid?x=@", "http://a.invalid?x=@"),
        (
            "http://u:hunter2pass@a.invalid/v1?x=@",
            "http://a.invalid/v1?x=@",
        ),
        // Marks that should have been encoded end the host too soon.
        ("http://u:12/hunter2pass@a.invalid", "http://a.invalid"),
        ("http://u:12?hunter2pass@a.invalid", "http://a.invalid"),
        ("http://u:12#hunter2pass@a.invalid", "http://a.invalid"),
        (
            "http://u:hunter2#pass@a.invalid:8080",
            "http://a.invalid:8080",
        ),
        (
            "http://u:hunter2@pass/x@a.invalid/v1",
            "http://a.invalid/v1",
        ),
        ("http://a.invalid/@x", "http://x"),
        ("not an address", "not an address"),
    ];
    for (url, expect) in table {
        assert_eq!(agent::model::without_login(url), expect);
    }
    // Such an address cannot be used, and the reason is told without it.
    let output = Cli::new()
        .args(["-p", "Hi", "--model", "openai-chat/x"])
        .args(["--base-url", "http://u:hunter2pass@models.invalid?x=1"])
        .expect_code(65)
        .run();
    assert!(
        output.stderr.contains("models.invalid"),
        "{}",
        output.stderr
    );
    assert!(!output.stderr.contains("hunter2pass"), "{}", output.stderr);
}

#[test]
fn a_whole_message_instead_of_a_stream_is_an_answer() {
    let message = json!({"type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Whole."}], "usage": {"input_tokens": 3, "output_tokens": 4}});
    let server = ModelServer::start([status(200).json(&message)]);
    let output = ANTHROPIC.task(&server.url(), "").run();
    assert_eq!(output.stdout, "Whole.\n");
    assert_eq!(output.result()["usage"]["input"], 3);
    server.finish();
}

#[test]
fn thinking_of_the_catalog_s_chat_models_goes_back() {
    let call = json!({"index": 0, "id": "c1", "type": "function",
        "function": {"name": "ls", "arguments": "{}"}});
    let thinking = chat::reply(
        &[
            json!({"role": "assistant", "reasoning_content": "First I "}),
            json!({"reasoning_content": "look around."}),
            json!({"tool_calls": [call]}),
        ],
        "tool_calls",
    );
    let server = ModelServer::start([thinking, chat::text("Nothing there.")]);
    let output = Cli::new()
        .args([
            "-p",
            "Look",
            "--quiet",
            "--model",
            "deepseek/deepseek-flash",
        ])
        .args(["--base-url", &server.url(), "--thinking", "high"])
        .env("DEEPSEEK_API_KEY", KEY)
        .run();
    let requests = server.finish();
    assert_eq!(requests[0].body["thinking"], json!({"type": "enabled"}));
    assert_eq!(requests[0].body["reasoning_effort"], "high");
    let replied = &CHAT.messages(&requests[1])[1];
    assert_eq!(replied["reasoning_content"], "First I look around.");
    assert_eq!(replied["tool_calls"][0]["id"], "c1");
    let complete = told(&output, "message:complete");
    assert_eq!(complete[0]["reasoning"], "First I look around.");
    // 200 in at 0.3 and 20 out at 1.2 dollars a million.
    let cost = output.result()["costUsd"].as_f64().unwrap();
    assert!((cost - 0.000_084).abs() < 1e-12, "{cost}");
}
