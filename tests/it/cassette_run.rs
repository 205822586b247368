//! A recorded run folds to the same report when it is replayed.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::cassette_scene::{SPEAKERS, Say, Shelf, Speaker, TASK, busy, call, comparable, text};
use crate::support::reply::{Action, Reply};

/// Two bad starts, two reads side by side of which one fails, a refused command,
/// a file that is written, a reply that breaks off, an answer.
fn long_run(speaker: &Speaker) -> Vec<Reply> {
    let last = [text("All is done – 好了.")];
    let whole = speaker.reply(&last);
    let half = whole.text().len() / 2;
    vec![
        // On a connection that was used before it would be sent again unnoticed.
        Reply::reset(),
        busy(),
        speaker.answer(&[
            text("I look – 看."),
            call("c1", "read", json!({"path": "a.txt"})),
            call("c2", "read", json!({"path": "missing.txt"})),
        ]),
        speaker.answer(&[call("c3", "bash", json!({"command": "rm -rf /"}))]),
        speaker.answer(&[call(
            "c4",
            "write",
            json!({"path": "new.txt", "content": "new\n"}),
        )]),
        whole.cut(half, Action::Reset),
        speaker.answer(&last),
    ]
}

#[test]
fn a_replayed_run_has_the_same_report_in_every_dialect() {
    for speaker in &SPEAKERS {
        let shelf = Shelf::new();
        let recorded = shelf.record(speaker, TASK, long_run(speaker));
        let replayed = shelf.replay(TASK).run();
        assert_eq!(
            replayed.stdout, "All is done – 好了.\n",
            "{}",
            speaker.model
        );
        let (then, now) = (comparable(&recorded), comparable(&replayed));
        assert_eq!(then.0, now.0, "{}", speaker.model);
        assert_eq!(then.1, now.1, "{}", speaker.model);
        assert_eq!(now.0["retries"], 3, "{}", now.0);
        assert_eq!(now.0["filesChanged"][0]["path"], "new.txt", "{}", now.0);
        assert_eq!(now.0["model"], speaker.model);
        // It says what it is.
        let cassette = shelf.cassette().display().to_string();
        assert_eq!(replayed.result()["replay"], cassette);
        assert_eq!(recorded.result().get("replay"), None);
    }
}

#[test]
fn with_replayed_tools_nothing_runs_and_the_model_hears_the_same() {
    let replies = |speaker: &Speaker| {
        vec![
            speaker.answer(&[
                call(
                    "c1",
                    "bash",
                    json!({"command": "date +%N > stamp; cat stamp"}),
                ),
                call("c2", "read", json!({"path": "a.txt"})),
                call("c3", "write", json!({"path": "../out.txt", "content": "x"})),
            ]),
            speaker.answer(&[text("It is late.")]),
        ]
    };
    let task = TASK.replace("accept_edits", "accept_edits, allow: ['Bash(*)']");
    for speaker in &SPEAKERS {
        let shelf = Shelf::new();
        let recorded = shelf.record(speaker, &task, replies(speaker));
        assert!(recorded.cwd().join("ws/stamp").exists());
        let replayed = shelf.replay(&task).arg("--replay-tools").run();
        assert!(
            !replayed.cwd().join("ws/stamp").exists(),
            "{}",
            speaker.model
        );
        let (then, now) = (comparable(&recorded), comparable(&replayed));
        for field in [
            "finalText",
            "toolCalls",
            "denials",
            "usage",
            "reason",
            "turns",
        ] {
            assert_eq!(then.0[field], now.0[field], "{}: {field}", speaker.model);
        }
        assert_eq!(now.0["filesChanged"], json!([]));
        // A command that runs says something else each time.
        let live = shelf.replay(&task).expect_code(10).run();
        let message = live.result()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(message.contains("the result of bash (call 1)"), "{message}");
    }
}

