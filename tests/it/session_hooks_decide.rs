//! The deciding hooks of a session: what they may change, and what they may not.

use std::sync::Arc;

use agent::hook::{
    AgentStart, CancelVerdict, ContextVerdict, HookPoint, Injected, InputVerdict, ResultVerdict,
    ToolVerdict,
};
use agent::message::{Content, Message, UserMessage};
use agent::session::{ForkPoint, LeftBranch, SessionError, Stop};
use agent::tool::Toolset;
use serde_json::{Value, json};

use crate::support::hooks::{Heard, Misstep, Probe};
use crate::support::session::{Stage, TestTool, calls, expecting, text};

fn probe() -> Probe {
    Probe::new("guard", &Heard::default())
}

fn judging(verdict: ToolVerdict) -> Probe {
    let mut probe = probe();
    probe.before = Box::new(move |_| verdict.clone());
    probe
}

/// A reply that calls a tool with these arguments, 100 tokens in and 10 out.
fn call(name: &str, arguments: Value) -> Value {
    json!({"calls": [{"name": name, "arguments": arguments}], "usage": {"input": 100, "output": 10}})
}

#[tokio::test]
async fn a_blocked_call_does_not_run_and_the_model_goes_on() {
    let replies = json!([
        call("echo", json!({"n": 1})),
        expecting(
            text("Then not."),
            json!({"contains": ["Blocked by a hook: not today"]})
        ),
    ]);
    let mut play = Stage::new(replies)
        .tool(TestTool::echo(json!({"type": "object"})))
        .hook(judging(ToolVerdict::Block("not today".to_owned())))
        .open()
        .await;
    assert_eq!(play.prompt("go").await.unwrap().text, "Then not.");
    assert_eq!(play.session.denials(), 1);
    let told = play.end().await;
    assert_eq!(told.results(), ["Blocked by a hook: not today"]);
    let response = told.data("tool:permission:response")[0];
    assert_eq!(response["by"], "hook");
    assert_eq!(response["selected"], "refuse");
    assert_eq!(response["reason"], "Blocked by a hook: not today");
    assert_eq!(
        told.field("tool:execution:error", "status"),
        [json!("denied")]
    );
    assert_eq!(told.data("hook:error"), [] as [&Value; 0]);
}

#[tokio::test]
async fn a_guard_that_goes_wrong_blocks_the_call() {
    for misstep in [
        Misstep::Fails,
        Misstep::Panics,
        Misstep::PanicsAtOnce,
        Misstep::Hangs,
    ] {
        let mut play = Stage::new(json!([calls(&["look"]), text("done")]))
            .tool(TestTool::says("look", "blue"))
            .hook(probe().misstep(HookPoint::BeforeTool, misstep))
            .open()
            .await;
        play.prompt("go").await.unwrap();
        let told = play.end().await;
        let result = told.results().remove(0);
        let start = "Blocked by a hook: the hook `guard` must agree and did not answer: ";
        assert!(result.starts_with(start), "{misstep:?}: {result}");
        assert_eq!(told.field("hook:error", "hook"), [json!("before_tool")]);
    }
}

#[tokio::test]
async fn a_model_that_insists_on_a_blocked_call_is_stopped() {
    let mut play = Stage::new(json!([calls(&["look"]), calls(&["look"])]))
        .tool(TestTool::says("look", "blue"))
        .limits(|limits| limits.max_denials.consecutive = 2)
        .hook(judging(ToolVerdict::Block("no".to_owned())))
        .open()
        .await;
    let outcome = play.prompt("go").await;
    assert!(matches!(outcome, Err(Stop::Denied(_))), "{outcome:?}");
    play.end().await;
}

