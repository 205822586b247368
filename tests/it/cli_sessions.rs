//! `agent sessions`: kept conversations are listed, shown, drawn and forked.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::fs;

use serde_json::{Value, json};

use crate::support::cli::Cli;

const ID: &str = "0190d7a0-aaaa-7000-8000-000000000001";
const OTHER: &str = "0190d7a0-bbbb-7000-8000-000000000002";

fn line(id: &str, parent: Option<&str>, fields: Value) -> String {
    let mut line = json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T10:05:00.000Z"});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    format!("{line}\n")
}

fn header(id: &str, hour: u32) -> String {
    let header = json!({"type": "session", "version": 3, "id": id, "timestamp": format!("2026-01-02T{hour:02}:00:00.000Z"),
        "cwd": "/home/ada/bakery"});
    format!("{header}\n")
}

fn user(text: &str) -> Value {
    json!({"message": {"role": "user", "content": text, "timestamp": 1}})
}

/// A session with two branches after its first reply; the leaf is on the second.
fn branched() -> String {
    let reply = json!({"message": {"role": "assistant", "content": [{"type": "text", "text": "Counting."},
        {"type": "toolCall", "id": "c", "name": "bash", "arguments": {"command": "ls"}}],
        "api": "anthropic-messages", "provider": "anthropic", "model": "claude-sonnet-4-5",
        "usage": {"input": 1200, "output": 34, "cost": {"total": 0.25}}, "stopReason": "toolUse", "timestamp": 2}});
    let result = json!({"message": {"role": "toolResult", "toolCallId": "c", "toolName": "bash",
        "content": [{"type": "text", "text": "rye\u{1b}[31m\nspelt"}], "isError": false, "timestamp": 3}});
    [
        header(ID, 10),
        line("aaaa0001", None, user("How many loaves?")),
        line("aaaa0002", Some("aaaa0001"), reply),
        line("aaaa0003", Some("aaaa0002"), result),
        line("aaaa0004", Some("aaaa0003"), user("Bake rye.")),
        line(
            "aaaa0005",
            Some("aaaa0003"),
            json!({"type": "thinking_level_change", "thinkingLevel": "high"}),
        ),
        line("aaaa0006", Some("aaaa0005"), user("Bake spelt.")),
        line(
            "aaaa0007",
            Some("aaaa0006"),
            json!({"type": "label", "targetId": "aaaa0004", "label": "rye"}),
        ),
    ]
    .concat()
}

/// `agent sessions …` where there are two sessions.
fn sessions<'a>(args: impl IntoIterator<Item = &'a str>) -> Cli {
    Cli::new()
        .file(".agent/runs/one/session.jsonl", branched())
        .file(".agent/runs/one/events.jsonl", "{\"seq\":1}\n")
        .file(
            ".agent/runs/two/session.jsonl",
            header(OTHER, 9) + &line("b", None, user("Older.")).replace("10:05", "09:05"),
        )
        .arg("sessions")
        .args(args)
}

fn json_of(cli: Cli) -> Value {
    let output = cli.args(["--output-format", "json"]).run();
    assert_eq!(output.stderr, "");
    serde_json::from_str(&output.stdout).unwrap()
}

#[test]
fn a_listing_begins_with_the_newest() {
    let listed = sessions(["list"]).run();
    assert_eq!(
        listed.stdout,
        "0190d7a0-a  2026-01-02 10:05  5 messages  How many loaves?\n            in /home/ada/bakery\n\
         0190d7a0-b  2026-01-02 09:05   1 message  Older.\n            in /home/ada/bakery\n"
    );
    assert_eq!(listed.stderr, "");
    let document = json_of(sessions(["list"]));
    assert_eq!(document["skipped"], json!([]));
    assert_eq!(
        document["sessions"][1],
        json!({"id": OTHER, "path": ".agent/runs/two/session.jsonl", "cwd": "/home/ada/bakery",
            "created": "2026-01-02T09:00:00.000Z", "modified": "2026-01-02T09:05:00.000Z", "name": null,
            "firstMessage": "Older.", "messages": 1, "parentSession": null})
    );
}

#[test]
fn a_listing_goes_on_past_what_it_cannot_read() {
    let broken = header("0190", 8) + "nonsense\n{}\n";
    let listed = sessions(["list"])
        .file(".agent/runs/three/session.jsonl", broken)
        .run();
    assert_eq!(listed.stdout.lines().count(), 4);
    assert!(
        listed
            .stderr
            .starts_with("agent: .agent/runs/three/session.jsonl is passed over: the session file")
            && listed.stderr.contains("damaged in line 2"),
        "{}",
        listed.stderr
    );
    let elsewhere = sessions(["list", "--dir", "nowhere"]).run();
    assert_eq!(elsewhere.stdout, "");
    assert_eq!(elsewhere.stderr, "agent: there is no session in nowhere\n");
    let own = sessions(["list"])
        .file("own/sessions/x/s.jsonl", header("0191", 12))
        .env("AGENT_DIR", "own")
        .run();
    let first = own.stdout.lines().next().unwrap();
    assert_eq!(
        first,
        "0191        2026-01-02 12:00  0 messages  (nothing said)"
    );
}

