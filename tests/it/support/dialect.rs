//! Both dialects behind one face, so that what must hold for both is written once.

use serde_json::{Value, json};

use super::cli::{Cli, Output};
use super::reply::Response;
use super::server::Recorded;
use super::{anthropic, chat};

/// The key that the program is given; nothing may repeat it.
pub const KEY: &str = "sk-test-0123456789abcdef";

/// A dialect, with a model that speaks it.
#[derive(Clone, Copy)]
pub struct Dialect {
    /// The model's full id.
    pub model: &'static str,
    /// The id as the endpoint gets it.
    pub id: &'static str,
    /// The variable with the key.
    pub key_env: &'static str,
    /// The header with the key, and what stands before the key in it.
    pub key_header: (&'static str, &'static str),
    /// Where requests go.
    pub path: &'static str,
    /// A reply of one text.
    pub text: fn(&str) -> Response,
    /// A reply of these calls.
    pub calls: fn(&[(&str, &str, Value)]) -> Response,
    /// An error response: status, the provider's code, its message.
    pub error: fn(u16, &str, &str) -> Response,
    /// A frame with an error inside the stream: code and message.
    pub error_frame: fn(&str, &str) -> String,
}

/// The Messages API, with a model of the catalog.
pub const ANTHROPIC: Dialect = Dialect {
    model: "anthropic/claude-sonnet-5",
    id: "claude-sonnet-5",
    key_env: "ANTHROPIC_API_KEY",
    key_header: ("x-api-key", ""),
    path: "/v1/messages",
    text: anthropic::text,
    calls: anthropic::tool_calls,
    error: anthropic::error,
    error_frame: |code, message| {
        anthropic::event(
            "error",
            &json!({"error": {"type": code, "message": message}}),
        )
    },
};

/// Chat Completions, with an endpoint that no catalog knows.
pub const CHAT: Dialect = Dialect {
    model: "openai-chat/local",
    id: "local",
    key_env: "OPENAI_API_KEY",
    key_header: ("authorization", "Bearer "),
    path: "/chat/completions",
    text: chat::text,
    calls: chat::tool_calls,
    error: chat::error,
    error_frame: |code, message| {
        format!(
            "data: {}\n\n",
            json!({"error": {"code": code, "type": code, "message": message}})
        )
    },
};

/// Both of them.
pub const BOTH: [Dialect; 2] = [ANTHROPIC, CHAT];

impl Dialect {
    /// A quiet run of a task in `run/`, which is tried again without delay.
    /// `more` are further lines of the task file.
    pub fn task(&self, base_url: &str, more: &str) -> Cli {
        task((self.model, self.key_env), base_url, more)
    }

    /// The conversation of a request, without the instructions.
    pub fn messages(&self, request: &Recorded) -> Vec<Value> {
        let mut messages = request.body["messages"].as_array().unwrap().clone();
        messages.retain(|message| message["role"] != "system");
        messages
    }

    /// The results at the end of a request: the call's id, and the text.
    pub fn results(&self, request: &Recorded) -> Vec<(String, String)> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = self.messages(request);
        if self.path == CHAT.path {
            let from = messages
                .iter()
                .rposition(|message| message["role"] != "tool")
                .unwrap();
            return messages[from + 1..]
                .iter()
                .map(|message| (text(&message["tool_call_id"]), text(&message["content"])))
                .collect();
        }
        let last = messages.last().unwrap()["content"].as_array().unwrap();
        last.iter()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| {
                (
                    text(&block["tool_use_id"]),
                    text(&block["content"][0]["text"]),
                )
            })
            .collect()
    }
}

/// A quiet run in `run/` of a task whose model and key are these, which is tried
/// again without delay. `more` are further lines of the task file.
pub(super) fn task((model, key_env): (&str, &str), base_url: &str, more: &str) -> Cli {
    let task = format!(
        "version: 1\nname: job\nprompt: Do it.\nretry: {{base_delay: 1ms, max_attempts: 3}}\n{more}"
    );
    Cli::new()
        .file("task.yaml", task)
        .args(["run", "task.yaml", "--quiet", "--run-dir", "run"])
        .args(["--model", model, "--base-url", base_url])
        .env(key_env, KEY)
}

/// What the log says of attempts: error, HTTP status, delay in milliseconds, its source.
pub fn retries(output: &Output) -> Vec<(String, Option<u64>, u64, String)> {
    let events = output.events();
    events
        .iter()
        .filter(|event| event["event"] == "retry:start")
        .map(|event| &event["data"])
        .map(|data| {
            (
                data["errorCode"].as_str().unwrap().to_owned(),
                data["httpStatus"].as_u64(),
                data["delayMs"].as_u64().unwrap(),
                data["source"].as_str().unwrap().to_owned(),
            )
        })
        .collect()
}

/// The payloads of the events of this name.
pub fn told(output: &Output, name: &str) -> Vec<Value> {
    let events = output.events().into_iter();
    events
        .filter(|event| event["event"] == name)
        .map(|mut event| event["data"].take())
        .collect()
}

/// Everything that a run left: both streams and every file of its directory.
pub fn remains(output: &Output) -> Vec<(String, String)> {
    let mut found = vec![
        ("stdout".to_owned(), output.stdout.clone()),
        ("stderr".to_owned(), output.stderr.clone()),
    ];
    let mut dirs = vec![output.run_dir()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                let bytes = std::fs::read(&path).unwrap();
                let text = String::from_utf8_lossy(&bytes).into_owned();
                found.push((path.display().to_string(), text));
            }
        }
    }
    found
}
