//! The model of a session: how it starts with one, goes on with that of its
//! file, and changes to another, between prompts and while one runs.

use std::sync::Arc;

use agent::clock::Activity;
use agent::event::{Emission, EventKind, Warning};
use agent::message::{AssistantMessage, Message, StopReason, Usage};
use agent::model::{Client, ClientOptions, Model, Script, ThinkingLevel as Level, resolve};
use agent::session::{
    ChoiceError, Created, Credential, Credentials, Models, PromptOptions, Session, SessionError,
    SessionOptions, Stop,
};
use agent::store::{EntryKind, Header, Store};
use agent::tool::ToolOutput;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use crate::support::anthropic::{call_block, reply, text, thinking_block};
use crate::support::reply::Response;
use crate::support::server::ModelServer;
use crate::support::session::TestTool;
use crate::support::{chat, gemini, responses};

const SONNET: &str = "anthropic/claude-sonnet-4-5";

/// A session and what it tells; nobody needs to read along.
struct Scene {
    session: Session,
    fallback: Option<String>,
    events: mpsc::Receiver<Emission>,
}

impl Scene {
    async fn open(models: Models, change: impl FnOnce(&mut SessionOptions)) -> Result<Self, Stop> {
        let (sender, events) = mpsc::channel(1_000);
        let mut options = SessionOptions::with_models(models, Activity::new(), "/", sender);
        change(&mut options);
        let Created {
            session,
            model_fallback_message: fallback,
        } = Session::create(options).await?;
        Ok(Self {
            session,
            fallback,
            events,
        })
    }

    async fn prompt(&self, text: &str) -> String {
        let answer = self.session.prompt(text, PromptOptions::default());
        answer.await.unwrap().text
    }

    /// The warnings until now, as code and message.
    fn warnings(&mut self) -> Vec<Warning> {
        let mut found = Vec::new();
        while let Ok(emission) = self.events.try_recv() {
            if let EventKind::Warning(warning) = emission.kind {
                found.push(warning);
            }
        }
        found
    }

    /// The models and levels that the conversation names, in their order among
    /// the speakers.
    fn changes(&self) -> Vec<String> {
        let entries = self.session.tree().entries().into_iter();
        entries
            .map(|entry| match &entry.kind {
                EntryKind::ModelChange { provider, model_id } => format!("{provider}/{model_id}"),
                EntryKind::ThinkingLevelChange { thinking_level } => thinking_level.clone(),
                EntryKind::Message(message) => match message.as_ref() {
                    Message::User(_) => "u".to_owned(),
                    Message::Assistant(reply) => format!("a of {}", reply.model),
                    Message::ToolResult(_) => "r".to_owned(),
                },
                other => other.type_name().to_owned(),
            })
            .collect()
    }
}

fn options() -> ClientOptions {
    ClientOptions::new(Activity::new())
}

fn keys(providers: &[&str]) -> Models {
    let keys = providers.iter().map(|name| (*name, "key"));
    Models::new(Credentials::keys(keys), options())
}

/// A model without prices of its own that plays these replies.
fn scripted(name: &str, replies: Value) -> Client {
    let script = json!({"strict": true, "replies": replies});
    let script = Script::parse(&script.to_string(), name).unwrap();
    let model = resolve(&format!("scripted/{name}"), None).unwrap();
    Client::scripted(model, script, options())
}

/// A session that had this model and level.
fn restored(provider: &str, model: &str, level: &str) -> Store {
    let mut store = Store::in_memory(Header::new("/"));
    let change = EntryKind::ModelChange {
        provider: provider.to_owned(),
        model_id: model.to_owned(),
    };
    store.append(change).unwrap();
    let thinking_level = level.to_owned();
    store
        .append(EntryKind::ThinkingLevelChange { thinking_level })
        .unwrap();
    store
}

