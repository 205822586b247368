//! The commands that run no model: replay, check, permissions, schema,
//! completions.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use serde_json::Value;

use crate::cli_scene::{bash, plain, scripted};
use crate::support::cli::{Cli, Output};

const OK: &str = "- text: done\n";

fn replay(run: &Output, what: &str) -> Cli {
    Cli::at(run.cwd()).args(["replay", what, "--quiet"])
}

#[test]
fn a_replay_tells_the_same_with_the_same_status() {
    let replies = format!("{}{OK}", bash("touch x"));
    let runs = [
        scripted(OK, "").run(),
        scripted(&replies, "permissions: {fail_on_denied: true}\n")
            .expect_code(3)
            .run(),
        scripted(OK, "")
            .args(["--events", "/dev/full"])
            .expect_code(74)
            .run(),
    ];
    for run in &runs {
        let log = run.artifact("events.jsonl");
        for what in ["out", "out/events.jsonl"] {
            let told = replay(run, what)
                .args(["--output-format", "json"])
                .expect_code(run.code)
                .run();
            let told: Value = serde_json::from_str(&told.stdout).unwrap();
            assert_eq!(told, run.result());
            let text = replay(run, what).expect_code(run.code).run();
            assert_eq!(text.stdout, run.stdout);
            let lines = replay(run, what)
                .args(["--output-format", "jsonl"])
                .expect_code(run.code)
                .run();
            let values = |text: &str| -> Vec<Value> {
                text.lines()
                    .map(|line| serde_json::from_str(line).unwrap())
                    .collect()
            };
            assert_eq!(values(&lines.stdout), values(&log));
        }
    }
    let shown = Cli::at(runs[0].cwd()).args(["replay", "out"]).run();
    assert!(
        shown.stderr.contains("step 1/60 scripted/model"),
        "{}",
        shown.stderr
    );
}

#[test]
fn a_log_or_a_result_that_was_changed_is_not_believed() {
    let run = scripted(OK, "").run();
    let (log_file, result_file) = (
        run.run_dir().join("events.jsonl"),
        run.run_dir().join("result.json"),
    );
    let (log, result) = (run.artifact("events.jsonl"), run.artifact("result.json"));
    let last = log.lines().last().unwrap();
    let without_end = log.replace(&format!("{last}\n"), "");
    let table: [(&str, String, &str); 6] = [
        ("torn", log.trim_end().to_owned(), "torn"),
        ("half a line", log[..log.len() - 40].to_owned(), "torn"),
        ("no end", without_end.clone(), "without run:end"),
        (
            "other answer",
            format!("{without_end}{}\n", last.replace("\"done\"", "\"dome\"")),
            "finalText",
        ),
        ("empty", String::new(), "empty"),
        ("garbage", "x\n".to_owned(), "not an event"),
    ];
    for (what, text, expect) in table {
        std::fs::write(&log_file, text).unwrap();
        let done = replay(&run, "out").expect_code(65).run();
        assert!(done.stderr.contains(expect), "{what}: {}", done.stderr);
        assert_eq!(done.stdout, "", "{what}");
    }
    std::fs::write(&log_file, &log).unwrap();
    for text in [result.replace("\"done\"", "\"dome\""), "{".to_owned()] {
        std::fs::write(&result_file, text).unwrap();
        let done = replay(&run, "out").expect_code(65).run();
        assert!(done.stderr.contains("result.json"), "{}", done.stderr);
    }
    replay(&run, "nowhere").expect_code(66).run();
}

