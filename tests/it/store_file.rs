//! Session files: bytes, modes, locks, and what a full disk leaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use agent::message::{Message, UserMessage};
use agent::secret::Redactor;
use agent::store::{Durability, Entry, EntryKind, Header, Store, StoreError};
use serde_json::{Value, json};
use tempfile::TempDir;

fn header() -> Header {
    Header {
        id: "0190d7a0-0000-7000-8000-000000000001".to_owned(),
        timestamp: "2026-11-21T20:01:02.345Z".to_owned(),
        cwd: "/some/place".to_owned(),
        parent_session: None,
    }
}

fn user(text: &str) -> EntryKind {
    EntryKind::message(Message::User(UserMessage::text(text, 1_763_681_630_791)))
}

fn create(path: &Path, durability: Durability) -> Result<Store, StoreError> {
    Store::create(path, header(), durability, Redactor::default())
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.ends_with('\n'), "the last line is whole");
    text.split_terminator('\n')
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs/1/session.jsonl");
    (dir, path)
}

#[test]
fn each_append_is_on_disk_when_it_returns() {
    let (_dir, path) = place();
    let mut store = create(&path, Durability::None).unwrap();
    let first_line = r#"{"type":"session","version":3,"id":"0190d7a0-0000-7000-8000-000000000001","timestamp":"2026-11-21T20:01:02.345Z","cwd":"/some/place"}"#;
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        format!("{first_line}\n")
    );

    let first = store.append(user("hello")).unwrap();
    let on_disk = lines(&path);
    assert_eq!(
        on_disk[1],
        json!({
            "type": "message", "id": first.to_string(), "parentId": null,
            "timestamp": on_disk[1]["timestamp"],
            "message": {
                "role": "user",
                "content": [{"type": "text", "text": "hello"}],
                "timestamp": 1_763_681_630_791_i64,
            },
        })
    );
    assert_eq!(first.as_str().len(), 8);
    let stamp = on_disk[1]["timestamp"].as_str().unwrap();
    assert!(stamp.len() == 24 && stamp.ends_with('Z'), "{stamp}");

    let change = EntryKind::ModelChange {
        provider: "p".into(),
        model_id: "m".into(),
    };
    let second = store.append(change).unwrap();
    let third = store
        .append(EntryKind::ThinkingLevelChange {
            thinking_level: "high".into(),
        })
        .unwrap();
    let on_disk = lines(&path);
    assert_eq!(on_disk[2]["parentId"], first.as_str());
    assert_eq!(
        (&on_disk[2]["provider"], &on_disk[2]["modelId"]),
        (&json!("p"), &json!("m"))
    );
    assert_eq!(on_disk[3]["parentId"], second.as_str());
    assert_eq!(on_disk[3]["thinkingLevel"], "high");
    assert_eq!(store.tree().leaf().unwrap().id, third);
    assert_eq!(store.path(), Some(path.as_path()));
    store.close().unwrap();
}

#[test]
fn the_file_and_new_directories_are_private() {
    let (dir, path) = place();
    create(&path, Durability::None).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(
        [
            mode(&dir.path().join("runs")),
            mode(&dir.path().join("runs/1"))
        ],
        [0o700; 2]
    );
}

