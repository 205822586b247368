//! Limits and early ends of whole runs: exit code, result, log, and no child left.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use agent::model::resolve;
use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::reply::{Action, Gate, Reply};
use crate::support::server::ModelServer;
use crate::support::{anthropic, chat};

/// A task with these replies of a scripted model; `settings` are more sections.
fn task(replies: &Value, settings: &str) -> Cli {
    let task = format!(
        "version: 1\nprompt: do it\nsettings: {{model: scripted/replies.yaml}}\n{settings}\n"
    );
    Cli::new()
        .file("task.yaml", task)
        .file("replies.yaml", replies.to_string())
        .args(["run", "task.yaml", "--quiet"])
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}], "usage": {"input": 10, "output": 1}})
}

fn text(text: &str) -> Value {
    json!({"text": text, "usage": {"input": 10, "output": 1}})
}

fn kinds(output: &Output, name: &str) -> Vec<Value> {
    let events = output.events();
    let named = events.iter().filter(|event| event["event"] == name);
    named.map(|event| event["data"]["kind"].clone()).collect()
}

#[test]
fn a_run_out_of_turns_keeps_its_last_words() {
    let replies = json!([call("ls", json!({})), text("half of it is done")]);
    let output = task(&replies, "limits: {max_turns: 2}")
        .expect_code(4)
        .run();
    let result = output.result();
    assert_eq!(
        (&result["outcome"], &result["reason"], &result["finalText"]),
        (
            &json!("failure"),
            &json!("budget"),
            &json!("half of it is done")
        )
    );
    assert_eq!(
        result["budget"]["turns"],
        json!({"limit": 2.0, "used": 2.0})
    );
    assert_eq!(kinds(&output, "limit:reached"), ["turns"]);
    let hints = result["error"]["hints"].to_string();
    assert!(hints.contains("limits.max_turns"), "{hints}");
}

/// Whether a process lives; a dead one that nobody reaped does not count.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| {
        let state = stat.rsplit_once(')').unwrap().1.trim_start();
        !state.starts_with('Z')
    })
}

#[test]
fn time_and_silence_end_a_run_and_its_children() {
    let command = "trap '' TERM; setsid sleep 300 & echo $! > one.pid; echo $$ > two.pid; \
                   while :; do wait; done";
    for (limit, kind, code) in [
        ("timeout", "time", "timeout"),
        ("idle_timeout", "idle", "idle"),
    ] {
        let settings = format!(
            "limits: {{{limit}: 700ms}}\npermissions: {{allow: [Bash]}}\nsandbox: {{tier: landlock}}"
        );
        let replies = json!([call("bash", json!({"command": command}))]);
        let output = task(&replies, &settings).expect_code(124).run();
        for file in ["one.pid", "two.pid"] {
            let pid = std::fs::read_to_string(output.cwd().join(file)).unwrap();
            assert!(!lives(&pid), "{limit}: {file}");
        }
        let result = output.result();
        assert_eq!(
            (&result["outcome"], &result["error"]["code"]),
            (&json!("timeout"), &json!(code))
        );
        assert_eq!(kinds(&output, "limit:reached"), [kind]);
        let names = output.event_names();
        assert!(names.contains(&"session:interrupted".to_owned()));
        let last: Vec<&str> = names.iter().rev().take(4).map(String::as_str).collect();
        assert_eq!(last[..2], ["run:end", "job:end"]);
        let session = output.session();
        let result = &session.last().unwrap()["message"];
        assert_eq!(
            (&result["role"], &result["isError"]),
            (&json!("toolResult"), &json!(true))
        );
    }
}

#[test]
fn a_model_that_says_nothing_runs_into_the_time_limit() {
    let server = ModelServer::start([chat::text("never").cut(20, Action::Hang)]);
    let output = Cli::new()
        .args(["-p", "do it", "--quiet", "--timeout", "700ms"])
        .args(["--model", "openai-chat/test", "--base-url", &server.url()])
        .env("OPENAI_API_KEY", "key")
        .expect_code(124)
        .run();
    assert_eq!(output.result()["reason"], "timeout");
    assert_eq!(kinds(&output, "limit:reached"), ["time"]);
    assert_eq!(server.finish().len(), 1);
}

