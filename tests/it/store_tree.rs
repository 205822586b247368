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
        json!({"type": "message", "message": {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "thinkingSignature": "s"}, {"type": "text", "text": "t"},
            {"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a"}}], "api": "anthropic-messages",
            "provider": "p", "model": "m", "usage": {"input": 1, "output": 2, "cacheRead": 3, "cacheWrite": 4,
            "reasoning": 0, "totalTokens": 10, "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0.0,
            "cacheWrite": 0.0, "total": 0.3}}, "stopReason": "toolUse", "timestamp": 2}}),
        json!({"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "a\n", "exitCode": 0,
            "cancelled": false, "truncated": true, "fullOutputPath": "/t/o", "timestamp": 3}}),
        json!({"type": "message", "message": {"role": "bashExecution", "command": "ls", "output": "",
            "cancelled": true, "truncated": false, "excludeFromContext": true, "timestamp": 3}}),
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
        json!({"type": "message", "message": {"role": "from_the_future", "content": [1, {"b": null}], "timestamp": 3}}),
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
        (
            "{\"type\":\"message\",\"id\":\"1\",\"timestamp\":\"t\",\"message\":{\"role\":\"user\",\"content\":7}}",
            "field `message`: invalid type: integer `7`, expected text or an array",
        ),
        (
            "{\"type\":\"message\",\"id\":\"1\",\"timestamp\":\"t\"}",
            "missing field `message`",
        ),
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

fn compaction(summary: &str, kept: &str) -> EntryKind {
    EntryKind::Compaction {
        summary: summary.into(),
        first_kept_entry_id: kept.into(),
        tokens_before: 100,
        details: None,
        from_hook: None,
    }
}

#[test]
fn the_newest_compaction_of_the_path_wins() {
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
fn what_the_user_ran_is_read_by_the_model() {
    let ran = |fields: Value| {
        let mut message =
            json!({"role": "bashExecution", "command": "make", "output": "", "timestamp": 3});
        for (name, value) in fields.as_object().unwrap() {
            message[name] = value.clone();
        }
        let line = line(json!({"type": "message", "message": message}));
        texts(&tree(vec![Entry::parse(&line.to_string()).unwrap()]))
    };
    let command = "The user ran this command:\n\n```\nmake\n```\n\n";
    for (fields, text) in [
        (json!({}), "It printed nothing."),
        (
            json!({"output": "a\nb\n", "exitCode": 0}),
            "It printed:\n\n```\na\nb\n```",
        ),
        (
            json!({"output": "see ```` here", "exitCode": 2}),
            "It printed:\n\n`````\nsee ```` here\n`````\n\nIt failed with exit code 2.",
        ),
        (
            json!({"cancelled": true, "exitCode": 130}),
            "It printed nothing.\n\nThe user stopped it.",
        ),
        (
            json!({"output": "end", "truncated": true, "fullOutputPath": "/t/o"}),
            "It printed:\n\n```\nend\n```\n\nThat is the end of its output; all of it is in /t/o.",
        ),
    ] {
        assert_eq!(ran(fields), [format!("{command}{text}")]);
    }
    assert_eq!(ran(json!({"excludeFromContext": true})), [""; 0]);
}

#[test]
fn the_leaf_moves_and_the_messages_with_it() {
    let mut tree = tree(vec![
        entry("a", None, user("a")),
        entry("b", Some("a"), user("b")),
        entry("c", Some("b"), user("c")),
    ]);
    assert_eq!(texts(&tree), ["a", "b", "c"]);
    tree.set_leaf(Some(&"a".into())).unwrap();
    assert_eq!(texts(&tree), ["a"]);
    tree.push(entry("d", Some("a"), user("d"))).unwrap();
    assert_eq!(texts(&tree), ["a", "d"]);
    let missing = tree.set_leaf(Some(&"q".into()));
    assert_eq!(missing, Err(TreeError::UnknownEntry("q".into())));
    assert_eq!(tree.leaf().unwrap().id, "d".into());

    tree.set_leaf(None).unwrap();
    assert_eq!((texts(&tree), tree.leaf()), (vec![], None));
    tree.push(entry("e", None, user("e"))).unwrap();
    assert_eq!(texts(&tree), ["e"]);

    let ids = |entries: Vec<&Entry>| -> Vec<String> {
        entries.iter().map(|entry| entry.id.to_string()).collect()
    };
    assert_eq!(ids(tree.children(None)), ["a", "e"]);
    assert_eq!(ids(tree.children(Some(&"a".into()))), ["b", "d"]);
    assert_eq!(ids(tree.children(Some(&"q".into()))), [""; 0]);
    assert_eq!(ids(tree.path_to(&"c".into()).unwrap()), ["a", "b", "c"]);
    assert_eq!(tree.path_to(&"q".into()), None);
}

#[test]
fn settings_are_those_of_the_path_labels_and_name_those_of_the_session() {
    let model = |id: &str| EntryKind::ModelChange {
        provider: "p".into(),
        model_id: id.into(),
    };
    let level = |level: &str| EntryKind::ThinkingLevelChange {
        thinking_level: level.into(),
    };
    let label = |target: &str, label: Option<&str>| EntryKind::Label {
        target_id: target.into(),
        label: label.map(str::to_owned),
    };
    let name = |name: Option<&str>| EntryKind::SessionInfo {
        name: name.map(str::to_owned),
    };
    let mut tree = tree(vec![entry("a", None, user("a"))]);
    assert_eq!(
        (tree.model(), tree.thinking_level(), tree.name()),
        (None, None, None)
    );
    for (id, parent, kind) in [
        ("m", "a", model("one")),
        ("t", "m", level("high")),
        ("l", "t", label("a", Some("start"))),
        ("n", "l", name(Some(" first "))),
        ("o", "a", model("two")),
        ("k", "o", label("m", Some("x"))),
        ("j", "k", label("m", None)),
    ] {
        tree.push(entry(id, Some(parent), kind)).unwrap();
    }
    assert_eq!(tree.model(), Some(("p", "two")));
    assert_eq!((tree.thinking_level(), tree.name()), (None, Some("first")));
    assert_eq!(tree.label(&"a".into()), Some("start"));
    assert_eq!(tree.label(&"m".into()), None);
    tree.set_leaf(Some(&"n".into())).unwrap();
    assert_eq!(tree.model(), Some(("p", "one")));
    assert_eq!(tree.thinking_level(), Some("high"));
    tree.push(entry("z", Some("n"), name(None))).unwrap();
    assert_eq!(tree.name(), None);
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

/// A step of somebody who works with a session.
#[derive(Debug, Clone)]
enum Step {
    Say,
    Move(usize),
    Restart,
    Compact(usize),
    Label(usize),
    Ask,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Say),
        2 => any::<usize>().prop_map(Step::Move),
        1 => Just(Step::Restart),
        1 => any::<usize>().prop_map(Step::Compact),
        1 => any::<usize>().prop_map(Step::Label),
        2 => Just(Step::Ask),
    ]
}

