//! The set of hooks: who is called when, what becomes of their verdicts, and
//! that one that goes wrong hurts nobody else.

use std::sync::Arc;
use std::time::Duration;

use agent::event::CompactReason;
use agent::hook::{
    AfterTool, AgentStart, BeforeAgentStart, BeforeCompact, BeforeFork, BeforeRequest,
    BeforeSwitch, BeforeTool, BeforeTree, CancelVerdict, CompactVerdict, Fault, History,
    HookFailure, HookPoint, Hooks, Injected, Input, InputVerdict, OnTurnStart, RequestVerdict,
    ResultVerdict, ToolVerdict,
};
use agent::message::Content;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::support::hooks::{Heard, Misstep, Probe};

fn go() -> CancellationToken {
    CancellationToken::new()
}

fn turn() -> OnTurnStart {
    OnTurnStart {
        session_id: "s".to_owned(),
        turn: 1,
        input: "hello".to_owned(),
        history: History::default(),
    }
}

fn call() -> BeforeTool {
    BeforeTool {
        session_id: "s".to_owned(),
        turn: 1,
        step: 2,
        tool_call_id: "c".to_owned(),
        tool: "bash".to_owned(),
        input: json!({"command": "ls"}),
    }
}

fn input() -> Input {
    Input {
        session_id: "s".to_owned(),
        text: "0".to_owned(),
    }
}

fn hooks(probes: impl IntoIterator<Item = Probe>) -> Hooks {
    probes.into_iter().fold(Hooks::new(), |hooks, probe| {
        hooks.with_hook(Arc::new(probe))
    })
}

fn failure(hook: HookPoint, name: &str, error: Fault) -> HookFailure {
    HookFailure {
        hook,
        name: name.to_owned(),
        error,
    }
}

#[tokio::test]
async fn hooks_run_before_middlewares_each_in_order() {
    let heard = Heard::default();
    let probe = |name| Arc::new(Probe::new(name, &heard));
    let hooks = Hooks::new()
        .with_middleware(probe("third"))
        .with_hook(probe("first"))
        .with_middleware(probe("fourth"))
        .with_hook(probe("second"));
    assert_eq!(hooks.on_turn_start(turn(), &go()).await, []);
    let order = ["first", "second", "third", "fourth"];
    assert_eq!(
        heard.calls(),
        order.map(|name| format!("{name}:on_turn_start"))
    );
    assert_eq!(format!("{hooks:?}"), format!("{order:?}"));
}

#[tokio::test]
async fn only_who_listens_is_called() {
    let heard = Heard::default();
    let hooks = hooks([
        Probe::new("a", &heard).only(HookPoint::BeforeTool),
        Probe::new("b", &heard).only(HookPoint::OnTurnStart),
    ]);
    assert!(hooks.listens(HookPoint::BeforeTool));
    assert!(!hooks.listens(HookPoint::AfterTool));
    assert!(!Hooks::new().listens(HookPoint::BeforeTool));
    let _ = hooks.on_turn_start(turn(), &go()).await;
    let _ = hooks.before_tool(call(), &go()).await;
    assert_eq!(heard.calls(), ["b:on_turn_start", "a:before_tool"]);
}

#[tokio::test]
async fn one_that_goes_wrong_is_told_of_and_the_others_are_called() {
    let limit = Duration::from_millis(20);
    for (misstep, fault) in [
        (Misstep::Fails, Fault::failed("broken")),
        (Misstep::Panics, Fault::Panicked("half way".to_owned())),
        (Misstep::PanicsAtOnce, Fault::Panicked("at once".to_owned())),
        (Misstep::Hangs, Fault::TimedOut(limit)),
    ] {
        let heard = Heard::default();
        let hooks = hooks([
            Probe::new("a", &heard).misstep(HookPoint::OnTurnStart, misstep),
            Probe::new("b", &heard),
        ]);
        let failures = hooks.on_turn_start(turn(), &go()).await;
        let expected = failure(HookPoint::OnTurnStart, "a", fault);
        assert_eq!(failures, [expected], "{misstep:?}");
        assert_eq!(heard.calls(), ["a:on_turn_start", "b:on_turn_start"]);
    }
}

