//! Moves inside the tree of a session.

use agent::session::{LeftBranch, PromptOptions, SessionError};
use agent::store::{EntryId, EntryKind, Store};
use serde_json::json;

use crate::support::room::{Gate, Room};
use crate::support::session::{Stage, calls, expecting, text};

async fn ask(room: &Room, prompt: &str) -> String {
    let answer = room.session.prompt(prompt, PromptOptions::default()).await;
    answer.unwrap().text
}

/// The entry of a user message.
fn said(room: &Room, text: &str) -> EntryId {
    let forkable = room.session.tree().forkable();
    let message = forkable.into_iter().find(|message| message.text == text);
    message.unwrap().entry_id
}

fn heard(room: &Room) -> Vec<String> {
    let forkable = room.session.tree().forkable();
    forkable.into_iter().map(|message| message.text).collect()
}

#[tokio::test]
async fn a_move_behind_a_user_message_gives_its_text_back() {
    let mut stage = Stage::new(json!([text("a"), text("b"), text("c")]));
    stage.on_disk = true;
    let room = stage.room().await;
    ask(&room, "one").await;
    ask(&room, "two").await;
    let two = said(&room, "two");
    let moved = room.session.tree().navigate(&two, LeftBranch::Silent).await;
    assert_eq!(moved.unwrap().text.as_deref(), Some("two"));
    assert_eq!(heard(&room), ["one"]);
    // The file knows of the move before anything else is said.
    let file = room.session.file().unwrap();
    let kept = Store::read(&file).unwrap();
    assert_eq!(kept.messages().len(), 2);

    assert_eq!(ask(&room, "otherwise").await, "c");
    assert_eq!(heard(&room), ["one", "otherwise"]);
    // Both branches are still there.
    assert_eq!(room.session.stats().user_messages, 3);
    let events = room.end().await;
    let tree: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "session:tree")
        .collect();
    assert_eq!(tree.len(), 1);
    assert_eq!(tree[0]["data"].get("summaryEntryId"), None);
}

#[tokio::test]
async fn a_branch_that_is_left_is_summarised() {
    let replies = json!([
        text("a"),
        text("a dead end"),
        expecting(
            text("## Goal\nTried the left way."),
            json!({"contains": ["go left", "a dead end", "mind the walls"], "tools": []})
        ),
        expecting(
            text("c"),
            json!({"contains": ["Tried the left way.", "go right"]})
        )
    ]);
    let room = Stage::new(replies).room().await;
    ask(&room, "one").await;
    ask(&room, "go left").await;
    let left = said(&room, "go left");
    let old_leaf = room.session.tree().leaf().unwrap();
    let summarised = LeftBranch::Summarised(Some("mind the walls".to_owned()));
    let moved = room
        .session
        .tree()
        .navigate(&left, summarised)
        .await
        .unwrap();
    assert_eq!(room.session.tree().leaf(), moved.summary);
    let entries = room.session.tree().entries();
    let EntryKind::BranchSummary {
        from_id, summary, ..
    } = &entries.last().unwrap().kind
    else {
        panic!("{entries:?}");
    };
    assert_eq!(
        (from_id, summary.as_str()),
        (&old_leaf, "## Goal\nTried the left way.")
    );
    assert_eq!(ask(&room, "go right").await, "c");
    room.end().await;
}

#[tokio::test]
async fn without_a_summary_nothing_moves() {
    let refused = json!({"error": {"status": 400, "message": "no"}});
    let cut = json!({"text": "half", "stop": "length"});
    let room = Stage::new(json!([text("a"), text("b"), refused, cut, text("c")]))
        .room()
        .await;
    ask(&room, "one").await;
    ask(&room, "two").await;
    let (one, leaf) = (said(&room, "one"), room.session.tree().leaf());
    for _ in 0..2 {
        let moved = room
            .session
            .tree()
            .navigate(&one, LeftBranch::Summarised(None))
            .await;
        assert!(
            matches!(moved, Err(SessionError::NotSummarised(_))),
            "{moved:?}"
        );
        assert_eq!(room.session.tree().leaf(), leaf);
    }
    assert_eq!(ask(&room, "three").await, "c");
    let events = room.end().await;
    assert!(events.iter().all(|event| event["event"] != "session:tree"));
}

#[tokio::test]
async fn a_move_needs_an_entry_and_a_session_at_rest() {
    let gate = Gate::new();
    let room = Stage::new(json!([calls(&["gate"]), text("a")]))
        .tool(gate.tool())
        .room()
        .await;
    let unknown = EntryId::from("00000000");
    let moved = room
        .session
        .tree()
        .navigate(&unknown, LeftBranch::Silent)
        .await;
    assert!(matches!(moved, Err(SessionError::UnknownEntry(id)) if id == unknown));
    let (answer, ()) = tokio::join!(ask(&room, "go"), async {
        gate.reached().await;
        let go = said(&room, "go");
        let moved = room.session.tree().navigate(&go, LeftBranch::Silent).await;
        assert!(matches!(moved, Err(SessionError::Busy)), "{moved:?}");
        // A name and a label change no history, so they may come at any time.
        room.session.tree().rename("the walk").unwrap();
        room.session.tree().label(&go, Some("start")).unwrap();
        gate.open();
    });
    assert_eq!(answer, "a");
    assert_eq!(room.session.tree().name().as_deref(), Some("the walk"));
    let go = said(&room, "go");
    assert_eq!(room.session.tree().label_of(&go).as_deref(), Some("start"));
    room.end().await;
}

#[tokio::test]
async fn a_session_is_written_as_a_page() {
    let room = Stage::new(json!([text("An <answer>.")])).room().await;
    ask(&room, "one").await;
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    std::fs::write(&page, "an older page").unwrap();
    room.session.export_html(&page).unwrap();
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>"), "{html}");
    assert!(html.contains("An &lt;answer&gt;."), "{html}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let nowhere = folder.path().join("no/page.html");
    assert!(room.session.export_html(&nowhere).is_err());
    room.end().await;
}