#[test]
fn check_shows_what_a_task_resolves_to_and_costs_at_worst() {
    let cli = plain(OK, "").args(["check", "task.yaml", "--model", "anthropic/claude-sonnet-5"]);
    let done = cli.args(["--max-cost-usd", "0.75"]).run();
    for expect in [
        "demo: ok",
        "anthropic/claude-sonnet-5",
        "60 turns",
        "worst case   $0.75",
    ] {
        assert!(done.stdout.contains(expect), "{expect}: {}", done.stdout);
    }
    let json = plain(OK, "").file("b.yaml", "version: 1\nprompt: x\n");
    let json = json
        .args([
            "check",
            "task.yaml",
            "b.yaml",
            "task.yaml",
            "--output-format",
            "json",
        ])
        .run();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["ok"], true);
    let names: Vec<_> = json["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["name"].clone())
        .collect();
    assert_eq!(names, ["demo", "b", "demo-2"]);
    let wrong = plain(OK, "bogus: 1\n").args(["check", "task.yaml", "--output-format", "json"]);
    let wrong: Value = serde_json::from_str(&wrong.expect_code(65).run().stdout).unwrap();
    assert_eq!(wrong["ok"], false);
    assert_eq!(wrong["problems"][0]["line"], 5);
    let model = plain(OK, "")
        .args(["check", "task.yaml", "--model", "nobody/nothing"])
        .expect_code(65)
        .run();
    assert!(model.stderr.contains("nobody"), "{}", model.stderr);
    plain(OK, "")
        .args(["check", "missing.yaml"])
        .expect_code(66)
        .run();
}

