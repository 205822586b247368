//! Whatever is said, a replayed run is the run that was recorded; and a cassette
//! that was written once can be read for ever.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use proptest::prelude::*;
use serde_json::json;

use crate::cassette_scene::{KEY, SPEAKERS, Say, Shelf, TASK, busy, call, comparable, scene, text};
use crate::support::reply::{Action, Reply};

/// What the model does in one step.
#[derive(Debug, Clone)]
enum Step {
    Busy,
    Reset,
    Cut(String, usize),
    Says(Vec<Say>),
}

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z ]{1,30}",
        "\\PC{1,20}",
        Just("line\r\nbreak \u{2028} \"quoted\" \\ ⟦x⟧ \u{0}".to_owned()),
        Just("/tmp/x, ~/y and ***".to_owned()),
    ]
}

fn said() -> impl Strategy<Value = Say> {
    let calls = prop_oneof![
        Just(("read", json!({"path": "a.txt"}))),
        Just(("read", json!({"path": "no.txt"}))),
        Just(("ls", json!({}))),
        Just(("bash", json!({"command": "rm -rf /"}))),
        Just(("nothing", json!({"x": 1}))),
        words().prop_map(|words| ("write", json!({"path": "new.txt", "content": words}))),
    ];
    prop_oneof![
        words().prop_map(Say::Text),
        (calls, 0..9u8).prop_map(|((tool, arguments), id)| call(
            &format!("c{id}"),
            tool,
            arguments
        )),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => Just(Step::Busy),
        1 => Just(Step::Reset),
        1 => (words(), 0..400usize).prop_map(|(words, at)| Step::Cut(words, at)),
        4 => prop::collection::vec(said(), 1..4).prop_map(|mut says| {
            // Words come before calls, and a step goes on only with a call.
            says.sort_by_key(|say| matches!(say, Say::Call(..)));
            says.push(call("last", "read", json!({"path": "b.txt"})));
            Step::Says(says)
        }),
    ];
    prop::collection::vec(step, 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_replay_is_the_run(steps in steps(), speaker in 0..4usize) {
        let speaker = &SPEAKERS[speaker];
        let answer = [text("That is all.")];
        let mut replies: Vec<Reply> = Vec::new();
        for step in &steps {
            replies.push(match step {
                Step::Busy => busy(),
                Step::Reset => Reply::reset(),
                Step::Cut(words, at) => {
                    let whole = speaker.reply(&[text(words)]);
                    // Not so late that the reply is whole already.
                    let most = whole.text().len() / 3;
                    whole.cut((*at).min(most), Action::Reset)
                }
                Step::Says(says) => speaker.answer(says),
            });
        }
        replies.push(speaker.answer(&answer));
        let task = TASK.replace("{base_delay: 1ms}", "{base_delay: 1ms, max_attempts: 20}")
            // However often it is denied, it comes to its end.
            + "limits: {max_denials: {consecutive: 100, total: 100}}\n";
        let shelf = Shelf::new();
        let recorded = shelf.record(speaker, &task, replies);
        // The key as well: what a log holds back depends on the secrets.
        let replayed = shelf.replay(&task).env(speaker.key_env, KEY).run();
        prop_assert_eq!(comparable(&recorded), comparable(&replayed));
    }
}

/// The first version, as it was written once. Words of the program itself have
/// changed since, so only its own answer is asked for.
#[test]
fn the_first_version_is_still_read() {
    let text = include_str!("../fixtures/cassettes/v1.jsonl");
    let cassette = agent::model::Cassette::parse(text, "v1.jsonl").unwrap();
    let models: Vec<String> = cassette
        .models()
        .map(agent::model::Model::full_id)
        .collect();
    assert_eq!(models, ["anthropic/claude-sonnet-5"]);
    let message = differs_from(text);
    let first = "call 1 of the conversation differs:\nthe temperature was 0.5 and is unset";
    assert!(message.contains(first), "{message}");
}

fn differs_from(cassette: &str) -> String {
    let run = scene(TASK).file("v1.jsonl", cassette);
    let done = run.args(["--replay", "v1.jsonl"]).expect_code(10).run();
    done.result()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned()
}
