//! Commits by commands in a sandbox: whose they are, and what of the user's
//! configuration comes with them.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::path::Path;

use serde_json::json;

use crate::sandbox_run::{said, tiers};
use crate::support::cli::{Cli, Output};
use crate::support::workspace::Workspace;

const NAME: &str = r#"Zoë "Q" \ O'Neil # ; x"#;

/// The user's configuration: more than a name, some of it dangerous.
const CONFIG: &str = r#"
[user]
	name = "Zoë \"Q\" \\ O'Neil # ; x"
	email = zoe@example.invalid
	signingKey = canary-signing
[credential]
	helper = "!canary-helper"
[url "https://canary-token@example.invalid/"]
	insteadOf = https://example.invalid/
"#;

/// The model adds and commits, as rules allow it, in this repository.
fn commits(workspace: &Workspace, tier: &str, more: &str, config: &str) -> Output {
    commits_of(workspace.path(), "", tier, more, config)
}

/// The same with more in the task, in a directory of a repository.
fn commits_of(directory: &Path, task: &str, tier: &str, more: &str, config: &str) -> Output {
    let outside = Cli::new();
    let task = format!(
        "version: 1\nname: demo\nprompt: x\nsettings: {{model: scripted/model.yaml}}\n\
         permissions: {{mode: accept_edits, allow: ['Bash(git add:*)', 'Bash(git commit:*)', 'Bash(cat:*)']}}\n\
         workspace: {{path: '{}'}}\nsandbox: {{mode: require, tier: {tier}, {more}}}\n{task}",
        directory.display()
    );
    let call =
        |name: &str, arguments: serde_json::Value| json!({"name": name, "arguments": arguments});
    let replies = json!([
        {"calls": [call("write", json!({"path": "new.txt", "content": "new\n"}))]},
        {"calls": [call("bash", json!({"command": "git add new.txt && git commit -q -m 'by the model'"}))]},
        {"calls": [call("bash", json!({"command": "cat ~/.gitconfig"}))]},
        {"text": "done"},
    ]);
    let file = outside.home().join("config");
    std::fs::write(&file, config).unwrap();
    outside
        .file("task.yaml", task)
        .file("model.yaml", replies.to_string())
        .env("GIT_CONFIG_GLOBAL", file)
        .args(["run", "task.yaml", "--run-dir", "out"])
        .run()
}

/// Author and committer of the newest commit, and what it is.
fn newest(workspace: &Workspace) -> String {
    let told = workspace.run_git(&["log", "-1", "--format=%an <%ae>|%cn <%ce>|%s"]);
    told.trim().to_owned()
}

fn repository() -> Workspace {
    Workspace::git(&[("a.txt", "a\n")])
}

#[test]
fn a_commit_is_the_users() {
    for tier in tiers() {
        let workspace = repository();
        let done = commits(&workspace, tier, "git: writable", CONFIG);
        let user = format!("{NAME} <zoe@example.invalid>");
        let expected = format!("{user}|{user}|by the model");
        assert_eq!(newest(&workspace), expected, "{tier}: {}", said(&done));
        assert_eq!(done.result()["sandbox"]["tier"], tier);
        assert_eq!(done.result()["warnings"], json!([]));
        // The rest of the configuration stays where it is.
        let told = said(&done);
        assert!(told.contains("zoe@example.invalid"), "{told}");
        assert!(!told.contains("canary"), "{told}");
    }
}

#[test]
fn what_the_repository_says_of_its_user_goes_before() {
    for tier in tiers() {
        let workspace = repository();
        workspace.run_git(&["config", "user.email", "local@example.invalid"]);
        let done = commits(&workspace, tier, "git: writable", CONFIG);
        let user = format!("{NAME} <local@example.invalid>");
        let expected = format!("{user}|{user}|by the model");
        assert_eq!(newest(&workspace), expected, "{tier}: {}", said(&done));
    }
}

#[test]
fn an_identity_for_some_places_is_taken_there() {
    let tier = *tiers().last().unwrap();
    let workspace = repository();
    let work = workspace.write(".git/work", "[user]\n\temail = work@example.invalid\n");
    let here = workspace.path().display();
    let config = format!(
        "{CONFIG}[includeIf \"gitdir:{here}/\"]\n\tpath = {}\n",
        work.display()
    );
    let done = commits(&workspace, tier, "git: writable", &config);
    let told = newest(&workspace);
    assert!(
        told.contains("<work@example.invalid>|"),
        "{told}: {}",
        said(&done)
    );
}

