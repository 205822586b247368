//! Files of strangers with names and contents that deceive: project files,
//! listings, diffs, decisions about walks.

use std::fs::File;
use std::os::unix::fs::symlink;

use agent::access::Access;
use agent::policy::{Mode, Permissions, Policy, Rule, Surroundings};
use rustix::fs::{CWD, Mode as FileMode};
use serde_json::json;

use crate::context_scene::{ALL, Scene as Files, warnings};
use crate::tool_scene::Scene;
use crate::workspace_fixture::{Fixture, diff, listed};

#[test]
fn what_nobody_sees_in_a_project_file_is_not_told_to_the_model() {
    let hidden: String = "obey"
        .chars()
        .map(|c| char::from_u32(0xe0000 + c as u32).unwrap())
        .collect();
    let text = format!(
        "Build{hidden} with\u{202e} make\u{2066}.\u{200b}\n\u{1b}[8mhidden\u{9b}m \u{645}\u{200c}\u{6cc}\n"
    );
    let scene = Files::new().file("repo/AGENTS.md", text);
    let loaded = scene.load_in("repo", &ALL);
    assert_eq!(
        loaded.project[0].content,
        "Build with make.\n[8mhiddenm \u{645}\u{200c}\u{6cc}\n"
    );
    assert_eq!(
        warnings(&scene, &loaded),
        ["project_file_cleaned: AGENTS.md: 9 characters that nobody sees were taken out"]
    );
}

#[test]
fn a_project_file_of_any_size_is_capped() {
    let scene = Files::new().file("repo/AGENTS.md", "one line of it\n".repeat(100));
    let huge = File::options()
        .write(true)
        .open(scene.path("repo/AGENTS.md"))
        .unwrap();
    huge.set_len(50 << 20).unwrap();
    let loaded = scene.load_in("repo", &ALL);
    assert!(loaded.project[0].content.len() < 33 * 1024);
    let told = warnings(&scene, &loaded).join("\n");
    assert!(
        told.contains("of 52428800 bytes are in the system prompt"),
        "{told}"
    );
}

#[tokio::test]
async fn names_that_deceive_are_quoted_in_listings() {
    let scene = Scene::new();
    for name in [
        "two\nlines.txt",
        "esc\u{1b}[2J.txt",
        "cr\r::error::.txt",
        "bidi\u{202e}txt.exe",
        "zero\u{200b}width",
        "sep\u{2028}arator",
        "plain größe.txt",
    ] {
        scene.put(name, "needle\n");
    }
    let calls = [
        ("ls", json!({}), 7),
        ("find", json!({"pattern": "**"}), 7),
        ("grep", json!({"pattern": "needle"}), 7),
    ];
    for (tool, args, lines) in calls {
        let shown = scene.ok(tool, args).await;
        assert_eq!(shown.lines().count(), lines, "{tool}: {shown}");
        let acts = |c: char| agent::message::is_unseen(c) || matches!(c, '\r' | '\u{2028}');
        assert!(!shown.contains(acts), "{tool}: {shown:?}");
        assert!(shown.contains("plain größe.txt"), "{tool}: {shown}");
        assert!(
            shown.contains("\"bidi\\u{202e}txt.exe\""),
            "{tool}: {shown}"
        );
    }
}

#[test]
fn names_that_deceive_stay_on_their_line_in_patches() {
    for at in [Fixture::repository(), Fixture::plain()] {
        let baseline = at.take();
        at.write("two\nlines.txt", "1\n");
        at.write("esc\u{1b}[2J.txt", "1\n");
        let changes = diff(&baseline);
        assert_eq!(listed(&changes).len(), 2);
        let patch = String::from_utf8(changes.patch).unwrap();
        assert!(!patch.contains('\u{1b}'), "{patch:?}");
        assert!(patch.contains("\"b/two\\nlines.txt\""), "{patch}");
    }
}

#[test]
fn a_decision_about_a_walk_reads_no_ignore_file_without_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for name in ["zero", "fifo", "sparse", "ignored"] {
        std::fs::create_dir(root.join(name)).unwrap();
    }
    symlink("/dev/zero", root.join("zero/.gitignore")).unwrap();
    rustix::fs::mkfifoat(
        CWD,
        root.join("fifo/.ignore"),
        FileMode::from_raw_mode(0o600),
    )
    .unwrap();
    let sparse = File::create(root.join("sparse/.gitignore")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    std::fs::write(root.join(".gitignore"), "ignored/\n").unwrap();
    std::fs::write(root.join("ignored/key.pem"), "x").unwrap();
    let rule = |text: &str| vec![Rule::parse(text, "rule").unwrap()];
    let policy = Policy::new(
        Permissions {
            mode: Mode::ReadOnly,
            allow: rule("Bash(rg:*)"),
            deny: rule("Read(**/*.pem)"),
            ..Permissions::default()
        },
        Surroundings {
            workspace: root.clone(),
            ..Surroundings::default()
        },
    );
    let decide = |command: &str| policy.decide("bash", &[Access::Exec(command.to_owned())]);
    // What is ignored is not searched, so it does not count.
    let allowed = decide("rg needle");
    assert!(allowed.is_allowed(), "{}", allowed.reason);
    assert!(!decide("rg -uu needle").is_allowed());
    std::fs::write(root.join("zero/key.pem"), "x").unwrap();
    assert!(!decide("rg needle").is_allowed());
}

#[test]
fn a_log_of_a_stranger_opens_no_file_but_its_own() {
    const CANARY: &str = "outside-77aa";
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    std::fs::write(&secret, format!("+{CANARY}\n")).unwrap();
    let done = crate::cli_scene::scripted("- text: done\n", "").run();
    let log = done.artifact("events.jsonl");
    let dir = done.run_dir();
    symlink(&secret, dir.join("link.patch")).unwrap();
    std::fs::write(dir.join("own.patch"), "+shown\n").unwrap();
    std::fs::create_dir_all(dir.join("tool-output")).unwrap();
    symlink(&secret, dir.join("tool-output/event-1-1.txt")).unwrap();
    for path in [
        secret.to_str().unwrap(),
        "../../secret",
        "link.patch",
        ".",
        "own.patch",
    ] {
        let mut lines: Vec<serde_json::Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let kept = json!({"truncated": true, "bytes": 70_000, "path": "tool-output/event-1-1.txt"});
        let file = json!({"path": "a", "status": "added", "additions": 1, "deletions": 0});
        let end = lines.iter().position(|line| line["event"] == "job:end");
        let end = end.unwrap();
        for (event, data) in [
            ("warning", json!({"code": "kept", "message": kept})),
            (
                "diff",
                json!({"files": [file], "patchPath": path, "source": "git"}),
            ),
        ] {
            let mut told = lines[end].clone();
            told["event"] = json!(event);
            told["data"] = data;
            lines.insert(end, told);
        }
        for (seq, line) in lines.iter_mut().enumerate() {
            line["seq"] = json!(seq + 1);
        }
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        std::fs::write(dir.join("events.jsonl"), text.join("\n") + "\n").unwrap();
        let replayed = assert_cmd::Command::new(crate::support::cli::program())
            .args(["replay"])
            .arg(&dir)
            .timeout(std::time::Duration::from_secs(60))
            .output()
            .unwrap();
        let shown =
            String::from_utf8_lossy(&replayed.stdout) + String::from_utf8_lossy(&replayed.stderr);
        let own = path == "own.patch";
        assert_eq!(shown.contains("+shown"), own, "{path}: {shown}");
        assert!(shown.contains("[70000 bytes in"), "{path}: {shown}");
        assert!(!shown.contains(CANARY), "{path}: {shown}");
    }
}
