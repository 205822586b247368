//! Signals at every moment: five seconds, the right status, no child left, a
//! log that keeps its laws.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::process::Stdio;
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;

use crate::cli_scene::{agree, bash, scripted};
use crate::support::cli::Cli;
use crate::support::reply::{Reply, status};
use crate::support::running::{Finished, Running, marked, wait_until};
use crate::support::server::ModelServer;

const LIMIT: Duration = Duration::from_secs(5);
const SIGNALS: [(Signal, i32); 3] = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];

/// Ignores SIGTERM, and leaves a daemon in a session of its own.
const STUBBORN: &str = "trap '' TERM HUP INT; (setsid sh -c '(sleep 300 &) ; sleep 300' &) ; \
                        while :; do sleep 300; done";

/// A run whose commands carry `MARK`.
fn stubborn(mark: &str) -> Cli {
    let more = "permissions: {mode: bypass}\nenv: {pass: [MARK]}\n";
    scripted(&bash(STUBBORN), more)
        .args(["--allow-bypass", "--quiet"])
        .env("MARK", mark)
}

fn start(cli: &Cli) -> Running {
    Running::start(cli.command(), &cli.cwd().join("out"))
}

/// A stubborn command that has left its daemon.
fn started(cli: &Cli, variable: &str) -> Running {
    let running = start(cli);
    running.wait_until("the command with its daemons", || {
        let sleeping = |command: &&String| command.starts_with("sleep 300");
        marked(variable).iter().filter(sleeping).count() == 3
    });
    running
}

fn ended_well(end: &Finished, code: i32) {
    assert_eq!(end.code, Some(code), "{}", end.stderr);
    assert!(end.took < LIMIT, "{:?}", end.took);
    agree(code, &end.log(), &end.result());
}

#[test]
fn a_command_that_will_not_end_is_ended_with_all_its_children() {
    for (signal, code) in SIGNALS {
        let mark = format!("stubborn-{code}-{}", std::process::id());
        let cli = stubborn(&mark);
        let variable = format!("MARK={mark}");
        let running = started(&cli, &variable);
        let end = running.end_by(signal);
        ended_well(&end, code);
        assert_eq!(marked(&variable), Vec::<String>::new());
        assert_eq!(end.stderr, "");
    }
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mark = format!("twice-{}", std::process::id());
    let cli = stubborn(&mark);
    let running = started(&cli, &format!("MARK={mark}"));
    let end = running.end_by_repeating(Signal::TERM);
    // Only a second signal tears a job down this early.
    assert!(end.took < Duration::from_millis(3_500), "{:?}", end.took);
    ended_well(&end, 143);
    let message = end.result()["error"]["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.contains("SIGTERM; the job was torn down"),
        "{message}"
    );
    assert_eq!(marked(&format!("MARK={mark}")), Vec::<String>::new());
}

/// GNU timeout signals the process and its group, systemd sends a second kind.
/// Two of one kind are one to the kernel already.
#[test]
fn signals_that_come_together_are_one() {
    for other in [Signal::INT, Signal::HUP] {
        let mark = format!("together-{}-{}", other.as_raw(), std::process::id());
        let cli = stubborn(&mark);
        let running = started(&cli, &format!("MARK={mark}"));
        let end = running.end_by_both(other, Signal::TERM);
        ended_well(&end, 143);
        let message = end.result()["error"]["message"].to_string();
        assert!(!message.contains("torn down"), "{message}");
        assert_eq!(marked(&format!("MARK={mark}")), Vec::<String>::new());
    }
}

#[test]
fn a_model_that_does_not_answer_is_hung_up_on() {
    for (signal, code) in SIGNALS {
        let server = ModelServer::start([Reply::hang()]);
        let cli = served(&server, "");
        let running = start(&cli);
        server.wait_for_requests(1);
        ended_well(&running.end_by(signal), code);
        server.finish();
    }
}

