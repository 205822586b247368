//! Turns of a session: answers and what is no answer, step by step.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use agent::clock::Activity;
use agent::event::Reason;
use agent::model::{Client, ClientOptions, Script, resolve};
use agent::secret::Redactor;
use agent::session::{PromptOptions, Session, SessionOptions, Stop};
use agent::store::{Durability, Header, Store};
use serde_json::{Value, json};

use crate::support::anthropic;
use crate::support::server::ModelServer;
use crate::support::session::{Stage, TestTool, calls, expecting, text};

#[tokio::test]
async fn an_answer_is_a_turn_of_one_step() {
    let mut play = Stage::new(json!([text("done")])).open().await;
    let answer = play.prompt("do it").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.steps), ("done", 1));
    assert_eq!(answer.usage.total_tokens(), 110);
    assert_eq!(play.session.last_text(), "done");
    let told = play.end().await;
    assert_eq!(
        told.names(),
        [
            "session:ready",
            "state:update",
            "turn:start",
            "message:user",
            "step:start",
            "message:complete",
            "conversation:usage",
            "step:end",
            "turn:end",
            "state:update",
        ]
    );
    assert_eq!(
        told.field("state:update", "state"),
        [json!("processing"), json!("idle")]
    );
    let end = told.data("turn:end")[0];
    assert_eq!(
        (&end["status"], &end["finalText"], &end["steps"]),
        (&json!("ok"), &json!("done"), &json!(1))
    );
    assert_eq!(told.speakers(), "ua");
}

#[tokio::test]
async fn a_turn_goes_on_while_there_are_calls() {
    let mut play = Stage::new(json!([
        expecting(calls(&["a"]), json!({"tools": ["a", "b"]})),
        expecting(calls(&["b", "a"]), json!({"contains": ["from a"]})),
        expecting(text("done"), json!({"contains": ["from b"]})),
    ]))
    .tool(TestTool::says("a", "from a"))
    .tool(TestTool::says("b", "from b"))
    .open()
    .await;
    assert_eq!(play.prompt("go").await.unwrap().steps, 3);
    let told = play.end().await;
    assert_eq!(told.speakers(), "uararra");
    assert_eq!(told.results(), ["from a", "from b", "from a"]);
    let steps: Vec<Value> = told
        .events
        .iter()
        .filter(|event| event["event"] == "step:end")
        .map(|event| json!([event["step"], event["data"]["stopReason"]]))
        .collect();
    assert_eq!(
        Value::from(steps),
        json!([[1, "toolUse"], [2, "toolUse"], [3, "stop"]])
    );
}

/// Replies, the outcome (an answer or a part of the complaint) and the notes.
type Case = (Value, Result<&'static str, &'static str>, usize);

#[tokio::test]
async fn an_unusable_answer_is_asked_for_once_more() {
    let cut = || json!({"text": "half an ans", "stop": "length", "usage": {}});
    let nothing = || json!({"usage": {}});
    let thought = || json!({"thinking": "hm", "text": " \n", "usage": {}});
    let cases: [Case; 7] = [
        (json!([nothing(), text("done")]), Ok("done"), 1),
        (json!([thought(), nothing()]), Err("was empty"), 1),
        (json!([cut(), text("done")]), Ok("done"), 1),
        (json!([cut(), cut()]), Err("was cut"), 1),
        (json!([cut(), nothing()]), Err("was empty"), 1),
        (
            json!([{"text": "I will not.", "stop": "refusal", "usage": {}}]),
            Err("refused the task"),
            0,
        ),
        (
            json!([nothing(), calls(&["a"]), text("done")]),
            Ok("done"),
            1,
        ),
    ];
    for (replies, expected, notes) in cases {
        let mut play = Stage::new(replies.clone())
            .tool(TestTool::says("a", "from a"))
            .open()
            .await;
        let outcome = play.prompt("go").await;
        match (&outcome, expected) {
            (Ok(answer), Ok(text)) => assert_eq!(answer.text, text, "{replies}"),
            (Err(Stop::Incomplete(why)), Err(part)) => {
                assert!(why.contains(part), "{replies}: {why}");
            }
            _ => panic!("{replies}: {outcome:?}"),
        }
        let told = play.end().await;
        let sources = told.field("message:user", "source");
        assert_eq!(sources.len(), notes + 1, "{replies}");
        assert!(sources[1..].iter().all(|source| source == "synthetic"));
        let errors = told.field("session:error", "type");
        let expected_errors = if expected.is_ok() { 0 } else { 1 };
        assert_eq!(errors, vec![json!("model_error"); expected_errors]);
    }
}