#[tokio::test]
async fn a_rewritten_call_runs_as_rewritten() {
    let heard = Heard::default();
    let mut guard = Probe::new("guard", &heard);
    guard.before = Box::new(|_| ToolVerdict::Replace(json!({"count": "2"})));
    let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}},
                        "additionalProperties": false});
    let mut play = Stage::new(json!([call("echo", json!({"count": 1})), text("done")]))
        .tool(TestTool::echo(schema))
        .hook(guard)
        .open()
        .await;
    play.prompt("go").await.unwrap();
    let told = play.end().await;
    // Coerced like the model's own.
    assert_eq!(told.results(), [r#"{"count":2}"#]);
    assert_eq!(
        told.field("tool:execution:start", "args"),
        [json!({"count": 2})]
    );
    assert_eq!(
        heard.at(HookPoint::BeforeTool)[0]["input"],
        json!({"count": 1})
    );
    assert_eq!(
        heard.at(HookPoint::OnAction)[0]["action"]["input"],
        json!({"count": 2})
    );
    assert_eq!(
        heard.at(HookPoint::AfterTool)[0]["input"],
        json!({"count": 2})
    );
}

#[tokio::test]
async fn a_rewritten_call_must_fit_its_tool() {
    let schema = json!({"type": "object", "properties": {"count": {"type": "integer"}},
                        "additionalProperties": false});
    let mut play = Stage::new(json!([call("echo", json!({"count": 1})), text("done")]))
        .tool(TestTool::echo(schema))
        .hook(judging(ToolVerdict::Replace(json!({"other": 1}))))
        .open()
        .await;
    play.prompt("go").await.unwrap();
    let told = play.end().await;
    let result = told.results().remove(0);
    let start = "Not run: a hook replaced the arguments of this call, and those do not fit";
    assert!(result.starts_with(start), "{result}");
    assert_eq!(
        told.field("tool:execution:error", "status"),
        [json!("invalid_input")]
    );
}

#[tokio::test]
async fn policy_decides_after_the_hooks() {
    // What the model asks for is allowed; what the hook makes of it is not.
    let mut stage = Stage::new(json!([
        call("write", json!({"path": "a.txt", "content": "x"})),
        text("done")
    ]))
    .edits();
    stage.tools = Toolset::built_in(&["write".to_owned()]);
    let outside = json!({"path": "/outside.txt", "content": "x"});
    let mut play = stage
        .hook(judging(ToolVerdict::Replace(outside.clone())))
        .open()
        .await;
    let file = play.workspace().join("a.txt");
    play.prompt("go").await.unwrap();
    let told = play.end().await;
    assert!(!file.exists());
    assert_eq!(told.field("tool:execution:start", "args"), [outside]);
    assert_eq!(
        told.field("tool:execution:error", "status"),
        [json!("denied")]
    );
    let by = told.field("tool:permission:response", "by");
    assert_eq!(by, [json!("mode")]);
}

#[tokio::test]
async fn hooks_are_asked_before_anything_of_a_group_is_decided() {
    let heard = Heard::default();
    let mut play = Stage::new(json!([calls(&["a", "b"]), text("done")]))
        .tool(TestTool::says("a", "A"))
        .tool(TestTool::says("b", "B"))
        .hook(Probe::new("guard", &heard).only(HookPoint::BeforeTool))
        .open()
        .await;
    let seen = heard.clone();
    let mut at_decision = Vec::new();
    play.prompt_watched("go", &Default::default(), |event| {
        if matches!(event, agent::event::EventKind::PermissionResponse(_)) {
            at_decision.push(seen.calls().len());
        }
    })
    .await
    .unwrap();
    let told = play.end().await;
    assert_eq!(at_decision, [2, 2]);
    assert_eq!(told.results(), ["A", "B"]);
}

#[tokio::test]
async fn a_result_is_replaced_before_anybody_sees_it() {
    let heard = Heard::default();
    let mut guard = Probe::new("guard", &heard);
    guard.after = Box::new(|result| {
        assert_eq!(result.content, [Content::text("the key is 1234")]);
        ResultVerdict::Replace(vec![Content::text("masked")])
    });
    let replies = json!([
        calls(&["look"]),
        expecting(text("done"), json!({"contains": ["masked"]}))
    ]);
    let mut play = Stage::new(replies)
        .tool(TestTool::says("look", "the key is 1234"))
        .hook(guard)
        .open()
        .await;
    play.prompt("go").await.unwrap();
    let told = play.end().await;
    assert_eq!(told.results(), ["masked"]);
    assert_eq!(
        told.field("tool:execution:complete", "content"),
        [json!("masked")]
    );
    assert_eq!(
        heard.at(HookPoint::OnObservation)[0]["observation"],
        "masked"
    );
    assert!(
        !told
            .events
            .iter()
            .any(|event| event.to_string().contains("1234"))
    );
}

fn answering(verdict: InputVerdict) -> Probe {
    let mut probe = probe();
    probe.input = Box::new(move |_| verdict.clone());
    probe
}

#[tokio::test]
async fn an_input_is_transformed_before_it_is_a_message() {
    let replies = json!([expecting(
        text("done"),
        json!({"contains": ["say it in French"]})
    )]);
    let mut play = Stage::new(replies)
        .hook(answering(InputVerdict::Transform(
            "say it in French".to_owned(),
        )))
        .open()
        .await;
    play.prompt("say it").await.unwrap();
    let told = play.end().await;
    assert_eq!(
        told.field("turn:start", "input"),
        [json!("say it in French")]
    );
}

#[tokio::test]
async fn an_input_that_a_hook_answers_runs_no_turn() {
    let mut play = Stage::new(json!([]))
        .hook(answering(InputVerdict::Handled("42".to_owned())))
        .open()
        .await;
    let answer = play.prompt("6 * 7?").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.steps), ("42", 0));
    let told = play.end().await;
    assert_eq!(told.messages, []);
    assert_eq!(told.field("warning", "code"), [json!("input_handled")]);
}