#[test]
fn denials_end_a_run_in_three_ways() {
    let write = || call("write", json!({"path": "a.txt", "content": "x"}));
    for (replies, permissions) in [
        (json!([write(), write(), write()]), "{mode: read_only}"),
        (
            json!([write()]),
            "{mode: accept_edits, ask: [Edit], on_ask: fail}",
        ),
        (
            json!([write(), text("done")]),
            "{mode: read_only, fail_on_denied: true}",
        ),
    ] {
        let output = task(&replies, &format!("permissions: {permissions}"))
            .expect_code(3)
            .run();
        let result = output.result();
        assert_eq!(result["reason"], "denied", "{permissions}");
        let denied = replies.as_array().unwrap().iter();
        let denied = denied.filter(|reply| reply["calls"].is_array()).count();
        assert_eq!(result["denials"].as_array().unwrap().len(), denied);
        assert!(!output.cwd().join("a.txt").exists());
    }
    let output = task(
        &json!([write(), text("done")]),
        "permissions: {mode: read_only}",
    )
    .run();
    assert_eq!(output.result()["reason"], "success");
}

#[test]
fn no_answer_is_no_success() {
    let empty = || json!({"usage": {}});
    let refusal = json!({"text": "no", "stop": "refusal", "usage": {}});
    let cut = || json!({"text": "so f", "stop": "length", "usage": {}});
    for replies in [
        json!([empty(), empty()]),
        json!([refusal]),
        json!([cut(), cut()]),
    ] {
        let output = task(&replies, "").expect_code(1).run();
        assert_eq!(output.result()["reason"], "incomplete", "{replies}");
        assert!(output.event_names().contains(&"session:error".to_owned()));
    }
}

#[test]
fn the_session_file_has_the_input_before_the_model_is_asked() {
    let gate = Gate::default();
    let server =
        ModelServer::start(
            [Reply::from(anthropic::text("done")).after(Action::Wait(gate.clone()))],
        );
    let cli = Cli::new()
        .args(["-p", "do it", "--quiet", "--run-dir", "out"])
        .args([
            "--model",
            "anthropic-messages/test",
            "--base-url",
            &server.url(),
        ])
        .env("ANTHROPIC_API_KEY", "key");
    let mut child = cli.command().spawn().unwrap();
    server.wait_for_requests(1);
    let session = std::fs::read_to_string(cli.cwd().join("out/session.jsonl")).unwrap();
    gate.open();
    assert!(child.wait().unwrap().success());
    let lines: Vec<Value> = session
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["type"]).collect();
    assert_eq!(
        kinds,
        [
            "session",
            "model_change",
            "thinking_level_change",
            "message"
        ]
    );
    assert_eq!(lines[3]["message"]["role"], "user");
    assert_eq!(lines[3]["message"]["content"][0]["text"], "do it");
    server.finish();
}

#[test]
fn a_cost_cap_needs_a_price() {
    let server = ModelServer::start(Vec::<Reply>::new());
    let output = Cli::new()
        .args(["-p", "do it", "--quiet", "--max-cost-usd", "1"])
        .args(["--model", "openai-chat/test", "--base-url", &server.url()])
        .env("OPENAI_API_KEY", "key")
        .expect_code(78)
        .run();
    assert_eq!(output.result()["error"]["code"], "unknown_price");
    assert!(server.finish().is_empty(), "no token is spent");
}

#[test]
fn a_reply_may_be_as_long_as_the_money_lasts() {
    let price = resolve("anthropic/claude-sonnet-5", None)
        .unwrap()
        .price
        .unwrap();
    let server = ModelServer::start([anthropic::text("done")]);
    Cli::new()
        .args([
            "-p",
            "do it",
            "--quiet",
            "--max-cost-usd",
            "0.1",
            "--thinking",
            "off",
        ])
        .args([
            "--model",
            "anthropic/claude-sonnet-5",
            "--base-url",
            &server.url(),
        ])
        .env("ANTHROPIC_API_KEY", "key")
        .run();
    let requests = server.finish();
    let most = requests[0].body["max_tokens"].as_f64().unwrap();
    let affordable = 0.1 / price.output * 1e6;
    assert!(
        most >= 1_024.0 && most < affordable,
        "{most} of {affordable}"
    );
}

