//! The scenarios of a session, second half: messages that come while a prompt
//! runs.

use agent::session::{
    ClearPending, ForkPoint, PendingQuery, PendingStatus, PromptOptions, QueueSource, SessionError,
    StreamingBehavior,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::support::room::{Gate, Room};
use crate::support::session::{Stage, calls, expecting, text};

/// A session whose first reply waits at the gate and is followed by `replies`.
async fn gated(gate: &Gate, replies: &[Value]) -> Room {
    let mut script = vec![calls(&["gate"])];
    script.extend(replies.iter().cloned());
    Stage::new(script.into()).tool(gate.tool()).room().await
}

fn as_follow_up() -> PromptOptions {
    PromptOptions {
        streaming_behavior: Some(StreamingBehavior::FollowUp),
        ..PromptOptions::default()
    }
}

fn as_steering() -> PromptOptions {
    PromptOptions {
        streaming_behavior: Some(StreamingBehavior::Steer),
        ..PromptOptions::default()
    }
}

/// Source, status and preview of all messages that are remembered.
fn pending(room: &Room) -> Vec<(QueueSource, PendingStatus, String)> {
    let query = PendingQuery {
        include_resolved: true,
        ..PendingQuery::default()
    };
    let messages = room.session.pending_messages(query);
    let fields = messages
        .into_iter()
        .map(|message| (message.source, message.status, message.preview));
    fields.collect()
}

/// Runs "go" up to the gate, then `meanwhile`, then to its end.
async fn while_running(
    room: &Room,
    gate: &Gate,
    meanwhile: impl Future<Output = ()>,
) -> Result<String, SessionError> {
    let (outcome, ()) = tokio::join!(room.session.prompt("go", PromptOptions::default()), async {
        gate.reached().await;
        meanwhile.await;
        gate.open();
    });
    outcome.map(|answer| answer.text)
}

/// Lets the others go on until so many messages wait.
async fn queued(room: &Room, count: u64) {
    while room.session.stats().total_pending() < count {
        tokio::task::yield_now().await;
    }
}

/// The user messages of the history, in order.
fn heard(room: &Room) -> Vec<String> {
    let forkable = room.session.tree().forkable();
    forkable.into_iter().map(|message| message.text).collect()
}

#[tokio::test]
async fn scenario_07_messages_queue_while_running_and_run_in_order() {
    let gate = Gate::new();
    let replies = ["first", "second", "third", "fourth"].map(text);
    let room = gated(&gate, &replies).await;
    let at_gate = Semaphore::new(0);
    let refused = async {
        let refused = room.session.prompt("no", PromptOptions::default()).await;
        assert!(
            matches!(refused, Err(SessionError::PromptAlreadyRunning)),
            "{refused:?}"
        );
    };
    let (first, second, third) = tokio::join!(
        while_running(&room, &gate, async {
            at_gate.close();
            refused.await;
            queued(&room, 2).await;
        }),
        async {
            let _ = at_gate.acquire().await;
            room.session
                .prompt("two", as_follow_up())
                .await
                .unwrap()
                .text
        },
        async {
            queued(&room, 1).await;
            room.session
                .prompt("three", as_follow_up())
                .await
                .unwrap()
                .text
        }
    );
    assert_eq!(first.unwrap(), "first");
    assert_eq!((second.as_str(), third.as_str()), ("second", "third"));
    assert_eq!(heard(&room), ["go", "two", "three"]);
    assert_eq!(room.session.stats().total_pending(), 0);
    assert_eq!(
        room.session
            .prompt("last", as_follow_up())
            .await
            .unwrap()
            .text,
        "fourth"
    );
    room.end().await;
}

#[tokio::test]
async fn scenario_11_the_snapshot_has_order_source_and_preview() {
    let gate = Gate::new();
    let replies = ["a", "b", "c"].map(text);
    let room = gated(&gate, &replies).await;
    let meanwhile = async {
        room.session.follow_up("later").await.unwrap();
        room.session.steer("now").await.unwrap();
        let waiting = |source, preview: &str| (source, PendingStatus::Queued, preview.to_owned());
        assert_eq!(
            pending(&room),
            [
                waiting(QueueSource::FollowUp, "later"),
                waiting(QueueSource::Steer, "now")
            ]
        );
    };
    assert_eq!(while_running(&room, &gate, meanwhile).await.unwrap(), "a");
    room.session.at_rest().await;
    // Steering joined the running turn, the follow-up had its own.
    assert_eq!(heard(&room), ["go", "now", "later"]);
    assert_eq!(
        room.session
            .prompt("end", as_follow_up())
            .await
            .unwrap()
            .text,
        "c"
    );
    room.end().await;
}

#[tokio::test]
async fn scenario_12_counts_per_source_are_zero_after_the_drain() {
    let gate = Gate::new();
    let room = gated(&gate, &["a", "b", "c", "d"].map(text)).await;
    let at_gate = Semaphore::new(0);
    let (outcome, waited) = tokio::join!(
        while_running(&room, &gate, async {
            at_gate.close();
            room.session.steer("s").await.unwrap();
            room.session.follow_up("f").await.unwrap();
            queued(&room, 3).await;
            let counts = room.session.pending();
            assert_eq!(
                (counts.steer, counts.follow_up, counts.prompt_follow_up),
                (1, 1, 1)
            );
        }),
        async {
            let _ = at_gate.acquire().await;
            room.session.prompt("p", as_follow_up()).await.unwrap().text
        }
    );
    assert_eq!(outcome.unwrap(), "a");
    assert!(["b", "c"].contains(&waited.as_str()), "{waited}");
    room.session.at_rest().await;
    assert_eq!(room.session.pending(), Default::default());
    assert_eq!(
        room.session
            .prompt("end", as_follow_up())
            .await
            .unwrap()
            .text,
        "d"
    );
    room.end().await;
}

#[tokio::test]
async fn scenario_13_clearing_forgets_and_cancels_those_who_wait() {
    let gate = Gate::new();
    let room = gated(&gate, &[text("a"), calls(&["gate"])]).await;
    let at_gate = Semaphore::new(0);
    let (first, waited) = tokio::join!(
        while_running(&room, &gate, async {
            at_gate.close();
            queued(&room, 1).await;
            room.session
                .clear_pending_state(ClearPending::Waiting)
                .await;
            assert_eq!(pending(&room), []);
        }),
        async {
            let _ = at_gate.acquire().await;
            room.session.prompt("p", as_follow_up()).await
        }
    );
    // The running prompt went on; the waiting one was cancelled.
    assert_eq!(first.unwrap(), "a");
    assert!(waited.unwrap_err().is_cancelled());

    // With the running one: it ends too.
    let outcome = while_running(&room, &gate, async {
        room.session.follow_up("never").await.unwrap();
        room.session
            .clear_pending_state(ClearPending::WaitingAndActive)
            .await;
    });
    assert!(outcome.await.unwrap_err().is_cancelled());
    assert_eq!(pending(&room), []);
    room.end().await;
}

#[tokio::test]
async fn scenario_14_an_idle_follow_up_runs_once() {
    let replies = json!([expecting(text("a"), json!({"contains": ["alone"]}))]);
    let room = Stage::new(replies).room().await;
    room.session.follow_up("alone").await.unwrap();
    room.session.at_rest().await;
    assert_eq!(heard(&room), ["alone"]);
    assert_eq!(room.session.last_text(), "a");
    let events = room.end().await;
    let turns = events.iter().filter(|event| event["event"] == "turn:start");
    assert_eq!(turns.count(), 1);
}

#[tokio::test]
async fn scenario_16_cancel_reaches_those_who_wait_and_records_them_as_failed() {
    let gate = Gate::new();
    let room = gated(&gate, &[text("later")]).await;
    let at_gate = Semaphore::new(0);
    let (first, waited, steered) = tokio::join!(
        while_running(&room, &gate, async {
            at_gate.close();
            queued(&room, 2).await;
            room.session.cancel().await;
        }),
        async {
            let _ = at_gate.acquire().await;
            room.session.prompt("waits", as_follow_up()).await
        },
        async {
            queued(&room, 1).await;
            room.session.prompt("steers", as_steering()).await
        }
    );
    for outcome in [first.map(|_| ()), waited.map(|_| ()), steered.map(|_| ())] {
        assert!(outcome.unwrap_err().is_cancelled());
    }
    let failed = |source, preview: &str| (source, PendingStatus::Failed, preview.to_owned());
    assert_eq!(
        pending(&room),
        [
            failed(QueueSource::PromptFollowUp, "waits"),
            failed(QueueSource::Steer, "steers")
        ]
    );
    assert_eq!(
        room.session
            .prompt("again", PromptOptions::default())
            .await
            .unwrap()
            .text,
        "later"
    );
    room.end().await;
}

#[tokio::test]
async fn scenario_17_the_history_keeps_the_newest_20() {
    let replies: Vec<Value> = (0..23).map(|n| text(&format!("r{n}"))).collect();
    let room = Stage::new(replies.into()).room().await;
    for n in 0..23 {
        room.session.follow_up(format!("f{n}")).await.unwrap();
        room.session.at_rest().await;
    }
    let kept: Vec<String> = pending(&room)
        .into_iter()
        .map(|message| message.2)
        .collect();
    let newest: Vec<String> = (3..23).map(|n| format!("f{n}")).collect();
    assert_eq!(kept, newest);
    room.session.clear_pending_history();
    assert_eq!(pending(&room), []);
    room.end().await;
}

#[tokio::test]
async fn scenario_18_one_preview_rule_for_waiting_and_settled() {
    let gate = Gate::new();
    let room = gated(&gate, &["a", "b", "c"].map(text)).await;
    // A family of several code points is one character.
    let family = "👨‍👩‍👧";
    let long = format!("{}{}", family.repeat(119), "xyz");
    let exact = family.repeat(120);
    let shown = [format!("{}x...", family.repeat(119)), exact.clone()];
    let previews = |room: &Room| -> Vec<String> {
        pending(room).into_iter().map(|message| message.2).collect()
    };
    let meanwhile = async {
        room.session.follow_up(long.as_str()).await.unwrap();
        room.session.follow_up(exact.as_str()).await.unwrap();
        assert_eq!(previews(&room), shown);
        let short = room.session.pending_messages(PendingQuery {
            max_length: 2,
            include_resolved: false,
        });
        assert_eq!(short[0].preview, format!("{family}{family}..."));
    };
    while_running(&room, &gate, meanwhile).await.unwrap();
    room.session.at_rest().await;
    assert_eq!(previews(&room), shown);
    room.end().await;
}

#[tokio::test]
async fn scenario_19_idle_fire_and_forget_is_recorded() {
    let fails = json!({"error": {"status": 400, "message": "no"}});
    let replies = json!([text("a"), fails, text("b"), fails]);
    let room = Stage::new(replies).room().await;
    for said in ["f ok", "f bad"] {
        room.session.follow_up(said).await.unwrap();
        room.session.at_rest().await;
    }
    for said in ["s ok", "s bad"] {
        room.session.steer(said).await.unwrap();
        room.session.at_rest().await;
    }
    let recorded = |source, status, said: &str| (source, status, said.to_owned());
    assert_eq!(
        pending(&room),
        [
            recorded(QueueSource::FollowUp, PendingStatus::Resolved, "f ok"),
            recorded(QueueSource::FollowUp, PendingStatus::Failed, "f bad"),
            recorded(QueueSource::Steer, PendingStatus::Resolved, "s ok"),
            recorded(QueueSource::Steer, PendingStatus::Failed, "s bad"),
        ]
    );
    room.end().await;
}

#[tokio::test]
async fn scenario_21_a_fork_copies_no_pending_state() {
    let gate = Gate::new();
    let room = gated(&gate, &["a", "b"].map(text)).await;
    let meanwhile = async {
        room.session.follow_up("waits").await.unwrap();
        let fork = room.session.fork(ForkPoint::Whole).await.unwrap();
        assert_eq!(fork.pending(), Default::default());
        assert!(!fork.is_running());
        // Only what is complete: the reply still waits for its tool.
        let kinds: Vec<usize> = fork
            .tree()
            .forkable()
            .iter()
            .map(|m| m.entry_index)
            .collect();
        assert_eq!((kinds, fork.messages().len()), (vec![2], 1));
    };
    assert_eq!(while_running(&room, &gate, meanwhile).await.unwrap(), "a");
    room.session.at_rest().await;
    room.end().await;
}