/// The messages of a path by the rule itself: the newest compaction, what it
/// keeps, what follows.
fn expected(path: &[&Entry]) -> Vec<String> {
    let said = |entry: &&Entry| match &entry.kind {
        EntryKind::Message(_) => Some(entry.id.to_string()),
        _ => None,
    };
    let newest = path
        .iter()
        .rposition(|entry| matches!(entry.kind, EntryKind::Compaction { .. }));
    let Some(at) = newest else {
        return path.iter().filter_map(said).collect();
    };
    let EntryKind::Compaction {
        summary,
        first_kept_entry_id,
        ..
    } = &path[at].kind
    else {
        unreachable!()
    };
    let mut all = vec![format!(
        "This is a summary of the earlier conversation, which was compacted:\n\n<summary>\n{summary}\n</summary>"
    )];
    let kept = path[..at]
        .iter()
        .skip_while(|entry| entry.id != *first_kept_entry_id);
    all.extend(kept.chain(&path[at..]).filter_map(said));
    all
}

proptest! {
    /// Whatever somebody does: each entry stands below its parent, the leaf is
    /// where they left it, and the messages are those of the path.
    #[test]
    fn any_order_of_work_keeps_the_session_whole(steps in proptest::collection::vec(step(), 0..60)) {
        let mut tree = SessionTree::new(Header::new("/w"));
        for (at, step) in steps.into_iter().enumerate() {
            let ids: Vec<EntryId> = tree.entries().iter().map(|entry| entry.id.clone()).collect();
            let chosen = |at: usize| ids.get(at % ids.len().max(1)).cloned();
            let id = EntryId::from(format!("e{at}").as_str());
            let kind = match step {
                Step::Say => Some(user(id.as_str())),
                Step::Restart => { tree.set_leaf(None).unwrap(); None }
                Step::Move(at) => { tree.set_leaf(chosen(at).as_ref()).unwrap(); None }
                Step::Compact(at) => chosen(at).map(|kept| compaction(id.as_str(), kept.as_str())),
                Step::Label(at) => chosen(at).map(|target_id| EntryKind::Label { target_id, label: Some("x".into()) }),
                // What was asked for once is kept up to date.
                Step::Ask => { tree.messages(); None }
            };
            if let Some(kind) = kind {
                let parent = tree.leaf().map(|leaf| leaf.id.to_string());
                tree.push(entry(id.as_str(), parent.as_deref(), kind)).unwrap();
                prop_assert_eq!(&tree.leaf().unwrap().id, &id);
            }
            let path = tree.path();
            prop_assert!(path.first().is_none_or(|first| first.parent_id.is_none()));
            for pair in path.windows(2) {
                prop_assert_eq!(pair[1].parent_id.as_ref(), Some(&pair[0].id));
                prop_assert!(tree.children(Some(&pair[0].id)).contains(&pair[1]));
            }
            prop_assert_eq!(path.last().copied(), tree.leaf());
            prop_assert_eq!(texts(&tree), expected(&path));
            // Asked for the first time it is the same.
            let mut fresh = tree.clone();
            fresh.set_leaf(None).unwrap();
            fresh.set_leaf(tree.leaf().map(|leaf| &leaf.id)).unwrap();
            prop_assert_eq!(texts(&fresh), texts(&tree));
        }
    }
}
