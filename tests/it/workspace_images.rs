//! Workspaces without a repository: bounds, and the images that tools kept.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use agent::workspace::{Baseline, Changes};
use tokio_util::sync::CancellationToken;

use crate::workspace_fixture::{Fixture, apply, codes, contents, diff, listed, wait};

fn diff_with(baseline: &Baseline, images: &[(PathBuf, Option<Vec<u8>>)]) -> Changes {
    wait(baseline.diff(images, &CancellationToken::new())).unwrap()
}

#[test]
fn binary_files_are_listed_and_left_out_of_the_patch() {
    let at = Fixture::plain();
    at.write("b.bin", [0, 1]);
    at.write("text", "1\n");
    let start = at.keep("start");
    let baseline = at.take();
    at.write("b.bin", [0, 2]);
    at.write("text", "2\n");
    let changes = diff(&baseline);
    assert_eq!(
        listed(&changes),
        ["modified b.bin +0 -0", "modified text +1 -1"]
    );
    assert_eq!(codes(&changes), ["patch_incomplete"]);
    let patch = String::from_utf8(changes.patch.clone()).unwrap();
    assert!(
        patch.starts_with("Binary files a/b.bin and b/b.bin differ\n"),
        "{patch}"
    );
    apply(&start, &changes.patch);
    assert_eq!(fs::read(start.join("text")).unwrap(), b"2\n");
    assert_eq!(fs::read(start.join("b.bin")).unwrap(), [0, 1]);

    at.write("text", "1\n");
    assert_eq!(
        diff(&baseline).patch,
        b"",
        "a patch of nothing but binary files is empty"
    );
}

#[test]
fn the_exact_patch() {
    let at = Fixture::plain();
    at.write("my file", "1\n2\n3\n4\n5\n6\n7\n8\n9");
    let baseline = at.take();
    at.write("my file", "1\n2\n3\n4\nfive\n6\n7\n8\n9\n");
    at.write("new", "x\n");
    at.chmod("my file", 0o755);
    let expect = "\
diff --git a/my file b/my file
old mode 100644
new mode 100755
--- a/my file\t
+++ b/my file\t
@@ -2,8 +2,8 @@
 2
 3
 4
-5
+five
 6
 7
 8
-9
\\ No newline at end of file
+9
diff --git a/new b/new
new file mode 100644
--- /dev/null
+++ b/new
@@ -0,0 +1,1 @@
+x
";
    assert_eq!(String::from_utf8(diff(&baseline).patch).unwrap(), expect);
}

#[test]
fn a_large_file_is_noticed_without_its_content() {
    let at = Fixture::plain();
    let large = fs::File::create(at.path("large")).unwrap();
    large.set_len(40 << 20).unwrap();
    at.write("small", "1\n");
    let baseline = at.take();
    assert_eq!(baseline.warnings()[0].code, "baseline_incomplete");
    assert_eq!(listed(&diff(&baseline)), Vec::<String>::new());
    large.set_len(41 << 20).unwrap();
    at.write("small", "2\n");
    let changes = diff(&baseline);
    assert_eq!(
        listed(&changes),
        ["modified large +0 -0", "modified small +1 -1"]
    );
    assert_eq!(codes(&changes), ["baseline_incomplete", "patch_incomplete"]);
}

#[test]
fn beyond_the_bound_the_tools_images_count() {
    let at = Fixture::plain();
    for n in 0..2_010 {
        at.write(format!("f{n:04}"), "old\n");
    }
    let baseline = at.take();
    assert_eq!(baseline.warnings()[0].code, "baseline_incomplete");
    let mut images = Vec::new();
    for n in 0..2_010 {
        let path = at.path(format!("f{n:04}"));
        fs::write(&path, "new\n").unwrap();
        images.push((path, Some(b"old\n".to_vec())));
    }
    at.write("added", "x\n");
    let changes = diff_with(&baseline, &images);
    assert_eq!(changes.files.len(), 2_011);
    assert!(
        changes.files.iter().all(|file| file.additions == 1),
        "each has its content"
    );
    assert_eq!(codes(&changes), ["baseline_incomplete"]);
}

#[test]
fn images_never_win_over_the_baseline_nor_reach_outside() {
    let at = Fixture::plain();
    at.write("a", "start\n");
    at.write(".gitignore", "ignored\n");
    at.write("ignored", "start\n");
    let start = at.keep("start");
    let baseline = at.take();
    at.write("a", "end\n");
    at.write("ignored", "end\n");
    fs::write(at.beside("outside"), "end\n").unwrap();
    let images = [
        (at.path("a"), Some(b"middle\n".to_vec())),
        (at.path("ignored"), Some(b"start\n".to_vec())),
        (at.beside("outside"), Some(b"start\n".to_vec())),
        (at.path("../outside"), None),
        (at.path("never-there"), None),
    ];
    let changes = diff_with(&baseline, &images);
    assert_eq!(
        listed(&changes),
        ["modified a +1 -1", "modified ignored +1 -1"]
    );
    apply(&start, &changes.patch);
    assert_eq!(contents(&start), contents(&at.root));
}

#[test]
fn a_directory_that_became_a_link_is_not_followed() {
    let at = Fixture::plain();
    at.write("dir/file", "mine\n");
    let elsewhere = at.beside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("file"), "private\n").unwrap();
    let baseline = at.take();
    fs::remove_dir_all(at.path("dir")).unwrap();
    symlink(&elsewhere, at.path("dir")).unwrap();
    let changes = diff(&baseline);
    assert_eq!(
        listed(&changes),
        ["added dir +1 -0", "deleted dir/file +0 -1"]
    );
    assert!(
        !String::from_utf8(changes.patch)
            .unwrap()
            .contains("private")
    );
}

#[test]
fn pipes_are_not_read() {
    let at = Fixture::plain();
    at.write("file", "x\n");
    let baseline = at.take();
    fs::remove_file(at.path("file")).unwrap();
    for name in ["file", "other"] {
        crate::workspace_fixture::run("mkfifo", &[name], &at.root);
    }
    assert_eq!(listed(&diff(&baseline)), ["deleted file +0 -1"]);
}

#[test]
fn two_large_unlike_files_end_in_time() {
    let at = Fixture::plain();
    let text = |salt: u64| {
        (0..60_000u64)
            .map(|n| format!("{}\n", (n * 7_919 + salt) % 10_007))
            .collect::<String>()
    };
    at.write("f", text(0));
    let start = at.keep("start");
    let baseline = at.take();
    at.write("f", text(5_003));
    let changes = diff(&baseline);
    apply(&start, &changes.patch);
    assert_eq!(contents(&start), contents(&at.root));
}
