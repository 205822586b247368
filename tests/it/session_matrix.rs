//! From every model to every other one and back, within one conversation: what
//! the request after each change holds.

use std::sync::Arc;

use agent::clock::Activity;
use agent::message::{Content, Image};
use agent::model::{Client, ClientOptions, Model, resolve};
use agent::session::{
    Created, Credential, Credentials, Models, PromptOptions, Session, SessionOptions,
};
use agent::store::{EntryKind, Header, Store};
use agent::tool::ToolOutput;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::support::reply::{Response, sse};
use crate::support::server::{ModelServer, Recorded};
use crate::support::session::TestTool;
use crate::support::{anthropic, chat, gemini, models, responses};

/// A model, and how it speaks.
struct Side {
    name: &'static str,
    /// Another model of the same dialect.
    kin: &'static str,
    /// Where the conversation stands in a request.
    key: &'static str,
    /// Thinks, says something and calls twice at once.
    calls: fn() -> Response,
    says: fn(&str) -> Response,
    /// The conversation as whoever did not say it is told it.
    foreign: fn() -> Value,
    /// The same as the one who said it is told it again.
    own: fn() -> Value,
    /// What a call's id may be: its length, if it may not be anything.
    id_chars_max: Option<usize>,
}

const THOUGHT: &str = "I should look.";

/// What stands for the signature of a call that the model never signed.
const UNSIGNED: &str = "skip_thought_signature_validator";

fn at(place: u32) -> Value {
    json!({"at": place})
}

const SIDES: [Side; 4] = [
    Side {
        name: "anthropic/claude-sonnet-4-5",
        kin: "anthropic/claude-opus-4-5",
        key: "messages",
        calls: || {
            let blocks = [
                anthropic::thinking_block(THOUGHT, "sig-anthropic"),
                anthropic::text_block("Looking."),
                anthropic::call_block("toolu_1", "look", &at(1)),
                anthropic::call_block("toolu_2", "look", &at(2)),
            ];
            anthropic::reply(&blocks, "tool_use")
        },
        says: anthropic::text,
        foreign: || anthropic_told(&json!({"type": "text", "text": THOUGHT})),
        own: || {
            anthropic_told(
                &json!({"type": "thinking", "thinking": THOUGHT, "signature": "sig-anthropic"}),
            )
        },
        id_chars_max: Some(64),
    },
    Side {
        name: "deepseek/deepseek-v4-pro",
        kin: "zai/glm-5.3",
        key: "messages",
        calls: || {
            // Longer than other providers take, and of other letters.
            let call = |index: u32| {
                let id = format!("call/{}:{index}", "x".repeat(60));
                let function = json!({"name": "look", "arguments": at(index + 1).to_string()});
                json!({"tool_calls":
                    [{"index": index, "id": id, "type": "function", "function": function}]})
            };
            let thought = json!({"reasoning_content": THOUGHT});
            let deltas = [thought, json!({"content": "Looking."}), call(0), call(1)];
            chat::reply(&deltas, "tool_calls")
        },
        says: chat::text,
        foreign: || chat_told(&json!({"content": format!("{THOUGHT}Looking.")})),
        own: || chat_told(&json!({"content": "Looking.", "reasoning_content": THOUGHT})),
        id_chars_max: Some(40),
    },
    Side {
        name: "google/gemini-3.8-flash",
        kin: "google/gemini-3.1-pro-preview",
        key: "contents",
        calls: || {
            let mut first = gemini::call_part("look", &at(1));
            first["thoughtSignature"] = "sig-gemini".into();
            let thought = json!({"text": THOUGHT, "thought": true});
            let second = gemini::call_part("look", &at(2));
            gemini::reply(&[thought, gemini::text_part("Looking."), first, second])
        },
        says: |text| gemini::reply(&[gemini::text_part(text)]),
        foreign: || gemini_told(&json!([{"text": THOUGHT}, {"text": "Looking."}]), UNSIGNED),
        own: || gemini_told(&json!([{"text": "Looking."}]), "sig-gemini"),
        id_chars_max: None,
    },
    Side {
        name: "openai/gpt-6.1-sol",
        kin: "openai/gpt-5.1",
        key: "input",
        calls: responses_calls,
        says: |text| responses::reply(&[responses::text_item(text)]),
        foreign: || responses_told(None),
        own: || {
            responses_told(Some(json!({
                "type": "reasoning",
                "id": "rs_1",
                "summary": [{"type": "summary_text", "text": THOUGHT}],
                "encrypted_content": "sig-responses",
            })))
        },
        id_chars_max: Some(64),
    },
];

