//! Links that a repository may hold: none leads what a run writes or reads out of
//! the working copy.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::cli_scene::{plain, scripted};
use crate::support::cli::{Cli, Output};
use crate::task_case::Case;

const OK: &str = "- text: done\n";
const ANSWER: &str = "- text: '{\"a\": 1}'\n";
const MINE: &str = "the user's own\n";

/// A home with a file of the user, and a link to it in the repository.
struct Trap {
    home: tempfile::TempDir,
}

impl Trap {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("bashrc"), MINE).unwrap();
        fs::create_dir(home.path().join("empty")).unwrap();
        Self { home }
    }

    /// Links to the user's file, to none, and to a directory.
    fn links(&self, at: &Path) {
        let home = self.home.path();
        symlink(home.join("bashrc"), at.join("out.json")).unwrap();
        symlink("out.json", at.join("again.json")).unwrap();
        symlink(home.join("new"), at.join("dangling.json")).unwrap();
        symlink(home.join("empty"), at.join("dir")).unwrap();
    }

    fn untouched(&self) {
        let home = self.home.path();
        assert_eq!(fs::read_to_string(home.join("bashrc")).unwrap(), MINE);
        assert!(!home.join("new").exists());
        assert_eq!(fs::read_dir(home.join("empty")).unwrap().count(), 0);
    }
}

/// The run was refused, and says which link it was and where that leads.
fn refused(trap: &Trap, done: &Output, link: &str) {
    let home = trap.home.path().canonicalize().unwrap();
    let why = format!("{link} is a link of the working copy that leads out of it, to ");
    assert!(done.stderr.contains(&why), "{}", done.stderr);
    let target = home.display().to_string();
    assert!(done.stderr.contains(&target), "{}", done.stderr);
    trap.untouched();
}

#[test]
fn no_output_follows_a_link_out_of_the_working_copy() {
    for (option, path, link) in [
        ("-o", "out.json", "out.json"),
        ("-o", "again.json", "out.json"),
        ("-o", "dangling.json", "dangling.json"),
        ("-o", "dir/new.json", "dir"),
        ("-o", "dir/../bashrc", "dir"),
        ("--output-last-message", "./out.json", "out.json"),
        ("--events", "out.json", "out.json"),
        ("--events", "dir/log.jsonl", "dir"),
        ("--run-dir", "dir", "dir"),
        ("--run-dir", "dir/run", "dir"),
        ("--record", "out.json", "out.json"),
    ] {
        let trap = Trap::new();
        let cli = plain(OK, "").args(["run", "task.yaml", option, path]);
        trap.links(cli.cwd());
        let done = cli.expect_code(74).run();
        refused(&trap, &done, link);
    }
}

#[test]
fn the_answer_follows_none_either() {
    for (path, link) in [("out.json", "out.json"), ("dir/new.json", "dir")] {
        let trap = Trap::new();
        let task = format!("response: {{schema: {{type: object, required: [a]}}, file: {path}}}\n");
        let cli = scripted(ANSWER, &task);
        trap.links(cli.cwd());
        let done = cli.expect_code(74).run();
        refused(&trap, &done, link);
    }
}

#[test]
fn links_within_the_working_copy_and_of_the_user_are_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("real")).unwrap();
    symlink("real", outside.path().join("alias")).unwrap();
    let cli = plain(OK, "").file("kept/x", "");
    symlink("kept", cli.cwd().join("results")).unwrap();
    let theirs = outside.path().join("alias/events.jsonl");
    let done = cli
        .args(["run", "task.yaml", "-o", "results/answer.txt", "--events"])
        .arg(&theirs)
        .run();
    let answer = fs::read_to_string(done.cwd().join("kept/answer.txt")).unwrap();
    assert_eq!(answer, "done");
    assert!(outside.path().join("real/events.jsonl").exists());
    let done = plain(OK, "")
        .args(["run", "task.yaml", "-o", "/dev/null"])
        .run();
    assert_eq!(done.code, 0);
}

/// A task that reads `trap.md`, which leads to a file of the user.
fn reads(more: &str) -> (tempfile::TempDir, Case) {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("file"), "{\"p\": \"canary\"}").unwrap();
    let case = Case::new(format!("version: 1\n{more}\n"));
    symlink(outside.path().join("file"), case.path().join("trap.md")).unwrap();
    symlink(outside.path(), case.path().join("dir")).unwrap();
    (outside, case)
}

