//! The budgets of a session: what is reserved, told, refused, and how it ends.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use agent::event::{LimitKind, Reason};
use agent::model::{Price, resolve};
use agent::policy::{OnAsk, Rule};
use agent::session::{Limits, OnExhausted, OnUnknownPrice, Stop};
use serde_json::{Value, json};

use crate::support::session::{Play, Stage, TestTool, Told, calls, expecting, text};

/// A session with the reading tools `a` and `b`, and `out`, which writes.
async fn staged(replies: Value, change: impl FnOnce(&mut Limits)) -> Play {
    with_tools(Stage::new(replies)).limits(change).open().await
}

fn with_tools(stage: Stage) -> Stage {
    stage
        .tool(TestTool::says("a", "from a"))
        .tool(TestTool::says("b", "from b"))
        .tool(TestTool::says("out", "written").writing())
}

/// The reply that wraps up: asked for, and without tools.
fn closing(because: &str) -> Value {
    expecting(
        text("what was done"),
        json!({"tools": [], "contains": [because, "Give the final answer now"]}),
    )
}

/// Prompts, expects the limit, and that it is told as one.
async fn limited(mut play: Play, kind: LimitKind) -> Told {
    let stop = play.prompt("go").await.unwrap_err();
    assert!(
        matches!(stop, Stop::Limit(other) if other == kind),
        "{stop}"
    );
    assert_eq!(stop.reason(), Reason::Budget);
    assert_eq!(stop.reason().exit_code(), 4);
    let told = play.end().await;
    assert_eq!(told.field("limit:reached", "kind"), [json!(kind)]);
    assert_eq!(told.field("session:interrupted", "by"), [json!("budget")]);
    assert_eq!(told.field("turn:end", "status"), [json!("limit")]);
    told
}

#[tokio::test]
async fn the_last_turn_wraps_up_without_tools() {
    let replies = json!([calls(&["a"]), calls(&["b"]), closing("last step")]);
    let play = staged(replies, |limits| limits.max_turns = 3).await;
    let told = limited(play, LimitKind::Turns).await;
    assert_eq!(told.speakers(), "uararua");
    assert_eq!(told.data("turn:end")[0]["finalText"], "what was done");
    assert_eq!(
        told.field("step:start", "closing"),
        [Value::Null, Value::Null, json!(true)]
    );
    assert_eq!(
        told.field("message:user", "source"),
        ["prompt", "synthetic"].map(Value::from)
    );
    let reached = told.data("limit:reached")[0];
    assert_eq!(
        (&reached["value"], &reached["max"]),
        (&json!(2.0), &json!(3.0))
    );
}

#[tokio::test]
async fn calls_of_the_closing_reply_are_refused() {
    let mut last = expecting(calls(&["a", "nonsense"]), json!({"tools": []}));
    last["text"] = "no time left".into();
    let replies = json!([calls(&["a"]), last]);
    let play = staged(replies, |limits| limits.max_turns = 2).await;
    let told = limited(play, LimitKind::Turns).await;
    let results = told.results();
    assert_eq!(results.len(), 3);
    for result in &results[1..] {
        assert!(result.contains("no longer available"), "{result}");
    }
    assert_eq!(
        told.field("tool:execution:error", "status"),
        ["skipped", "skipped"].map(Value::from)
    );
    assert_eq!(told.data("turn:end")[0]["finalText"], "no time left");
}

#[tokio::test]
async fn a_session_that_is_to_stop_at_once_does() {
    let tools = json!({"tools": ["a"]});
    let replies = json!([calls(&["a"]), expecting(calls(&["b"]), tools)]);
    let play = staged(replies, |limits| {
        limits.max_turns = 2;
        limits.on_exhausted = OnExhausted::Stop;
    })
    .await;
    let told = limited(play, LimitKind::Turns).await;
    assert_eq!(told.speakers(), "uarar");
    assert_eq!(told.results(), ["from a", "from b"]);
}

#[tokio::test]
async fn the_only_turn_may_answer() {
    let replies = json!([expecting(text("done"), json!({"tools": []}))]);
    let mut play = staged(replies, |limits| limits.max_turns = 1).await;
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    assert!(play.end().await.data("limit:reached").is_empty());

    let play = staged(json!([calls(&["a"])]), |limits| limits.max_turns = 1).await;
    let told = limited(play, LimitKind::Turns).await;
    assert!(told.results()[0].contains("no longer available"));

    // Also when it is the only one that is left for a later prompt.
    let last = expecting(text("two"), json!({"tools": []}));
    let mut play = staged(json!([text("one"), last]), |limits| limits.max_turns = 2).await;
    play.prompt("go").await.unwrap();
    assert_eq!(play.prompt("again").await.unwrap().text, "two");
    let stop = play.prompt("once more").await.unwrap_err();
    assert!(matches!(stop, Stop::Limit(LimitKind::Turns)));
    play.end().await;
}

