//! Compaction while a session runs: when it happens, what the model sees after.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::sync::Arc;
use std::time::Duration;

use agent::event::EventKind;
use agent::hook::{CompactVerdict, HookPoint, Hooks};
use agent::session::{Cause, Interrupt, LeftBranch, SessionError, Stop};
use serde_json::{Value, json};

use crate::compact_scene::{compact, layout, long, open, overflow, read, said, stage};
use crate::support::hooks::{Heard, Probe};
use crate::support::session::{expecting, text};

#[tokio::test]
async fn a_turn_that_nears_the_window_is_compacted_between_its_steps() {
    let summary = expecting(
        said("SUMMARY ONE", 900),
        json!({"contains": ["## Critical context", "[User]: Count them."], "tools": []}),
    );
    let done = expecting(
        said("done", 3_000),
        json!({"contains": ["SUMMARY ONE"], "tools": ["read"]}),
    );
    // What the kept reply counted is of the conversation before: it is stale.
    let replies = json!([read("a", 17_000), summary, done]);
    let mut play = open(stage(replies)).await;
    let answer = play.prompt(&long("Count them.")).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.steps), ("done", 2));
    let now = layout(&play.session.messages());
    let told = play.end().await;
    insta::assert_snapshot!(now);
    let names = told.names();
    let around = names
        .iter()
        .position(|name| *name == "compact:start")
        .unwrap();
    assert_eq!(
        names[around - 1..around + 4],
        [
            "step:end",
            "compact:start",
            "compact:exec",
            "conversation:usage",
            "step:start"
        ]
    );
    let start = told.data("compact:start")[0];
    let exec = told.data("compact:exec")[0];
    assert_eq!(start["compactionId"], exec["compactionId"]);
    assert_eq!(
        (&start["reason"], &exec["reason"]),
        (&json!("threshold"), &json!("threshold"))
    );
    let before = start["tokenBefore"].as_u64().unwrap();
    let after = exec["tokenCompact"].as_u64().unwrap();
    assert_eq!(exec["tokenBefore"], before);
    assert!((19_000..19_200).contains(&before), "{before}");
    assert!(after * 10 < before * 8, "{after}");
    assert_eq!(exec["compactRate"], after as f64 / before as f64);
    assert_eq!(exec["usage"]["input"], 900);
    assert_eq!(
        (&exec["aborted"], &exec["willRetry"]),
        (&json!(false), &json!(false))
    );
    assert!(exec.get("errMsg").is_none(), "{exec}");
    let usage = told.data("conversation:usage")[1];
    assert_eq!(usage["usage"]["useTokens"], after);
    assert_eq!(usage["totals"]["input"], 17_900);
}

#[tokio::test]
async fn a_conversation_that_a_provider_refuses_as_too_long_is_compacted_once() {
    let done = expecting(said("done", 3_000), json!({"contains": ["SUMMARY ONE"]}));
    let replies = json!([read("a", 100), overflow(), said("SUMMARY ONE", 900), done]);
    let mut play = open(stage(replies)).await;
    let answer = play.prompt(&long("Count them.")).await.unwrap();
    assert_eq!((answer.text.as_str(), answer.steps), ("done", 2));
    let told = play.end().await;
    assert_eq!(told.speakers(), "uara");
    let exec = told.data("compact:exec")[0];
    assert_eq!(exec["reason"], "overflow");
    assert_eq!(exec["willRetry"], true);
    // The provider knows better than the count.
    assert_eq!(exec["tokenBefore"], 20_000);
    // The refused call and the second one are one step.
    assert_eq!(told.data("step:start").len(), 2);
    assert!(told.data("session:error").is_empty());
}

/// Some providers take a conversation that is too long and answer to the part
/// of it that fits: only their counts tell.
#[tokio::test]
async fn a_conversation_that_was_cut_silently_is_compacted_once() {
    let answered = said("an answer to half of it", 20_001);
    let silent = json!({"text": "", "stop": "length", "usage": {"input": 19_900}});
    for overflowing in [answered, silent] {
        let used = overflowing["usage"]["input"].as_u64().unwrap();
        let done = expecting(said("done", 3_000), json!({"contains": ["SUMMARY ONE"]}));
        let replies = json!([read("a", 100), overflowing, said("SUMMARY ONE", 900), done]);
        let mut stage = stage(replies);
        stage.model.limits_known = true;
        let mut play = open(stage).await;
        let answer = play.prompt(&long("Count them.")).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.steps), ("done", 2));
        let told = play.end().await;
        assert_eq!(told.speakers(), "uara");
        assert_eq!(told.field("compact:exec", "reason"), [json!("overflow")]);
        // It was no answer, but it is paid for.
        let discarded = told.data("reply:discarded");
        assert_eq!(discarded.len(), 1);
        assert_eq!(discarded[0]["errorCode"], "context_overflow");
        assert_eq!(discarded[0]["usage"]["input"], used);
        let usage = told.data("conversation:usage");
        let last = usage.last().unwrap();
        assert_eq!(last["totals"]["input"], 100 + used + 900 + 3_000);
    }
}

