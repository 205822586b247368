//! What a task requires, as `agent check` and `agent doctor` tell it.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::cli_scene::plain;
use crate::requires_run::{path, program};
use crate::support::cli::Cli;

const MORE: &str = "requires:\n  commands: [tool >= 2, gone]\n  env: [THERE, NOT_SET]\n  \
                    files: [model.yaml, gone.txt]\nenv: {pass: [NOT_SET]}\n";

/// A task that misses one of each kind.
fn scene(args: &[&str]) -> Cli {
    let cli = plain("- text: done\n", MORE).args(args);
    let bin = program(&cli, "tool", "echo tool 2.1");
    cli.env("PATH", path(&bin)).env("THERE", "canary-value")
}

/// The list of a run that was refused.
fn refused() -> Vec<String> {
    let done = scene(&["run", "task.yaml", "--run-dir", "out"])
        .expect_code(78)
        .run();
    let hints = done.result()["error"]["hints"].clone();
    let hints = hints.as_array().unwrap().iter();
    hints
        .map(|hint| hint.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn check_tells_the_list_of_the_run() {
    // The place of the workspace is another in each scene.
    let known = |text: &str, cli: &str| text.replace(cli, "");
    let run = refused();
    assert_eq!(run.len(), 3, "{run:#?}");

    let text = scene(&["check", "task.yaml"]).expect_code(78).run();
    let missing: Vec<&str> = text
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("  missing      "))
        .collect();
    assert_eq!(missing.len(), 3, "{}", text.stdout);
    let cwd = text.cwd().display().to_string();
    for (told, expected) in missing.iter().zip(&run) {
        let (place, _) = expected.split_once(": ").unwrap();
        assert!(told.starts_with(place), "{told}\n{expected}");
    }
    assert_eq!(known(missing[0], &cwd), run[0]);
    assert_eq!(known(missing[1], &cwd), run[1]);
    let head = "demo: cannot run here, because something that it requires is missing\n";
    assert!(text.stdout.starts_with(head), "{}", text.stdout);
    let met =
        "  requires     variable THERE: set (commands do not see it: env.pass does not name it)\n";
    assert!(text.stdout.contains(met), "{}", text.stdout);
    assert!(!text.stdout.contains("canary"));

    let json = scene(&["check", "task.yaml", "--output-format", "json"])
        .expect_code(78)
        .run();
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["ok"], false);
    let task = &document["tasks"][0];
    assert_eq!(task["ok"], false);
    let rows = task["requires"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    let told = rows.iter().filter(|row| row["met"] == false).map(|row| {
        let text = |key: &str| row[key].as_str().unwrap();
        let place = format!("{}:{}:{}", text("file"), row["line"], row["column"]);
        format!("{place}: {}: {}", text("message"), text("hint"))
    });
    let told: Vec<String> = told.collect();
    assert_eq!(told[..2], run[..2]);
    assert_eq!(told.len(), 3);
    assert_eq!(rows[0]["name"], "tool >= 2");
    assert!(
        rows[0]["found"]
            .as_str()
            .unwrap()
            .ends_with("/bin/tool, version 2.1")
    );
}

#[test]
fn check_of_a_task_that_has_everything_is_ok() {
    let cli = plain(
        "- text: done\n",
        "requires: {commands: [sh], files: [task.yaml]}\n",
    );
    let done = cli.args(["check", "task.yaml"]).run();
    assert!(done.stdout.starts_with("demo: ok\n"), "{}", done.stdout);
    assert!(
        done.stdout.contains("  requires     command sh: /"),
        "{}",
        done.stdout
    );
}

/// The rows of the doctor about several things of a kind: subject, status, found.
fn rows(document: &Value) -> Vec<(String, String, String)> {
    let checks = document["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check.get("subject").is_some())
        .map(|check| {
            let text = |key: &str| check[key].as_str().unwrap().to_owned();
            let subject = format!("{} {}", text("name"), text("subject"));
            (subject, text("status"), text("found"))
        })
        .collect()
}

#[test]
fn the_doctor_has_a_row_for_each() {
    let done = scene(&["doctor", "task.yaml", "--output-format", "json"])
        .expect_code(78)
        .run();
    let document: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(document["ok"], false);
    let rows = rows(&document);
    let known: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| (row.0.as_str(), row.1.as_str()))
        .collect();
    assert_eq!(
        known,
        [
            ("command tool >= 2", "ok"),
            ("command gone", "error"),
            ("variable THERE", "ok"),
            ("variable NOT_SET", "error"),
            ("file model.yaml", "ok"),
            ("file gone.txt", "error"),
        ]
    );
    assert_eq!(
        rows[1].2,
        "task.yaml:6:25: the command `gone`: not found in PATH"
    );
    assert_eq!(
        rows[2].2,
        "set; commands do not see it: env.pass does not name it"
    );
    assert!(!done.stdout.contains("canary"));

    let text = scene(&["doctor", "task.yaml"]).expect_code(78).run();
    for line in [
        "\nerror    command          gone: task.yaml:6:25: the command `gone`: not found in PATH\n",
        "\n                          -> install it, or add its directory to PATH\n",
        "\nok       variable         THERE: set; commands do not see it",
        "\ndemo cannot run here: 3 errors, ",
    ] {
        assert!(text.stdout.contains(line), "{line}{}", text.stdout);
    }
}

#[test]
fn the_doctor_has_a_row_for_the_program_of_each_hook() {
    let doctor = |hooks: &str, code: i32| {
        let cli = plain("- text: done\n", &format!("hooks: {hooks}\n"));
        let cli = cli.file("hook.sh", "#!/bin/sh\n");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(cli.cwd().join("hook.sh"), mode).unwrap();
        let done = cli
            .args(["doctor", "task.yaml", "--output-format", "json"])
            .expect_code(code)
            .run();
        let hook = done.cwd().join("hook.sh").display().to_string();
        let rows = rows(&serde_json::from_str(&done.stdout).unwrap());
        let told = rows.into_iter().map(|(subject, status, found)| {
            json!([
                subject.replace(&hook, "HOOK"),
                status,
                found.replace(&hook, "HOOK")
            ])
        });
        Value::from(told.collect::<Vec<_>>())
    };
    let both = "{on_final: [{command: [./hook.sh]}, {command: [gone-hook, x]}], before_tool: [{command: [./hook.sh]}]}";
    assert_eq!(
        doctor(both, 0),
        json!([
            ["hook HOOK", "ok", "HOOK"],
            ["hook gone-hook", "warning", "not found in PATH"],
        ])
    );
    let guard = "{on_final: [{command: [gone-hook]}], before_tool: [{command: [gone-hook]}]}";
    assert_eq!(
        doctor(guard, 78),
        json!([["hook gone-hook", "error", "not found in PATH"]])
    );
}
