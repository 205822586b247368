//! Work on a session between its turns, and what is said to it meanwhile.

use agent::event::{Emission, EventKind, SessionReady};
use agent::message::{Message, UserMessage};
use agent::session::{LeftBranch, PromptOptions, QueueMode, Session};
use agent::store::{EntryKind, Header, Store};
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::models::{self, scripted};
use crate::support::session::{Stage, expecting, text};

/// Whether the work ends or is dropped: who spoke meanwhile gets a turn, those
/// who may share it do, and all of it is told.
#[tokio::test(start_paused = true)]
async fn what_is_said_meanwhile_is_taken_up_when_the_work_is_over() {
    for dropped in [false, true] {
        let summary = json!({"text": "What was tried.", "delay": "1s", "usage": {}});
        let mut stage = Stage::new(json!([
            text("one"),
            text("two"),
            summary,
            expecting(text("both"), json!({"contains": ["f1", "f2"]}))
        ]));
        stage.queue.follow_up = QueueMode::All;
        let room = stage.room().await;
        let session = &room.session;
        for said in ["1", "2"] {
            let prompt = session.prompt(said, PromptOptions::default());
            prompt.await.unwrap();
        }
        let second = session.tree().forkable().remove(1).entry_id;
        let tree = session.tree();
        let moving = tree.navigate(&second, LeftBranch::Summarised(None));
        let speaking = async {
            for said in ["f1", "f2"] {
                session.follow_up(said).await.unwrap();
            }
        };
        if dropped {
            tokio::select! {
                biased;
                _ = moving => panic!("the summary takes longer"),
                () = speaking => {}
            }
        } else {
            let (moved, ()) = tokio::join!(moving, speaking);
            assert!(moved.unwrap().summary.is_some());
        }
        session.at_rest().await;
        assert_eq!(session.last_text(), "both", "{dropped}");
        let events = room.end().await;
        let ids = |field: &str| -> Vec<_> {
            let updates = events.iter().filter(|one| one["event"] == "queue:update");
            updates
                .filter_map(|one| one["data"][field].as_str())
                .map(str::to_owned)
                .collect()
        };
        assert_eq!(ids("added").len(), 2, "{dropped}");
        assert_eq!(ids("taken"), ids("added"), "{dropped}");
        assert_eq!(ids("settled"), ids("added"), "{dropped}");
    }
}

/// What `session:ready` says of a session with these messages.
async fn ready(messages: Vec<Message>) -> SessionReady {
    let (sender, mut events) = mpsc::channel(100);
    let stage = Stage::new(json!([]));
    let mut options = stage.options(sender);
    options.store = Store::in_memory(Header::new("/"));
    for message in messages {
        options.store.append(EntryKind::message(message)).unwrap();
    }
    let session = Session::create(options).await.unwrap().session;
    drop(session);
    while let Some(Emission { kind, .. }) = events.recv().await {
        if let EventKind::SessionReady(ready) = kind {
            return ready;
        }
    }
    panic!("the session was never ready");
}

#[tokio::test]
async fn a_session_says_how_full_its_window_is_from_the_start() {
    let new = ready(Vec::new()).await;
    assert!(!new.history_loaded);
    assert_eq!((new.usage.use_tokens, new.usage.prompt_tokens), (0, 0));
    assert_eq!(new.usage.max_tokens, 200_000);

    let said = |text: &str| Message::User(UserMessage::text(text, 0));
    let Message::Assistant(mut reply) = models::reply(&scripted("x"), Vec::new()) else {
        panic!("it is a reply");
    };
    (reply.usage.input, reply.usage.output) = (900, 50);
    let reply = Message::Assistant(reply);
    let old = ready(vec![said("go"), reply, said("four letters, thrice")]).await;
    assert!(old.history_loaded);
    // What was counted, and an estimate of what came after it.
    assert_eq!((old.usage.use_tokens, old.usage.prompt_tokens), (955, 900));
}
