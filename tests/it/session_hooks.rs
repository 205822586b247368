//! The observers of a session: what each is told, when, and that none of them
//! can hurt it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use agent::event::EventKind;
use agent::hook::{
    Fault, Hook, HookFuture, HookPoint, OnAction, OnFinal, OnObservation, OnTurnStart,
};
use agent::session::{Cause, Interrupt, Stop};
use agent::tool::ToolOutput;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken as Cancel;

use crate::support::hooks::{Heard, Misstep, Probe};
use crate::support::session::{Stage, TestTool, calls, text};

/// A payload with a history of roles and texts only, and without what differs
/// from run to run.
fn told(mut payload: Value) -> Value {
    payload["session_id"].take();
    if let Some(history) = payload.get_mut("history") {
        let short = |message: &Value| {
            let block = &message["content"][0];
            let said = block.get("text").or_else(|| block.get("name"));
            format!(
                "{} {}",
                message["role"].as_str().unwrap(),
                said.unwrap().as_str().unwrap()
            )
        };
        let history_now = history
            .as_array()
            .unwrap()
            .iter()
            .map(short)
            .collect::<Vec<_>>();
        *history = json!(history_now);
    }
    payload
}

fn usage(input: u64, output: u64) -> Value {
    json!({
        "input": input, "output": output, "cacheRead": 0, "cacheWrite": 0, "reasoning": 0,
        "cost": {"input": 0.0, "output": 0.0, "cacheRead": 0.0, "cacheWrite": 0.0, "total": 0.0},
    })
}

#[tokio::test]
async fn each_observer_is_told_what_really_happens_in_order() {
    let heard = Heard::default();
    let call = json!({
        "text": "I look.",
        "calls": [{"name": "look", "arguments": {"at": "sky"}}],
        "usage": {"input": 100, "output": 10},
    });
    let mut play = Stage::new(json!([call, text("It is blue.")]))
        .tool(TestTool::says("look", "blue"))
        .hook(Probe::new("a", &heard))
        .hook(Probe::new("b", &heard))
        .open()
        .await;
    play.prompt("Which colour?").await.unwrap();
    play.end().await;

    let observers: Vec<_> = heard
        .calls()
        .into_iter()
        .filter(|call| call.contains(":on_"))
        .collect();
    let expected = ["on_turn_start", "on_action", "on_observation", "on_final"];
    let expected: Vec<_> = expected
        .iter()
        .flat_map(|point| [format!("a:{point}"), format!("b:{point}")])
        .collect();
    assert_eq!(observers, expected);

    let one = |point| told(heard.at(point).remove(0)).to_string();
    assert_eq!(
        one(HookPoint::OnTurnStart),
        r#"{"session_id":null,"turn":1,"input":"Which colour?","history":["user Which colour?"]}"#
    );
    assert_eq!(
        one(HookPoint::OnAction),
        r#"{"session_id":null,"turn":1,"step":1,"action":{"tool":"look","input":{"at":"sky"}},"history":["user Which colour?","assistant I look."]}"#
    );
    assert_eq!(
        one(HookPoint::OnObservation),
        r#"{"session_id":null,"turn":1,"step":1,"tool":"look","observation":"blue","history":["user Which colour?","assistant I look.","toolResult blue"]}"#
    );
    let end = json!({
        "session_id": null, "turn": 1, "step": 2, "final_text": "It is blue.", "status": "ok",
        "token_usage": usage(100, 10), "turn_usage": usage(200, 20),
        "steps": [
            {"step": 1, "text": "I look.",
             "actions": [{"tool": "look", "input": {"at": "sky"}, "observation": "blue"}],
             "token_usage": usage(100, 10)},
            {"step": 2, "text": "It is blue.", "actions": [], "token_usage": usage(100, 10)},
        ],
    });
    assert_eq!(one(HookPoint::OnFinal), end.to_string());
}

/// A hook that goes on only once the event before it was seen.
struct Patient {
    seen: watch::Receiver<Vec<String>>,
}