#[test]
fn a_reply_without_usage_makes_the_cost_unknown() {
    let frames = [
        json!([{"index": 0, "delta": {"content": "done"}, "finish_reason": null}]),
        json!([{"index": 0, "delta": {}, "finish_reason": "stop"}]),
    ];
    let mut body: String = frames
        .iter()
        .map(|choices| chat::frame(choices, &Value::Null))
        .collect();
    body.push_str("data: [DONE]\n\n");
    let server = ModelServer::start([crate::support::reply::sse(body)]);
    let output = Cli::new()
        .args(["-p", "do it", "--model", "deepseek/deepseek-v4-pro"])
        .args(["--base-url", &server.url()])
        .env("DEEPSEEK_API_KEY", "key")
        .run();
    server.finish();
    let result = output.result();
    assert_eq!(result["costUsd"], Value::Null);
    assert!(result["budget"]["tokens"]["used"].as_f64() > Some(100.0));
    assert!(result["budget"]["cost"]["used"].as_f64() > Some(0.0));
    let events = output.events();
    let warnings: Vec<&Value> = events
        .iter()
        .filter(|event| event["event"] == "warning")
        .map(|event| &event["data"]["code"])
        .collect();
    assert_eq!(warnings, ["usage_missing"]);
}

#[test]
fn a_script_that_names_no_usage_used_nothing() {
    let output = task(&json!([{"text": "done"}]), "").run();
    let result = output.result();
    assert_eq!(result["costUsd"], 0.0);
    assert_eq!(result["warnings"], json!([]));
    assert_eq!(result["budget"]["tokens"]["used"], 0.0);
    // Unless it plays a provider that does not say.
    let output = task(&json!([{"text": "done", "usage": null}]), "").run();
    let result = output.result();
    assert_eq!(result["costUsd"], 0.0, "whatever it used was free");
    assert_eq!(result["warnings"][0]["code"], "usage_missing");
    assert!(result["budget"]["tokens"]["used"].as_f64() > Some(100.0));
}

#[test]
fn each_call_of_a_reply_keeps_its_own_output() {
    let print = |id: &str, letter: &str| {
        let command = format!("head -c 200000 /dev/zero | tr '\\0' {letter}");
        json!({"name": "bash", "id": id, "arguments": {"command": command}})
    };
    // Both ids are the same once they are made fit for a file name.
    let replies = json!([{"calls": [print("a!", "x"), print("a?", "y")]}, {"text": "done"}]);
    let output = task(&replies, "permissions: {mode: bypass}")
        .args(["--allow-bypass"])
        .run();
    let mut kept: Vec<char> = std::fs::read_dir(output.run_dir().join("tool-output"))
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap())
        .filter(|text| text.len() >= 200_000)
        .map(|text| text.chars().next().unwrap())
        .collect();
    kept.sort_unstable();
    assert_eq!(kept, ['x', 'y']);
}

#[test]
fn a_model_knows_what_the_rules_allow_and_words_on_the_way_are_no_answer() {
    let denied = json!({
        "text": "Let me try.",
        "calls": [{"name": "bash", "arguments": {"command": "rm x"}}],
        "expect": {"contains": ["inside the workspace, Bash(cargo test *)"]},
    });
    let settings = "permissions: {mode: accept_edits, allow: [Bash(cargo test *)]}\n\
                    limits: {max_denials: {consecutive: 1}}";
    let output = task(&json!([denied]), settings).expect_code(3).run();
    assert_eq!(output.stdout, "", "no answer was given");
    assert_eq!(output.result()["finalText"], "");
    let events = output.events();
    let end = events.iter().find(|event| event["event"] == "turn:end");
    assert_eq!(end.unwrap()["data"]["finalText"], "Let me try.");
}

#[test]
fn a_reply_of_exactly_the_output_limit_is_cut_whatever_the_server_says() {
    let cut = json!({"text": "half of", "usage": {"input": 10, "output": 50}});
    let replies = json!([cut, text("the whole answer")]);
    let output = task(&replies, "")
        .args(["--set", "settings.max_output_tokens=50"])
        .run();
    let result = output.result();
    assert_eq!(
        (&result["turns"], &result["finalText"]),
        (&json!(2), &json!("the whole answer"))
    );
}
