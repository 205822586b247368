//! Compaction in whole runs: the log, the result, the session file.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::store::{EntryKind, Store};
use serde_json::{Value, json};

use crate::cli_scene::{scripted, truthful};

fn replies(window: u64, replies: &[Value]) -> String {
    json!({"strict": true, "context_window": window, "replies": replies}).to_string()
}

fn read(path: &str) -> Value {
    json!({"calls": [{"name": "read", "arguments": {"path": path}}]})
}

#[test]
fn a_task_that_overflows_a_small_window_is_compacted_and_succeeds() {
    let overflow = json!({"error": {
        "status": 400,
        "message": "This model's maximum context length is 30000 tokens",
    }});
    let summary = json!({
        "text": "THE SUMMARY",
        "usage": {"input": 7_000, "output": 30},
        "expect": {"contains": ["[User]: Do it.", "[Tool result]: a 0"], "tools": []},
    });
    let done = json!({"text": "done", "expect": {"contains": ["THE SUMMARY"], "tools": ["read"]}});
    let script = replies(
        30_000,
        &[read("a.txt"), read("b.txt"), overflow, summary, done],
    );
    let lines = |name: &str| -> String {
        (0..1_500)
            .map(|at| format!("{name} {at}, and so on\n"))
            .collect()
    };
    let run = scripted(&script, "")
        .file("a.txt", lines("a"))
        .file("b.txt", lines("b"))
        .run();
    let result = truthful(&run);
    assert_eq!(run.stdout, "done\n");
    assert_eq!(result["compactions"], 1);
    assert_eq!(result["turns"], 3);
    assert_eq!(result["usage"]["input"], 7_000);
    assert!(run.stderr.contains("compacted"), "{}", run.stderr);
    let file = run.run_dir().join(result["sessionFile"].as_str().unwrap());
    let tree = Store::read(&file).unwrap();
    let kept = tree.entries().iter().find_map(|entry| match &entry.kind {
        EntryKind::Compaction {
            summary, details, ..
        } => Some((summary.clone(), details.clone())),
        _ => None,
    });
    let (summary, details) = kept.unwrap();
    assert_eq!(summary, "THE SUMMARY\n\n<read-files>\na.txt\n</read-files>");
    assert_eq!(
        details,
        Some(json!({"readFiles": ["a.txt"], "modifiedFiles": []}))
    );
}

#[test]
fn a_task_may_forbid_it() {
    let overflow = json!({"error": {"status": 413, "message": "prompt is too long"}});
    let script = replies(30_000, &[read("task.yaml"), overflow]);
    let run = scripted(&script, "compaction: {enabled: false}\n")
        .expect_code(1)
        .run();
    let result = truthful(&run);
    assert_eq!(result["compactions"], 0);
    assert_eq!(result["error"]["code"], "context_overflow");
}
