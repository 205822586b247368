//! Who writes summaries: the small model, the one that is asked, or what takes
//! over from it; and what each of them costs.

use agent::event::LimitKind;
use agent::session::LeftBranch;
use serde_json::{Value, json};

use crate::compact_scene::{self, compact, long};
use crate::support::models::{priced, scripted};
use crate::support::session::{Play, Stage, Told, expecting, text};

/// 1,000 tokens in, 100 out.
fn summary(words: &str) -> Value {
    json!({"text": words, "usage": {"input": 1_000, "output": 100}})
}

fn refused() -> Value {
    json!({"error": {"status": 401, "code": "authentication_error", "message": "Who?"}})
}

fn overloaded() -> Value {
    json!({"error": {"status": 529, "message": "Overloaded."}})
}

/// Two long prompts, answered; the model costs ten dollars a million tokens.
async fn talk(replies: Value, change: impl FnOnce(Stage) -> Stage) -> Play {
    let mut all = vec![text("one"), text("two")];
    all.extend(replies.as_array().unwrap().iter().cloned());
    let mut stage = change(compact_scene::stage(json!(all)));
    stage.model.price = priced("own", 10.0).price;
    stage.retry.max_attempts = 2;
    let mut play = stage.open().await;
    for said in ["first", "second"] {
        play.prompt(&long(said)).await.unwrap();
    }
    play
}

/// What the models of the only event of this name used: replies and dollars for
/// a million tokens.
fn writers(told: &Told, event: &str) -> Value {
    let data = told.data(event);
    assert_eq!(data.len(), 1);
    let models = data[0]["models"].as_object().cloned().unwrap_or_default();
    let mut sum = 0.0;
    let rows = models.iter().map(|(model, used)| {
        let cost = used["costUsd"].as_f64().unwrap();
        sum += cost;
        let tokens = used["usage"]["input"].as_f64().unwrap();
        json!([model, used["replies"], (cost / tokens * 1e6 / 1.1).round()])
    });
    let rows: Vec<Value> = rows.collect();
    let told = data[0]["costUsd"].as_f64().unwrap();
    assert!((sum - told).abs() < 1e-9, "{sum} of {told}");
    rows.into()
}

fn codes(told: &Told) -> Vec<Value> {
    told.field("warning", "code")
}

#[tokio::test]
async fn the_small_model_writes_the_summary_at_its_price() {
    let small = json!([summary("Short and good.")]);
    let stage = |stage: Stage| stage.small(priced("small", 1.0), small);
    let mut play = talk(json!([]), stage).await;
    let before = play.session.budget()[&LimitKind::Cost].used;
    let compacted = compact(&mut play, None).await.unwrap();
    assert!(compacted.summary.contains("Short and good."));
    let spent = play.session.budget()[&LimitKind::Cost].used - before;
    assert!((spent - 0.0011).abs() < 1e-9, "{spent}");
    let told = play.end().await;
    assert_eq!(
        writers(&told, "compact:exec"),
        json!([["scripted/small", 1, 1.0]])
    );
    assert!(codes(&told).is_empty());
}

#[tokio::test]
async fn what_the_small_model_cannot_do_the_other_one_does() {
    let cut = json!({"text": "half", "stop": "length", "usage": {"input": 1_000, "output": 100}});
    for (reply, writers_then, why) in [
        (
            refused(),
            json!([["scripted/replies", 1, 10.0]]),
            "not authorised (HTTP 401, authentication_error): Who?",
        ),
        (
            cut,
            json!([["scripted/replies", 1, 10.0], ["scripted/small", 1, 1.0]]),
            "the summary was cut by the output limit",
        ),
    ] {
        let own = json!([summary("Whole."), text("three")]);
        let stage = |stage: Stage| stage.small(priced("small", 1.0), json!([reply]));
        let mut play = talk(own, stage).await;
        let compacted = compact(&mut play, None).await.unwrap();
        assert!(compacted.summary.contains("Whole."));
        play.prompt("third").await.unwrap();
        let told = play.end().await;
        assert_eq!(writers(&told, "compact:exec"), writers_then, "{why}");
        let message = format!("scripted/replies writes summaries instead of scripted/small: {why}");
        assert_eq!(told.field("warning", "message"), [message]);
    }
}

