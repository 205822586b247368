//! What a compaction would do: estimates, cuts, split turns, files, stale counts.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::sync::Arc;

use agent::message::{Content, Image, Message, Thinking, ToolCall, UserMessage};
use agent::session::{Compaction, CompactionPlan, ContextTokens, EstimatedTokens};
use serde_json::json;

use crate::support::conversation::{conversation, id, text};

/// The first kept entry, the turn it splits, and the messages of both parts.
fn cut(words: &str, keep: u64) -> (usize, Option<usize>, usize, usize) {
    let plan = CompactionPlan::new(&conversation(words), keep);
    assert_eq!(plan.first_kept_id, Some(id(plan.first_kept)), "{words}");
    (
        plan.first_kept,
        plan.turn_start,
        plan.history.len(),
        plan.prefix.len(),
    )
}

#[test]
fn the_newest_messages_stay_from_the_first_place_that_may_be_cut() {
    let turns = "u10 a10 u10 a10 u10 a10";
    let steps = "x u10 c10:read=a r10 c10:read=b r10 a10";
    let table = [
        // Whole turns: the budget is met exactly, or overstepped.
        (turns, 10, (5, Some(4), 4, 1)),
        (turns, 11, (4, None, 4, 0)),
        (turns, 20, (4, None, 4, 0)),
        (turns, 21, (3, Some(2), 2, 1)),
        (turns, 60, (0, None, 0, 0)),
        (turns, 61, (0, None, 0, 0)),
        // Never at a result: the next place after it.
        (steps, 1, (6, Some(1), 0, 5)),
        (steps, 20, (6, Some(1), 0, 5)),
        (steps, 25, (4, Some(1), 0, 3)),
        (steps, 999, (0, None, 0, 0)),
        // A trailing result of any size: the last place before it.
        ("u10 a10 u10 c10:read=a r9000", 100, (3, Some(2), 2, 1)),
        ("u10 c10:read=a,read=b r10 r9000", 100, (1, Some(0), 0, 1)),
        ("u10 c10:read=a r10 u9000", 100, (3, None, 3, 0)),
        // Results that nobody asked for cannot be cut off from anything.
        ("x", 1, (0, None, 0, 0)),
        // Whatever comes from the user's side begins a turn.
        ("u10 a10 b10 a10", 1, (3, Some(2), 2, 1)),
        ("u10 a10 m10 a10", 11, (2, None, 2, 0)),
        ("u10 a10 m10 a10", 1, (3, Some(2), 2, 1)),
        // What is set before a message stays with it.
        ("u10 a10 x x u10 a10", 20, (2, None, 2, 0)),
        ("u10 a10 x u10 x a10", 1, (4, Some(3), 2, 1)),
    ];
    for (words, keep, expect) in table {
        assert_eq!(cut(words, keep), expect, "{words} keeping {keep}");
    }
}

#[test]
fn a_session_without_entries_has_nothing_to_compact() {
    let plan = CompactionPlan::new(&conversation(""), 1);
    assert!(plan.is_empty());
    assert_eq!((plan.entries, plan.first_kept_id), (0, None));
}

#[test]
fn a_second_compaction_begins_where_the_first_one_kept() {
    let table = [
        // Kept before, summarised now; the summary itself is no message.
        ("u10 a10 u10 a10 S2 u10 a10", 20, (5, None, 2, 0)),
        ("u10 a10 u10 a10 S2 u10 a10", 21, (3, Some(2), 0, 1)),
        ("u10 a10 u10 a10 S2 u10 a10", 99, (2, None, 0, 0)),
        // The turn began before the first cut: its rest continues the summary.
        (
            "u10 c10:read=a r10 c10:read=b r10 S3 a10",
            10,
            (6, None, 2, 0),
        ),
        // A compaction is a boundary; what is set before it stays there.
        ("u10 a10 S1 x u10 a10", 20, (3, None, 1, 0)),
        // Nothing came since.
        ("u10 a10 u10 a10 S2", 99, (2, None, 0, 0)),
        // The first kept entry is not on the path: nothing was kept.
        ("u10 a10 S7 u10 a10", 1, (4, Some(3), 0, 1)),
    ];
    for (words, keep, expect) in table {
        assert_eq!(cut(words, keep), expect, "{words} keeping {keep}");
    }
    let plan = CompactionPlan::new(&conversation("u10 a10 u10 S2 a10 u10"), 10);
    assert_eq!(plan.previous_summary.as_deref(), Some("Summary 3."));
    let said: Vec<String> = plan
        .history
        .iter()
        .map(|message| words_of(message))
        .collect();
    assert_eq!(said, [text(2, 10), text(4, 10)]);
}

fn words_of(message: &Message) -> String {
    match message {
        Message::User(message) => match message.content.as_slice() {
            [Content::Text(block)] => block.text.clone(),
            _ => String::new(),
        },
        Message::Assistant(reply) => reply.text(),
        Message::ToolResult(result) => result.text(),
    }
}