#[tokio::test]
async fn each_has_a_time_of_its_own() {
    let heard = Heard::default();
    let short = Duration::from_millis(10);
    let hang = |name, limit| {
        Probe::new(name, &heard)
            .misstep(HookPoint::OnTurnStart, Misstep::Hangs)
            .within(limit)
    };
    let hooks = hooks([hang("a", short), hang("b", 2 * short), hang("c", 3 * short)]);
    let failures = hooks.on_turn_start(turn(), &go()).await;
    let timed_out = |(name, times): (&str, u32)| {
        failure(HookPoint::OnTurnStart, name, Fault::TimedOut(times * short))
    };
    assert_eq!(failures, [("a", 1), ("b", 2), ("c", 3)].map(timed_out));
}

#[tokio::test]
async fn nobody_is_called_once_all_is_cancelled() {
    let heard = Heard::default();
    let hooks = hooks([Probe::new("a", &heard)]);
    let cancel = go();
    cancel.cancel();
    assert_eq!(hooks.on_turn_start(turn(), &cancel).await, []);
    let ran = hooks.before_tool(call(), &cancel).await;
    assert!(matches!(ran.verdict, ToolVerdict::Block(_)), "{ran:?}");
    assert_eq!(ran.failures, []);
    assert_eq!(heard.calls(), [""; 0]);
}

#[tokio::test]
async fn a_call_is_rewritten_from_hook_to_hook() {
    let heard = Heard::default();
    let appending = |name, letter: &'static str| {
        let mut probe = Probe::new(name, &heard);
        probe.before = Box::new(move |call| {
            let command = call.input["command"].as_str().unwrap();
            ToolVerdict::Replace(json!({"command": format!("{command}{letter}")}))
        });
        probe
    };
    let hooks = hooks([
        appending("a", "A"),
        Probe::new("quiet", &heard),
        appending("b", "B"),
    ]);
    let ran = hooks.before_tool(call(), &go()).await;
    assert_eq!(
        ran.verdict,
        ToolVerdict::Replace(json!({"command": "lsAB"}))
    );
    assert_eq!(ran.failures, []);
    let seen: Vec<_> = heard.at(HookPoint::BeforeTool);
    let seen: Vec<_> = seen
        .iter()
        .map(|call| call["input"]["command"].as_str())
        .collect();
    assert_eq!(seen, [Some("ls"), Some("lsA"), Some("lsA")]);
}

#[tokio::test]
async fn a_block_is_final() {
    let heard = Heard::default();
    let mut blocking = Probe::new("a", &heard);
    blocking.before = Box::new(|_| ToolVerdict::Block("not today".to_owned()));
    let hooks = hooks([blocking, Probe::new("b", &heard)]);
    let ran = hooks.before_tool(call(), &go()).await;
    assert_eq!(ran.verdict, ToolVerdict::Block("not today".to_owned()));
    assert_eq!(heard.calls(), ["a:before_tool"]);
}

#[tokio::test]
async fn a_guard_that_goes_wrong_blocks_the_call() {
    for (misstep, why) in [
        (Misstep::Fails, "broken"),
        (Misstep::Panics, "it panicked: half way"),
        (Misstep::PanicsAtOnce, "it panicked: at once"),
        (Misstep::Hangs, "no answer within 0.02 s"),
    ] {
        let heard = Heard::default();
        let hooks = hooks([
            Probe::new("guard", &heard).misstep(HookPoint::BeforeTool, misstep),
            Probe::new("b", &heard),
        ]);
        let ran = hooks.before_tool(call(), &go()).await;
        let reason = format!("the hook `guard` must agree and did not answer: {why}");
        assert_eq!(ran.verdict, ToolVerdict::Block(reason));
        assert_eq!(ran.failures.len(), 1);
        assert_eq!(ran.failures[0].error.to_string(), why);
        assert_eq!(heard.calls(), ["guard:before_tool"]);
    }
}

