//! Models that take over from one that cannot be asked for now: when, for how
//! long, at whose price, and what is told of it.

use std::time::Duration;

use agent::event::{EventKind, LimitKind, Reason};
use agent::message::Message;
use agent::session::{PromptOptions, Session};
use agent::store::EntryKind;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::models::{priced, scripted};
use crate::support::room::Gate;
use crate::support::session::{Play, Stage, TestTool, Told, calls, text};

fn error(status: u16, code: &str, message: &str) -> Value {
    json!({"error": {"status": status, "code": code, "message": message}})
}

fn overloaded() -> Value {
    error(529, "overloaded_error", "Overloaded.")
}

/// Two attempts a call, without a wait.
fn stage(replies: Value) -> Stage {
    let mut stage = Stage::new(replies);
    stage.retry.max_attempts = 2;
    stage
}

/// Who said what, and which models the file names between.
fn entries(play: &Play) -> Vec<String> {
    let entries = play.session.tree().entries().into_iter();
    entries
        .filter_map(|entry| match &entry.kind {
            EntryKind::ModelChange { model_id, .. } => Some(format!("to:{model_id}")),
            EntryKind::Message(message) => Some(match message.as_ref() {
                Message::User(_) => "u".to_owned(),
                Message::Assistant(reply) => reply.model.clone(),
                Message::ToolResult(_) => "r".to_owned(),
            }),
            EntryKind::Compaction { .. } => Some("compaction".to_owned()),
            _ => None,
        })
        .collect()
}

fn warnings(told: &Told) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    told.data("warning")
        .iter()
        .map(|data| (text(&data["code"]), text(&data["message"])))
        .collect()
}

#[tokio::test]
async fn the_next_model_takes_over_for_the_rest_of_the_turn() {
    let own = json!([
        calls(&["a"]),
        overloaded(),
        overloaded(),
        text("mine again")
    ]);
    let spare = json!([calls(&["b"]), text("done")]);
    let mut play = stage(own)
        .tool(TestTool::says("a", "from a"))
        .tool(TestTool::says("b", "from b"))
        .fallback(scripted("spare"), spare)
        .open()
        .await;
    let own = play.session.model();
    let answer = play.prompt("go").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.steps), ("done", 3));
    assert_eq!(play.session.model(), own);
    assert_eq!(play.prompt("again").await.unwrap().text, "mine again");
    assert_eq!(
        entries(&play).join(" "),
        "to:replies u replies r to:spare spare r spare to:replies u replies"
    );
    let told = play.end().await;
    assert_eq!(
        json!(told.data("model:fallback")),
        json!([{
            "from": own,
            "to": "scripted/spare",
            "reason": "the provider is overloaded (HTTP 529, overloaded_error): Overloaded.",
            "errorCode": "overloaded",
            "httpStatus": 529,
        }])
    );
    let spare = "scripted/spare";
    assert_eq!(
        told.field("message:complete", "model"),
        [own.as_str(), spare, spare, own.as_str()]
    );
    // The step that another model ended began with the first one.
    assert_eq!(
        told.field("step:start", "model"),
        [own.as_str(), own.as_str(), spare, own.as_str()]
    );
    assert_eq!(told.field("retry:start", "attempt"), [json!(2)]);
    assert_eq!(told.field("retry:end", "success"), [json!(false)]);
    assert!(told.data("session:error").is_empty());
    assert!(warnings(&told).is_empty());
}