#[tokio::test]
async fn tool_calls_may_be_used_up_but_not_exceeded() {
    let used_up = json!([calls(&["a", "nonsense"]), text("done")]);
    let mut play = staged(used_up, |limits| limits.max_tool_calls = 2).await;
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    assert_eq!(play.session.budget()[&LimitKind::ToolCalls].used, 2.0);
    play.end().await;

    let more = calls(&["a", "out", "b"]);
    let replies = json!([more, closing("tool calls that the task allows are used up")]);
    let play = staged(replies, |limits| limits.max_tool_calls = 2).await;
    let told = limited(play, LimitKind::ToolCalls).await;
    let results = told.results();
    assert!(
        results[1].contains("denied") && results[2].contains("used up"),
        "{results:?}"
    );

    let play = staged(json!([calls(&["a", "b"])]), |limits| {
        limits.max_tool_calls = 1;
        limits.on_exhausted = OnExhausted::Stop;
    })
    .await;
    assert_eq!(limited(play, LimitKind::ToolCalls).await.speakers(), "uarr");
}

/// How a session ends whose first reply uses 10,100 tokens.
enum End {
    /// The second call has its tools.
    Answer,
    /// The second call wraps up.
    Closing,
    /// There is no second call.
    Nothing,
}

#[tokio::test]
async fn tokens_are_reserved_before_a_call() {
    // The next prompt is those 10,100 and the result; the closing call needs it
    // once more, 80 for its request and 1,024 to answer. Replies may take 4,000,
    // and fewer than 1,024 are not worth a call.
    for (max_tokens, end) in [
        (3_000_000, End::Answer),
        (10_100 + 2 * 10_102 + 80 + 1_024 + 1_024, End::Answer),
        (10_100 + 2 * 10_102 + 80 + 1_024 + 1_023, End::Closing),
        (10_100 + 10_102 + 80 + 64, End::Closing),
        (10_100 + 10_102 + 80 + 63, End::Nothing),
    ] {
        let big = json!({"calls": [{"name": "a"}], "usage": {"input": 10_000, "output": 100}});
        let second = match end {
            End::Answer => vec![expecting(text("done"), json!({"tools": ["a"]}))],
            End::Closing => vec![closing("almost spent")],
            End::Nothing => vec![],
        };
        let replies = Value::from([vec![big], second].concat());
        let mut play = staged(replies, |limits| limits.max_tokens = max_tokens).await;
        match end {
            End::Answer => {
                assert_eq!(
                    play.prompt("go").await.unwrap().text,
                    "done",
                    "{max_tokens}"
                );
                play.end().await;
            }
            End::Closing => {
                let told = limited(play, LimitKind::Tokens).await;
                assert_eq!(told.speakers(), "uarua", "{max_tokens}");
            }
            End::Nothing => {
                let told = limited(play, LimitKind::Tokens).await;
                assert_eq!(told.speakers(), "uar", "{max_tokens}");
            }
        }
    }
}

#[tokio::test]
async fn a_first_call_that_cannot_be_paid_is_not_made() {
    let play = staged(json!([]), |limits| limits.max_tokens = 10).await;
    let told = limited(play, LimitKind::Tokens).await;
    assert_eq!(told.speakers(), "u");

    // One that can, but leaves nothing for another, is the only one.
    let mut stage = Stage::new(json!([expecting(text("done"), json!({"tools": []}))]));
    stage.max_output_tokens = 1_000;
    let stage = with_tools(stage).limits(|limits| limits.max_tokens = 2_000);
    let mut play = stage.open().await;
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    play.end().await;
}

fn priced(mut stage: Stage, price: Price) -> Stage {
    stage.model.price = Some(price);
    stage.max_output_tokens = 1_000;
    with_tools(stage)
}

