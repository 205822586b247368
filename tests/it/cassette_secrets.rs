//! What a cassette must not hold: secrets, keys, and the paths of one machine.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use serde_json::{Value, json};

use crate::cassette_scene::{KEY, SPEAKERS, Shelf, TASK, call, comparable, scene, text};
use crate::support::anthropic;
use crate::support::chat;
use crate::support::reply::{Action, Reply, sse, status};
use crate::support::server::ModelServer;

const SECRET: &str = "correct-horse-battery-staple";

/// Records against these replies, with a secret in the environment.
fn record(shelf: &Shelf, model: &str, replies: Vec<Reply>) -> String {
    let server = ModelServer::start(replies);
    scene(&TASK.replace("Do it.", &format!("Say {SECRET}.")))
        .args(["--model", model, "--base-url", &server.url()])
        .env("OPENAI_API_KEY", KEY)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("DEPLOY_TOKEN", SECRET)
        .arg("--record")
        .arg(shelf.cassette())
        .run();
    let requests = server.finish();
    assert!(
        requests[0]
            .bytes
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes())
    );
    shelf.text()
}

/// Every text in a cassette, joined: a secret in pieces would show.
fn joined(text: &str) -> String {
    let mut whole = String::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let frames = line["call"]["answer"]["frames"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        for frame in frames {
            let frame = frame.as_str().unwrap();
            let Some((_, data)) = frame.split_once("data: ") else {
                continue;
            };
            let Ok(data) = serde_json::from_str::<Value>(data.trim()) else {
                continue;
            };
            for at in [
                "/choices/0/delta/content",
                "/choices/0/delta/tool_calls/0/function/arguments",
                "/delta/text",
                "/delta/thinking",
                "/delta/partial_json",
                "/delta",
            ] {
                whole.push_str(data.pointer(at).and_then(Value::as_str).unwrap_or_default());
            }
        }
    }
    whole
}

#[test]
fn a_secret_in_any_number_of_pieces_is_not_kept() {
    let arguments = json!({"command": format!("echo {SECRET} | wc -c")});
    let says = [
        text(&format!("It is {SECRET}, over.")),
        call("c1", "shell", arguments),
    ];
    for speaker in &SPEAKERS {
        let shelf = Shelf::new();
        let replies = vec![
            speaker.answer(&says),
            speaker.answer(&[text(&format!("Yes, {SECRET}"))]),
        ];
        let cassette = record(&shelf, speaker.model, replies);
        for leak in [SECRET, KEY, "battery-staple", "correct-horse"] {
            assert!(
                !cassette.contains(leak),
                "{}: {leak}: {cassette}",
                speaker.model
            );
            assert!(
                !joined(&cassette).contains(leak),
                "{}: {leak}",
                speaker.model
            );
        }
        // Whoever replays has no secret: the model's words have none either.
        let task = TASK.replace("Do it.", "Say ***.");
        let replayed = shelf.replay(&task).run();
        assert_eq!(replayed.stdout, "Yes, ***\n", "{}", speaker.model);
    }
}

#[test]
fn single_characters_and_interleaved_calls_hide_nothing() {
    let mut deltas: Vec<Value> = Vec::new();
    for index in [0, 1] {
        let function = json!({"name": "bash", "arguments": ""});
        deltas.push(json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "type": "function", "function": function}]}));
    }
    let arguments = format!("{{\"command\": \"echo {SECRET}\"}}");
    for letter in arguments.chars() {
        for index in [0, 1] {
            let function = json!({"arguments": letter.to_string()});
            deltas.push(json!({"tool_calls": [{"index": index, "function": function}]}));
        }
    }
    let shelf = Shelf::new();
    let replies = vec![
        chat::reply(&deltas, "tool_calls").into(),
        chat::text("Done.").into(),
    ];
    let cassette = record(&shelf, "openai-chat/local", replies);
    assert!(!cassette.contains(SECRET));
    // Both calls are there, clean.
    let clean = cassette.matches(r#"\"arguments\":\"***\""#).count();
    assert_eq!(clean, 2, "{cassette}");
}

