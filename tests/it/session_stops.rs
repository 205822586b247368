//! A turn that is cut short: by the caller, by time, by silence, by being dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::clock;
use agent::event::{EventKind, Reason};
use agent::session::{Cause, Interrupt};
use agent::tool::{Failure, ToolOutput, Toolset};
use serde_json::{Value, json};

use crate::support::session::{Stage, TestTool, Told, calls, text};

/// A tool that ends when it is asked to.
fn obedient() -> TestTool {
    TestTool::reads("wait", |_, cancel| async move {
        cancel.cancelled().await;
        ToolOutput {
            failure: Some(Failure::Aborted),
            ..ToolOutput::error("stopped when asked to")
        }
    })
}

/// A tool that never ends.
fn stubborn() -> TestTool {
    TestTool::reads("wait", |_, _| std::future::pending())
}

fn interrupted(told: &Told, by: &str) {
    assert_eq!(told.field("session:interrupted", "by"), [json!(by)]);
    assert_eq!(told.field("turn:end", "status")[0], "cancelled");
    assert_eq!(
        told.field("state:update", "state").last(),
        Some(&json!("idle"))
    );
}

#[tokio::test]
async fn a_cancelled_call_has_its_result_and_so_have_those_behind_it() {
    for (tool, told_of_it) in [
        (obedient(), "stopped when asked to"),
        (stubborn(), "Its effect is unknown"),
    ] {
        let mut play = Stage::new(json!([calls(&["wait", "out", "a"]), text("later")]))
            .tool(tool)
            .tool(TestTool::says("out", "written").writing())
            .tool(TestTool::says("a", "from a"))
            .edits()
            .open()
            .await;
        let interrupt = Interrupt::default();
        let stop = play
            .prompt_watched("go", &interrupt, |event| {
                if matches!(event, EventKind::PermissionResponse(_)) {
                    interrupt.trigger(Cause::Signal(15));
                }
            })
            .await
            .unwrap_err();
        assert_eq!(stop.reason(), Reason::Terminated);
        // A later prompt goes on from a valid history.
        assert_eq!(play.prompt("again").await.unwrap().text, "later");
        let told = play.end().await;
        interrupted(&told, "signal");
        let results = told.results();
        assert!(results[0].contains(told_of_it), "{results:?}");
        assert!(results[1].contains("Not run") && results[2].contains("Not run"));
        assert_eq!(
            told.field("tool:execution:error", "status"),
            ["aborted", "skipped", "skipped"].map(Value::from)
        );
        assert_eq!(told.speakers(), "uarrrua");
    }
}

#[tokio::test]
async fn calls_that_wait_for_their_turn_are_not_started_any_more() {
    let started = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&started);
    let wait = TestTool::reads("wait", move |_, cancel| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            cancel.cancelled().await;
            ToolOutput::text("ended", "ended")
        }
    });
    let mut play = Stage::new(json!([calls(&["wait"; 40])]))
        .tool(wait)
        .open()
        .await;
    let interrupt = Interrupt::default();
    let mut responses = 0;
    let _ = play
        .prompt_watched("go", &interrupt, |event| {
            responses += u32::from(matches!(event, EventKind::PermissionResponse(_)));
            if responses == 40 {
                interrupt.trigger(Cause::User);
            }
        })
        .await
        .unwrap_err();
    let told = play.end().await;
    interrupted(&told, "user");
    assert!(started.load(Ordering::SeqCst) <= 8);
    assert_eq!(told.results().len(), 40);
}

#[tokio::test]
async fn a_cancelled_model_call_leaves_no_reply() {
    let never = json!({"text": "never", "delay": "1h"});
    let mut play = Stage::new(json!([never, text("later")])).open().await;
    let interrupt = Interrupt::default();
    let stop = play
        .prompt_watched("go", &interrupt, |event| {
            if matches!(event, EventKind::StepStart(_)) {
                interrupt.trigger(Cause::User);
            }
        })
        .await
        .unwrap_err();
    assert_eq!(stop.reason(), Reason::Interrupted);
    play.prompt("again").await.unwrap();
    let told = play.end().await;
    interrupted(&told, "user");
    assert_eq!(
        told.field("step:end", "stopReason"),
        ["aborted", "stop"].map(Value::from)
    );
    assert_eq!(told.speakers(), "uua");
}

#[tokio::test]
async fn an_interrupted_prompt_asks_no_model() {
    let mut play = Stage::new(json!([text("later")])).open().await;
    let interrupt = Interrupt::default();
    interrupt.trigger(Cause::Signal(2));
    interrupt.trigger(Cause::User);
    let stop = play
        .prompt_watched("go", &interrupt, |_| {})
        .await
        .unwrap_err();
    assert_eq!(stop.to_string(), "cancelled by SIGINT");
    play.prompt("again").await.unwrap();
    let told = play.end().await;
    assert_eq!(told.data("step:start").len(), 1);
    assert_eq!(told.data("turn:end")[0]["steps"], 0);
}

