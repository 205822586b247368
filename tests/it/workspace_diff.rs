//! What a job changed: the same story whether git tells it or we do.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use crate::workspace_fixture::{Fixture, apply, codes, contents, diff, listed, run};

type Make = fn() -> Fixture;

/// Where a workspace may be, and who tells what changed there.
const PLACES: [(Make, &str); 3] = [
    (Fixture::plain, "before-images"),
    (Fixture::repository, "git"),
    (Fixture::subdirectory, "git"),
];

/// Prepares a workspace, changes it, and wants `expect` listed. The patch must
/// turn a copy of the start into the end.
fn check(before: fn(&Fixture), change: fn(&Fixture), expect: &[&str]) {
    for (make, source) in PLACES {
        let fixture = make();
        before(&fixture);
        let start = fixture.keep("start");
        let baseline = fixture.take();
        change(&fixture);
        let changes = diff(&baseline);
        assert_eq!(changes.source, source);
        assert_eq!(listed(&changes), expect, "{source}");
        assert_eq!(codes(&changes), Vec::<&str>::new(), "{source}");
        apply(&start, &changes.patch);
        let patch = String::from_utf8_lossy(&changes.patch);
        assert_eq!(
            contents(&start),
            contents(&fixture.root),
            "{source}:\n{patch}"
        );
        assert_eq!(changes, diff(&baseline), "asking again gives the same");
    }
}

#[test]
fn nothing_changed() {
    check(|at| at.write("a", "x\n"), |_| {}, &[]);
    check(|_| {}, |_| {}, &[]);
}

#[test]
fn text_changes_in_several_places() {
    check(
        |at| {
            at.write(
                "a.txt",
                (0..60).map(|n| format!("line {n}\n")).collect::<String>(),
            )
        },
        |at| {
            let text = fs::read_to_string(at.path("a.txt")).unwrap();
            let text = text.replace("line 3\n", "three\n").replace("line 50\n", "");
            at.write("a.txt", format!("first\n{text}"));
        },
        &["modified a.txt +2 -2"],
    );
}

#[test]
fn the_last_line_without_a_newline() {
    for (old, new) in [
        ("a\nb", "a\nc"),
        ("a\nb\n", "a\nb"),
        ("a\nb", "a\nb\n"),
        ("", "a"),
        ("a", ""),
    ] {
        for (make, _) in PLACES {
            let at = make();
            at.write("f", old);
            let start = at.keep("start");
            let baseline = at.take();
            at.write("f", new);
            apply(&start, &diff(&baseline).patch);
            assert_eq!(contents(&start), contents(&at.root), "{old:?} to {new:?}");
        }
    }
}

#[test]
fn new_deleted_and_empty_files() {
    check(
        |at| {
            at.write("gone.txt", "1\n2\n");
            at.write("gone-empty", "");
            at.write("dir/stays", "");
        },
        |at| {
            fs::remove_file(at.path("gone.txt")).unwrap();
            fs::remove_file(at.path("gone-empty")).unwrap();
            at.write("new/deep/er.txt", "1\n2\n3\n");
            at.write("new-empty", "");
        },
        &[
            "deleted gone-empty +0 -0",
            "deleted gone.txt +0 -2",
            "added new-empty +0 -0",
            "added new/deep/er.txt +3 -0",
        ],
    );
}

#[test]
fn a_rename_is_a_removal_and_an_addition() {
    check(
        |at| at.write("old name", "same\n"),
        |at| fs::rename(at.path("old name"), at.path("new name")).unwrap(),
        &["added new name +1 -0", "deleted old name +0 -1"],
    );
}

#[test]
fn modes() {
    check(
        |at| {
            at.write("run.sh", "#!/bin/sh\n");
            at.write("both.sh", "old\n");
            at.write("off.sh", "x\n");
            at.chmod("off.sh", 0o755);
        },
        |at| {
            at.chmod("run.sh", 0o755);
            at.write("both.sh", "new\n");
            at.chmod("both.sh", 0o755);
            at.chmod("off.sh", 0o644);
            at.write("tool", "#!/bin/sh\n");
            at.chmod("tool", 0o755);
        },
        &[
            "modified both.sh +1 -1",
            "modified off.sh +0 -0",
            "modified run.sh +0 -0",
            "added tool +1 -0",
        ],
    );
}

#[test]
fn links() {
    check(
        |at| {
            at.write("file", "text\n");
            symlink("file", at.path("moves")).unwrap();
            symlink("/nowhere", at.path("goes")).unwrap();
        },
        |at| {
            fs::remove_file(at.path("moves")).unwrap();
            symlink("elsewhere", at.path("moves")).unwrap();
            fs::remove_file(at.path("goes")).unwrap();
            fs::remove_file(at.path("file")).unwrap();
            symlink("moves", at.path("file")).unwrap();
        },
        &[
            "modified file +1 -1",
            "deleted goes +0 -1",
            "modified moves +1 -1",
        ],
    );
}

