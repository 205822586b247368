//! The scenarios of a session, first half: conversations, forks, tools.

use std::sync::Arc;

use agent::event::MessageSource;
use agent::message::Message;
use agent::session::{
    ForkPoint, PromptOptions, SessionError, ToolSource, TranscriptKind, TranscriptSource,
};
use agent::store::EntryKind;
use serde_json::{Value, json};

use crate::support::room::{Gate, Room};
use crate::support::session::{Stage, TestTool, calls, expecting, text};

async fn ask(room: &Room, prompt: &str) -> String {
    let answer = room.session.prompt(prompt, PromptOptions::default()).await;
    answer.unwrap().text
}

/// The user messages and replies of a session, in order.
fn said(messages: &[Arc<Message>]) -> Vec<String> {
    let text = |message: &Arc<Message>| {
        let value = serde_json::to_value(message.as_ref()).unwrap();
        let text = value["content"][0]["text"].as_str().unwrap_or_default();
        format!("{}: {text}", value["role"].as_str().unwrap())
    };
    messages.iter().map(text).collect()
}

#[tokio::test]
async fn scenario_01_prompt_returns_the_text_and_appends_both_entries() {
    let room = Stage::new(json!([text("Hello.")])).room().await;
    assert_eq!(ask(&room, "Hi").await, "Hello.");
    let messages = room.session.messages();
    assert_eq!(said(&messages), ["user: Hi", "assistant: Hello."]);
    let entries = room.session.tree().entries();
    let kinds: Vec<&str> = entries.iter().map(|entry| entry.kind.type_name()).collect();
    assert_eq!(
        kinds,
        [
            "model_change",
            "thinking_level_change",
            "message",
            "message"
        ]
    );
    room.end().await;
}

#[tokio::test]
async fn scenario_02_a_fork_has_an_own_id_and_goes_its_own_way() {
    let stage = Stage::new(json!([
        text("one"),
        text("of the fork"),
        text("of the parent")
    ]));
    let room = stage.room().await;
    ask(&room, "start").await;
    let fork = room.session.fork(ForkPoint::Whole).await.unwrap();
    assert_ne!(fork.id(), room.session.id());
    assert_eq!(fork.tree().entries(), room.session.tree().entries());
    let answer = fork.prompt("left", PromptOptions::default()).await;
    assert_eq!(answer.unwrap().text, "of the fork");
    assert_eq!(ask(&room, "right").await, "of the parent");
    assert_eq!(
        said(&fork.messages())[2..],
        ["user: left", "assistant: of the fork"]
    );
    assert_eq!(
        said(&room.session.messages())[2..],
        ["user: right", "assistant: of the parent"]
    );
    // Each has its own books.
    assert_eq!(fork.budget()[&agent::event::LimitKind::Turns].used, 1.0);
    drop(fork);
    room.end().await;
}

#[tokio::test]
async fn scenario_03_restored_entries_equal_the_snapshot_and_a_busy_session_refuses() {
    let gate = Gate::new();
    let first = Stage::new(json!([text("one")])).room().await;
    ask(&first, "start").await;
    let snapshot = first.session.tree().entries();
    first.end().await;

    let replies = json!([
        expecting(calls(&["gate"]), json!({"contains": ["start", "go on"]})),
        text("two")
    ]);
    let room = Stage::new(replies).tool(gate.tool()).room().await;
    room.session.tree().restore(snapshot.clone()).await.unwrap();
    assert_eq!(room.session.tree().entries(), snapshot);
    let (answer, ()) = tokio::join!(ask(&room, "go on"), async {
        gate.reached().await;
        let refused = room.session.tree().restore(snapshot.clone()).await;
        assert!(matches!(refused, Err(SessionError::Busy)), "{refused:?}");
        gate.open();
    });
    assert_eq!(answer, "two");
    room.end().await;
}

#[tokio::test]
async fn scenario_04_cancel_fails_the_running_prompt() {
    let gate = Gate::new();
    let room = Stage::new(json!([calls(&["gate"]), text("later")]))
        .tool(gate.tool())
        .room()
        .await;
    let (outcome, ()) = tokio::join!(room.session.prompt("go", PromptOptions::default()), async {
        gate.reached().await;
        room.session.cancel().await;
    });
    let error = outcome.unwrap_err();
    assert!(error.is_cancelled(), "{error}");
    assert_eq!(error.to_string(), "cancelled");
    // The session stays usable, its history valid.
    assert_eq!(ask(&room, "again").await, "later");
    room.end().await;
}

