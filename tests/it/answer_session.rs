//! Sessions whose final answers must fit a schema.

use std::sync::{Arc, Mutex};

use agent::event::{EventKind, MessageSource, Reason};
use agent::hook::{AgentStart, HookPoint, InputVerdict};
use agent::session::{ForkPoint, PromptOptions, ResponseSchema, Session, SessionError};
use agent::tool::ToolOutput;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::hooks::{Heard, Probe};
use crate::support::session::{Stage, TestTool, Told, calls, expecting, text};

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["fixed"],
        "properties": {"fixed": {"type": "boolean"}}
    })
}

const GOOD: &str = "{\"fixed\": true}";
const BAD: &str = "{\"fixed\": \"yes\"}";

/// A tool that counts its calls.
fn counting(ran: &Arc<Mutex<u32>>) -> TestTool {
    let ran = Arc::clone(ran);
    TestTool::reads("look", move |_, _| {
        *ran.lock().unwrap() += 1;
        async { ToolOutput::text("seen", "seen") }
    })
}

fn sources(told: &Told) -> Vec<Value> {
    told.field("message:user", "source")
}

#[tokio::test]
async fn a_good_answer_is_taken_at_once() {
    let reply = expecting(
        text(GOOD),
        json!({"contains": ["# Final answer", "\"required\":[\"fixed\"]"]}),
    );
    let mut play = Stage::new(json!([reply])).answers(schema(), 3).open().await;
    let answer = play.prompt("go").await.unwrap();
    assert_eq!(answer.text, GOOD);
    assert_eq!(answer.structured, Some(json!({"fixed": true})));
    assert_eq!(play.session.repairs(), Some(0));
    let told = play.end().await;
    assert_eq!(sources(&told), ["prompt"]);
    assert_eq!(told.field("turn:end", "status"), ["ok"]);
}

#[tokio::test]
async fn without_a_schema_nothing_is_asked_of_an_answer() {
    let mut play = Stage::new(json!([text(BAD)])).open().await;
    let answer = play.prompt("go").await.unwrap();
    assert_eq!((answer.text.as_str(), answer.structured), (BAD, None));
    assert_eq!(play.session.repairs(), None);
    play.end().await;
}

#[tokio::test]
async fn a_bad_answer_is_asked_for_again_with_what_is_wrong() {
    let again = expecting(
        text("So: {\"fixed\": true}"),
        json!({"contains": ["at `/fixed`: want boolean, but got string", "corrected JSON document only"]}),
    );
    let mut play = Stage::new(json!([text("Done!"), text(BAD), again]))
        .answers(schema(), 3)
        .open()
        .await;
    let answer = play.prompt("go").await.unwrap();
    assert_eq!(answer.structured, Some(json!({"fixed": true})));
    assert_eq!(answer.steps, 3);
    assert_eq!(play.session.repairs(), Some(2));
    let told = play.end().await;
    assert_eq!(sources(&told), ["prompt", "repair", "repair"]);
    assert_eq!(told.speakers(), "uauaua");
    let first = told.field("message:user", "content")[1].clone();
    assert!(
        first
            .as_str()
            .unwrap()
            .contains("it holds no JSON document"),
        "{first}"
    );
}

#[tokio::test]
async fn after_the_rounds_there_is_no_answer() {
    for (repairs, replies) in [(0, vec![BAD]), (1, vec![GOOD.trim_end_matches('}'), BAD])] {
        let replies: Vec<Value> = replies.into_iter().map(text).collect();
        let mut play = Stage::new(json!(replies))
            .answers(schema(), repairs)
            .open()
            .await;
        let stop = play.prompt("go").await.unwrap_err();
        assert_eq!(stop.reason(), Reason::InvalidResponse);
        assert_eq!(stop.code(), "invalid_response");
        assert!(
            stop.to_string()
                .ends_with(": at `/fixed`: want boolean, but got string"),
            "{stop}"
        );
        assert_eq!(play.session.repairs(), Some(repairs));
        let told = play.end().await;
        assert_eq!(told.field("turn:end", "status"), ["invalid"]);
        assert_eq!(told.field("turn:end", "finalText"), [BAD]);
        let error = &told.data("session:error")[0]["error"];
        assert_eq!(
            error["details"],
            json!({"violations": [{"path": "/fixed", "rule": "want boolean, but got string"}], "repairs": repairs})
        );
    }
}

#[tokio::test]
async fn only_the_final_answer_is_looked_at() {
    let mut said = calls(&["look"]);
    said["text"] = json!("{\"fixed\": \"not yet\"}");
    let mut last = text(GOOD);
    last["thinking"] = json!("{\"fixed\": 1}");
    let mut play = Stage::new(json!([said, last]))
        .tool(TestTool::says("look", "seen"))
        .answers(schema(), 0)
        .open()
        .await;
    let answer = play.prompt("go").await.unwrap();
    assert_eq!(answer.structured, Some(json!({"fixed": true})));
    play.end().await;
}