#[tokio::test]
async fn a_session_goes_on_with_the_model_and_the_level_of_its_file() {
    let models = || keys(&["anthropic", "zai"]).with_default("zai/glm-5.3");
    let store = || restored("anthropic", "claude-sonnet-4-5", "high");
    let mut scene = Scene::open(models(), |options| options.store = store())
        .await
        .unwrap();
    assert_eq!(scene.session.model(), SONNET);
    assert_eq!(scene.session.thinking_level(), Level::High);
    assert_eq!(scene.fallback, None);
    assert_eq!(scene.warnings(), []);
    // Nothing that is known is written again.
    assert_eq!(scene.changes(), [SONNET, "high"]);

    // What the options name wins, and is written down.
    let scene = Scene::open(models(), |options| {
        options.store = store();
        options.model = Some("zai/glm-5.3".to_owned());
        options.thinking = Some(Level::Low);
    })
    .await
    .unwrap();
    assert_eq!(scene.session.model(), "zai/glm-5.3");
    let level = scene.session.thinking_level().name().to_owned();
    let expect = [SONNET, "high", "zai/glm-5.3", level.as_str()];
    assert_eq!(scene.changes(), expect);
    assert_eq!(scene.fallback, None);

    // The model that answered last counts, also without an entry of its own.
    let mut store = store();
    let reply = AssistantMessage {
        content: Vec::new(),
        api: "openai-completions".to_owned(),
        provider: "zai".to_owned(),
        model: "glm-5.3".to_owned(),
        usage: Usage::default(),
        stop_reason: StopReason::Stop,
        error_message: None,
        timestamp: 0,
    };
    store
        .append(EntryKind::message(Message::Assistant(reply)))
        .unwrap();
    let scene = Scene::open(models(), |options| options.store = store)
        .await
        .unwrap();
    assert_eq!(scene.session.model(), "zai/glm-5.3");
}

#[tokio::test]
async fn a_session_without_its_model_says_which_answers_instead() {
    let models = keys(&[])
        .with_client(scripted("other", json!([])))
        .with_default("scripted/other");
    let mut scene = Scene::open(models, |options| {
        options.store = restored("anthropic", "claude-sonnet-4-5", "high");
    })
    .await
    .unwrap();
    let message = "the session's model anthropic/claude-sonnet-4-5 cannot be asked: \
                   there is no key for anthropic; the default, scripted/other, is used";
    assert_eq!(scene.fallback.as_deref(), Some(message));
    let told = Warning {
        code: "model_fallback".to_owned(),
        message: message.to_owned(),
    };
    assert_eq!(scene.warnings(), [told]);
    assert_eq!(scene.session.thinking_level(), Level::High);
    assert_eq!(scene.changes(), [SONNET, "high", "scripted/other"]);
}

#[tokio::test]
async fn a_session_without_any_model_does_not_begin() {
    let open = |models: Models, name: Option<&str>| {
        let model = name.map(str::to_owned);
        Scene::open(models, |options| options.model = model)
    };
    let none = open(keys(&[]), None).await.err().unwrap();
    assert_eq!(none.code(), "model");
    assert!(none.hints()[0].contains("ANTHROPIC_API_KEY"));
    let typo = open(keys(&["anthropic"]), Some("anthropic/claude-sonet-4-5")).await;
    let typo = typo.err().unwrap();
    assert!(typo.to_string().contains("did you mean"), "{typo}");
    let keyless = open(keys(&[]), Some(SONNET)).await.err().unwrap();
    assert_eq!(keyless.code(), "auth");
}

#[tokio::test]
async fn how_much_is_thought_is_named_restored_or_medium_and_fits_the_model() {
    let check = async |model: &str, given: Option<Level>, had: Option<&str>, expect: Level| {
        let scene = Scene::open(keys(&["anthropic", "openai"]), |options| {
            options.model = Some(model.to_owned());
            options.thinking = given;
            if let Some(level) = had {
                options.store = restored("anthropic", "claude-sonnet-4-5", level);
            }
        });
        let level = scene.await.unwrap().session.thinking_level();
        assert_eq!(level, expect, "{model} {given:?} {had:?}");
    };
    check(SONNET, Some(Level::Low), Some("high"), Level::Low).await;
    check(SONNET, None, Some("high"), Level::High).await;
    check(SONNET, None, None, Level::Medium).await;
    check(SONNET, None, Some("somewhat"), Level::Medium).await;
    // The next one up, else the next one down.
    check(SONNET, Some(Level::Max), None, Level::High).await;
    check("openai/gpt-4o", Some(Level::High), None, Level::Off).await;
    for level in Level::ALL {
        assert_eq!(Level::from_name(level.name()), Some(level));
    }
}

