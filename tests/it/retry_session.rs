//! Failed calls of a model within a session: which are tried again, when, what
//! is told of it, and what stays of the session. Time stands still.

use std::time::Duration;

use agent::event::{EventKind, Reason};
use agent::model::RetryPolicy;
use agent::session::{Cause, Interrupt};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::session::{Play, Stage, TestTool, Told, calls, text};

#[expect(clippy::disallowed_methods, reason = "the clock that stands still")]
fn now() -> Instant {
    Instant::now()
}

/// How long this takes by the clock that moves only when all wait.
async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let start = now();
    let outcome = work.await;
    (outcome, now() - start)
}

fn error(status: u16, code: &str, message: &str) -> Value {
    json!({"error": {"status": status, "code": code, "message": message}})
}

/// A provider that asks to wait.
fn busy(status: u16, retry_after: &str) -> Value {
    json!({"error": {"status": status, "message": "Busy.", "retry_after": retry_after}})
}

/// A session with the usual waits and all the patience that they need.
async fn patient(stage: Stage) -> Play {
    let mut stage = stage;
    stage.retry = RetryPolicy {
        max_attempts: stage.retry.max_attempts,
        ..RetryPolicy::default()
    };
    let mut play = stage.open().await;
    play.patience = Duration::from_secs(3_600);
    play
}

fn waits(told: &Told) -> Vec<u64> {
    let delays = told.field("retry:start", "delayMs");
    delays.iter().map(|delay| delay.as_u64().unwrap()).collect()
}

/// The clock counts whole milliseconds, and each wait may be rounded up.
fn about(elapsed: Duration, waits: &[u64]) -> bool {
    let sum: u64 = waits.iter().sum();
    let elapsed = u64::try_from(elapsed.as_millis()).unwrap();
    (sum..=sum + 2 * waits.len() as u64 + 1).contains(&elapsed)
}

