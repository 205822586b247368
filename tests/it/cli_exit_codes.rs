//! Every exit code that there is, reached by the program itself.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli_scene::{agree, bash, plain, scripted, truthful};
use crate::support::anthropic;
use crate::support::cli::{Cli, Output};
use crate::support::reply::{Reply, status};
use crate::support::running::Running;
use crate::support::server::ModelServer;

/// A run that leaves a run directory.
fn kept(cli: Cli, code: i32) -> Value {
    truthful(&cli.expect_code(code).run())
}

/// A run that is refused before it has a run directory.
fn refused(cli: Cli, code: i32) -> Value {
    let done = cli
        .args(["--output-format", "jsonl"])
        .expect_code(code)
        .run();
    let last: Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
    let result = last["data"]["result"].clone();
    agree(code, &done.stdout, &result);
    assert!(!done.cwd().join("out").exists(), "it left a run directory");
    assert!(!done.stderr.is_empty(), "people are told nothing");
    result
}

/// A run against a model server.
fn served(replies: Vec<Reply>, more: &str, code: i32) -> Value {
    let server = ModelServer::start(replies);
    let task = format!(
        "version: 1\nname: demo\nprompt: Do it.\n{more}settings: {{model: anthropic/claude-sonnet-5, base_url: {}}}\n",
        server.url()
    );
    let output: Output = Cli::new()
        .file("task.yaml", task)
        .env("ANTHROPIC_API_KEY", "key-of-a-test")
        .args(["run", "task.yaml", "--run-dir", "out"])
        .expect_code(code)
        .run();
    server.finish();
    truthful(&output)
}

fn signalled(signal: Signal) -> Value {
    let cli = scripted(
        &bash("exec cat /dev/zero > /dev/null"),
        "permissions: {mode: bypass}\n",
    )
    .arg("--allow-bypass");
    let running = Running::start(cli.command(), &cli.cwd().join("out"));
    running.wait_for_event("tool:execution:start");
    let end = running.end_by(signal);
    let result = end.result();
    agree(end.code.unwrap(), &end.log(), &result);
    result
}

macro_rules! endings {
    ($($name:ident $code:literal $reason:literal $run:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let result: Value = $run;
                assert_eq!(result["reason"], $reason, "{result}");
                assert_eq!(result["exitCode"], $code, "{result}");
            }
        )*

        /// What the tests above reach.
        const REACHED: &[(u8, &str)] = &[$(($code, $reason),)*];
    };
}

const OK: &str = "- text: done\n";
const DIRTY: &str = "workspace: {require_clean: true}\n";
const PATIENT: &str = "retry: {max_attempts: 1}\n";

endings! {
    success 0 "success" kept(scripted(OK, ""), 0);
    incomplete 1 "incomplete" kept(scripted("- text: ''\n- text: ''\n- text: ''\n", ""), 1);
    invalid_response 1 "invalid_response" kept(
        scripted(OK, "response: {schema: {type: object}, repairs: 0}\n"), 1);
    usage 2 "usage" {
        let done = Cli::new().args(["run", "--bogus"]).expect_code(2).run();
        assert_eq!(done.stdout, "");
        json!({"reason": "usage", "exitCode": 2})
    };
    denied 3 "denied" kept(
        scripted(&format!("{}{OK}", bash("touch x")), "permissions: {fail_on_denied: true}\n"), 3);
    budget 4 "budget" kept(
        scripted(&format!("{}{OK}", bash("true")), "limits: {max_turns: 1, on_exhausted: stop}\n"), 4);
    batch_partial 8 "batch_partial" {
        let cli = plain(OK, "").file("empty.yaml", "[]");
        let other = "version: 1\nprompt: x\nsettings: {model: scripted/empty.yaml}\n";
        kept(cli.file("b.yaml", other).args(["run", "task.yaml", "b.yaml", "--run-dir", "out"]), 8)
    };
    replay_mismatch 10 "replay_mismatch" kept(
        scripted(OK, "").file("c.jsonl", include_str!("../fixtures/cassettes/v1.jsonl"))
            .args(["--replay", "c.jsonl"]), 10);
    bad_task 65 "bad_task" refused(scripted(OK, "bogus: 1\n"), 65);
    no_input 66 "no_input" refused(Cli::new().args(["run", "no.yaml", "--run-dir", "out"]), 66);
    unavailable 69 "unavailable" served(
        vec![status(503).json(&json!({})).into()], PATIENT, 69);
    internal 70 "internal" kept(scripted(OK, "").env("AGENT_TEST_FAULT", "loop"), 70);
    io 74 "io" kept(scripted(OK, "").args(["--events", "/dev/full"]), 74);
    rate_limited 75 "rate_limited" served(
        vec![status(429).header("retry-after", "1000000000").json(&json!({})).into()], "", 75);
    auth 77 "auth" served(
        vec![anthropic::error(401, "authentication_error", "invalid x-api-key").into()], "", 77);
    config 78 "config" {
        let cli = scripted(OK, DIRTY);
        let init = agent_git(cli.cwd());
        assert!(init, "git init");
        kept(cli, 78)
    };
    timeout 124 "timeout" served(vec![Reply::hang()], "limits: {timeout: 1s}\n", 124);
    hung_up 129 "hung_up" signalled(Signal::HUP);
    interrupted 130 "interrupted" signalled(Signal::INT);
    terminated 143 "terminated" signalled(Signal::TERM);
}

#[expect(clippy::disallowed_methods, reason = "the git of the test")]
fn agent_git(dir: &std::path::Path) -> bool {
    let mut git = std::process::Command::new("git");
    git.args(["init", "-q"]).current_dir(dir).env("HOME", dir);
    git.status().unwrap().success()
}

#[test]
fn every_listed_code_is_reached_by_a_test() {
    let list = Cli::new().args(["exit-codes", "--json"]).run().stdout;
    let list: Vec<Value> = serde_json::from_str(&list).unwrap();
    let listed: Vec<(u8, &str)> = list
        .iter()
        .map(|row| {
            (
                u8::try_from(row["code"].as_u64().unwrap()).unwrap(),
                row["reason"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(listed, REACHED);
    let text = Cli::new().arg("exit-codes").run().stdout;
    for row in &list {
        assert!(text.contains(row["meaning"].as_str().unwrap()), "{row}");
    }
}

#[test]
fn a_crash_anywhere_is_told_without_what_it_says() {
    for place in ["start", "loop", "job"] {
        let cli = scripted(OK, "")
            .env("AGENT_TEST_FAULT", place)
            .expect_code(70);
        let done = cli.args(["--output-format", "json"]).run();
        assert!(
            done.stderr.contains("agent: internal error at src/"),
            "{place}: {}",
            done.stderr
        );
        assert!(
            !done.stderr.contains("was asked for") || place == "job",
            "{}",
            done.stderr
        );
        if place != "start" {
            let shown: Value = serde_json::from_str(&done.stdout).unwrap();
            assert_eq!(shown, truthful(&done));
            assert_eq!(shown["error"]["code"], "internal");
        }
    }
}

#[test]
fn no_arguments_at_all_is_a_usage_error_with_help() {
    let done = Cli::new().expect_code(2).run();
    assert_eq!(done.stdout, "");
    assert!(
        done.stderr.starts_with("A headless coding agent"),
        "{}",
        done.stderr
    );
}
