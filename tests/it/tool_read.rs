//! The `read` tool.

use std::io::Write as _;

use agent::message::Content;
use serde_json::json;

use crate::tool_scene::{Scene, text};

fn numbered(lines: usize) -> String {
    (1..=lines).map(|line| format!("line {line}\n")).collect()
}

#[tokio::test]
async fn text_comes_as_it_is() {
    let scene = Scene::new();
    scene.put("a.txt", "one\r\n\x1b[31mtwo\x1b[0m\nthree");
    let output = scene.call("read", json!({"path": "a.txt"})).await;
    assert_eq!(text(&output), "one\ntwo\nthree");
    assert_eq!(
        (output.summary.as_str(), output.truncated),
        ("3 lines", false)
    );
    scene.put("empty", "");
    assert_eq!(
        scene.ok("read", json!({"path": "empty"})).await,
        "(the file is empty)"
    );
    scene.put("latin", b"caf\xe9\n");
    assert_eq!(
        scene.ok("read", json!({"path": "latin"})).await,
        "caf\u{fffd}\n"
    );
}

#[tokio::test]
async fn offset_and_limit_choose_lines() {
    let scene = Scene::new();
    scene.put("a", numbered(10));
    let check = async |args: serde_json::Value, expect: &str| {
        assert_eq!(scene.ok("read", args).await, expect);
    };
    check(json!({"path": "a", "offset": 9}), "line 9\nline 10\n").await;
    check(
        json!({"path": "a", "offset": 2, "limit": 2}),
        "line 2\nline 3\n\n[lines 2-3 of 10 are shown; go on with offset=4]",
    )
    .await;
    check(json!({"path": "a", "limit": 10}), &numbered(10)).await;
    for offset in [11, 5000] {
        let why = scene
            .refused("read", json!({"path": "a", "offset": offset}))
            .await;
        assert_eq!(
            why,
            format!("offset {offset} is beyond the end of `a`, which has 10 lines")
        );
    }
}

#[tokio::test]
async fn long_files_come_in_pages() {
    let scene = Scene::new();
    scene.put("lines", numbered(4500));
    let first = scene.call("read", json!({"path": "lines"})).await;
    assert!(first.truncated);
    assert!(
        text(&first)
            .ends_with("line 2000\n\n[lines 1-2000 of 4500 are shown; go on with offset=2001]")
    );
    let last = scene
        .ok("read", json!({"path": "lines", "offset": 4001}))
        .await;
    assert!(last.starts_with("line 4001\n") && last.ends_with("line 4500\n"));

    scene.put("wide", format!("{}\n", "x".repeat(1023)).repeat(60));
    let wide = scene.ok("read", json!({"path": "wide"})).await;
    assert!(
        wide.ends_with("[lines 1-50 of 60 are shown; go on with offset=51]"),
        "{wide}"
    );
}

#[tokio::test]
async fn a_giant_line_is_cut_and_passed() {
    let scene = Scene::new();
    scene.put("giant", format!("short\n{}\nlast\n", "y".repeat(200_000)));
    let first = scene.ok("read", json!({"path": "giant"})).await;
    assert_eq!(
        first,
        "short\n\n[lines 1-1 of 3 are shown; go on with offset=2]"
    );
    let second = scene
        .ok("read", json!({"path": "giant", "offset": 2}))
        .await;
    assert!(second.starts_with("yyyy") && second.len() < 52_000);
    assert!(second.ends_with(
        "[line 2 is longer than 50 KiB and was cut; lines 2-2 of 3 are shown; go on with offset=3]"
    ));
    assert_eq!(
        scene
            .ok("read", json!({"path": "giant", "offset": 3}))
            .await,
        "last\n"
    );
}