#[tokio::test]
async fn prompts_of_one_session_may_ask_different_models() {
    let first = json!([{"text": "one", "usage": {}}, {"text": "three", "usage": {}}]);
    let models = keys(&[])
        .with_client(scripted("first", first))
        .with_client(scripted("second", json!([{"text": "two", "usage": {}}])))
        .with_default("scripted/first");
    let mut scene = Scene::open(models, |_| {}).await.unwrap();
    assert_eq!(scene.prompt("1").await, "one");
    scene.session.set_model("scripted/second").await.unwrap();
    assert_eq!(scene.session.model(), "scripted/second");
    assert_eq!(scene.prompt("2").await, "two");
    // The script of the first one goes on where it was.
    scene.session.set_model("scripted/first").await.unwrap();
    assert_eq!(scene.prompt("3").await, "three");
    // The same again is no change.
    scene.session.set_model("scripted/first").await.unwrap();
    assert_eq!(
        scene.session.set_thinking_level(Level::Low).unwrap(),
        Level::Low
    );
    assert_eq!(
        scene.changes(),
        [
            "scripted/first",
            "medium",
            "u",
            "a of first",
            "scripted/second",
            "u",
            "a of second",
            "scripted/first",
            "u",
            "a of first",
            "low",
        ]
    );
    assert_eq!(scene.warnings(), []);
    let closed = scene.session.close(&CancellationToken::new()).await;
    assert_eq!(closed.scripted, Ok(()));
}

#[tokio::test]
async fn the_scripts_of_all_models_must_be_played_to_their_end() {
    let left = json!([{"text": "never", "usage": {}}]);
    let models = keys(&[])
        .with_client(scripted("first", left))
        .with_client(scripted("second", json!([])))
        .with_default("scripted/first");
    let scene = Scene::open(models, |_| {}).await.unwrap();
    scene.session.set_model("scripted/second").await.unwrap();
    let closed = scene.session.close(&CancellationToken::new()).await;
    assert!(closed.scripted.is_err());
}

#[tokio::test]
async fn a_change_while_a_prompt_runs_holds_from_the_next_request() {
    let (called, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (calling, going) = (Arc::clone(&called), Arc::clone(&go_on));
    let wait = TestTool::reads("wait", move |_, _| {
        let (calling, going) = (Arc::clone(&calling), Arc::clone(&going));
        async move {
            calling.notify_one();
            going.notified().await;
            ToolOutput::text("waited", "waited")
        }
    });
    let first = json!([{"calls": [{"name": "wait"}], "usage": {}}]);
    let models = keys(&[])
        .with_client(scripted("first", first))
        .with_client(scripted("second", json!([{"text": "done", "usage": {}}])))
        .with_default("scripted/first");
    let scene = Scene::open(models, |_| {}).await.unwrap();
    scene.session.tools().register(Arc::new(wait)).unwrap();
    let switch = async {
        called.notified().await;
        scene.session.set_model("scripted/second").await.unwrap();
        scene.session.set_thinking_level(Level::High).unwrap();
        // The reply of the first one has no result yet.
        assert_eq!(scene.changes().last().unwrap(), "a of first");
        go_on.notify_one();
    };
    let (answer, ()) = tokio::join!(scene.prompt("go"), switch);
    assert_eq!(answer, "done");
    assert_eq!(
        scene.changes(),
        [
            "scripted/first",
            "medium",
            "u",
            "a of first",
            "r",
            "scripted/second",
            "high",
            "a of second",
        ]
    );
}

#[tokio::test]
async fn a_refused_change_leaves_the_model_as_it_was() {
    let models = keys(&["anthropic"]).with_base_url("http://127.0.0.1:9");
    let mut scene = Scene::open(models, |options| {
        options.model = Some(SONNET.to_owned());
        options.limits.cost_cap_asked = true;
    })
    .await
    .unwrap();
    let session = &scene.session;
    let unknown = session.set_model("anthropic/claude-sonet-4-5").await;
    assert!(matches!(
        unknown,
        Err(SessionError::NoModel(ChoiceError::Unknown(_)))
    ));
    let keyless = session.set_model("zai/glm-5.3").await.unwrap_err();
    assert!(matches!(
        &keyless,
        SessionError::NoModel(ChoiceError::Client(_))
    ));
    assert!(keyless.to_string().contains("no key for zai"), "{keyless}");
    // Nobody knows what the third one costs, and there is a limit.
    let mut model = resolve(SONNET, None).unwrap();
    (model.provider, model.price) = ("house".to_owned(), None);
    let house = Client::http(model, Some("key".to_owned()), options()).unwrap();
    let models = keys(&["anthropic"]).with_client(house);
    let strict = Scene::open(models.clone(), |options| {
        options.model = Some(SONNET.to_owned());
        options.limits.cost_cap_asked = true;
    });
    let strict = strict.await.unwrap();
    let unpriced = strict.session.set_model("house/claude-sonnet-4-5").await;
    let unpriced = unpriced.unwrap_err().to_string();
    assert!(unpriced.contains("the price of house/"), "{unpriced}");
    for scene in [&scene, &strict] {
        assert_eq!(scene.session.model(), SONNET);
        assert_eq!(scene.changes(), [SONNET, "medium"]);
    }
    assert_eq!(scene.warnings(), []);
    // Without such a limit it is told and counted no more.
    let mut lenient = Scene::open(models, |options| options.model = Some(SONNET.to_owned()))
        .await
        .unwrap();
    lenient
        .session
        .set_model("house/claude-sonnet-4-5")
        .await
        .unwrap();
    let told = lenient.warnings();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].code, "unknown_price");
}