#[tokio::test]
async fn a_question_hears_once_that_nobody_is_here() {
    let mut play = Stage::new(json!([
        text("Which of the two files do you **mean?**"),
        expecting(
            text("I took the first. Was that right?"),
            json!({"contains": ["Nobody is here"]})
        ),
    ]))
    .open()
    .await;
    let answer = play.prompt("go").await.unwrap();
    assert_eq!(answer.text, "I took the first. Was that right?");
    assert_eq!(play.end().await.speakers(), "uaua");

    // With no step left to act on it, a question is what there is.
    let mut play = Stage::new(json!([text("Which one?")]))
        .limits(|limits| limits.max_turns = 1)
        .open()
        .await;
    assert_eq!(play.prompt("go").await.unwrap().text, "Which one?");
}

async fn over_http(server: &ModelServer) -> (Session, Vec<agent::event::Emission>) {
    let activity = Activity::new();
    let model = resolve("anthropic-messages/test", Some(&server.url())).unwrap();
    let options = ClientOptions::new(activity.clone());
    let client = Client::http(model, Some("key".to_owned()), options).unwrap();
    let (sender, mut events) = tokio::sync::mpsc::channel(1_000);
    let session = Session::create(SessionOptions::new(client, activity, "/", sender))
        .await
        .unwrap()
        .session;
    let _ = session.prompt("go", PromptOptions::default()).await;
    let mut kept = Vec::new();
    while let Ok(emission) = events.try_recv() {
        kept.push(emission);
    }
    (session, kept)
}

#[tokio::test]
async fn a_paused_reply_is_continued_but_not_for_ever() {
    let pause = || anthropic::reply(&[anthropic::text_block("so far")], "pause_turn");
    let mut replies: Vec<_> = std::iter::repeat_with(pause).take(5).collect();
    replies.push(anthropic::text("done"));
    let server = ModelServer::start(replies);
    let (session, _) = over_http(&server).await;
    assert_eq!(session.last_text(), "done");
    assert_eq!(server.requests().len(), 6);

    let server = ModelServer::start(std::iter::repeat_with(pause).take(6));
    let (session, events) = over_http(&server).await;
    assert_eq!(session.last_text(), "so far");
    let errors = events.iter().filter(|emission| {
        let text = format!("{:?}", emission.kind);
        text.contains("SessionError") && text.contains("paused the reply")
    });
    assert_eq!((errors.count(), server.requests().len()), (1, 6));
}

#[tokio::test]
async fn usage_adds_up_over_the_prompts_of_a_session() {
    let usage =
        |input: u64| json!({"text": "ok", "usage": {"input": input, "output": 1, "cache_read": 2}});
    let mut play = Stage::new(json!([usage(10), usage(20)])).open().await;
    play.prompt("one").await.unwrap();
    let second = play.prompt("two").await.unwrap();
    assert_eq!(second.usage.input, 20);
    let told = play.end().await;
    let totals = |input: u64, count: u64| json!({"input": input, "output": count, "cacheRead": 2 * count, "cacheWrite": 0, "reasoning": 0});
    assert_eq!(
        told.field("conversation:usage", "totals"),
        [totals(10, 1), totals(30, 2)]
    );
    let turns: Vec<&Value> = told
        .events
        .iter()
        .filter(|event| event["event"] == "turn:end")
        .map(|event| &event["turn"])
        .collect();
    assert_eq!(turns, [&json!(1), &json!(2)]);
    assert_eq!(told.speakers(), "uaua");
}