#[tokio::test]
async fn other_deciders_that_go_wrong_decide_nothing() {
    let heard = Heard::default();
    let mut good = Probe::new("good", &heard);
    good.input = Box::new(|input| InputVerdict::Transform(format!("{}+", input.text)));
    let bad = Probe::new("bad", &heard).misstep(HookPoint::Input, Misstep::Fails);
    let hooks = hooks([bad, good]);
    let ran = hooks.input(input(), &go()).await;
    assert_eq!(ran.verdict, InputVerdict::Transform("0+".to_owned()));
    assert_eq!(
        ran.failures,
        [failure(HookPoint::Input, "bad", Fault::failed("broken"))]
    );
}

#[tokio::test]
async fn a_prompt_is_transformed_until_somebody_settles_it() {
    let verdicts: [(InputVerdict, &[&str]); 4] = [
        (InputVerdict::Continue, &["0", "0a", "0a"]),
        (InputVerdict::Transform("x".to_owned()), &["0", "0a", "x"]),
        (InputVerdict::Handled("done".to_owned()), &["0", "0a"]),
        (InputVerdict::Block("no".to_owned()), &["0", "0a"]),
    ];
    for (second, seen) in verdicts {
        let heard = Heard::default();
        let mut a = Probe::new("a", &heard);
        a.input = Box::new(|input| InputVerdict::Transform(format!("{}a", input.text)));
        let mut b = Probe::new("b", &heard);
        let said = second.clone();
        b.input = Box::new(move |_| said.clone());
        let ran = hooks([a, b, Probe::new("c", &heard)])
            .input(input(), &go())
            .await;
        let expected = match second {
            InputVerdict::Continue => InputVerdict::Transform("0a".to_owned()),
            other => other,
        };
        assert_eq!(ran.verdict, expected);
        let texts = heard.at(HookPoint::Input);
        let texts: Vec<_> = texts
            .iter()
            .map(|told| told["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts, seen);
    }
}

fn injected(text: &str) -> Injected {
    Injected {
        custom_type: "note".to_owned(),
        content: vec![Content::text(text)],
        display: true,
    }
}

#[tokio::test]
async fn a_run_gets_the_messages_of_all_and_the_last_system_prompt() {
    let heard = Heard::default();
    let adding = |name: &'static str, prompt: Option<&'static str>| {
        let mut probe = Probe::new(name, &heard);
        probe.start = Box::new(move |start| AgentStart {
            messages: vec![injected(name)],
            system_prompt: prompt.map(|more| format!("{}{more}", start.system_prompt)),
        });
        probe
    };
    let hooks = hooks([
        adding("a", Some("A")),
        adding("b", None),
        adding("c", Some("C")),
    ]);
    let start = BeforeAgentStart {
        session_id: "s".to_owned(),
        prompt: "go".to_owned(),
        system_prompt: "base ".to_owned(),
        messages: Vec::new(),
    };
    let ran = hooks.before_agent_start(start, &go()).await;
    let expected = AgentStart {
        messages: vec![injected("a"), injected("b"), injected("c")],
        system_prompt: Some("base AC".to_owned()),
    };
    assert_eq!(ran.verdict, expected);
    let last = heard.at(HookPoint::BeforeAgentStart).pop().unwrap();
    assert_eq!(last["system_prompt"], "base A");
    assert_eq!(last["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn results_requests_and_summaries_go_from_hook_to_hook() {
    let heard = Heard::default();
    let probe = |name: &'static str| {
        let mut probe = Probe::new(name, &heard);
        probe.after = Box::new(move |result| {
            let mut content = result.content.clone();
            content.push(Content::text(name));
            ResultVerdict::Replace(content)
        });
        probe.request = Box::new(move |request| {
            let mut payload = request.payload.clone();
            payload[name] = true.into();
            RequestVerdict::Replace(payload)
        });
        probe.compact = Box::new(move |compaction| {
            let before = compaction.summary.clone().unwrap_or_default();
            CompactVerdict::Summary(format!("{before}{name}"))
        });
        probe
    };
    let hooks = hooks([probe("a"), Probe::new("quiet", &heard), probe("b")]);
    let ended = AfterTool {
        session_id: "s".to_owned(),
        turn: 1,
        step: 1,
        tool_call_id: "c".to_owned(),
        tool: "ls".to_owned(),
        input: json!({}),
        content: vec![Content::text("out")],
        is_error: false,
    };
    let content = ["out", "a", "b"].map(Content::text).to_vec();
    let ran = hooks.after_tool(ended.clone(), &go()).await;
    assert_eq!(ran.verdict, ResultVerdict::Replace(content));
    let request = BeforeRequest {
        session_id: "s".to_owned(),
        model: "p/m".to_owned(),
        payload: json!({}),
    };
    let ran = hooks.before_request(request.clone(), &go()).await;
    assert_eq!(
        ran.verdict,
        RequestVerdict::Replace(json!({"a": true, "b": true}))
    );
    let ran = hooks.before_compact(compaction(), &go()).await;
    assert_eq!(ran.verdict, CompactVerdict::Summary("ab".to_owned()));
    let none = Hooks::new();
    assert_eq!(
        none.after_tool(ended, &go()).await.verdict,
        ResultVerdict::Continue
    );
    assert_eq!(
        none.before_request(request, &go()).await.verdict,
        RequestVerdict::Continue
    );
}

fn compaction() -> BeforeCompact {
    BeforeCompact {
        session_id: "s".to_owned(),
        reason: CompactReason::Threshold,
        tokens_before: 10,
        instructions: None,
        summary: None,
        history: History::default(),
    }
}

#[tokio::test]
async fn a_compaction_takes_the_first_no_and_no_empty_summary() {
    let heard = Heard::default();
    let saying = |name, verdict: CompactVerdict| {
        let mut probe = Probe::new(name, &heard);
        probe.compact = Box::new(move |_| verdict.clone());
        probe
    };
    let summary = |text: &str| CompactVerdict::Summary(text.to_owned());
    let no = CompactVerdict::Cancel("no".to_owned());
    let all = hooks([
        saying("a", summary("A")),
        saying("b", no.clone()),
        saying("c", summary("C")),
    ]);
    assert_eq!(all.before_compact(compaction(), &go()).await.verdict, no);
    assert_eq!(heard.calls(), ["a:before_compact", "b:before_compact"]);
    let empty = hooks([saying("a", summary("A")), saying("b", summary(" \n"))]);
    let ran = empty.before_compact(compaction(), &go()).await;
    assert_eq!(ran.verdict, summary("A"));
    let fault = Fault::failed("the summary is empty");
    assert_eq!(
        ran.failures,
        [failure(HookPoint::BeforeCompact, "b", fault)]
    );
}

#[tokio::test]
async fn forks_moves_and_switches_take_the_first_no() {
    let heard = Heard::default();
    let mut no = Probe::new("a", &heard);
    no.consent = Box::new(|point| CancelVerdict::Cancel(format!("no {point}")));
    let hooks = hooks([no, Probe::new("b", &heard)]);
    let session_id = || "s".to_owned();
    let fork = BeforeFork {
        session_id: session_id(),
        entry_id: None,
    };
    let to = BeforeTree {
        session_id: session_id(),
        old_leaf_id: None,
        target_id: "t".to_owned(),
    };
    let switch = BeforeSwitch {
        session_id: session_id(),
        target_id: None,
    };
    let said = [
        hooks.before_fork(fork.clone(), &go()).await.verdict,
        hooks.before_tree(to, &go()).await.verdict,
        hooks.before_switch(switch, &go()).await.verdict,
    ];
    let no = |point| CancelVerdict::Cancel(format!("no {point}"));
    assert_eq!(
        said,
        ["before_fork", "before_tree", "before_switch"].map(no)
    );
    assert_eq!(
        heard.calls(),
        ["a:before_fork", "a:before_tree", "a:before_switch"]
    );
    let ran = Hooks::new().before_fork(fork, &go()).await;
    assert_eq!(ran.verdict, CancelVerdict::Continue);
}
