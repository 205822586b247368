//! Tool calls over HTTP: the loop, its results, and the conversation that grows.

use serde_json::{Value, json};

use crate::support::dialect::{ANTHROPIC, BOTH, CHAT, Dialect, told};
use crate::support::reply::Response;
use crate::support::server::{ModelServer, Recorded};
use crate::support::{anthropic, chat};

const PERMISSIONS: &str =
    "permissions: {mode: accept_edits, allow: ['Bash(grep:*)']}\nlimits: {command_timeout: 20s}\n";

/// Reads, runs, edits, answers.
fn repair(dialect: &Dialect) -> Vec<Response> {
    let edit = json!({"path": "greeting.txt", "edits": [{"oldText": "helo", "newText": "hello"}]});
    vec![
        (dialect.calls)(&[("c1", "read", json!({"path": "greeting.txt"}))]),
        (dialect.calls)(&[(
            "c2",
            "bash",
            json!({"command": "grep -c helo greeting.txt"}),
        )]),
        (dialect.calls)(&[("c3", "edit", edit)]),
        (dialect.text)("Repaired."),
    ]
}

#[test]
fn reading_running_and_editing_changes_the_file() {
    for dialect in BOTH {
        let server = ModelServer::start(repair(&dialect));
        let output = dialect
            .task(&server.url(), PERMISSIONS)
            .file("greeting.txt", "say helo\n")
            .run();
        assert_eq!(output.stdout, "Repaired.\n");
        let file = std::fs::read_to_string(output.cwd().join("greeting.txt")).unwrap();
        assert_eq!(file, "say hello\n");
        assert!(output.artifact("change.patch").contains("+say hello\n"));
        let requests = server.finish();
        assert_eq!(requests.len(), 4);
        let results: Vec<(String, String)> = requests[1..]
            .iter()
            .flat_map(|request| dialect.results(request))
            .collect();
        let ids: Vec<&str> = results.iter().map(|(id, _)| &**id).collect();
        assert_eq!(ids, ["c1", "c2", "c3"]);
        assert!(results[0].1.contains("say helo"), "{}", results[0].1);
        assert!(results[1].1.starts_with('1'), "{}", results[1].1);
        let result = output.result();
        assert_eq!(result["turns"], 4);
        assert_eq!(result["filesChanged"][0]["path"], "greeting.txt");
        assert_eq!(result["usage"]["input"], 400);
    }
}

#[test]
fn results_stand_in_the_order_of_the_calls() {
    let names = ["big.txt", "missing.txt", "b.txt", "a.txt"];
    for dialect in BOTH {
        let ids = ["w", "x", "y", "z"];
        let calls: Vec<(&str, &str, Value)> = ids
            .iter()
            .zip(names)
            .map(|(id, name)| (*id, "read", json!({"path": name})))
            .collect();
        let server = ModelServer::start([(dialect.calls)(&calls), (dialect.text)("Read.")]);
        let output = dialect
            .task(&server.url(), "")
            .file("big.txt", "a line of the big file\n".repeat(1500))
            .file("a.txt", "alpha\n")
            .file("b.txt", "beta\n")
            .run();
        let requests = server.finish();
        let results = dialect.results(&requests[1]);
        let order: Vec<&str> = results.iter().map(|(id, _)| &**id).collect();
        assert_eq!(order, ids);
        for ((_, text), expect) in results
            .iter()
            .zip(["big file", "missing.txt", "beta", "alpha"])
        {
            assert!(text.contains(expect), "{expect}: {text}");
        }
        // All four began before the first could end: they ran side by side.
        let started = told(&output, "tool:execution:start");
        let groups: Vec<&Value> = started.iter().map(|data| &data["parallelGroup"]).collect();
        assert_eq!(groups, [&json!(1); 4]);
    }
}

#[test]
fn signed_thinking_goes_back_untouched_and_first() {
    let blocks = [
        anthropic::thinking_block("Let me look — slowly.", "c2lnbmF0dXJl+/="),
        json!({"type": "redacted_thinking", "data": "b3BhcXVl"}),
        anthropic::text_block("I look."),
        anthropic::call_block("c1", "ls", &json!({})),
    ];
    let server = ModelServer::start([
        anthropic::reply(&blocks, "tool_use"),
        anthropic::text("Nothing."),
    ]);
    let output = ANTHROPIC
        .task(&server.url(), "settings: {thinking: medium}\n")
        .run();
    let requests = server.finish();
    assert_eq!(requests[0].body["thinking"], json!({"type": "adaptive"}));
    assert_eq!(
        requests[0].body["output_config"],
        json!({"effort": "medium"})
    );
    assert_eq!(
        ANTHROPIC.messages(&requests[1])[1]["content"],
        json!(blocks)
    );
    let complete = told(&output, "message:complete");
    assert_eq!(complete[0]["reasoning"], "Let me look — slowly.");
    assert_eq!(complete[0]["content"], "I look.");
}

