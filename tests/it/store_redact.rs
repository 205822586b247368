//! Secrets never reach a session file, and the file stays a session file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use agent::message::{
    AssistantMessage, Content, Message, StopReason, ToolCall, Usage, UserMessage,
};
use agent::secret::Redactor;
use agent::store::{Durability, Entry, EntryKind, Header, Store};
use serde_json::{Value, json};

/// Writes entries with `secrets` known and gives the lines back.
fn written(secrets: &[&str], kinds: Vec<EntryKind>) -> (Store, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    let redactor = Redactor::new(secrets.iter().map(|secret| (*secret).to_owned()));
    let header = Header {
        cwd: "/home/hunter2hunter2".into(),
        ..Header::new("/")
    };
    let mut store = Store::create(&path, header, Durability::None, redactor).unwrap();
    for kind in kinds {
        store.append(kind).unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    (store, text.lines().map(str::to_owned).collect())
}

fn call(arguments: Value) -> EntryKind {
    EntryKind::message(Message::Assistant(AssistantMessage {
        content: vec![Content::ToolCall(ToolCall {
            id: "call_1".into(),
            name: "bash".into(),
            arguments,
            invalid_arguments: None,
            thought_signature: None,
        })],
        api: "anthropic-messages".into(),
        provider: "anthropic".into(),
        model: "m".into(),
        usage: Usage {
            input: 3,
            ..Usage::default()
        },
        stop_reason: StopReason::ToolUse,
        error_message: None,
        timestamp: 1,
    }))
}

fn user(text: &str) -> EntryKind {
    EntryKind::message(Message::User(UserMessage::text(text, 1)))
}

#[test]
fn secrets_go_wherever_they_stand() {
    const SECRET: &str = "hunter2hunter2";
    let (store, lines) = written(
        &[SECRET],
        vec![
            user("the password is hunter2hunter2!"),
            call(json!({
                "command": "login hunter2hunter2",
                "hunter2hunter2": 1,
                "nested": [{"deep": ["hunter2hunter2"]}],
            })),
            EntryKind::Custom {
                custom_type: "x".into(),
                data: Some(json!("hunter2hunter2")),
            },
        ],
    );
    for line in &lines {
        assert!(!line.contains(SECRET), "{line}");
    }
    let read: Vec<Entry> = lines[1..]
        .iter()
        .map(|line| Entry::parse(line).unwrap())
        .collect();
    let ids = |entries: &[Entry]| {
        entries
            .iter()
            .map(|entry| entry.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&read), ids(store.tree().entries()));
    assert!(lines[1].contains("the password is ***!"), "{}", lines[1]);
    let EntryKind::Message(message) = &store.tree().entries()[0].kind else {
        panic!("a message")
    };
    assert_eq!(
        **message,
        Message::User(UserMessage::text("the password is hunter2hunter2!", 1))
    );
}

#[test]
fn a_secret_like_a_word_of_the_format_breaks_nothing() {
    for secret in [
        "assistant",
        "timestamp",
        "parentId\":",
        "\"message\"",
        "stopReason",
        "arguments",
        "toolCall\"",
    ] {
        let said = format!("say {secret} twice: {secret}");
        let (_, lines) = written(
            &[secret],
            vec![user(&said), call(json!({ "command": said }))],
        );
        let first = Entry::parse(&lines[1]).unwrap();
        let second = Entry::parse(&lines[2]).unwrap();
        let EntryKind::Message(first) = &first.kind else {
            panic!("{secret}: {lines:?}")
        };
        assert_eq!(
            **first,
            Message::User(UserMessage::text("say *** twice: ***", 1)),
            "{secret}"
        );
        let EntryKind::Message(second) = &second.kind else {
            panic!("{secret}: {lines:?}")
        };
        let Message::Assistant(second) = &**second else {
            panic!("{secret}: {lines:?}")
        };
        assert_eq!(second.stop_reason, StopReason::ToolUse);
        let call = second.tool_calls().next().unwrap();
        assert_eq!(
            call.arguments,
            json!({ "command": "say *** twice: ***" }),
            "{secret}"
        );
    }
}

#[test]
fn escaped_and_numeric_secrets() {
    let key = "-----BEGIN KEY-----\nmno\"pqr\\stu\n-----END KEY-----";
    let nested = serde_json::to_string(&json!({ "key": key })).unwrap();
    let (_, lines) = written(
        &[key, "1234567890"],
        vec![
            user(key),
            user(&nested),
            call(json!({ "pin": 1_234_567_890_u64, "n": 5 })),
        ],
    );
    for line in &lines {
        assert!(
            !line.contains("pqr") && !line.contains("1234567890"),
            "{line}"
        );
        serde_json::from_str::<Value>(line).unwrap();
    }
    let last: Value = serde_json::from_str(&lines[3]).unwrap();
    assert_eq!(
        last["message"]["content"][0]["arguments"],
        json!({ "pin": "***", "n": 5 })
    );
}

#[test]
fn without_secrets_the_line_is_as_it_was() {
    let text = r#"a \\ path C:\\x and {"json":"in \"json\""}"#;
    let (store, lines) = written(&[], vec![user(text)]);
    assert_eq!(
        lines[1],
        serde_json::to_string(&store.tree().entries()[0]).unwrap()
    );
}
