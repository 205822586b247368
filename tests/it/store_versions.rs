//! Session files of older versions: read as they are, rewritten with the first
//! entry that is added.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use agent::message::{Message, UserMessage};
use agent::secret::Redactor;
use agent::store::{Durability, EntryKind, SessionTree, Store, StoreError};
use serde_json::{Value, json};
use tempfile::TempDir;

fn fixture(name: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    fs::copy(fixtures.join(name), &path).unwrap();
    (dir, path)
}

fn open(path: &Path) -> Store {
    Store::open(path, Durability::Step, Redactor::default())
        .unwrap()
        .store
}

fn ids(tree: &SessionTree) -> Vec<(String, Option<String>)> {
    let entries = tree.entries().iter();
    let pair = |entry: &agent::store::Entry| {
        let parent = entry.parent_id.as_ref().map(ToString::to_string);
        (entry.id.to_string(), parent)
    };
    entries.map(pair).collect()
}

fn sent(tree: &SessionTree) -> Vec<String> {
    let entries = tree.context().into_iter();
    entries.map(|entry| entry.id.to_string()).collect()
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn said(text: &str) -> EntryKind {
    EntryKind::message(Message::User(UserMessage::text(text, 1)))
}

#[test]
fn version_1_has_ids_by_its_lines() {
    let (_dir, path) = fixture("v1.jsonl");
    let tree = Store::read(&path).unwrap();
    let chain: Vec<_> = (1..=7)
        .map(|at| {
            (
                format!("{at:08x}"),
                (at > 1).then(|| format!("{:08x}", at - 1)),
            )
        })
        .collect();
    assert_eq!(ids(&tree), chain);
    assert_eq!(
        tree.header().parent_session.as_deref(),
        Some("/home/ada/old.jsonl")
    );
    assert_eq!(tree.model(), Some(("anthropic", "claude-sonnet-4-5")));
    assert_eq!(tree.thinking_level(), Some("high"));
    // The compaction stands first and keeps from the second entry on.
    assert_eq!(
        sent(&tree),
        ["00000004", "00000002", "00000003", "00000007"]
    );
    let mut start = tree.clone();
    start.set_leaf(Some(&"00000001".into())).unwrap();
    assert_eq!(start.model(), Some(("anthropic", "claude-sonnet-4-5")));
    assert_eq!(start.thinking_level(), Some("low"));
}

#[test]
fn version_2_has_other_names() {
    let (_dir, path) = fixture("v2.jsonl");
    let tree = Store::read(&path).unwrap();
    assert_eq!(sent(&tree), ["aaaa0001", "aaaa0002", "aaaa0004"]);
    let EntryKind::CustomMessage {
        custom_type,
        display,
        details,
        ..
    } = &tree.entries()[1].kind
    else {
        unreachable!("{:?}", tree.entries()[1])
    };
    assert_eq!((custom_type.as_str(), *display), ("weather", true));
    assert_eq!(details, &Some(json!({"mm": 3})));
}

#[test]
fn the_first_entry_makes_it_the_current_version() {
    for name in ["v1.jsonl", "v2.jsonl"] {
        let (dir, path) = fixture(name);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let (before, inode) = (fs::read(&path).unwrap(), fs::metadata(&path).unwrap().ino());
        let mut store = open(&path);
        let old = store.tree().clone();
        store.close().unwrap();
        assert_eq!(fs::read(&path).unwrap(), before, "opening changes nothing");

        let mut store = open(&path);
        store.append(said("more")).unwrap();
        store.append(said("and more")).unwrap();
        let meta = fs::metadata(&path).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o640);
        assert_ne!(meta.ino(), inode);
        let locked = Store::open(&path, Durability::Step, Redactor::default()).unwrap_err();
        assert!(matches!(locked, StoreError::Locked { .. }), "{locked}");
        store.step_ended().unwrap();
        store.close().unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);

        let written = lines(&path);
        assert_eq!(written[0]["version"], 3);
        let again = open(&path);
        let count = old.entries().len();
        assert_eq!(&ids(again.tree())[..count], &ids(&old)[..]);
        assert_eq!(again.tree().entries(), store.tree().entries());
        assert_eq!(again.tree().header(), old.header());
        assert_eq!(written.len(), count + 3);
    }
}

#[test]
fn rewriting_loses_nothing_that_nobody_knows() {
    let (_dir, path) = fixture("v1.jsonl");
    let mut store = open(&path);
    store.append(said("more")).unwrap();
    let written = lines(&path);
    assert_eq!(written[0]["colour"], "blue");
    assert_eq!(written[0]["parentSession"], "/home/ada/old.jsonl");
    assert_eq!(
        written[2]["message"]["content"][1]["partialJson"],
        "{\"comm"
    );
    assert_eq!(written[4]["firstKeptEntryId"], "00000002");
    assert_eq!(
        written[6],
        json!({"type": "oven_report", "id": "00000006", "parentId": "00000005",
            "timestamp": "2025-10-02T08:00:06.000Z", "celsius": [230, 231]})
    );
    assert_eq!(
        store.tree().thinking_level(),
        Store::read(&path).unwrap().thinking_level()
    );

    let (_dir, path) = fixture("v2.jsonl");
    open(&path).append(said("more")).unwrap();
    let written = lines(&path);
    assert_eq!(written[2]["message"]["role"], "custom");
    assert_eq!(written[4]["fromHook"], false);
}

#[test]
fn a_torn_end_of_an_old_file_is_cut_off() {
    let (_dir, path) = fixture("v1.jsonl");
    let mut torn = fs::read(&path).unwrap();
    torn.extend(b"{\"type\":\"mess");
    fs::write(&path, torn).unwrap();
    let mut opened = Store::open(&path, Durability::Entry, Redactor::default()).unwrap();
    assert_eq!((opened.repaired_bytes, opened.version), (13, 1));
    opened.store.append(said("more")).unwrap();
    opened.store.close().unwrap();
    assert_eq!(open(&path).tree().entries().len(), 8);
}

#[test]
fn secrets_do_not_come_along_into_the_new_file() {
    let (_dir, path) = fixture("v1.jsonl");
    let redactor = Redactor::new(["rye spelt".to_owned()]);
    let mut store = Store::open(&path, Durability::None, redactor)
        .unwrap()
        .store;
    store.append(said("rye spelt!")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(!text.contains("rye spelt"), "{text}");
}

#[test]
fn a_file_that_took_the_name_meanwhile_is_not_replaced() {
    let (dir, path) = fixture("v1.jsonl");
    let mut store = open(&path);
    fs::rename(&path, dir.path().join("moved.jsonl")).unwrap();
    fs::write(&path, "mine").unwrap();
    let error = store.append(said("more")).unwrap_err();
    assert!(matches!(error, StoreError::Write { .. }), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    assert_eq!(store.tree().entries().len(), 7);
    let next = store.append(said("more")).unwrap_err();
    assert!(matches!(next, StoreError::Sealed { .. }), "{next}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}
