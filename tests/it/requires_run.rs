//! What a task requires is looked for before a token is spent, and all that is
//! missing is told at once.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::Value;

use crate::cassette_scene::{SPEAKERS, Shelf, TASK, text};
use crate::cli_scene::{agree, bash, plain, scripted, truthful};
use crate::support::cli::{Cli, Output};
use crate::support::running::{Running, marked};

/// A program of `agent`'s user, in a directory that is not the workspace.
pub(crate) fn program(cli: &Cli, name: &str, script: &str) -> String {
    let bin = cli.home().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let file = bin.join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    bin.display().to_string()
}

/// `PATH` with `bin` before the usual places.
pub(crate) fn path(bin: &str) -> String {
    format!("{bin}:/usr/local/bin:/usr/bin:/bin")
}

/// A run that was refused: it says so everywhere, and asked and did nothing.
fn refused(done: &Output) -> Vec<String> {
    let result = truthful(done);
    assert_eq!(result["reason"], "config");
    assert_eq!(result["error"]["code"], "missing_requirements");
    assert_eq!(result["turns"], 0);
    assert_eq!(done.event_names(), ["run:start", "run:end"]);
    let hints = result["error"]["hints"].as_array().unwrap();
    hints
        .iter()
        .map(|hint| hint.as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn everything_that_is_missing_is_told_in_one_list() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let task = format!(
        "version: 1\nname: demo\nprompt: Do it.\n\
         settings: {{model: openai-chat/own, base_url: '{url}'}}\n\
         permissions: {{mode: accept_edits}}\n\
         requires:\n  commands: [sh, no-such-tool, bash >= 99]\n  env: [HOME, NOT_SET, EMPTY]\n  \
         files: [task.yaml, gone.txt, link]\n"
    );
    let cli = Cli::new().file("task.yaml", task).env("EMPTY", "");
    std::os::unix::fs::symlink("/etc/passwd", cli.cwd().join("link")).unwrap();
    let done = cli
        .args(["run", "task.yaml", "--run-dir", "out"])
        .expect_code(78)
        .run();

    let list = refused(&done);
    let expected = [
        (
            "7:18",
            "the command `no-such-tool`: not found in PATH: install it",
        ),
        ("7:32", "the command `bash` has version 5."),
        (
            "8:15",
            "the variable NOT_SET is not set: set it where the run is started",
        ),
        ("8:24", "the variable EMPTY is empty: set it"),
        ("9:22", "there is no file "),
        (
            "9:32",
            "link leads outside of the workspace, to /etc/passwd: ",
        ),
    ];
    assert_eq!(list.len(), expected.len(), "{list:#?}");
    for (told, (place, problem)) in list.iter().zip(expected) {
        let expected = format!("task.yaml:{place}: {problem}");
        assert!(told.starts_with(&expected), "{told}\n{expected}");
        assert!(
            done.stderr.contains(&format!("hint {told}\n")),
            "{}",
            done.stderr
        );
    }
    let not_passed = "(commands do not see it: env.pass does not name it)";
    assert!(list[2].ends_with(not_passed), "{list:#?}");
    let message = "6 requirements are not met: the command no-such-tool, the command bash >= 99, \
         the variable NOT_SET, the variable EMPTY, the file gone.txt, the file link";
    assert_eq!(done.result()["error"]["message"], message);
    let line = format!("error {message}\n");
    assert!(done.stderr.contains(&line), "{}", done.stderr);
    let mut names: Vec<_> = std::fs::read_dir(done.cwd())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["link", "out", "task.yaml"], "nothing is changed");
    let again = Cli::at(done.cwd())
        .args(["replay", "out"])
        .expect_code(78)
        .run();
    assert!(again.stderr.contains(&line), "{}", again.stderr);
    let accepted = server.accept().map(|_| ());
    assert_eq!(accepted.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn what_one_task_misses_stops_those_before_it() {
    let second = "version: 1\nname: second\nprompt: x\nsettings: {model: scripted/model.yaml}\n\
                  requires: {files: [gone.txt]}\n";
    let done = plain("- text: done\n", "requires: {env: [GONE]}\n")
        .file("second.yaml", second)
        .args(["run", "task.yaml", "second.yaml", "--run-dir", "out"])
        .expect_code(78)
        .run();
    let list = refused(&done);
    assert!(
        list[0].starts_with("task.yaml:5:18: the variable GONE"),
        "{list:?}"
    );
    assert!(
        list[1].starts_with("second.yaml:5:20: there is no file "),
        "{list:?}"
    );
    assert_eq!(list.len(), 2);
}

#[test]
fn a_task_that_has_everything_runs() {
    let replies = format!("{}- text: done\n", bash("tool"));
    let more = "permissions: {allow: ['Bash(tool)']}\n\
                requires: {commands: ['tool >= 1.2', 'tool < 2', git], env: [WANTED], files: [model.yaml, .]}\n";
    let cli = scripted(&replies, more).env("WANTED", "canary-value");
    let bin = program(
        &cli,
        "tool",
        "pwd >> \"$0.asked\"; echo \"tool (x86_64) v1.2.9\"",
    );
    let done = cli.env("PATH", path(&bin)).run();
    let result = truthful(&done);
    assert_eq!(result["reason"], "success");
    assert_eq!(result["toolCalls"]["bash"]["errors"], 0, "{result:#}");
    assert_eq!(result["warnings"], serde_json::json!([]));
    assert!(
        !done.artifact("events.jsonl").contains("canary"),
        "a value is not told"
    );
}

#[test]
fn a_program_is_asked_for_its_version_once_as_it_knows_it_and_where_no_repository_is() {
    for (name, question) in [
        ("tool", "--version"),
        ("go", "version"),
        ("kubectl", "version --client"),
        ("ssh", "-V"),
        ("java", "-version"),
    ] {
        for (ending, code) in [("echo 3.1", 0), ("exit 1", 78)] {
            let more = format!("requires: {{commands: ['{name} = 3.1']}}\n");
            let cli = scripted("- text: done\n", &more);
            let script = format!("echo \"$(pwd) $*\" >> \"$0.asked\"; {ending}");
            let bin = program(&cli, name, &script);
            let asked = cli.home().join(format!("bin/{name}.asked"));
            let cli = cli.env("PATH", path(&bin));
            let done = cli.command().output().unwrap();
            assert_eq!(done.status.code(), Some(code), "{name}");
            let asked = std::fs::read_to_string(asked).unwrap();
            assert_eq!(asked, format!("/ {question}\n"));
            let problem = format!("/{name} {question}` names none: require it without");
            let told = String::from_utf8(done.stderr).unwrap();
            assert_eq!(told.contains(&problem), code == 78, "{told}");
        }
    }
}

#[test]
fn a_program_of_the_workspace_is_never_asked() {
    let more = |version: &str| format!("requires: {{commands: ['tool{version}']}}\n");
    let scene = |version: &str| {
        let cli = scripted("- text: done\n", &more(version));
        let cli = cli.file("bin/tool", "#!/bin/sh\ntouch \"$0.ran\"\necho 1.0\n");
        let bin = cli.cwd().join("bin");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bin.join("tool"), mode).unwrap();
        let path = path(&bin.display().to_string());
        cli.env("PATH", path)
    };
    assert_eq!(truthful(&scene("").run())["reason"], "success");
    let done = scene(" >= 1").expect_code(78).run();
    let list = refused(&done);
    assert!(
        list[0].contains("of the workspace, and not asked: require it without"),
        "{list:?}"
    );
    assert!(!done.cwd().join("bin/tool.ran").exists());
}

#[test]
fn programs_are_looked_up_where_commands_find_them() {
    let cli = scripted(
        "- text: done\n",
        "requires: {commands: [sh]}\nenv: {set: {PATH: /nowhere}}\n",
    );
    let done = cli.expect_code(78).run();
    let list = refused(&done);
    assert!(
        list[0].contains("the command `sh`: not found in PATH: it is /"),
        "{list:?}"
    );
    assert!(
        list[0].contains("env.set.PATH of the task replaces PATH"),
        "{list:?}"
    );

    let cli = scripted("- text: done\n", "requires: {commands: [tool]}\n");
    let bin = program(&cli, "tool", "true");
    let set = format!("env.set.PATH={bin}");
    assert_eq!(
        truthful(&cli.args(["--set", &set]).run())["reason"],
        "success"
    );

    // What is relative in PATH commands do not get.
    let cli = scripted("- text: done\n", "requires: {commands: [tool]}\n");
    let cli = cli.file("bin/tool", "#!/bin/sh\n");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(cli.cwd().join("bin/tool"), mode).unwrap();
    let list = refused(&cli.env("PATH", "bin:/usr/bin:/bin").expect_code(78).run());
    assert!(
        list[0].contains("`tool`: not found in PATH: install it"),
        "{list:?}"
    );
}

#[test]
fn a_program_that_cannot_be_used_is_missing() {
    for (mode, script, problem) in [
        (0o644, "true", "is not executable: make it executable"),
        (
            0o755,
            "echo nothing",
            "--version` names none: require it without a version",
        ),
        (0o755, "kill -9 $$", "died of signal 9"),
        (
            0o755,
            "echo 'tool 0.9.1' >&2",
            "has version 0.9.1, not >= 1",
        ),
        (
            0o755,
            "echo 'warning: libx.so.6.0.29: no version information' >&2; echo 'tool 0.9.1'",
            "has version 0.9.1, not >= 1",
        ),
    ] {
        let cli = scripted("- text: done\n", "requires: {commands: [tool >= 1]}\n");
        let bin = program(&cli, "tool", script);
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(cli.home().join("bin/tool"), permissions).unwrap();
        let list = refused(&cli.env("PATH", path(&bin)).expect_code(78).run());
        assert!(list[0].contains(problem), "{list:?}");
    }
}

#[test]
fn a_signal_ends_the_question_for_a_version() {
    let mark = format!("version-{}", std::process::id());
    let cli = scripted(
        "- text: done\n",
        "requires: {commands: [tool >= 1]}\nenv: {pass: [MARK]}\n",
    );
    let bin = program(&cli, "tool", "exec sleep 300");
    let cli = cli.env("PATH", path(&bin)).env("MARK", &mark);
    let running = Running::start(cli.command(), &cli.cwd().join("out"));
    let variable = format!("MARK={mark}");
    running.wait_until("the question", || {
        marked(&variable).iter().any(|one| one.starts_with("sleep"))
    });
    let end = running.end_by(Signal::TERM);
    assert_eq!(end.code, Some(143), "{}", end.stderr);
    assert!(end.took.as_secs() < 5, "{:?}", end.took);
    let events = agree(143, &end.log(), &end.result());
    let names: Vec<&Value> = events.iter().map(|event| &event["event"]).collect();
    assert_eq!(names, ["run:start", "run:end"]);
    assert_eq!(marked(&variable), Vec::<String>::new());
}

#[test]
fn where_a_cassette_plays_the_tools_nothing_is_required() {
    let shelf = Shelf::new();
    let speaker = &SPEAKERS[0];
    shelf.record(speaker, TASK, vec![speaker.answer(&[text("done")])]);
    let task = format!("{TASK}requires: {{files: [gone.txt]}}\n");
    let list = refused(&shelf.replay(&task).expect_code(78).run());
    assert_eq!(list.len(), 1);
    let done = shelf.replay(&task).arg("--replay-tools").run();
    assert_eq!(truthful(&done)["reason"], "success");
}