#[tokio::test]
async fn a_repair_runs_no_tool_though_the_request_still_names_it() {
    let ran = Arc::new(Mutex::new(0));
    let called = expecting(calls(&["look"]), json!({"tools": ["look"]}));
    let last = expecting(text(GOOD), json!({"tools": ["look"]}));
    let mut play = Stage::new(json!([calls(&["look"]), text(BAD), called, last]))
        .tool(counting(&ran))
        .answers(schema(), 2)
        .open()
        .await;
    let answer = play.prompt("go").await.unwrap();
    assert_eq!(answer.structured, Some(json!({"fixed": true})));
    assert_eq!(*ran.lock().unwrap(), 1);
    assert_eq!(play.session.repairs(), Some(2));
    let told = play.end().await;
    assert_eq!(told.speakers(), "uarauarua");
    assert!(told.results()[1].contains("tools are no longer available"));
}

#[tokio::test]
async fn a_question_is_answered_before_it_is_no_answer() {
    // The model may still go on with its work then.
    let mut play = Stage::new(json!([text("Shall I?"), calls(&["look"]), text(GOOD)]))
        .tool(TestTool::says("look", "seen"))
        .answers(schema(), 0)
        .open()
        .await;
    play.prompt("go").await.unwrap();
    assert_eq!(play.session.repairs(), Some(0));
    play.end().await;
    // A fitting answer that ends like a question is none.
    let mut play = Stage::new(json!([text("\"Why?\"")]))
        .answers(json!({"type": "string"}), 0)
        .open()
        .await;
    let answer = play.prompt("go").await.unwrap();
    assert_eq!(answer.structured, Some(json!("Why?")));
    play.end().await;
}

#[tokio::test]
async fn refused_and_cut_answers_say_so() {
    let stopped = |words: &str, stop: &str| json!({"text": words, "stop": stop});
    for (replies, words) in [
        (json!([stopped(GOOD, "refusal")]), "refused"),
        (json!([text(BAD), stopped(GOOD, "refusal")]), "refused"),
        (
            json!([stopped(GOOD, "length"), stopped(GOOD, "length")]),
            "cut by the output limit",
        ),
        (json!([text(BAD), text(""), text("")]), "was empty"),
    ] {
        let mut play = Stage::new(replies.clone())
            .answers(schema(), 3)
            .open()
            .await;
        let stop = play.prompt("go").await.unwrap_err();
        assert_eq!(stop.reason(), Reason::Incomplete, "{replies}");
        assert!(stop.to_string().contains(words), "{replies}: {stop}");
        play.end().await;
    }
    let mut play = Stage::new(json!([stopped(GOOD, "length"), text(GOOD)]))
        .answers(schema(), 0)
        .open()
        .await;
    assert!(play.prompt("go").await.unwrap().structured.is_some());
    play.end().await;
}

#[tokio::test]
async fn repairs_are_within_the_limits() {
    // The last step that is allowed may repair the answer, and nothing else.
    for (last, fits) in [(GOOD, true), (BAD, false)] {
        let mut play = Stage::new(json!([text(BAD), text(last)]))
            .answers(schema(), 3)
            .limits(|limits| limits.max_turns = 2)
            .open()
            .await;
        let outcome = play.prompt("go").await;
        assert_eq!(outcome.is_ok(), fits);
        if let Err(stop) = outcome {
            assert_eq!(stop.reason(), Reason::Budget);
        }
        let told = play.end().await;
        assert_eq!(told.data("limit:reached").len(), usize::from(!fits));
        assert_eq!(sources(&told), ["prompt", "repair"]);
    }
    let mut play = Stage::new(json!([text(BAD)]))
        .answers(schema(), 3)
        .limits(|limits| limits.max_turns = 1)
        .open()
        .await;
    assert_eq!(
        play.prompt("go").await.unwrap_err().reason(),
        Reason::Budget
    );
    play.end().await;
}

#[tokio::test]
async fn each_prompt_has_its_own_rounds() {
    let replies = [BAD, GOOD, BAD, GOOD, BAD, BAD].map(text);
    let mut play = Stage::new(json!(replies)).answers(schema(), 1).open().await;
    assert!(play.prompt("one").await.is_ok());
    assert!(play.prompt("two").await.is_ok());
    assert!(play.prompt("three").await.is_err());
    assert_eq!(play.session.repairs(), Some(3));
    play.end().await;
}

