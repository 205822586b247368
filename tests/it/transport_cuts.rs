//! Streams that break, stall or go wrong in the middle: no half reply counts.

use std::time::Duration;

use serde_json::json;

use crate::support::dialect::{ANTHROPIC, BOTH, CHAT, Dialect, retries, told};
use crate::support::reply::{Action, Reply, Response, sse};
use crate::support::server::ModelServer;

/// Every way in which a stream ends before this mark.
fn cuts(whole: &Response, mark: &str) -> Vec<(&'static str, Reply)> {
    let inside = whole.find(mark);
    let frame = frame_before(whole, inside);
    vec![
        ("reset", whole.clone().cut(inside, Action::Reset)),
        ("half-closed", whole.clone().cut(inside, Action::HalfClose)),
        (
            "closed between frames",
            whole.clone().cut(frame, Action::HalfClose),
        ),
        (
            "a clean end inside a frame",
            whole.clone().first(inside).into(),
        ),
        (
            "a clean end between frames",
            whole.clone().first(frame).into(),
        ),
        (
            "an end without a length",
            whole.clone().first(frame).until_close(),
        ),
    ]
}

/// Where the frame begins that this byte belongs to.
fn frame_before(whole: &Response, byte: usize) -> usize {
    whole.text()[..byte].rfind("\n\n").map_or(0, |at| at + 2)
}

#[test]
fn a_text_that_breaks_off_is_shown_once() {
    for dialect in BOTH {
        let answer = (dialect.text)("The answer is forty-two.");
        // The second half of the text.
        for (how, cut) in cuts(&answer, "forty-two.") {
            let server = ModelServer::start([cut, answer.clone().into()]);
            let output = dialect
                .task(&server.url(), "")
                .args(["--deltas", "delta"])
                .run();
            assert_eq!(output.stdout, "The answer is forty-two.\n", "{how}");
            let complete = told(&output, "message:complete");
            assert_eq!(complete.len(), 1, "{how}");
            assert_eq!(complete[0]["content"], "The answer is forty-two.");
            let replies = output.session();
            let replies = replies
                .iter()
                .filter(|entry| entry["message"]["role"] == "assistant");
            assert_eq!(replies.count(), 1, "{how}");
            let starts = told(&output, "retry:start");
            assert_eq!(starts.len(), 1, "{how}");
            let code = starts[0]["errorCode"].as_str().unwrap();
            assert!(
                ["truncated", "unavailable"].contains(&code),
                "{how}: {code}"
            );
            // A reset may take what was sent with it.
            if how != "reset" {
                assert_eq!(starts[0]["discardedOutput"], true, "{how}");
            }
            assert_eq!(told(&output, "retry:end")[0]["success"], true, "{how}");
            // What was told before the cut is paid for, too.
            let discarded = told(&output, "reply:discarded");
            let paid: u64 = discarded
                .iter()
                .filter_map(|one| one["usage"]["input"].as_u64())
                .sum();
            assert_eq!(output.result()["usage"]["input"], 100 + paid, "{how}");
            if how != "reset" {
                assert_eq!(discarded.len(), 1, "{how}");
                let told_early = dialect.path == ANTHROPIC.path;
                assert_eq!(paid, if told_early { 100 } else { 0 }, "{how}");
            }
            let requests = server.finish();
            assert_eq!(requests[0].bytes, requests[1].bytes, "{how}");
        }
    }
}

#[test]
fn a_call_that_breaks_off_is_never_run() {
    let call = json!({"command": "touch made"});
    for dialect in BOTH {
        let whole = (dialect.calls)(&[
            ("c0", "bash", json!({"command": "touch too"})),
            ("c1", "bash", call.clone()),
        ]);
        for (how, cut) in cuts(&whole, "touch made") {
            let server = ModelServer::start([cut, (dialect.text)("Never mind.").into()]);
            let output = dialect
                .task(&server.url(), "permissions: {allow: ['Bash(touch:*)']}\n")
                .run();
            assert_eq!(output.stdout, "Never mind.\n", "{how}");
            assert!(!output.cwd().join("made").exists(), "{how}");
            // A call that was whole in a reply that was not is not run either.
            assert!(!output.cwd().join("too").exists(), "{how}");
            let names = output.event_names();
            assert!(
                !names.iter().any(|name| name.starts_with("tool:")),
                "{how}: {names:?}"
            );
            assert_eq!(retries(&output).len(), 1, "{how}");
            let requests = server.finish();
            assert_eq!(requests[0].bytes, requests[1].bytes, "{how}");
        }
    }
}

