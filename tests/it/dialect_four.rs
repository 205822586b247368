//! One conversation through all four dialects: the same session from each.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::four::{FOUR, Four, Say};
use crate::support::server::{ModelServer, Recorded};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

/// Thinking, text and a call; calls side by side, of which one fails, one has no
/// arguments and one sees an image; a call; an answer after a note that it must be
/// the last one.
fn conversation() -> [Vec<Say>; 4] {
    let read = |id, path| Say::Call(id, "read", json!({"path": path}));
    [
        vec![
            Say::Thinking("Both – 看看?"),
            Say::Text("I look – 看."),
            read("c1", "a.txt"),
        ],
        vec![
            read("c2", "b.txt"),
            read("c3", "missing.txt"),
            Say::Call("c4", "ls", json!({})),
            read("c5", "a.png"),
        ],
        vec![Say::Thinking("Once more."), read("c6", "a.txt")],
        vec![Say::Text("Both read.")],
    ]
}

fn play(dialect: &Four) -> (Output, Vec<Recorded>) {
    let replies = conversation().map(|says| (dialect.reply)(&says));
    let server = ModelServer::start(replies);
    let output = dialect
        .task(
            &server.url(),
            "settings: {thinking: high}\nlimits: {max_turns: 4}\n",
        )
        .file("a.txt", "alpha\n")
        .file("b.txt", "beta\n")
        .file("a.png", PNG)
        .expect_code(4)
        .run();
    (output, server.finish())
}

/// A session without what must differ: ids and times, the provider's name, its
/// price and its signatures. Ids of calls become their order.
fn neutral(output: &Output) -> Vec<Value> {
    let cwd = output.cwd().display().to_string();
    let mut calls = HashMap::new();
    let mut lines = output.session();
    for line in &mut lines {
        let text = line.to_string().replace(&cwd, "<cwd>");
        *line = serde_json::from_str(&text).unwrap();
        strip(line, &mut calls);
    }
    lines
}

const OWN: [&str; 11] = [
    "api",
    "provider",
    "model",
    "modelId",
    "cost",
    "timestamp",
    "parentId",
    "thinkingSignature",
    "textSignature",
    "thoughtSignature",
    "redacted",
];

fn strip(value: &mut Value, calls: &mut HashMap<String, usize>) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| !OWN.contains(&name.as_str()));
            let is_call = fields.get("type") == Some(&json!("toolCall"));
            for (name, value) in fields {
                match value.as_str() {
                    Some(id) if name == "toolCallId" || (name == "id" && is_call) => {
                        let next = calls.len();
                        *value = (*calls.entry(id.to_owned()).or_insert(next)).into();
                    }
                    Some(_) if name == "id" => *value = Value::Null,
                    _ => strip(value, calls),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, calls)),
        _ => {}
    }
}

/// Who said what, in a line each.
fn outline(lines: &[Value]) -> Vec<String> {
    let messages = lines.iter().map(|line| &line["message"]);
    messages
        .filter(|message| message.is_object())
        .map(|message| {
            let kinds = message["content"].as_array().unwrap().iter();
            let kinds: Vec<&str> = kinds.filter_map(|block| block["type"].as_str()).collect();
            let failed = if message["isError"] == true { "!" } else { "" };
            format!(
                "{} {}{failed}",
                message["role"].as_str().unwrap(),
                kinds.join(" ")
            )
        })
        .collect()
}

#[test]
fn the_same_conversation_gives_the_same_session() {
    let mut first: Option<(Vec<Value>, Value)> = None;
    for dialect in &FOUR {
        let (output, requests) = play(dialect);
        assert_eq!(output.stdout, "Both read.\n", "{}", dialect.name);
        assert_eq!(requests.len(), 4, "{}", dialect.name);
        for request in &requests {
            assert_eq!(request.path, dialect.path);
        }
        let result = output.result();
        let facts = ["reason", "turns", "toolCalls", "filesChanged"].map(|name| &result[name]);
        let counts = ["input", "output", "cacheRead", "cacheWrite", "reasoning"];
        let summary = json!([facts, counts.map(|name| &result["usage"][name])]);
        let session = neutral(&output);
        match &first {
            None => {
                insta::assert_snapshot!(outline(&session).join("\n"));
                first = Some((session, summary));
            }
            Some(first) => {
                assert_eq!(session.len(), first.0.len(), "{}", dialect.name);
                for (ours, theirs) in session.iter().zip(&first.0) {
                    assert_eq!(ours, theirs, "{}", dialect.name);
                }
                assert_eq!(summary, first.1, "{}", dialect.name);
            }
        }
    }
}

/// The results of each reply stand behind its calls, with its ids.
#[test]
fn the_next_request_holds_the_loop() {
    let (_, requests) = play(&FOUR[2]);
    let input = requests[3].body["input"].as_array().unwrap();
    let kinds: Vec<&str> = input
        .iter()
        .filter_map(|item| item["type"].as_str())
        .collect();
    assert_eq!(
        kinds.join(" "),
        "message reasoning message function_call function_call_output function_call \
         function_call function_call function_call function_call_output function_call_output \
         function_call_output function_call_output reasoning function_call \
         function_call_output message"
    );
    assert_eq!(input[3]["id"], "fc_c1");
    assert_eq!(input[4]["call_id"], "c1");
    assert!(input[4]["output"].to_string().contains("alpha"));
    let called: Vec<&Value> = input[9..13].iter().map(|item| &item["call_id"]).collect();
    assert_eq!(called, ["c2", "c3", "c4", "c5"]);
    assert_eq!(input[12]["output"][1]["type"], "input_image");

    let (_, requests) = play(&FOUR[3]);
    let contents = requests[3].body["contents"].as_array().unwrap();
    let roles: Vec<&str> = contents
        .iter()
        .filter_map(|item| item["role"].as_str())
        .collect();
    // The note of the engine is a content of its own.
    let steps = [
        "user", "model", "user", "model", "user", "model", "user", "user",
    ];
    assert_eq!(roles, steps);
    let results: Vec<&Value> = contents[4]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| &part["functionResponse"])
        .collect();
    assert_eq!(results.len(), 4);
    assert!(
        results[0]["response"]["output"]
            .to_string()
            .contains("beta")
    );
    assert!(results[1]["response"]["error"].is_string());
    assert!(results[3]["parts"][0]["inlineData"].is_object());
}

/// An endpoint of one's own, named by its dialect.
#[test]
fn any_id_may_be_asked_in_any_dialect() {
    for dialect in &FOUR {
        let server = ModelServer::start([dialect.text("Here.")]);
        let output = Cli::new()
            .args(["-p", "Hi", "--quiet", "--base-url", &server.url()])
            .args(["--model", &format!("{}/local", dialect.name)])
            .run();
        assert_eq!(output.stdout, "Here.\n", "{}", dialect.name);
        let request = &server.finish()[0];
        let (header, _) = dialect.key_header;
        assert_eq!(request.header(header), None, "{}", dialect.name);
        let named = request.body["model"] == "local" || request.path.contains("/local:");
        assert!(named, "{}: {}", dialect.name, request.path);
    }
}