/// Every dialect at this server.
fn everywhere(server: &ModelServer) -> Models {
    let url = server.url();
    let credentials = Credentials::new(move |_: &Model| {
        Ok(Credential {
            key: Some("key".to_owned()),
            base_url: Some(url.clone()),
        })
    });
    Models::new(credentials, options())
}

fn call() -> Value {
    json!({})
}

fn replies() -> Vec<Response> {
    let thought = thinking_block("I should look.", "sig-of-anthropic");
    vec![
        reply(
            &[thought, call_block("toolu_1", "look", &call())],
            "tool_use",
        ),
        text("One."),
        chat::tool_call("call_2", "look", &call()),
        chat::text("Two."),
        gemini::reply(&[gemini::call_part("look", &call())]),
        gemini::reply(&[gemini::text_part("Three.")]),
        responses::reply(&[responses::call_item("call_4", "look", &call())]),
        responses::reply(&[responses::text_item("Four.")]),
        text("Five."),
    ]
}

#[tokio::test]
async fn one_conversation_goes_through_all_dialects() {
    let server = ModelServer::start(replies());
    let scene = Scene::open(everywhere(&server), |options| {
        options.model = Some(SONNET.to_owned());
    })
    .await
    .unwrap();
    let look = TestTool::says("look", "what was seen");
    scene.session.tools().register(Arc::new(look)).unwrap();
    let mut answers = vec![scene.prompt("Look.").await];
    for name in [
        "openai-chat/local",
        "google-generative-ai/local",
        "openai-responses/local",
        SONNET,
    ] {
        scene.session.set_model(name).await.unwrap();
        answers.push(scene.prompt("Again.").await);
    }
    assert_eq!(answers, ["One.", "Two.", "Three.", "Four.", "Five."]);
    // Each request is valid in its dialect, or the server would object.
    let requests = server.finish();
    let paths: Vec<&str> = requests.iter().map(|one| one.path.as_str()).collect();
    assert_eq!(paths[..2], ["/v1/messages"; 2]);
    assert_eq!(paths[2..4], ["/chat/completions"; 2]);
    assert!(paths[4].starts_with("/models/local:") && paths[5] == paths[4]);
    assert_eq!(paths[6..8], ["/responses"; 2]);
    assert_eq!(paths[8], "/v1/messages");
    let bodies: Vec<String> = requests.iter().map(|one| one.body.to_string()).collect();
    // What one provider signed is for that one alone; its words are for all.
    for body in &bodies[2..8] {
        assert!(!body.contains("sig-of-anthropic"), "{body}");
        assert!(body.contains("I should look."), "{body}");
    }
    for body in [&bodies[1], &bodies[8]] {
        assert!(body.contains("sig-of-anthropic"), "{body}");
    }
    let seen = bodies[8].matches("what was seen").count();
    assert_eq!(seen, 4, "{}", bodies[8]);
    // A reply is as long as its model allows; thinking comes on top.
    let most = |at: usize| requests[at].body["max_tokens"].as_u64();
    assert_eq!(
        (most(0), most(2), most(8)),
        (Some(40_192), Some(16_384), Some(40_192))
    );
}
