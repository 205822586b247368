//! Attempts that gave no reply, but are paid for: booked, told, and in the
//! result.

#![allow(clippy::unwrap_used, reason = "these are tests")]

use agent::session::Stop;
use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::dialect::{ANTHROPIC, CHAT, Dialect, told};
use crate::support::reply::{Action, Reply, sse};
use crate::support::server::ModelServer;
use crate::support::session::{Stage, text};

/// The codes of the run's warnings.
fn warnings(output: &Output) -> Vec<Value> {
    let warnings = told(output, "warning");
    warnings.iter().map(|one| one["code"].clone()).collect()
}

/// Dollars of the model that these runs use, for tokens in and out.
fn dollars(input: u64, output: u64) -> f64 {
    let price = agent::model::resolve(ANTHROPIC.model, None).unwrap().price;
    let price = price.unwrap();
    (price.input * input as f64 + price.output * output as f64) / 1e6
}

#[test]
fn what_was_told_before_a_cut_is_paid_for() {
    let answer = (ANTHROPIC.text)("The answer is forty-two, and it is final.");
    // 100 tokens in and one out were told, half of the text had come.
    let half = answer.clone().first(answer.find("it is final"));
    let server = ModelServer::start([half.header("request-id", "req_1"), answer]);
    let output = ANTHROPIC.task(&server.url(), "").run();
    server.finish();
    let discarded = told(&output, "reply:discarded");
    assert_eq!(discarded.len(), 1);
    let used = &discarded[0]["usage"];
    assert_eq!(
        json!([
            discarded[0]["model"],
            discarded[0]["errorCode"],
            discarded[0]["requestId"]
        ]),
        json!([ANTHROPIC.model, "truncated", "req_1"])
    );
    assert_eq!(told(&output, "retry:start")[0]["requestId"], "req_1");
    assert_eq!(used["input"], 100);
    let spoken = used["output"].as_u64().unwrap();
    assert!((1..=10).contains(&spoken), "{spoken}");
    let result = output.result();
    assert_eq!(result["turns"], 1);
    assert_eq!(result["usage"]["input"], 200);
    assert_eq!(result["usage"]["output"], 10 + spoken);
    assert_eq!(
        result["budget"]["tokens"]["used"],
        json!((210 + spoken) as f64)
    );
    let cost = result["costUsd"].as_f64().unwrap();
    assert!((cost - dollars(200, 10 + spoken)).abs() < 1e-12, "{cost}");
    let booked = result["budget"]["cost"]["used"].as_f64().unwrap();
    assert!((cost - booked).abs() < 1e-12, "{booked}");
    assert!(warnings(&output).is_empty());
}

#[test]
fn what_nobody_told_is_estimated_and_makes_the_cost_unknown() {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        format!("data: {}\n\n", json!({"choices": [choice]}))
    };
    let words = chunk(json!({"content": "forty-two ".repeat(40)}), Value::Null);
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}});
    let whole = chunk(json!({"content": "done"}), Value::Null)
        + &chunk(json!({}), "stop".into())
        + &format!("data: {usage}\n\ndata: [DONE]\n\n");
    let server = ModelServer::start([sse(words), sse(whole)]);
    let priced = Dialect {
        model: "deepseek/deepseek-v4-pro",
        key_env: "DEEPSEEK_API_KEY",
        ..CHAT
    };
    let output = priced.task(&server.url(), "").run();
    server.finish();
    let result = output.result();
    assert_eq!(result["costUsd"], Value::Null);
    assert_eq!(result["usage"]["input"], 100);
    // 110 tokens were told, and 100 are what the 400 characters are taken for.
    let tokens = result["budget"]["tokens"]["used"].as_f64().unwrap();
    assert!(tokens > 110.0 + 100.0, "{tokens}");
    assert!(result["budget"]["cost"]["used"].as_f64() > Some(0.0));
    assert_eq!(warnings(&output), ["usage_missing"]);
}