#[test]
fn no_file_of_a_task_is_read_by_a_link_out_of_the_working_copy() {
    for (more, line) in [
        ("prompt_file: trap.md", 2),
        ("prompt_file: dir/file", 2),
        ("prompt: x\ninstructions_file: trap.md", 3),
        ("prompt: x\nresponse: {schema_file: trap.md}", 3),
    ] {
        let (outside, case) = reads(more);
        let lines = case.lines();
        let start = format!("task.yaml:{line}:");
        assert!(lines[0].starts_with(&start), "{more}: {lines:?}");
        assert!(lines[0].contains("bad_file: cannot read "), "{lines:?}");
        assert!(lines[0].contains("leads out of it"), "{lines:?}");
        let target = outside.path().canonicalize().unwrap().join("file");
        assert!(lines[0].contains(target.to_str().unwrap()), "{lines:?}");
        // The same file by its own name is the user's word.
        let named = more.replace("trap.md", target.to_str().unwrap());
        let named = named.replace("dir/file", target.to_str().unwrap());
        if !named.contains("schema_file") {
            Case::new(format!("version: 1\n{named}\n")).job();
        }
    }
    let (_outside, mut case) = reads("parameters: [{key: p}]\nprompt: '{{ p }}'");
    case.overrides.params_file = Some("trap.md".into());
    let lines = case.lines().join("\n");
    assert!(lines.contains("--params-file:1:1: bad_file: "), "{lines}");
    assert!(lines.contains("leads out of it"), "{lines}");
}

#[test]
fn a_link_to_another_file_of_the_working_copy_is_read() {
    let case = Case::new("version: 1\nprompt_file: tasks/prompt.md\n").file("docs/p.md", "Do it.");
    fs::create_dir(case.path().join("tasks")).unwrap();
    symlink("../docs/p.md", case.path().join("tasks/prompt.md")).unwrap();
    assert_eq!(case.job().prompt, "Do it.");
}

#[test]
fn a_workspace_is_no_link_out_of_the_repository_of_the_task() {
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("sub")).unwrap();
    let with = |path: &str| {
        let case = Case::with(&format!("workspace: {{path: {path}}}")).file(".git/HEAD", "x");
        symlink(outside.path(), case.path().join("link")).unwrap();
        fs::create_dir(case.path().join("inner")).unwrap();
        symlink("inner", case.path().join("alias")).unwrap();
        case
    };
    for path in ["link", "link/sub", "./inner/../link"] {
        let lines = with(path).lines();
        assert!(
            lines[0].starts_with("task.yaml:3:19: leads_out: "),
            "{lines:?}"
        );
        assert!(
            lines[0].contains("link is a link of the working copy"),
            "{lines:?}"
        );
    }
    assert!(with("alias").job().workspace.path.ends_with("inner"));
    // The user may name it.
    let real = outside.path().canonicalize().unwrap();
    let named = with(real.to_str().unwrap());
    assert_eq!(named.job().workspace.path, real);
    assert_eq!(
        with("inner")
            .set("workspace.path", "link")
            .job()
            .workspace
            .path,
        real
    );
}

#[test]
fn an_output_that_a_command_made_a_link_meanwhile_is_not_followed() {
    let trap = Trap::new();
    let target = trap.home.path().join("bashrc");
    let command = format!(
        "ln -sf {} answer.json; ln -sf {} kept.txt",
        target.display(),
        target.display()
    );
    let script =
        format!("- calls: [{{name: bash, arguments: {{command: 'bash go.sh'}}}}]\n{ANSWER}");
    let task = "permissions: {allow: ['Bash(bash go.sh)']}\nsandbox: {mode: off}\n\
                response: {schema: {type: object, required: [a]}, file: answer.json}\n";
    let cli: Cli = scripted(&script, task)
        .file("go.sh", command)
        .args(["-o", "kept.txt"]);
    let done = cli.expect_code(74).run();
    trap.untouched();
    assert!(done.stderr.contains("leads out of it"), "{}", done.stderr);
}
