//! The `hooks` of a task: what is accepted, where programs are, what is refused.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use agent::hook::{HookCommand, HookPoint, Matcher};
use serde_json::json;

use crate::task_case::Case;

/// A task with an executable `guards/policy.sh` beside it.
fn guarded(hooks: &str) -> Case {
    let case = Case::with(hooks)
        .file("guards/policy.sh", "#!/bin/sh\n")
        .file("plain.sh", "");
    let script = case.path().join("guards/policy.sh");
    std::fs::set_permissions(script, std::fs::Permissions::from_mode(0o755)).unwrap();
    case
}

#[test]
fn a_hook_becomes_what_runs() {
    let case = guarded(
        "hooks:\n  \
           before_tool:\n    \
             - {match: 'bash|mcp__*', command: [./guards/policy.sh, --strict], timeout: 10s}\n    \
             - {command: [jq, .]}\n  \
           on_final: [{command: [notify-send, done]}]",
    );
    let program = case.path().join("guards/policy.sh");
    let job = case.job();
    let notify = HookCommand {
        point: HookPoint::OnFinal,
        matcher: None,
        name: "notify-send done".to_owned(),
        program: "notify-send".into(),
        args: vec!["done".to_owned()],
        timeout: Duration::from_secs(60),
    };
    let guard = HookCommand {
        point: HookPoint::BeforeTool,
        matcher: Some(Matcher::parse("bash|mcp__*").unwrap()),
        name: "./guards/policy.sh --strict".to_owned(),
        program: program.clone(),
        args: vec!["--strict".to_owned()],
        timeout: Duration::from_secs(10),
    };
    let jq = HookCommand {
        point: HookPoint::BeforeTool,
        name: "jq .".to_owned(),
        program: "jq".into(),
        args: vec![".".to_owned()],
        ..notify.clone()
    };
    assert_eq!(job.hooks, [notify, guard, jq]);
    assert_eq!(
        job.resolved["hooks"],
        json!([
            {"event": "on_final", "match": null, "command": ["notify-send", "done"], "timeout": "1m"},
            {"event": "before_tool", "match": "bash|mcp__*", "command": [program, "--strict"], "timeout": "10s"},
            {"event": "before_tool", "match": null, "command": ["jq", "."], "timeout": "1m"},
        ])
    );
}

#[test]
fn every_point_that_a_program_can_serve_is_a_key() {
    let points = [
        "on_turn_start",
        "on_action",
        "on_observation",
        "on_final",
        "input",
        "before_agent_start",
        "context",
        "before_tool",
        "after_tool",
        "before_compact",
        "before_request",
    ];
    let hooks: Vec<_> = points
        .iter()
        .rev()
        .map(|point| format!("  {point}: [{{command: [x]}}]"))
        .collect();
    let job = Case::with(&format!("hooks:\n{}", hooks.join("\n"))).job();
    let names: Vec<_> = job.hooks.iter().map(|hook| hook.point.name()).collect();
    assert_eq!(names, points);
    assert_eq!(Case::with("").job().hooks, []);
}

#[test]
fn a_program_may_be_named_by_a_parameter_or_a_flag() {
    let case = guarded(
        "parameters: [{key: level, default: strict}]\n\
         hooks: {before_tool: [{command: [./guards/policy.sh, '--{{ level }}']}]}",
    );
    assert_eq!(case.job().hooks[0].args, ["--strict"]);
}

#[test]
fn what_cannot_work_is_refused() {
    let at = |hooks: &str, expected: &[&str]| {
        let case = guarded(hooks);
        let lines: Vec<String> = case
            .lines()
            .iter()
            .map(|line| line.replace(&case.path().display().to_string(), "DIR"))
            .collect();
        assert_eq!(lines, expected, "{hooks}");
    };
    let tools = "(the tools are bash, edit, find, grep, ls, read, write)";
    for (hooks, expected) in [
        (
            "before_tool: [{match: Bash, command: [x]}]",
            format!("task.yaml:3:31: bad_match: `Bash` matches no tool {tools}"),
        ),
        (
            "after_tool: [{match: 'edit|wirte', command: [x]}]",
            format!("task.yaml:3:30: bad_match: `wirte` matches no tool {tools}"),
        ),
        (
            "on_action: [{match: 'bash|', command: [x]}]",
            "task.yaml:3:29: bad_match: `bash|` names no tool between two `|`".to_owned(),
        ),
        (
            "on_final: [{command: []}]",
            "task.yaml:3:21: out_of_range: a hook's command is empty".to_owned(),
        ),
        (
            "on_final: [{command: ['']}]",
            "task.yaml:3:31: out_of_range: a hook's command is empty".to_owned(),
        ),
        (
            "on_final: [{command: [x], timeout: 11m}]",
            "task.yaml:3:44: out_of_range: a hook may take at most 10m, not 11m".to_owned(),
        ),
        (
            "on_final: [{command: [./none.sh]}]",
            "task.yaml:3:31: no_input: there is no file DIR/none.sh".to_owned(),
        ),
        (
            "on_final: [{command: [./plain.sh]}]",
            "task.yaml:3:31: not_executable: DIR/plain.sh is not executable (chmod +x ./plain.sh)"
                .to_owned(),
        ),
        (
            "on_final: [{match: bash, command: [x]}]",
            "task.yaml:3:21: unknown_key: `match` is no key of `hooks.on_final[0]` \
             (the keys are `command`, `timeout`)"
                .to_owned(),
        ),
        (
            "before_tool: [{match: bash}]",
            "task.yaml:3:23: missing_key: `hooks.before_tool[0].command` is missing".to_owned(),
        ),
        (
            "before_tools: [{command: [x]}]",
            "task.yaml:3:9: unknown_key: `before_tools` is no key of `hooks` \
             (did you mean `before_tool`?)"
                .to_owned(),
        ),
        (
            "on_final: [{command: ./x}]",
            "task.yaml:3:30: wrong_type: `hooks.on_final[0].command` must be a list, not a text"
                .to_owned(),
        ),
    ] {
        at(&format!("hooks: {{{hooks}}}"), &[&expected]);
    }
}
