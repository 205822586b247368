//! The session as a tree: entries, paths, and what a model sees of them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::sync::Arc;

use agent::message::{Content, Message, UserMessage};
use agent::store::{Entry, EntryId, EntryKind, Header, SessionTree, Store, TreeError};
use proptest::prelude::*;
use serde_json::{Value, json};

fn user(text: &str) -> EntryKind {
    EntryKind::message(Message::User(UserMessage::text(text, 1)))
}

fn entry(id: &str, parent: Option<&str>, kind: EntryKind) -> Entry {
    Entry {
        id: EntryId::from(id),
        parent_id: parent.map(EntryId::from),
        timestamp: "2026-11-21T20:01:02.345Z".to_owned(),
        kind,
    }
}

fn tree(entries: Vec<Entry>) -> SessionTree {
    let mut tree = SessionTree::new(Header::new("/w"));
    for entry in entries {
        tree.push(entry).unwrap();
    }
    tree
}

fn texts(tree: &SessionTree) -> Vec<String> {
    let text = |message: &Arc<Message>| match &**message {
        Message::User(user) => match &user.content[0] {
            Content::Text(text) => text.text.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    tree.messages().iter().map(text).collect()
}

/// A line must read and write back unchanged.
fn round_trip(line: Value) -> EntryKind {
    let text = line.to_string();
    let entry = Entry::parse(&text).unwrap();
    assert_eq!(serde_json::to_string(&entry).unwrap(), text);
    entry.kind
}

fn line(fields: Value) -> Value {
    let mut line = json!({
        "type": fields["type"], "id": "0a1b2c3d", "parentId": null,
        "timestamp": "2025-11-20T23:33:01.550Z",
    });
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    line
}

#[test]
fn every_entry_type_reads_and_writes_back() {
    for fields in [
        json!({"type": "message", "message": {"role": "user", "content": [
            {"type": "text", "text": "hi"}, {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        ], "timestamp": 1}}),
        json!({"type": "message", "message": {"role": "toolResult", "toolCallId": "c", "toolName": "read",
            "content": [], "details": {"diff": "x"}, "isError": false, "timestamp": 2}}),
        json!({"type": "model_change", "provider": "p", "modelId": "m"}),
        json!({"type": "thinking_level_change", "thinkingLevel": "off"}),
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "00000001", "tokensBefore": 9}),
        json!({"type": "compaction", "summary": "s", "firstKeptEntryId": "00000001", "tokensBefore": 9,
            "details": {"readFiles": []}, "fromHook": true}),
        json!({"type": "branch_summary", "fromId": "00000001", "summary": "s"}),
        json!({"type": "custom", "customType": "x"}),
        json!({"type": "custom", "customType": "x", "data": [1, "two", null]}),
        json!({"type": "custom_message", "customType": "x", "content": [{"type": "text", "text": "t"}],
            "display": true}),
        json!({"type": "label", "targetId": "00000001", "label": "here"}),
        json!({"type": "label", "targetId": "00000001"}),
        json!({"type": "session_info", "name": "n"}),
    ] {
        let kind = round_trip(line(fields.clone()));
        assert!(!matches!(kind, EntryKind::Unknown { .. }), "{fields}");
        assert_eq!(kind.type_name(), fields["type"]);
    }
}

#[test]
fn what_is_unknown_is_kept() {
    for fields in [
        json!({"type": "from_the_future", "b": {"z": 1, "a": [true]}, "a": 1}),
        json!({"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "",
            "exitCode": 0, "timestamp": 3}}),
    ] {
        let kind = round_trip(line(fields.clone()));
        assert!(matches!(kind, EntryKind::Unknown { .. }), "{fields}");
    }
}

#[test]
fn plain_text_stands_for_a_block() {
    for fields in [
        json!({"type": "message", "message": {"role": "user", "content": "hi", "timestamp": 1}}),
        json!({"type": "custom_message", "customType": "x", "content": "hi", "display": false}),
    ] {
        let entry = Entry::parse(&line(fields).to_string()).unwrap();
        assert_eq!(texts(&tree(vec![entry])), ["hi"]);
    }
}

#[test]
fn lines_that_are_no_entry() {
    for (text, names) in [
        ("", "EOF"),
        ("[]", "expected a map"),
        ("{\"type\":\"message\"", "EOF"),
        ("{\"id\":\"1\"}", "`type`"),
        (
            "{\"type\":\"x\",\"parentId\":null,\"timestamp\":\"t\"}",
            "`id`",
        ),
        (
            "{\"type\":\"label\",\"id\":\"1\",\"parentId\":null,\"timestamp\":\"t\"}",
            "`targetId`",
        ),
        (
            "{\"type\":\"label\",\"id\":1,\"parentId\":null,\"timestamp\":\"t\"}",
            "`id`",
        ),
    ] {
        let error = Entry::parse(text).unwrap_err().to_string();
        assert!(error.contains(names), "{text}: {error}");
    }
}