#[tokio::test]
async fn scenario_05_forkable_messages_have_index_and_text() {
    let room = Stage::new(json!([text("a"), calls(&["t"]), text("b")]))
        .tool(TestTool::says("t", "from t"))
        .room()
        .await;
    ask(&room, "first").await;
    ask(&room, "second").await;
    let entries = room.session.tree().entries();
    let forkable = room.session.tree().forkable();
    let listed: Vec<(usize, &str)> = forkable
        .iter()
        .map(|message| (message.entry_index, message.text.as_str()))
        .collect();
    assert_eq!(listed, [(2, "first"), (4, "second")]);
    for message in &forkable {
        assert_eq!(entries[message.entry_index].id, message.entry_id);
    }
    room.end().await;
}

#[tokio::test]
async fn scenario_06_a_fork_from_a_message_keeps_what_precedes_it() {
    let room = Stage::new(json!([text("a"), text("b"), text("c"), text("d")]))
        .room()
        .await;
    for prompt in ["one", "two", "three"] {
        ask(&room, prompt).await;
    }
    let before = room.session.tree().entries();
    let second = room.session.tree().forkable()[1].entry_index;
    let fork = room.session.fork(ForkPoint::Before(second)).await.unwrap();
    assert_eq!(said(&fork.messages()), ["user: one", "assistant: a"]);
    assert_eq!(room.session.tree().entries(), before);
    let answer = fork.prompt("otherwise", PromptOptions::default()).await;
    assert_eq!(answer.unwrap().text, "d");
    assert_eq!(room.session.tree().entries(), before);
    drop(fork);
    room.end().await;
}

#[tokio::test]
async fn scenario_08_descriptors_and_active_names_follow_registration() {
    let room = Stage::new(json!([]))
        .tool(TestTool::says("own", "from own"))
        .room()
        .await;
    let tools = room.session.tools();
    let descriptors = tools.descriptors();
    assert_eq!(descriptors.len(), 1);
    let own = &descriptors[0];
    assert_eq!(own.name, "own");
    assert_eq!(own.description, "Does own.");
    assert_eq!(own.short_description, "own");
    assert_eq!(own.parameters, json!({"type": "object"}));
    assert_eq!(own.source, ToolSource::Custom);
    assert!(own.enabled);

    tools
        .register(Arc::new(TestTool::says("more", "x")))
        .unwrap();
    assert_eq!(tools.active(), ["more", "own"]);
    let twice = tools.register(Arc::new(TestTool::says("own", "x")));
    assert!(
        matches!(twice, Err(SessionError::DuplicateTool(_))),
        "{twice:?}"
    );

    tools.set_active(&["more"]).unwrap();
    let enabled: Vec<bool> = tools
        .descriptors()
        .iter()
        .map(|tool| tool.enabled)
        .collect();
    assert_eq!(
        (tools.active(), enabled),
        (vec!["more".to_owned()], vec![true, false])
    );
    let unknown = tools.set_active(&["more", "no"]);
    assert!(matches!(unknown, Err(SessionError::UnknownTool(name)) if name == "no"));

    tools.unregister("more").unwrap();
    assert_eq!(tools.active(), Vec::<String>::new());
    assert_eq!(tools.descriptors().len(), 1);
    assert!(matches!(
        tools.unregister("more"),
        Err(SessionError::UnknownTool(_))
    ));
    room.end().await;
}

#[tokio::test]
async fn scenario_09_transcript_pieces_of_an_entry_share_its_index() {
    let mut reply = calls(&["t"]);
    reply["text"] = "Looking.".into();
    reply["thinking"] = "Hm.".into();
    let room = Stage::new(json!([reply, text("done")]))
        .tool(TestTool::says("t", "from t"))
        .room()
        .await;
    ask(&room, "go").await;
    let transcript = room.session.transcript();
    let told: Vec<(usize, TranscriptSource, Value)> = transcript
        .iter()
        .map(|piece| {
            let kind = match &piece.kind {
                TranscriptKind::Text(text) => json!({"text": text}),
                TranscriptKind::Thinking(text) => json!({"thinking": text}),
                TranscriptKind::ToolCall { name, .. } => json!({"call": name}),
                TranscriptKind::ToolResult { text, .. } => json!({"result": text}),
                other => panic!("{other:?}"),
            };
            (piece.entry_index, piece.source, kind)
        })
        .collect();
    let user = TranscriptSource::User(MessageSource::Prompt);
    let model = TranscriptSource::Assistant;
    assert_eq!(
        told,
        [
            (2, user, json!({"text": "go"})),
            (3, model, json!({"thinking": "Hm."})),
            (3, model, json!({"text": "Looking."})),
            (3, model, json!({"call": "t"})),
            (4, TranscriptSource::Tool, json!({"result": "from t"})),
            (5, model, json!({"text": "done"})),
        ]
    );
    room.end().await;
}