#[test]
fn what_breaks_off_inside_a_frame_keeps_no_half_of_a_secret() {
    let shelf = Shelf::new();
    let reply = anthropic::text(&format!("It is {SECRET}, over."));
    let cut = reply.find("battery") + 10;
    let replies = vec![
        reply.cut(cut, Action::Reset),
        anthropic::text("Done.").into(),
    ];
    let cassette = record(&shelf, "anthropic/claude-sonnet-5", replies);
    assert!(!cassette.contains("battery"), "{cassette}");
    let replayed = shelf.replay(&TASK.replace("Do it.", "Say ***.")).run();
    assert_eq!(replayed.result()["retries"], 1);
}

#[test]
fn errors_and_headers_are_clean_too() {
    let shelf = Shelf::new();
    let body =
        json!({"error": {"message": format!("key {KEY} may not say {SECRET}"), "type": "x"}});
    let refusal = status(503)
        .header("x-request-id", &format!("req-{SECRET}"))
        .header("set-cookie", "session=1234567890")
        .header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT")
        .json(&body);
    let page = sse(format!(": {SECRET}\n\n{}", chat::text("Done.").text()));
    let cassette = record(
        &shelf,
        "openai-chat/local",
        vec![refusal.into(), page.into()],
    );
    for leak in [SECRET, KEY, "cookie", "authorization", "2015"] {
        assert!(!cassette.contains(leak), "{leak}: {cassette}");
    }
    let answer = &shelf.lines()[2]["call"]["answer"];
    assert_eq!(
        answer["headers"],
        json!({
            "content-type": "application/json", "retry-after-ms": "0", "x-request-id": "req-***",
        })
    );
}

#[test]
fn a_key_that_is_part_of_other_text_breaks_no_frame() {
    // A part of a number, a whole number, and a word of the format.
    for key in ["1700", "1700000000", "content"] {
        let shelf = Shelf::new();
        let server = ModelServer::start([chat::text("Done in 1700000000.")]);
        scene(TASK)
            .args(["--model", "openai-chat/local", "--base-url", &server.url()])
            .env("OPENAI_API_KEY", key)
            .arg("--record")
            .arg(shelf.cassette())
            .run();
        server.finish();
        for line in shelf.lines() {
            let frames = line["call"]["answer"]["frames"].as_array().cloned();
            for frame in frames.unwrap_or_default() {
                let data = frame
                    .as_str()
                    .unwrap()
                    .split_once("data: ")
                    .unwrap()
                    .1
                    .to_owned();
                if data.trim() != "[DONE]" {
                    serde_json::from_str::<Value>(data.trim()).unwrap();
                }
            }
        }
        let replayed = shelf.replay(TASK).run();
        let expect = match key.len() {
            10 => "Done in ***.\n",
            _ => "Done in 1700000000.\n",
        };
        assert_eq!(replayed.stdout, expect, "{key}");
    }
}

#[test]
fn directories_go_by_their_names() {
    for speaker in &SPEAKERS {
        let shelf = Shelf::new();
        // The workspace is known only when the program runs in it.
        let place = scene(TASK);
        let workspace = place.cwd().join("ws");
        let file = workspace.join("a.txt");
        let says = [
            text(&format!("I read {}.", file.display())),
            call("c1", "read", json!({"path": file})),
        ];
        let server = ModelServer::start([
            speaker.answer(&says),
            speaker.answer(&[text(&format!(
                "{} is no {}2.",
                workspace.display(),
                workspace.display()
            ))]),
        ]);
        let recorded = place
            .args(["--model", speaker.model, "--base-url", &server.url()])
            .env("OPENAI_API_KEY", KEY)
            .env("ANTHROPIC_API_KEY", KEY)
            .env("GEMINI_API_KEY", KEY)
            .arg("--record")
            .arg(shelf.cassette())
            .run();
        server.finish();
        let cassette = shelf.text();
        let shown = workspace.display().to_string();
        assert_eq!(
            cassette.matches(&shown).count(),
            cassette.matches(&format!("{shown}2")).count()
        );
        assert!(cassette.contains("⟦workspace⟧/a.txt"), "{}", speaker.model);
        let replayed = shelf.replay(TASK).run();
        let (then, now) = (comparable(&recorded), comparable(&replayed));
        assert_eq!(now.0["toolCalls"]["read"]["errors"], 0, "{}", speaker.model);
        assert_eq!(then.0["toolCalls"], now.0["toolCalls"]);
        let here = replayed.cwd().join("ws").display().to_string();
        assert!(
            replayed.stdout.starts_with(&format!("{here} is no ")),
            "{}",
            replayed.stdout
        );
    }
}
