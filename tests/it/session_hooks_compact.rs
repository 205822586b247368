//! `before_compact`: hooks see what will be summarised, and may cancel the
//! compaction or write the summary.

use std::sync::Arc;

use agent::clock::Activity;
use agent::event::{Emission, EventKind};
use agent::hook::{CompactVerdict, HookPoint, Hooks};
use agent::message::Message;
use agent::model::{Client, ClientOptions, Script, resolve};
use agent::session::{PromptOptions, Session, SessionError, SessionOptions};
use agent::store::EntryKind;
use serde_json::json;
use tokio::sync::mpsc;

use crate::support::hooks::{Heard, Misstep, Probe};

/// A session of two long turns whose model has these further replies.
async fn talked(hook: Probe, more: &[&str]) -> (Session, mpsc::Receiver<Emission>) {
    let long = "word ".repeat(2_000);
    let mut replies = vec![json!({"text": long}), json!({"text": "short"})];
    replies.extend(more.iter().map(|text| json!({"text": text})));
    let script = Script::parse(&json!(replies).to_string(), "model.yaml").expect("a script");
    let activity = Activity::new();
    let model = resolve("scripted/model.yaml", None).expect("a model");
    let client = Client::scripted(model, script, ClientOptions::new(activity.clone()));
    let (sender, events) = mpsc::channel(200);
    let mut options = SessionOptions::new(client, activity, "/srv/project", sender);
    options.compaction.keep_recent_tokens = 10;
    options.hooks = Hooks::new().with_hook(Arc::new(hook));
    let session = Session::create(options).await.expect("a session").session;
    for text in ["Tell me much.", "And now?"] {
        let answer = session.prompt(text, PromptOptions::default()).await;
        answer.expect("an answer");
    }
    (session, events)
}

fn saying(heard: &Heard, verdict: CompactVerdict) -> Probe {
    let mut probe = Probe::new("guard", heard);
    probe.compact = Box::new(move |_| verdict.clone());
    probe
}

/// The summaries in the session, and whether a hook wrote them.
fn summaries(session: &Session) -> Vec<(String, Option<bool>)> {
    let summary = |entry: agent::store::Entry| match entry.kind {
        EntryKind::Compaction {
            summary, from_hook, ..
        } => Some((summary, from_hook)),
        _ => None,
    };
    let entries = session.tree().entries();
    entries.into_iter().filter_map(summary).collect()
}

#[tokio::test]
async fn a_hook_writes_the_summary_and_no_model_is_asked() {
    let heard = Heard::default();
    let hook = saying(&heard, CompactVerdict::Summary("They talked.".to_owned()));
    let (session, _events) = talked(hook, &[]).await;
    session.compact(Some("names")).await.expect("compacted");
    let summaries = summaries(&session);
    assert_eq!(summaries.len(), 1);
    assert!(summaries[0].0.contains("They talked."), "{summaries:?}");
    assert_eq!(summaries[0].1, Some(true));
    let told = &heard.at(HookPoint::BeforeCompact)[0];
    assert_eq!(
        (&told["reason"], &told["instructions"]),
        (&json!("manual"), &json!("names"))
    );
    assert!(told["tokens_before"].as_u64() > Some(0));
    assert_eq!(told["history"][0]["content"][0]["text"], "Tell me much.");
    let first = session.messages();
    assert!(matches!(&*first[0], Message::User(_)));
}

#[tokio::test]
async fn a_hook_cancels_a_compaction() {
    let heard = Heard::default();
    let hook = saying(&heard, CompactVerdict::Cancel("keep all".to_owned()));
    let (session, mut events) = talked(hook, &[]).await;
    let before = session.messages();
    let error = session.compact(None).await.expect_err("cancelled");
    assert!(
        matches!(&error, SessionError::NotCompacted(why) if why == "a hook cancelled it: keep all"),
        "{error}"
    );
    assert_eq!(session.messages(), before);
    drop(session);
    let mut ends = Vec::new();
    while let Some(emission) = events.recv().await {
        if let EventKind::CompactExec(end) = emission.kind {
            ends.push((end.aborted, end.err_msg));
        }
    }
    assert_eq!(
        ends,
        [(true, Some("a hook cancelled it: keep all".to_owned()))]
    );
}

#[tokio::test]
async fn a_hook_that_goes_wrong_leaves_it_to_the_model() {
    let heard = Heard::default();
    let hook = Probe::new("guard", &heard).misstep(HookPoint::BeforeCompact, Misstep::Panics);
    let summary = "## Goal\nTo talk.";
    let (session, _events) = talked(hook, &[summary, summary]).await;
    session.compact(None).await.expect("compacted");
    let summaries = summaries(&session);
    assert!(summaries[0].0.contains("To talk."), "{summaries:?}");
    assert_eq!(summaries[0].1, None);
}
