//! Runs of tasks with hooks: programs that are told, that block, that fail.

#![expect(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::cli_scene::{agree, bash, scripted, truthful};
use crate::support::cli::Cli;
use crate::support::running::Running;

/// Writes an executable script below the working directory.
fn script(cli: Cli, name: &str, lines: &str) -> Cli {
    let cli = cli.file(name, format!("#!/bin/bash\n{lines}\n"));
    let path = cli.cwd().join(name);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    cli
}

fn events(log: &str, name: &str) -> Vec<Value> {
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let named = lines.filter(|line| line["event"] == name);
    named.map(|mut line| line["data"].take()).collect()
}

const BYPASS: &str = "permissions: {mode: bypass}\n";

#[test]
fn a_policy_script_blocks_a_command_and_the_model_goes_on() {
    let replies = format!(
        "{}{}- text: Then not.\n",
        bash("touch good"),
        bash("rm -rf bad")
    );
    let hooks = format!(
        "{BYPASS}hooks: {{before_tool: [{{match: bash, command: [./guards/policy.sh], timeout: 10s}}]}}\n"
    );
    let policy = "grep -q 'rm -rf' && { echo 'no removals here' >&2; exit 2; }; exit 0";
    let cli = script(scripted(&replies, &hooks), "guards/policy.sh", policy);
    let done = cli.arg("--allow-bypass").run();
    let result = truthful(&done);
    assert_eq!(result["finalText"], "Then not.");
    assert!(done.cwd().join("good").exists());
    let log = done.artifact("events.jsonl");
    let responses = events(&log, "tool:permission:response");
    assert_eq!(responses[0]["selected"], "allow");
    assert_eq!(
        (&responses[1]["by"], &responses[1]["reason"]),
        (
            &json!("hook"),
            &json!("Blocked by a hook: no removals here")
        )
    );
    assert_eq!(result["denials"].as_array().unwrap().len(), 1);
}

#[test]
fn a_script_that_fails_is_in_the_log_and_blocks() {
    let hooks = format!("{BYPASS}hooks: {{before_tool: [{{command: [./policy.sh]}}]}}\n");
    let replies = format!("{}- text: done\n", bash("touch bad"));
    let cli = script(
        scripted(&replies, &hooks),
        "policy.sh",
        "echo oh no >&2; exit 1",
    );
    let done = cli.arg("--allow-bypass").run();
    truthful(&done);
    assert!(!done.cwd().join("bad").exists());
    let errors = events(&done.artifact("events.jsonl"), "hook:error");
    assert_eq!(
        errors,
        [json!({"hook": "before_tool", "name": "./policy.sh", "error": "exit status 1: oh no"})]
    );
}

#[test]
fn hooks_see_what_commands_see_and_no_secret() {
    let more = "secrets: [{name: TRACKER, from_env: TRACKER}]\n\
                env: {set: {COLOUR: blue}}\n\
                hooks: {on_final: [{command: [./told.sh]}]}\n";
    let cli = script(
        scripted("- text: done\n", more),
        "told.sh",
        "env > env.txt; cat > told.json",
    );
    let done = cli
        .env("TRACKER", "tracker-secret-value")
        .env("ANTHROPIC_API_KEY", "sk-provider-0123456789")
        .env("HOME", "/nowhere")
        .run();
    truthful(&done);
    let env = std::fs::read_to_string(done.cwd().join("env.txt")).unwrap();
    assert!(
        !env.contains("tracker-secret") && !env.contains("sk-provider"),
        "{env}"
    );
    // The home directory of hooks is their own, which is gone by now.
    let home = env.lines().find_map(|line| line.strip_prefix("HOME="));
    assert!(env.contains("COLOUR=blue\n"), "{env}");
    assert!(
        home.is_some_and(|home| home.ends_with("/home") && !home.ends_with("/sandbox/home")),
        "{env}"
    );
    let told = std::fs::read_to_string(done.cwd().join("told.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(
        (&told["event"], &told["final_text"], &told["status"]),
        (&json!("on_final"), &json!("done"), &json!("ok"))
    );
    assert_eq!(told["cwd"], json!(done.cwd()));
}

#[test]
fn a_guard_is_out_of_the_models_reach() {
    let write = json!({"path": "policy.sh", "content": "exit 0"});
    let replies = format!("- calls: [{{name: write, arguments: {write}}}]\n- text: done\n");
    let more = "permissions: {mode: accept_edits}\n\
                hooks: {before_tool: [{match: bash, command: [./policy.sh]}]}\n";
    let done = script(scripted(&replies, more), "policy.sh", "exit 2").run();
    let result = truthful(&done);
    assert_eq!(result["denials"].as_array().unwrap().len(), 1, "{result}");
    let kept = std::fs::read_to_string(done.cwd().join("policy.sh")).unwrap();
    assert_eq!(kept, "#!/bin/bash\nexit 2\n");
}

#[test]
fn a_prompt_that_a_script_refuses_is_denied() {
    let more = "hooks: {input: [{command: [./gate.sh]}]}\n";
    let cli = script(
        scripted("[]\n", more),
        "gate.sh",
        "echo not this >&2; exit 2",
    );
    let result = truthful(&cli.expect_code(3).run());
    assert_eq!(result["reason"], "denied");
    assert_eq!(
        result["error"]["message"],
        "a hook refused the input: not this"
    );
}

#[test]
fn a_signal_ends_a_hook_with_its_children() {
    let more = "hooks: {on_turn_start: [{command: [./slow.sh]}], on_final: [{command: [./slow.sh]}]}\n\
         sandbox: {tier: landlock}\n";
    let cli = script(
        scripted("- text: done\n", more),
        "slow.sh",
        "trap '' TERM; sleep 300 & echo $! >> children; wait; wait",
    );
    let running = Running::start(cli.command(), &cli.cwd().join("out"));
    let children = cli.cwd().join("children");
    running.wait_until("the hook", || children.exists());
    let end = running.end_by(Signal::TERM);
    assert_eq!(end.code, Some(143), "{}", end.stderr);
    assert!(end.took < Duration::from_secs(5), "{:?}", end.took);
    agree(143, &end.log(), &end.result());
    // One hook was interrupted, the other was told of it.
    let children = std::fs::read_to_string(children).unwrap();
    assert_eq!(children.lines().count(), 2, "{children}");
    for child in children.lines() {
        assert!(!std::path::Path::new(&format!("/proc/{child}")).exists());
    }
    assert_eq!(events(&end.log(), "hook:error"), [] as [Value; 0]);
}

#[test]
fn a_hook_that_hangs_ends_with_its_time() {
    let more = "hooks: {on_turn_start: [{command: [./slow.sh], timeout: 300ms}]}\n\
                sandbox: {tier: landlock}\n";
    let cli = script(
        scripted("- text: done\n", more),
        "slow.sh",
        "sleep 300 & echo $! > child; wait",
    );
    let done = cli.run();
    truthful(&done);
    let errors = events(&done.artifact("events.jsonl"), "hook:error");
    assert_eq!(errors[0]["error"], "no answer within 0.3 s");
    let child = std::fs::read_to_string(done.cwd().join("child")).unwrap();
    assert!(!std::path::Path::new(&format!("/proc/{}", child.trim())).exists());
}