#[test]
fn a_stream_that_always_breaks_off_is_given_up() {
    for dialect in BOTH {
        let answer = (dialect.text)("Half of it");
        let cut = answer.clone().first(answer.find("of it"));
        let server = ModelServer::start(vec![cut; 3]);
        let output = dialect.task(&server.url(), "").expect_code(69).run();
        assert_eq!(server.finish().len(), 3);
        assert_eq!(output.stdout, "");
        let result = output.result();
        assert_eq!(result["reason"], "unavailable");
        assert_eq!(result["error"]["code"], "truncated");
        assert_eq!(result["finalText"], "");
        assert_eq!(told(&output, "message:complete").len(), 0);
    }
}

#[test]
fn what_happens_after_the_last_word_is_no_failure() {
    for dialect in BOTH {
        let answer = (dialect.text)("Whole.");
        let mut replies: Vec<Reply> = vec![
            answer.clone().cut(usize::MAX, Action::HalfClose),
            answer.clone().cut(usize::MAX, Action::Hang),
            answer.clone().until_close(),
            sse(format!(
                "{}{}",
                answer.text(),
                (dialect.error_frame)("api_error", "Late.")
            ))
            .into(),
        ];
        if dialect.path == CHAT.path {
            // A reason to stop is an end, with or without the mark behind it.
            replies.push(answer.clone().first(answer.find("data: [DONE]")).into());
        }
        for reply in replies {
            let server = ModelServer::start([reply]);
            let output = dialect.task(&server.url(), "").run();
            assert_eq!(output.stdout, "Whole.\n");
            assert_eq!(retries(&output), []);
            assert_eq!(server.finish().len(), 1);
        }
    }
}

fn with_frame(dialect: &Dialect, frame: &str) -> Response {
    let answer = (dialect.text)("The first half and the second.");
    let middle = frame_before(&answer, answer.find("the second."));
    let (before, after) = answer.text().split_at(middle);
    sse(format!("{before}{frame}{after}"))
}

#[test]
fn an_error_in_the_middle_of_a_stream_counts_at_once() {
    for dialect in BOTH {
        let table = [
            (
                (dialect.error_frame)("overloaded_error", "Overloaded."),
                "overloaded",
            ),
            (
                (dialect.error_frame)("api_error", "Internal."),
                "unavailable",
            ),
            (
                "data: {\"type\": \"content_block_delta\", \"choi\n\n".to_owned(),
                "bad_response",
            ),
        ];
        for (frame, code) in table {
            let reply = with_frame(&dialect, &frame);
            let server = ModelServer::start([reply, (dialect.text)("Whole.")]);
            let output = dialect
                .task(&server.url(), "")
                .args(["--deltas", "delta"])
                .run();
            assert_eq!(output.stdout, "Whole.\n");
            let starts = told(&output, "retry:start");
            assert_eq!(starts.len(), 1);
            assert_eq!(starts[0]["errorCode"], code);
            assert_eq!(starts[0]["discardedOutput"], true);
            server.finish();
        }
        // One that stays is not tried again.
        let frame = (dialect.error_frame)("invalid_request_error", "Wrong field.");
        let server = ModelServer::start([with_frame(&dialect, &frame)]);
        let output = dialect.task(&server.url(), "").expect_code(78).run();
        assert_eq!(output.stdout, "");
        assert_eq!(server.finish().len(), 1);
    }
}

