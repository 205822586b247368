//! The byte-stable prefix: what providers cache is sent again byte for byte.
//!
//! Each request begins with all bytes of the one before it, up to the end of
//! its messages: head, system prompt, tools, and every message that was there.
//! Only in Anthropic's dialect something moves: the mark that says up to where
//! to cache stands in the newest message of the user's side. It is no part of
//! what is cached, so it is taken out before bytes are compared, and it must
//! stand in exactly one message.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use agent::clock::Activity;
use agent::context::{ProjectFile, Resources, Skill, Template};
use agent::event::Emission;
use agent::model::{Client, ClientOptions, resolve};
use agent::policy::{Permissions, Policy, Surroundings};
use agent::process::CommandSandbox;
use agent::session::{PromptOptions, Session, SessionOptions, Workbench};
use agent::tool::{CommandSettings, Place, Toolset};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::support::reply::Response;
use crate::support::server::{ModelServer, Recorded};
use crate::support::workspace::Workspace;
use crate::support::{anthropic, chat, gemini, responses};

const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

struct Dialect {
    name: &'static str,
    /// The field with the conversation.
    messages: &'static str,
    calls: fn(&[(&str, &str, Value)]) -> Response,
    text: fn(&str) -> Response,
}

const DIALECTS: [Dialect; 4] = [
    Dialect {
        name: "anthropic-messages",
        messages: "messages",
        calls: |calls| {
            let mut blocks = vec![anthropic::thinking_block("I think.", "c2ln")];
            let call =
                |(id, name, args): &(&str, &str, Value)| anthropic::call_block(id, name, args);
            blocks.extend(calls.iter().map(call));
            anthropic::reply(&blocks, "tool_use")
        },
        text: anthropic::text,
    },
    Dialect {
        name: "openai-chat",
        messages: "messages",
        calls: chat::tool_calls,
        text: chat::text,
    },
    Dialect {
        name: "openai-responses",
        messages: "input",
        calls: |calls| {
            let item =
                |(id, name, args): &(&str, &str, Value)| responses::call_item(id, name, args);
            responses::reply(&calls.iter().map(item).collect::<Vec<_>>())
        },
        text: |text| responses::reply(&[responses::text_item(text)]),
    },
    Dialect {
        name: "google-generative-ai",
        messages: "contents",
        calls: |calls| {
            let part = |(_, name, args): &(&str, &str, Value)| gemini::call_part(name, args);
            gemini::reply(&calls.iter().map(part).collect::<Vec<_>>())
        },
        text: |text| gemini::reply(&[gemini::text_part(text)]),
    },
];

fn resources() -> Resources {
    Resources {
        project: vec![ProjectFile {
            path: "AGENTS.md".to_owned(),
            content: "Be terse.\n".to_owned(),
        }],
        skills: vec![Skill {
            name: "lint".to_owned(),
            description: "Fixes lints.".to_owned(),
            location: "lint/SKILL.md".to_owned(),
            directory: "/nowhere/lint".into(),
            body: "Lint.".to_owned(),
            listed: true,
        }],
        templates: vec![Template {
            name: "again".to_owned(),
            description: None,
            location: "again.md".to_owned(),
            body: "Once more: $1".to_owned(),
        }],
        ..Resources::default()
    }
}

/// A session, and its events, which are few enough to wait.
async fn session(
    dialect: &Dialect,
    url: &str,
    workspace: &Workspace,
) -> (Session, mpsc::Receiver<Emission>) {
    let model = resolve(&format!("{}/local", dialect.name), Some(url)).unwrap();
    let activity = Activity::new();
    let options = ClientOptions::new(activity.clone());
    let client = Client::http(model, None, options).unwrap();
    let (sender, events) = mpsc::channel(1_024);
    let mut options = SessionOptions::new(client, activity, workspace.path(), sender);
    let surroundings = Surroundings {
        workspace: workspace.path().to_owned(),
        ..Surroundings::default()
    };
    let limit = std::time::Duration::from_secs(20);
    options.workbench = Workbench::new(
        Toolset::built_in(&["read".to_owned(), "ls".to_owned()]),
        Arc::new(Policy::new(Permissions::default(), surroundings)),
        Place {
            workspace: workspace.path().to_owned(),
            home: None,
        },
        CommandSettings {
            env: Vec::new(),
            shell_path: "/usr/bin:/bin".to_owned(),
            timeout: limit,
            timeout_max: limit,
            sandbox: CommandSandbox::Off,
        },
        None,
    );
    options.resources = Arc::new(resources());
    let created = Session::create(options).await.unwrap();
    (created.session, events)
}

