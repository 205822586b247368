//! Standard input, output and error: what goes where, and what happens when
//! one of them is closed, full, silent or watched.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::fs::File;
use std::process::Stdio;

use serde_json::Value;

use crate::cli_scene::{agree, bash, plain, scripted, truthful};
use crate::support::cli::Cli;
use crate::support::running::{Running, now};

const OK: &str = "- text: done\n";

/// What CI runners and terminals act on.
const HOSTILE: &str =
    "- text: \"::set-env name=A::b\\n\\tkept\\n\\e[31mred\\e[0m ##vso[task.x]y\"\n";

#[test]
fn standard_output_is_the_answer_the_result_or_the_log() {
    let text = scripted(OK, "").run();
    assert_eq!(text.stdout, "done\n");
    truthful(&text);
    let json = scripted(OK, "").args(["--output-format", "json"]).run();
    assert_eq!(
        serde_json::from_str::<Value>(&json.stdout).unwrap(),
        truthful(&json)
    );
    assert_eq!(json.stdout.lines().count(), 1);
    let jsonl = scripted(OK, "")
        .args(["--output-format", "jsonl", "--quiet"])
        .run();
    assert_eq!(jsonl.stdout, jsonl.artifact("events.jsonl"));
    truthful(&jsonl);
}

#[test]
fn the_answer_and_the_log_also_go_where_they_are_wanted() {
    let done = scripted(OK, "")
        .args(["-o", "answer.txt", "--events", "log.jsonl"])
        .run();
    let read = |name: &str| std::fs::read_to_string(done.cwd().join(name)).unwrap();
    assert_eq!(read("answer.txt"), "done");
    assert_eq!(read("log.jsonl"), done.artifact("events.jsonl"));
}

#[test]
fn progress_is_plain_lines_unless_a_person_watches() {
    for (variable, value) in [
        ("CI", "true"),
        ("TERM", "dumb"),
        ("NO_COLOR", "1"),
        ("TERM", "xterm"),
    ] {
        let done = scripted(OK, "").env(variable, value).run();
        assert!(done.stderr.contains("step 1/60"), "{}", done.stderr);
        assert!(
            !done.stderr.contains(['\r', '\u{1b}']),
            "{variable}: {:?}",
            done.stderr
        );
    }
    let colours = |cli: Cli| cli.run().stderr.contains('\u{1b}');
    assert!(colours(scripted(OK, "").env("CLICOLOR_FORCE", "1")));
    assert!(!colours(scripted(OK, "").env("CLICOLOR_FORCE", "0")));
    assert!(!colours(
        scripted(OK, "")
            .env("CLICOLOR_FORCE", "1")
            .env("NO_COLOR", "1")
    ));
    assert!(colours(
        scripted(OK, "")
            .args(["--color", "always"])
            .env("NO_COLOR", "1")
    ));
    assert!(!colours(
        scripted(OK, "")
            .args(["--color", "never"])
            .env("CLICOLOR_FORCE", "1")
    ));
}

#[test]
fn a_ci_system_is_given_no_commands() {
    let cli = || scripted(HOSTILE, "").args(["--quiet"]);
    let shown = cli().env("CI", "true").run();
    assert_eq!(
        shown.stdout,
        ": :set-env name=A::b\n\tkept\nred # #vso[task.x]y\n"
    );
    // A program that reads the answer gets it as it is.
    let piped = cli().run();
    assert_eq!(
        piped.stdout,
        "::set-env name=A::b\n\tkept\n\u{1b}[31mred\u{1b}[0m ##vso[task.x]y\n"
    );
    for format in ["json", "jsonl"] {
        let done = cli()
            .env("CI", "true")
            .args(["--output-format", format])
            .run();
        assert!(!done.stdout.contains("##"), "{}", done.stdout);
        let last: Value = serde_json::from_str(done.stdout.lines().last().unwrap()).unwrap();
        let result = if format == "json" {
            &last
        } else {
            &last["data"]["result"]
        };
        assert_eq!(result, &done.result(), "it is the same document");
    }
}

#[test]
fn a_file_gets_the_answer_as_it_is_even_in_ci() {
    let cli = scripted(HOSTILE, "").arg("--quiet").env("CI", "true");
    let running = Running::start(cli.command(), &cli.cwd().join("out"));
    let end = running.end(now());
    assert!(end.stdout.starts_with("::set-env"), "{}", end.stdout);
}

#[test]
fn progress_and_refusals_in_ci_hold_no_commands_either() {
    let hostile = format!(
        "{}{OK}",
        bash("printf '\\033]0;x\\007::error::y\\n##[group]z\\n' # ##vso[a]")
    );
    let done = scripted(&hostile, "permissions: {mode: bypass}\n")
        .arg("--allow-bypass")
        .run();
    let harmless = |text: &str| {
        assert!(
            !text.contains("##vso[") && !text.contains("##[") && !text.contains('\u{1b}'),
            "{text}"
        );
        assert!(
            text.lines()
                .all(|line| !line.trim_start().starts_with("::")),
            "{text}"
        );
    };
    harmless(&done.stderr);
    let wrong = scripted(OK, "")
        .args(["--param", "x=##vso[task.x]\u{1b}[2J"])
        .expect_code(65)
        .run();
    harmless(&wrong.stderr);
}

