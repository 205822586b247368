//! The `write` tool and the memory of what a session read and changed.

use std::os::unix::fs::PermissionsExt;

use agent::tool::{BeforeImage, FileLedger};
use serde_json::json;

use crate::tool_scene::{Scene, text};

#[tokio::test]
async fn new_files_come_with_their_directories() {
    let scene = Scene::new();
    let output = scene
        .call(
            "write",
            json!({"path": "x/y/new.txt", "content": "one\ntwo\n"}),
        )
        .await;
    assert_eq!(text(&output), "created `x/y/new.txt` (2 lines)");
    assert_eq!(output.summary, "created x/y/new.txt (+2 -0)");
    assert_eq!(output.files, [scene.path("x/y/new.txt")]);
    assert_eq!(
        output.details.unwrap()["diff"],
        "--- /dev/null\n+++ b/x/y/new.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    );
    assert_eq!(scene.bytes("x/y/new.txt"), b"one\ntwo\n");
    let mode = scene
        .path("x/y/new.txt")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o600, 0o600);
    // An ordinary new file has the mode that the mask gives any new file.
    scene.put("ordinary", "");
    assert_eq!(
        mode,
        scene
            .path("ordinary")
            .metadata()
            .unwrap()
            .permissions()
            .mode()
    );
}

#[tokio::test]
async fn existing_files_must_be_known() {
    let scene = Scene::new();
    scene.put("a", "old\n");
    std::fs::set_permissions(scene.path("a"), std::fs::Permissions::from_mode(0o640)).unwrap();
    let write = |content: &str| json!({"path": "a", "content": content});
    assert!(
        scene
            .refused("write", write("new"))
            .await
            .contains("has not been read")
    );
    scene.ok("read", json!({"path": "a"})).await;
    scene.put("a", "other\n");
    assert!(
        scene
            .refused("write", write("new"))
            .await
            .contains("has changed since")
    );
    assert_eq!(scene.bytes("a"), b"other\n");
    scene.ok("read", json!({"path": "a"})).await;
    assert_eq!(
        scene.ok("write", write("new")).await,
        "replaced `a` (1 lines)"
    );
    assert_eq!(
        scene.ok("write", write("newer")).await,
        "replaced `a` (1 lines)"
    );
    assert_eq!(
        scene.ok("write", write("newer")).await,
        "`a` has this content already"
    );
    let mode = scene.path("a").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    std::fs::remove_file(scene.path("a")).unwrap();
    assert_eq!(
        scene.ok("write", write("again")).await,
        "created `a` (1 lines)"
    );
}

#[tokio::test]
async fn a_part_that_was_read_counts_and_a_touch_is_no_change() {
    let scene = Scene::new();
    scene.put("a", "1\n2\n3\n");
    scene
        .ok("read", json!({"path": "a", "offset": 2, "limit": 1}))
        .await;
    scene.put("a", "1\n2\n3\n");
    scene
        .ok("write", json!({"path": "a", "content": "x"}))
        .await;
}

#[tokio::test]
async fn what_cannot_be_written_is_refused() {
    let scene = Scene::new();
    scene.put("a", "one\n").put("file", "");
    std::fs::hard_link(scene.path("a"), scene.path("twin")).unwrap();
    std::os::unix::fs::symlink("gone", scene.path("dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, scene.path("fifo"), rustix::fs::Mode::RUSR).unwrap();
    let check = async |path: &str, expect: &str| {
        let why = scene
            .refused("write", json!({"path": path, "content": "x"}))
            .await;
        assert!(why.contains(expect), "{why}");
    };
    check("a", "hard links").await;
    check("dangling", "symbolic link whose target does not exist").await;
    check("fifo", "is a FIFO").await;
    check(".", "is a directory").await;
    check("new/", "names a directory").await;
    check("/dev/full", "is a device").await;
    check("file/below", "not a directory").await;
    check("/proc/none/x", "cannot write").await;
    assert!(!scene.path("gone").exists());
}

#[tokio::test]
async fn links_are_written_through() {
    let scene = Scene::new();
    std::fs::create_dir(scene.path("real")).unwrap();
    std::os::unix::fs::symlink("real", scene.path("dir")).unwrap();
    scene
        .ok("write", json!({"path": "dir/a", "content": "1"}))
        .await;
    assert_eq!(scene.bytes("real/a"), b"1");
    // The same file by its other name is known.
    scene
        .ok("write", json!({"path": "real/a", "content": "2"}))
        .await;
    std::os::unix::fs::symlink("real/a", scene.path("link")).unwrap();
    scene
        .ok("write", json!({"path": "link", "content": "3"}))
        .await;
    assert_eq!(scene.bytes("real/a"), b"3");
    assert!(scene.path("link").symlink_metadata().unwrap().is_symlink());
}

#[tokio::test]
async fn the_first_image_of_every_changed_file_is_kept() {
    let scene = Scene::new();
    scene.put("old", "before\n").put("unread", "");
    scene.ok("read", json!({"path": "old"})).await;
    for content in ["once", "twice"] {
        scene
            .ok("write", json!({"path": "old", "content": content}))
            .await;
        scene
            .ok("write", json!({"path": "new/x", "content": content}))
            .await;
    }
    let refused = json!({"path": "old", "edits": [{"oldText": "absent", "newText": ""}]});
    scene.refused("edit", refused).await;
    scene
        .refused("write", json!({"path": "unread", "content": "x"}))
        .await;
    assert_eq!(
        scene.files.before_images(),
        [
            BeforeImage {
                path: scene.path("new/x"),
                content: None
            },
            BeforeImage {
                path: scene.path("old"),
                content: Some(b"before\n".to_vec())
            },
        ]
    );
    assert!(scene.files.before_images_dropped().is_empty());
}

#[test]
fn images_beyond_the_room_are_named() {
    let ledger = FileLedger::default();
    let half = vec![0; 40 * 1024 * 1024];
    ledger.keep_before("/a".as_ref(), Some(&half));
    ledger.keep_before("/b".as_ref(), Some(&half));
    ledger.keep_before("/c".as_ref(), Some(b"small"));
    let kept: Vec<_> = ledger
        .before_images()
        .into_iter()
        .map(|image| image.path)
        .collect();
    assert_eq!(kept, ["/a", "/c"].map(std::path::PathBuf::from));
    assert_eq!(
        ledger.before_images_dropped(),
        [std::path::PathBuf::from("/b")]
    );
    // A copy of the ledger is the same ledger.
    assert_eq!(ledger.clone().before_images().len(), 2);
}
