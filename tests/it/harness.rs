//! The tests' own tools: a checker that finds nothing proves nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::reply::{Action, Gate, Reply, status};
use crate::support::server::ModelServer;
use crate::support::workspace::Workspace;
use crate::support::{anthropic, chat, log, transcript};

fn line(seq: u64, event: &str, data: Value) -> Value {
    json!({"v": 1, "seq": seq, "ts": "2026-11-21T20:01:02.345Z", "runId": "r", "job": "j", "agentId": "main",
        "turn": 1, "step": 1, "event": event, "data": data})
}

fn good() -> Vec<Value> {
    let end = json!({"outcome": "success", "reason": "success", "exitCode": 0});
    let mut run_end = end.clone();
    run_end["result"] = end;
    let call = json!({"toolCallId": "c"});
    let events = [
        ("run:start", json!({})),
        ("job:start", json!({"name": "j"})),
        ("turn:start", json!({})),
        ("step:start", json!({})),
        ("tool:execution:start", call.clone()),
        ("tool:execution:complete", call),
        (
            "tool:execution:error",
            json!({"toolCallId": "d", "status": "denied"}),
        ),
        ("step:end", json!({})),
        ("turn:end", json!({})),
        ("job:end", json!({})),
        ("run:end", run_end),
    ];
    events
        .into_iter()
        .zip(1..)
        .map(|((name, data), seq)| line(seq, name, data))
        .collect()
}

fn text(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}

#[test]
fn a_lawful_log_is_accepted() {
    assert_eq!(log::check(&text(&good())).unwrap().len(), good().len());
}

#[test]
fn every_breach_of_the_log_is_found() {
    for missing in 0..good().len() - 1 {
        let mut events = good();
        events.remove(missing);
        for (event, seq) in events.iter_mut().zip(1u64..) {
            event["seq"] = seq.into();
        }
        // Only the refused call may be missing: it has no other half.
        let refused = good()[missing]["data"]["status"] == "denied";
        assert_eq!(
            log::check(&text(&events)).is_ok(),
            refused,
            "without {}",
            good()[missing]
        );
    }
    let cut = text(&good()[..10]);
    let table: [(&str, String); 5] = [
        ("no run:end", cut.clone()),
        ("not JSON", text(&good()).replace("\"v\"", "v")),
        ("seq is", text(&good()).replace("\"seq\":5", "\"seq\":6")),
        (
            "runId is",
            text(&good()).replacen("\"runId\":\"r\"", "\"runId\":\"s\"", 1),
        ),
        (
            "after run:end",
            text(&[good(), vec![line(12, "warning", json!({}))]].concat()),
        ),
    ];
    for (expect, log) in table {
        let breaches = log::check(&log).unwrap_err().join("\n");
        assert!(breaches.contains(expect), "{expect}: {breaches}");
    }
}

fn turn(role: &str, content: Value) -> Value {
    json!({"role": role, "content": content})
}

#[test]
fn transcripts_of_items_and_contents_are_checked() {
    let user = json!({"type": "message", "role": "user", "content": [{"text": "go"}]});
    let call = json!({"type": "function_call", "call_id": "a", "name": "ls"});
    let output = json!({"type": "function_call_output", "call_id": "a"});
    let reasoning = json!({"type": "reasoning"});
    for (expect, input) in [
        ("", json!([user, reasoning, call, output, user])),
        ("empty", json!([])),
        ("out of place", json!([user, output])),
        ("out of place", json!([user, call, user, output])),
        ("without results", json!([user, call])),
    ] {
        let body = json!({"stream": true, "input": input});
        let found = transcript::breaches("/v1/responses", &body).join("\n");
        assert_eq!(found.is_empty(), expect.is_empty(), "{found}");
        assert!(found.contains(expect), "{found}");
    }
    let user = json!({"role": "user", "parts": [{"text": "go"}]});
    let model = json!({"role": "model", "parts": [{"functionCall": {"name": "ls"}}]});
    let result = json!({"role": "user", "parts": [{"functionResponse": {"name": "ls"}}]});
    let empty = json!({"role": "user", "parts": []});
    for (expect, contents) in [
        ("", json!([user, model, result, user])),
        ("empty", json!([])),
        ("empty", json!([empty])),
        ("answers", json!([user, model, user])),
        ("answers", json!([user, result])),
        ("ends with the model", json!([user, model])),
    ] {
        let path = "/models/m:streamGenerateContent?alt=sse";
        let found = transcript::breaches(path, &json!({"contents": contents})).join("\n");
        assert_eq!(found.is_empty(), expect.is_empty(), "{found}");
        assert!(found.contains(expect), "{found}");
    }
}

