//! `before_request`: hooks see the body in the provider's dialect and may
//! replace it; its attempts share what they made of it.

use std::sync::Arc;
use std::time::Duration;

use agent::clock::Activity;
use agent::hook::{HookPoint, Hooks, RequestVerdict};
use agent::model::{Client, ClientOptions, resolve};
use agent::session::{PromptOptions, Session, SessionOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::support::hooks::{Heard, Misstep, Probe};

const STREAM: &str = "data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"hello\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// The bodies that a provider gets, whose first answer is `first`.
async fn bodies(first: ResponseTemplate, hook: Probe) -> Vec<Value> {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(first)
        .up_to_n_times(1)
        .mount(&server)
        .await;
    Mock::given(method("POST"))
        .respond_with(good())
        .mount(&server)
        .await;
    let activity = Activity::new();
    let model = resolve("openai-chat/m", Some(&server.uri())).expect("ad hoc");
    let client = Client::http(model, None, ClientOptions::new(activity.clone())).expect("a client");
    let (sender, mut events) = mpsc::channel(64);
    let mut options = SessionOptions::new(client, activity, "/srv/project", sender);
    options.hooks = Hooks::new().with_hook(Arc::new(hook));
    options.sampling.retry.base_delay = Duration::ZERO;
    let session = Session::create(options).await.expect("a session").session;
    let prompting = async {
        let answer = session.prompt("hi", PromptOptions::default()).await;
        drop(session);
        answer
    };
    let listening = async { while events.recv().await.is_some() {} };
    let (answer, ()) = tokio::join!(prompting, listening);
    assert_eq!(answer.expect("an answer").text, "hello");
    let requests = server.received_requests().await.expect("recorded");
    let body = |request: &wiremock::Request| request.body_json().expect("JSON");
    requests.iter().map(body).collect()
}

fn good() -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_raw(STREAM, "text/event-stream")
}

#[tokio::test]
async fn a_body_is_replaced_once_for_all_attempts() {
    let heard = Heard::default();
    let mut hook = Probe::new("guard", &heard).only(HookPoint::BeforeRequest);
    hook.request = Box::new(|request| {
        let mut payload = request.payload.clone();
        payload["user"] = json!("ci");
        RequestVerdict::Replace(payload)
    });
    let bodies = bodies(ResponseTemplate::new(500), hook).await;
    let told = heard.at(HookPoint::BeforeRequest);
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["model"], "openai-chat/m");
    let mut expected = told[0]["payload"].clone();
    assert_eq!(expected["messages"][1]["content"], "hi");
    expected["user"] = json!("ci");
    assert_eq!(bodies, [expected.clone(), expected]);
}

#[tokio::test]
async fn without_a_verdict_the_body_is_the_session_s_own() {
    for misstep in [None, Some(Misstep::Fails)] {
        let heard = Heard::default();
        let mut hook = Probe::new("guard", &heard);
        if let Some(misstep) = misstep {
            hook = hook.misstep(HookPoint::BeforeRequest, misstep);
        }
        let bodies = bodies(good(), hook).await;
        assert_eq!(
            bodies,
            [heard.at(HookPoint::BeforeRequest)[0]["payload"].clone()]
        );
    }
}
