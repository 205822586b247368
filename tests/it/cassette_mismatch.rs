//! A run that is not the one of its cassette ends with exit code 10, and says
//! where they part.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use serde_json::{Value, json};

use crate::cassette_scene::{SPEAKERS, Shelf, TASK, call, scene, text};
use crate::support::cli::{Cli, Output};
use crate::support::reply::{Action, Reply};
use crate::support::server::ModelServer;

/// One read, one answer.
fn shelf() -> Shelf {
    let shelf = Shelf::new();
    let speaker = &SPEAKERS[1];
    let read = call("c1", "read", json!({"path": "a.txt"}));
    let replies = vec![speaker.answer(&[read]), speaker.answer(&[text("Read.")])];
    shelf.record(speaker, TASK, replies);
    shelf
}

/// Replays, and gives the message and the hints.
fn differs(cli: Cli) -> (String, Vec<String>) {
    let output = cli.expect_code(10).run();
    let result = output.result();
    assert_eq!(result["reason"], "replay_mismatch", "{result}");
    assert_eq!(result["error"]["code"], "replay_mismatch", "{result}");
    let hints = result["error"]["hints"].as_array().unwrap();
    let hints = hints.iter().map(|hint| hint.as_str().unwrap().to_owned());
    let message = result["error"]["message"].as_str().unwrap().to_owned();
    (message, hints.collect())
}

#[test]
fn the_first_difference_is_shown() {
    let shelf = shelf();
    let prompt = TASK.replace("Do it.", "Do it now.");
    let (message, hints) = differs(shelf.replay(&prompt));
    let (head, diff) = message.split_once('\n').unwrap();
    assert!(
        head.ends_with("run.jsonl: call 1 of the conversation differs:"),
        "{head}"
    );
    assert_eq!(
        diff,
        "message 1, what the user said\n--- recorded\n+++ now\n@@ -1 +1 @@\n-Do it.\n+Do it now."
    );
    let again = format!("--record {}", shelf.cassette().display());
    assert!(hints[0].ends_with(&again), "{hints:?}");

    // No tool is to blame, whatever the words.
    let prompt = TASK.replace("Do it.", "Tell me the result of it.");
    let (_, hints) = differs(shelf.replay(&prompt));
    assert!(!hints[0].contains("--replay-tools"), "{hints:?}");

    let (message, hints) = differs(shelf.replay(TASK).file("ws/a.txt", "gamma\n"));
    assert!(hints[0].contains("--replay-tools"), "{hints:?}");
    assert!(
        message.contains(
            "call 2 of the conversation differs:\nmessage 3, the result of read (call 1)\n"
        ),
        "{message}"
    );
    assert!(message.contains("\n-alpha\n+gamma\n"), "{message}");

    let (message, _) = differs(shelf.replay(TASK).file("ws/a.txt", "x".repeat(400)));
    assert!(
        message.contains("from character 1 on\n--- recorded\n+++ now\n-…alpha⏎⏎…\n+…xxx"),
        "{message}"
    );
}

#[test]
fn settings_and_tools_are_compared() {
    let shelf = shelf();
    for (more, expected) in [
        (
            "settings: {thinking: high, max_output_tokens: 99}\n",
            "the output limit was 16384 and is 99",
        ),
        (
            "settings: {temperature: 0.5}\n",
            "the temperature was unset and is 0.5",
        ),
        ("instructions: Be brief.\n", "the system prompt"),
        ("tools: {enabled: [read]}\n", "the system prompt"),
    ] {
        let (message, _) = differs(shelf.replay(&format!("{TASK}{more}")));
        assert!(message.contains(expected), "{more}: {message}");
    }
    let tools = format!("{TASK}tools: {{enabled: [read]}}\n");
    let (message, _) = differs(shelf.replay(&tools));
    assert!(message.contains("(and one more difference)"), "{message}");
    let (message, hints) = differs(shelf.replay(TASK).args(["--model", "openai/gpt-6.1-sol"]));
    assert!(
        message.ends_with(
            "it was recorded with openai-chat/local, and now openai/gpt-6.1-sol is asked"
        ),
        "{message}"
    );
    assert!(
        hints[0].starts_with("ask openai-chat/local, or record it again: --record"),
        "{hints:?}"
    );
}

