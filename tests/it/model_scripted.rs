//! Models that play a script.

use std::time::Duration;

use agent::clock::{self, Activity};
use agent::message::{AssistantMessage, StopReason};
use agent::model::{
    Assembler, Client, ClientOptions, ModelError, ModelErrorKind, Request, Script, resolve,
};
use serde_json::json;

use crate::support::models::{request, user};

fn client(yaml: &str) -> Client {
    let script = Script::parse(yaml, "replies.yaml").expect("a script");
    let model = resolve("scripted/replies.yaml", None).expect("scripted");
    Client::scripted(model, script, ClientOptions::new(Activity::new()))
}

async fn call(client: &Client, request: &Request) -> Result<(AssistantMessage, usize), ModelError> {
    let mut reply = client.send(request).await?;
    let mut assembler = Assembler::new(client.model());
    let mut events = 0;
    while let Some(event) = reply.next().await? {
        events += 1;
        assembler.push(event);
    }
    assert_eq!(
        reply.next().await,
        Ok(None),
        "after the end there is nothing"
    );
    Ok((assembler.finish()?, events))
}

#[tokio::test]
async fn replies_are_played_in_order() {
    let client = client(
        "- thinking: hm\n  text: Let me look at all of it, slowly.\n  calls:\n    - {name: read, arguments: {path: a.rs}}\n    - {name: bash, arguments: 'not json', id: my-id}\n  usage: {input: 10, output: 5, cache_read: 3, cache_write: 2}\n- text: done\n  stop: length\n",
    );
    let request = request(vec![user("hi")]);
    let (first, events) = call(&client, &request).await.expect("a reply");
    assert_eq!(first.text(), "Let me look at all of it, slowly.");
    assert_eq!(first.thinking(), "hm");
    assert_eq!(first.stop_reason, StopReason::ToolUse);
    assert_eq!(
        (
            first.usage.input,
            first.usage.output,
            first.usage.total_tokens()
        ),
        (10, 5, 20)
    );
    let calls: Vec<_> = first.tool_calls().collect();
    assert_eq!(
        (calls[0].name.as_str(), &calls[0].arguments),
        ("read", &json!({"path": "a.rs"}))
    );
    assert!(!calls[0].id.is_empty());
    assert_eq!(calls[1].id, "my-id");
    assert_eq!(calls[1].invalid_arguments.as_deref(), Some("not json"));
    assert!(events > 12, "text comes in several deltas: {events}");
    let (second, _) = call(&client, &request).await.expect("a reply");
    assert_eq!(
        (second.text().as_str(), second.stop_reason),
        ("done", StopReason::Length)
    );
    let error = call(&client, &request).await.expect_err("no more");
    assert_eq!(error.kind, ModelErrorKind::Script);
    assert!(!error.is_retryable());
    assert_eq!(error.message, "replies.yaml has no reply 3");
}

#[tokio::test]
async fn a_strict_script_must_be_played_to_its_end() {
    let strict = client("strict: true\nreplies:\n  - text: a\n  - text: b\n");
    let request = request(vec![user("hi")]);
    call(&strict, &request).await.expect("a reply");
    let error = strict.finish().expect_err("one is left");
    assert_eq!(error.kind, ModelErrorKind::Script);
    assert!(error.message.contains("1 unplayed"), "{error}");
    call(&strict, &request).await.expect("a reply");
    assert_eq!(strict.finish(), Ok(()));
    assert_eq!(client("- text: a\n").finish(), Ok(()));
}

#[tokio::test]
async fn failures_are_played() {
    let client = client(
        "- error: {status: 429, code: rate_limit_error, message: slow down, retry_after: 2s}\n- text: a long text that is cut somewhere\n  cut: true\n- error: {status: 401}\n- text: ok\n",
    );
    let request = request(vec![user("hi")]);
    let error = call(&client, &request).await.expect_err("429");
    assert_eq!(
        (error.kind, error.retry_after),
        (ModelErrorKind::RateLimited, Some(Duration::from_secs(2)))
    );
    assert_eq!(error.code.as_deref(), Some("rate_limit_error"));
    let error = call(&client, &request).await.expect_err("cut");
    assert_eq!(error.kind, ModelErrorKind::Truncated);
    assert!(error.is_retryable());
    let error = call(&client, &request).await.expect_err("401");
    assert_eq!((error.kind, error.code), (ModelErrorKind::Auth, None));
    assert_eq!(call(&client, &request).await.expect("ok").0.text(), "ok");
}

