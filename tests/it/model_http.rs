//! The client over HTTP: answers, errors, limits of time and size.

use std::time::Duration;

use agent::clock::Activity;
use agent::message::AssistantMessage;
use agent::model::{
    Assembler, Client, ClientOptions, Model, ModelError, ModelErrorKind, Request, StreamEvent,
    resolve,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use wiremock::matchers::{header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::models::{request, user};

const KEY: &str = "sk-test-0123456789";
const STREAM: &str = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

fn model(base_url: &str) -> Model {
    resolve("openai-chat/m", Some(base_url)).expect("ad hoc")
}

fn client(base_url: &str) -> Client {
    waiting(base_url, Duration::from_secs(60))
}

/// A client that gives up after so long without a word.
fn waiting(base_url: &str, most: Duration) -> Client {
    let mut options = ClientOptions::new(Activity::new());
    options.idle_timeout = most;
    options.header_timeout = most;
    // With a line break at its end, as keys from files have.
    Client::http(model(base_url), Some(format!("{KEY}\n")), options).expect("a client")
}

async fn call(client: &Client) -> Result<AssistantMessage, ModelError> {
    let request: Request = request(vec![user("hi")]);
    let mut reply = client.send(&request).await?;
    let mut assembler = Assembler::new(client.model());
    while let Some(event) = reply.next().await? {
        assembler.push(event);
    }
    assembler.finish()
}

/// What comes of one answer.
async fn answered(answer: ResponseTemplate) -> Result<AssistantMessage, ModelError> {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(answer)
        .mount(&server)
        .await;
    call(&client(&server.uri())).await
}

/// What comes of raw bytes, after which the server does as `then` says.
async fn raw(bytes: &'static [u8], stall: bool) -> Result<AssistantMessage, ModelError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = async {
        let (mut socket, _) = listener.accept().await.expect("a connection");
        let mut seen = [0; 4096];
        let _ = socket.read(&mut seen).await;
        socket.write_all(bytes).await.expect("written");
        if stall {
            std::future::pending::<()>().await;
        }
    };
    let most = if stall { 300 } else { 60_000 };
    let client = waiting(&format!("http://{address}/v1"), Duration::from_millis(most));
    let calling = call(&client);
    tokio::pin!(calling);
    tokio::select! {
        outcome = &mut calling => outcome,
        () = serve => calling.await,
    }
}

#[tokio::test]
async fn a_stream_is_a_reply() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {KEY}")))
        .and(header("content-type", "application/json"))
        .respond_with(ResponseTemplate::new(200).set_body_raw(STREAM, "text/event-stream"))
        .expect(2)
        .mount(&server)
        .await;
    for base in [
        format!("{}/v1", server.uri()),
        format!("{}/v1/", server.uri()),
    ] {
        let message = call(&client(&base)).await.expect("a reply");
        assert_eq!(message.text(), "hello");
        assert_eq!(message.model, "m");
    }
}

#[tokio::test]
async fn the_anthropic_headers_and_path() {
    let server = MockServer::start().await;
    let stream = include_str!("../fixtures/streams/anthropic_tools.sse");
    Mock::given(method("POST"))
        .and(path("/v1/messages"))
        .and(header("x-api-key", KEY))
        .and(header("anthropic-version", "2023-06-01"))
        .respond_with(ResponseTemplate::new(200).set_body_raw(stream, "text/event-stream"))
        .expect(2)
        .mount(&server)
        .await;
    for base in [server.uri(), format!("{}/v1", server.uri())] {
        let model = resolve("claude-sonnet-4-5", Some(&base)).expect("known");
        let options = ClientOptions::new(Activity::new());
        let client = Client::http(model, Some(KEY.to_owned()), options).expect("a client");
        let message = call(&client).await.expect("a reply");
        assert_eq!(message.tool_calls().count(), 2);
        // 12 input, 89 output, 4,000 read and 300 written.
        assert!((message.usage.cost.total - (36.0 + 1335.0 + 1200.0 + 1125.0) / 1e6).abs() < 1e-12);
    }
}