#[test]
fn a_user_without_a_name_is_told_by_git() {
    for tier in tiers() {
        let workspace = repository();
        // Or git makes a name up where the machine lets it.
        workspace.run_git(&["config", "user.useConfigOnly", "true"]);
        let before = newest(&workspace);
        let done = commits(&workspace, tier, "git: writable", "[user]\n\tx = y\n");
        let told = said(&done);
        assert_eq!(newest(&workspace), before, "{tier}: {told}");
        assert!(
            told.contains("auto-detection is disabled"),
            "{tier}: {told}"
        );
        assert!(told.contains(".gitconfig: No such file"), "{tier}: {told}");
    }
}

/// Makes git take every repository for another user's.
const FOREIGN: &str = "env: {set: {GIT_TEST_ASSUME_DIFFERENT_OWNER: '1'}}\n";

#[test]
fn a_repository_that_the_user_trusts_is_trusted() {
    for tier in tiers() {
        let workspace = repository();
        workspace.write("sub/b.txt", "b\n");
        let root = workspace.path().display().to_string();
        let above = workspace.path().parent().unwrap().display().to_string();
        for (directories, trusted) in [
            ("*", true),
            (root.as_str(), true),
            (&format!("{above}/*"), true),
            (&format!("{root}/*"), false),
            ("/elsewhere", false),
            // An empty value takes back what was said before.
            ("*\n\tdirectory =", false),
        ] {
            let config = format!("{CONFIG}[safe]\n\tdirectory = {directories}\n");
            for (place, git) in [(".", "writable"), ("sub", "writable"), (".", "read_only")] {
                let directory = workspace.path().join(place).canonicalize().unwrap();
                let more = format!("git: {git}");
                let done = commits_of(&directory, FOREIGN, tier, &more, &config);
                let told = said(&done);
                let case = format!("{tier} {directories} {place} {git}: {told}");
                assert_eq!(told.contains("dubious ownership"), !trusted, "{case}");
                let line = format!("directory = \\\"{root}\\\"");
                assert_eq!(told.contains(&line), trusted, "{case}");
                assert!(!told.contains("canary"), "{case}");
                let has_name = told.contains("zoe@example.invalid");
                assert_eq!(has_name, git == "writable", "{case}");
            }
        }
    }
}

#[test]
fn a_configuration_that_git_cannot_read_is_told() {
    let tier = *tiers().last().unwrap();
    for git in ["writable", "read_only"] {
        let done = commits(&repository(), tier, &format!("git: {git}"), "[user\n");
        let warnings = done.result()["warnings"].clone();
        let mut messages = warnings.as_array().unwrap().iter();
        let told = messages.find(|one| one["code"] == "git_identity");
        let told = told.unwrap_or_else(|| panic!("{warnings:#}"));
        let message = told["message"].as_str().unwrap();
        assert!(message.contains("bad config line 1 in file /"), "{message}");
    }
}

/// A job starts without a process that has nothing to tell.
#[test]
fn a_user_without_a_configuration_is_not_asked_for_it() {
    use std::os::unix::fs::PermissionsExt as _;
    for (configured, asked) in [(false, false), (true, true)] {
        let mut cli = crate::sandbox_run::task(&["echo"], "{mode: require}");
        let programs = tempfile::tempdir().unwrap();
        let log = programs.path().join("log");
        let git = programs.path().join("git");
        let script = format!("#!/bin/sh\necho \"$*\" >> '{}'\n", log.display());
        std::fs::write(&git, script).unwrap();
        std::fs::set_permissions(&git, std::fs::Permissions::from_mode(0o755)).unwrap();
        if configured {
            let file = cli.home().join(".gitconfig");
            std::fs::write(&file, CONFIG).unwrap();
            cli = cli.env("GIT_CONFIG_GLOBAL", file);
        }
        let path = format!("{}:/usr/bin:/bin", programs.path().display());
        cli.env("PATH", path).run();
        let log = std::fs::read_to_string(log).unwrap_or_default();
        assert_eq!(log.contains("config --global"), asked, "{log}");
    }
}

#[test]
fn a_repository_that_is_only_read_takes_no_commit() {
    for tier in tiers() {
        let workspace = repository();
        let before = newest(&workspace);
        let done = commits(&workspace, tier, "git: read_only", CONFIG);
        assert_eq!(newest(&workspace), before, "{tier}: {}", said(&done));
        assert!(said(&done).contains(".gitconfig: No such file"), "{tier}");
    }
}