#[tokio::test]
async fn a_delay_is_waited_for_and_bounded() {
    let yaml = "- {text: slow, delay: 20ms}\n- {text: never, delay: 1h}\n";
    let script = Script::parse(yaml, "replies.yaml").expect("a script");
    let model = resolve("scripted/replies.yaml", None).expect("scripted");
    let mut options = ClientOptions::new(Activity::new());
    options.header_timeout = Duration::from_millis(50);
    let client = Client::scripted(model, script, options);
    let request = request(vec![user("hi")]);
    let start = clock::monotonic();
    call(&client, &request).await.expect("a reply");
    assert!(clock::elapsed_ms(start) >= 20);
    let error = call(&client, &request).await.expect_err("too slow");
    assert_eq!(error.kind, ModelErrorKind::Timeout);
}

#[tokio::test]
async fn expectations_are_checked() {
    let request = request(vec![user("fix the bug")]);
    for (expect, difference) in [
        ("{contains: ['fix the', 'are terse'], tools: [read]}", None),
        ("{tools: [read, bash]}", None),
        (
            "{contains: ['absent']}",
            Some(
                "replies.yaml, reply 1: expected the request to contain \"absent\"; what is new in it: \"fix the bug\"",
            ),
        ),
        (
            "{tools: [read, edit]}",
            Some("replies.yaml, reply 1: expected the tools edit, the request offers read, bash"),
        ),
        (
            "{tools: []}",
            Some("replies.yaml, reply 1: expected no tools, the request offers read, bash"),
        ),
    ] {
        let client = client(&format!("- text: x\n  expect: {expect}\n"));
        let error = call(&client, &request).await.err();
        assert_eq!(
            error.as_ref().map(|error| error.message.as_str()),
            difference
        );
        assert!(error.is_none_or(|error| error.kind == ModelErrorKind::Script));
    }
}

#[test]
fn scripts_are_read_strictly() {
    for (yaml, place, words) in [
        ("- text: a\n  txet: b\n", Some((2, 3)), "txet"),
        ("replies: []\nstrickt: true\n", Some((2, 1)), "strickt"),
        ("- text: a\n  delay: soon\n", Some((2, 10)), "soon"),
        ("- error: {code: x}\n", None, "status"),
        ("- text: a\n  text: b\n", None, "text"),
        ("- text: [\n", None, ""),
        ("just text\n", None, "list of replies"),
        ("- stop: maybe\n", None, "maybe"),
    ] {
        let error = Script::parse(yaml, "s.yaml").expect_err(yaml);
        assert!(error.line.is_some(), "{error}");
        if let Some(place) = place {
            assert_eq!(
                (error.line, error.column),
                (Some(place.0), Some(place.1)),
                "{error}"
            );
        }
        assert!(error.to_string().starts_with("s.yaml:"), "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    assert_eq!(Script::parse("[]", "s").expect("empty").len(), 0);
}

#[tokio::test]
async fn an_error_may_come_behind_some_text() {
    let client = client(
        "- text: Let me see.\n  calls: [{name: read}]\n  error: {status: 529, message: busy}\n- error: {status: 529}\n",
    );
    let request = request(vec![user("hi")]);
    let mut reply = client.send(&request).await.expect("it begins");
    let mut events = 0;
    let error = loop {
        match reply.next().await {
            Ok(Some(event)) => {
                assert!(!matches!(event, agent::model::StreamEvent::Stop(_)));
                events += 1;
            }
            Ok(None) => panic!("it has no end"),
            Err(error) => break error,
        }
    };
    assert_eq!(
        (error.kind, error.http_status),
        (ModelErrorKind::Overloaded, Some(529))
    );
    // The start, a text of one piece, and a call without arguments.
    assert_eq!(events, 6);
    assert_eq!(reply.next().await, Err(error), "again the same");
    let before = client.send(&request).await.expect_err("it has no head");
    assert_eq!(before.kind, ModelErrorKind::Overloaded);
}
