//! What a run saw is for its owner only: under any umask, and where a file with
//! a wider mode is in the way.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::cli_scene::{bash, mode, plain};
use crate::support::cli::{Cli, program};

/// What a run writes where it is told to.
const FILES: &[&str] = &["answer.txt", "log.jsonl", "response.json"];

fn scene() -> Cli {
    let flood = bash("seq 40000; echo x > new.txt");
    plain(
        &format!("{flood}- text: '{{\"ok\": true}}'\n"),
        "permissions: {mode: bypass}\nworkspace: {path: ws}\n\
         response: {schema: {}, file: response.json}\n",
    )
    .file("ws/a.txt", "a\n")
    .args(["run", "task.yaml", "--run-dir", "out/run", "--allow-bypass"])
    .args(["-o", "answer.txt", "--events", "log.jsonl"])
}

/// Runs the program with the narrowest mask that there is: none.
#[expect(clippy::disallowed_methods, reason = "the program under test")]
fn unmasked(cli: &Cli, args: &[&str]) {
    let plain = cli.command();
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 000; exec \"$@\"", "sh", program()])
        .current_dir(cli.cwd())
        .env_clear();
    match args {
        [] => command.args(plain.get_args()),
        args => command.args(args),
    };
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap());
    }
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{args:?}: {said}");
}

fn check(cli: &Cli) {
    unmasked(cli, &[]);
    unmasked(cli, &["sessions", "export", "out/run", "-o", "page.html"]);
    for name in FILES.iter().chain(&["page.html"]) {
        let path = cli.cwd().join(name);
        let path = if path.exists() {
            path
        } else {
            cli.cwd().join("ws").join(name)
        };
        assert_eq!(mode(&path), 0o600, "{name}");
    }
    let mut open = vec![cli.cwd().join("out")];
    let mut files = 0;
    while let Some(dir) = open.pop() {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                assert_eq!(mode(&entry.path()), 0o600, "{}", entry.path().display());
                files += 1;
            }
        }
    }
    assert!(files >= 7, "{files} files");
}

fn widen(path: &Path) {
    std::fs::set_permissions(path, Permissions::from_mode(0o666)).unwrap();
}

#[test]
fn files_are_private_without_a_umask() {
    check(&scene());
}

#[test]
fn files_that_were_wider_become_private() {
    let mut cli = scene();
    for name in FILES {
        cli = cli.file(name, "{}");
        widen(&cli.cwd().join(name));
    }
    check(&cli);
}

#[test]
fn a_session_that_goes_on_is_closed_to_others() {
    let cli = scene();
    unmasked(&cli, &[]);
    let session = cli.cwd().join("out/run/session.jsonl");
    widen(&session);
    std::fs::write(cli.cwd().join("more.yaml"), "- text: more\n").unwrap();
    let more = [
        "-p",
        "go on",
        "--resume",
        "out/run",
        "--model",
        "scripted/more.yaml",
    ];
    unmasked(&cli, &more);
    // A group may be meant; everybody is not.
    assert_eq!(mode(&session), 0o660);
}