#[test]
fn a_backoff_is_cut_short() {
    for (signal, code) in SIGNALS {
        let busy = status(503)
            .header("retry-after", "300")
            .json(&serde_json::json!({}));
        let server = ModelServer::start([busy]);
        let cli = served(&server, "");
        let running = start(&cli);
        running.wait_for_event("retry:start");
        ended_well(&running.end_by(signal), code);
        server.finish();
    }
}

fn served(server: &ModelServer, more: &str) -> Cli {
    let task = format!(
        "version: 1\nprompt: Do it.\n{more}settings: {{model: anthropic/claude-sonnet-5, base_url: {}}}\n",
        server.url()
    );
    Cli::new()
        .file("task.yaml", task)
        .env("ANTHROPIC_API_KEY", "key-of-a-test")
        .args(["run", "task.yaml", "--run-dir", "out", "--quiet"])
}

#[test]
fn a_killed_run_leaves_a_truthful_result() {
    let mark = format!("killed-{}", std::process::id());
    let cli = stubborn(&mark);
    let running = started(&cli, &format!("MARK={mark}"));
    let end = running.end_by(Signal::KILL);
    assert_eq!(end.code, None);
    let result = end.result();
    assert_eq!(result["outcome"], "error");
    assert_eq!(result["reason"], "incomplete");
    assert_eq!(result["error"]["code"], "incomplete");
    assert!(!end.log().contains("run:end"));
    let replay = Cli::at(cli.cwd())
        .args(["replay", "out", "--quiet"])
        .expect_code(65)
        .run();
    assert!(
        replay.stderr.contains("the run was cut"),
        "{}",
        replay.stderr
    );
    // Nobody was left to end these.
    end_all(&format!("MARK={mark}"));
}

fn end_all(variable: &str) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_ours = environment
            .split(|byte| *byte == 0)
            .any(|one| one == variable.as_bytes());
        let pid = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        if let (true, Some(pid)) = (is_ours, pid.and_then(rustix::process::Pid::from_raw)) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    wait_until("their end", || marked(variable).is_empty());
}

#[test]
fn a_reader_that_does_not_read_cannot_hold_a_run_against_a_signal() {
    let text = "x".repeat(4_000);
    let reply = format!("- text: {text}\n  calls: [{{name: ls, arguments: {{}}}}]\n");
    let cli = scripted(&reply.repeat(40), "limits: {max_repeats: 100}\n");
    let cli = cli.args(["--output-format", "jsonl"]);
    let mut command = cli.command();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let out = cli.cwd().join("out");
    let running = Running::start_as_is(command, &out);
    // A pipe takes 64 KiB, and the log is twice as long.
    running.wait_until("a full pipe", || {
        std::fs::metadata(out.join("events.jsonl")).is_ok_and(|log| log.len() > 50_000)
    });
    let end = running.end_by(Signal::TERM);
    assert_eq!(end.code, Some(143));
    assert!(
        end.took < LIMIT + Duration::from_millis(500),
        "{:?}",
        end.took
    );
    let result = end.result();
    assert_eq!(result["reason"], "terminated");
    assert_eq!(result["exitCode"], 143);
    assert!(
        result["error"]["message"]
            .as_str()
            .unwrap()
            .contains("its log is cut")
    );
}

#[test]
fn a_signal_while_the_outputs_are_opened_ends_the_run_too() {
    let cli = scripted("- text: done\n", "").args(["--events", "pipe", "--quiet"]);
    let pipe = cli.cwd().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    let held = rustix::fs::open(&pipe, OFlags::RDWR | OFlags::NONBLOCK, Mode::empty()).unwrap();
    while rustix::io::write(&held, &[b'x'; 4096]).is_ok() {}
    while rustix::io::write(&held, b"x").is_ok() {}
    let running = start(&cli);
    let result = cli.cwd().join("out/events.jsonl");
    running.wait_until("the run directory", || result.exists());
    let end = running.end_by(Signal::TERM);
    assert_eq!(end.code, Some(143));
    assert!(
        end.took < LIMIT + Duration::from_millis(500),
        "{:?}",
        end.took
    );
    assert_eq!(end.result()["reason"], "terminated");
}