#[test]
fn a_cassette_is_private_and_replaced_whole() {
    let shelf = Shelf::new();
    std::fs::write(shelf.cassette(), "older").unwrap();
    let speaker = &SPEAKERS[0];
    shelf.record(speaker, TASK, vec![speaker.answer(&[text("Done.")])]);
    let mode = shelf.cassette().metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let kinds: Vec<String> = shelf
        .lines()
        .iter()
        .map(|line| line.as_object().unwrap().keys().next().unwrap().clone())
        .collect();
    assert_eq!(kinds, ["cassette", "model", "call", "end"]);
    assert_eq!(
        std::fs::read_dir(shelf.cassette().parent().unwrap())
            .unwrap()
            .count(),
        1
    );
    shelf.replay(TASK).run();
}

#[test]
fn a_run_that_failed_fails_again() {
    let shelf = Shelf::new();
    let speaker = &SPEAKERS[1];
    let task = format!("{TASK}limits: {{max_turns: 1, on_exhausted: stop}}\n");
    let read = call("c1", "read", json!({"path": "a.txt"}));
    let server = crate::support::server::ModelServer::start([speaker.answer(&[read])]);
    let recorded = crate::cassette_scene::scene(&task)
        .args(["--model", speaker.model, "--base-url", &server.url()])
        .arg("--record")
        .arg(shelf.cassette())
        .expect_code(4)
        .run();
    let replayed = shelf.replay(&task).expect_code(4).run();
    assert_eq!(comparable(&recorded), comparable(&replayed));
}

/// Each reply in two pieces of text, of which the first fills the window.
#[test]
fn summaries_are_a_conversation_of_their_own() {
    let shelf = Shelf::new();
    let speaker = &SPEAKERS[0];
    let full = |says: &[Say], tokens| {
        let blocks: Vec<_> = says
            .iter()
            .map(|say| match say {
                Say::Text(text) => crate::support::anthropic::text_block(text),
                Say::Call(id, name, arguments) => {
                    crate::support::anthropic::call_block(id, name, arguments)
                }
            })
            .collect();
        let stop = if matches!(says.last(), Some(Say::Call(..))) {
            "tool_use"
        } else {
            "end_turn"
        };
        Reply::from(crate::support::anthropic::reply_with_usage(
            &blocks,
            stop,
            (tokens, 10),
        ))
    };
    let long = "word ".repeat(12_000);
    let read = |id| call(id, "read", json!({"path": "a.txt"}));
    let replies = vec![
        full(&[text(&long), read("c1")], 50_000),
        full(&[text("Next."), read("c2")], 995_000),
        full(&[text("## Goal\nDo it.\n## Progress\nHalf.")], 100),
        full(&[text("Done.")], 100),
    ];
    let task = format!(
        "{TASK}compaction: {{keep_recent_tokens: 100, min_reduction: 0}}\nlimits: {{max_tokens: 9000000, max_cost_usd: 50}}\n"
    );
    let recorded = shelf.record(speaker, &task, replies);
    let talks: Vec<String> = shelf
        .lines()
        .iter()
        .filter_map(|line| Some(line["call"]["conversation"]["talk"].as_str()?.to_owned()))
        .collect();
    assert_eq!(talks, ["turn", "turn", "summary", "turn"]);
    let replayed = shelf.replay(&task).run();
    let (then, now) = (comparable(&recorded), comparable(&replayed));
    assert_eq!(then, now);
    assert_eq!(now.0["compactions"], 1, "{}", now.0);
}

#[test]
fn a_model_cannot_write_its_own_cassette() {
    let speaker = &SPEAKERS[1];
    let forge = call(
        "c1",
        "write",
        json!({"path": "c.jsonl", "content": "forged"}),
    );
    let server = crate::support::server::ModelServer::start([
        speaker.answer(&[forge]),
        speaker.answer(&[text("It is not mine.")]),
    ]);
    let output = crate::cassette_scene::scene(TASK)
        .args(["--model", speaker.model, "--base-url", &server.url()])
        .args(["--record", "ws/c.jsonl"])
        .run();
    server.finish();
    let result = output.result();
    assert_eq!(result["denials"][0]["tool"], "write", "{result}");
    // It is put there when the difference of the workspace is known.
    assert_eq!(result["filesChanged"], json!([]));
    let kept = std::fs::read_to_string(output.cwd().join("ws/c.jsonl")).unwrap();
    agent::model::Cassette::parse(&kept, "c.jsonl").unwrap();
}