#[tokio::test]
async fn money_is_reserved_before_a_call() {
    // A dollar for every reply of 1,000 tokens.
    let price = || Price {
        output: 1_000.0,
        ..Price::default()
    };
    let usage = json!({"output": 1_000});
    let call = |name: &str| json!({"calls": [{"name": name}], "usage": usage});
    let mut last = closing("almost spent");
    last["usage"] = usage.clone();
    let stage = Stage::new(json!([call("a"), call("b"), last]));
    // Two replies and the reserve of 1,024 tokens: a third would break into it.
    let stage = priced(stage, price()).limits(|limits| limits.max_cost_usd = 4.0);
    let told = limited(stage.open().await, LimitKind::Cost).await;
    assert_eq!(
        told.field("message:complete", "costUsd"),
        vec![json!(1.0); 3]
    );
    assert_eq!(told.data("conversation:usage")[2]["costUsd"], 3.0);

    // The prompt costs too, even more where it is written to a cache.
    for field in ["input", "cache_write"] {
        let mut price = price();
        match field {
            "input" => price.input = 1_000.0,
            _ => price.cache_write = 1_000.0,
        }
        let stage = priced(Stage::new(json!([])), price);
        let stage = stage.limits(|limits| limits.max_cost_usd = 1.01);
        let told = limited(stage.open().await, LimitKind::Cost).await;
        assert_eq!(told.speakers(), "u", "{field}");
    }
}

#[tokio::test]
async fn an_estimate_counts_against_the_money() {
    let long = "word ".repeat(4_000);
    let replies = json!([{"text": long, "calls": [{"name": "a"}], "usage": null}]);
    let price = Price {
        output: 1_000.0,
        ..Price::default()
    };
    let stage = priced(Stage::new(replies), price).limits(|limits| limits.max_cost_usd = 5.0);
    let mut play = stage.open().await;
    // 5,000 tokens that nobody counted are five dollars all the same.
    let stop = play.prompt("go").await.unwrap_err();
    assert!(matches!(stop, Stop::Limit(LimitKind::Cost)), "{stop}");
    assert!(play.session.budget()[&LimitKind::Cost].used >= 5.0);
    let told = play.end().await;
    assert_eq!(told.field("conversation:usage", "costUsd"), [Value::Null]);
}

#[tokio::test]
async fn an_unknown_price_is_a_matter_of_the_task() {
    for (rule, cap_asked, fails) in [
        (OnUnknownPrice::Auto, false, false),
        (OnUnknownPrice::Auto, true, true),
        (OnUnknownPrice::Fail, false, true),
        (OnUnknownPrice::TokensOnly, true, false),
    ] {
        let replies = if fails {
            json!([])
        } else {
            json!([text("done")])
        };
        let mut stage = Stage::new(replies).limits(|limits| {
            limits.on_unknown_price = rule;
            limits.cost_cap_asked = cap_asked;
            limits.max_cost_usd = 0.0001;
        });
        stage.model.price = None;
        match stage.try_open().await {
            Ok(mut play) => {
                assert!(!fails, "{rule:?} {cap_asked}");
                play.prompt("go").await.unwrap();
                assert_eq!(play.session.budget().get(&LimitKind::Cost), None);
                let told = play.end().await;
                assert_eq!(told.field("warning", "code"), [json!("unknown_price")]);
                assert_eq!(told.field("message:complete", "costUsd"), [Value::Null]);
            }
            Err((stop, _)) => {
                assert!(fails, "{rule:?} {cap_asked}: {stop}");
                assert_eq!(stop.reason(), Reason::Config);
                assert!(!stop.hints().is_empty());
            }
        }
    }
    let known = resolve("scripted/replies.yaml", None).unwrap();
    assert!(known.price.is_some(), "a script costs nothing");
}

#[tokio::test]
async fn each_level_warns_once() {
    let mut replies: Vec<Value> = (0..9)
        .map(|number| calls(&[["a", "b"][number % 2]]))
        .collect();
    replies.push(closing("last step"));
    let play = staged(replies.into(), |limits| {
        limits.max_turns = 10;
        limits.max_tool_calls = 10;
        limits.warn_at = vec![0.5, 0.8];
    })
    .await;
    let told = limited(play, LimitKind::Turns).await;
    let warnings = |kind: &str| -> Vec<Value> {
        let of_kind = told.data("limit:warning").into_iter();
        let of_kind = of_kind.filter(|warning| warning["kind"] == kind);
        of_kind.map(|warning| warning["value"].clone()).collect()
    };
    assert_eq!(warnings("turns"), [json!(5.0), json!(8.0)]);
    assert_eq!(warnings("tool_calls"), [json!(5.0), json!(8.0)]);
    assert_eq!(told.data("limit:warning").len(), 4);
}

