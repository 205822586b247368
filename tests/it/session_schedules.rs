//! Whatever several callers do to a session at once, in whatever order: the
//! history stays valid, the queue ends empty, everybody gets an answer.

use agent::session::{
    ClearPending, ForkPoint, PendingQuery, PendingStatus, PromptOptions, StreamingBehavior,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::room::{Gate, Room};
use crate::support::session::{Stage, calls, text};

/// What somebody does to the session.
#[derive(Debug, Clone, Copy)]
enum Act {
    Prompt(Option<StreamingBehavior>),
    Steer,
    FollowUp,
    NextTurn,
    Cancel,
    Clear,
    Fork,
    /// Lets the model's tool come back.
    Open,
    /// Lets everybody go on for a while.
    Yield(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        2 => Just(Act::Prompt(None)),
        3 => Just(Act::Prompt(Some(StreamingBehavior::FollowUp))),
        2 => Just(Act::Prompt(Some(StreamingBehavior::Steer))),
        3 => Just(Act::Steer),
        3 => Just(Act::FollowUp),
        1 => Just(Act::NextTurn),
        1 => Just(Act::Cancel),
        1 => Just(Act::Clear),
        1 => Just(Act::Fork),
        4 => Just(Act::Open),
        4 => (1u8..40).prop_map(Act::Yield),
    ]
}

/// A reply that waits at the gate, one that answers, one that fails.
fn reply() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(calls(&["gate"])),
        4 => Just(text("an answer")),
        1 => Just(json!({"error": {"status": 400, "message": "no"}})),
    ]
}

/// Does all of it; prompts run beside the rest.
async fn play(room: &Room, gate: &Gate, acts: &[Act]) {
    let mut prompts = Vec::new();
    for (n, act) in acts.iter().enumerate() {
        let session = &room.session;
        match *act {
            Act::Prompt(streaming_behavior) => {
                let options = PromptOptions {
                    streaming_behavior,
                    ..PromptOptions::default()
                };
                let mut prompt = Box::pin(session.prompt(format!("prompt {n}"), options));
                // As far as it goes by itself, so that the order is the script's.
                if futures_util::poll!(&mut prompt).is_pending() {
                    prompts.push(prompt);
                }
            }
            Act::Steer => session.steer(format!("steer {n}")).await.unwrap(),
            Act::FollowUp => session.follow_up(format!("later {n}")).await.unwrap(),
            Act::NextTurn => session.send_message(format!("beside {n}")).unwrap(),
            Act::Cancel => session.cancel().await,
            Act::Clear => session.clear_pending_state(ClearPending::Waiting).await,
            Act::Fork => drop(session.fork(ForkPoint::Whole).await.unwrap()),
            Act::Open => gate.open(),
            Act::Yield(times) => {
                for _ in 0..times {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
    // More often than the model can come to the gate.
    for _ in 0..100 {
        gate.open();
    }
    // Those who are still waiting get an answer, whatever it is.
    for prompt in prompts {
        let _ = prompt.await;
    }
    room.session.at_rest().await;
}

fn check(acts: &[Act], mut replies: Vec<Value>) {
    // Enough for every message, whatever the replies before it were.
    replies.extend(std::iter::repeat_n(text("enough"), acts.len() + 1));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let gate = Gate::new();
        let room = Stage::lenient(replies.into())
            .tool(gate.tool())
            .room()
            .await;
        let deadline = std::time::Duration::from_secs(20);
        tokio::time::timeout(deadline, play(&room, &gate, acts))
            .await
            .expect("the schedule ends");
        assert_eq!(room.session.pending(), Default::default());
        assert!(!room.session.is_running());
        let settled = room.session.pending_messages(PendingQuery {
            include_resolved: true,
            ..PendingQuery::default()
        });
        assert!(
            settled
                .iter()
                .all(|message| message.status != PendingStatus::Queued)
        );
        // The session is still of use.
        let last = room
            .session
            .prompt("the last", PromptOptions::default())
            .await;
        assert!(last.is_ok() || !last.unwrap_err().is_cancelled());
        room.end().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_schedule_ends_with_a_valid_history_and_an_empty_queue(
        acts in prop::collection::vec(act(), 1..24),
        replies in prop::collection::vec(reply(), 0..12),
    ) {
        check(&acts, replies);
    }
}
