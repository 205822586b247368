//! Files too large to read, and baselines that are lost: what changed is
//! listed, or the run is not a success.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use agent::workspace::{Baseline, Changes};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::cli::Cli;
use crate::support::workspace::Workspace;
use crate::workspace_fixture::{Fixture, codes, diff, listed, run, search_path, wait};

const GIB: u64 = 1 << 30;

/// A file without blocks on the disk.
fn sparse(path: impl AsRef<Path>, len: u64) {
    let file = File::options()
        .create(true)
        .append(true)
        .open(path)
        .unwrap();
    file.set_len(len).unwrap();
    assert!(file.metadata().unwrap().blocks() < 1_000, "not sparse");
}

/// A `git` that fails at the commands of this pattern.
fn failing_git(bin: &Path, pattern: &str) {
    fs::create_dir_all(bin).unwrap();
    let real = run("sh", &["-c", "command -v git"], bin);
    let real = String::from_utf8(real).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in {pattern}) exit 3;; esac\nexec {} \"$@\"\n",
        real.trim()
    );
    fs::write(bin.join("git"), script).unwrap();
    run("chmod", &["755", "git"], bin);
}

fn path_with(bin: &Path) -> std::ffi::OsString {
    let mut path = bin.as_os_str().to_owned();
    path.push(":");
    path.push(search_path());
    path
}

#[expect(clippy::disallowed_methods, reason = "the test measures real time")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn a_sparse_file_of_30_gib_is_listed_and_the_rest_is_in_the_patch() {
    for make in [Fixture::repository as fn() -> Fixture, Fixture::plain] {
        let at = make();
        let started = now();
        at.write("a", "1\n");
        sparse(at.path("disk.img"), 30 * GIB);
        sparse(at.path("still.img"), 30 * GIB);
        let baseline = at.take();
        assert_eq!(listed(&diff(&baseline)), Vec::<String>::new());
        at.write("a", "2\n");
        sparse(at.path("disk.img"), 31 * GIB);
        sparse(at.path("new.img"), 30 * GIB);
        let changes = diff(&baseline);
        assert_eq!(
            listed(&changes),
            [
                "modified a +1 -1",
                "modified disk.img +0 -0",
                "added new.img +0 -0"
            ]
        );
        assert_eq!(changes.lost, None);
        assert!(String::from_utf8_lossy(&changes.patch).contains("-1\n+2\n"));
        let message = &changes.warnings.last().unwrap().message;
        assert!(message.ends_with("disk.img, new.img"), "{message}");
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn files_that_grow_shrink_and_go() {
    let at = Fixture::repository();
    for name in ["grows", "goes", "rewritten"] {
        at.write(name, "small\n");
    }
    at.commit();
    at.write("untracked grows", "small\n");
    for name in ["shrinks", "goes", "rewritten", "removed"] {
        sparse(at.path(name), GIB);
    }
    let baseline = at.take();
    assert_eq!(listed(&diff(&baseline)), Vec::<String>::new());
    for name in ["grows", "untracked grows"] {
        sparse(at.path(name), GIB);
    }
    at.write("shrinks", "small\n");
    fs::remove_file(at.path("goes")).unwrap();
    fs::remove_file(at.path("removed")).unwrap();
    // The same length and the same times, as far as a program can set them.
    let old = fs::metadata(at.path("rewritten")).unwrap();
    sparse(at.path("rewritten"), GIB + 1);
    let file = File::options()
        .write(true)
        .open(at.path("rewritten"))
        .unwrap();
    file.set_len(GIB).unwrap();
    file.set_modified(old.modified().unwrap()).unwrap();

    let changes = diff(&baseline);
    assert_eq!(
        listed(&changes),
        [
            "deleted goes +0 -0",
            "modified grows +0 -0",
            "deleted removed +0 -0",
            "modified rewritten +0 -0",
            "modified shrinks +0 -0",
            "modified untracked grows +0 -0"
        ]
    );
    assert_eq!(codes(&changes), ["patch_incomplete"]);
    assert_eq!(changes.patch, b"", "no content of any of them is known");
}

#[test]
fn a_file_that_was_not_kept_and_did_not_change_is_not_listed() {
    let at = Fixture::plain();
    for n in 0..2_010 {
        at.write(format!("f{n:04}"), "old\n");
    }
    let baseline = at.take();
    assert_eq!(listed(&diff(&baseline)), Vec::<String>::new());
    at.write("f2009", "new\n");
    assert_eq!(listed(&diff(&baseline)), ["modified f2009 +0 -0"]);
}

fn diff_of(baseline: &Baseline) -> Changes {
    wait(baseline.diff(&[], &CancellationToken::new())).unwrap()
}

#[test]
fn a_diff_that_fails_is_lost_and_a_baseline_that_fails_is_replaced() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    let bin = at.beside("bin");
    failing_git(&bin, "*' diff '*");
    let mut settings = at.settings();
    settings.path = path_with(&bin);
    let baseline = at.take_with(&settings);
    at.write("a", "2\n");
    let changes = diff_of(&baseline);
    assert_eq!(codes(&changes), ["baseline_failed"]);
    assert_eq!(changes.lost.unwrap(), "`git diff` exited with 3");

    // Contents stand in for the tree, and notice all the same.
    failing_git(&bin, "*' write-tree '*");
    let baseline = at.take_with(&settings);
    at.write("a", "3\n");
    let changes = diff_of(&baseline);
    assert_eq!(listed(&changes), ["modified a +1 -1"]);
    assert_eq!(codes(&changes), ["baseline_failed"]);
    assert_eq!(changes.lost, None);
}

#[test]
fn a_run_whose_changes_are_lost_is_incomplete() {
    let replies = json!([
        {"calls": [{"name": "write", "arguments": {"path": "b", "content": "x\n"}}]},
        {"text": "done"}
    ]);
    for (pattern, code) in [("*' diff '*", 1), ("*' no such '*", 0)] {
        let workspace = Workspace::git(&[("a", "1\n")]);
        let cli = Cli::new();
        let bin = cli.cwd().join("bin");
        failing_git(&bin, pattern);
        let task = format!(
            "version: 1\nprompt: x\nsettings: {{model: scripted/model.yaml}}\n\
             permissions: {{mode: accept_edits}}\nworkspace: {{path: {}}}\n",
            workspace.path().display()
        );
        let output = cli
            .file("task.yaml", task)
            .file("model.yaml", replies.to_string())
            .env("PATH", path_with(&bin))
            .args(["run", "task.yaml", "--quiet"])
            .expect_code(code)
            .run();
        let result = output.result();
        if code == 0 {
            assert_eq!(result["reason"], "success");
            continue;
        }
        assert_eq!(
            (&result["outcome"], &result["reason"], &result["exitCode"]),
            (&json!("failure"), &json!("incomplete"), &json!(1))
        );
        assert_eq!(result["error"]["code"], "changes_lost");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains("`git diff` exited with 3"), "{message}");
        // What the tools themselves wrote is known.
        assert_eq!(result["filesChanged"][0]["path"], "b");
        let warnings = result["warnings"].to_string();
        assert!(warnings.contains("baseline_failed"), "{warnings}");
    }
}