/// A reply with a reasoning item in front.
fn responses_calls() -> Response {
    let summary = json!([{"type": "summary_text", "text": THOUGHT}]);
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": summary,
        "encrypted_content": "sig-responses"});
    let rest = [
        responses::text_item("Looking."),
        responses::call_item("call_1", "look", &at(1)),
        responses::call_item("call_2", "look", &at(2)),
    ];
    let mut body = String::new();
    for (index, item) in std::iter::once(&item).chain(&rest).enumerate() {
        for event in ["response.output_item.added", "response.output_item.done"] {
            body += &responses::event(event, json!({"output_index": index, "item": item}));
        }
    }
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    let done = json!({"response": {"status": "completed", "usage": usage}});
    sse(body + &responses::event("response.completed", done))
}

fn anthropic_told(thought: &Value) -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    let call =
        |id: &str, place| json!({"type": "tool_use", "id": id, "name": "look", "input": at(place)});
    let result =
        |id: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [text("seen")]});
    json!([
        {"role": "user", "content": [text("Look.")]},
        {"role": "assistant", "content": [thought, text("Looking."), call("#1", 1), call("#2", 2)]},
        {"role": "user", "content": [result("#1"), result("#2")]},
        {"role": "assistant", "content": [text("Seen.")]},
    ])
}

fn chat_told(said: &Value) -> Value {
    let call = |id: &str, place| {
        let function = json!({"name": "look", "arguments": at(place).to_string()});
        json!({"id": id, "type": "function", "function": function})
    };
    let mut reply = said.clone();
    reply["role"] = "assistant".into();
    reply["tool_calls"] = json!([call("#1", 1), call("#2", 2)]);
    json!([
        {"role": "user", "content": "Look."},
        reply,
        {"role": "tool", "tool_call_id": "#1", "content": "seen"},
        {"role": "tool", "tool_call_id": "#2", "content": "seen"},
        {"role": "assistant", "content": "Seen."},
    ])
}

fn gemini_told(said: &Value, signature: &str) -> Value {
    let mut parts = said.as_array().unwrap().clone();
    for place in [1, 2] {
        let mut call = gemini::call_part("look", &at(place));
        if place == 1 {
            call["thoughtSignature"] = signature.into();
        }
        parts.push(call);
    }
    let result = json!({"functionResponse": {"name": "look", "response": {"output": "seen"}}});
    json!([
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": parts},
        {"role": "user", "parts": [result, result]},
        {"role": "model", "parts": [{"text": "Seen."}]},
    ])
}

fn responses_told(thought: Option<Value>) -> Value {
    let said = |text: &str| {
        json!({"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]})
    };
    let call = |id: &str, place: u32| {
        json!({"type": "function_call", "call_id": id, "name": "look",
            "arguments": at(place).to_string()})
    };
    let result =
        |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "seen"});
    let input = json!({"type": "message", "role": "user",
        "content": [{"type": "input_text", "text": "Look."}]});
    let thought = thought.unwrap_or_else(|| said(THOUGHT));
    json!([
        input,
        thought,
        said("Looking."),
        call("#1", 1),
        call("#2", 2),
        result("#1"),
        result("#2"),
        said("Seen."),
    ])
}

/// The conversation of a request without its instructions and what was said
/// since, its ids numbered; and the ids.
fn told(side: &Side, request: &Recorded, since: usize) -> (Value, Vec<String>) {
    let mut messages = request.body[side.key].as_array().unwrap().clone();
    let of_system =
        |message: &Value| matches!(message["role"].as_str(), Some("system" | "developer"));
    messages.retain(|message| !of_system(message));
    messages.truncate(messages.len() - since);
    let mut messages = Value::from(messages);
    let mut ids = Vec::new();
    neutral(&mut messages, &mut ids);
    (messages, ids)
}

