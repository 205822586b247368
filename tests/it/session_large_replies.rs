//! Replies that are far too large: refused at once, within the limits on time
//! and calls.

use std::time::{Duration, Instant};

use agent::event::{LimitKind, Reason};
use agent::session::Stop;
use serde_json::{Value, json};

use crate::support::chat;
use crate::support::cli::Cli;
use crate::support::dialect::CHAT;
use crate::support::reply::sse;
use crate::support::server::ModelServer;
use crate::support::session::{Stage, TestTool, text};

/// A reply that asks for so many calls.
fn asking(calls: usize) -> Value {
    json!({"calls": vec![json!({"name": "a"}); calls]})
}

fn stage(replies: Value) -> Stage {
    Stage::lenient(replies).tool(TestTool::says("a", "from a"))
}

#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
fn now() -> Instant {
    Instant::now()
}

#[tokio::test]
async fn a_reply_with_far_more_calls_than_are_left_is_broken_off() {
    for (calls, allowed) in [(60_000, 300), (1_003, 2)] {
        let stage = stage(json!([asking(calls), text("done")]));
        let stage = stage.limits(|limits| limits.max_tool_calls = allowed);
        let mut play = stage.open().await;
        let stop = play.prompt("go").await.unwrap_err();
        assert!(matches!(stop, Stop::Limit(LimitKind::ToolCalls)), "{stop}");
        assert_eq!(stop.reason(), Reason::Budget);
        let told = play.end().await;
        assert_eq!(told.speakers(), "u", "no part of the reply is kept");
        assert_eq!(told.field("warning", "code"), ["too_many_calls"]);
        assert_eq!(told.field("limit:reached", "kind"), ["tool_calls"]);
        assert_eq!(told.data("reply:discarded").len(), 1);
        assert_eq!(told.data("tool:execution:start").len(), 0);
    }
}

#[tokio::test]
async fn a_few_calls_too_many_are_refused_one_by_one() {
    let stage = stage(json!([asking(1_002), text("done")]));
    let stage = stage.limits(|limits| limits.max_tool_calls = 2);
    let mut play = stage.open().await;
    let stop = play.prompt("go").await.unwrap_err();
    assert!(matches!(stop, Stop::Limit(LimitKind::ToolCalls)), "{stop}");
    let told = play.end().await;
    let results = told.results();
    assert_eq!(results.len(), 1_002, "each call has its result");
    let refused = results.iter().filter(|result| result.contains("used up"));
    assert_eq!(refused.count(), 1_000);
}

#[test]
fn a_reply_with_too_much_text_is_an_error() {
    let piece = "x".repeat(1 << 20);
    let long = |delta: Value| {
        let frames = vec![chat::frame(&json!([{"index": 0, "delta": delta}]), &Value::Null); 17];
        let end = json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]);
        let end = chat::frame(&end, &json!({"prompt_tokens": 9, "completion_tokens": 9}));
        sse(format!("{}{end}data: [DONE]\n\n", frames.concat()))
    };
    let arguments =
        json!({"index": 0, "id": "c1", "function": {"name": "read", "arguments": piece}});
    for reply in [
        long(json!({"content": piece})),
        long(json!({"reasoning_content": piece})),
        long(json!({"tool_calls": [arguments]})),
    ] {
        let server = ModelServer::start([reply]);
        let output = CHAT.task(&server.url(), "").expect_code(69).run();
        let error = &output.result()["error"];
        assert_eq!(error["code"], "bad_response");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.ends_with("the reply is larger than 16 MiB"),
            "{message}"
        );
        assert_eq!(output.result()["turns"], 0);
        server.finish();
    }
}

/// All of these calls are allowed; the time is not enough for them.
#[test]
fn the_clock_is_looked_at_between_calls() {
    let call = |number| json!({"name": "read", "arguments": {"path": format!("no{number}")}});
    let replies = json!([{"calls": (0..20_000).map(call).collect::<Vec<_>>()}]);
    let started = now();
    let output = Cli::new()
        .file(
            "task.yaml",
            "version: 1\nprompt: x\nsettings: {model: scripted/replies.yaml}\n\
             limits: {max_tool_calls: 20000, timeout: 6s}\n",
        )
        .file("replies.yaml", replies.to_string())
        .args(["run", "task.yaml", "--quiet"])
        .expect_code(124)
        .run();
    let took = started.elapsed();
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert_eq!(output.result()["reason"], "timeout");
}