impl Patient {
    fn after<'a>(&'a self, event: &'static str) -> HookFuture<'a, ()> {
        let mut seen = self.seen.clone();
        Box::pin(async move {
            let there = |seen: &Vec<String>| seen.iter().any(|name| name == event);
            seen.wait_for(there).await.map_err(Fault::failed)?;
            Ok(())
        })
    }
}

impl Hook for Patient {
    fn name(&self) -> &str {
        "patient"
    }

    fn on_turn_start<'a>(&'a self, _: &'a OnTurnStart, _: &'a Cancel) -> HookFuture<'a, ()> {
        self.after("turn:start")
    }

    fn on_action<'a>(&'a self, _: &'a OnAction, _: &'a Cancel) -> HookFuture<'a, ()> {
        let started = "tool:execution:start".to_owned();
        let early = !self.seen.borrow().contains(&started);
        let reply = self.after("message:complete");
        Box::pin(async move {
            reply.await?;
            early.then_some(()).ok_or_else(|| Fault::failed("too late"))
        })
    }

    fn on_observation<'a>(&'a self, _: &'a OnObservation, _: &'a Cancel) -> HookFuture<'a, ()> {
        self.after("tool:execution:complete")
    }

    fn on_final<'a>(&'a self, _: &'a OnFinal, _: &'a Cancel) -> HookFuture<'a, ()> {
        self.after("turn:end")
    }
}

#[tokio::test]
async fn what_an_observer_is_told_is_recorded_before() {
    let (sender, seen) = watch::channel(Vec::new());
    let mut play = Stage::new(json!([calls(&["look"]), text("done")]))
        .tool(TestTool::says("look", "blue"))
        .hook(Patient { seen })
        .open()
        .await;
    play.prompt_watched("go", &Interrupt::default(), |event| {
        let name = serde_json::to_value(event).unwrap()["event"].clone();
        let name = name.as_str().unwrap().to_owned();
        sender.send_modify(|seen| seen.push(name));
    })
    .await
    .unwrap();
    assert_eq!(play.end().await.data("hook:error"), [] as [&Value; 0]);
}

#[tokio::test]
async fn the_end_is_told_once_on_every_path() {
    let stopping = json!([calls(&["look"]), calls(&["look"])]);
    let cases: Vec<(Stage, Value)> = vec![
        (
            Stage::new(json!([text("fine")])),
            json!({"status": "ok", "final_text": "fine", "step": 1}),
        ),
        (
            Stage::new(json!([{"error": {"status": 400, "message": "no"}}])),
            json!({"status": "error", "final_text": "", "step": null}),
        ),
        (
            Stage::new(stopping)
                .tool(TestTool::says("look", "blue"))
                .limits(|limits| {
                    limits.max_repeats = 2;
                }),
            json!({"status": "limit", "final_text": "", "step": 2,
                   "error_message": "the limit on repeated calls is reached"}),
        ),
    ];
    for (stage, expected) in cases {
        let heard = Heard::default();
        let mut play = stage.hook(Probe::new("a", &heard)).open().await;
        let outcome = play.prompt("go").await;
        let ended = play.end().await;
        let finals = heard.at(HookPoint::OnFinal);
        assert_eq!(finals.len(), 1, "{expected}");
        for (field, value) in expected.as_object().unwrap() {
            assert_eq!(
                finals[0].get(field).unwrap_or(&Value::Null),
                value,
                "{}",
                finals[0]
            );
        }
        let end = ended.data("turn:end")[0];
        let message = finals[0].get("error_message").unwrap_or(&Value::Null);
        assert_eq!(message, end.get("errorMessage").unwrap_or(&Value::Null));
        assert_eq!(outcome.is_ok(), expected["status"] == "ok");
    }
}