#[test]
fn a_provider_that_falls_silent_is_tried_again_within_the_idle_limit() {
    for dialect in BOTH {
        let answer = (dialect.text)("The answer is slow.");
        for silent in [
            Reply::hang(),
            answer.clone().cut(0, Action::Hang),
            answer.clone().cut(answer.find("is slow."), Action::Hang),
        ] {
            let server = ModelServer::start([silent, answer.clone().into()]);
            let output = dialect
                .task(&server.url(), "limits: {idle_timeout: 2s, timeout: 40s}\n")
                .run();
            assert_eq!(output.stdout, "The answer is slow.\n");
            assert_eq!(retries(&output).len(), 1);
            assert_eq!(told(&output, "limit:reached").len(), 0);
            assert_eq!(server.finish().len(), 2);
        }
    }
}

#[test]
fn a_provider_that_never_answers_is_given_up_after_its_attempts() {
    // Each attempt gets half of the idle limit, so that the provider is what
    // is blamed and not the run.
    for dialect in BOTH {
        let server = ModelServer::start(vec![Reply::hang(); 3]);
        let output = dialect
            .task(&server.url(), "limits: {idle_timeout: 2s, timeout: 40s}\n")
            .expect_code(69)
            .run();
        assert_eq!(server.finish().len(), 3);
        let result = output.result();
        assert_eq!(result["reason"], "unavailable");
        let duration = result["durationMs"].as_u64().unwrap();
        assert!((3000..15_000).contains(&duration), "{duration}");
        assert_eq!(retries(&output).len(), 2);
        assert_eq!(told(&output, "limit:reached").len(), 0);
    }
}

#[test]
fn a_stream_that_stalls_does_not_outlive_the_wall_clock() {
    for dialect in BOTH {
        let answer = (dialect.text)("The answer is slow.");
        for at in [0, answer.find("is slow.")] {
            let server = ModelServer::start([answer.clone().cut(at, Action::Hang)]);
            let output = dialect
                .task(&server.url(), "limits: {timeout: 1s}\n")
                .expect_code(124)
                .run();
            assert_eq!(server.finish().len(), 1);
            let result = output.result();
            assert_eq!(result["error"]["code"], "timeout");
            let duration = result["durationMs"].as_u64().unwrap();
            assert!((1000..15_000).contains(&duration), "{duration}");
            // Half a reply is none.
            assert_eq!(output.stdout, "");
            assert_eq!(result["finalText"], "");
            assert_eq!(told(&output, "message:complete").len(), 0);
        }
    }
}

#[test]
fn a_stream_that_never_ends_meets_the_wall_clock() {
    let ping = anthropic_ping();
    let mut actions = vec![Action::Send(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec(),
    )];
    for _ in 0..200 {
        actions.push(Action::Send(ping.clone()));
        actions.push(Action::Pause(Duration::from_millis(100)));
    }
    let server = ModelServer::start([Reply::raw(actions)]);
    let output = ANTHROPIC
        .task(&server.url(), "limits: {timeout: 2s}\n")
        .expect_code(124)
        .run();
    let result = output.result();
    assert_eq!(result["error"]["code"], "timeout");
    assert!(result["durationMs"].as_u64().unwrap() < 15_000);
    server.finish();
}

fn anthropic_ping() -> Vec<u8> {
    crate::support::anthropic::event("ping", &json!({})).into_bytes()
}

#[test]
fn signs_of_life_keep_a_slow_stream_alive() {
    for (dialect, sign) in [
        (ANTHROPIC, anthropic_ping()),
        (CHAT, b": wait\n\n".to_vec()),
    ] {
        let answer = (dialect.text)("Slow but sure.");
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let mut actions = vec![Action::Send(head.into())];
        for _ in 0..10 {
            actions.push(Action::Send(sign.clone()));
            actions.push(Action::Pause(Duration::from_millis(300)));
        }
        actions.push(Action::Send(answer.text().into()));
        let server = ModelServer::start([Reply::raw(actions)]);
        let output = dialect
            .task(&server.url(), "limits: {idle_timeout: 2s}\n")
            .run();
        assert_eq!(output.stdout, "Slow but sure.\n");
        assert!(output.result()["durationMs"].as_u64().unwrap() >= 3000);
        assert_eq!(retries(&output), []);
        server.finish();
    }
}