/// Leaves out marks of the cache and ids of items, and numbers those of calls.
fn neutral(value: &mut Value, ids: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for mark in ["cache_control", "annotations", "status"] {
                fields.remove(mark);
            }
            // How texts are joined is no matter here, nor whether none is sent.
            if fields
                .get("reasoning_content")
                .is_some_and(|text| text == "")
            {
                fields.remove("reasoning_content");
            }
            if let Some(Value::String(text)) = fields.get_mut("content") {
                text.retain(|letter| letter != '\n');
            }
            let of_items = ["call_id", "functionCall", "functionResponse"];
            let is_item = of_items.iter().any(|key| fields.contains_key(*key));
            if is_item || fields.get("type").is_some_and(|kind| kind == "message") {
                fields.remove("id");
            }
            for (key, value) in fields.iter_mut() {
                if key == "functionCall" || key == "functionResponse" {
                    value.as_object_mut().unwrap().remove("id");
                }
                let id = ["id", "tool_use_id", "tool_call_id", "call_id"].contains(&key.as_str());
                match value {
                    Value::String(text) if id && !text.starts_with("rs_") => {
                        let known = ids.iter().position(|known| known == text);
                        let at = known.unwrap_or_else(|| {
                            ids.push(text.clone());
                            ids.len() - 1
                        });
                        *text = format!("#{}", at + 1);
                    }
                    value => neutral(value, ids),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| neutral(item, ids)),
        _ => {}
    }
}

/// Every model at this server.
fn everywhere(server: &ModelServer) -> Models {
    let url = server.url();
    let credentials = Credentials::new(move |_: &Model| {
        Ok(Credential {
            key: Some("key".to_owned()),
            base_url: Some(url.clone()),
        })
    });
    Models::new(credentials, ClientOptions::new(Activity::new()))
}

async fn open(models: Models, model: &str) -> Session {
    let (sender, mut events) = mpsc::channel(1_000);
    let mut options = SessionOptions::with_models(models, Activity::new(), "/", sender);
    options.model = Some(model.to_owned());
    let Created { session, .. } = Session::create(options).await.unwrap();
    events.close();
    let look = TestTool::says("look", "seen");
    session.tools().register(Arc::new(look)).unwrap();
    session
}

/// One model begins, another goes on, and the first one has the last word.
async fn there_and_back(from: &Side, to: &Side, name: &str) {
    let server = ModelServer::start([
        (from.calls)(),
        (from.says)("Seen."),
        (to.says)("Again."),
        (from.says)("Back."),
    ]);
    let session = open(everywhere(&server), from.name).await;
    let prompt = |text: &'static str| session.prompt(text, PromptOptions::default());
    prompt("Look.").await.unwrap();
    session.set_model(name).await.unwrap();
    prompt("And now?").await.unwrap();
    session.set_model(from.name).await.unwrap();
    prompt("And then?").await.unwrap();
    let requests = server.finish();
    let pair = format!("{} to {name}", from.name);

    let (there, ids) = told(to, &requests[2], 1);
    assert_eq!(there, (to.foreign)(), "{pair}");
    for id in &ids {
        let fits = |most: usize| {
            let letter = |one: u8| one.is_ascii_alphanumeric() || b"_-".contains(&one);
            !id.is_empty() && id.len() <= most && id.bytes().all(letter)
        };
        assert!(to.id_chars_max.is_none_or(fits), "{pair}: {id}");
    }
    // What was signed is known again, and the ids are those that were given.
    let (back, ids_back) = told(from, &requests[3], 3);
    assert_eq!(back, (from.own)(), "{pair} and back");
    let (before, ids_before) = told(from, &requests[1], 0);
    let turns = before.as_array().unwrap();
    assert_eq!(turns[..], back.as_array().unwrap()[..turns.len()], "{pair}");
    assert_eq!(ids_back, ids_before, "{pair}");
}

#[tokio::test]
async fn every_model_is_told_what_another_said_and_knows_its_own_again() {
    for from in &SIDES {
        for to in &SIDES {
            let name = if from.name == to.name {
                to.kin
            } else {
                to.name
            };
            there_and_back(from, to, name).await;
        }
    }
}

/// Each with the one after it in the table.
fn neighbours() -> impl Iterator<Item = (&'static Side, &'static Side)> {
    SIDES.iter().zip(SIDES.iter().cycle().skip(1))
}

