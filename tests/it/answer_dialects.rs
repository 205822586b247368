//! How each dialect is asked for a document, and what happens when it refuses.

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::reply::{Response, status};
use crate::support::server::{ModelServer, Recorded};
use crate::support::{anthropic, chat, gemini, responses};

const SCHEMA: &str = "{\"type\":\"object\",\"properties\":{\"fixed\":{\"type\":\"boolean\"}},\
                      \"required\":[\"fixed\"],\"additionalProperties\":false}";
const BAD: &str = "{\"fixed\":\"yes\"}";
const GOOD: &str = "{\"fixed\":true}";

struct Dialect {
    model: &'static str,
    key_env: &'static str,
    /// What the body says of the answer, as it is written.
    native: &'static str,
    text: fn(&str) -> Response,
    call: fn() -> Response,
    /// An error of the provider, in its own form and words.
    refusal: fn() -> Response,
}

fn read() -> Value {
    json!({"path": "a.txt"})
}

const DIALECTS: [Dialect; 3] = [
    Dialect {
        model: "anthropic/claude-haiku-4-5",
        key_env: "ANTHROPIC_API_KEY",
        native: "\"output_config\":{\"format\":{\"type\":\"json_schema\",\"schema\":SCHEMA}}",
        text: anthropic::text,
        call: || anthropic::tool_call("c1", "read", &read()),
        refusal: || {
            anthropic::error(
                400,
                "invalid_request_error",
                "output_config.format.schema: Schema is too complex.",
            )
        },
    },
    Dialect {
        model: "openai/gpt-5",
        key_env: "OPENAI_API_KEY",
        native: "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"answer\",\"schema\":SCHEMA,\"strict\":true}}",
        text: |text| responses::reply(&[responses::text_item(text)]),
        call: || responses::reply(&[responses::call_item("c1", "read", &read())]),
        refusal: || {
            status(400).json(
                &json!({"error": {"type": "invalid_request_error", "param": "text.format",
                "message": "Invalid schema for response_format 'answer'."}}),
            )
        },
    },
    Dialect {
        model: "google/gemini-3-flash-preview",
        key_env: "GEMINI_API_KEY",
        native: "\"responseMimeType\":\"application/json\",\"responseJsonSchema\":SCHEMA",
        text: |text| gemini::reply(&[gemini::text_part(text)]),
        call: || gemini::reply(&[gemini::call_part("read", &read())]),
        refusal: || {
            status(400).json(&json!({"error": {"code": 400, "status": "INVALID_ARGUMENT",
                "message": "Function calling with a response mime type: 'application/json' is unsupported"}}))
        },
    },
];

impl Dialect {
    fn run(&self, server: &ModelServer) -> Output {
        Cli::new()
            .file("a.txt", "alpha\n")
            .args([
                "-p",
                "Do it.",
                "--quiet",
                "--run-dir",
                "run",
                "--model",
                self.model,
                // Replies without thinking would turn it off in between.
                "--thinking",
                "off",
            ])
            .args(["--base-url", &server.url(), "--json-schema", SCHEMA])
            .env(self.key_env, "sk-test-0123456789")
            .run()
    }

    fn native(&self) -> String {
        self.native.replace("SCHEMA", SCHEMA)
    }
}

/// What the requests of a run begin with must not change from one to the next.
fn heads(requests: &[Recorded]) -> Vec<Value> {
    let mut heads: Vec<Value> = requests
        .iter()
        .map(|request| request.body.clone())
        .collect();
    for head in &mut heads {
        for list in ["messages", "input", "contents"] {
            head.as_object_mut().unwrap().remove(list);
        }
    }
    heads
}

