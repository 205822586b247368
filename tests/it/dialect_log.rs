//! The whole log of a run over HTTP, line by line, for each dialect.

use serde_json::{Value, json};

use crate::support::cli::Output;
use crate::support::dialect::{BOTH, Dialect};
use crate::support::normal;
use crate::support::reply::Response;
use crate::support::server::ModelServer;

/// A bad start, two reads side by side, a refused command, an edit, an answer.
fn replies(dialect: &Dialect) -> Vec<Response> {
    let edit = json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "ALPHA"}]});
    vec![
        (dialect.error)(529, "overloaded_error", "Overloaded").header("retry-after", "0"),
        (dialect.calls)(&[
            ("c1", "read", json!({"path": "a.txt"})),
            ("c2", "read", json!({"path": "b.txt"})),
        ]),
        (dialect.calls)(&[("c3", "bash", json!({"command": "rm -rf b.txt"}))]),
        (dialect.calls)(&[("c4", "edit", edit)]),
        (dialect.text)("One letter is larger now."),
    ]
}

fn run(dialect: &Dialect) -> Output {
    let server = ModelServer::start(replies(dialect));
    let output = dialect
        .task(&server.url(), "permissions: {mode: accept_edits}\n")
        .file("a.txt", "alpha\n")
        .file("b.txt", "beta\n")
        .args(["--deltas", "delta"])
        .run();
    server.finish();
    output
}

/// The ends of calls that ran side by side may come in any order.
fn settled(mut events: Vec<Value>) -> Vec<Value> {
    let ends: Vec<usize> = (0..events.len())
        .filter(|at| events[*at]["event"] == "tool:execution:complete" && events[*at]["step"] == 1)
        .collect();
    assert_eq!(ends.len(), 2, "two reads end");
    let (first, second) = (ends[0], ends[1]);
    if events[first]["data"]["toolCallId"] == "c2" {
        let data = events[first]["data"].take();
        events[first]["data"] = events[second]["data"].take();
        events[second]["data"] = data;
    }
    events
}

#[test]
fn the_whole_log() {
    for (dialect, name) in BOTH.iter().zip(["anthropic", "chat"]) {
        let output = run(dialect);
        let log = normal::log(&settled(output.events()), output.cwd());
        insta::assert_snapshot!(name, log);
    }
}

#[test]
fn every_event_stands_at_its_place() {
    for dialect in BOTH {
        let output = run(&dialect);
        for event in output.events() {
            let name = event["event"].as_str().unwrap();
            let run = name.starts_with("run:");
            assert_eq!(event["job"].is_null(), run, "{event}");
            let inside = ["step:", "tool:", "message:", "retry:"]
                .iter()
                .any(|kind| name.starts_with(kind))
                && name != "message:user";
            assert!(!inside || event["turn"] == 1, "{event}");
            assert!(!inside || event["step"].as_u64().is_some(), "{event}");
            let session = !run && !name.starts_with("job:");
            assert_eq!(event["sessionId"].is_string(), session, "{event}");
            assert_eq!(event["agentId"] == "main", session, "{event}");
        }
        let last: Value = output.events().pop().unwrap();
        assert_eq!(last["data"]["result"], output.result());
    }
}

#[test]
fn standard_output_and_the_file_hold_the_same_log() {
    for dialect in BOTH {
        let server = ModelServer::start([(dialect.text)("Done.")]);
        let output = dialect
            .task(&server.url(), "")
            .args(["--output-format", "jsonl"])
            .run();
        assert_eq!(output.stdout, output.artifact("events.jsonl"));
        server.finish();
    }
}
