//! The sandbox of a whole run: chosen, told, refused.

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};

/// Both tiers, as a task names them.
const TIERS: [&str; 2] = ["namespaces", "landlock"];

/// A task whose model runs `commands`, with `sandbox` as its section. They are
/// in files of their own, into which policy does not see.
fn task(commands: &[&str], sandbox: &str) -> Cli {
    let task = format!(
        "version: 1\nprompt: go\nsettings: {{model: scripted/s.yaml}}\n\
         permissions: {{mode: bypass}}\nsandbox: {sandbox}\n"
    );
    let mut cli = Cli::new().file("task.yaml", task);
    let mut script: Vec<Value> = Vec::new();
    for (number, command) in commands.iter().enumerate() {
        let file = format!("step{number}.sh");
        let arguments = json!({ "command": format!("bash {file}") });
        script.push(json!({ "calls": [{ "name": "bash", "arguments": arguments }] }));
        cli = cli.file(&file, command);
    }
    script.push(json!({ "text": "done" }));
    cli.file("s.yaml", Value::from(script).to_string()).args([
        "run",
        "task.yaml",
        "--allow-bypass",
        "--output-format",
        "json",
    ])
}

/// What the commands of a run printed.
fn said(done: &Output) -> String {
    let events = done.events();
    let ends = events.iter().filter(|event| {
        event["event"]
            .as_str()
            .is_some_and(|name| name.starts_with("tool:execution:"))
    });
    ends.map(|event| format!("{}\n", event["data"])).collect()
}

#[test]
fn the_strongest_tier_is_taken_and_told() {
    let done = task(&["echo $HOME"], "{}").run();
    let result = done.result();
    assert_eq!(result["sandbox"]["tier"], "namespaces", "{result:#}");
    assert_eq!(result["sandbox"]["network"], "off");
    let events = done.events();
    let ready = events
        .iter()
        .find(|event| event["event"] == "session:ready")
        .unwrap();
    assert_eq!(ready["data"]["sandbox"], result["sandbox"]);
    assert_eq!(result["warnings"], json!([]), "{result:#}");
}

#[test]
fn a_task_names_the_tier() {
    for tier in TIERS {
        let done = task(&["true"], &format!("{{mode: require, tier: {tier}}}")).run();
        assert_eq!(done.result()["sandbox"]["tier"], tier);
    }
}

#[test]
fn without_a_command_to_run_nothing_is_tried() {
    let done = task(&[], "{}")
        .args(["--permission-mode", "read_only"])
        .run();
    assert_eq!(done.result()["sandbox"], Value::Null);
}

#[test]
fn it_can_be_switched_off() {
    let done = task(&["echo $HOME"], "{}").args(["--sandbox", "off"]).run();
    assert_eq!(done.result()["sandbox"]["tier"], "none");
    assert!(!said(&done).contains("/sandbox/home"), "{}", said(&done));
}

#[test]
fn the_records_and_the_task_cannot_be_written() {
    for tier in TIERS {
        let command = "echo x >> task.yaml; rm -f task.yaml; for f in .agent/runs/*/*.jsonl; do : > $f; rm -f $f; done; \
                       mv .agent gone; echo x > .agent/runs/new; ls .agent/runs | wc -l";
        let done = task(&[command], &format!("{{tier: {tier}}}")).run();
        let task = std::fs::read_to_string(done.cwd().join("task.yaml")).unwrap();
        assert!(
            task.ends_with(&format!("{{tier: {tier}}}\n")),
            "{tier}: {task}"
        );
        if tier == "namespaces" {
            assert!(done.events().len() > 5);
            assert!(done.cwd().join(".agent/runs").is_dir());
            assert!(!done.cwd().join(".agent/runs/new").exists());
        }
    }
}

#[test]
fn repositories_of_the_workspace_cannot_be_written() {
    for tier in TIERS {
        let command = "echo x > .git/hooks/pre-commit; echo x >> .git/config; rm -rf .git/HEAD; \
                       mv .git gone; mkdir -p .git/hooks; echo x > lib/.git/hooks/post-checkout; \
                       mv lib lib2; mkdir -p lib/.git/hooks; mkdir -p new/.git/hooks; git init -q fresh; echo end";
        let cli = task(&[command], &format!("{{tier: {tier}}}"))
            .file(".git/HEAD", "ref: refs/heads/main\n")
            .file(".git/config", "[core]\n")
            .file(".git/objects/ab/c", "object")
            .file(".git/refs/heads/main", "0\n")
            .file("lib/.git/HEAD", "ref: refs/heads/lib\n")
            .file("lib/.git/config", "[core]\n\tbare = false\n");
        std::fs::create_dir_all(cli.cwd().join(".git/hooks")).unwrap();
        std::fs::create_dir_all(cli.cwd().join("lib/.git/hooks")).unwrap();
        let done = cli.run();
        let read = |name: &str| std::fs::read_to_string(done.cwd().join(name)).unwrap_or_default();
        let at = format!("{tier}: {}", said(&done));
        assert_eq!(read(".git/HEAD"), "ref: refs/heads/main\n", "{at}");
        assert_eq!(read(".git/config"), "[core]\n", "{at}");
        assert_eq!(read("lib/.git/HEAD"), "ref: refs/heads/lib\n", "{at}");
        assert_eq!(read("lib/.git/config"), "[core]\n\tbare = false\n", "{at}");
        for hook in [".git/hooks/pre-commit", "lib/.git/hooks/post-checkout"] {
            assert!(!done.cwd().join(hook).exists(), "{hook} {at}");
        }
        if tier == "landlock" {
            assert!(said(&done).contains(".git/HEAD is protected"), "{at}");
        }
    }
}

#[test]
fn a_repository_that_is_not_there_is_not_made() {
    for tier in TIERS {
        let done = task(
            &["mkdir -p .git/hooks && echo x > .git/hooks/x; echo end"],
            &format!("{{tier: {tier}}}"),
        )
        .run();
        assert!(!done.cwd().join(".git").exists(), "{tier}");
        assert!(
            said(&done).contains(".git is protected"),
            "{tier}: {}",
            said(&done)
        );
    }
}

#[test]
fn git_can_be_made_writable() {
    for tier in TIERS {
        let done = task(
            &["git init -q . && git -c user.name=a -c user.email=b@c commit -q --allow-empty -m one && git log --format=%s"],
            &format!("{{tier: {tier}, git: writable}}"),
        )
        .run();
        assert!(said(&done).contains("one"), "{tier}: {}", said(&done));
        assert!(done.cwd().join(".git/HEAD").exists());
    }
}

#[test]
fn wrong_sections_are_told_with_their_place() {
    for (section, place, message) in [
        ("{network: [a/b]}", "5:", "a host has no path"),
        (
            "{mode: maybe}",
            "5:",
            "`maybe` is no value of `sandbox.mode`",
        ),
        ("{write: [/]}", "5:", "must not open the whole machine"),
        ("{limits: {memory: lots}}", "5:", "sandbox.limits.memory"),
        ("{teir: auto}", "5:", "`teir` is no key of `sandbox`"),
    ] {
        let done = task(&[], section).expect_code(65).run();
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(message), "{section}: {said}");
        assert!(said.contains(place), "{section}: {said}");
    }
}