#[tokio::test]
async fn a_small_model_of_unknown_price_is_told_of_at_once() {
    let unpriced = || {
        let mut small = scripted("small");
        small.price = None;
        small
    };
    let mut play = talk(json!([]), |stage| {
        stage.small(unpriced(), json!([summary("Short and good.")]))
    })
    .await;
    compact(&mut play, None).await.unwrap();
    let told = play.end().await;
    assert_eq!(codes(&told), ["unknown_price"]);
    assert_eq!(told.field("compact:exec", "costUsd"), [Value::Null]);
    let sums = told.field("conversation:usage", "costUsd");
    assert_eq!(sums.last(), Some(&Value::Null), "{sums:?}");
    assert!(sums[1].is_number(), "{sums:?}");

    let mut strict = compact_scene::stage(json!([])).small(unpriced(), json!([]));
    strict.limits.cost_cap_asked = true;
    assert!(strict.try_open().await.is_err());
}

#[tokio::test]
async fn a_small_window_is_not_asked_at_all() {
    let stage = |stage: Stage| {
        let mut small = priced("small", 1.0);
        small.context_window = 1_000;
        stage.small(small, json!([summary("never")]))
    };
    let mut play = talk(json!([summary("Whole.")]), stage).await;
    let compacted = compact(&mut play, None).await.unwrap();
    assert!(compacted.summary.contains("Whole."));
    let told = play.end().await;
    assert!(codes(&told).is_empty());
}

/// For the summary and no longer.
#[tokio::test]
async fn a_fallback_writes_the_summary_of_a_model_that_is_overloaded() {
    let spare = json!([summary("By another.")]);
    let stage = |stage: Stage| stage.fallback(priced("spare", 5.0), spare);
    let own = json!([overloaded(), overloaded(), text("three")]);
    let mut play = talk(own, stage).await;
    let compacted = compact(&mut play, None).await.unwrap();
    assert!(compacted.summary.contains("By another."));
    assert_eq!(play.session.model(), "scripted/replies");
    assert_eq!(play.prompt("third").await.unwrap().text, "three");
    let told = play.end().await;
    assert_eq!(
        writers(&told, "compact:exec"),
        json!([["scripted/spare", 1, 5.0]])
    );
    assert_eq!(told.field("model:fallback", "to"), ["scripted/spare"]);
}

/// The budget and the events say the same of it.
#[tokio::test]
async fn the_summary_of_a_branch_is_told_with_its_cost() {
    for (reply, problem) in [
        (summary("Tried in vain."), Value::Null),
        (
            json!({"text": "", "usage": {"input": 1_000, "output": 100}}),
            json!("the branch was not summarised: the model wrote no summary"),
        ),
    ] {
        let mut play = talk(json!([reply]), |stage| stage).await;
        let before = play.session.budget()[&LimitKind::Cost].used;
        let first = play.session.tree().forkable().remove(1).entry_id;
        let left = LeftBranch::Summarised(None);
        let moved = play.session.tree().navigate(&first, left).await;
        assert_eq!(moved.is_ok(), problem.is_null());
        play.drain();
        let spent = play.session.budget()[&LimitKind::Cost].used - before;
        let told = play.end().await;
        assert_eq!(
            writers(&told, "branch:summary"),
            json!([["scripted/replies", 1, 10.0]])
        );
        let cost = told.field("branch:summary", "costUsd")[0].as_f64().unwrap();
        assert!((spent - cost).abs() < 1e-9, "{spent} and {cost}");
        assert_eq!(told.field("branch:summary", "errMsg"), [problem]);
    }
}