/// Two turns: side-by-side calls, a refused one, mentions, a template, a
/// message that came in between. The workspace changes meanwhile.
async fn play(dialect: &Dialect) -> Vec<Recorded> {
    let read = |path: &str| json!({"path": path});
    let replies = [
        (dialect.calls)(&[("c1", "read", read("a.txt")), ("c2", "ls", json!({}))]),
        (dialect.calls)(&[("c3", "read", read("/etc/passwd"))]),
        (dialect.text)("First answer."),
        (dialect.calls)(&[("c4", "read", read("é.txt"))]),
        (dialect.text)("Second answer."),
        (dialect.text)("Third answer."),
    ];
    let server = ModelServer::start(replies);
    let workspace = Workspace::new(&[("a.txt", "alpha\n"), ("é.txt", "été \u{1f600}\n")]);
    let (session, _events) = session(dialect, &server.url(), &workspace).await;
    let prompt = async |text: &str| {
        let answer = session.prompt(text, PromptOptions::default()).await;
        answer.unwrap().text
    };
    assert_eq!(prompt("Read @a.txt.").await, "First answer.");
    workspace.write("AGENTS.md", "Changed.");
    workspace.write("a.txt", "changed\n");
    session.send_message("By the way.").unwrap();
    assert_eq!(prompt("/again 'look at @é.txt'").await, "Second answer.");
    assert_eq!(prompt("And now?").await, "Third answer.");
    server.finish()
}

/// The fields of a body, byte for byte.
fn fields(request: &Recorded) -> BTreeMap<String, Box<RawValue>> {
    serde_json::from_slice(&request.bytes).unwrap()
}

#[tokio::test]
async fn each_request_begins_with_the_one_before() {
    for dialect in &DIALECTS {
        let requests = play(dialect).await;
        assert_eq!(requests.len(), 6, "{}", dialect.name);
        let bodies: Vec<String> = requests
            .iter()
            .map(|request| {
                let body = String::from_utf8(request.bytes.clone()).unwrap();
                let messages = fields(request)[dialect.messages].get().to_owned();
                // All that may change is at the end.
                assert!(body.ends_with(&format!("{messages}}}")), "{}", dialect.name);
                if dialect.name == "anthropic-messages" {
                    assert_eq!(messages.matches(MARK).count(), 1, "{messages}");
                    let head = body.strip_suffix(&format!("{messages}}}")).unwrap();
                    return format!("{head}{}}}", messages.replace(MARK, ""));
                }
                body
            })
            .collect();
        for (at, pair) in bodies.windows(2).enumerate() {
            let before = pair[0].strip_suffix("]}").unwrap();
            let same = before
                .bytes()
                .zip(pair[1].bytes())
                .take_while(|(a, b)| a == b)
                .count();
            assert_eq!(
                same,
                before.len(),
                "{}: request {} goes another way than the one before it:\n{}\n{}",
                dialect.name,
                at + 2,
                &before[before.floor_char_boundary(same.saturating_sub(80))..],
                &pair[1][pair[1].floor_char_boundary(same.saturating_sub(80))..]
            );
            assert!(pair[1].len() > pair[0].len());
        }
        let last = &bodies[5];
        for part in [
            "Be terse.",
            "- lint (lint/SKILL.md)",
            "Once more: look at @é.txt",
            "alpha",
        ] {
            assert!(last.contains(part), "{}: {part}", dialect.name);
        }
        assert!(!last.contains("Changed."), "{}", dialect.name);
    }
}

/// The place of the cache mark: the newest message of the user's side, and the
/// parts before the messages that never change.
#[tokio::test]
async fn the_cache_mark_follows_the_conversation() {
    let requests = play(&DIALECTS[0]).await;
    for request in &requests {
        let messages = request.body["messages"].as_array().unwrap();
        let marked: Vec<usize> = (0..messages.len())
            .filter(|at| messages[*at].to_string().contains("cache_control"))
            .collect();
        assert_eq!(marked, [messages.len() - 1]);
        let head = |field: &str| request.body[field].to_string().contains("cache_control");
        assert!(head("system") && head("tools"));
    }
}