#[test]
fn a_reader_that_went_away_loses_no_file() {
    for format in ["text", "json", "jsonl"] {
        let cli = scripted(OK, "").args(["--output-format", format, "--quiet"]);
        let mut command = cli.command();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        command
            .stdin(Stdio::null())
            .stdout(writer)
            .stderr(Stdio::null());
        let end = Running::start_as_is(command, &cli.cwd().join("out")).end(now());
        assert_eq!(end.code, Some(0), "{format}");
        agree(0, &end.log(), &end.result());
    }
}

#[test]
fn a_full_standard_output_is_an_error_even_of_a_task_that_is_done() {
    for format in ["text", "json", "jsonl"] {
        let cli = scripted(OK, "").args(["--output-format", format, "--quiet"]);
        let mut command = cli.command();
        let full = File::options().write(true).open("/dev/full").unwrap();
        command
            .stdin(Stdio::null())
            .stdout(full)
            .stderr(Stdio::null());
        let end = Running::start_as_is(command, &cli.cwd().join("out")).end(now());
        assert_eq!(end.code, Some(74), "{format}");
        agree(74, &end.log(), &end.result());
        let message = end.result()["error"]["message"].clone();
        assert!(
            message.as_str().unwrap().contains("standard output"),
            "{message}"
        );
    }
}

#[test]
fn a_standard_error_that_takes_nothing_changes_nothing() {
    let cli = scripted(OK, "");
    let mut command = cli.command();
    let full = File::options().write(true).open("/dev/full").unwrap();
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(full);
    let end = Running::start_as_is(command, &cli.cwd().join("out")).end(now());
    assert_eq!(end.code, Some(0));
    agree(0, &end.log(), &end.result());
}

#[test]
fn closed_streams_and_few_descriptors_do_no_harm() {
    for redirection in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let cli = scripted(OK, "");
        let line = format!("ulimit -n 64; exec \"$0\" run task.yaml --run-dir out {redirection}");
        let done = shell(&cli, &line);
        assert_eq!(done.status.code(), Some(0), "{redirection}");
        let log = std::fs::read_to_string(cli.cwd().join("out/events.jsonl")).unwrap();
        let result = std::fs::read_to_string(cli.cwd().join("out/result.json")).unwrap();
        agree(0, &log, &serde_json::from_str(&result).unwrap());
    }
}

/// Runs the program, `$0`, through a shell.
#[expect(
    clippy::disallowed_methods,
    reason = "redirections and limits are a shell's"
)]
fn shell(cli: &Cli, line: &str) -> std::process::Output {
    let mut shell = std::process::Command::new("bash");
    shell
        .args(["-c", line, crate::support::cli::program()])
        .current_dir(cli.cwd());
    shell.env_clear().env("PATH", crate::support::cli::path());
    shell.output().unwrap()
}

#[test]
fn a_disk_that_is_full_stops_the_run_and_is_told() {
    let long = "x".repeat(6_000);
    let replies = format!("- text: {long}\n  calls: [{{name: ls, arguments: {{}}}}]\n").repeat(6);
    let cli = plain(&format!("{replies}{OK}"), "limits: {max_repeats: 20}\n");
    let done = shell(
        &cli,
        "ulimit -f 16; exec \"$0\" run task.yaml --run-dir out --quiet",
    );
    assert_eq!(
        done.status.code(),
        Some(74),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let result = std::fs::read_to_string(cli.cwd().join("out/result.json")).unwrap();
    let result: Value = serde_json::from_str(&result).unwrap();
    assert_eq!(
        (&result["reason"], &result["exitCode"]),
        (&"io".into(), &74.into())
    );
    assert!(String::from_utf8_lossy(&done.stderr).contains("File too large"));
}

#[test]
fn an_open_silent_standard_input_holds_nothing_up() {
    for args in [
        &["run", "task.yaml"][..],
        &["-p", "Do it.", "--model", "scripted/model.yaml"],
    ] {
        let cli = plain(OK, "").args(args).args(["--run-dir", "out"]);
        let mut command = cli.command();
        let (_reader, writer) = std::io::pipe().unwrap();
        command
            .stdin(_reader)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let end = Running::start_as_is(command, &cli.cwd().join("out")).end(now());
        assert_eq!(end.code, Some(0), "{args:?}");
        drop(writer);
    }
}

#[test]
fn the_prompt_is_read_from_standard_input_when_asked() {
    let ask = || {
        plain(OK, "").args([
            "-p",
            "-",
            "--model",
            "scripted/model.yaml",
            "--run-dir",
            "out",
        ])
    };
    let done = ask().stdin("Say  done.\n").run();
    assert_eq!(done.stdout, "done\n");
    let turn = done
        .events()
        .into_iter()
        .find(|event| event["event"] == "turn:start")
        .unwrap();
    assert_eq!(
        turn["data"]["input"].as_str().unwrap().trim_end(),
        "Say  done."
    );
    let table: [(&[u8], i32, &str); 4] = [
        (b"", 66, "holds no prompt"),
        (b" \n\t", 66, "holds no prompt"),
        (b"\xff\xfe", 65, "not UTF-8"),
        (&[b'x'; 1024 * 1024 + 1], 65, "over 1048576 bytes"),
    ];
    for (bytes, code, expect) in table {
        let done = ask().stdin(bytes).expect_code(code).run();
        assert!(done.stderr.contains(expect), "{}", done.stderr);
        assert!(!done.cwd().join("out").exists());
    }
}
