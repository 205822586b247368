//! On GitHub the runner is told what else to hide in the log of a step.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use crate::cli_scene::scripted;
use crate::support::cli::Cli;
use crate::support::running::{Running, now};

const FILE_KEY: &str = "100%-from-a-file-4711";
const KNOWN: &str = "known-to-github-already";

fn scene() -> Cli {
    scripted("- text: done\n", "secrets: [{name: A, from_env: A}]\n")
        .file("key", format!("{FILE_KEY}\n"))
        .file("pem", "first line of it\nsecond line of it\nend\n")
        .file("again", KNOWN)
        .env("ANTHROPIC_API_KEY_FILE", "key")
        .env("DEPLOY_KEY_FILE", "pem")
        .env("OTHER_TOKEN_FILE", "again")
        .env("A", KNOWN)
        .env("HTTPS_PROXY", "http://user:pass-word-1@proxy.test")
        .env("CI", "true")
}

/// The commands on standard error, which come before all else.
fn commands(stderr: &str) -> Vec<&str> {
    let lines = stderr.lines();
    let commands: Vec<&str> = lines.take_while(|line| line.starts_with("::")).collect();
    let all = stderr.lines().filter(|line| line.contains("::add-mask::"));
    assert_eq!(all.count(), commands.len(), "{stderr}");
    commands
}

#[test]
fn what_github_cannot_know_is_masked_first_of_all() {
    // They are for a machine: `--quiet` keeps them.
    for noise in [&[][..], &["--quiet"]] {
        let cli = scene().args(noise).env("GITHUB_ACTIONS", "true");
        let done = cli.command().output().unwrap();
        let stderr = String::from_utf8(done.stderr).unwrap();
        let mut commands = commands(&stderr);
        commands.sort_unstable();
        let expect = [
            "::add-mask::100%25-from-a-file-4711",
            "::add-mask::first line of it",
            "::add-mask::pass-word-1",
            "::add-mask::second line of it",
        ];
        assert_eq!(commands, expect);
        assert_eq!(stderr.lines().count() > expect.len(), noise.is_empty());
        // Nothing of it is on standard output, which is the answer.
        assert_eq!(done.stdout, b"done\n");
    }
}

#[test]
fn elsewhere_and_in_files_nothing_is_told() {
    for system in ["GITLAB_CI", "GITHUB_ACTIONS_NOT"] {
        let output = scene().env(system, "true").run();
        assert_eq!(commands(&output.stderr), Vec::<&str>::new());
    }
    let cli = scene().env("GITHUB_ACTIONS", "true");
    let running = Running::start(cli.command(), &cli.cwd().join("out"));
    let end = running.end(now());
    assert_eq!(end.code, Some(0));
    assert!(!end.stderr.contains("add-mask") && !end.stderr.contains("from-a-file"));
}
