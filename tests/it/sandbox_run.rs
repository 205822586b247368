//! The sandbox of a whole run: chosen, told, refused.

#![expect(
    clippy::disallowed_methods,
    reason = "the program is started by a shell"
)]

use serde_json::{Value, json};

use agent::sandbox::Tier;

use crate::sandbox_scene;
use crate::support::cli::{Cli, Output};

/// The tiers that work here, as a task names them.
pub(crate) fn tiers() -> Vec<&'static str> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let tiers = runtime.block_on(sandbox_scene::tiers());
    tiers.into_iter().map(Tier::name).collect()
}

/// A task whose model runs `commands`, with `sandbox` as its section. They are
/// in files of their own, into which policy does not see.
pub(crate) fn task(commands: &[&str], sandbox: &str) -> Cli {
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
pub(crate) fn said(done: &Output) -> String {
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
    assert_eq!(result["sandbox"]["tier"], tiers()[0], "{result:#}");
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
    for tier in tiers() {
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
    for tier in tiers() {
        let command = "echo x >> task.yaml; rm -f task.yaml; echo x > .agent/runs/new/x";
        let done = task(&[command], &format!("{{tier: {tier}}}")).run();
        let task = std::fs::read_to_string(done.cwd().join("task.yaml")).unwrap();
        let end = format!("{{tier: {tier}}}\n");
        assert!(task.ends_with(&end), "{tier}: {task}");
        assert!(!done.cwd().join(".agent/runs/new").exists());
    }
}

#[test]
fn a_command_that_changes_the_records_changes_nothing_or_fails_the_run() {
    for command in [
        "for f in .agent/runs/*/*.jsonl; do sed -i s/session/S3SSION/ $f; done; cat .agent/runs/*/events.jsonl | grep -c S3SSION",
        "printf X | dd of=$(echo .agent/runs/*/events.jsonl) conv=notrunc bs=1 seek=20",
        "ln -s /tmp/agent-escape $(echo .agent/runs/*/)change.patch",
        "mkdir $(echo .agent/runs/*/)jobs; echo x > $(echo .agent/runs/*/)jobs/y",
        "echo '{\"event\":\"S3SSION\"}' >> $(echo .agent/runs/*/events.jsonl)",
        "for f in .agent/runs/*/*.jsonl; do echo >> $f; done",
        "echo x >> $(echo .agent/runs/*/)summary.md",
        "d=$(echo .agent/runs/*/)tool-output; mkdir -p $d; echo x > $d/added.txt",
        "seq 100000; until [ -s .agent/runs/*/tool-output/*.txt ]; do sleep 0.02; done; printf X | dd conv=notrunc of=$(echo .agent/runs/*/tool-output/*.txt); seq 100000",
        "rm .agent/runs/*/run.json",
    ] {
        for tier in tiers() {
            let cli = task(&[command], &format!("{{tier: {tier}}}"));
            if tier == "namespaces" {
                let done = cli.run();
                assert!(
                    !done.artifact("events.jsonl").contains("S3SSION\""),
                    "{command}"
                );
                continue;
            }
            let done = cli.expect_code(74).run();
            assert!(!std::path::Path::new("/tmp/agent-escape").exists());
            let said: Value = serde_json::from_str(&done.stdout).unwrap();
            assert!(
                matches!(
                    said["error"]["code"].as_str(),
                    Some("records_changed" | "io")
                ),
                "{command}: {said:#}"
            );
        }
    }
}

/// What a command puts in the place of the run's directory is not written.
#[test]
fn a_run_directory_that_was_moved_is_put_back_and_fails_the_run() {
    for command in [
        "mv .agent/runs/* moved; ln -s $PWD/elsewhere .agent/runs/$(basename $(cat name))",
        "mv .agent/runs/* moved; cp -r moved .agent/runs/$(cat name)",
        "mv .agent/runs/* moved",
        "mv .agent/runs moved; mkdir -p elsewhere/$(cat name); ln -s $PWD/elsewhere .agent/runs",
        "mv .agent moved; cp -r moved .agent",
    ] {
        let command = format!("basename .agent/runs/* > name; mkdir -p elsewhere; {command}");
        let done = task(&[&command], "{tier: landlock}").expect_code(74).run();
        let said: Value = serde_json::from_str(&done.stdout).unwrap();
        assert_eq!(said["error"]["code"], "records_changed", "{command}");
        let name = std::fs::read_to_string(done.cwd().join("name")).unwrap();
        let run = done.cwd().join(".agent/runs").join(name.trim());
        assert!(!run.is_symlink(), "{command}");
        assert!(!done.cwd().join(".agent/runs").is_symlink(), "{command}");
        let result = std::fs::read_to_string(run.join("result.json")).unwrap();
        let result: Value = serde_json::from_str(&result).unwrap();
        assert_eq!(result["exitCode"], 74, "{command}: {result:#}");
        assert_eq!(result["error"]["code"], "records_changed", "{command}");
        let elsewhere = done.cwd().join("elsewhere");
        for found in [
            elsewhere.join("result.json"),
            elsewhere.join(name.trim()).join("result.json"),
        ] {
            assert!(!found.exists(), "{command}: {}", found.display());
        }
    }
}

/// What the runner itself writes while a command runs is not taken for a command's.
#[test]
fn long_outputs_and_events_are_no_breach() {
    for tier in tiers() {
        let done = task(
            &["seq 200000", "seq 300000", "echo end"],
            &format!("{{tier: {tier}}}"),
        )
        .run();
        assert_eq!(done.result()["exitCode"], 0, "{tier}");
    }
}

/// `git status` would write the index to remember what it saw.
#[test]
fn a_status_leaves_nothing_to_undo() {
    for tier in tiers() {
        let command = "touch -d 2001-01-01 a; git status --short; echo end";
        let cli = task(&[command], &format!("{{tier: {tier}}}")).file("a", "a\n");
        for args in [
            &["init", "-q"][..],
            &["add", "-A"],
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "commit",
                "-qm",
                "one",
            ],
        ] {
            let mut git = std::process::Command::new("git");
            git.args(args).current_dir(cli.cwd());
            assert!(git.status().unwrap().success());
        }
        let index = std::fs::read(cli.cwd().join(".git/index")).unwrap();
        let done = cli.run();
        let told = said(&done);
        assert!(told.contains("end"), "{tier}: {told}");
        assert!(!told.contains("is protected"), "{tier}: {told}");
        let now = std::fs::read(done.cwd().join(".git/index")).unwrap();
        assert!(index == now, "{tier}");
    }
}

#[test]
fn a_refusal_is_explained() {
    for tier in tiers() {
        let done = task(
            &["touch /usr/agent-escape", "cat /root/.ssh/id_rsa", "bash -c 'exec 3<>/dev/tcp/1.1.1.1/53'; curl http://example.com || getent hosts example.com; echo Could not resolve host >&2; exit 6"],
            &format!("{{tier: {tier}}}"),
        )
        .run();
        let said = said(&done);
        assert!(
            said.contains("commands may read /usr/agent-escape, and not write it"),
            "{tier}: {said}"
        );
        assert!(said.contains("`sandbox.network` is off"), "{tier}: {said}");
    }
}

#[test]
fn what_a_rule_keeps_from_edits_is_kept_from_commands() {
    for tier in tiers() {
        let command = "echo x > .github/workflows/ci.yml; mv .github g; mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; mkdir -p infra/x";
        let done = task(&[command], &format!("{{tier: {tier}}}"))
            .file(".github/workflows/ci.yml", "ours\n")
            .args(["--deny", "Edit(.github/**)", "--deny", "Edit(./infra/**)"])
            .run();
        let ci = std::fs::read_to_string(done.cwd().join(".github/workflows/ci.yml")).unwrap();
        assert_eq!(ci, "ours\n", "{tier}: {}", said(&done));
        assert!(!done.cwd().join("infra").exists(), "{tier}");
    }
}

#[test]
fn mode_workspace_rests_on_the_sandbox() {
    let mode = ["--permission-mode", "workspace"];
    for tier in tiers() {
        let done = task(&["echo ran"], &format!("{{tier: {tier}}}"))
            .args(mode)
            .run();
        assert!(said(&done).contains("ran"), "{}", said(&done));
    }
    let done = task(&["echo ran"], "{mode: off}").args(mode).run();
    assert_eq!(done.result()["denials"].as_array().unwrap().len(), 1);
}

#[test]
fn neither_core_dumps_nor_descriptors_reach_a_command() {
    let cli = task(
        &["ulimit -c; ls /proc/self/fd | sort -n | tr '\\n' ' '; readlink /proc/$PPID/fd/9"],
        "{tier: landlock}",
    );
    let inner = cli.command();
    let mut outer = std::process::Command::new("bash");
    outer
        .args(["-c", "exec 7</etc/passwd 9</etc/passwd; \"$@\"", "bash"])
        .arg(inner.get_program())
        .args(inner.get_args())
        .current_dir(cli.cwd())
        .env_clear();
    for (name, value) in inner.get_envs() {
        outer.env(name, value.unwrap());
    }
    assert!(outer.output().unwrap().status.success());
    let runs = std::fs::read_dir(cli.cwd().join(".agent/runs")).unwrap();
    let log = runs
        .flatten()
        .map(|entry| entry.path().join("events.jsonl"));
    let log: String = log
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .collect();
    assert!(log.contains("0\\n0 1 2 3"), "{log}");
}

#[test]
fn repositories_of_the_workspace_cannot_be_written() {
    for tier in tiers() {
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
        // Objects that were moved away are not kept, and that is no success.
        let code = if tier == "landlock" { 74 } else { 0 };
        let done = cli.expect_code(code).run();
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
    for tier in tiers() {
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

#[test]
fn a_hook_beside_the_task_runs_although_its_place_is_closed() {
    for tier in tiers() {
        let task = format!(
            "version: 1\nprompt: go\nsettings: {{model: scripted/s.yaml}}\nworkspace: {{path: repo}}\n\
             hooks: {{on_final: [{{command: [./hook.sh]}}]}}\nsandbox: {{tier: {tier}}}\n"
        );
        let cli = Cli::new()
            .file("task.yaml", task)
            .file("s.yaml", "- text: done\n")
            .file("repo/a", "a")
            .file(
                "hook.sh",
                "#!/bin/bash\ncat > told.json\ncat ../s.yaml > leak\n",
            )
            .args(["run", "task.yaml"]);
        let hook = cli.cwd().join("hook.sh");
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        let done = cli.run();
        let read = |name: &str| std::fs::read_to_string(done.cwd().join(name)).unwrap_or_default();
        assert!(read("repo/told.json").contains("on_final"), "{tier}");
        assert_eq!(read("repo/leak"), "", "{tier}");
    }
}
