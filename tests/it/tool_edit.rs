//! The `edit` tool.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use serde_json::{Value, json};

use crate::tool_scene::Scene;

fn edits(path: &str, pairs: &[(&str, &str)]) -> Value {
    let edits: Vec<Value> = pairs
        .iter()
        .map(|(old, new)| json!({"oldText": old, "newText": new}))
        .collect();
    json!({"path": path, "edits": edits})
}

/// Edits a file with the content `before` that was read.
async fn edited(before: impl AsRef<[u8]>, pairs: &[(&str, &str)]) -> Result<Vec<u8>, String> {
    let scene = Scene::new();
    scene.put("f", before.as_ref());
    scene.ok("read", json!({"path": "f"})).await;
    let output = scene.call("edit", edits("f", pairs)).await;
    let after = scene.bytes("f");
    if output.failure.is_some() {
        assert_eq!(after, before.as_ref(), "a refused edit changes nothing");
        return Err(crate::tool_scene::text(&output));
    }
    Ok(after)
}

async fn check(before: &str, pairs: &[(&str, &str)], expect: &str) {
    let after = edited(before, pairs).await.unwrap();
    assert_eq!(
        String::from_utf8(after).unwrap(),
        expect,
        "{before:?} {pairs:?}"
    );
}

async fn refused(before: &str, pairs: &[(&str, &str)], expect: &str) {
    let why = edited(before, pairs).await.unwrap_err();
    assert_eq!(why, format!("`f`: {expect}"), "{before:?} {pairs:?}");
}

#[tokio::test]
async fn exact_texts_are_replaced() {
    check("a b c\n", &[("b", "x")], "a x c\n").await;
    check("a\nb\nc", &[("b\nc", "x")], "a\nx").await;
    check("a\nb\nc\n", &[("c", "3"), ("a", "1")], "1\nb\n3\n").await;
    check("ab", &[("a", "b"), ("b", "a")], "ba").await;
    check("one\ntwo\n", &[("one\n", "")], "two\n").await;
    check("é漢\n", &[("漢", "x")], "éx\n").await;
}

#[tokio::test]
async fn line_endings_and_marks_stay() {
    check(
        "a\r\nb\r\nc\r\n",
        &[("a\nb", "x\ny\nz")],
        "x\r\ny\r\nz\r\nc\r\n",
    )
    .await;
    check("a\r\nb\r\n", &[("a\r\nb\r\n", "x\r\n")], "x\r\n").await;
    check("a\r\nb\r\nc\r\n", &[("b", "b\nB")], "a\r\nb\r\nB\r\nc\r\n").await;
    check("a\nb\n", &[("a", "x\r\ny")], "x\ny\nb\n").await;
    // Mixed: every other byte stays, and what is matched decides.
    check("a\r\nb\nc\r\nd\n", &[("b\nc", "x\ny")], "a\r\nx\ny\r\nd\n").await;
    check("\u{feff}a\nb\n", &[("a", "x")], "\u{feff}x\nb\n").await;
    check(
        "\u{feff}a\r\nb\r\n",
        &[("\u{feff}a\n", "x\n")],
        "\u{feff}x\r\nb\r\n",
    )
    .await;
    let latin = edited(b"caf\xe9\nx\n", &[("x", "y")]).await.unwrap();
    assert_eq!(latin, b"caf\xe9\ny\n");
}

#[tokio::test]
async fn typography_and_trailing_spaces_are_tolerated() {
    check(
        "let a = 1;  \nlet b;\n",
        &[("let a = 1;\nlet b;", "x")],
        "x\n",
    )
    .await;
    check(
        "say “hi” – now\nother  \n",
        &[("say \"hi\" - now", "said")],
        "said\nother  \n",
    )
    .await;
    check("it’s\u{a0}so\n", &[("it's so", "x")], "x\n").await;
    check("a\n", &[("a  ", "b")], "b\n").await;
    check("x “y” z“\n", &[("\"y\"", "q")], "x q z“\n").await;
    check("a “b”  \r\nc\r\n", &[("a \"b\"\nc", "1\n2")], "1\r\n2\r\n").await;
    // Exact comes first, so a plain quote does not clash with a curly one.
    check("\"a\" “a”\n", &[("\"a\"", "x")], "x “a”\n").await;
    check("bell\u{7}here\n", &[("bellhere", "x")], "x\n").await;
}

#[tokio::test]
async fn refusals_say_exactly_why() {
    refused("a\nb\na\n", &[("a", "x")], "edits[0]: oldText is there more than once (lines 1, 3); add surrounding lines to make it unique; no edit was made").await;
    refused("aaa", &[("aa", "x")], "edits[0]: oldText is there more than once (lines 1, 1); add surrounding lines to make it unique; no edit was made").await;
    refused("let total = sum(1);\n", &[("let totals = sum(1);", "x")], "edits[0]: oldText is not in the file; the nearest is line 1: `let total = sum(1);`; no edit was made").await;
    refused("  first\nsecond\n", &[("first\nother", "x")], "edits[0]: oldText is not in the file, but its first line is line 1; the lines after it differ; no edit was made").await;
    refused(
        "abc\n",
        &[("zzz", "x")],
        "edits[0]: oldText is not in the file; no edit was made",
    )
    .await;
    refused(
        "foobar\n",
        &[("foo ", "x")],
        "edits[0]: oldText is not in the file; no edit was made",
    )
    .await;
    refused(
        "abc\n",
        &[("ab", "x"), ("bc", "y")],
        "edits[0] and edits[1] overlap; join them into one; no edit was made",
    )
    .await;
    refused(
        "abc\n",
        &[("a", "a")],
        "edits[0]: newText is the same as oldText; no edit was made",
    )
    .await;
    refused(
        "abc\n",
        &[("a", "x"), ("", "y")],
        "edits[1]: oldText is empty; no edit was made",
    )
    .await;
    refused(
        "abc",
        &[("ab", "a"), ("c", "bc")],
        "the edits change nothing",
    )
    .await;
    refused("abc\n", &[], "there are no edits").await;
}

