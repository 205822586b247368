//! What a run is given: task files of every kind, parameters, several tasks.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::{Value, json};

use crate::cli_scene::{agree, bash, plain, scripted, truthful};
use crate::support::cli::Cli;

const OK: &str = "- text: done\n";

#[test]
fn what_is_no_task_file_is_refused_at_once() {
    let cli = || plain(OK, "");
    let with_pipe = cli();
    mknodat(
        CWD,
        with_pipe.cwd().join("pipe"),
        FileType::Fifo,
        Mode::RWXU,
        0,
    )
    .unwrap();
    let table = [
        (cli(), "missing.yaml", 66),
        (cli(), ".", 66),
        (with_pipe, "pipe", 66),
        (cli(), "/dev/zero", 66),
        (
            cli().file("bad.yaml", "version: 1\nprompt: [\n"),
            "bad.yaml",
            65,
        ),
        (cli().file("bad.yaml", "\u{0}"), "bad.yaml", 65),
        (cli().file("bad.yaml", b"\xff\xff"), "bad.yaml", 65),
        (cli().file("bad.yaml", ""), "bad.yaml", 65),
    ];
    for (cli, task, code) in table {
        let done = cli.args(["run", task, "--run-dir", "out", "--output-format", "json"]);
        let done = done.expect_code(code).run();
        let result: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(result["exitCode"], code, "{task}");
        assert!(
            result["error"]["message"].as_str().unwrap().contains(task),
            "{result}"
        );
        assert!(
            done.stderr.contains(task) && !done.cwd().join("out").exists(),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn every_problem_of_every_file_is_told_before_anything_runs() {
    let cli = plain(OK, "").file("a.yaml", "version: 1\nprompt: x\nbogus: 1\n");
    let cli = cli.file("b.yaml", "version: 2\nprompt: x\n");
    let done = cli
        .args([
            "run",
            "task.yaml",
            "a.yaml",
            "b.yaml",
            "missing.yaml",
            "--run-dir",
            "out",
        ])
        .args(["--output-format", "jsonl"])
        .expect_code(65)
        .run();
    for expect in ["a.yaml", "b.yaml", "missing.yaml", "bogus"] {
        assert!(done.stderr.contains(expect), "{expect}: {}", done.stderr);
    }
    let last: Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
    agree(65, &done.stdout, &last["data"]["result"]);
    assert!(!done.cwd().join("out").exists());
}

#[test]
fn a_script_is_read_like_a_task_file() {
    let table = [
        ("missing.yaml", 66, "no such file"),
        ("pipe", 66, "not an ordinary file"),
        ("/dev/zero", 66, "not an ordinary file"),
        ("huge.yaml", 65, "larger than"),
        ("bad.yaml", 65, "texxt"),
    ];
    for (script, code, says) in table {
        for command in ["run", "check"] {
            let cli = plain(OK, "")
                .file("bad.yaml", "- texxt: done\n")
                .file("huge.yaml", " ".repeat((8 << 20) + 1));
            mknodat(CWD, cli.cwd().join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
            let cli = cli.args([command, "task.yaml", "--model"]);
            let done = cli.arg(format!("scripted/{script}"));
            let done = done.expect_code(code).run();
            let told = &done.stderr;
            assert!(
                told.contains(says) && told.contains(script),
                "{command}: {told}"
            );
        }
    }
}

#[test]
fn wrong_values_of_flags_are_usage_errors_and_the_file_outweighs_them() {
    let table: [&[&str]; 7] = [
        &["--max-turns", "0"],
        &["--max-turns", "-5"],
        &["--max-cost-usd", "-1"],
        &["--permission-mode", "foo"],
        &["--allow", "Foo(x)"],
        &["--timeout", "5"],
        &["--thinking", "hard"],
    ];
    for flag in table {
        for command in ["run", "check"] {
            let done = plain(OK, "").args([command, "task.yaml"]).args(flag);
            let done = done.expect_code(2).run();
            assert!(done.stderr.contains(flag[0]), "{flag:?}: {}", done.stderr);
            assert!(!done.stderr.contains("unexpected argument"), "{flag:?}");
        }
    }
    let both = plain(OK, "bogus: 1\n").args(["run", "task.yaml", "--timeout", "5"]);
    both.expect_code(65).run();
    // These stand for what the file could say itself.
    for value in [["--param", "bogus=1"], ["--set", "limits.max_turns=0"]] {
        let cli = plain(OK, "").args(["run", "task.yaml"]).args(value);
        cli.expect_code(65).run();
    }
}

#[test]
fn a_job_without_a_model_gets_that_of_the_environment() {
    let task = "version: 1\nname: demo\nprompt: Do it.\n";
    let cli = || Cli::new().file("model.yaml", OK).file("task.yaml", task);
    let run = || cli().args(["run", "task.yaml", "--run-dir", "out"]);
    let done = run().env("AGENT_MODEL", "scripted/model.yaml").run();
    assert_eq!(done.events()[0]["data"]["model"], truthful(&done)["model"]);
    let script = format!("scripted/{}", done.cwd().join("model.yaml").display());
    let document: Value = serde_json::from_str(&done.artifact("run.json")).unwrap();
    assert_eq!(document["tasks"][0]["settings"]["model"], script);
    let log = done.artifact("events.jsonl");
    assert!(
        !log.contains("default_model"),
        "what was named is no surprise"
    );

    // Nothing listens there: the choice is what counts.
    let done = run().env("MISTRAL_API_KEY", "key-0123456789");
    let done = done.args(["--base-url", "http://127.0.0.1:9"]);
    let done = done.args(["--set", "retry.max_attempts=1"]);
    let done = done.expect_code(69).run();
    let chosen = "mistral/devstral-2512";
    assert_eq!(truthful(&done)["model"], chosen);
    let events = done.events();
    assert_eq!(events[0]["data"]["model"], chosen);
    let warning = events.iter().find(|event| event["event"] == "warning");
    let warning = &warning.unwrap()["data"];
    assert_eq!(warning["code"], "default_model");
    assert!(warning["message"].as_str().unwrap().contains(chosen));

    let done = run().expect_code(65).run();
    let hint = truthful(&done)["error"]["hints"][0].clone();
    assert!(hint.as_str().unwrap().contains("AGENT_MODEL"), "{hint}");
}

#[test]
fn wrong_flags_are_usage_errors() {
    let table: [&[&str]; 8] = [
        &["run"],
        &["run", "task.yaml", "--max-turns", "x"],
        &["run", "task.yaml", "--param", "novalue"],
        &["run", "task.yaml", "--output-format", "xml"],
        &["-p", "x", "--param", "a=b"],
        &["bogus"],
        &["permissions", "check"],
        &["schema", "bogus"],
    ];
    for args in table {
        let done = plain(OK, "").args(args).expect_code(2).run();
        assert!(
            done.stdout.is_empty() && !done.stderr.is_empty(),
            "{args:?}"
        );
    }
}

#[test]
fn parameters_and_settings_reach_the_task() {
    let more = "parameters:\n  - {key: who, type: string, default: nobody}\n";
    let task = format!(
        "version: 1\nname: demo\nprompt: \"Greet {{{{ who }}}}.\"\nsettings: {{model: scripted/model.yaml}}\n{more}"
    );
    let cli = Cli::new().file("p.yaml", "who: Bob\n");
    let done = cli
        .file("model.yaml", OK)
        .file("task.yaml", &task)
        .args([
            "run",
            "task.yaml",
            "--params-file",
            "p.yaml",
            "--set",
            "limits.max_turns=7",
        ])
        .args(["--run-dir", "out"])
        .run();
    let events = done.events();
    let turn = events
        .iter()
        .find(|event| event["event"] == "turn:start")
        .unwrap();
    assert_eq!(turn["data"]["input"], "Greet Bob.");
    assert_eq!(events[0]["data"]["limits"]["maxTurns"], 7);
    let job = events
        .iter()
        .find(|event| event["event"] == "job:start")
        .unwrap();
    assert_eq!(job["data"]["params"], json!({"who": "Bob"}));
}

#[test]
fn a_run_works_in_the_directory_that_is_named() {
    let cli = Cli::new().file(
        "inner/task.yaml",
        "version: 1\nprompt: x\nsettings: {model: scripted/m.yaml}\n",
    );
    let done = cli
        .file("inner/m.yaml", OK)
        .args(["run", "-C", "inner", "task.yaml"])
        .run();
    assert_eq!(done.stdout, "done\n");
    assert!(done.cwd().join("inner/.agent/runs").is_dir());
    let task = "version: 1\nprompt: x\nsettings: {model: scripted/m.yaml}\n";
    let cli = Cli::new()
        .file("inner/task.yaml", task)
        .file("inner/m.yaml", OK);
    let cli = cli.args([
        "run",
        "-C",
        "inner",
        "task.yaml",
        "--events",
        "log.jsonl",
        "-o",
        "answer.txt",
    ]);
    let named = cli.args(["--run-dir", "r"]).run();
    for file in ["r/result.json", "log.jsonl", "answer.txt"] {
        assert!(named.cwd().join("inner").join(file).is_file(), "{file}");
    }
    let missing = plain(OK, "")
        .args(["run", "-C", "nowhere", "task.yaml"])
        .expect_code(66)
        .run();
    assert!(missing.stderr.contains("nowhere"), "{}", missing.stderr);
}

#[test]
fn a_workspace_that_is_not_there_is_a_missing_input() {
    let done = scripted(OK, "workspace: {path: gone}\n").args(["--output-format", "json"]);
    let done = done.expect_code(66).run();
    let result: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(result["reason"], "no_input");
}

#[test]
fn several_tasks_are_one_run_with_a_folder_for_each() {
    let more = "permissions: {mode: accept_edits}\n";
    let write =
        "- calls: [{name: write, arguments: {path: new.txt, content: hello}}]\n- text: one\n";
    let cli = plain(write, more)
        .file(
            "sub/task.yaml",
            "version: 1\nname: demo\nprompt: x\nsettings: {model: scripted/m.yaml}\n",
        )
        .file("sub/m.yaml", "- text: two\n")
        .file(
            "bad.yaml",
            "version: 1\nprompt: x\nsettings: {model: scripted/empty.yaml}\n",
        )
        .file("empty.yaml", "[]");
    let done = cli
        .args([
            "run",
            "task.yaml",
            "sub/task.yaml",
            "bad.yaml",
            "--run-dir",
            "out",
        ])
        .expect_code(8)
        .run();
    let result = truthful(&done);
    assert_eq!(result["reason"], "batch_partial");
    assert_eq!(result["task"], "demo, demo-2, bad");
    let jobs: Vec<_> = result["jobs"].as_array().unwrap().iter().collect();
    let told = |field: &str| {
        jobs.iter()
            .map(|job| job[field].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(told("task"), ["demo", "demo-2", "bad"]);
    assert_eq!(told("reason"), ["success", "success", "bad_task"]);
    assert_eq!(told("sessionFile")[1], "jobs/demo-2/session.jsonl");
    assert_eq!(jobs[0]["artifacts"]["patch"], "jobs/demo/change.patch");
    assert!(done.artifact("jobs/demo/change.patch").contains("+hello"));
    let run: Value = serde_json::from_str(&done.artifact("run.json")).unwrap();
    let names: Vec<_> = run["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| &task["name"])
        .collect();
    assert_eq!(names, ["demo", "demo-2", "bad"]);
}

#[test]
fn after_a_signal_no_further_task_starts() {
    let wait = bash("touch up; sleep 300");
    let cli = plain(&wait, "permissions: {mode: bypass}\n").args([
        "run",
        "task.yaml",
        "task.yaml",
        "--run-dir",
        "out",
        "--allow-bypass",
    ]);
    let running = crate::support::running::Running::start(cli.command(), &cli.cwd().join("out"));
    running.wait_until("the command", || cli.cwd().join("up").exists());
    let end = running.end_by(rustix::process::Signal::TERM);
    let events = agree(143, &end.log(), &end.result());
    let starts = events.iter().filter(|event| event["event"] == "job:start");
    assert_eq!(starts.count(), 1);
}

#[test]
fn a_task_that_crashes_does_not_stop_the_others() {
    let cli = plain(OK, "").env("AGENT_TEST_FAULT", "job");
    let done = cli
        .args(["run", "task.yaml", "task.yaml", "--run-dir", "out"])
        .expect_code(8)
        .run();
    let result = truthful(&done);
    let reasons: Vec<_> = result["jobs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|job| &job["reason"])
        .collect();
    assert_eq!(reasons, ["internal", "internal"]);
}