#[test]
fn each_provider_is_asked_in_its_own_words_in_every_step() {
    for dialect in &DIALECTS {
        let replies = [(dialect.call)(), (dialect.text)(BAD), (dialect.text)(GOOD)];
        let server = ModelServer::start(replies);
        let output = dialect.run(&server);
        assert_eq!(output.stdout, format!("{GOOD}\n"), "{}", dialect.model);
        let requests = server.finish();
        assert_eq!(requests.len(), 3, "{}", dialect.model);
        for request in &requests {
            let body = request.body.to_string();
            assert_eq!(body.matches(&dialect.native()).count(), 1, "{body}");
            // The provider shows it to the model.
            assert!(body.contains("fits the response format"), "{body}");
            assert!(!body.contains("The JSON Schema:"), "{body}");
        }
        let heads = heads(&requests);
        assert!(
            heads.iter().all(|head| *head == heads[0]),
            "{}",
            dialect.model
        );
        let last = requests[2].body.to_string();
        assert!(
            last.contains("at `/fixed`: want boolean, but got string"),
            "{last}"
        );
        assert_eq!(output.result()["repairs"], 1);
    }
}

#[test]
fn a_provider_that_refuses_to_be_asked_is_told_in_words_once() {
    for dialect in &DIALECTS {
        let replies = [(dialect.refusal)(), (dialect.call)(), (dialect.text)(GOOD)];
        let server = ModelServer::start(replies);
        let output = dialect.run(&server);
        assert_eq!(output.stdout, format!("{GOOD}\n"), "{}", dialect.model);
        let requests = server.finish();
        let escaped = Value::from(SCHEMA).to_string();
        let escaped = escaped.trim_matches('"');
        for (at, request) in requests.iter().enumerate() {
            let body = request.body.to_string();
            assert_eq!(body.contains(&dialect.native()), at == 0, "{at}: {body}");
            assert_eq!(
                body.matches(escaped).count(),
                usize::from(at > 0),
                "{at}: {body}"
            );
        }
        let heads = heads(&requests);
        assert_eq!(heads[1], heads[2], "{}", dialect.model);
        let result = output.result();
        let warnings = result["warnings"].as_array().unwrap();
        let codes: Vec<&Value> = warnings.iter().map(|warning| &warning["code"]).collect();
        assert_eq!(codes, ["structured_output_refused"], "{warnings:?}");
        assert_eq!(result["retries"], 0);
    }
}

#[test]
fn another_error_of_the_request_is_no_refusal() {
    let server = ModelServer::start([anthropic::error(
        400,
        "invalid_request_error",
        "messages: odd",
    )]);
    let output = Cli::new()
        .args([
            "-p",
            "Do it.",
            "--quiet",
            "--model",
            "anthropic/claude-haiku-4-5",
        ])
        .args(["--base-url", &server.url(), "--json-schema", SCHEMA])
        .env("ANTHROPIC_API_KEY", "sk-test-0123456789")
        .expect_code(78)
        .run();
    assert_eq!(output.stdout, "");
    assert_eq!(server.finish().len(), 1);
}

#[test]
fn an_endpoint_that_nobody_knows_is_asked_in_words() {
    let replies = [chat::tool_call("c1", "read", &read()), chat::text(GOOD)];
    let server = ModelServer::start(replies);
    let output = Cli::new()
        .file("a.txt", "alpha\n")
        .args(["-p", "Do it.", "--quiet", "--model", "openai-chat/local"])
        .args(["--base-url", &server.url(), "--json-schema", SCHEMA])
        .run();
    assert_eq!(output.stdout, format!("{GOOD}\n"));
    for request in server.finish() {
        let system = request.body["messages"][0]["content"].as_str().unwrap();
        assert_eq!(system.matches(SCHEMA).count(), 1, "{system}");
        assert_eq!(request.body.get("response_format"), None);
    }
}

#[test]
fn an_effort_and_a_format_share_their_field() {
    let server = ModelServer::start([anthropic::text(GOOD)]);
    Cli::new()
        .args([
            "-p",
            "Do it.",
            "--quiet",
            "--model",
            "anthropic/claude-sonnet-5",
        ])
        .args(["--base-url", &server.url(), "--json-schema", SCHEMA])
        .env("ANTHROPIC_API_KEY", "sk-test-0123456789")
        .run();
    let requests = server.finish();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(
        requests[0].body["output_config"],
        json!({"effort": "medium", "format": {"type": "json_schema", "schema": schema}})
    );
}
