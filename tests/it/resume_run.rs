//! Runs that go on with the session of an earlier run.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::anthropic::{text, tool_call};
use crate::support::cli::{Cli, Output};
use crate::support::running::Running;
use crate::support::server::{ModelServer, Recorded};

/// `agent` in `cwd` with a key for the server.
fn agent(cwd: &Path, server: &ModelServer) -> Cli {
    Cli::at(cwd)
        .env("XDG_STATE_HOME", cwd.with_file_name("state"))
        .env("ANTHROPIC_API_KEY", "key-of-a-test")
        .env("ANTHROPIC_BASE_URL", server.url())
}

fn prompt(cwd: &Path, server: &ModelServer, prompt: &str, run_dir: &str) -> Cli {
    agent(cwd, server)
        .args(["-p", prompt, "--quiet", "--run-dir", run_dir])
        .args(["--model", "anthropic/claude-sonnet-5"])
}

/// Starts the run of `.agent/runs/a`.
fn start(cli: &Cli, cwd: &Path) -> Running {
    fs::create_dir_all(cwd.join(".agent/runs")).unwrap();
    Running::start(cli.command(), &cwd.join(".agent/runs/a"))
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let cwd = dir.path().canonicalize().unwrap().join("work");
    fs::create_dir(&cwd).unwrap();
    (dir, cwd)
}

fn said(request: &Recorded) -> Vec<(String, String)> {
    let messages = request.body["messages"].as_array().unwrap();
    let text = |message: &Value| {
        let blocks = message["content"].as_array().unwrap().iter();
        let texts = blocks.map(|block| {
            let inside = block.pointer("/content/0/text");
            let text = block.get("text").or(inside).unwrap_or(&block["type"]);
            text.as_str().unwrap_or_default().to_owned()
        });
        texts.collect::<Vec<_>>().join("|")
    };
    messages
        .iter()
        .map(|message| (message["role"].as_str().unwrap().to_owned(), text(message)))
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected
        .iter()
        .map(|(role, text)| ((*role).to_owned(), (*text).to_owned()))
        .collect()
}