#[test]
fn odd_names() {
    check(
        |at| {
            at.write("with space.txt", "a\n");
            at.write("ünï/日本.txt", "a\n");
            at.write("-dash", "a\n");
        },
        |at| {
            at.write("with space.txt", "b\n");
            at.write("ünï/日本.txt", "b\n");
            at.write("-dash", "b\n");
            at.write("quo\"te\\and\ttab", "n\n");
            at.write("two\nlines", "n\n");
            at.write(" lead and trail ", "n\n");
            at.write(":(top)magic*?[x]", "n\n");
        },
        &[
            "added  lead and trail  +1 -0",
            "modified -dash +1 -1",
            "added :(top)magic*?[x] +1 -0",
            "added quo\"te\\and\ttab +1 -0",
            "added two\nlines +1 -0",
            "modified with space.txt +1 -1",
            "modified ünï/日本.txt +1 -1",
        ],
    );
}

#[test]
fn a_name_that_is_no_utf8() {
    for (make, _) in PLACES {
        let at = make();
        at.write("a", "a\n");
        let start = at.keep("start");
        let baseline = at.take();
        at.write(std::ffi::OsStr::from_bytes(b"latin-\xe9.txt"), b"caf\xe9\n");
        let changes = diff(&baseline);
        assert_eq!(listed(&changes), ["added latin-\u{fffd}.txt +1 -0"]);
        apply(&start, &changes.patch);
        assert_eq!(contents(&start), contents(&at.root));
    }
}

#[test]
fn a_file_becomes_a_directory_and_back() {
    check(
        |at| {
            at.write("flat", "x\n");
            at.write("tree/leaf", "y\n");
        },
        |at| {
            fs::remove_file(at.path("flat")).unwrap();
            at.write("flat/inner", "x\n");
            fs::remove_dir_all(at.path("tree")).unwrap();
            at.write("tree", "y\n");
        },
        &[
            "deleted flat +0 -1",
            "added flat/inner +1 -0",
            "added tree +1 -0",
            "deleted tree/leaf +0 -1",
        ],
    );
}

#[test]
fn ignored_files_are_nobodys_change() {
    check(
        |at| {
            at.write(".gitignore", "*.log\n/build/\n");
        },
        |at| at.write("src/.gitignore", "!x\n"),
        &["added src/.gitignore +1 -0"],
    );
    for (make, _) in PLACES {
        let at = make();
        at.write(".gitignore", "*.log\n/build/\n");
        let baseline = at.take();
        at.write("x.log", "noise\n");
        at.write("build/out", "noise\n");
        assert_eq!(listed(&diff(&baseline)), Vec::<String>::new());
    }
}

#[test]
fn the_run_directory_is_never_in_the_diff() {
    for (make, _) in PLACES {
        let at = make();
        at.write("a", "a\n");
        at.write(".agent/old", "x\n");
        let mut settings = at.settings();
        settings.exclude = vec![
            at.path(".agent/runs"),
            "session file*.jsonl".into(),
            at.beside("scratch"),
        ];
        let baseline = at.take_with(&settings);
        at.write(".agent/runs/1/events.jsonl", "{}\n");
        at.write("session file*.jsonl", "{}\n");
        at.write(".agent/old", "y\n");
        at.write("a", "b\n");
        let before = [(at.path(".agent/runs/1/events.jsonl"), None)];
        let cancel = tokio_util::sync::CancellationToken::new();
        let changes = crate::workspace_fixture::wait(baseline.diff(&before, &cancel)).unwrap();
        assert_eq!(
            listed(&changes),
            ["modified .agent/old +1 -1", "modified a +1 -1"]
        );
    }
}

#[test]
fn patches_apply_with_patch_too() {
    if std::path::Path::new("/usr/bin/patch").exists() {
        for (make, _) in PLACES {
            let at = make();
            at.write("with space", "1\n2\n3\n");
            at.write("gone", "x\n");
            let start = at.keep("start");
            let baseline = at.take();
            at.write("with space", "1\n2\nthree\n");
            at.write("dir/new", "n\n");
            fs::remove_file(at.path("gone")).unwrap();
            let file = at.beside("p");
            fs::write(&file, diff(&baseline).patch).unwrap();
            run(
                "patch",
                &[
                    "-s".as_ref(),
                    "-p1".as_ref(),
                    "-i".as_ref(),
                    file.as_os_str(),
                ],
                &start,
            );
            assert_eq!(contents(&start), contents(&at.root));
        }
    }
}