#[tokio::test(start_paused = true)]
async fn what_passes_is_tried_again() {
    let cut = json!({"text": "half of", "cut": true});
    let silent = json!({"text": "never", "delay": "1h"});
    let table = [
        (error(408, "", "Timed out."), "timeout", json!(408)),
        (error(409, "", "Conflict."), "unavailable", json!(409)),
        (error(429, "", "Slow down."), "rate_limited", json!(429)),
        (error(500, "", "Broken."), "unavailable", json!(500)),
        (error(502, "", "Broken."), "unavailable", json!(502)),
        (error(503, "", "Broken."), "unavailable", json!(503)),
        (error(504, "", "Broken."), "unavailable", json!(504)),
        (
            error(500, "overloaded_error", "x"),
            "overloaded",
            json!(500),
        ),
        (error(529, "", "Overloaded."), "overloaded", json!(529)),
        (cut, "truncated", Value::Null),
        (silent, "timeout", Value::Null),
    ];
    for (reply, code, status) in table {
        let mut play = patient(Stage::new(json!([reply, text("done")]))).await;
        let answer = play.prompt("go").await.unwrap();
        assert_eq!((answer.text.as_str(), answer.steps), ("done", 1), "{reply}");
        let told = play.end().await;
        let start = told.data("retry:start");
        assert_eq!(start.len(), 1, "{reply}");
        assert_eq!(
            json!([
                start[0]["attempt"],
                start[0]["maxAttempts"],
                start[0]["source"],
                start[0]["errorCode"],
                start[0]["httpStatus"],
                start[0]["discardedOutput"],
            ]),
            json!([2, 5, "backoff", code, status, false])
        );
        let end = told.data("retry:end");
        assert_eq!(
            json!(end),
            json!([{"retryId": start[0]["retryId"], "success": true, "attempts": 2}])
        );
        // Nothing of the failed attempt stays.
        assert_eq!(told.speakers(), "ua", "{reply}");
        assert_eq!(told.field("message:complete", "content"), ["done"]);
        assert!(told.data("session:error").is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_stays_is_not_tried_again_and_the_next_prompt_works() {
    let table = [
        (
            error(400, "invalid_request_error", "Wrong."),
            Reason::Config,
        ),
        (error(404, "not_found_error", "No model."), Reason::Config),
        (error(401, "authentication_error", "Who?"), Reason::Auth),
        (error(403, "permission_error", "Not you."), Reason::Auth),
        (error(402, "billing_error", "Pay."), Reason::Auth),
        (
            error(429, "insufficient_quota", "You exceeded your quota."),
            Reason::Auth,
        ),
        (
            error(400, "x", "Your credit balance is too low."),
            Reason::Auth,
        ),
        (
            error(400, "content_filter", "Filtered."),
            Reason::Incomplete,
        ),
    ];
    for (mut reply, reason) in table {
        // That it names a time changes nothing.
        reply["error"]["retry_after"] = json!("1s");
        let mut play = patient(Stage::new(json!([reply, text("later")]))).await;
        let (outcome, elapsed) = timed(play.prompt("go")).await;
        assert_eq!(outcome.unwrap_err().reason(), reason, "{reply}");
        assert!(elapsed.is_zero(), "{reply}: {elapsed:?}");
        assert_eq!(play.prompt("again").await.unwrap().text, "later");
        let told = play.end().await;
        assert!(told.data("retry:start").is_empty(), "{reply}");
        assert_eq!(told.data("session:error").len(), 1, "{reply}");
        assert_eq!(told.speakers(), "uua", "{reply}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_that_is_too_long_is_not_sent_again_as_it_is() {
    let overflow = error(400, "context_length_exceeded", "prompt is too long: 2 > 1");
    let mut play = patient(Stage::new(json!([overflow]))).await;
    let (outcome, elapsed) = timed(play.prompt("go")).await;
    assert_eq!(outcome.unwrap_err().reason(), Reason::Incomplete);
    assert!(elapsed.is_zero(), "{elapsed:?}");
    let told = play.end().await;
    assert!(told.data("retry:start").is_empty());
    assert_eq!(
        told.field("session:error", "type"),
        [json!("context_length_exceeded")]
    );
}

#[tokio::test(start_paused = true)]
async fn waits_double_with_jitter_up_to_their_cap() {
    let table: [(u32, &[u64]); 2] = [
        (5, &[2, 4, 8, 16]),
        (10, &[2, 4, 8, 16, 32, 60, 60, 60, 60]),
    ];
    for (attempts, most) in table {
        let failures = vec![error(503, "", "Broken."); attempts as usize];
        let mut stage = Stage::new(json!(failures));
        stage.retry.max_attempts = attempts;
        let mut play = patient(stage).await;
        let (outcome, elapsed) = timed(play.prompt("go")).await;
        assert_eq!(outcome.unwrap_err().reason(), Reason::Unavailable);
        let told = play.end().await;
        let waits = waits(&told);
        assert_eq!(waits.len(), most.len());
        for (wait, most) in waits.iter().zip(most) {
            assert!(*wait <= most * 1000, "{waits:?}");
        }
        // All of them are kept, and none comes after the last attempt.
        assert!(about(elapsed, &waits), "{elapsed:?} {waits:?}");
        let numbers: Vec<Value> = (2..=attempts).map(Value::from).collect();
        assert_eq!(told.field("retry:start", "attempt"), numbers);
        let ids = told.field("retry:start", "retryId");
        assert!(ids.iter().all(|id| *id == ids[0]));
        let end = told.data("retry:end");
        assert_eq!(end.len(), 1);
        assert_eq!(
            json!([end[0]["retryId"], end[0]["success"], end[0]["attempts"]]),
            json!([ids[0], false, attempts])
        );
        let last = end[0]["finalError"].as_str().unwrap();
        assert!(
            last.contains("HTTP 503") && last.contains("Broken."),
            "{last}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_wait_that_a_provider_asks_for_is_kept() {
    for (reply, wait) in [
        (busy(429, "7s"), 7_000),
        (busy(529, "90s"), 90_000),
        (busy(503, "10m"), 600_000),
        (busy(429, "250ms"), 250),
        (busy(429, "0s"), 0),
    ] {
        let mut play = patient(Stage::new(json!([reply, text("done")]))).await;
        let (outcome, elapsed) = timed(play.prompt("go")).await;
        assert_eq!(outcome.unwrap().text, "done");
        assert!(about(elapsed, &[wait]), "{reply}: {elapsed:?}");
        let told = play.end().await;
        assert_eq!(waits(&told), [wait]);
        assert_eq!(told.field("retry:start", "source"), ["retry-after"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_longer_than_allowed_or_left_ends_it_at_once() {
    let table = [
        (busy(429, "601s"), 45 * 60, "601 s"),
        (busy(529, "24h"), 45 * 60, "86400 s"),
        (busy(503, "24h"), 45 * 60, "86400 s"),
        // Allowed, but the session ends first.
        (busy(429, "90s"), 60, "90 s"),
    ];
    for (reply, timeout, wait) in table {
        let stage = Stage::new(json!([reply, text("later")]))
            .limits(|limits| limits.timeout = Duration::from_secs(timeout));
        let mut play = patient(stage).await;
        let (outcome, elapsed) = timed(play.prompt("go")).await;
        let stop = outcome.unwrap_err();
        // It would have passed, but not soon.
        assert_eq!(stop.reason(), Reason::RateLimited, "{reply}");
        let told = format!("Busy.; it asks to wait {wait}, which is longer than allowed or left");
        assert!(stop.to_string().ends_with(&told), "{stop}");
        assert!(stop.hints()[0].contains("limits.max_retry_wait"));
        assert!(elapsed.is_zero(), "{reply}: {elapsed:?}");
        play.prompt("again").await.unwrap();
        let told = play.end().await;
        assert!(told.data("retry:start").is_empty(), "{reply}");
        let details = &told.data("session:error")[0]["error"]["details"];
        let wait: u64 = wait.trim_end_matches(" s").parse().unwrap();
        assert_eq!(
            json!([details["retryAfterMs"], details["gaveUp"]]),
            json!([wait * 1000, "wait_too_long"])
        );
        assert_eq!(told.speakers(), "uua");
    }
}

#[tokio::test(start_paused = true)]
async fn a_backoff_that_does_not_fit_ends_it_at_once() {
    // Whatever jitter chooses, the attempts need longer than there is.
    let mut stage = Stage::new(json!([error(503, "", "Broken.")]))
        .limits(|limits| limits.timeout = Duration::from_millis(900));
    stage.retry.base_delay = Duration::from_secs(u64::from(u32::MAX));
    stage.retry.max_delay = stage.retry.base_delay;
    let mut play = stage.open().await;
    let (outcome, elapsed) = timed(play.prompt("go")).await;
    let stop = outcome.unwrap_err();
    assert_eq!(stop.reason(), Reason::Unavailable);
    let told = "the time that is left is too short for another attempt";
    assert!(stop.to_string().ends_with(told), "{stop}");
    assert!(elapsed.is_zero(), "{elapsed:?}");
    let told = play.end().await;
    assert_eq!(
        told.data("session:error")[0]["error"]["details"]["gaveUp"],
        "deadline_too_near"
    );
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_wait_ends_at_once_and_the_next_prompt_works() {
    let mut play = patient(Stage::new(json!([busy(429, "9m"), text("later")]))).await;
    let interrupt = Interrupt::default();
    let prompt = play.prompt_watched("go", &interrupt, |event| {
        if matches!(event, EventKind::RetryStart(_)) {
            interrupt.trigger(Cause::User);
        }
    });
    let (outcome, elapsed) = timed(prompt).await;
    assert_eq!(outcome.unwrap_err().reason(), Reason::Interrupted);
    assert!(elapsed.is_zero(), "{elapsed:?}");
    assert_eq!(play.prompt("again").await.unwrap().text, "later");
    let told = play.end().await;
    let end = told.data("retry:end");
    assert_eq!(
        json!([end[0]["success"], end[0]["attempts"], end[0]["finalError"]]),
        json!([false, 2, "interrupted"])
    );
    assert_eq!(told.speakers(), "uua");
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_attempts_are_spent_keeps_its_state() {
    let mut replies = vec![calls(&["a"])];
    replies.extend(vec![error(500, "", "Broken."); 5]);
    replies.push(text("later"));
    let stage = Stage::new(json!(replies)).tool(TestTool::says("a", "from a"));
    let mut play = patient(stage).await;
    let stop = play.prompt("go").await.unwrap_err();
    assert_eq!(stop.reason(), Reason::Unavailable);
    assert_eq!(play.prompt("go on").await.unwrap().text, "later");
    let told = play.end().await;
    assert_eq!(told.speakers(), "uarua");
    assert_eq!(told.results(), ["from a"]);
    assert_eq!(
        told.field("turn:end", "status"),
        [json!("error"), json!("ok")]
    );
    assert_eq!(told.field("retry:end", "success"), [json!(false)]);
}