#[tokio::test]
async fn the_result_tells_the_difference() {
    let scene = Scene::new();
    scene.put("src/a", "one\ntwo\nthree\n");
    scene.ok("read", json!({"path": "src/a"})).await;
    let output = scene
        .call("edit", edits("src/a", &[("two", "2\n2b")]))
        .await;
    assert_eq!(
        crate::tool_scene::text(&output),
        "made 1 edit in `src/a` (+2 -1)"
    );
    assert_eq!(output.summary, "edited src/a (+2 -1)");
    assert_eq!(output.files, [scene.path("src/a")]);
    let details = output.details.unwrap();
    assert_eq!(
        details["diff"],
        "--- a/src/a\n+++ b/src/a\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n+2b\n three\n"
    );
    assert_eq!(
        (&details["additions"], &details["deletions"]),
        (&json!(2), &json!(1))
    );
}

#[tokio::test]
async fn a_file_must_be_read_first_and_unchanged() {
    let scene = Scene::new();
    scene.put("a", "one\n");
    let edit = edits("a", &[("one", "two")]);
    assert_eq!(
        scene.refused("edit", edit.clone()).await,
        "`a` has not been read in this session; read it first"
    );
    scene.ok("read", json!({"path": "a"})).await;
    // The same length within one tick of the file clock is a change too.
    scene.put("a", "onE\n");
    assert_eq!(
        scene.refused("edit", edit.clone()).await,
        "`a` has changed since it was read; read it again"
    );
    scene.put("a", "one\n");
    scene.ok("edit", edit).await;
    scene.ok("edit", edits("a", &[("two", "three")])).await;
    assert_eq!(scene.bytes("a"), b"three\n");
}

#[tokio::test]
async fn mode_owner_and_links_stay() {
    let scene = Scene::new();
    scene.put("run.sh", "echo a\n");
    let path = scene.path("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o4751)).unwrap();
    let before = path.metadata().unwrap();
    std::os::unix::fs::symlink("run.sh", scene.path("link")).unwrap();
    scene.ok("read", json!({"path": "run.sh"})).await;
    let output = scene.call("edit", edits("link", &[("a", "b")])).await;
    assert_eq!(output.failure, None);
    assert_eq!(output.files, std::slice::from_ref(&path));
    assert_eq!(scene.bytes("run.sh"), b"echo b\n");
    assert!(scene.path("link").symlink_metadata().unwrap().is_symlink());
    let after = path.metadata().unwrap();
    assert_eq!(
        (after.mode(), after.uid(), after.gid()),
        (before.mode(), before.uid(), before.gid())
    );
    let names: Vec<_> = scene
        .root()
        .read_dir()
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names.len(), 2, "nothing else is left behind: {names:?}");
}

#[tokio::test]
async fn what_cannot_be_edited_is_refused() {
    let scene = Scene::new();
    scene
        .put("a", "one\n")
        .put("main.rs", "x\n")
        .put("bin", b"one\0two");
    std::fs::hard_link(scene.path("a"), scene.path("twin")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let check = async |path: &str, expect: &str| {
        let why = scene.refused("edit", edits(path, &[("one", "1")])).await;
        assert!(why.contains(expect), "{why}");
    };
    check("a", "has 2 hard links").await;
    check("fifo", "is a FIFO").await;
    check(".", "is a directory").await;
    check("/dev/null", "is a device").await;
    check("mian.rs", "did you mean `main.rs`?; use write").await;
    check("bin", "has not been read").await;
    assert_eq!(scene.bytes("twin"), b"one\n");
    let large = std::fs::File::create(scene.path("large")).unwrap();
    large.set_len(1 << 40).unwrap();
    check("large", "larger than 16 MiB").await;
}

proptest::proptest! {
    /// Whatever the file is made of, the bytes around the one match stay.
    #[test]
    fn only_the_matched_bytes_change(
        before in proptest::collection::vec(proptest::sample::select(b"ab \t\r\n\xc3\xff\x07".to_vec()), 0..60),
        after in proptest::collection::vec(proptest::sample::select(b"ab \t\r\n\xa9\xff".to_vec()), 0..60),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let content = [before.as_slice(), b"[the one]", &after].concat();
        let expect = [before.as_slice(), b"[another]", &after].concat();
        let got = runtime.block_on(edited(&content, &[("[the one]", "[another]")]));
        proptest::prop_assert_eq!(got, Ok(expect));
    }
}
