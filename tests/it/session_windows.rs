//! Endpoints whose window is smaller than assumed: the refusal says how small,
//! and nothing is left out without a summary.

use serde_json::{Value, json};

use crate::compact_scene::{long, open, read, said, stage};
use crate::support::session::{Stage, expecting};

/// A refusal in these words.
fn refusal(message: &str) -> Value {
    json!({"error": {"status": 400, "message": message}})
}

/// A model that is assumed to have a window of 128,000 tokens, as any endpoint
/// is that nobody describes.
fn assumed(replies: Value) -> Stage {
    let mut stage = stage(replies);
    stage.model.context_window = 128_000;
    stage.compaction.reserve_tokens = 16_384;
    stage.compaction.keep_recent_tokens = 20_000;
    stage
}

#[tokio::test]
async fn the_window_is_what_the_refusal_says() {
    for (message, window) in [
        (
            "This model's maximum context length is 6000 tokens. However, you requested 9000",
            6_000,
        ),
        // Without numbers it is what the request was estimated at.
        ("prompt is too long", 0),
    ] {
        let done = expecting(said("done", 900), json!({"contains": ["SUMMARY ONE"]}));
        let replies = json!([
            read("a", 2_500),
            read("b", 4_700),
            refusal(message),
            said("SUMMARY ONE", 900),
            done
        ]);
        let mut play = open(assumed(replies)).await;
        assert_eq!(play.prompt(&long("Count.")).await.unwrap().text, "done");
        let told = play.end().await;
        let exec = told.data("compact:exec")[0];
        assert_eq!(
            (&exec["reason"], &exec["aborted"]),
            (&json!("overflow"), &json!(false))
        );
        assert!(exec.get("errMsg").is_none(), "{exec}");
        let before = exec["tokenBefore"].as_u64().unwrap();
        // 4,700 were counted, and the file is about 2,000 more.
        assert!((6_000..8_000).contains(&before), "{before}");
        assert_eq!(told.field("warning", "code"), Vec::<Value>::new());
        let usage = told.data("conversation:usage");
        let max = usage.last().unwrap()["usage"]["maxTokens"]
            .as_u64()
            .unwrap();
        match window {
            0 => assert!((6_000..8_000).contains(&max), "{max}"),
            window => assert_eq!(max, window),
        }
    }
}

#[tokio::test]
async fn a_question_for_a_summary_that_is_too_long_becomes_shorter() {
    let too_long = |tokens: u64| refusal(&format!("maximum context length is {tokens} tokens"));
    let done = expecting(said("done", 900), json!({"contains": ["SUMMARY ONE"]}));
    let replies = json!([
        read("a", 2_500),
        read("b", 4_700),
        refusal("prompt is too long"),
        too_long(5_000),
        said("SUMMARY ONE", 900),
        done
    ]);
    let mut play = open(assumed(replies)).await;
    assert_eq!(play.prompt(&long("Count.")).await.unwrap().text, "done");
    let told = play.end().await;
    assert_eq!(told.data("compact:exec").len(), 1);
    assert_eq!(told.field("warning", "code"), Vec::<Value>::new());
}

/// The prompt fits; it is the room for the reply that was asked for.
#[tokio::test]
async fn a_reply_is_asked_to_be_shorter_where_only_it_is_too_long() {
    let message = "This model's maximum context length is 6000 tokens. However, you requested \
                   9000 tokens (1000 in the messages, 8000 in the completion).";
    let replies = json!([refusal(message), said("done", 900)]);
    let mut stage = assumed(replies);
    stage.max_output_tokens = 8_000;
    let mut play = open(stage).await;
    assert_eq!(play.prompt("Hello.").await.unwrap().text, "done");
    let told = play.end().await;
    assert!(told.data("compact:start").is_empty());
}
