//! Where a run's files go, and what happens when they cannot.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::Value;

use crate::cli_scene::{agree, mode, plain, scripted};
use crate::support::cli::Cli;
use crate::support::running::{Running, now};

const OK: &str = "- text: done\n";

/// A run that cannot start because of an output; what it says to machines.
fn refused(cli: Cli) -> (Value, crate::support::cli::Output) {
    let done = cli
        .args(["--output-format", "json", "--quiet"])
        .expect_code(74)
        .run();
    let shown: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(
        (&shown["reason"], &shown["exitCode"]),
        (&"io".into(), &74.into())
    );
    assert!(!done.stderr.is_empty());
    (shown, done)
}

#[test]
fn an_output_that_cannot_be_opened_stops_the_run_before_it_starts() {
    let pipe = scripted(OK, "");
    mknodat(CWD, pipe.cwd().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let table = [
        (
            scripted(OK, "").args(["--events", "no/such/folder"]),
            "no/such/folder",
        ),
        (
            scripted(OK, "").args(["--events", "/proc/version"]),
            "/proc/version",
        ),
        (scripted(OK, "").args(["-o", "."]), "Is a directory"),
        (pipe.args(["-o", "pipe"]), "nobody reads this pipe"),
    ];
    for (cli, expect) in table {
        let (shown, done) = refused(cli);
        assert!(done.stderr.contains(expect), "{}", done.stderr);
        let result = done.result();
        assert_eq!(
            (&result["reason"], &result["exitCode"]),
            (&"io".into(), &74.into())
        );
        assert_eq!(result["outcome"], "error");
        assert_eq!(result["error"], shown["error"]);
        assert_eq!(result["runId"], shown["runId"]);
        assert!(
            !done.run_dir().join("session.jsonl").exists(),
            "the job ran"
        );
    }
}

#[test]
fn a_run_directory_that_cannot_be_is_refused() {
    let below_a_file = plain(OK, "").args(["run", "task.yaml", "--run-dir", "model.yaml/x"]);
    let in_proc = plain(OK, "").args(["run", "task.yaml", "--run-dir", "/proc/agent"]);
    for cli in [below_a_file, in_proc] {
        refused(cli);
    }
}

#[test]
fn a_link_in_the_workspace_does_not_lead_the_run_elsewhere() {
    let elsewhere = tempfile::tempdir().unwrap();
    let cli = plain(OK, "").args(["run", "task.yaml"]).expect_code(74);
    std::os::unix::fs::symlink(elsewhere.path(), cli.cwd().join(".agent")).unwrap();
    let done = cli.run();
    assert!(done.stderr.contains("symbolic link"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}

#[test]
fn a_directory_with_files_is_no_run_directory() {
    let done = plain(OK, "").args(["run", "task.yaml", "--run-dir", "."]);
    let done = done.expect_code(2).run();
    assert!(done.stderr.contains("it is not empty"), "{}", done.stderr);
    assert_eq!(std::fs::read_dir(done.cwd()).unwrap().count(), 2);
}

#[test]
fn a_run_directory_is_used_once() {
    let first = scripted(OK, "").run();
    let again = Cli::at(first.cwd()).args(["run", "task.yaml", "--run-dir", "out"]);
    let (_, again) = refused(again);
    assert!(
        again.stderr.contains("it holds another run"),
        "{}",
        again.stderr
    );
    let left = std::fs::read_to_string(first.run_dir().join("result.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&left).unwrap()["reason"],
        "success"
    );
}

#[test]
fn what_a_run_leaves_is_for_its_owner_and_out_of_gits_sight() {
    let long = "- calls: [{name: bash, arguments: {command: 'seq 40000'}}]\n\
                - calls: [{name: write, arguments: {path: a, content: b}}]\n- text: done\n";
    let cli = plain(
        long,
        "permissions: {mode: bypass}\nworkspace: {isolation: copy}\n",
    );
    let done = cli.args(["run", "task.yaml", "--allow-bypass"]).run();
    let runs = done.cwd().join(".agent/runs");
    assert_eq!(
        std::fs::read_to_string(runs.join(".gitignore")).unwrap(),
        "*\n"
    );
    let mut names = Vec::new();
    let mut open = vec![done.run_dir()];
    while let Some(dir) = open.pop() {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
                continue;
            }
            assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
            if dir == done.run_dir() {
                names.push(entry.file_name().into_string().unwrap());
            }
        }
    }
    names.sort();
    let expect = [
        "change.patch",
        "events.jsonl",
        "result.json",
        "run.json",
        "session.jsonl",
        "summary.md",
    ];
    assert_eq!(names, expect);
    assert!(
        done.run_dir().join("tool-output").is_dir(),
        "nothing was spilled"
    );
    let run: Value = serde_json::from_str(&done.artifact("run.json")).unwrap();
    assert_eq!(run["runId"], done.result()["runId"]);
    assert_eq!(run["configHash"], done.events()[0]["data"]["configHash"]);
    assert_eq!(run["tasks"][0]["prompt"], "Do it.");
    assert!(done.artifact("summary.md").contains("`a`"));
}

#[test]
fn a_run_directory_that_vanishes_is_told_by_every_output_that_is_left() {
    let wait =
        "- calls: [{name: bash, arguments: {command: 'until test -e go; do sleep 0.02; done'}}]\n";
    let cli = scripted(&format!("{wait}{OK}"), "permissions: {mode: bypass}\n");
    let cli = cli.args([
        "--allow-bypass",
        "--output-format",
        "json",
        "--events",
        "log.jsonl",
    ]);
    let out = cli.cwd().join("out");
    let running = Running::start(cli.command(), &out);
    running.wait_for_event("tool:execution:start");
    std::fs::remove_dir_all(&out).unwrap();
    std::fs::write(cli.cwd().join("go"), "").unwrap();
    let end = running.end(now());
    assert_eq!(end.code, Some(74), "{}", end.stderr);
    let shown: Value = serde_json::from_str(&end.stdout).unwrap();
    assert_eq!(shown["exitCode"], 74);
    let log = std::fs::read_to_string(cli.cwd().join("log.jsonl")).unwrap();
    agree(74, &log, &shown);
    assert!(end.stderr.contains("exit status 74"), "{}", end.stderr);
}

#[test]
fn people_are_told_the_status_that_the_run_really_has() {
    let done = scripted(OK, "")
        .args(["--events", "/dev/full"])
        .expect_code(74)
        .run();
    let last = done.stderr.lines().last().unwrap();
    assert_eq!(last, "agent: exit status 74: results could not be written");
}