fn told(output: &Output, name: &str) -> Vec<Value> {
    let events = output.events();
    events
        .iter()
        .filter(|event| event["event"] == name)
        .map(|event| event["data"].clone())
        .collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn a_run_goes_on_in_the_same_file() {
    let (_dir, cwd) = place();
    let server = ModelServer::start([text("First."), text("Second."), text("Third.")]);
    prompt(&cwd, &server, "One", ".agent/runs/a").run();
    let file = cwd.join(".agent/runs/a/session.jsonl");
    let before = fs::read_to_string(&file).unwrap();
    let id = lines(&file)[0]["id"].clone();

    let second = prompt(&cwd, &server, "Two", ".agent/runs/b")
        .arg("--continue")
        .run();
    assert!(!second.run_dir().join("session.jsonl").exists());
    assert!(fs::read_to_string(&file).unwrap().starts_with(&before));
    assert_eq!(second.result()["sessionFile"], file.to_str().unwrap());
    let ready = &told(&second, "session:ready")[0];
    assert_eq!(ready["historyLoaded"], true);
    assert_eq!(ready["sessionId"], id);
    let entries = before.lines().count() - 1;
    assert_eq!(
        told(&second, "session:resumed"),
        [json!({"sessionId": id, "entries": entries, "repairedBytes": 0})]
    );

    // The session's own model, without naming it.
    let prefix = &id.as_str().unwrap()[..20];
    let third = agent(&cwd, &server)
        .args([
            "-p",
            "Three",
            "--quiet",
            "--run-dir",
            ".agent/runs/c",
            "--resume",
            prefix,
        ])
        .run();
    assert_eq!(third.result()["model"], "anthropic/claude-sonnet-5");
    let requests = server.finish();
    assert_eq!(
        said(&requests[2]),
        pairs(&[
            ("user", "One"),
            ("assistant", "First."),
            ("user", "Two"),
            ("assistant", "Second."),
            ("user", "Three"),
        ])
    );
    let changes = lines(&file);
    let changes = changes.iter().filter(|line| line["type"] == "model_change");
    assert_eq!(changes.count(), 1);
}

#[test]
fn a_fork_leaves_the_session_as_it_is() {
    let (_dir, cwd) = place();
    let server = ModelServer::start([text("First."), text("Second."), text("Third.")]);
    prompt(&cwd, &server, "One", ".agent/runs/a").run();
    let file = cwd.join(".agent/runs/a/session.jsonl");
    let before = fs::read_to_string(&file).unwrap();
    let second = prompt(&cwd, &server, "Two", ".agent/runs/b")
        .args(["--resume", ".agent/runs/a", "--fork-session"])
        .run();
    let forked = second.session();
    assert_eq!(fs::read_to_string(&file).unwrap(), before);
    assert_eq!(forked[0]["parentSession"], file.to_str().unwrap());
    let last = before.lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(
        told(&second, "session:forked"),
        [
            json!({"parentSessionId": lines(&file)[0]["id"], "sessionId": forked[0]["id"],
            "fromEntry": last["id"]})
        ]
    );
    assert_eq!(told(&second, "session:ready")[0]["historyLoaded"], true);
    assert_eq!(second.result()["sessionFile"], "session.jsonl");

    // A task may say the same.
    let task = "version: 1\nname: t\nprompt: Three\nsettings: {model: anthropic/claude-sonnet-5}\n\
                session: {resume: ../.agent/runs/a/session.jsonl, fork: true}\n";
    let third = agent(&cwd, &server)
        .file("tasks/t.yaml", task)
        .args([
            "run",
            "tasks/t.yaml",
            "--quiet",
            "--run-dir",
            ".agent/runs/c",
        ])
        .run();
    assert_eq!(third.session()[0]["parentSession"], file.to_str().unwrap());
    let requests = server.finish();
    for (request, prompt) in [(&requests[1], "Two"), (&requests[2], "Three")] {
        assert_eq!(
            said(request),
            pairs(&[("user", "One"), ("assistant", "First."), ("user", prompt)])
        );
    }
}

#[test]
fn a_killed_run_goes_on_and_its_open_call_is_not_run_again() {
    let (_dir, cwd) = place();
    crate::workspace_fixture::run("mkfifo", &["pipe"], &cwd);
    let command = "echo ran >> ran.txt; cat pipe";
    let server = ModelServer::start([
        tool_call("toolu_1", "bash", &json!({"command": command})),
        text("I see that it was interrupted."),
    ]);
    let killed = prompt(&cwd, &server, "One", ".agent/runs/a").args([
        "--permission-mode",
        "bypass",
        "--allow-bypass",
    ]);
    let running = start(&killed, &cwd);
    let ran = cwd.join("ran.txt");
    running.wait_until("the command", || ran.exists());
    assert_eq!(running.end_by(Signal::KILL).code, None);
    // Its command ended with it, or reads the end of the pipe and ends too.
    drop(
        fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(cwd.join("pipe"))
            .unwrap(),
    );
    let file = cwd.join(".agent/runs/a/session.jsonl");
    let torn = fs::read_to_string(&file).unwrap() + "{\"type\":\"mess";
    fs::write(&file, torn).unwrap();

    let second = prompt(&cwd, &server, "Two", ".agent/runs/b")
        .arg("-c")
        .run();
    assert_eq!(fs::read_to_string(&ran).unwrap(), "ran\n");
    assert_eq!(told(&second, "session:resumed")[0]["repairedBytes"], 13);
    assert_eq!(
        second.result()["finalText"],
        "I see that it was interrupted."
    );
    let requests = server.finish();
    let seen = said(&requests[1]);
    assert_eq!(
        seen[..2],
        pairs(&[("user", "One"), ("assistant", "tool_use")])
    );
    assert_eq!(seen.len(), 3);
    let (role, last) = &seen[2];
    assert_eq!(role, "user");
    assert!(
        last.starts_with("Interrupted: ") && last.ends_with("|Two"),
        "{last}"
    );
    let session = lines(&file);
    assert!(
        session
            .iter()
            .any(|line| line["message"]["isError"] == true)
    );
}

#[test]
fn a_session_that_is_written_is_not_gone_on_with() {
    let (_dir, cwd) = place();
    let server = ModelServer::start([crate::support::reply::Reply::hang()]);
    let first = prompt(&cwd, &server, "One", ".agent/runs/a");
    let running = start(&first, &cwd);
    server.wait_for_requests(1);
    let second = prompt(&cwd, &server, "Two", ".agent/runs/b")
        .arg("--continue")
        .expect_code(74)
        .run();
    let message = second.result()["error"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.starts_with("another process is writing this session"),
        "{message}"
    );
    running.end_by(Signal::TERM);
    server.finish();
}

#[test]
fn a_session_that_is_not_there_is_never_a_new_one() {
    let session = |id: &str, cwd: &str| {
        let header = json!({"type": "session", "version": 3, "id": id, "timestamp": "2026-01-02T10:00:00.000Z",
            "cwd": cwd});
        format!("{header}\n")
    };
    let cases: [(&[&str], i32, &str); 9] = [
        (&["--continue"], 66, "there is no session of "),
        (&["--resume", "0199"], 66, "no session has the id 0199 in "),
        (&["--resume", "0190"], 66, "several sessions match 0190:"),
        (
            &["--resume", "none.jsonl"],
            66,
            "cannot read the session file ",
        ),
        (
            &["--resume", "task.yaml.jsonl"],
            65,
            "is no session: its first line is no session header",
        ),
        (&["--resume", "x", "--continue"], 2, "cannot be used with"),
        (&["--continue", "--no-session"], 2, "cannot be used with"),
        (
            &["--fork-session"],
            2,
            "`session.fork` needs a session to go on with",
        ),
        (
            &["task.yaml", "--continue"],
            2,
            "several tasks cannot go on with one session",
        ),
    ];
    for (args, code, said) in cases {
        let refused = crate::cli_scene::plain("- text: done\n", "")
            .file("task.yaml.jsonl", "version: 1\n")
            .file(".agent/runs/x/session.jsonl", session("0190-a", "/x"))
            .file(".agent/runs/y/session.jsonl", session("0190-b", "/y"))
            .args(["run", "task.yaml"])
            .args(args)
            .expect_code(code)
            .run();
        assert!(
            refused.stderr.contains(said),
            "{args:?}: {}",
            refused.stderr
        );
        let runs = fs::read_dir(refused.cwd().join(".agent/runs")).unwrap();
        assert_eq!(runs.count(), 2, "{args:?}");
    }
}

#[test]
fn a_session_without_a_file_cannot_be_gone_on_with() {
    let more = "session: {persist: false, resume: newest}\n";
    let refused = crate::cli_scene::plain("- text: done\n", more)
        .args(["check", "task.yaml"])
        .expect_code(65)
        .run();
    assert!(
        refused
            .stderr
            .contains("a session that is gone on with is written to disk"),
        "{}",
        refused.stderr
    );
}