#[test]
fn transcripts_are_checked() {
    let call = json!([{"type": "tool_use", "id": "a", "name": "ls", "input": {}}]);
    let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}]}]);
    let user = turn("user", "go".into());
    let called = turn("assistant", call);
    let answered = turn("user", result);
    let table: [(&str, Vec<Value>); 6] = [
        ("", vec![user.clone(), called.clone(), answered.clone()]),
        ("empty", vec![]),
        (
            "ends with the assistant",
            vec![user.clone(), called.clone()],
        ),
        ("called were", vec![user.clone(), called, user.clone()]),
        ("answers", vec![answered]),
        (
            "expected assistant",
            vec![user.clone(), user, turn("user", " ".into())],
        ),
    ];
    for (expect, messages) in table {
        let body = json!({"stream": true, "max_tokens": 9, "messages": messages, "tools": [{"name": "a"}, {"name": "b"}]});
        let found = transcript::breaches("/v1/messages", &body).join("\n");
        assert_eq!(found.is_empty(), expect.is_empty(), "{found}");
        assert!(found.contains(expect), "{expect}: {found}");
    }
    let unsorted = json!({"stream": true, "messages": [turn("user", "x".into())],
        "tools": [{"function": {"name": "b"}}, {"function": {"name": "a"}}]});
    assert!(
        transcript::breaches("/v1/chat/completions", &unsorted)
            .join("")
            .contains("unsorted")
    );
    let call = json!({"role": "assistant", "content": null,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]});
    let lost = json!({"stream": true, "messages": [turn("user", "x".into()), call, turn("user", "y".into())]});
    assert!(
        transcript::breaches("/chat/completions", &lost)
            .join("")
            .contains("without results")
    );
}

fn ask(server: &ModelServer, count: usize) -> String {
    let mut stream = TcpStream::connect(server.url().strip_prefix("http://").unwrap()).unwrap();
    // A server that forgets to hang up must fail the test, not hold it.
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(20)))
        .unwrap();
    let body = json!({"stream": true, "max_tokens": 1, "messages": [turn("user", "x".into())]})
        .to_string();
    for _ in 0..count {
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nX-Api-Key: k\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
    }
    // The server may have hung up already.
    let _ = stream.shutdown(std::net::Shutdown::Write);
    let mut answer = Vec::new();
    // A reset ends it with an error; what came before counts.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

#[test]
fn the_server_answers_in_order_and_records() {
    let server = ModelServer::start([
        Reply::from(status(429).header("retry-after", "0")),
        anthropic::text("hello").in_pieces(7),
        anthropic::tool_call("a", "ls", &json!({"path": "."})).into(),
    ]);
    let answer = ask(&server, 3);
    assert!(
        answer.starts_with("HTTP/1.1 429 Status\r\n") && answer.contains("retry-after: 0\r\n"),
        "{answer}"
    );
    assert!(answer.contains("input_json_delta"), "{answer}");
    server.wait_for_requests(3);
    let requests = server.finish();
    assert_eq!(requests[0].header("x-api-key"), Some("k"));
    assert_eq!(requests[2].body["messages"][0]["content"], "x");
}

#[test]
fn the_server_cuts_resets_and_waits() {
    let gate = Gate::default();
    let server = ModelServer::start([
        chat::text("hello").cut(20, Action::Reset),
        Reply::reset(),
        chat::text("late").paused(10, Action::Wait(gate.clone())),
    ]);
    assert!(!ask(&server, 1).contains("[DONE]"));
    assert_eq!(ask(&server, 1), "");
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| ask(&server, 1));
        server.wait_for_requests(3);
        gate.open();
        assert!(answer.join().unwrap().contains("[DONE]"));
    });
    server.finish();
}

#[test]
fn the_server_objects_to_what_was_not_agreed() {
    let objects = |server: ModelServer| {
        let refused =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| server.finish())).unwrap_err();
        *refused.downcast::<String>().unwrap()
    };
    assert!(
        objects(ModelServer::start([anthropic::text("unused")]))
            .contains("1 replies were not used")
    );
    let server = ModelServer::start(Vec::<Reply>::new());
    ask(&server, 1);
    assert!(objects(server).contains("request 1 has no reply"));
}

#[test]
fn workspaces_are_hermetic() {
    let workspace = Workspace::git(&[("src/a.txt", "one\n")]);
    workspace.write("src/a.txt", "two\n");
    assert_eq!(
        workspace.run_git(&["status", "--porcelain"]),
        " M src/a.txt\n"
    );
    assert_eq!(
        workspace.run_git(&["log", "--format=%an %s"]),
        "Test first\n"
    );
    assert!(workspace.exists("src") && workspace.read("src/a.txt") == "two\n");
}
