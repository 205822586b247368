//! One conversation through all four dialects: the same transcript from each.

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::reply::Response;
use crate::support::server::{ModelServer, Recorded};
use crate::support::{anthropic, chat, gemini, responses};

/// What a reply consists of.
enum Say {
    Text(&'static str),
    Call(&'static str, &'static str, Value),
}

struct Dialect {
    name: &'static str,
    key_env: &'static str,
    /// The path of its requests.
    path: &'static str,
    reply: fn(&[Say]) -> Response,
}

const DIALECTS: [Dialect; 4] = [
    Dialect {
        name: "anthropic-messages",
        key_env: "ANTHROPIC_API_KEY",
        path: "/v1/messages",
        reply: |says| {
            let blocks = each(says, anthropic::text_block, anthropic::call_block);
            anthropic::reply(&blocks, if calls(says) { "tool_use" } else { "end_turn" })
        },
    },
    Dialect {
        name: "openai-chat",
        key_env: "OPENAI_API_KEY",
        path: "/chat/completions",
        reply: |says| {
            let mut deltas = each(
                says,
                |text| json!({"content": text}),
                |id, name, arguments| {
                    let function = json!({"name": name, "arguments": arguments.to_string()});
                    json!({"tool_calls": [{"id": id, "type": "function", "function": function}]})
                },
            );
            for (delta, index) in deltas
                .iter_mut()
                .filter(|delta| delta.get("tool_calls").is_some())
                .zip(0u64..)
            {
                delta["tool_calls"][0]["index"] = index.into();
            }
            chat::reply(&deltas, if calls(says) { "tool_calls" } else { "stop" })
        },
    },
    Dialect {
        name: "openai-responses",
        key_env: "OPENAI_API_KEY",
        path: "/responses",
        reply: |says| responses::reply(&each(says, responses::text_item, responses::call_item)),
    },
    Dialect {
        name: "google-generative-ai",
        key_env: "GEMINI_API_KEY",
        path: "/models/local:streamGenerateContent?alt=sse",
        reply: |says| {
            gemini::reply(&each(says, gemini::text_part, |_, name, arguments| {
                gemini::call_part(name, arguments)
            }))
        },
    },
];

fn each(
    says: &[Say],
    text: impl Fn(&str) -> Value,
    call: impl Fn(&str, &str, &Value) -> Value,
) -> Vec<Value> {
    says.iter()
        .map(|say| match say {
            Say::Text(words) => text(words),
            Say::Call(id, name, arguments) => call(id, name, arguments),
        })
        .collect()
}

fn calls(says: &[Say]) -> bool {
    says.iter().any(|say| matches!(say, Say::Call(..)))
}

/// A call, two calls at once of which one fails, an answer.
fn conversation() -> [Vec<Say>; 3] {
    [
        vec![
            Say::Text("I look – 看."),
            Say::Call("c1", "read", json!({"path": "a.txt"})),
        ],
        vec![
            Say::Call("c2", "read", json!({"path": "b.txt"})),
            Say::Call("c3", "read", json!({"path": "missing.txt"})),
        ],
        vec![Say::Text("Both read.")],
    ]
}

fn play(dialect: &Dialect) -> (Output, Vec<Recorded>) {
    let replies = conversation().map(|says| (dialect.reply)(&says));
    let server = ModelServer::start(replies);
    let output = Cli::new()
        .file("a.txt", "alpha\n")
        .file("b.txt", "beta\n")
        .args(["-p", "Read them.", "--quiet", "--base-url", &server.url()])
        .args(["--model", &format!("{}/local", dialect.name)])
        .env(dialect.key_env, "sk-test")
        .run();
    (output, server.finish())
}

/// What was said in a session, without ids and times.
fn transcript(output: &Output) -> Vec<Value> {
    let mut said = Vec::new();
    for line in output.session() {
        let message = &line["message"];
        let content: Vec<Value> = message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|block| match block["type"].as_str() {
                Some("toolCall") => json!([block["name"], block["arguments"]]),
                _ => block["text"].clone(),
            })
            .collect();
        match message["role"].as_str() {
            Some("assistant") => said.push(json!([content, message["stopReason"]])),
            Some("toolResult") => {
                said.push(json!([message["toolName"], content, message["isError"]]));
            }
            _ => {}
        }
    }
    said
}

#[test]
fn the_same_conversation_gives_the_same_transcript() {
    let mut first: Option<(Vec<Value>, Value)> = None;
    for dialect in &DIALECTS {
        let (output, requests) = play(dialect);
        assert_eq!(output.stdout, "Both read.\n", "{}", dialect.name);
        assert_eq!(requests.len(), 3, "{}", dialect.name);
        for request in &requests {
            assert_eq!(request.path, dialect.path);
        }
        let mut result = output.result();
        let summary = json!([
            result["reason"].take(),
            result["turns"].take(),
            result["usage"]["input"].take(),
            result["usage"]["output"].take()
        ]);
        let transcript = transcript(&output);
        assert_eq!(transcript.len(), 6, "{transcript:?}");
        assert_eq!(
            transcript[0],
            json!([["I look – 看.", ["read", {"path": "a.txt"}]], "toolUse"])
        );
        assert_eq!(transcript[4][2], json!(true), "{transcript:?}");
        match &first {
            None => first = Some((transcript, summary)),
            Some(first) => assert_eq!((&transcript, &summary), (&first.0, &first.1)),
        }
    }
}

/// The results of each reply stand behind its calls, with its ids.
#[test]
fn the_next_request_holds_the_loop() {
    let (_, requests) = play(&DIALECTS[2]);
    let input = requests[2].body["input"].as_array().expect("a list");
    let kinds: Vec<&str> = input
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "message",
            "message",
            "function_call",
            "function_call_output",
            "function_call",
            "function_call",
            "function_call_output",
            "function_call_output",
        ]
    );
    assert_eq!(input[2]["id"], "fc_c1");
    assert_eq!(input[3]["call_id"], "c1");
    assert_eq!(
        (&input[6]["call_id"], &input[7]["call_id"]),
        (&json!("c2"), &json!("c3"))
    );
    assert!(input[3]["output"].to_string().contains("alpha"));
    assert_eq!(requests[2].header("authorization"), Some("Bearer sk-test"));

    let (_, requests) = play(&DIALECTS[3]);
    let contents = requests[2].body["contents"].as_array().expect("a list");
    let roles: Vec<&str> = contents
        .iter()
        .filter_map(|item| item["role"].as_str())
        .collect();
    assert_eq!(roles, ["user", "model", "user", "model", "user"]);
    let results = &contents[4]["parts"];
    assert_eq!(results.as_array().map(Vec::len), Some(2));
    assert!(
        results[0]["functionResponse"]["response"]["output"]
            .to_string()
            .contains("beta")
    );
    assert!(results[1]["functionResponse"]["response"]["error"].is_string());
    assert_eq!(requests[2].header("x-goog-api-key"), Some("sk-test"));
}