#[tokio::test]
async fn a_wait_before_a_retry_can_be_cancelled() {
    let busy = json!({"error": {"status": 429, "retry_after": "5m"}});
    let mut play = Stage::new(json!([busy])).open().await;
    let interrupt = Interrupt::default();
    play.prompt_watched("go", &interrupt, |event| {
        if matches!(event, EventKind::RetryStart(_)) {
            interrupt.trigger(Cause::User);
        }
    })
    .await
    .unwrap_err();
    let told = play.end().await;
    interrupted(&told, "user");
    assert_eq!(
        told.field("retry:end", "finalError"),
        [json!("interrupted")]
    );
}

#[tokio::test]
async fn the_time_limit_ends_whatever_runs() {
    let hour = json!({"text": "never", "delay": "1h"});
    for (replies, tool) in [
        (json!([hour]), obedient()),
        (json!([calls(&["wait"])]), obedient()),
    ] {
        let mut play = Stage::new(replies)
            .tool(tool)
            .limits(|limits| limits.timeout = Duration::from_millis(60))
            .open()
            .await;
        let stop = play.prompt("go").await.unwrap_err();
        assert_eq!(stop.reason(), Reason::Timeout);
        let told = play.end().await;
        interrupted(&told, "timeout");
        let reached = told.data("limit:reached");
        assert_eq!((reached.len(), &reached[0]["kind"]), (1, &json!("time")));
        assert!(reached[0]["value"].as_f64() >= Some(0.06));
        assert_eq!(reached[0]["max"], 0.06);
    }
}

#[tokio::test]
async fn a_session_whose_time_is_over_asks_no_model() {
    let play = Stage::new(json!([])).limits(|limits| limits.timeout = Duration::ZERO);
    let mut play = play.open().await;
    let stop = play.prompt("go").await.unwrap_err();
    assert_eq!(stop.reason(), Reason::Timeout);
    assert!(play.end().await.data("step:start").is_empty());
}

#[tokio::test]
async fn silence_ends_the_turn() {
    let quiet = json!({"text": "never", "delay": "1h"});
    for replies in [json!([quiet]), json!([calls(&["wait"])])] {
        let mut play = Stage::new(replies)
            .tool(obedient())
            .limits(|limits| limits.idle_timeout = Duration::from_millis(50))
            .open()
            .await;
        let stop = play.prompt("go").await.unwrap_err();
        assert_eq!((stop.reason(), stop.code()), (Reason::Timeout, "idle"));
        let told = play.end().await;
        interrupted(&told, "timeout");
        assert_eq!(
            told.data("limit:reached"),
            [&json!({"kind": "idle", "value": 0.05, "max": 0.05})]
        );
    }
}

#[tokio::test]
async fn a_tool_that_is_heard_is_not_silent() {
    // Longer than the limit, with a line well within it each time.
    let command = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo $i; sleep 0.15; done";
    let call = json!({"calls": [{"name": "bash", "arguments": {"command": command}}], "usage": {}});
    let mut stage = Stage::new(json!([call, text("done")]))
        .limits(|limits| limits.idle_timeout = Duration::from_millis(1_200));
    stage.tools = Toolset::built_in(&["bash".to_owned()]);
    stage.permissions.mode = agent::policy::Mode::Bypass;
    let mut play = stage.open().await;
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    let told = play.end().await;
    assert!(told.data("tool:execution:complete")[0]["durationMs"].as_u64() >= Some(1_700));
}

#[tokio::test]
async fn an_agreed_wait_is_no_silence() {
    let busy = json!({"error": {"status": 429, "retry_after": "300ms"}});
    let mut play = Stage::new(json!([busy, text("done")]))
        .limits(|limits| limits.idle_timeout = Duration::from_millis(80))
        .open()
        .await;
    let start = clock::monotonic();
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    assert!(clock::elapsed_ms(start) >= 300);
    let told = play.end().await;
    assert_eq!(told.field("retry:start", "source"), [json!("retry-after")]);

    // But silence after it is one again.
    let busy = json!({"error": {"status": 429, "retry_after": "100ms"}});
    let never = json!({"text": "never", "delay": "1h"});
    let mut play = Stage::new(json!([busy, never]))
        .limits(|limits| limits.idle_timeout = Duration::from_millis(60))
        .open()
        .await;
    let stop = play.prompt("go").await.unwrap_err();
    assert_eq!(stop.code(), "idle");
    play.end().await;
}

#[tokio::test]
async fn a_dropped_prompt_leaves_a_history_that_the_next_one_mends() {
    let mut play = Stage::new(json!([calls(&["a", "wait"]), text("later")]))
        .tool(stubborn())
        .tool(TestTool::says("a", "from a"))
        .open()
        .await;
    play.prompt_dropped(|event| matches!(event, EventKind::ToolComplete(_)))
        .await;
    assert_eq!(play.prompt("again").await.unwrap().text, "later");
    let told = play.end().await;
    assert_eq!(told.speakers(), "uarrua");
    let results = told.results();
    assert_eq!(
        results[0], "from a",
        "an end that was told is in the history"
    );
    assert!(results[1].contains("Its effect is unknown"), "{results:?}");
}
