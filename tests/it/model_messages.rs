//! What providers really say when they refuse, and what kind of error it is.
//!
//! A line of `messages.jsonl` is a status, a body and the kind; with
//! `"retried": false` it is not tried again although its kind passes, and
//! `wait_ms` is the wait that its words ask for. Status 200 is an error inside
//! an answer.

use agent::model::{ModelError, body_error, http_error, says_overflow};
use serde_json::Value;

const MESSAGES: &str = include_str!("../fixtures/errors/messages.jsonl");

/// A line, and the error that it is.
fn all() -> Vec<(Value, ModelError)> {
    let error = |line: &Value| {
        let body = match &line["body"] {
            Value::String(text) => text.clone(),
            body => body.to_string(),
        };
        match line["status"].as_u64().expect("a status") {
            200 => body_error(&body),
            status => http_error(u16::try_from(status).expect("a status"), &body),
        }
    };
    MESSAGES
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .map(|line| (error(&line), line))
        .map(|(error, line)| (line, error))
        .collect()
}

#[test]
fn each_message_is_of_its_kind() {
    let all = all();
    assert!(all.len() > 100, "{}", all.len());
    let wrong: Vec<String> = all
        .iter()
        .filter(|(line, error)| line["kind"] != error.kind.name())
        .map(|(line, error)| format!("{}: {line}", error.kind.name()))
        .collect();
    assert!(wrong.is_empty(), "these are not:\n{}", wrong.join("\n"));
}

#[test]
fn what_passes_is_tried_again_after_the_wait_that_is_asked_for() {
    const PASSING: [&str; 4] = ["rate_limited", "overloaded", "unavailable", "bad_response"];
    for (line, error) in all() {
        let passes = PASSING.contains(&error.kind.name()) && line["retried"] != false;
        assert_eq!(error.is_retryable(), passes, "{line}");
        let wait = error.retry_after.map(|wait| wait.as_millis());
        let asked = line["wait_ms"].as_u64().map(u128::from);
        assert_eq!(wait, asked, "{line}");
        // One that is not tried again says what to do.
        if line["retried"] == false {
            assert!(!error.hints.is_empty(), "{line}");
        }
    }
}

#[test]
fn only_overflow_says_overflow() {
    for (line, error) in all() {
        let said = says_overflow(&error.message);
        let kind = error.kind.name();
        assert!(
            !said || kind == "context_overflow" || kind == "quota",
            "{line}"
        );
    }
}

#[test]
fn the_body_names_the_request() {
    let (_, error) = &all()[0];
    let expect = Some("req_011abcdefghijklmnop");
    assert_eq!(error.request_id.as_deref(), expect);
}