#[test]
fn a_call_that_the_output_limit_cut_is_not_run() {
    let arguments = r#"{"path": "made.txt", "content": "all of it"#;
    let call = json!({"type": "tool_use", "id": "c1", "name": "write", "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": arguments});
    let anthropic_cut = [
        anthropic::event(
            "message_start",
            &json!({"message": {"usage": {"input_tokens": 100, "output_tokens": 1}}}),
        ),
        anthropic::event(
            "content_block_start",
            &json!({"index": 0, "content_block": call}),
        ),
        anthropic::event("content_block_delta", &json!({"index": 0, "delta": delta})),
        anthropic::event("content_block_stop", &json!({"index": 0})),
        anthropic::event(
            "message_delta",
            &json!({"delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 10}}),
        ),
        anthropic::event("message_stop", &json!({})),
    ];
    let function = json!({"name": "write", "arguments": arguments});
    let chat_cut = json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]});
    let cut = [
        crate::support::reply::sse(anthropic_cut.concat()),
        chat::reply(&[chat_cut], "length"),
    ];
    for (dialect, cut) in BOTH.into_iter().zip(cut) {
        let server = ModelServer::start([cut, (dialect.text)("I stop here.")]);
        let output = dialect
            .task(&server.url(), "permissions: {mode: accept_edits}\n")
            .run();
        assert!(!output.cwd().join("made.txt").exists());
        let requests = server.finish();
        let results = dialect.results(&requests[1]);
        assert_eq!(results.len(), 1);
        assert!(
            results[0].1.contains("cut off by the output limit"),
            "{results:?}"
        );
        assert_eq!(told(&output, "tool:execution:complete").len(), 0);
        let failed = told(&output, "tool:execution:error");
        assert_eq!(failed.len(), 1);
        assert_eq!(failed[0]["status"], "invalid_input");
        assert_eq!(told(&output, "message:complete")[0]["stopReason"], "length");
    }
}

#[test]
fn arguments_that_do_not_parse_come_back_as_an_error() {
    let function = json!({"name": "read", "arguments": "{\"path\": \"a.txt\""});
    let call = json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]});
    let server = ModelServer::start([chat::reply(&[call], "tool_calls"), chat::text("I see.")]);
    let output = CHAT.task(&server.url(), "").file("a.txt", "alpha\n").run();
    let requests = server.finish();
    let (id, text) = &CHAT.results(&requests[1])[0];
    assert_eq!(id, "c1");
    assert!(text.starts_with("error: "), "{text}");
    assert!(
        text.contains(r#"{"path": "a.txt""#),
        "the raw text is shown: {text}"
    );
    let failed = told(&output, "tool:execution:error");
    assert_eq!(failed[0]["status"], "invalid_input");
}

#[test]
fn every_odd_call_is_answered() {
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep = format!("{{\"path\": {deep}}}");
    let calls = [
        ("c1", "teleport", "{}"),
        ("c2", "read", "[1, 2]"),
        ("c3", "read", "{\"path\": {\"a\": 7}}"),
        ("c4", "read", "{}"),
        ("c5", "read", "{\"path\": \"\\ud800\"}"),
        ("c6", "read", "{\"path\": \"a\\u0000b\"}"),
        ("c7", "read", &deep),
        ("c8", "ls", ""),
        ("c8", "ls", ""),
        ("c8", "read", "{\"path\": \"a.txt\"}"),
        ("", "read", "{\"path\": \"a.txt\"}"),
    ];
    let deltas: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (id, name, arguments))| {
            let function = json!({"name": name, "arguments": arguments});
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]})
        })
        .collect();
    let server = ModelServer::start([chat::reply(&deltas, "tool_calls"), chat::text("Odd.")]);
    let output = CHAT.task(&server.url(), "").file("a.txt", "alpha\n").run();
    let requests = server.finish();
    let results = CHAT.results(&requests[1]);
    // The same call under the same id is one call.
    assert_eq!(results.len(), 10);
    for (at, (_, text)) in results.iter().enumerate() {
        assert_eq!(text.starts_with("error: "), at < 7, "{at}: {text}");
        assert!(text.len() < 20_000, "{at}: {} bytes", text.len());
    }
    assert!(results[2].1.contains("/path"), "{}", results[2].1);
    let listed = told(&output, "tool:execution:complete");
    let listed = listed.iter().filter(|data| data["toolName"] == "ls");
    assert_eq!(listed.count(), 1);
}

