//! No secret passes the recorder: neither in a line nor in an event.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::event::{EventKind, Reason, ToolErrorStatus};
use agent::report::{Deltas, Ending, Recorder, RecorderOptions};
use agent::secret::Redactor;
use serde_json::{Value, json};

use crate::report_events::*;

const SECRET: &str = "pa\"ss\\word\nof two lines";
const PLAIN: &str = "correct-horse-battery";

fn record(secret: &str, deltas: Deltas, kinds: Vec<EventKind>) -> (agent::report::Report, Kept) {
    let kept = Kept::default();
    let mut recorder = Recorder::new(RecorderOptions {
        redactor: Redactor::new([secret.to_owned()]),
        deltas,
        ..options(vec![Box::new(kept.clone())])
    });
    recorder.write(run_start(&["fix"]));
    for kind in kinds {
        recorder.write(in_job(kind));
    }
    (close(recorder, Reason::Success), kept)
}

fn check_absent(kept: &Kept, secret: &str) {
    let escaped = serde_json::to_string(secret).unwrap();
    let escaped = escaped.trim_matches('"');
    for (event, line) in kept.0.lock().unwrap().iter() {
        assert!(!line.contains(escaped), "in {line}");
        let again = serde_json::to_string(event).unwrap();
        assert_eq!(&again, line, "the event and its line differ");
        let debug = format!("{event:?}");
        assert!(
            !debug.contains(&format!("{secret:?}").trim_matches('"').to_owned()),
            "{debug}"
        );
    }
}

#[test]
fn a_secret_in_any_leaf_is_hidden_from_lines_events_and_result() {
    for secret in [PLAIN, SECRET] {
        let nested = json!({"body": secret}).to_string();
        let (report, kept) = record(
            secret,
            Deltas::None,
            vec![
                job_start(),
                reply(
                    &format!("I found {secret}."),
                    &[(
                        "a",
                        "bash",
                        json!({"command": format!("echo {secret}"), "list": [secret, 1]}),
                    )],
                    Some(0.1),
                ),
                tool_start("a", "bash", json!({"command": nested})),
                tool_error("a", "bash", ToolErrorStatus::Denied),
                tool_complete("b", "read", &format!("before {nested} after")),
                warning(secret),
                turn_end(&format!("It is {secret}!")),
            ],
        );
        check_absent(&kept, secret);
        let result = serde_json::to_string(&report.result).unwrap();
        assert!(result.contains("It is ***!"), "{result}");
        assert_eq!(report.result.warnings[0].message, "***");
        assert_eq!(report.result.denials[0].tool, "bash");
        for (_, line) in kept.0.lock().unwrap().iter() {
            assert!(!line.contains("word\\nof"), "a nested secret in {line}");
        }
    }
}

#[test]
fn a_secret_in_the_error_of_the_run_is_hidden_from_the_result() {
    let kept = Kept::default();
    let mut recorder = Recorder::new(RecorderOptions {
        redactor: Redactor::new([PLAIN.to_owned()]),
        ..options(vec![Box::new(kept.clone())])
    });
    recorder.write(run_start(&["fix"]));
    let report = recorder.close(Ending {
        reason: Reason::Auth,
        error: Some(error(&format!("the key {PLAIN} was refused"))),
    });
    let message = report.result.error.unwrap().message;
    assert_eq!(message, "the key *** was refused");
    check_absent(&kept, PLAIN);
}

#[test]
fn names_and_numbers_of_arguments_are_redacted_too() {
    let (_, kept) = record(
        "4111111111111111",
        Deltas::None,
        vec![tool_start(
            "a",
            "pay",
            json!({"card": 4_111_111_111_111_111_u64, "4111111111111111": true}),
        )],
    );
    let log = kept.log();
    assert!(!log.contains("4111111111111111"), "{log}");
    assert!(log.contains(r#""***":true"#), "{log}");
}

#[test]
fn a_secret_that_is_one_of_our_words_breaks_no_event() {
    let (report, kept) = record(
        "complete",
        Deltas::None,
        vec![
            reply("complete", &[("a", "read", json!({}))], None),
            tool_complete("a", "read", "complete"),
        ],
    );
    assert_eq!(
        kept.names(),
        [
            "run:start",
            "message:complete",
            "tool:execution:complete",
            "run:end"
        ]
    );
    assert_eq!(report.result.tool_calls["read"].count, 1);
    let (_, kept) = record(
        "accept_edits",
        Deltas::None,
        vec![tool_error("a", "read", ToolErrorStatus::InvalidInput)],
    );
    assert_eq!(kept.names()[1], "tool:execution:error invalid_input");
}

#[test]
fn a_secret_split_over_chunks_is_hidden_and_nothing_else_is_lost() {
    for cut in 1..PLAIN.len() {
        let (head, tail) = PLAIN.split_at(cut);
        let (_, kept) = record(
            PLAIN,
            Deltas::Full,
            vec![
                text_chunk(&format!("say {head}")),
                text_chunk(&format!("{tail} now")),
                reply("x", &[], None),
                tool_start("a", "bash", json!({})),
                tool_update("a", &format!("out {head}")),
                tool_update("a", tail),
                tool_complete("a", "bash", "x"),
            ],
        );
        check_absent(&kept, PLAIN);
        let (mut text, mut output, mut content) = (String::new(), String::new(), Value::Null);
        let mut ended = false;
        for line in kept.log().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let delta = line["data"]["delta"].as_str().unwrap_or_default();
            match line["event"].as_str().unwrap() {
                "message:text:chunk" => {
                    assert!(!ended, "a chunk after its message");
                    text.push_str(delta);
                    content = line["data"]["content"].clone();
                }
                "message:complete" => ended = true,
                "tool:execution:update" => output.push_str(delta),
                _ => {}
            }
        }
        assert_eq!((text.as_str(), output.as_str()), ("say *** now", "out ***"));
        assert_eq!(content, "say *** now");
    }
}

#[test]
fn well_known_tokens_are_hidden_unasked() {
    let key = format!(
        "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n".repeat(4).trim_end()
    );
    let (_, kept) = record(PLAIN, Deltas::None, vec![tool_complete("a", "read", &key)]);
    assert!(
        !kept.log().contains("MIIEvQIBADANBgkqhkiG9w0BAQEFAASC"),
        "{}",
        kept.log()
    );
}

#[test]
fn a_token_behind_a_control_character_is_hidden() {
    // In JSON the character is a code, which ends with a digit.
    let key = "AKIAQ3J7ZK2MW9XB4T6V";
    for control in ["\u{7}", "\u{1b}", "\u{8}", "\u{c}", "\n", "\t"] {
        let text = format!("the key:{control}{key}");
        let (_, kept) = record(PLAIN, Deltas::None, vec![tool_complete("a", "read", &text)]);
        assert!(!kept.log().contains(key), "{control:?}: {}", kept.log());
    }
}