#[tokio::test]
async fn what_is_said_meanwhile_brings_the_tools_back() {
    let ran = Arc::new(Mutex::new(0));
    let slow = json!({"text": GOOD, "delay": "20ms"});
    let stage = Stage::new(json!([text(BAD), slow, calls(&["look"]), text(GOOD)]))
        .tool(counting(&ran))
        .answers(schema(), 3);
    let (sender, mut events) = mpsc::channel(64);
    let created = Session::create(stage.options(sender)).await.unwrap();
    let session = created.session;
    let prompt = session.prompt("go", PromptOptions::default());
    tokio::pin!(prompt);
    let answer = loop {
        tokio::select! {
            answer = &mut prompt => break answer.unwrap(),
            Some(emission) = events.recv() => {
                if let EventKind::MessageUser(said) = emission.kind
                    && said.source == MessageSource::Repair
                {
                    session.steer("look first").await.unwrap();
                }
            }
        }
    };
    assert_eq!(answer.structured, Some(json!({"fixed": true})));
    assert_eq!((answer.steps, *ran.lock().unwrap()), (4, 1));
}

#[tokio::test]
async fn a_prompt_that_a_hook_replaces_still_says_what_the_answer_must_be() {
    let heard = Heard::default();
    let mut hook = Probe::new("own", &heard).only(HookPoint::BeforeAgentStart);
    hook.start = Box::new(|_| AgentStart {
        system_prompt: Some("Be brief.".to_owned()),
        ..AgentStart::default()
    });
    let reply = expecting(
        text(GOOD),
        json!({"contains": ["Be brief.\n\n# Final answer", "\"required\":[\"fixed\"]"]}),
    );
    let mut play = Stage::new(json!([reply]))
        .hook(hook)
        .answers(schema(), 0)
        .open()
        .await;
    assert!(play.prompt("go").await.unwrap().structured.is_some());
    play.end().await;
}

#[tokio::test]
async fn what_a_hook_answers_must_fit_too() {
    for (words, fits) in [(GOOD, true), (BAD, false)] {
        let heard = Heard::default();
        let mut hook = Probe::new("own", &heard).only(HookPoint::Input);
        hook.input = Box::new(move |_| InputVerdict::Handled(words.to_owned()));
        let mut play = Stage::new(json!([]))
            .hook(hook)
            .answers(schema(), 3)
            .open()
            .await;
        match play.prompt("go").await {
            Ok(answer) => assert_eq!(
                (fits, answer.structured),
                (true, Some(json!({"fixed": true})))
            ),
            Err(stop) => assert_eq!((fits, stop.reason()), (false, Reason::InvalidResponse)),
        }
        play.end().await;
    }
}

#[tokio::test]
async fn a_fork_asks_the_same_of_its_answers() {
    let mut play = Stage::new(json!([text(GOOD), text(BAD)]))
        .answers(schema(), 0)
        .open()
        .await;
    play.prompt("go").await.unwrap();
    let forked = play.session.fork(ForkPoint::Whole).await.unwrap();
    let outcome = forked.prompt("again", PromptOptions::default()).await;
    let SessionError::Stopped(stop) = outcome.unwrap_err() else {
        unreachable!("the turn ran")
    };
    assert_eq!(stop.reason(), Reason::InvalidResponse);
}

/// Texts of a model, most of them near an answer.
fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(GOOD.to_owned()),
        Just(BAD.to_owned()),
        Just("{\"fixed\": true,}".to_owned()),
        Just(format!("Here: {GOOD}")),
        Just(format!("{GOOD}\n{GOOD}")),
        "[a-z{}\\[\\]\":,? 0-9]{1,24}".prop_filter("not blank", |text| !text.trim().is_empty()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the model answers: it succeeds exactly when one of the answers
    /// that it may give fits, and the document is that one.
    #[test]
    fn success_is_a_fitting_answer(all in prop::collection::vec(words(), 4), repairs in 0u32..3) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let compiled = ResponseSchema::compile(schema()).unwrap();
        // A question is answered once, which is no repair.
        let mut left = repairs;
        let mut questions = 1;
        let mut expected = None;
        for words in &all {
            if let Ok(value) = compiled.read(words) {
                expected = Some(value);
                break;
            }
            let asks = words.trim_end_matches(|c: char| c.is_whitespace() || c == '"').ends_with('?');
            if asks && questions > 0 && left == repairs {
                questions -= 1;
                continue;
            }
            if left == 0 {
                break;
            }
            left -= 1;
        }
        let replies: Vec<Value> = all.iter().map(|words| text(words)).collect();
        let outcome = runtime.block_on(async {
            let mut play = Stage::lenient(json!(replies)).answers(schema(), repairs).open().await;
            let outcome = play.prompt("go").await;
            play.end().await;
            outcome
        });
        match (outcome, expected) {
            (Ok(answer), Some(value)) => prop_assert_eq!(answer.structured, Some(value)),
            (Err(stop), None) => prop_assert_eq!(stop.reason(), Reason::InvalidResponse),
            (outcome, expected) => prop_assert!(false, "{:?}, not {:?}", outcome, expected),
        }
    }
}