#[tokio::test]
async fn scenario_10_stats_count_the_whole_session() {
    let room = Stage::new(json!([calls(&["t", "t"]), text("done")]))
        .tool(TestTool::says("t", "from t"))
        .room()
        .await;
    let empty = room.session.stats();
    assert_eq!(empty.last_updated, None);
    assert_eq!((empty.total_messages(), empty.total_pending()), (0, 0));
    ask(&room, "go").await;
    let stats = room.session.stats();
    assert_eq!(stats.user_messages, 1);
    assert_eq!(stats.assistant_messages, 2);
    assert_eq!((stats.tool_calls, stats.tool_results), (2, 2));
    assert_eq!(stats.total_messages(), 5);
    assert_eq!(stats.entries, 7);
    assert_eq!(stats.usage.total_tokens(), 220);
    let entries = room.session.tree().entries();
    let newest = entries.iter().rev().find_map(|entry| match &entry.kind {
        EntryKind::Message(message) => {
            serde_json::to_value(message.as_ref()).unwrap()["timestamp"].as_i64()
        }
        _ => None,
    });
    assert_eq!(stats.last_updated, newest);
    room.end().await;
}

#[tokio::test]
async fn scenario_15_a_removed_mcp_tool_is_gone_everywhere() {
    let name = "mcp__tracker__get_issue";
    let replies = json!([
        expecting(calls(&["gate", name]), json!({"tools": ["gate", name]})),
        expecting(
            text("done"),
            json!({"tools": ["gate"], "contains": ["an issue"]})
        ),
        expecting(calls(&[name]), json!({"tools": ["gate"]})),
        expecting(text("over"), json!({"contains": ["There is no tool"]}))
    ]);
    let gate = Gate::new();
    let room = Stage::new(replies)
        .tool(gate.tool())
        .tool(TestTool::says(name, "an issue"))
        .room()
        .await;
    let tools = room.session.tools();
    assert_eq!(tools.descriptors()[1].source, ToolSource::Mcp);
    // The calls of a reply still run with the tools that its request named; the
    // next request has the change.
    let (answer, ()) = tokio::join!(ask(&room, "go"), async {
        gate.reached().await;
        tools.unregister(name).unwrap();
        gate.open();
    });
    assert_eq!(answer, "done");
    assert_eq!(tools.active(), ["gate"]);
    assert_eq!(tools.descriptors().len(), 1);
    assert_eq!(ask(&room, "again").await, "over");
    room.end().await;
}

#[tokio::test]
async fn scenario_20_a_bad_fork_index_creates_nothing() {
    let mut stage = Stage::new(json!([text("a")]));
    stage.on_disk = true;
    let room = stage.room().await;
    ask(&room, "one").await;
    let folder = room.session.file().unwrap().parent().unwrap().to_owned();
    let files = || std::fs::read_dir(&folder).unwrap().count();
    let before = files();
    // Not a user message, and none at all.
    for index in [0, 3, 99] {
        let refused = room.session.fork(ForkPoint::Before(index)).await;
        assert!(
            matches!(refused, Err(SessionError::InvalidForkEntryIndex(at)) if at == index),
            "{refused:?}"
        );
    }
    assert_eq!(files(), before);
    let events = room.end().await;
    assert!(
        events
            .iter()
            .all(|event| event["event"] != "session:forked")
    );
}

#[tokio::test]
async fn scenario_22_tools_of_a_fork_change_apart() {
    let replies = json!([
        expecting(text("a"), json!({"tools": ["both", "own"]})),
        expecting(text("b"), json!({"tools": ["both", "forked"]})),
        expecting(text("c"), json!({"tools": ["both", "own"]}))
    ]);
    let room = Stage::new(replies)
        .tool(TestTool::says("both", "x"))
        .room()
        .await;
    let fork = room.session.fork(ForkPoint::Whole).await.unwrap();
    let register = |session: &agent::session::Session, name: &str| {
        let tool = Arc::new(TestTool::says(name, "x"));
        session.tools().register(tool).unwrap();
    };
    register(&fork, "forked");
    register(&room.session, "own");
    assert_eq!(fork.tools().active(), ["both", "forked"]);
    assert_eq!(room.session.tools().active(), ["both", "own"]);
    ask(&room, "one").await;
    fork.prompt("two", PromptOptions::default()).await.unwrap();
    fork.tools().unregister("both").unwrap();
    ask(&room, "three").await;
    drop(fork);
    room.end().await;
}