#[test]
fn branches_share_what_comes_before_them() {
    let tree = tree(vec![
        entry("a", None, user("a")),
        entry("b", Some("a"), user("b")),
        entry("c", Some("b"), user("c")),
        entry(
            "d",
            Some("a"),
            EntryKind::BranchSummary {
                from_id: "c".into(),
                summary: "tried b and c".into(),
                details: None,
            },
        ),
        entry("e", Some("d"), user("e")),
    ]);
    let path: Vec<_> = tree
        .path()
        .into_iter()
        .map(|entry| entry.id.to_string())
        .collect();
    assert_eq!(path, ["a", "d", "e"]);
    let texts = texts(&tree);
    assert_eq!((texts[0].as_str(), texts[2].as_str()), ("a", "e"));
    assert!(texts[1].contains("tried b and c"));
    assert_eq!(tree.entries().len(), 5);
}

#[test]
fn the_newest_compaction_of_the_path_wins() {
    let compaction = |summary: &str, kept: &str| EntryKind::Compaction {
        summary: summary.into(),
        first_kept_entry_id: kept.into(),
        tokens_before: 100,
        details: None,
        from_hook: None,
    };
    let mut tree = tree(vec![
        entry("a", None, user("a")),
        entry("b", Some("a"), user("b")),
        entry("x", Some("b"), compaction("first summary", "b")),
        entry("c", Some("x"), user("c")),
    ]);
    assert_eq!(texts(&tree)[1..], ["b", "c"]);
    assert!(texts(&tree)[0].contains("first summary"));

    tree.push(entry("y", Some("c"), compaction("second summary", "b")))
        .unwrap();
    tree.push(entry("d", Some("y"), user("d"))).unwrap();
    let seen = texts(&tree);
    assert!(seen[0].contains("second summary"));
    assert_eq!(seen[1..], ["b", "c", "d"], "no summary within the summary");

    tree.push(entry("e", Some("b"), user("e"))).unwrap();
    assert_eq!(
        texts(&tree),
        ["a", "b", "e"],
        "a branch from before it knows no compaction"
    );

    tree.push(entry("z", Some("e"), compaction("third", "nowhere")))
        .unwrap();
    assert_eq!(texts(&tree).len(), 1);
}

#[test]
fn entries_that_do_not_fit() {
    let mut tree = tree(vec![entry("a", None, user("a"))]);
    let before = texts(&tree);
    let twice = tree.push(entry("a", Some("a"), user("x")));
    assert_eq!(twice, Err(TreeError::DuplicateId("a".into())));
    let orphan = tree.push(entry("b", Some("q"), user("x")));
    assert_eq!(
        orphan,
        Err(TreeError::UnknownParent {
            id: "b".into(),
            parent: "q".into()
        })
    );
    assert_eq!(texts(&tree), before);
    assert_eq!(tree.entries().len(), 1);
}

#[test]
fn only_messages_go_to_the_model_and_none_is_copied() {
    let mut store = Store::in_memory(Header::new("/w"));
    let message = Arc::new(Message::User(UserMessage::text("hello", 1)));
    store
        .append(EntryKind::ModelChange {
            provider: "p".into(),
            model_id: "m".into(),
        })
        .unwrap();
    store
        .append(EntryKind::Message(Arc::clone(&message)))
        .unwrap();
    store
        .append(EntryKind::Custom {
            custom_type: "x".into(),
            data: None,
        })
        .unwrap();
    store.append(EntryKind::SessionInfo { name: None }).unwrap();
    let messages = store.tree().messages();
    assert_eq!(messages.len(), 1);
    assert!(Arc::ptr_eq(&messages[0], &message));
}

proptest! {
    /// Whatever the shape of the tree, the messages kept along the way are
    /// those of the path.
    #[test]
    fn messages_are_those_of_the_path(parents in proptest::collection::vec(0usize..100, 0..40)) {
        let mut entries = vec![entry("n0", None, user("n0"))];
        for (position, parent) in parents.iter().enumerate() {
            let (id, parent) = (format!("n{}", position + 1), format!("n{}", parent % (position + 1)));
            entries.push(entry(&id, Some(&parent), user(&id)));
        }
        let tree = tree(entries);
        let path: Vec<String> = tree.path().iter().map(|entry| entry.id.to_string()).collect();
        prop_assert_eq!(texts(&tree), path.clone());
        for pair in path.windows(2) {
            let child = tree.entry(&pair[1].as_str().into()).unwrap();
            prop_assert_eq!(child.parent_id.as_ref().unwrap().as_str(), pair[0].as_str());
        }
    }
}