#[test]
fn permissions_are_explained_one_by_one() {
    let check = |args: &[&str]| Cli::new().args(["permissions", "check"]).args(args);
    let allowed = check(&["--tool", "read", "--input", r#"{"path":"a"}"#]).run();
    assert!(allowed.stdout.starts_with("allow\n"), "{}", allowed.stdout);
    let denied = check(&["--tool", "bash", "--input", r#"{"command":"ls"}"#])
        .expect_code(3)
        .run();
    assert!(denied.stdout.starts_with("deny\n"), "{}", denied.stdout);
    let rule = [
        "--tool",
        "bash",
        "--input",
        r#"{"command":"ls -l"}"#,
        "--allow",
        "Bash(ls:*)",
    ];
    check(&rule).run();
    let json = check(&rule)
        .args(["--output-format", "json", "--deny", "Bash"])
        .expect_code(3)
        .run();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["decision"], "deny");
    let wrong = [
        "{}",
        "[]",
        r#"["ls",null]"#,
        "null",
        "3",
        r#"{"command":3}"#,
        "not json",
    ];
    for input in wrong {
        for tool in ["read", "edit", "write"] {
            check(&["--tool", tool, "--input", input])
                .expect_code(2)
                .run();
        }
        let done = check(&["--tool", "bash", "--input", input])
            .expect_code(2)
            .run();
        assert!(done.stderr.starts_with("agent: "), "{}", done.stderr);
    }
    check(&["--task", "missing.yaml", "--tool", "ls", "--input", "{}"])
        .expect_code(66)
        .run();
    let task = plain(OK, "permissions: {deny: ['Read(secret/**)']}\n");
    let task = task.args([
        "permissions",
        "check",
        "--task",
        "task.yaml",
        "--tool",
        "read",
    ]);
    let task = task
        .args(["--input", r#"{"path":"secret/x"}"#])
        .expect_code(3)
        .run();
    assert!(
        task.stdout.contains("permissions.deny[0]"),
        "{}",
        task.stdout
    );
}

#[test]
fn a_line_is_explained_command_by_command() {
    let check = |args: &[&str]| {
        Cli::new()
            .args([
                "permissions",
                "check",
                "--tool",
                "Bash",
                "--allow",
                "Bash(git log:*)",
            ])
            .args(["--input", r#"{"command":"git log -3 | wc -l > out.txt"}"#])
            .args(args)
    };
    let text = check(&[]).expect_code(3).run().stdout;
    for expect in [
        "deny\n",
        "  allow running git log -3  (--allow[0] Bash(git log:*))\n",
        "  allow running wc -l  (no rule needed)\n",
        "  deny  writing out.txt  (no rule allows it)\n",
    ] {
        assert!(text.contains(expect), "{expect}: {text}");
    }
    let json = check(&[
        "--output-format",
        "json",
        "--ask",
        "Bash(wc:*)",
        "--mode",
        "accept_edits",
    ])
    .expect_code(3)
    .run();
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["decision"], "ask");
    assert_eq!(json["rule"], "--ask[0] Bash(wc:*)");
    let parts = json["understood"].as_array().unwrap();
    let told = |doing: &str| {
        let part = parts.iter().find(|part| part["doing"] == doing);
        part.map(|part| part["decision"].as_str().unwrap().to_owned())
    };
    assert_eq!(told("running git log -3").as_deref(), Some("allow"));
    assert_eq!(told("running wc -l").as_deref(), Some("ask"));
    assert_eq!(told("writing out.txt").as_deref(), Some("allow"));
}

#[test]
fn what_a_loop_does_again_is_explained_once() {
    let done = Cli::new()
        .args(["permissions", "check", "--tool", "Bash"])
        .args(["--allow", "Bash(wc:*)"])
        .args([
            "--input",
            r#"{"command":"for f in a b c; do wc -l x; done"}"#,
        ])
        .run();
    let told = done.stdout.matches("running wc -l x").count();
    assert_eq!(told, 1, "{}", done.stdout);
}

#[test]
fn what_was_understood_before_the_unclear_is_told_and_one_rule_is_enough() {
    let check = |command: &str, rule: &str| {
        let input = serde_json::json!({ "command": command }).to_string();
        Cli::new()
            .args(["permissions", "check", "--tool", "Bash"])
            .args(["--allow", "Bash(git log:*)", "--allow", rule])
            .args(["--input", &input])
    };
    let lines = [
        ("git log | sh", "Bash(git log | sh)"),
        ("git log > x; $it", "Bash(git log > x; $it)"),
        ("git log > x; wc y", "Bash(git log > x; wc y)"),
        ("git log > x", "Edit(x)"),
    ];
    for (line, rule) in lines {
        let text = check(line, "Bash(true)").expect_code(3).run().stdout;
        let expect = format!("would be allowed by {rule}\n");
        assert!(text.contains(&expect), "{line}: {text}");
        let understood = "  allow running git log  (--allow[0] Bash(git log:*))\n";
        assert!(text.contains(understood), "{line}: {text}");
        check(line, rule).run();
    }
}

#[test]
fn calls_of_other_tools_are_judged_by_what_they_touch() {
    for (tool, input, rule, expect) in [
        (
            "WebFetch",
            r#"{"url":"https://a.b/c","prompt":"x"}"#,
            "WebFetch(domain:a.b)",
            0,
        ),
        (
            "webfetch",
            r#"{"url":"https://c.d"}"#,
            "WebFetch(domain:a.b)",
            3,
        ),
        ("WebFetch", r#"{"url":"file:///etc/passwd"}"#, "WebFetch", 2),
        ("WebFetch", "{}", "WebFetch", 2),
        ("mcp__a__b", r#"{"x":1}"#, "mcp__a__*", 0),
        ("MCP__a__b", "{}", "mcp__c", 3),
        ("mcp__a", "{}", "mcp__a", 2),
        ("Task", r#"{"subagent_type":"x"}"#, "Task(x)", 0),
        ("task", r#"{"agent":"y"}"#, "Task(x)", 3),
        ("Skill", r#"{"name":"x"}"#, "Skill(x)", 0),
        ("Skill", "{}", "Skill", 2),
        (
            "Write",
            r#"{"file_path":"a.txt","content":"x"}"#,
            "Edit(a.txt)",
            0,
        ),
        ("Edit", r#"{"file_path":"b.txt"}"#, "Edit(a.txt)", 3),
        ("GREP", r#"{"pattern":"x"}"#, "Grep", 0),
    ] {
        Cli::new()
            .args(["permissions", "check", "--tool", tool, "--input", input])
            .args(["--allow", rule])
            .expect_code(expect)
            .run();
    }
}

#[test]
fn rules_with_wrong_examples_are_refused_with_their_place() {
    let task = |list: &str, rule: &str| {
        let permissions = format!("permissions:\n  {list}:\n    - Read\n    - {rule}\n");
        plain(OK, &permissions).args(["check", "task.yaml"])
    };
    for (list, rule, says) in [
        (
            "allow",
            "{rule: 'Bash(git log:*)', match: [git log -3, git push]}",
            "`git push` should match",
        ),
        (
            "ask",
            "{rule: 'Bash(git log:*)', not_match: [git log -3]}",
            "`git log -3` should not match",
        ),
        (
            "deny",
            "{rule: 'WebFetch(domain:a.b)', not_match: [c.a.b]}",
            "`c.a.b` should not match",
        ),
        ("deny", "Bash(ls", "has to end with `)`"),
    ] {
        let told = task(list, rule).expect_code(65).run().stderr;
        assert!(told.contains(says), "{told}");
        assert!(told.contains(&format!("permissions.{list}[1]")), "{told}");
        assert!(told.contains("task.yaml:"), "{told}");
    }
    for (list, rule) in [
        (
            "allow",
            "{rule: 'Bash(git log:*)', match: [git log -3], not_match: [git log --output=x]}",
        ),
        (
            "deny",
            "{rule: 'Bash(git push:*)', match: [git -C x push], not_match: [git log]}",
        ),
    ] {
        task(list, rule).run();
    }
}

#[test]
fn a_stream_of_questions_is_answered_line_by_line_whatever_is_in_it() {
    let long = format!(
        "{{\"id\":8,\"tool\":\"ls\",\"input\":\"{}\"}}\n",
        "x".repeat(1_100_000)
    );
    let mut input = br#"{"id":1,"tool":"read","input":{"path":"a"}}
{"id":2,"tool":"bash","input":{}}
not json
{"id":"four"}

{"id":5,"tool":"edit","input":null}
{"id":6,"tool":"bogus","input":{}}
{"id":7,"tool":"bash","input":{"command":"ls"},"policy":{"allow":["Bash(ls)"],"deny":[]}}
"#
    .to_vec();
    input.extend_from_slice(long.as_bytes());
    input.extend_from_slice(b"\xff\xfe\n");
    input.extend_from_slice(
        br#"{"id":9,"tool":"bash","input":{"command":"ls"},"policy":{"allow":["((("]}}
{"id":10,"tool":"bash","input":{"command":"ls"},"policy":{"ask":["Bash(ls:*)"]},"note":"mine"}
{"id":11,"tool":"bash","input":{"command":"ls"},"policy":{"alow":["Bash"]}}"#,
    );
    let done = Cli::new()
        .args(["permissions", "check", "--jsonl"])
        .stdin(input)
        .run();
    let answers: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let told: Vec<(String, &str)> = answers
        .iter()
        .map(|answer| {
            (
                answer["id"].to_string(),
                answer["decision"].as_str().unwrap(),
            )
        })
        .collect();
    let expect = [
        ("1", "allow"),
        ("2", "deny"),
        ("null", "deny"),
        ("\"four\"", "deny"),
        ("5", "deny"),
        ("6", "deny"),
        ("7", "allow"),
        ("null", "deny"),
        ("null", "deny"),
        ("9", "deny"),
        ("10", "ask"),
        ("11", "deny"),
    ];
    assert_eq!(told, expect.map(|(id, word)| (id.to_owned(), word)));
    assert!(
        answers
            .iter()
            .all(|answer| !answer["reason"].as_str().unwrap().is_empty())
    );
}

#[test]
fn schemas_and_completions_are_printed() {
    for document in ["task", "events", "result"] {
        let text = Cli::new().args(["schema", document]).run().stdout;
        assert!(serde_json::from_str::<Value>(&text).unwrap().is_object());
    }
    for (shell, expect) in [
        ("bash", "complete -F"),
        ("zsh", "#compdef agent"),
        ("fish", "complete -c agent"),
    ] {
        let text = Cli::new().args(["completions", shell]).run().stdout;
        assert!(
            text.contains(expect) && text.contains("exit-codes"),
            "{shell}"
        );
    }
}
