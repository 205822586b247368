//! A repository that sets a trap in every place where tools look for programs:
//! nothing of it runs, and nothing of it becomes a rule, a hook or a variable.

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::poison::Poison;

/// What the model does: something with every tool, and an answer.
fn replies() -> String {
    let calls = [
        ("read", json!({"path": "notes.txt"})),
        ("read", json!({"path": "src"})),
        ("grep", json!({"pattern": "needle"})),
        ("find", json!({"pattern": "*.rs"})),
        ("ls", json!({"path": "bare"})),
        ("read", json!({"path": "src/lib.rs"})),
        (
            "edit",
            json!({"path": "src/lib.rs", "edits": [{"oldText": "harmless", "newText": "changed"}]}),
        ),
        ("write", json!({"path": "docs/new.md", "content": "new\n"})),
        ("write", json!({"path": "new.txt", "content": "new\n"})),
        (
            "bash",
            json!({"command": "true; ls; cat notes.txt; ps >/dev/null; printenv POISONED BASH_ENV LD_PRELOAD"}),
        ),
    ];
    let calls = calls
        .iter()
        .map(|(name, arguments)| format!("- calls: [{{name: {name}, arguments: {arguments}}}]\n"));
    calls.chain(["- text: done\n".to_owned()]).collect()
}

/// Started in the repository by somebody with a careless search path.
fn start(poison: &Poison) -> Cli {
    Cli::at(poison.workspace.path()).env("PATH", Poison::careless_path())
}

/// A task and its model, outside of the repository.
fn task(poison: &Poison, workspace: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let repository = poison.workspace.path().display();
    let task = format!(
        "version: 1\nname: demo\nprompt: Look at @README.md and @src\n\
         settings: {{model: scripted/model.yaml}}\n\
         workspace: {{path: {repository}, require_clean: true, {workspace}}}\n\
         load_repo_config: [agents_md, skills, templates]\n\
         permissions: {{mode: accept_edits, allow: [Bash]}}\n"
    );
    std::fs::write(dir.path().join("task.yaml"), task).unwrap();
    std::fs::write(dir.path().join("model.yaml"), replies()).unwrap();
    dir
}

/// Nothing ran, and nothing is in force that the repository asked for.
fn harmless(poison: &Poison, output: &Output) {
    assert_eq!(poison.sung(), Vec::<String>::new(), "{}", output.stderr);
    let events = output.events();
    for event in &events {
        let name = event["event"].as_str().unwrap();
        assert!(!name.starts_with("hook:"), "{event}");
        if let Some(decision) = name.eq("tool:permission:response").then(|| &event["data"]) {
            let rule = decision["rule"]
                .as_str()
                .unwrap_or("permissions.allow[0] Bash");
            assert_eq!(rule, "permissions.allow[0] Bash", "{event}");
        }
    }
    let log = Value::from(events).to_string();
    for word in ["root:x:0:0", "POISONED=", "127.0.0.1:9"] {
        assert!(!log.contains(word), "{word}");
    }
}

fn changed(output: &Output) -> Vec<String> {
    let events = output.events();
    let diff = events
        .iter()
        .find(|event| event["event"] == "diff")
        .unwrap();
    let files = diff["data"]["files"].as_array().unwrap();
    let names = files
        .iter()
        .map(|file| file["path"].as_str().unwrap().to_owned());
    names.collect()
}

#[test]
fn the_traps_catch_whoever_is_careless() {
    let poison = Poison::new();
    let git = |args: &[&str]| poison.run_unhardened("git", args);
    // It ends at once, which ends some commands in the middle.
    git(&["add", "some.data"]);
    git(&["-c", "filter.p.process=", "rm", "-qf", "some.data"]);
    git(&["status"]);
    git(&["st"]);
    // The monitor tells that nothing changed, so it is off for what shows changes.
    poison.workspace.write("src/lib.rs", "other\n");
    poison.workspace.write("README.md", "other\n");
    let changes = ["-c", "core.fsmonitor=false", "diff"];
    git(&changes);
    git(&[&changes[..], &["--no-ext-diff", "src"]].concat());
    git(&["add", "-A"]);
    git(&["commit", "--allow-empty", "--no-gpg-sign"]);
    git(&["commit", "--allow-empty", "-mx"]);
    git(&["fetch", "ssh://nobody@localhost/x"]);
    git(&["-C", "bare", "status"]);
    poison.run_unhardened("sh", &["-c", "PATH=.:$PATH; ls; git status"]);
    poison.run_unhardened("sh", &["-c", "PATH=node_modules/.bin:$PATH; ps"]);
    let sung = poison.sung();
    for name in [
        "core.editor",
        "core.sshCommand",
        "diff.textconv",
        "filter.a=b.clean",
        "filter.clean",
        "filter.process",
        "git",
        "hooks/pre-commit",
        "included.fsmonitor",
        "ls",
        "node_modules/.bin/ps",
        "script",
    ] {
        assert!(sung.iter().any(|sung| sung == name), "{name}: {sung:?}");
    }
}

#[test]
fn a_run_runs_nothing_of_the_repository() {
    for isolation in ["none", "copy"] {
        let poison = Poison::new().endless();
        let task = task(&poison, &format!("isolation: {isolation}"));
        let output = start(&poison)
            .args(["run", "--quiet"])
            .arg(task.path().join("task.yaml"))
            .run();
        harmless(&poison, &output);
        assert_eq!(changed(&output), ["docs/new.md", "new.txt", "src/lib.rs"]);
    }
}

#[test]
fn a_prompt_and_all_other_commands_run_nothing_of_it() {
    let poison = Poison::new().endless();
    let outside = task(&poison, "isolation: none");
    let model = outside.path().join("model.yaml");
    let output = start(&poison)
        .args([
            "-p",
            "Look at @README.md",
            "--permission-mode",
            "accept_edits",
        ])
        .args(["--allow", "Bash", "--quiet", "--model"])
        .arg(format!("scripted/{}", model.display()))
        .run();
    assert_eq!(poison.sung(), Vec::<String>::new());
    assert_eq!(output.stdout.trim(), "done");
    let session = output.run_dir().join("session.jsonl");
    let run_dir = output.run_dir();
    let page = outside.path().join("page.html");
    let task = outside.path().join("task.yaml");
    for args in [
        vec!["check".as_ref(), task.as_os_str()],
        vec!["sessions".as_ref(), "list".as_ref()],
        vec!["sessions".as_ref(), "show".as_ref(), session.as_os_str()],
        vec!["sessions".as_ref(), "tree".as_ref(), session.as_os_str()],
        vec![
            "sessions".as_ref(),
            "export".as_ref(),
            session.as_os_str(),
            "-o".as_ref(),
            page.as_os_str(),
        ],
        vec!["replay".as_ref(), run_dir.as_os_str()],
        vec!["models".as_ref()],
        [
            "permissions",
            "check",
            "--allow=Bash(git status:*)",
            "--tool=bash",
        ]
        .iter()
        .chain(&[r#"--input={"command":"git status"}"#])
        .map(AsRef::as_ref)
        .collect(),
    ] {
        start(&poison).args(&args).run();
        assert_eq!(poison.sung(), Vec::<String>::new(), "{args:?}");
    }
}