#[tokio::test]
async fn the_end_of_a_cancelled_turn_is_told() {
    let heard = Heard::default();
    let tool = TestTool::reads("wait", |_, cancel| async move {
        cancel.cancelled().await;
        ToolOutput::error("stopped")
    });
    let mut play = Stage::new(json!([calls(&["wait"])]))
        .tool(tool)
        .hook(Probe::new("a", &heard))
        .open()
        .await;
    let interrupt = Interrupt::default();
    let trigger = interrupt.clone();
    let outcome = play
        .prompt_watched("go", &interrupt, move |event| {
            if matches!(event, EventKind::ToolStart(_)) {
                trigger.trigger(Cause::User);
            }
        })
        .await;
    assert!(matches!(outcome, Err(Stop::Interrupted(Cause::User))));
    play.end().await;
    let finals = heard.at(HookPoint::OnFinal);
    assert_eq!(finals.len(), 1);
    assert_eq!(finals[0]["status"], "cancelled");
    assert_eq!(finals[0]["error_message"], "cancelled");
    assert_eq!(
        finals[0]["steps"][0]["actions"][0]["observation"],
        "stopped"
    );
}

#[tokio::test]
async fn an_observer_that_goes_wrong_is_told_of_and_nothing_else_changes() {
    for (misstep, error) in [
        (Misstep::Fails, "broken"),
        (Misstep::Panics, "it panicked: half way"),
        (Misstep::PanicsAtOnce, "it panicked: at once"),
        (Misstep::Hangs, "no answer within 0.02 s"),
    ] {
        for point in [
            HookPoint::OnTurnStart,
            HookPoint::OnAction,
            HookPoint::OnObservation,
            HookPoint::OnFinal,
        ] {
            let heard = Heard::default();
            let mut play = Stage::new(json!([calls(&["look"]), text("done")]))
                .tool(TestTool::says("look", "blue"))
                .hook(Probe::new("bad", &heard).misstep(point, misstep))
                .hook(Probe::new("good", &heard))
                .open()
                .await;
            assert_eq!(play.prompt("go").await.unwrap().text, "done");
            let ended = play.end().await;
            assert_eq!(
                ended.data("hook:error"),
                [&json!({"hook": point.name(), "name": "bad", "error": error})]
            );
            assert_eq!(heard.at(point).len(), 2, "{point} {misstep:?}");
        }
    }
}

#[tokio::test]
async fn calls_that_do_not_run_are_observed_too() {
    let heard = Heard::default();
    let mut play = Stage::new(json!([calls(&["none"]), text("done")]))
        .hook(Probe::new("a", &heard))
        .limits(|limits| limits.max_tool_calls = 5)
        .open()
        .await;
    play.prompt("go").await.unwrap();
    let ended = play.end().await;
    assert_eq!(heard.at(HookPoint::BeforeTool), [] as [Value; 0]);
    assert_eq!(heard.at(HookPoint::AfterTool), [] as [Value; 0]);
    let action = &heard.at(HookPoint::OnAction)[0]["action"];
    assert_eq!(action, &json!({"tool": "none", "input": {}}));
    let observation = &heard.at(HookPoint::OnObservation)[0]["observation"];
    assert_eq!(observation, ended.results()[0].as_str());
}

#[tokio::test]
async fn each_turn_has_its_number_and_only_its_own_steps() {
    let heard = Heard::default();
    let mut play = Stage::new(json!([text("one"), text("two")]))
        .hook(Probe::new("a", &heard).only(HookPoint::OnFinal))
        .open()
        .await;
    play.prompt("first").await.unwrap();
    play.prompt("second").await.unwrap();
    play.end().await;
    let finals = heard.at(HookPoint::OnFinal);
    let seen = finals.iter().map(|end| {
        let texts = end["steps"]
            .as_array()
            .unwrap()
            .iter()
            .map(|step| step["text"].clone());
        (end["turn"].clone(), texts.collect::<Vec<_>>())
    });
    let seen: Vec<_> = seen.collect();
    assert_eq!(
        seen,
        [
            (json!(1), vec![json!("one")]),
            (json!(2), vec![json!("two")])
        ]
    );
}