#[test]
fn a_session_is_shown_with_its_path_and_its_counts() {
    let shown = sessions(["show", "0190d7a0-a"]).run();
    assert_eq!(
        shown.stdout,
        "session 0190d7a0-aaaa-7000-8000-000000000001
  file      .agent/runs/one/session.jsonl
  directory /home/ada/bakery
  begun     2026-01-02T10:00:00.000Z
  last      2026-01-02T10:05:00.000Z
  model     anthropic/claude-sonnet-4-5
  thinking  high
  messages  3 of the user, 1 of the model with 1 tool call, 1 tool result
  usage     1,234 tokens, $0.2500
  entries   6 on the path to the leaf, 7 in all

aaaa0001  user           How many loaves?
aaaa0002  assistant      Counting. [bash {\"command\":\"ls\"}]
aaaa0003  tool result    bash: rye spelt
aaaa0005  thinking       high
aaaa0006  user           Bake spelt.
aaaa0007  label          rye at aaaa0004
"
    );
    for which in [".agent/runs/one", ".agent/runs/one/session.jsonl", ID] {
        let document = json_of(sessions(["show", which]));
        assert_eq!(document["id"], ID);
        assert_eq!(document["leaf"], "aaaa0007");
        assert_eq!(document["stats"]["toolCalls"], 1);
        assert_eq!(document["entries"][0]["message"]["role"], "user");
        assert_eq!(document["entries"].as_array().unwrap().len(), 6);
    }
}

#[test]
fn branches_are_drawn() {
    let drawn = sessions(["tree", ID]).env("LANG", "C.UTF-8").run();
    assert_eq!(
        drawn.stdout,
        "aaaa0001 user: How many loaves?
aaaa0002 assistant: Counting. [bash {\"command\":\"ls\"}]
aaaa0003 tool result: bash: rye spelt
├─ aaaa0004 user: Bake rye.  [rye]
└─ aaaa0006 user: Bake spelt.  ← leaf
"
    );
    let plain = sessions(["tree", ID]).run().stdout;
    assert!(
        plain.ends_with(
            "|- aaaa0004 user: Bake rye.  [rye]\n`- aaaa0006 user: Bake spelt.  <- leaf\n"
        )
    );
    let document = json_of(sessions(["tree", ID]));
    assert_eq!(document["leaf"], "aaaa0007");
    assert_eq!(
        document["entries"][2]["children"],
        json!(["aaaa0004", "aaaa0005"])
    );
    assert_eq!(document["entries"][3]["label"], "rye");
}

#[test]
fn a_deep_session_is_drawn_without_depth() {
    let mut text = header(ID, 10);
    for at in 0..20_000 {
        let parent = (at > 0).then(|| format!("{:08x}", at - 1));
        text.push_str(&line(&format!("{at:08x}"), parent.as_deref(), user("x")));
    }
    let cli = Cli::new().file("deep.jsonl", text);
    let drawn = cli.args(["sessions", "tree", "deep.jsonl"]).run();
    assert_eq!(drawn.stdout.lines().count(), 20_000);
}

#[test]
fn a_fork_is_a_session_of_its_own() {
    let forked = sessions([
        "fork",
        "0190d7a0-a",
        "--entry",
        "aaaa0004",
        "-o",
        "new/fork.jsonl",
    ])
    .args(["--output-format", "json"])
    .run();
    let told: Value = serde_json::from_str(&forked.stdout).unwrap();
    let text = fs::read_to_string(forked.cwd().join("new/fork.jsonl")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let parent = forked.cwd().join(".agent/runs/one/session.jsonl");
    assert_eq!(lines[0]["parentSession"], parent.to_str().unwrap());
    assert_eq!(
        told,
        json!({"id": lines[0]["id"], "path": "new/fork.jsonl", "parentSession": parent,
            "fromEntry": "aaaa0004", "entries": 5})
    );
    let ids: Vec<&Value> = lines.iter().skip(1).map(|line| &line["id"]).collect();
    assert_eq!(ids[..4], ["aaaa0001", "aaaa0002", "aaaa0003", "aaaa0004"]);
    assert_eq!(lines[5]["label"], "rye", "the label comes along");
    assert_eq!(fs::read_to_string(parent).unwrap(), branched());

    let beside = sessions(["fork", ID]).run();
    let (id, path) = beside.stdout.trim_end().split_once(' ').unwrap();
    assert!(path.starts_with(".agent/runs/one/20") && path.ends_with(&format!("_{id}.jsonl")));
    let listed = Cli::at(beside.cwd()).args(["sessions", "list"]).run();
    assert_eq!(listed.stdout.lines().count(), 6);
}

#[test]
fn what_cannot_be_done_is_said() {
    for (args, code, said) in [
        (
            vec!["show", "0190d7a0"],
            66,
            "several sessions match 0190d7a0:\n",
        ),
        (
            vec!["show", "0199"],
            66,
            "no session has the id 0199 in .agent/runs or ",
        ),
        (
            vec!["show", "none.jsonl"],
            66,
            "cannot read the session file none.jsonl",
        ),
        (
            vec!["show", ".agent/runs/one/events.jsonl"],
            65,
            "is no session",
        ),
        (
            vec!["fork", ID, "--entry", "zz"],
            2,
            "there is no entry zz in the session",
        ),
        (
            vec!["fork", ID, "-o", ".agent/runs/two/session.jsonl"],
            74,
            "exists already",
        ),
    ] {
        let refused = sessions(args.clone()).expect_code(code).run();
        assert!(
            refused.stderr.contains(said),
            "{args:?}: {}",
            refused.stderr
        );
        assert_eq!(refused.stdout, "");
    }
}
