//! The runner's own environment and memory are closed to the commands that it
//! starts.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::cli_scene::{bash, plain};
use crate::support::cli::{Cli, path, program};

const KEY: &str = "canary-of-the-runner-7f3a";
const NOBODY: u32 = 65534;

/// Prints the environments in which a mark is found, the limit on core files of
/// the runner, and whether its memory can be opened.
const LOOK: &str = "marks() { grep -lz \"$1\" /proc/[0-9]*/environ /proc/[0-9]*/task/*/environ \
     2>/dev/null | wc -l; }; echo \"runner $(marks 'canary-of-the[-]runner') \
     own $(marks 'canary-of-the[-]command')\"; \
     (: < /proc/$PPID/mem) 2>/dev/null && echo 'memory open'; \
     grep 'Max core file size' /proc/$PPID/limits";

/// Without a sandbox, which would hide the runner, and by a program in a file:
/// rules refuse a command that names such places.
fn scene() -> Cli {
    plain(
        &format!("{}- text: done\n", bash("exec bash look.sh")),
        "permissions: {mode: bypass}\nsandbox: {mode: \"off\"}\n\
         env: {set: {OWN: canary-of-the-command}}\n",
    )
    .file("look.sh", LOOK)
    .args(["run", "task.yaml", "--run-dir", "out", "--allow-bypass"])
    .env("ANTHROPIC_API_KEY", KEY)
}

/// What the command saw when `wrapper` starts the program as somebody.
#[expect(clippy::disallowed_methods, reason = "the program under test")]
fn seen(cli: &Cli, wrapper: &[&str]) -> String {
    // Where the program was built may be closed to others.
    let copy = cli.home().join("agent");
    std::fs::copy(program(), &copy).unwrap();
    std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o755)).unwrap();
    let plain = cli.command();
    let mut command = match wrapper {
        [] => Command::new(&copy),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(&copy);
            command
        }
    };
    command
        .args(plain.get_args())
        .current_dir(cli.cwd())
        .env_clear()
        .env("PATH", path())
        .env("HOME", cli.home())
        .env("ANTHROPIC_API_KEY", KEY);
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{wrapper:?}: {said}");
    let session = std::fs::read_to_string(cli.cwd().join("out/session.jsonl")).unwrap();
    let lines = session
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let answer = |line: &Value| line.pointer("/message/role") == Some(&Value::from("toolResult"));
    let result = lines.into_iter().find(answer).unwrap();
    result["message"]["content"][0]["text"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn check(cli: &Cli, wrapper: &[&str]) {
    let seen = seen(cli, wrapper);
    // The command finds what is in its own environment, and only that.
    assert!(seen.contains("runner 0 own "), "{wrapper:?}: {seen}");
    assert!(!seen.contains("own 0"), "{wrapper:?}: {seen}");
    assert!(!seen.contains("memory open"), "{wrapper:?}: {seen}");
    let core = seen.split("Max core file size").nth(1).unwrap();
    let limits: Vec<&str> = core.split_whitespace().take(2).collect();
    assert_eq!(limits, ["0", "0"], "{wrapper:?}");
}

fn give_to_nobody(dir: &Path) {
    std::os::unix::fs::chown(dir, Some(NOBODY), Some(NOBODY)).unwrap();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        std::os::unix::fs::chown(entry.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

#[test]
fn a_command_cannot_read_what_the_runner_knows() {
    if !rustix::process::geteuid().is_root() {
        return check(&scene(), &[]);
    }
    let cli = scene();
    give_to_nobody(cli.cwd());
    give_to_nobody(cli.home());
    let nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    check(&cli, &nobody);
    // As in most containers, where root may neither trace nor administer.
    let lame = ["setpriv", "--bounding-set=-sys_ptrace,-sys_admin,-perfmon"];
    check(&scene(), &lame);
}