#[tokio::test(start_paused = true)]
async fn only_what_waiting_could_have_helped_passes_to_another_model() {
    let busy = |wait: &str| json!({"error": {"status": 429, "message": "x", "retry_after": wait}});
    let passes = [
        (overloaded(), 2),
        (error(429, "", "Slow down."), 2),
        (error(500, "", "Broken."), 2),
        (error(503, "", "Broken."), 2),
        (error(408, "", "Late."), 2),
        (json!({"text": "half of", "cut": true}), 2),
        (json!({"text": "never", "delay": "1h"}), 2),
        // Nobody waits for a day.
        (busy("24h"), 1),
    ];
    for (failure, attempts) in passes {
        let mut play = stage(json!(vec![failure.clone(); attempts]))
            .fallback(scripted("spare"), json!([text("done")]))
            .open()
            .await;
        play.patience = Duration::from_secs(3_600);
        assert_eq!(play.prompt("go").await.unwrap().text, "done", "{failure}");
        let told = play.end().await;
        assert_eq!(told.data("model:fallback").len(), 1, "{failure}");
        assert_eq!(told.speakers(), "ua", "{failure}");
    }
    let stays = [
        (error(401, "authentication_error", "Who?"), Reason::Auth),
        (error(402, "billing_error", "Pay."), Reason::Auth),
        (error(429, "insufficient_quota", "Spent."), Reason::Auth),
        (error(400, "invalid_request_error", "No."), Reason::Config),
        (error(404, "not_found_error", "None."), Reason::Config),
        (error(400, "content_filter", "No."), Reason::Incomplete),
        (error(407, "", "Log in."), Reason::Unavailable),
        (
            error(400, "context_length_exceeded", "prompt is too long"),
            Reason::Incomplete,
        ),
    ];
    for (failure, reason) in stays {
        let mut play = stage(json!([failure]))
            .fallback(scripted("spare"), json!([text("never")]))
            .open()
            .await;
        let stop = play.prompt("go").await.unwrap_err();
        assert_eq!(stop.reason(), reason, "{failure}");
        let told = play.end().await;
        assert!(told.data("model:fallback").is_empty(), "{failure}");
        assert!(warnings(&told).is_empty(), "{failure}");
    }
}

/// However the others fail, the run ends with what was wrong with the first.
#[tokio::test]
async fn a_fallback_that_fails_is_passed_over() {
    let failing = || json!([overloaded(), overloaded()]);
    let refused = || json!([error(401, "authentication_error", "Who?")]);
    let unknown = || json!([error(404, "not_found_error", "No such model.")]);
    let mut play = stage(failing())
        .fallback(scripted("one"), refused())
        .fallback(scripted("two"), unknown())
        .fallback(scripted("three"), json!([text("done")]))
        .open()
        .await;
    let own = play.session.model();
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    let told = play.end().await;
    let path = |field| told.field("model:fallback", field);
    assert_eq!(path("from"), [own.as_str(), "scripted/one", "scripted/two"]);
    assert_eq!(
        path("to"),
        ["scripted/one", "scripted/two", "scripted/three"]
    );
    assert_eq!(path("errorCode"), ["overloaded", "auth", "invalid_request"]);

    let mut play = stage(json!([
        overloaded(),
        overloaded(),
        overloaded(),
        overloaded()
    ]))
    .fallback(
        scripted("one"),
        json!([overloaded(), overloaded(), text("two")]),
    )
    .fallback(scripted("two"), refused())
    .open()
    .await;
    let stop = play.prompt("go").await.unwrap_err();
    assert_eq!(stop.reason(), Reason::Unavailable, "{stop}");
    assert!(stop.to_string().contains("HTTP 529"), "{stop}");
    assert_eq!(play.session.model(), own);
    // The next turn gives each of them another chance.
    assert_eq!(play.prompt("again").await.unwrap().text, "two");
    let told = play.end().await;
    assert_eq!(
        warnings(&told),
        [(
            "fallback_failed".to_owned(),
            "the fallback scripted/two failed, and there is no other: \
             not authorised (HTTP 401, authentication_error): Who?"
                .to_owned()
        )]
    );
    assert_eq!(
        told.field("model:fallback", "to"),
        ["scripted/one", "scripted/two", "scripted/one"]
    );
    assert_eq!(told.speakers(), "uua");
}

#[tokio::test]
async fn each_model_costs_its_own_price() {
    // 100 tokens in, 10 out, at dollars for a million.
    let mut stage = stage(json!([calls(&["a"]), overloaded(), overloaded()]))
        .tool(TestTool::says("a", "from a"))
        .fallback(priced("dear", 3_000.0), json!([text("done")]))
        .limits(|limits| limits.max_cost_usd = 100.0);
    stage.model.price = priced("own", 1_000.0).price;
    let mut play = stage.open().await;
    play.prompt("go").await.unwrap();
    let budget = play.session.budget()[&LimitKind::Cost];
    let told = play.end().await;
    let costs = told.field("message:complete", "costUsd");
    let costs: Vec<f64> = costs.iter().map(|cost| cost.as_f64().unwrap()).collect();
    assert!((costs[0] - 0.11).abs() < 1e-9, "{costs:?}");
    assert!((costs[1] - 0.33).abs() < 1e-9, "{costs:?}");
    assert!((budget.used - 0.44).abs() < 1e-9, "{budget:?}");
    let sums = told.field("conversation:usage", "costUsd");
    assert!((sums[1].as_f64().unwrap() - 0.44).abs() < 1e-9, "{sums:?}");
}