/// Tokens are estimated, so a quarter of the window's room stays free.
#[tokio::test]
async fn the_question_for_a_branch_leaves_room_in_the_window() {
    for (tokens, is_cut) in [(11_000, false), (13_000, true)] {
        let note = "the middle of the conversation is left out";
        let question = |words: &str| expecting(summary("Tried."), json!({"contains": [words]}));
        let reply = question(if is_cut { note } else { "</conversation>" });
        let mut play = compact_scene::stage(json!([text("one"), text("two"), reply]))
            .open()
            .await;
        play.prompt("first").await.unwrap();
        play.prompt(&"p".repeat(4 * tokens)).await.unwrap();
        let second = play.session.tree().forkable().remove(1).entry_id;
        let left = LeftBranch::Summarised(None);
        let moved = play.session.tree().navigate(&second, left).await;
        moved.unwrap_or_else(|error| panic!("{tokens}: {error}"));
        play.drain();
        play.end().await;
    }
}

/// The model writes no more than 500 tokens at once, so no more need be paid.
#[tokio::test]
async fn the_summary_of_a_branch_needs_the_budget_of_what_the_model_can_write() {
    let stage = |stage: Stage| {
        let mut stage = stage.limits(|limits| limits.max_tokens = 9_000);
        stage.model.max_output_tokens = 500;
        stage
    };
    let mut play = talk(json!([summary("Tried.")]), stage).await;
    let second = play.session.tree().forkable().remove(1).entry_id;
    let left = LeftBranch::Summarised(None);
    play.session.tree().navigate(&second, left).await.unwrap();
    play.drain();
    play.end().await;
}

/// It counts for no money, but not as free either.
#[tokio::test]
async fn what_an_unpriced_small_model_used_in_vain_makes_the_cost_unknown() {
    let cut = || json!({"text": "Half", "cut": true, "usage": {"input": 1_000}});
    let stage = |stage: Stage| {
        let mut small = scripted("small");
        small.price = None;
        stage.small(small, json!([cut(), cut()]))
    };
    let mut play = talk(json!([summary("Whole.")]), stage).await;
    compact(&mut play, None).await.unwrap();
    let told = play.end().await;
    assert_eq!(
        told.field("reply:discarded", "costUsd"),
        [Value::Null, Value::Null]
    );
    let sums = told.field("conversation:usage", "costUsd");
    assert_eq!(sums.last(), Some(&Value::Null), "{sums:?}");
}

/// The window of the one that takes over is too small for what was said so far.
#[tokio::test]
async fn a_conversation_is_made_to_fit_the_window_of_a_fallback() {
    let small = || {
        let mut model = scripted("spare");
        model.context_window = 20_000;
        model
    };
    let own = |tokens| json!([compact_scene::read("a", tokens), overloaded(), overloaded()]);
    let stage = |tokens| {
        let mut stage = compact_scene::stage(own(tokens));
        stage.model.context_window = 100_000;
        stage.retry.max_attempts = 2;
        stage
    };
    let spare = json!([summary("So far."), text("done")]);
    let mut play = compact_scene::open(stage(17_000).fallback(small(), spare)).await;
    assert_eq!(play.prompt(&long("go")).await.unwrap().text, "done");
    let told = play.end().await;
    let names = told.names();
    let at = |name: &str| names.iter().position(|one| *one == name).unwrap();
    assert!(at("model:fallback") < at("compact:start"), "{names:?}");
    assert_eq!(told.field("compact:exec", "aborted"), [json!(false)]);
    assert_eq!(told.field("compact:exec", "reason"), ["threshold"]);

    // Where nothing may be left out, the next one is asked.
    let mut whole = stage(21_000)
        .fallback(small(), json!([text("never")]))
        .fallback(scripted("large"), json!([text("done")]));
    whole.compaction.enabled = false;
    let mut play = compact_scene::open(whole).await;
    assert_eq!(play.prompt(&long("go")).await.unwrap().text, "done");
    let told = play.end().await;
    assert_eq!(told.field("model:fallback", "to"), ["scripted/large"]);
    let passed = told.field("warning", "message");
    let expect = "the fallback scripted/spare is passed over: \
                  its window of 20000 tokens is too small for a conversation of ";
    assert!(
        passed[0].as_str().unwrap().starts_with(expect),
        "{passed:?}"
    );
}