/// The cassette, with some of its lines changed.
fn edited(shelf: &Shelf, edit: impl FnOnce(&mut Vec<Value>)) {
    let mut lines = shelf.lines();
    edit(&mut lines);
    let calls = lines
        .iter()
        .filter(|line| line.get("call").is_some())
        .count();
    let tools = lines
        .iter()
        .filter(|line| line.get("tool").is_some())
        .count();
    *lines.last_mut().unwrap() = json!({"end": {"calls": calls, "tools": tools}});
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(shelf.cassette(), text).unwrap();
}

#[test]
fn a_call_too_many_or_too_few_ends_it() {
    let shelf = shelf();
    edited(&shelf, |lines| {
        lines.retain(|line| line["call"]["request"]["kept"] != json!(1))
    });
    let (message, _) = differs(shelf.replay(TASK));
    assert!(message.contains("the conversation has 1 calls, and now there is one more, after the result of read (call 1): alpha"), "{message}");

    let shelf = self::shelf();
    edited(&shelf, |lines| {
        let last = lines
            .iter()
            .rposition(|line| line.get("call").is_some())
            .unwrap();
        let extra = lines[last].clone();
        lines.insert(last, extra);
    });
    let (message, _) = differs(shelf.replay(TASK));
    assert!(
        message
            .ends_with("the run is over, and 1 of the 3 calls of the conversation were not made"),
        "{message}"
    );
}

#[test]
fn tools_from_the_cassette_must_be_those_that_ran() {
    let shelf = shelf();
    let denied = TASK.replace("accept_edits", "accept_edits, deny: ['Read(a.txt)']");
    let (message, _) = differs(shelf.replay(&denied).arg("--replay-tools"));
    assert!(message.contains("differs"), "{message}");
    edited(&shelf, |lines| {
        lines.retain(|line| line.get("tool").is_none())
    });
    let (message, _) = differs(shelf.replay(TASK).arg("--replay-tools"));
    assert!(
        message.ends_with(
            "read {\"path\":\"a.txt\"} has no recorded result: it did not run when it was recorded"
        ),
        "{message}"
    );
    let shelf = self::shelf();
    edited(&shelf, |lines| {
        let tool = lines
            .iter_mut()
            .find(|line| line.get("tool").is_some())
            .unwrap();
        let mut extra = tool.clone();
        extra["tool"]["place"] = json!("1-9-1");
        let at = lines.len() - 1;
        lines.insert(at, extra);
    });
    let (message, _) = differs(shelf.replay(TASK).arg("--replay-tools"));
    assert!(
        message.ends_with("read {\"path\":\"a.txt\"} ran when it was recorded, and does not now"),
        "{message}"
    );
    // Tools that run need no results.
    shelf.replay(TASK).run();
}

#[test]
fn the_provider_is_never_asked() {
    let shelf = shelf();
    let server = ModelServer::start(Vec::<Reply>::new());
    let other = TASK.replace("Do it.", "Do it now.");
    let asking = |cli: Cli| {
        cli.args(["--base-url", &server.url()])
            .env("OPENAI_API_KEY", "sk-test-0123456789abcdef")
    };
    asking(shelf.replay(TASK)).run();
    differs(asking(shelf.replay(&other)));
    differs(asking(shelf.replay(TASK)).args(["--model", "openai-chat/other"]));
    assert_eq!(server.finish().len(), 0);
}

/// Exit code and message of a start with these flags.
fn refused(cli: Cli, code: i32) -> String {
    cli.expect_code(code).run().stderr
}

