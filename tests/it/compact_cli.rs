//! `agent sessions compact`.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::store::{EntryKind, SessionTree, Store};
use serde_json::{Value, json};

use crate::support::cli::Cli;

const ORCHARD: &str = include_str!("../fixtures/sessions/orchard-v1.jsonl");

fn dry_run(keep: u32) -> Value {
    let done = Cli::new()
        .file("orchard.jsonl", ORCHARD)
        .args(["sessions", "compact", "orchard.jsonl", "--dry-run"])
        .args(["--keep-recent-tokens", &keep.to_string()])
        .args(["--output-format", "json"])
        .run();
    let kept = std::fs::read_to_string(done.cwd().join("orchard.jsonl")).unwrap();
    assert_eq!(kept, ORCHARD);
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn a_dry_run_tells_every_number_and_writes_nothing() {
    assert_eq!(
        dry_run(2_500),
        json!({
            "entries": 42,
            "contextMessages": 38,
            "estimatedTokens": {
                "total": 4_996, "user": 1_271, "assistant": 789, "toolResult": 2_936,
            },
            "tokensBefore": 10_094,
            "firstKeptIndex": 10,
            "turnStartIndex": 3,
            "splitTurn": true,
            "summarise": 2,
            "prefix": 7,
            "filesRead": 3,
            "filesModified": 0,
        })
    );
}

#[test]
fn what_stays_decides_where_it_is_cut() {
    let table = [
        (1, 41, None),
        (60, 32, Some(29)),
        (700, 32, Some(29)),
        (1_500, 22, Some(12)),
        (2_500, 10, Some(3)),
        (3_500, 6, Some(3)),
        (5_000, 0, None),
        (100_000, 0, None),
    ];
    for (keep, first_kept, turn_start) in table {
        let told = dry_run(keep);
        assert_eq!(told["firstKeptIndex"], first_kept, "{keep}");
        assert_eq!(told["turnStartIndex"], json!(turn_start), "{keep}");
        assert_eq!(told["splitTurn"], turn_start.is_some(), "{keep}");
    }
}

#[test]
fn people_get_the_same_in_words() {
    let done = Cli::new()
        .file("orchard.jsonl", ORCHARD)
        .args(["sessions", "compact", "orchard.jsonl", "--dry-run"])
        .args(["--keep-recent-tokens", "1500"])
        .run();
    insta::assert_snapshot!(done.stdout);
    let whole = Cli::new()
        .file("orchard.jsonl", ORCHARD)
        .args(["sessions", "compact", "orchard.jsonl", "--dry-run"])
        .run();
    let cut = "cut         nothing to compact\n";
    assert!(whole.stdout.contains(cut), "{}", whole.stdout);
}

#[test]
fn what_is_no_session_is_refused() {
    let table = [
        ("nowhere.jsonl", 66, "nowhere.jsonl"),
        ("words.txt", 65, "is no session"),
        (".", 66, "no session"),
    ];
    for (file, code, expect) in table {
        let done = Cli::new()
            .file("words.txt", "Hello.\n")
            .args(["sessions", "compact", file, "--dry-run"])
            .expect_code(code)
            .run();
        assert!(done.stderr.contains(expect), "{file}: {}", done.stderr);
        assert_eq!(done.stdout, "", "{file}");
    }
}

#[test]
fn a_session_file_is_compacted_by_the_model_that_is_named() {
    let script = "- text: THE SUMMARY\n  expect: {contains: [\"Attend above all to this: the trees\"]}\n\
                  - text: THE TURN\n";
    let done = Cli::new()
        .file("orchard.jsonl", ORCHARD)
        .file("model.yaml", script)
        .args([
            "sessions",
            "compact",
            "orchard.jsonl",
            "--keep-recent-tokens",
            "1500",
        ])
        .args([
            "--model",
            "scripted/model.yaml",
            "--instructions",
            "the trees",
        ])
        .args(["--output-format", "json"])
        .run();
    let told: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(told["tokensBefore"], 10_094);
    let summary = told["summary"].as_str().unwrap();
    assert!(summary.starts_with("THE SUMMARY\n\n---\n\n"), "{summary}");
    assert!(summary.contains("THE TURN\n\n<read-files>\n"), "{summary}");
    let tree = Store::read(&done.cwd().join("orchard.jsonl")).unwrap();
    // Nothing is deleted; the model sees the summary and what came after.
    let kept = tree
        .entries()
        .iter()
        .find(|entry| json!(entry.id) == told["entryId"]);
    assert!(matches!(kept.unwrap().kind, EntryKind::Compaction { .. }));
    let messages = tree
        .entries()
        .iter()
        .filter(|entry| matches!(entry.kind, EntryKind::Message(_)));
    assert_eq!((messages.count(), tree.messages().len()), (38, 19));
    goes_on_as_before(&tree);
}

/// The model of the summary is not the session's.
fn goes_on_as_before(tree: &SessionTree) {
    assert_eq!(tree.model(), Some(("anthropic", "claude-sonnet-4-5")));
    assert_eq!(tree.thinking_level(), Some("high"));
}

#[test]
fn a_compaction_that_fails_says_why_and_leaves_the_session_as_it_was() {
    let table = [
        (
            "- text: cut\n  stop: length\n",
            "1500",
            1,
            "cut by the output limit",
        ),
        ("- text: never asked\n", "100000", 1, "nothing to compact"),
        ("- error: {status: 401}\n", "1500", 77, "not authorised"),
        ("[", "1500", 65, "model.yaml"),
    ];
    for (script, keep, code, expect) in table {
        let done = Cli::new()
            .file("orchard.jsonl", ORCHARD)
            .file("model.yaml", script)
            .args(["sessions", "compact", "orchard.jsonl"])
            .args([
                "--model",
                "scripted/model.yaml",
                "--keep-recent-tokens",
                keep,
            ])
            .expect_code(code)
            .run();
        assert!(done.stderr.contains(expect), "{expect}: {}", done.stderr);
        assert_eq!(done.stdout, "", "{expect}");
        let file = done.cwd().join("orchard.jsonl");
        let kept = std::fs::read_to_string(&file).unwrap();
        assert!(kept == ORCHARD, "{expect}: the file is as it was");
        let tree = Store::read(&file).unwrap();
        assert_eq!(tree.messages().len(), 38, "{expect}");
        goes_on_as_before(&tree);
    }
    let keyless = Cli::new()
        .file("orchard.jsonl", ORCHARD)
        .args(["sessions", "compact", "orchard.jsonl"])
        .expect_code(77)
        .run();
    let expect = "ANTHROPIC_API_KEY";
    assert!(keyless.stderr.contains(expect), "{}", keyless.stderr);
}