#[tokio::test]
async fn errors_are_typed_and_never_show_the_key() {
    let body =
        json!({"error": {"type": "authentication_error", "message": format!("bad key {KEY}")}});
    let answer = ResponseTemplate::new(401)
        .insert_header("x-request-id", "req_7")
        .set_body_json(body);
    let error = answered(answer).await.expect_err("401");
    assert_eq!(
        (error.kind, error.http_status),
        (ModelErrorKind::Auth, Some(401))
    );
    assert_eq!(
        (error.message.as_str(), error.request_id.as_deref()),
        ("bad key ***", Some("req_7"))
    );
    assert!(!format!("{error:?}").contains(KEY));
    assert_eq!(error.hints, ["set OPENAI_API_KEY to a valid key"]);

    // Parts of it, and what a provider leaves of it between its asterisks.
    for (said, shown) in [
        ("Key sk-test-01234 is wrong.", "Key *** is wrong."),
        ("Key (…est-0123456789) is wrong.", "Key (***) is wrong."),
        ("Key: sk-test-******6789.", "Key: ***."),
        ("Key = sk-...6789, see x", "Key = ***, see x"),
        (
            "Your api key: ****6789 is invalid",
            "Your api key: *** is invalid",
        ),
        ("Key xa***zz is wrong.", "Key xa***zz is wrong."),
        ("Wait ... 6789 of them.", "Wait ... 6789 of them."),
    ] {
        let body = json!({"error": {"message": said, "code": said}});
        let answer = ResponseTemplate::new(401).set_body_json(body);
        let error = answered(answer).await.expect_err("401");
        assert_eq!(
            (error.message.as_str(), error.code.as_deref()),
            (shown, Some(shown))
        );
    }
}

#[tokio::test]
async fn errors_say_how_long_to_wait_and_are_short() {
    let answer = ResponseTemplate::new(429)
        .insert_header("retry-after", "3")
        .set_body_string("busy");
    let error = answered(answer).await.expect_err("429");
    assert_eq!(
        (error.kind, error.retry_after),
        (ModelErrorKind::RateLimited, Some(Duration::from_secs(3)))
    );
    let error = answered(ResponseTemplate::new(500)).await.expect_err("500");
    assert!(error.is_retryable());
    let huge = ResponseTemplate::new(400).set_body_string("x".repeat(5_000_000));
    assert!(answered(huge).await.expect_err("400").message.len() < 3000);
    let code = json!({"error": {"message": "no", "code": "c".repeat(5_000)}});
    let answer = ResponseTemplate::new(400).set_body_json(code);
    let code = answered(answer).await.expect_err("400").code;
    assert_eq!(code.map(|code| code.chars().count()), Some(201));
    // A header goes before words, and what is not tried again waits for nothing.
    let body = json!({"error": {"message": "Please try again in 18.642s."}});
    for (header, wait) in [("7", 7_000), ("junk", 18_642)] {
        let answer = ResponseTemplate::new(429)
            .insert_header("retry-after", header)
            .set_body_json(&body);
        let error = answered(answer).await.expect_err("429");
        assert_eq!(error.retry_after, Some(Duration::from_millis(wait)));
    }
    let answer = ResponseTemplate::new(400).set_body_json(&body);
    let error = answered(answer).await.expect_err("400");
    assert_eq!(error.retry_after, None);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200))
        .expect(0)
        .mount(&other)
        .await;
    for status in [301, 302, 307, 308] {
        let answer = ResponseTemplate::new(status).insert_header("location", other.uri());
        let error = answered(answer).await.expect_err("a redirect");
        assert_eq!(error.http_status, Some(status));
        assert!(!error.is_retryable());
    }
}