#[test]
fn attempts_that_all_fail_are_all_paid_for() {
    let answer = (ANTHROPIC.text)("Half of it");
    let half = answer
        .clone()
        .first(answer.find("of it"))
        .header("request-id", "req_9");
    let server = ModelServer::start(vec![half; 3]);
    let output = ANTHROPIC.task(&server.url(), "").expect_code(69).run();
    server.finish();
    let result = output.result();
    assert_eq!(told(&output, "reply:discarded").len(), 3);
    assert_eq!(result["usage"]["input"], 300);
    assert!(result["costUsd"].as_f64() > Some(0.0));
    assert_eq!(result["error"]["requestId"], "req_9");
    let error = &told(&output, "session:error")[0]["error"];
    assert_eq!(error["details"]["requestId"], "req_9");
}

#[test]
fn an_attempt_that_time_ended_is_paid_for() {
    let answer = (ANTHROPIC.text)("The answer is slow.");
    let slow: Reply = answer.clone().cut(answer.find("is slow."), Action::Hang);
    let server = ModelServer::start([slow]);
    let output = ANTHROPIC
        .task(&server.url(), "limits: {timeout: 1s}\n")
        .expect_code(124)
        .run();
    server.finish();
    assert_eq!(output.result()["usage"]["input"], 100);
    let discarded = told(&output, "reply:discarded");
    assert_eq!(discarded[0]["errorCode"], "cancelled");
}

#[tokio::test]
async fn a_budget_that_a_failed_attempt_used_up_ends_the_retries() {
    let cut = json!({"text": "Half of it", "cut": true, "usage": {"input": 9_000}});
    let replies = json!([cut, text("never asked for")]);
    let stage = Stage::lenient(replies).limits(|limits| limits.max_tokens = 12_000);
    let mut play = stage.open().await;
    let stop = play.prompt("go").await.unwrap_err();
    assert!(matches!(stop, Stop::Limit(_)), "{stop}");
    let told = play.end().await;
    assert_eq!(told.field("limit:reached", "kind"), [json!("tokens")]);
    assert!(told.data("retry:start").is_empty());
    assert_eq!(told.data("reply:discarded").len(), 1);
}

#[test]
fn bytes_that_are_no_text_are_replaced_and_told() {
    let answer = (CHAT.text)("Half a @ here.");
    let at = answer.find("@");
    let mut bytes = answer.text().as_bytes().to_vec();
    bytes.splice(at..=at, *b"\xe7\x9c");
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let reply = Reply::raw(vec![Action::Send([head.as_slice(), &bytes].concat())]);
    let server = ModelServer::start([reply]);
    let output = CHAT.task(&server.url(), "").run();
    server.finish();
    assert_eq!(output.stdout, "Half a \u{fffd} here.\n");
    let codes = warnings(&output);
    assert!(codes.contains(&json!("text_replaced")), "{codes:?}");
}

#[test]
fn a_price_of_zero_stays_zero_after_a_broken_stream() {
    let providers = "version: 1\nproviders:\n  house:\n    api: openai-chat\n    \
                     base_url: URL\n    api_key_env: MINE\n    models:\n      \
                     m: {price: {input: 0, output: 0}}\n";
    let answer = (CHAT.text)("The answer is free, as before.");
    let half = answer.clone().first(answer.find("as before"));
    let server = ModelServer::start([half, answer]);
    let task = "version: 1\nprompt: x\nsettings: {model: house/m}\nretry: {base_delay: 1ms}\n";
    let cli = Cli::new();
    let providers = providers.replace("URL", &server.url());
    let file = cli.home().join(".config/agent/providers.yaml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, providers).unwrap();
    let output = cli
        .file("task.yaml", task)
        .env("MINE", "a key")
        .args(["run", "task.yaml", "--quiet", "--run-dir", "run"])
        .run();
    server.finish();
    assert_eq!(output.result()["costUsd"], 0.0);
    let discarded = told(&output, "reply:discarded");
    assert_eq!(discarded[0]["costUsd"], 0.0);
    let message = told(&output, "warning")[0]["message"].to_string();
    assert!(!message.contains("cost"), "{message}");
}