#[test]
fn what_is_no_cassette_is_refused_before_anything_runs() {
    let shelf = shelf();
    let whole = shelf.text();
    let newer = whole.replacen("\"version\":1", "\"version\":2", 1);
    let torn = &whole[..whole.len() - 60];
    let cut: String = whole
        .lines()
        .take(3)
        .map(|line| format!("{line}\n"))
        .collect();
    let deep = format!(
        "{}\n{{\"call\":{}1",
        whole.lines().next().unwrap(),
        "[".repeat(100_000)
    );
    let wrong = whole.replacen("\"calls\":2", "\"calls\":3", 1);
    let cases = [
        ("", "run.jsonl:1: this is no cassette"),
        ("{}\n", "run.jsonl:1: this is no cassette"),
        ("version: 1\n", "run.jsonl:1: this is no cassette"),
        (
            newer.as_str(),
            "run.jsonl:1: this is a cassette of version 2, written by agent",
        ),
        (torn, "the line is cut"),
        (cut.as_str(), "run.jsonl:3: it has no end, so it was cut"),
        (
            deep.as_str(),
            "run.jsonl:2: this is no line of a cassette: ",
        ),
        (
            wrong.as_str(),
            "its end promises 3 calls and 1 results of tools, and it has 2 and 1",
        ),
    ];
    for (text, expected) in cases {
        std::fs::write(shelf.cassette(), text).unwrap();
        let said = refused(shelf.replay(TASK), 65);
        assert!(said.contains(expected), "{expected}: {said}");
    }
    std::fs::remove_file(shelf.cassette()).unwrap();
    let said = refused(shelf.replay(TASK), 66);
    assert!(said.contains("no such file"), "{said}");
}

#[test]
fn every_cut_of_a_cassette_is_told() {
    let shelf = shelf();
    let whole = shelf.text();
    let telling = |at: &usize| at.is_multiple_of(17) || *at + 100 > whole.len();
    for at in (0..whole.len())
        .filter(|at| whole.is_char_boundary(*at))
        .filter(telling)
    {
        let parsed = agent::model::Cassette::parse(&whole[..at], "c");
        // Only the last line feed is not missed.
        assert_eq!(parsed.is_ok(), at == whole.len() - 1, "cut at {at}");
    }
}

#[test]
fn a_recording_that_cannot_be_kept_is_io() {
    let full = scene(TASK).args(["--record", "/dev/full"]).arg("--model");
    let server = ModelServer::start([SPEAKERS[1].answer(&[text("Done.")])]);
    let done = full
        .args(["openai-chat/local", "--base-url", &server.url()])
        .expect_code(74)
        .run();
    server.finish();
    let result = done.result();
    assert_eq!(result["reason"], "io");
    assert!(
        result["error"]["message"]
            .as_str()
            .unwrap()
            .contains("/dev/full"),
        "{result}"
    );
    let said = refused(
        scene(TASK).args(["--record", "no/such/dir.jsonl", "--model", "openai-chat/x"]),
        74,
    );
    assert!(said.contains("cannot record to"), "{said}");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let script = scene(TASK).file("s.yaml", "- text: done\n");
    let said = refused(
        script.args(["--model", "scripted/s.yaml", "--record", "c.jsonl"]),
        2,
    );
    assert!(
        said.contains("plays a script, which is a recording already"),
        "{said}"
    );
    for flags in [&["--record", "a", "--replay", "b"][..], &["--replay-tools"]] {
        refused(scene(TASK).args(flags), 2);
    }
}

/// Whoever interrupts a recording keeps the cassette that there was.
#[test]
fn an_interrupted_run_leaves_the_older_cassette() {
    let shelf = shelf();
    let older = shelf.text();
    let whole = SPEAKERS[1].reply(&[text("Too late.")]);
    let server = ModelServer::start([whole.cut(100, Action::Hang)]);
    let task = format!("{TASK}limits: {{timeout: 1s}}\n");
    let output: Output = scene(&task)
        .args(["--model", "openai-chat/local", "--base-url", &server.url()])
        .arg("--record")
        .arg(shelf.cassette())
        .expect_code(124)
        .run();
    assert!(
        output.stderr.contains("its recording is not kept"),
        "{}",
        output.stderr
    );
    assert_eq!(shelf.text(), older);
}