#[tokio::test]
async fn images_come_as_images() {
    let scene = Scene::new();
    let check = async |name: &str, bytes: &[u8], mime: &str| {
        scene.put(name, bytes);
        let output = scene.call("read", json!({"path": name})).await;
        let Some(Content::Image(image)) = output.content.last() else {
            panic!("{name}: {output:?}");
        };
        assert_eq!(image.mime_type, mime);
        assert!(!image.data.is_empty());
    };
    check("a.bin", b"\x89PNG\r\n\x1a\nrest", "image/png").await;
    check("b", b"\xff\xd8\xff\xe0rest", "image/jpeg").await;
    check("c", b"GIF89a..", "image/gif").await;
    check("d", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp").await;

    let mut large = b"\x89PNG\r\n\x1a\n".to_vec();
    large.resize(5 * 1024 * 1024 + 1, 1);
    scene.put("large.png", large);
    assert!(
        scene
            .refused("read", json!({"path": "large.png"}))
            .await
            .contains("larger than 5 MiB")
    );
}

#[tokio::test]
async fn what_is_no_text_file_is_refused_at_once() {
    let scene = Scene::new();
    scene.put("binary", b"abc\0def");
    scene.put("doc.pdf", b"%PDF-1.7\n");
    for name in ["binary", "doc.pdf"] {
        assert!(
            scene
                .refused("read", json!({"path": name}))
                .await
                .contains("binary"),
            "{name}"
        );
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    assert_eq!(
        scene.refused("read", json!({"path": "fifo"})).await,
        "`fifo` is a FIFO, not a regular file"
    );
    let _listener = std::os::unix::net::UnixListener::bind(scene.path("socket")).unwrap();
    assert!(
        scene
            .refused("read", json!({"path": "socket"}))
            .await
            .contains("is a socket")
    );
    for device in ["/dev/zero", "/dev/tty"] {
        assert!(
            scene
                .refused("read", json!({"path": device}))
                .await
                .contains("is a device")
        );
    }
    std::os::unix::fs::symlink("fifo", scene.path("link")).unwrap();
    assert!(
        scene
            .refused("read", json!({"path": "link"}))
            .await
            .contains("is a FIFO")
    );
}

#[tokio::test]
async fn giant_sparse_files_are_not_read() {
    let scene = Scene::new();
    let sparse = std::fs::File::create(scene.path("sparse")).unwrap();
    // The largest that common file systems allow.
    sparse.set_len(1 << 40).unwrap();
    assert!(
        scene
            .refused("read", json!({"path": "sparse"}))
            .await
            .contains("binary")
    );

    let mut log = std::fs::File::create(scene.path("log")).unwrap();
    log.write_all(numbered(3000).as_bytes()).unwrap();
    log.set_len(1 << 40).unwrap();
    let page = scene.ok("read", json!({"path": "log", "limit": 2})).await;
    assert_eq!(
        page,
        "line 1\nline 2\n\n[lines 1-2 are shown; go on with offset=3]"
    );
}

#[tokio::test]
async fn missing_files_suggest_near_names() {
    let scene = Scene::new();
    scene
        .put("src/main.rs", "")
        .put("src/mail.rs", "")
        .put("README.md", "");
    let check = async |path: &str, expect: &str| {
        assert_eq!(scene.refused("read", json!({"path": path})).await, expect);
    };
    check(
        "readme.md",
        "`readme.md` does not exist; did you mean `README.md`?",
    )
    .await;
    check(
        "src/man.rs",
        "`src/man.rs` does not exist; did you mean `src/main.rs`, `src/mail.rs`?",
    )
    .await;
    check("src/zzz", "`src/zzz` does not exist").await;
    check(
        "nowhere/a",
        "`nowhere/a` does not exist, nor does its directory `nowhere`",
    )
    .await;
    std::os::unix::fs::symlink("gone", scene.path("dangling")).unwrap();
    check(
        "dangling",
        "`dangling` is a symbolic link whose target does not exist",
    )
    .await;
    std::os::unix::fs::symlink("loop", scene.path("loop")).unwrap();
    check("loop", "cannot open `loop`: its symbolic links form a loop").await;
    check(
        "README.md/x",
        "cannot open `README.md/x`: a part of the path is not a directory",
    )
    .await;
}

#[tokio::test]
async fn directories_are_listed() {
    let scene = Scene::new();
    scene.put("d/b", "").put("d/a/x", "");
    assert_eq!(scene.ok("read", json!({"path": "d"})).await, "a/\nb");
}

/// A file of another user that can be linked to: one made so, or one that the
/// system has under several names.
fn of_somebody_else(scene: &Scene) -> std::path::PathBuf {
    use std::os::unix::fs::{MetadataExt, chown};
    scene.put("foreign", "x\n");
    std::fs::hard_link(scene.path("foreign"), scene.path("twin")).expect("a link");
    if chown(scene.path("foreign"), Some(12_345), None).is_ok() {
        return scene.path("foreign");
    }
    let mine = std::fs::metadata(scene.path("foreign"))
        .expect("a file")
        .uid();
    let linked = |path: &std::path::Path| {
        path.symlink_metadata()
            .is_ok_and(|data| data.is_file() && data.nlink() > 1 && data.uid() != mine)
    };
    [
        "/usr/bin",
        "/usr/sbin",
        "/usr/lib/git-core",
        "/usr/share/zoneinfo",
    ]
    .iter()
    .filter_map(|folder| std::fs::read_dir(folder).ok())
    .flatten()
    .filter_map(|entry| Some(entry.ok()?.path()))
    .find(|path| linked(path))
    .expect("the system has a file with two names")
}

#[tokio::test]
async fn a_hard_link_to_a_file_of_another_user_is_refused() {
    let scene = Scene::new();
    let foreign = of_somebody_else(&scene);
    let why = scene.refused("read", json!({"path": foreign})).await;
    assert!(why.contains("belongs to another user"), "{why}");
    let args = json!({"path": foreign, "pattern": "x"});
    let why = scene.refused("grep", args).await;
    assert!(why.contains("belongs to another user"), "{why}");
    scene.put("own", "x\n");
    std::fs::hard_link(scene.path("own"), scene.path("own twin")).unwrap();
    assert_eq!(scene.ok("read", json!({"path": "own"})).await, "x\n");
}