#[test]
fn files_are_tracked_up_to_the_cut_and_across_compactions() {
    let files = |words: &str, keep| {
        let files = CompactionPlan::new(&conversation(words), keep).files;
        json!(files).to_string()
    };
    let table = [
        (
            "u1 c9:read=b r1 c9:read=a r1 a9",
            1,
            r#"{"readFiles":["a","b"],"modifiedFiles":[]}"#,
        ),
        (
            "u1 c9:read=a r1 c9:edit=a r1 a9",
            1,
            r#"{"readFiles":[],"modifiedFiles":["a"]}"#,
        ),
        (
            "u1 c9:edit=a r1 c9:read=a r1 a9",
            1,
            r#"{"readFiles":[],"modifiedFiles":["a"]}"#,
        ),
        (
            "u1 c9:write=n,bash=x,grep=y r1 r1 r1 a9",
            1,
            r#"{"readFiles":[],"modifiedFiles":["n"]}"#,
        ),
        // What stays is still in the conversation.
        (
            "u1 a9 u1 c9:read=a r1 a9",
            20,
            r#"{"readFiles":[],"modifiedFiles":[]}"#,
        ),
        (
            "u1 a9 S1 u1 c9:edit=new r1 a9",
            1,
            r#"{"readFiles":["old"],"modifiedFiles":["new"]}"#,
        ),
        (
            "u1 a9 S1 u1 c9:edit=old r1 a9",
            1,
            r#"{"readFiles":[],"modifiedFiles":["old"]}"#,
        ),
    ];
    for (words, keep, expect) in table {
        assert_eq!(files(words, keep), expect, "{words}");
    }
}

#[test]
fn what_a_provider_counted_holds_until_the_next_compaction() {
    let table: [(&str, Option<u64>, u64); 9] = [
        ("", None, 0),
        ("u10 a10", None, 20),
        ("u10 a10@500", Some(500), 0),
        ("u10 a10@500 u7 a9", Some(500), 16),
        ("u10 a10@500 u7 a9@600", Some(600), 0),
        // A failed reply counts nothing.
        ("u10 a10@500 u7 f9@900", Some(500), 16),
        // Counted before the compaction: of another conversation.
        ("u10 a10@500 u10 S2 a10", None, 53),
        ("u10 a10 u10 a10@500 S2 u10", None, 63),
        ("u10 a10@500 u10 S2 a10@77 u3", Some(77), 3),
    ];
    for (words, counted, estimated) in table {
        let tokens = ContextTokens::of(&conversation(words));
        assert_eq!(tokens, ContextTokens { counted, estimated }, "{words}");
        assert_eq!(tokens.total(), counted.unwrap_or(0) + estimated);
    }
}

#[test]
fn a_message_is_estimated_as_a_whole_by_its_utf_16_units() {
    let user = |content| {
        Arc::new(Message::User(UserMessage {
            content,
            timestamp: 0,
        }))
    };
    let thinking = Content::Thinking(Thinking {
        thinking: "12345".to_owned(),
        thinking_signature: Some("x".repeat(400)),
        redacted: false,
    });
    let image = Content::Image(Image {
        data: "A".repeat(9_000),
        mime_type: "image/png".to_owned(),
    });
    let call = Content::ToolCall(ToolCall {
        id: "call-1".to_owned(),
        name: "read".to_owned(),
        arguments: json!({"path": "é"}),
        invalid_arguments: None,
        thought_signature: None,
    });
    let table = [
        (vec![], 0),
        (vec![Content::text("")], 0),
        (vec![Content::text("abcd")], 1),
        (vec![Content::text("abcde")], 2),
        // Two blocks of half a token each are one.
        (vec![Content::text("ab"), Content::text("cd")], 1),
        (vec![Content::text("éééé")], 1),
        (vec![Content::text("🌳🌳")], 1),
        (vec![Content::text("🌳🌳x")], 2),
        (vec![image], 1_200),
        (vec![thinking], 2),
        // `read` and `{"path":"é"}`.
        (vec![call], 4),
    ];
    for (content, expect) in table {
        let messages = [user(content.clone())];
        let sums = EstimatedTokens::of(&messages);
        assert_eq!((sums.total, sums.user), (expect, expect), "{content:?}");
    }
    let tree = conversation("u10 c0:read=ab r7 a3");
    let sums = EstimatedTokens::of(tree.messages());
    assert_eq!(
        json!(sums).to_string(),
        r#"{"total":25,"user":10,"assistant":8,"toolResult":7}"#
    );
}

#[test]
fn the_defaults_are_those_of_the_task_file() {
    assert_eq!(
        Compaction::default(),
        Compaction {
            enabled: true,
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            max_compactions: 8,
            min_reduction: 0.2,
        }
    );
}