/// What a window is that nobody knows is no reason to discard an answer.
#[tokio::test]
async fn an_assumed_window_overflows_only_when_the_provider_says_so() {
    let replies = json!([said("a long answer", 20_001)]);
    let mut play = open(stage(replies)).await;
    let answer = play.prompt("Count them.").await.unwrap();
    assert_eq!(answer.text, "a long answer");
    assert!(play.end().await.data("compact:exec").is_empty());
}

#[tokio::test]
async fn a_second_refusal_ends_the_turn_and_says_why() {
    let replies = json!([
        read("a", 100),
        overflow(),
        said("SUMMARY ONE", 900),
        overflow(),
        text("I am back."),
    ]);
    let mut play = open(stage(replies)).await;
    let stop = play.prompt(&long("Count them.")).await.unwrap_err();
    assert!(matches!(stop, Stop::Model { .. }), "{stop}");
    // The session goes on from the shorter conversation.
    let answer = play.prompt("Still there?").await.unwrap();
    assert_eq!(answer.text, "I am back.");
    let told = play.end().await;
    assert_eq!(told.speakers(), "uarua");
    assert_eq!(told.data("compact:exec").len(), 1);
    let error = told.data("session:error")[0];
    assert_eq!(error["type"], "context_length_exceeded");
    assert_eq!(error["error"]["code"], "context_overflow");
}

#[tokio::test]
async fn the_newest_compaction_is_brought_up_to_date_by_the_next_one() {
    let update = expecting(
        said("SUMMARY TWO", 900),
        json!({"contains": ["<previous-summary>\nSUMMARY ONE\n</previous-summary>", "first"]}),
    );
    let prefix = expecting(
        said("THE TURN", 100),
        json!({"contains": ["Go on.", "[Tool result]"]}),
    );
    let replies = json!([
        read("a", 100),
        said("first", 200),
        said("SUMMARY ONE", 900),
        read("b", 300),
        said("second", 400),
        update,
        prefix,
        said("third", 500),
    ]);
    let mut play = open(stage(replies)).await;
    play.prompt(&long("Count them.")).await.unwrap();
    let before = layout(&play.session.messages());
    assert_eq!(play.session.context_usage().tokens, Some(200));
    let first = compact(&mut play, None).await.unwrap();
    insta::assert_snapshot!(format!(
        "BEFORE\n{before}\n\nAFTER\n{}",
        layout(&play.session.messages())
    ));
    assert_eq!(
        first.summary,
        "SUMMARY ONE\n\n<read-files>\na\n</read-files>"
    );
    let usage = play.session.context_usage();
    assert_eq!(
        (usage.tokens, usage.window, usage.percent),
        (None, 20_000, None)
    );
    play.prompt(&long("Go on.")).await.unwrap();
    assert_eq!(play.session.context_usage().percent, Some(2.0));
    let second = compact(&mut play, None).await.unwrap();
    assert_eq!(
        second.summary,
        "SUMMARY TWO\n\n---\n\nThe first part of the turn that goes on below:\n\nTHE TURN\n\n\
         <read-files>\na\nb\n</read-files>"
    );
    play.prompt("And now?").await.unwrap();
    let told = play.end().await;
    let reasons = told.field("compact:start", "reason");
    assert_eq!(reasons, [json!("manual"), json!("manual")]);
}

#[tokio::test]
async fn a_split_turn_gets_two_summaries() {
    let history = expecting(
        said("THE HISTORY", 50),
        json!({"contains": ["## Constraints"]}),
    );
    let prefix = expecting(
        said("THE PREFIX", 50),
        json!({"contains": ["## For what follows"]}),
    );
    let replies = json!([
        said("first", 100),
        read("a", 17_000),
        history,
        prefix,
        said("done", 3_000),
    ]);
    let mut play = open(stage(replies)).await;
    play.prompt(&long("Count them.")).await.unwrap();
    play.prompt(&long("Weigh them.")).await.unwrap();
    insta::assert_snapshot!(layout(&play.session.messages()));
    let told = play.end().await;
    assert_eq!(told.data("compact:exec")[0]["usage"]["input"], 100);
}

#[tokio::test]
async fn by_hand_with_instructions_or_not_at_all() {
    let summary = expecting(
        said("SUMMARY", 50),
        json!({"contains": ["Attend above all to this: the dates"]}),
    );
    let replies = json!([said("first", 100), said("second", 200), summary]);
    let mut play = open(stage(replies)).await;
    let nothing = |outcome| matches!(outcome, Err(SessionError::NothingToCompact));
    assert!(nothing(compact(&mut play, None).await), "an empty session");
    play.prompt(&long("Count them.")).await.unwrap();
    play.prompt(&long("Weigh them.")).await.unwrap();
    let done = compact(&mut play, Some("the dates")).await.unwrap();
    assert_eq!(done.tokens_before, 200);
    assert!(done.tokens_after < 160, "{}", done.tokens_after);
    assert!(
        nothing(compact(&mut play, None).await),
        "nothing came since"
    );
    let told = play.end().await;
    assert_eq!(told.data("compact:start").len(), 1);
    assert_eq!(told.data("compact:start")[0]["reason"], "manual");
}