#[test]
fn a_thousand_calls_in_one_reply_are_answered_in_order() {
    for dialect in BOTH {
        let ids: Vec<String> = (0..1000).map(|number| format!("call_{number}")).collect();
        let calls: Vec<(&str, &str, Value)> = ids
            .iter()
            .map(|id| (&**id, "read", json!({"path": format!("{id}.txt")})))
            .collect();
        let server = ModelServer::start([(dialect.calls)(&calls), (dialect.text)("None exist.")]);
        let output = dialect
            .task(&server.url(), "limits: {max_tool_calls: 1001}\n")
            .run();
        let requests = server.finish();
        let results = dialect.results(&requests[1]);
        let order: Vec<&String> = results.iter().map(|(id, _)| id).collect();
        assert_eq!(order, ids.iter().collect::<Vec<_>>());
        assert_eq!(told(&output, "tool:execution:error").len(), 1000);
        assert_eq!(output.result()["toolCalls"]["read"]["count"], 1000);
    }
}

/// A request's messages without the marks that move with the end.
fn unmarked(dialect: &Dialect, request: &Recorded) -> Vec<Value> {
    let mut messages = dialect.messages(request);
    let blocks = messages
        .iter_mut()
        .filter_map(|message| message["content"].as_array_mut());
    for block in blocks.flatten().filter_map(Value::as_object_mut) {
        block.remove("cache_control");
    }
    messages
}

/// The bytes in front of the messages.
fn head(request: &Recorded) -> &[u8] {
    let mark = b"\"messages\":";
    let at = request
        .bytes
        .windows(mark.len())
        .position(|window| window == mark)
        .expect("a request has messages");
    &request.bytes[..at]
}

#[test]
fn a_request_begins_with_the_one_before() {
    for dialect in BOTH {
        let server = ModelServer::start(repair(&dialect));
        dialect
            .task(&server.url(), PERMISSIONS)
            .file("greeting.txt", "say helo\n")
            .run();
        let requests = server.finish();
        for pair in requests.windows(2) {
            // Tools, system prompt and settings are the same bytes.
            assert_eq!(
                String::from_utf8_lossy(head(&pair[0])),
                String::from_utf8_lossy(head(&pair[1]))
            );
            let (before, after) = (unmarked(&dialect, &pair[0]), unmarked(&dialect, &pair[1]));
            assert_eq!(before[..], after[..before.len()]);
            assert!(after.len() > before.len());
        }
        if dialect.path == CHAT.path {
            // Without marks the whole request is a prefix, byte for byte.
            for pair in requests.windows(2) {
                let whole = pair[0].bytes.len() - "]}".len();
                assert_eq!(
                    String::from_utf8_lossy(&pair[0].bytes[..whole]),
                    String::from_utf8_lossy(&pair[1].bytes[..whole])
                );
            }
        }
    }
}

#[test]
fn the_marks_of_the_cache_stand_at_three_ends() {
    let server = ModelServer::start(repair(&ANTHROPIC));
    ANTHROPIC
        .task(&server.url(), PERMISSIONS)
        .file("greeting.txt", "say helo\n")
        .run();
    for request in server.finish() {
        let body = &request.body;
        let mark = json!({"type": "ephemeral"});
        let text = String::from_utf8(request.bytes.clone()).unwrap();
        assert_eq!(text.matches("cache_control").count(), 3);
        assert_eq!(
            body["tools"].as_array().unwrap().last().unwrap()["cache_control"],
            mark
        );
        assert_eq!(body["system"][0]["cache_control"], mark);
        let last = body["messages"].as_array().unwrap().last().unwrap();
        assert_eq!(
            last["content"].as_array().unwrap().last().unwrap()["cache_control"],
            mark
        );
    }
}