/// The first model would have had room for another step.
#[tokio::test]
async fn a_fallback_that_the_budget_cannot_pay_is_passed_over() {
    let own = || json!([overloaded(), overloaded()]);
    let mut stage = stage(own())
        .fallback(priced("dear", 1_000_000.0), json!([text("never")]))
        .fallback(priced("cheap", 1.0), json!([text("done")]))
        .limits(|limits| limits.max_cost_usd = 1.0);
    stage.model.price = priced("own", 1.0).price;
    let mut play = stage.open().await;
    assert_eq!(play.prompt("go").await.unwrap().text, "done");
    let told = play.end().await;
    let expect = "the fallback scripted/dear is passed over: \
                  the budgets have no room for a step at its price";
    assert_eq!(
        warnings(&told),
        [("fallback_passed_over".to_owned(), expect.to_owned())]
    );
}

#[tokio::test]
async fn the_price_of_every_fallback_is_a_matter_of_the_task() {
    let unpriced = || {
        let mut model = scripted("spare");
        model.price = None;
        model
    };
    let strict = stage(json!([]))
        .fallback(unpriced(), json!([]))
        .limits(|limits| limits.cost_cap_asked = true);
    let Err((stop, _)) = strict.try_open().await else {
        panic!("nobody knows what it may cost");
    };
    assert_eq!(stop.reason(), Reason::Config);
    assert!(stop.to_string().contains("scripted/spare"), "{stop}");

    let lenient = stage(json!([overloaded(), overloaded(), text("later")]))
        .fallback(unpriced(), json!([text("done")]));
    let mut play = lenient.open().await;
    play.prompt("go").await.unwrap();
    play.prompt("again").await.unwrap();
    let told = play.end().await;
    // Told when it matters, and the sum stays unknown.
    let codes = told.field("warning", "code");
    assert_eq!(codes, ["unknown_price"]);
    assert_eq!(
        told.field("conversation:usage", "costUsd"),
        [Value::Null, Value::Null]
    );
}

/// Whoever names a model while a fallback is asked has chosen it for good, be it
/// that fallback.
#[tokio::test]
async fn a_change_of_the_model_ends_the_time_of_a_fallback() {
    for (name, spare, chosen) in [
        (
            "chosen",
            json!([calls(&["gate"])]),
            json!([text("1"), text("2")]),
        ),
        (
            "spare",
            json!([calls(&["gate"]), text("1"), text("2")]),
            json!([]),
        ),
    ] {
        let gate = Gate::new();
        let room = stage(json!([overloaded(), overloaded()]))
            .tool(gate.tool())
            .fallback(scripted("spare"), spare)
            .fallback(scripted("chosen"), chosen)
            .room()
            .await;
        let session = &room.session;
        let change = async {
            gate.reached().await;
            assert_eq!(session.model(), "scripted/spare");
            session
                .set_model(&format!("scripted/{name}"))
                .await
                .unwrap();
            gate.open();
        };
        let prompt = |text: &'static str| session.prompt(text, PromptOptions::default());
        let (first, ()) = tokio::join!(prompt("go"), change);
        assert_eq!(first.unwrap().text, "1", "{name}");
        assert_eq!(prompt("again").await.unwrap().text, "2", "{name}");
        assert_eq!(session.model(), format!("scripted/{name}"));
        room.end().await;
    }
}

#[tokio::test]
async fn a_fallback_without_a_key_is_left_out_and_a_name_that_is_none_an_error() {
    let open = |name: &str| {
        let (sender, events) = mpsc::channel(100);
        let mut options = stage(json!([overloaded(), overloaded()])).options(sender);
        options.fallback_models = vec![name.to_owned()];
        (Session::create(options), events)
    };
    let (created, mut events) = open("zai/glm-5.3");
    let session = created.await.unwrap().session;
    let outcome = session.prompt("go", PromptOptions::default()).await;
    assert!(outcome.is_err());
    let mut told = Vec::new();
    while let Ok(emission) = events.try_recv() {
        if let EventKind::Warning(warning) = emission.kind {
            told.push((warning.code, warning.message));
        }
    }
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "model_left_out");
    assert!(
        told[0]
            .1
            .starts_with("the fallback zai/glm-5.3 is left out: "),
        "{told:?}"
    );

    let stop = open("zai/glm-5.33").0.await.unwrap_err();
    assert_eq!(stop.reason(), Reason::BadTask);
    assert!(
        stop.to_string().contains("did you mean `zai/glm-5.3`"),
        "{stop}"
    );
}