#[tokio::test]
async fn the_same_call_again_and_again_is_a_loop() {
    let same = || calls(&["a"]);
    let play = staged(json!([same(), same(), same(), same(), same()]), |_| {}).await;
    let told = limited(play, LimitKind::Repeats).await;
    assert_eq!(
        told.field("loop:detected", "action"),
        ["remind", "remind", "stop"].map(Value::from)
    );
    assert_eq!(
        told.field("loop:detected", "count"),
        [3, 4, 5].map(Value::from)
    );
    let reminded: Vec<bool> = told
        .results()
        .iter()
        .map(|result| result.contains("in a row"))
        .collect();
    assert_eq!(reminded, [false, false, true, true, false]);
    assert!(told.results()[2].starts_with("from a"));

    // In one reply it is told once, and every call has its result.
    let play = staged(json!([calls(&["a"; 9])]), |_| {}).await;
    let told = limited(play, LimitKind::Repeats).await;
    assert_eq!(told.data("loop:detected").len(), 3);
    assert_eq!(told.results().len(), 9);

    // A call that cannot run is a call, too.
    let play = staged(json!(vec![calls(&["nonsense"]); 2]), |limits| {
        limits.max_repeats = 2
    })
    .await;
    limited(play, LimitKind::Repeats).await;
}

#[tokio::test]
async fn calls_that_differ_are_no_loop() {
    let mut replies = vec![calls(&["a", "b"]); 4];
    replies.push(calls(&["a", "a", "b", "a", "a"]));
    replies.push(text("done"));
    let mut play = staged(replies.into(), |limits| limits.max_repeats = 3).await;
    play.prompt("go").await.unwrap();
    assert!(play.end().await.data("loop:detected").is_empty());
}

#[tokio::test]
async fn a_model_that_takes_no_no_is_stopped() {
    // The calls, and which breaker trips at the last one, if any.
    for (names, kind) in [
        (vec!["out", "out", "out"], Some("denials_in_a_row")),
        (vec!["out", "out", "a", "out", "out"], Some("denials")),
        (vec!["out", "out", "a", "b", "out"], None),
        // What cannot run was not denied, and does not make up for a denial.
        (
            vec!["out", "nonsense", "out", "out"],
            Some("denials_in_a_row"),
        ),
    ] {
        let mut replies: Vec<Value> = names.iter().map(|name| calls(&[name])).collect();
        if kind.is_none() {
            replies.push(text("done"));
        }
        let mut play = staged(replies.into(), |limits| limits.max_denials.total = 4).await;
        let outcome = play.prompt("go").await;
        assert_eq!(outcome.is_ok(), kind.is_none(), "{names:?}");
        if let Err(stop) = outcome {
            assert_eq!(stop.reason(), Reason::Denied);
            assert_eq!(stop.reason().exit_code(), 3);
        }
        let told = play.end().await;
        let kinds: Vec<Value> = kind.map(Value::from).into_iter().collect();
        assert_eq!(told.field("limit:reached", "kind"), kinds, "{names:?}");
        let by = vec![json!("policy"); kinds.len()];
        assert_eq!(told.field("session:interrupted", "by"), by);
    }
    // In one reply the rest is not run any more.
    let play = staged(json!([calls(&["out", "out", "out", "a"])]), |_| {});
    let mut play = play.await;
    play.prompt("go").await.unwrap_err();
    let told = play.end().await;
    assert_eq!(
        told.field("tool:execution:error", "status"),
        ["denied", "denied", "denied", "skipped"].map(Value::from)
    );
}

#[tokio::test]
async fn a_call_that_needs_a_person_may_end_the_turn() {
    for (on_ask, ends) in [(OnAsk::Deny, false), (OnAsk::Fail, true)] {
        let mut replies = vec![calls(&["out", "a"])];
        if !ends {
            replies.push(text("done"));
        }
        let mut stage = with_tools(Stage::new(replies.into())).edits();
        stage.permissions.ask = vec![Rule::parse("Edit", "permissions.ask[0]").unwrap()];
        stage.permissions.on_ask = on_ask;
        let mut play = stage.open().await;
        let outcome = play.prompt("go").await;
        assert_eq!(outcome.is_err(), ends);
        if let Err(stop) = outcome {
            assert_eq!(stop.reason(), Reason::Denied);
            assert!(stop.to_string().contains("on_ask"), "{stop}");
        }
        assert_eq!(play.session.denials(), 1);
        let told = play.end().await;
        let second = &told.results()[1];
        assert_eq!(second.contains("Not run"), ends, "{second}");
        assert!(told.data("limit:reached").is_empty());
    }
}