#[tokio::test]
async fn a_reply_without_usage_is_booked_as_an_estimate() {
    let long = "word ".repeat(400);
    let mut play = Stage::new(json!([
        {"calls": [{"name": "a"}], "usage": null},
        text("known"),
        {"text": long, "usage": null},
    ]))
    .tool(TestTool::says("a", "from a"))
    .open()
    .await;
    play.prompt("one").await.unwrap();
    let tokens = |play: &crate::support::session::Play| {
        play.session.budget()[&agent::event::LimitKind::Tokens].used
    };
    let after_one = tokens(&play);
    // The system prompt alone is a few hundred tokens; the known reply took 110.
    assert!(after_one > 210.0, "{after_one}");
    play.prompt("two").await.unwrap();
    // The prompt is what the last reply counted, and the reply is 500 tokens.
    assert!(tokens(&play) - after_one >= 110.0 + 500.0);
    let told = play.end().await;
    let missing: Vec<_> = told
        .data("warning")
        .into_iter()
        .filter(|warning| warning["code"] == "usage_missing")
        .collect();
    assert_eq!(missing.len(), 1);
    assert_eq!(
        told.field("message:complete", "costUsd"),
        vec![json!(0.0); 3],
        "whatever the model uses is free"
    );
    assert_eq!(told.field("step:end", "costUsd"), vec![json!(0.0); 3]);
    assert_eq!(
        told.field("conversation:usage", "costUsd"),
        vec![json!(0.0); 3]
    );
    assert_eq!(told.data("conversation:usage")[2]["totals"]["input"], 100);
    let shown = &told.data("conversation:usage")[2]["usage"];
    assert!(shown["useTokens"].as_u64() > Some(600), "{shown}");
}

#[tokio::test]
async fn a_failed_call_is_tried_again_and_then_told() {
    let error = |status: u16| json!({"error": {"status": status, "message": "no"}});
    let mut play = Stage::new(json!([error(529), {"text": "a", "cut": true}, text("done")]))
        .open()
        .await;
    assert_eq!(play.prompt("go").await.unwrap().steps, 1);
    let told = play.end().await;
    assert_eq!(told.field("retry:start", "attempt"), [json!(2), json!(3)]);
    let end = told.data("retry:end")[0];
    assert_eq!(
        (&end["success"], &end["attempts"]),
        (&json!(true), &json!(3))
    );
    assert_eq!(told.speakers(), "ua");

    let mut stage = Stage::new(json!([error(500), error(500), text("later")]));
    stage.retry.max_attempts = 2;
    let mut play = stage.open().await;
    let stop = play.prompt("go").await.unwrap_err();
    assert_eq!(stop.reason(), Reason::Unavailable);
    play.prompt("again").await.unwrap();
    let told = play.end().await;
    assert_eq!(told.field("retry:end", "success"), [json!(false)]);
    assert_eq!(told.field("session:error", "type"), [json!("api_error")]);
    let ends = told.field("step:end", "stopReason");
    assert_eq!(ends, [json!("error"), json!("stop")]);
    assert_eq!(
        told.field("turn:end", "status"),
        [json!("error"), json!("ok")]
    );
    assert_eq!(told.speakers(), "uua");
}

#[tokio::test]
async fn a_session_that_cannot_be_written_does_not_begin() {
    let dir = tempfile::tempdir().unwrap();
    let activity = Activity::new();
    let script = Script::parse("[]", "replies.yaml").unwrap();
    let model = resolve("scripted/replies.yaml", None).unwrap();
    let client = Client::scripted(model, script, ClientOptions::new(activity.clone()));
    let (sender, mut events) = tokio::sync::mpsc::channel(10);
    let mut options = SessionOptions::new(client, activity, dir.path(), sender);
    let file = dir.path().join("session.jsonl");
    let mut store = Store::create(
        &file,
        Header::new("/"),
        Durability::None,
        Redactor::default(),
    )
    .unwrap();
    store.close().unwrap();
    options.store = store;
    let stop = Session::create(options).await.unwrap_err();
    assert_eq!((stop.reason(), stop.code()), (Reason::Io, "session_file"));
    assert!(events.try_recv().is_err(), "nothing is announced");
}