#[tokio::test]
async fn an_input_that_a_hook_refuses_is_denied() {
    let mut play = Stage::new(json!([]))
        .hook(answering(InputVerdict::Block(
            "no secrets please".to_owned(),
        )))
        .open()
        .await;
    let stop = play.prompt("my key is 1234").await.unwrap_err();
    assert_eq!(
        stop.to_string(),
        "a hook refused the input: no secrets please"
    );
    assert!(matches!(stop, Stop::Denied(_)));
    assert!(
        play.session.steer("again").await.is_err(),
        "whoever says it"
    );
    let told = play.end().await;
    assert_eq!(told.messages, []);
    assert_eq!(told.field("session:interrupted", "by"), [json!("policy")]);
}

#[tokio::test]
async fn a_run_gets_messages_and_a_system_prompt_for_itself_only() {
    let mut starting = probe();
    starting.start = Box::new(|start| match start.prompt.as_str() {
        "first" => AgentStart {
            messages: vec![Injected {
                custom_type: "note".to_owned(),
                content: vec![Content::text("mind the gap")],
                display: true,
            }],
            system_prompt: Some("You are a pirate.".to_owned()),
        },
        _ => AgentStart::default(),
    });
    let replies = json!([
        expecting(
            text("one"),
            json!({"contains": ["You are a pirate.", "mind the gap"]})
        ),
        expecting(
            text("two"),
            json!({"contains": ["coding agent", "mind the gap"]})
        ),
    ]);
    let mut play = Stage::new(replies).hook(starting).open().await;
    play.prompt("first").await.unwrap();
    play.prompt("second").await.unwrap();
    let told = play.end().await;
    assert_eq!(told.speakers(), "uuaua");
    assert_eq!(told.field("message:user", "content")[1], "mind the gap");
}

#[tokio::test]
async fn a_run_is_shown_with_its_prompt_expanded() {
    let heard = Heard::default();
    let hook = Probe::new("a", &heard).only(HookPoint::BeforeAgentStart);
    let mut play = Stage::new(json!([text("done")])).hook(hook).open().await;
    std::fs::write(play.workspace().join("note.txt"), "the note").unwrap();
    play.prompt("Read @note.txt").await.unwrap();
    let told = play.end().await;
    let start = &heard.at(HookPoint::BeforeAgentStart)[0];
    assert_eq!(start["prompt"], told.data("message:user")[0]["content"]);
    assert!(
        start["system_prompt"]
            .as_str()
            .unwrap()
            .contains("coding agent")
    );
}

#[tokio::test]
async fn messages_are_replaced_for_one_request_and_not_kept() {
    let heard = Heard::default();
    let mut forgetful = Probe::new("guard", &heard);
    forgetful.context = Box::new(|_| {
        let only = Message::User(UserMessage::text("only this", 0));
        ContextVerdict::Replace(vec![Arc::new(only)])
    });
    let replies = json!([
        expecting(calls(&["look"]), json!({"contains": ["only this"]})),
        expecting(text("done"), json!({"contains": ["only this"]})),
    ]);
    let mut play = Stage::new(replies)
        .tool(TestTool::says("look", "blue"))
        .hook(forgetful)
        .open()
        .await;
    play.prompt("go").await.unwrap();
    let told = play.end().await;
    assert_eq!(told.speakers(), "uara");
    let lengths: Vec<_> = heard
        .at(HookPoint::Context)
        .iter()
        .map(|context| context["messages"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [1, 3]);
}

#[tokio::test]
async fn forks_and_moves_happen_unless_a_hook_says_no() {
    for allowed in [true, false] {
        let heard = Heard::default();
        let mut guard = Probe::new("guard", &heard);
        guard.consent = Box::new(move |_| match allowed {
            true => CancelVerdict::Continue,
            false => CancelVerdict::Cancel("stay".to_owned()),
        });
        let mut play = Stage::new(json!([text("one")])).hook(guard).open().await;
        play.prompt("first").await.unwrap();
        let session = &play.session;
        let entry = session.tree().forkable()[0].entry_id.clone();
        let leaf = session.tree().leaf();
        let fork = session.fork(ForkPoint::Whole).await.map(|_| ());
        let moved = session
            .tree()
            .navigate(&entry, LeftBranch::Silent)
            .await
            .map(|_| ());
        let restored = session.tree().restore(Vec::new()).await;
        for (outcome, what) in [
            (fork, "fork"),
            (moved, "move"),
            (restored, "go on from another one"),
        ] {
            match outcome {
                Ok(()) => assert!(allowed, "{what}"),
                Err(SessionError::CancelledByHook { what: said, reason }) => {
                    assert!(!allowed);
                    assert_eq!((said, reason.as_str()), (what, "stay"));
                }
                Err(other) => unreachable!("{other}"),
            }
        }
        assert_eq!(session.tree().leaf() == leaf, !allowed);
        assert_eq!(heard.at(HookPoint::BeforeFork)[0]["entry_id"], json!(leaf));
        let moving = &heard.at(HookPoint::BeforeTree)[0];
        assert_eq!(
            (&moving["old_leaf_id"], &moving["target_id"]),
            (&json!(leaf), &json!(entry))
        );
        assert_eq!(heard.at(HookPoint::BeforeSwitch).len(), 1);
        play.end().await;
    }
}
