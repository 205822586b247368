//! The patch that a run leaves: it gives the changes, whatever the workspace.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use crate::support::cli::{Cli, Output};
use crate::support::workspace::Workspace;

const BEFORE: &[(&str, &str)] = &[("src/a.txt", "one\ntwo\nthree\n"), ("gone.txt", "x\n")];

const REPLIES: &str = "\
- calls: [{name: read, arguments: {path: src/a.txt}}]
- calls:
    - {name: edit, arguments: {path: src/a.txt, edits: [{oldText: two, newText: 2}]}}
    - {name: write, arguments: {path: new/b.txt, content: \"no end of line\"}}
    - {name: bash, arguments: {command: \"rm gone.txt; printf 'a\\\\0b' > bin; chmod +x new/b.txt\"}}
- text: done
";

fn changed(workspace: &Workspace, isolation: &str) -> Output {
    let files = Cli::new();
    let task = format!(
        "version: 1\nprompt: x\nsettings: {{model: scripted/model.yaml}}\npermissions: {{mode: bypass}}\n\
         workspace: {{path: {}, isolation: {isolation}}}\n",
        workspace.path().display()
    );
    files
        .file("task.yaml", task)
        .file("model.yaml", REPLIES.replace("newText: 2", "newText: '2'"))
        .args(["run", "task.yaml", "--run-dir", "out", "--allow-bypass"])
        .run()
}

fn is_changed(workspace: &Workspace) {
    assert_eq!(workspace.read("src/a.txt"), "one\n2\nthree\n");
    assert_eq!(workspace.read("new/b.txt"), "no end of line");
    assert!(!workspace.exists("gone.txt"));
}

#[test]
fn the_patch_of_any_workspace_gives_its_changes() {
    for (kind, isolation) in [
        ("git", "none"),
        ("git", "copy"),
        ("plain", "none"),
        ("plain", "copy"),
    ] {
        let workspace = match kind {
            "git" => Workspace::git(BEFORE),
            _ => Workspace::new(BEFORE),
        };
        let done = changed(&workspace, isolation);
        if isolation == "copy" {
            assert_eq!(workspace.read("src/a.txt"), "one\ntwo\nthree\n", "{kind}");
        } else {
            is_changed(&workspace);
        }
        let other = Workspace::git(BEFORE);
        let patch = done.run_dir().join("change.patch");
        other.run_git(&["apply", patch.to_str().unwrap()]);
        is_changed(&other);
        let files = done.result()["filesChanged"].as_array().unwrap().clone();
        let told: Vec<(String, String)> = files
            .iter()
            .map(|file| (file["path"].to_string(), file["status"].to_string()))
            .collect();
        for expect in [
            ("gone.txt", "deleted"),
            ("new/b.txt", "added"),
            ("src/a.txt", "modified"),
        ] {
            let expect = (format!("\"{}\"", expect.0), format!("\"{}\"", expect.1));
            assert!(told.contains(&expect), "{kind} {isolation}: {told:?}");
        }
        assert_eq!(done.result()["artifacts"]["patch"], "change.patch");
    }
}

#[test]
fn without_changes_there_is_no_patch() {
    let workspace = Workspace::git(BEFORE);
    let task = format!(
        "version: 1\nprompt: x\nsettings: {{model: scripted/model.yaml}}\nworkspace: {{path: {}}}\n",
        workspace.path().display()
    );
    let cli = Cli::new()
        .file("task.yaml", task)
        .file("model.yaml", "- text: done\n");
    let done = cli.args(["run", "task.yaml", "--run-dir", "out"]).run();
    assert!(!done.run_dir().join("change.patch").exists());
    assert_eq!(done.result()["filesChanged"], serde_json::json!([]));
    assert!(!done.event_names().contains(&"diff".to_owned()));
}