#[tokio::test]
async fn answers_that_are_no_stream() {
    let reply = json!({"model": "m", "choices": [{"message": {"role": "assistant", "content": "whole",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
        "finish_reason": "tool_calls"}], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
    let message = answered(ResponseTemplate::new(200).set_body_json(reply))
        .await
        .expect("a reply");
    assert_eq!(
        (
            message.text().as_str(),
            message.tool_calls().count(),
            message.usage.input
        ),
        ("whole", 1, 5)
    );

    for (body, kind, retryable) in [
        (
            r#"{"error":{"message":"overloaded"}}"#,
            ModelErrorKind::Overloaded,
            true,
        ),
        (
            r#"{"object":"error","message":"model not loaded","code":503}"#,
            ModelErrorKind::Unavailable,
            true,
        ),
        (r#"{"hello":"world"}"#, ModelErrorKind::BadResponse, true),
        (
            "<!doctype html><html>login</html>",
            ModelErrorKind::BadResponse,
            false,
        ),
        ("", ModelErrorKind::Truncated, true),
        ("data: [DONE]\n\n", ModelErrorKind::Truncated, true),
        (": ping\n\n", ModelErrorKind::Truncated, true),
    ] {
        let error = answered(ResponseTemplate::new(200).set_body_string(body))
            .await
            .expect_err(body);
        assert_eq!(
            (error.kind, error.is_retryable()),
            (kind, retryable),
            "{body}: {error}"
        );
    }
}

#[tokio::test]
async fn broken_connections() {
    let cut = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n40\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hel";
    let error = raw(cut, false).await.expect_err("cut");
    assert!(
        matches!(
            error.kind,
            ModelErrorKind::Unavailable | ModelErrorKind::Truncated
        ),
        "{error}"
    );
    assert!(error.is_retryable());
    let stalled = raw(cut, true).await.expect_err("stalled");
    assert_eq!(stalled.kind, ModelErrorKind::Timeout);
    let silent = raw(b"", true).await.expect_err("silent");
    assert_eq!(silent.kind, ModelErrorKind::Timeout);
    // Everything was said before the connection broke.
    let done = b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\ndata: {\"choices\":[{\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    assert_eq!(raw(done, false).await.expect("a reply").text(), "hi");
}

#[tokio::test]
async fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let error = call(&client(&format!("http://{address}")))
        .await
        .expect_err("refused");
    assert_eq!(error.kind, ModelErrorKind::Unavailable);
    assert!(
        error.is_retryable() && error.message.starts_with("127.0.0.1: "),
        "{error}"
    );
}

#[tokio::test]
async fn what_came_before_an_error_is_delivered_and_the_error_stays() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"hi\"}}]}\n\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"more\"}}]}\n\n";
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(200).set_body_string(body))
        .mount(&server)
        .await;
    let mut reply = client(&server.uri())
        .send(&request(vec![user("hi")]))
        .await
        .expect("open");
    let mut events = Vec::new();
    let error = loop {
        match reply.next().await {
            Ok(event) => events.push(event.expect("no end before the error")),
            Err(error) => break error,
        }
    };
    assert!(matches!(events.last(), Some(StreamEvent::TextDelta { delta, .. }) if delta == "hi"));
    assert_eq!(error.kind, ModelErrorKind::Overloaded);
    assert_eq!(reply.next().await, Err(error));
}

#[tokio::test]
async fn twenty_thousand_deltas() {
    let mut body = String::new();
    for _ in 0..20_000 {
        body.push_str("data: {\"choices\":[{\"delta\":{\"content\":\"0123456789\"}}]}\n\n");
    }
    body.push_str("data: [DONE]\n\n");
    let message = answered(ResponseTemplate::new(200).set_body_string(body))
        .await
        .expect("a reply");
    assert_eq!(message.text().len(), 200_000);
}

#[test]
fn keys_are_checked_before_anything_is_sent() {
    let make = |name: &str, url: Option<&str>, key: Option<&str>| {
        let model = resolve(name, url).expect("known");
        Client::http(
            model,
            key.map(str::to_owned),
            ClientOptions::new(Activity::new()),
        )
    };
    let error = make("claude-sonnet-4-5", None, None).expect_err("no key");
    assert_eq!(error.kind, ModelErrorKind::Auth);
    assert_eq!(error.hints, ["set ANTHROPIC_API_KEY to a valid key"]);
    assert!(make("claude-sonnet-4-5", None, Some("  ")).is_err());
    let error = make("claude-sonnet-4-5", None, Some("a\nb")).expect_err("no key");
    assert!(!format!("{error:?}").contains("a\\nb"));
    assert!(make("openai-chat/x", Some("http://localhost:1"), None).is_ok());
    let client = make("claude-sonnet-4-5", None, Some(KEY)).expect("fine");
    assert!(!format!("{client:?}").contains(KEY));
}