/// Outside a turn nobody else looks after the time.
#[tokio::test]
async fn a_silent_model_holds_neither_a_compaction_nor_a_move() {
    let silent = || json!({"text": "never", "delay": "1h"});
    let replies = json!([said("a", 100), said("b", 200), silent(), silent()]);
    let stage = stage(replies).limits(|limits| limits.idle_timeout = Duration::from_millis(50));
    let mut play = open(stage).await;
    for text in ["Count them.", "Weigh them."] {
        play.prompt(&long(text)).await.unwrap();
    }
    let leaf = play.session.tree().leaf();
    let both = async {
        let compacted = play.session.compact(None).await.map(|_| ());
        let first = play.session.tree().forkable().remove(0).entry_id;
        let left = LeftBranch::Summarised(None);
        let moved = play.session.tree().navigate(&first, left).await;
        [compacted, moved.map(|_| ())]
    };
    let both = tokio::time::timeout(Duration::from_secs(30), both).await;
    for outcome in both.expect("both end in time") {
        let is_idle = matches!(&outcome, Err(SessionError::Stopped(stop)) if stop.code() == "idle");
        assert!(is_idle, "{outcome:?}");
    }
    assert_eq!(play.session.tree().leaf(), leaf);
    play.drain();
    play.end().await;
}

#[tokio::test]
async fn an_interrupt_ends_a_compaction_and_keeps_the_conversation() {
    let slow = json!({"text": "too late", "delay": "60s"});
    let replies = json!([read("a", 17_000), slow, said("SUMMARY", 50), text("done")]);
    let mut play = open(stage(replies)).await;
    let interrupt = Interrupt::default();
    let stop = play
        .prompt_watched(&long("Count them."), &interrupt, |kind| {
            if matches!(kind, EventKind::CompactStart(_)) {
                interrupt.trigger(Cause::User);
            }
        })
        .await
        .unwrap_err();
    assert!(matches!(stop, Stop::Interrupted(Cause::User)), "{stop}");
    assert_eq!(play.session.messages().len(), 3);
    play.prompt("Go on.").await.unwrap();
    let told = play.end().await;
    let [aborted, done] = told.data("compact:exec").try_into().unwrap();
    assert_eq!(
        (&aborted["aborted"], &done["aborted"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(aborted["errMsg"], "cancelled");
    assert_eq!(aborted["tokenCompact"], aborted["tokenBefore"]);
    assert_eq!(aborted["compactRate"], 1.0);
}

#[tokio::test]
async fn repeated_calls_are_counted_across_a_compaction() {
    let replies = json!([
        read("a", 100),
        read("a", 17_000),
        said("SUMMARY", 50),
        expecting(read("a", 3_000), json!({"contains": ["SUMMARY"]})),
        expecting(
            said("done", 3_100),
            json!({"contains": ["for the 3. time in a row"]})
        ),
    ]);
    let mut play = open(stage(replies)).await;
    play.prompt(&long("Count them.")).await.unwrap();
    let told = play.end().await;
    assert_eq!(told.field("loop:detected", "count"), [json!(3)]);
}

#[tokio::test]
async fn a_hook_supplies_the_summary_or_forbids_the_compaction() {
    let supply = || CompactVerdict::Summary("BY A HOOK".to_owned());
    let forbid = || CompactVerdict::Cancel("not now".to_owned());
    let after = |contains: &str| expecting(said("done", 3_000), json!({"contains": [contains]}));
    type Case = (fn() -> CompactVerdict, Value, bool);
    let table: [Case; 2] = [
        (supply, after("BY A HOOK"), false),
        (forbid, after("[user prompt]"), true),
    ];
    for (verdict, done, aborted) in table {
        let heard = Heard::default();
        let mut probe = Probe::new("probe", &heard).only(HookPoint::BeforeCompact);
        probe.compact = Box::new(move |_| verdict());
        let mut stage = stage(json!([read("a", 17_000), done]));
        stage.hooks = Hooks::new().with_hook(Arc::new(probe));
        let mut play = open(stage).await;
        play.prompt(&long("[user prompt]")).await.unwrap();
        let told = play.end().await;
        let [exec] = told.data("compact:exec").try_into().unwrap();
        assert_eq!(exec["aborted"], aborted, "{exec}");
        assert_eq!(
            exec.get("errMsg"),
            aborted
                .then(|| json!("a hook cancelled it: not now"))
                .as_ref()
        );
        let [asked] = heard.at(HookPoint::BeforeCompact).try_into().unwrap();
        assert_eq!(asked["reason"], "threshold");
        assert_eq!(asked["tokens_before"], exec["tokenBefore"]);
    }
}
