//! A mocked provider that answers with one reply after the other.

use std::collections::VecDeque;
use std::sync::Mutex;

use wiremock::matchers::method;
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

use super::reply::Response;
use super::server::Recorded;
use super::transcript::breaches;

/// The provider.
pub struct MockedModel {
    server: MockServer,
}

struct Script(Mutex<VecDeque<ResponseTemplate>>);

impl Respond for Script {
    fn respond(&self, _request: &Request) -> ResponseTemplate {
        let next = self.0.lock().unwrap().pop_front();
        // A request too many fails the run, and with it the test.
        next.unwrap_or_else(|| ResponseTemplate::new(400).set_body_string("no reply is left"))
    }
}

impl MockedModel {
    /// Answers with these, in order, and wants to be asked as often.
    pub async fn start(replies: Vec<Response>) -> Self {
        let server = MockServer::start().await;
        let count = u64::try_from(replies.len()).unwrap();
        let templates = replies.into_iter().map(Response::into_template).collect();
        Mock::given(method("POST"))
            .respond_with(Script(Mutex::new(templates)))
            .expect(count)
            .mount(&server)
            .await;
        Self { server }
    }

    /// The base URL.
    pub fn url(&self) -> String {
        self.server.uri()
    }

    /// All requests, which keep the rules of their dialects.
    pub async fn finish(self) -> Vec<Recorded> {
        self.server.verify().await;
        let requests = self.server.received_requests().await.unwrap();
        let requests: Vec<Recorded> = requests.into_iter().map(recorded).collect();
        for request in &requests {
            let found = breaches(&request.path, &request.body);
            assert!(found.is_empty(), "{found:#?}\n{:#}", request.body);
        }
        requests
    }
}

fn recorded(request: Request) -> Recorded {
    let query = request.url.query().map(|query| format!("?{query}"));
    let headers = request.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), value)
    });
    Recorded {
        path: format!("{}{}", request.url.path(), query.unwrap_or_default()),
        headers: headers.collect(),
        body: serde_json::from_slice(&request.body).unwrap_or_default(),
        bytes: request.body,
    }
}