#[test]
fn a_second_writer_is_refused_and_the_file_kept() {
    let (_dir, path) = place();
    let mut store = create(&path, Durability::None).unwrap();
    store.append(user("mine")).unwrap();
    let before = fs::read(&path).unwrap();
    let second = create(&path, Durability::None).unwrap_err();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    assert!(
        second
            .to_string()
            .starts_with("another process is writing this session")
    );
    store.close().unwrap();
    let third = create(&path, Durability::None).unwrap_err();
    assert!(matches!(third, StoreError::Exists { .. }), "{third}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn after_closing_nothing_is_appended() {
    for durability in [Durability::Step, Durability::Entry, Durability::None] {
        let (_dir, path) = place();
        let mut store = create(&path, durability).unwrap();
        for step in 0..20 {
            store.append(user(&format!("{step}"))).unwrap();
            store.step_ended().unwrap();
        }
        store.append(user("after the last step")).unwrap();
        store.close().unwrap();
        store.close().unwrap();
        let late = store.append(user("late")).unwrap_err();
        assert!(matches!(late, StoreError::Sealed { .. }), "{late}");
        store.step_ended().unwrap();
        assert_eq!(lines(&path).len(), 22, "{durability:?}");
        assert_eq!(store.tree().entries().len(), 21);
    }
}

#[test]
fn places_where_no_file_can_be() {
    let (dir, _) = place();
    fs::write(dir.path().join("file"), "").unwrap();
    let under_file = create(&dir.path().join("file/session.jsonl"), Durability::Step).unwrap_err();
    assert!(
        matches!(under_file, StoreError::Create { .. }),
        "{under_file}"
    );
    assert!(
        under_file.to_string().contains("file/session.jsonl"),
        "{under_file}"
    );

    let pipe = dir.path().join("pipe");
    crate::workspace_fixture::run("mkfifo", &[&pipe], dir.path());
    let over_pipe = create(&pipe, Durability::Step).unwrap_err();
    assert!(
        matches!(over_pipe, StoreError::Exists { .. }),
        "{over_pipe}"
    );
}

#[test]
fn any_text_stays_on_its_line() {
    let texts = [
        "line\nbreaks\r\nof all kinds\u{2028}\u{2029}\u{85}\u{b}\u{c}",
        "nul \0 and escape \u{1b}[31m",
        "quotes \" and \\ and \u{1f600}",
        "",
    ];
    let (_dir, path) = place();
    let mut store = create(&path, Durability::None).unwrap();
    for text in texts {
        store.append(user(text)).unwrap();
    }
    let raw = fs::read(&path).unwrap();
    assert_eq!(
        raw.iter().filter(|byte| **byte == b'\n').count(),
        texts.len() + 1
    );
    let read: Vec<_> = lines(&path)[1..]
        .iter()
        .map(|line| {
            line["message"]["content"][0]["text"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    assert_eq!(read, texts);
}

#[test]
fn the_file_reads_back_as_the_tree() {
    let (_dir, path) = place();
    let mut store = create(&path, Durability::Step).unwrap();
    store.append(user("one")).unwrap();
    store
        .append(EntryKind::Custom {
            custom_type: "x".into(),
            data: Some(json!({"n": 1.5})),
        })
        .unwrap();
    store
        .append(EntryKind::SessionInfo {
            name: Some("name".into()),
        })
        .unwrap();
    store.close().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let read: Vec<Entry> = text
        .lines()
        .skip(1)
        .map(|line| Entry::parse(line).unwrap())
        .collect();
    assert_eq!(read, store.tree().entries());
}

#[test]
fn in_memory_there_is_no_file() {
    let mut store = Store::in_memory(header());
    store.append(user("hello")).unwrap();
    store.step_ended().unwrap();
    store.close().unwrap();
    assert_eq!(store.path(), None);
    assert_eq!(store.tree().messages().len(), 1);
    assert_eq!(store.tree().header(), &header());
}

/// Fills a session until the limit on the size of files, if there is one, or
/// for 64 entries. Run under a limit by the test below.
#[test]
fn a_write_that_fails_leaves_whole_lines() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
    for durability in [Durability::Step, Durability::Entry] {
        let (_dir, path) = place();
        let mut store = create(&path, durability).unwrap();
        let mut failed = None;
        for _ in 0..64 {
            let result = store.append(user(&"x".repeat(1_000)));
            if let Err(error) = result {
                failed = Some(error);
                break;
            }
            store.step_ended().unwrap();
        }
        assert_eq!(lines(&path).len(), store.tree().entries().len() + 1);
        assert_eq!(failed.is_some(), limit.is_some());
        if let Some(error) = failed {
            assert!(matches!(error, StoreError::Write { .. }), "{error}");
            assert!(error.to_string().contains("session.jsonl"), "{error}");
            let next = store.append(user("small")).unwrap_err();
            assert!(matches!(next, StoreError::Sealed { .. }), "{next}");
            let length = fs::metadata(&path).unwrap().len();
            assert!(length + 2_000 > limit.unwrap(), "it was filled: {length}");
        }
        store.close().unwrap();
    }
}

#[test]
fn a_full_disk_leaves_whole_lines() {
    let this = std::env::current_exe().unwrap();
    let script = "trap '' XFSZ; ulimit -f 20; exec \"$0\" --exact store_file::a_write_that_fails_leaves_whole_lines";
    let output = crate::workspace_fixture::run(
        "sh",
        &["-c".as_ref(), script.as_ref(), this.as_os_str()],
        Path::new("/tmp"),
    );
    let said = String::from_utf8_lossy(&output);
    assert!(said.contains("1 passed"), "{said}");
}