/// Two calls at once have no result yet when the model changes.
#[tokio::test]
async fn a_change_between_calls_and_their_results_reaches_the_other_model() {
    for (from, to) in neighbours() {
        let server = ModelServer::start([(from.calls)(), (to.says)("Done.")]);
        let session = open(everywhere(&server), from.name).await;
        let (called, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let gates = (Arc::clone(&called), Arc::clone(&go_on));
        let wait = TestTool::reads("look", move |_, _| {
            let (called, go_on) = gates.clone();
            async move {
                called.notify_one();
                go_on.notified().await;
                ToolOutput::text("seen", "seen")
            }
        });
        session.tools().unregister("look").unwrap();
        session.tools().register(Arc::new(wait)).unwrap();
        let change = async {
            for _ in 0..2 {
                called.notified().await;
                session.set_model(to.name).await.unwrap();
                go_on.notify_one();
            }
        };
        let prompt = session.prompt("Look.", PromptOptions::default());
        let (answer, ()) = tokio::join!(prompt, change);
        assert_eq!(answer.unwrap().text, "Done.");
        let requests = server.finish();
        let (told, _) = told(to, &requests[1], 0);
        let mut expect = (to.foreign)();
        expect.as_array_mut().unwrap().pop();
        assert_eq!(told, expect, "{} to {}", from.name, to.name);
    }
}

/// A run that was killed between a call and its result, gone on with by another
/// model.
#[tokio::test]
async fn a_call_that_was_never_answered_is_answered_for_the_next_model() {
    for (from, to) in neighbours() {
        let server = ModelServer::start([(to.says)("Done.")]);
        let mut store = Store::in_memory(Header::new("/"));
        let model = resolve(from.name, None).unwrap();
        let call = models::call("call/of:another", "look", at(1));
        for message in [models::user("Look."), models::reply(&model, vec![call])] {
            store.append(EntryKind::message(message)).unwrap();
        }
        let (sender, mut events) = mpsc::channel(1_000);
        let mut options =
            SessionOptions::with_models(everywhere(&server), Activity::new(), "/", sender);
        (options.store, options.model) = (store, Some(to.name.to_owned()));
        let session = Session::create(options).await.unwrap().session;
        events.close();
        let prompt = session.prompt("Go on.", PromptOptions::default());
        assert_eq!(prompt.await.unwrap().text, "Done.");
        // The server objects to a call without its result.
        let requests = server.finish();
        let (told, ids) = told(to, &requests[0], 0);
        assert!(told.to_string().contains("Interrupted"), "{told}");
        assert!(
            ids.len() <= 1 && !ids.contains(&"call/of:another".to_owned()),
            "{ids:?}"
        );
    }
}

const IMAGE: &str = "aW1hZ2U=";

fn image() -> Image {
    Image {
        data: IMAGE.to_owned(),
        mime_type: "image/png".to_owned(),
    }
}

/// One model sees, the next one cannot, and the first one sees again.
#[tokio::test]
async fn images_are_notes_for_a_model_that_cannot_see_and_come_back() {
    for side in &SIDES {
        let server = ModelServer::start([
            (side.calls)(),
            (side.says)("Seen."),
            (side.says)("Again."),
            (side.says)("Back."),
        ]);
        let own = |images: bool| {
            let mut model = resolve(side.name, Some(&server.url())).unwrap();
            model.images = images;
            let eyes = if images { "seeing" } else { "blind" };
            model.provider = format!("{eyes}-{}", model.provider);
            let key = Some("key".to_owned());
            Client::http(model, key, ClientOptions::new(Activity::new())).unwrap()
        };
        let (seeing, blind) = (own(true), own(false));
        let names = [&seeing, &blind].map(|client| client.model().full_id());
        let models = everywhere(&server).with_client(seeing).with_client(blind);
        let session = open(models, &names[0]).await;
        let look = TestTool::reads("look", |_, _| async {
            ToolOutput {
                content: vec![Content::text("seen"), Content::Image(image())],
                ..ToolOutput::text("seen", "seen")
            }
        });
        session.tools().unregister("look").unwrap();
        session.tools().register(Arc::new(look)).unwrap();
        let shown = PromptOptions {
            images: vec![image()],
            ..PromptOptions::default()
        };
        session.prompt("Look.", shown).await.unwrap();
        for name in [&names[1], &names[0]] {
            session.set_model(name).await.unwrap();
            let prompt = session.prompt("And now?", PromptOptions::default());
            prompt.await.unwrap();
        }
        let requests = server.finish();
        let seen: Vec<(usize, usize)> = requests
            .iter()
            .map(|request| {
                let body = request.body.to_string();
                let count = |text: &str| body.matches(text).count();
                (count(IMAGE), count("cannot see images"))
            })
            .collect();
        // That of the prompt, and those of two results.
        assert_eq!(seen, [(1, 0), (3, 0), (0, 3), (3, 0)], "{}", side.name);
    }
}
