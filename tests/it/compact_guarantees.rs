//! What holds when a compaction goes wrong, and how often there is one.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::session::{SessionError, Stop};
use serde_json::{Value, json};

use crate::compact_scene::{compact, layout, long, open, overflow, read, said, stage};
use crate::support::session::{Play, Stage, expecting};

/// A turn that reads twice and is compacted before its third step; what the
/// model is asked for a summary gets these replies.
fn reading(summaries: Vec<Value>) -> Stage {
    let mut replies = vec![read("a", 100), read("b", 17_000)];
    replies.extend(summaries);
    replies.push(said("done", 3_000));
    stage(json!(replies))
}

async fn played(stage: Stage) -> Play {
    let mut play = open(stage).await;
    let answer = play.prompt(&long("Count them.")).await.unwrap();
    assert_eq!(answer.text, "done");
    play
}

#[tokio::test]
async fn without_a_usable_summary_the_output_of_tools_goes_first() {
    let table = [
        (
            json!({"text": "half a summ", "stop": "length"}),
            "cut by the output limit",
        ),
        (json!({"text": " \n"}), "wrote no summary"),
        (
            json!({"text": "No.", "stop": "refusal"}),
            "refused to write a summary",
        ),
        (overflow(), "exceeds the model's context window"),
    ];
    for (reply, why) in table {
        let play = played(reading(vec![reply])).await;
        let now = layout(&play.session.messages());
        let told = play.end().await;
        insta::allow_duplicates! { insta::assert_snapshot!(now) };
        let [warning] = told.data("warning").try_into().unwrap();
        assert_eq!(warning["code"], "compaction_fallback", "{why}");
        let message = warning["message"].as_str().unwrap();
        assert!(
            message.starts_with("older output of tools is left out"),
            "{message}"
        );
        assert!(message.contains(why), "{message}");
        let [exec] = told.data("compact:exec").try_into().unwrap();
        assert_eq!(exec["aborted"], false, "{exec}");
    }
}

#[tokio::test]
async fn a_summary_that_saves_too_little_is_followed_by_leaving_out_more() {
    // As long as what it stands for.
    let play = played(reading(vec![said(&"s".repeat(12_000), 50)])).await;
    let now = layout(&play.session.messages());
    let told = play.end().await;
    insta::assert_snapshot!(now);
    let [exec] = told.data("compact:exec").try_into().unwrap();
    assert!(exec["compactRate"].as_f64().unwrap() <= 0.8, "{exec}");
    let warnings = told.field("warning", "code");
    assert_eq!(warnings, [json!("compaction_fallback")]);
}

#[tokio::test]
async fn a_summary_that_could_not_save_enough_is_not_asked_for() {
    // The newest result is nearly everything there is.
    let replies = json!([read("a", 17_000), said("done", 3_000)]);
    let mut play = open(stage(replies)).await;
    play.prompt("Count them.").await.unwrap();
    let now = layout(&play.session.messages());
    let told = play.end().await;
    insta::assert_snapshot!(now);
    assert_eq!(told.data("compact:exec")[0]["usage"]["input"], 0);
}

#[tokio::test]
async fn the_call_for_a_summary_is_tried_again_like_any_other() {
    let busy = json!({"error": {"status": 529}});
    let play = played(reading(vec![busy, said("SUMMARY", 50)])).await;
    assert!(layout(&play.session.messages()).contains("SUMMARY"));
    let told = play.end().await;
    assert_eq!(told.field("retry:end", "success"), [json!(true)]);
    assert!(told.data("warning").is_empty());
}

#[tokio::test]
async fn by_hand_a_failure_is_told_and_changes_nothing() {
    let cut = json!({"text": "half a summ", "stop": "length"});
    let replies = json!([
        said("first", 100),
        said("second", 200),
        cut,
        said("here", 300)
    ]);
    let mut play = open(stage(replies)).await;
    play.prompt(&long("Count them.")).await.unwrap();
    play.prompt(&long("Sort them.")).await.unwrap();
    let before = play.session.messages();
    let failed = compact(&mut play, None).await.unwrap_err();
    let why = "the conversation was not compacted: the summary was cut by the output limit";
    assert!(
        matches!(failed, SessionError::NotCompacted(_)),
        "{failed:?}"
    );
    assert_eq!(failed.to_string(), why);
    assert_eq!(play.session.messages(), before);
    play.prompt("Still there?").await.unwrap();
    let told = play.end().await;
    assert_eq!(told.field("compact:exec", "aborted"), [json!(true)]);
}

#[tokio::test]
async fn what_the_budget_has_no_room_for_is_not_begun() {
    // Room for the next step, but not for a summary of up to 8,000 tokens.
    let mut stage = reading(vec![]).limits(|limits| limits.max_tokens = 30_500);
    stage.compaction.reserve_tokens = 10_000;
    let play = played(stage).await;
    let told = play.end().await;
    let [warning] = told.data("warning").try_into().unwrap();
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.contains("the budget has no room for a summary"),
        "{message}"
    );
    let [exec] = told.data("compact:exec").try_into().unwrap();
    assert_eq!(
        (&exec["aborted"], &exec["costUsd"]),
        (&json!(false), &json!(0.0))
    );
}

#[tokio::test]
async fn a_summary_costs_money_and_tokens_but_no_turn() {
    let play = played(reading(vec![said("SUMMARY", 50)])).await;
    let budget = play.session.budget();
    let used = |kind| budget[&kind].used;
    assert_eq!(used(agent::event::LimitKind::Turns), 3.0);
    assert_eq!(used(agent::event::LimitKind::Tokens), 20_150.0);
    play.end().await;
}

#[tokio::test]
async fn a_session_is_compacted_only_so_often() {
    let replies = json!([
        read("a", 17_000),
        said("SUMMARY", 50),
        read("b", 17_000),
        overflow(),
    ]);
    let mut stage = stage(replies);
    stage.compaction.max_compactions = 1;
    let mut play = open(stage).await;
    let stop = play.prompt(&long("Count them.")).await.unwrap_err();
    assert!(matches!(stop, Stop::Model { .. }), "{stop}");
    let told = play.end().await;
    assert_eq!(told.data("compact:start").len(), 1);
}

#[tokio::test]
async fn a_session_may_do_without() {
    let mut stage = stage(json!([read("a", 17_000), overflow()]));
    stage.compaction.enabled = false;
    let mut play = open(stage).await;
    play.prompt(&long("Count them.")).await.unwrap_err();
    let told = play.end().await;
    assert!(told.data("compact:start").is_empty());
}

#[tokio::test]
async fn a_script_that_does_not_fit_is_never_papered_over() {
    let wrong = expecting(
        said("SUMMARY", 50),
        json!({"contains": ["nobody says this"]}),
    );
    let mut play = open(stage(json!([read("a", 17_000), wrong]))).await;
    let stop = play.prompt(&long("Count them.")).await.unwrap_err();
    assert!(stop.to_string().contains("nobody says this"), "{stop}");
    let told = play.end().await;
    assert_eq!(told.data("compact:exec")[0]["aborted"], true);
}
