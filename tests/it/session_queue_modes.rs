//! How many waiting messages a poll takes.

use agent::session::{PendingQuery, PendingStatus, PromptOptions, QueueMode, QueueModes};
use serde_json::json;

use crate::support::room::Gate;
use crate::support::session::{Stage, calls, expecting, text};

#[tokio::test]
async fn all_that_waits_may_be_taken_at_once() {
    let gate = Gate::new();
    let replies = json!([
        calls(&["gate"]),
        expecting(text("a"), json!({"contains": ["s1", "s2"]})),
        expecting(text("b"), json!({"contains": ["f1", "f2", "f3"]}))
    ]);
    let mut stage = Stage::new(replies).tool(gate.tool());
    stage.queue = QueueModes {
        steering: QueueMode::All,
        follow_up: QueueMode::All,
    };
    let room = stage.room().await;
    let (answer, ()) = tokio::join!(room.session.prompt("go", PromptOptions::default()), async {
        gate.reached().await;
        for said in ["f1", "f2", "f3"] {
            room.session.follow_up(said).await.unwrap();
        }
        for said in ["s1", "s2"] {
            room.session.steer(said).await.unwrap();
        }
        gate.open();
    });
    assert_eq!(answer.unwrap().text, "a");
    room.session.at_rest().await;
    assert_eq!(room.session.last_text(), "b");
    let settled = room.session.pending_messages(PendingQuery {
        include_resolved: true,
        ..PendingQuery::default()
    });
    assert_eq!(settled.len(), 5);
    assert!(
        settled
            .iter()
            .all(|message| message.status == PendingStatus::Resolved)
    );
    let events = room.end().await;
    let sources: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "message:user")
        .map(|event| event["data"]["source"].clone())
        .collect();
    let expected = [
        "prompt",
        "steer",
        "steer",
        "follow_up",
        "follow_up",
        "follow_up",
    ];
    assert_eq!(sources, expected);
}
