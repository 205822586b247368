//! What hooks are told, as JSON to the letter, and which tools a matcher is for.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use agent::event::TurnStatus;
use agent::hook::{
    Action, BeforeTool, History, MatchError, Matcher, OnAction, OnFinal, OnObservation,
    OnTurnStart, StepTrace, TracedAction,
};
use agent::message::{Message, Usage, UserMessage};
use serde_json::{Value, json};

fn user(text: &str) -> Arc<Message> {
    Arc::new(Message::User(UserMessage::text(text, 7)))
}

fn history() -> History {
    [user("hello")].into_iter().collect()
}

const HISTORY: &str = r#"[{"role":"user","content":[{"type":"text","text":"hello"}]}]"#;
const USAGE: &str = r#"{"input":3,"output":0,"cacheRead":0,"cacheWrite":0,"reasoning":0,"cost":{"input":0.0,"output":0.0,"cacheRead":0.0,"cacheWrite":0.0,"total":0.0}}"#;

fn usage() -> Usage {
    Usage {
        input: 3,
        ..Usage::default()
    }
}

#[test]
fn a_turn_start_has_its_fields_in_order() {
    let told = OnTurnStart {
        session_id: "s".to_owned(),
        turn: 1,
        input: "hello".to_owned(),
        history: history(),
    };
    assert_eq!(
        serde_json::to_string(&told).unwrap(),
        format!(r#"{{"session_id":"s","turn":1,"input":"hello","history":{HISTORY}}}"#)
    );
}

#[test]
fn an_action_and_its_observation_have_their_fields_in_order() {
    let told = OnAction {
        session_id: "s".to_owned(),
        turn: 1,
        step: 2,
        action: Action {
            tool: "bash".to_owned(),
            input: json!({"command": "ls"}),
        },
        history: history(),
    };
    assert_eq!(
        serde_json::to_string(&told).unwrap(),
        format!(
            r#"{{"session_id":"s","turn":1,"step":2,"action":{{"tool":"bash","input":{{"command":"ls"}}}},"history":{HISTORY}}}"#
        )
    );
    let told = OnObservation {
        session_id: "s".to_owned(),
        turn: 1,
        step: 2,
        tool: "bash".to_owned(),
        observation: "out".to_owned(),
        history: history(),
    };
    assert_eq!(
        serde_json::to_string(&told).unwrap(),
        format!(
            r#"{{"session_id":"s","turn":1,"step":2,"tool":"bash","observation":"out","history":{HISTORY}}}"#
        )
    );
}

#[test]
fn a_final_text_has_its_fields_in_order() {
    let whole = OnFinal {
        session_id: "s".to_owned(),
        turn: 1,
        step: Some(2),
        final_text: "done".to_owned(),
        status: TurnStatus::Limit,
        error_message: Some("too much".to_owned()),
        token_usage: Some(usage()),
        turn_usage: usage(),
        steps: vec![StepTrace {
            step: 1,
            text: "look".to_owned(),
            actions: vec![TracedAction {
                tool: "ls".to_owned(),
                input: json!({}),
                observation: None,
            }],
            token_usage: usage(),
        }],
    };
    assert_eq!(
        serde_json::to_string(&whole).unwrap(),
        format!(
            r#"{{"session_id":"s","turn":1,"step":2,"final_text":"done","status":"limit","error_message":"too much","token_usage":{USAGE},"turn_usage":{USAGE},"steps":[{{"step":1,"text":"look","actions":[{{"tool":"ls","input":{{}}}}],"token_usage":{USAGE}}}]}}"#
        )
    );
    let bare = OnFinal {
        step: None,
        status: TurnStatus::Cancelled,
        error_message: None,
        token_usage: None,
        steps: Vec::new(),
        ..whole
    };
    assert_eq!(
        serde_json::to_string(&bare).unwrap(),
        format!(
            r#"{{"session_id":"s","turn":1,"final_text":"done","status":"cancelled","turn_usage":{USAGE},"steps":[]}}"#
        )
    );
}

#[test]
fn a_call_has_what_a_guard_needs() {
    let told = BeforeTool {
        session_id: "s".to_owned(),
        turn: 1,
        step: 2,
        tool_call_id: "c".to_owned(),
        tool: "bash".to_owned(),
        input: json!({"command": "ls"}),
    };
    assert_eq!(
        serde_json::to_value(&told).unwrap(),
        json!({"session_id": "s", "turn": 1, "step": 2, "tool_call_id": "c", "tool": "bash",
               "input": {"command": "ls"}})
    );
}

fn texts(history: &History) -> Vec<Value> {
    let told = serde_json::to_value(history).unwrap();
    let texts = told.as_array().unwrap().iter();
    texts
        .map(|message| message["content"][0]["text"].clone())
        .collect()
}

#[test]
fn a_history_follows_the_conversation() {
    let (a, b, c) = (user("a"), user("b"), user("c"));
    let mut history = History::default();
    history.follow(&[a.clone(), b.clone()]);
    let kept = history.clone();
    history.follow(&[a.clone(), b.clone(), c.clone()]);
    assert_eq!(texts(&history), ["a", "b", "c"]);
    assert_eq!(texts(&kept), ["a", "b"], "a snapshot stays as it was");
    // A compaction, a branch, a shorter conversation.
    let summary = user("summary");
    history.follow(&[summary.clone(), b.clone(), c.clone()]);
    assert_eq!(texts(&history), ["summary", "b", "c"]);
    history.follow(&[summary.clone(), b.clone(), user("d")]);
    assert_eq!(texts(&history), ["summary", "b", "d"]);
    history.follow(&[summary]);
    assert_eq!(texts(&history), ["summary"]);
}

#[test]
fn what_is_known_of_a_history_is_not_copied_again() {
    let messages: Vec<_> = (0..100).map(|n| user(&n.to_string())).collect();
    let mut history = History::default();
    for length in 1..=messages.len() {
        history.follow(&messages[..length]);
    }
    // One owner is the test, the other the history.
    assert!(
        messages
            .iter()
            .all(|message| Arc::strong_count(message) == 2)
    );
    assert_eq!(history.messages().len(), 100);
}

#[test]
fn a_matcher_is_for_the_tools_it_names() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("bash", &["bash"], &["Bash", "bash2", "bas", ""]),
        ("edit|write", &["edit", "write"], &["read", "edit|write"]),
        (" edit | write ", &["edit", "write"], &["edit "]),
        ("*", &["bash", ""], &[]),
        ("mcp__*", &["mcp__a__b", "mcp__"], &["mcp_", "xmcp__a"]),
        (
            "mcp__*__get",
            &["mcp__a__get", "mcp__a__get__get"],
            &["mcp__get", "mcp__a__gets"],
        ),
        ("?s", &["ls"], &["s", "lls"]),
        ("*a*a*", &["aa", "banana"], &["a", "bab"]),
    ];
    for (text, fit, differ) in cases {
        let matcher = Matcher::parse(text).unwrap();
        assert_eq!(matcher.to_string(), *text);
        for tool in *fit {
            assert!(matcher.matches(tool), "{text} is for {tool}");
        }
        for tool in *differ {
            assert!(!matcher.matches(tool), "{text} is not for {tool}");
        }
    }
}

#[test]
fn a_text_that_names_nothing_is_no_matcher() {
    for text in ["", " ", "bash|", "|", "a||b"] {
        assert_eq!(
            Matcher::parse(text),
            Err(MatchError::Empty(text.to_owned()))
        );
    }
    for (text, part) in [
        ("bash|a b", "a b"),
        ("^bash$", "^bash$"),
        ("Bash(ls)", "Bash(ls)"),
        ("é", "é"),
    ] {
        assert_eq!(
            Matcher::parse(text),
            Err(MatchError::Character(part.to_owned()))
        );
    }
}
