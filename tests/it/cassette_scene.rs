//! Runs that are recorded against a server and replayed elsewhere, without one.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cli::{Cli, Output};
use crate::support::normal;
use crate::support::reply::{Reply, Response, status};
use crate::support::server::ModelServer;
use crate::support::{anthropic, chat, gemini, responses};

/// What a reply consists of.
#[derive(Debug, Clone)]
pub(crate) enum Say {
    /// Some text.
    Text(String),
    /// A call: id, tool, arguments.
    Call(String, String, Value),
}

pub(crate) fn text(text: &str) -> Say {
    Say::Text(text.to_owned())
}

pub(crate) fn call(id: &str, tool: &str, arguments: Value) -> Say {
    Say::Call(id.to_owned(), tool.to_owned(), arguments)
}

/// The key that recorded runs have.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

/// A dialect with a model that speaks it.
pub(crate) struct Speaker {
    pub(crate) model: &'static str,
    pub(crate) key_env: &'static str,
    reply: fn(&[Say]) -> Response,
}

pub(crate) const SPEAKERS: [Speaker; 4] = [
    Speaker {
        model: "anthropic/claude-sonnet-5",
        key_env: "ANTHROPIC_API_KEY",
        reply: |says| {
            let mut blocks = vec![anthropic::thinking_block("Let me see.", "c2lnbmVk")];
            blocks.extend(each(says, anthropic::text_block, anthropic::call_block));
            anthropic::reply(&blocks, if calls(says) { "tool_use" } else { "end_turn" })
        },
    },
    Speaker {
        model: "openai-chat/local",
        key_env: "OPENAI_API_KEY",
        reply: |says| {
            let mut deltas = each(
                says,
                |text| json!({"content": text}),
                |id, name, arguments| {
                    let function = json!({"name": name, "arguments": arguments.to_string()});
                    json!({"tool_calls": [{"id": id, "type": "function", "function": function}]})
                },
            );
            let called = deltas
                .iter_mut()
                .filter(|one| one.get("tool_calls").is_some());
            for (delta, index) in called.zip(0u64..) {
                delta["tool_calls"][0]["index"] = index.into();
            }
            deltas.insert(0, json!({"reasoning_content": "Let me see."}));
            chat::reply(&deltas, if calls(says) { "tool_calls" } else { "stop" })
        },
    },
    Speaker {
        model: "openai-responses/local",
        key_env: "OPENAI_API_KEY",
        reply: |says| responses::reply(&each(says, responses::text_item, responses::call_item)),
    },
    Speaker {
        model: "google-generative-ai/local",
        key_env: "GEMINI_API_KEY",
        reply: |says| {
            gemini::reply(&each(says, gemini::text_part, |_, name, arguments| {
                gemini::call_part(name, arguments)
            }))
        },
    },
];

fn each(
    says: &[Say],
    text: impl Fn(&str) -> Value,
    call: impl Fn(&str, &str, &Value) -> Value,
) -> Vec<Value> {
    says.iter()
        .map(|say| match say {
            Say::Text(words) => text(words),
            Say::Call(id, name, arguments) => call(id, name, arguments),
        })
        .collect()
}

fn calls(says: &[Say]) -> bool {
    says.iter().any(|say| matches!(say, Say::Call(..)))
}

impl Speaker {
    pub(crate) fn reply(&self, says: &[Say]) -> Response {
        (self.reply)(says)
    }

    /// The same as bytes.
    pub(crate) fn answer(&self, says: &[Say]) -> Reply {
        self.reply(says).into()
    }
}

/// A server that asks to be tried again at once.
pub(crate) fn busy() -> Reply {
    status(429)
        .header("retry-after", "0")
        .json(&json!({"error": {"message": "slow down"}}))
        .into()
}

/// Where cassettes of a test are.
pub(crate) struct Shelf(TempDir);

impl Shelf {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn cassette(&self) -> PathBuf {
        self.0.path().join("run.jsonl")
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(self.cassette()).unwrap()
    }

    /// The lines of the cassette, each with its kind.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let text = self.text();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Records a run of the task against a server that answers so.
    pub(crate) fn record(&self, speaker: &Speaker, task: &str, replies: Vec<Reply>) -> Output {
        let server = ModelServer::start(replies);
        let output = scene(task)
            .args(["--model", speaker.model, "--base-url", &server.url()])
            .env(speaker.key_env, KEY)
            .arg("--record")
            .arg(self.cassette())
            .run();
        server.finish();
        output
    }

    /// Replays a run of the task, without a key and without a network.
    pub(crate) fn replay(&self, task: &str) -> Cli {
        scene(task).arg("--replay").arg(self.cassette())
    }
}

pub(crate) const TASK: &str = "version: 1\nname: job\nprompt: Do it.\n\
     permissions: {mode: accept_edits}\nretry: {base_delay: 1ms}\n";

/// A run of a task in a workspace of its own.
pub(crate) fn scene(task: &str) -> Cli {
    Cli::new()
        .file("ws/a.txt", "alpha\n")
        .file("ws/b.txt", "beta\n")
        .file("task.yaml", format!("{task}workspace: {{path: ws}}\n"))
        .args(["run", "task.yaml", "--run-dir", "run", "--deltas", "delta"])
}

/// What must be the same of a run and its replay: the result, and the log.
pub(crate) fn comparable(output: &Output) -> (Value, Vec<String>) {
    let mut events = output.events();
    let mut result = events.last().unwrap()["data"]["result"].clone();
    for name in ["startedAt", "durationMs", "runId", "replay"] {
        result.as_object_mut().unwrap().remove(name);
    }
    let budget = result["budget"].as_object_mut().unwrap();
    budget.remove("time");
    // The end repeats the result.
    events.pop();
    let mut known = Vec::new();
    for event in &mut events {
        nameless(event, &mut known);
    }
    let text = normal::log(&events, output.cwd());
    let unnumbered = |line: &str| line.split_once(' ').unwrap().1.to_owned();
    let mut lines: Vec<String> = text.lines().map(unnumbered).collect();
    // What runs side by side ends in any order.
    for group in lines.chunk_by_mut(|one, other| is_end(one) && is_end(other)) {
        group.sort();
    }
    let result = serde_json::to_string(&result).unwrap();
    let result = result.replace(&shown(output.cwd()), "<cwd>");
    (serde_json::from_str(&result).unwrap(), lines)
}

fn is_end(line: &str) -> bool {
    line.contains(" tool:execution:complete ") || line.contains(" tool:execution:error ")
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Ids of calls that the provider did not name are random.
fn nameless(value: &mut Value, known: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("replay");
            for (name, value) in fields {
                match (name.as_str(), &value) {
                    (name, Value::String(id)) if name == "id" || name.ends_with("Id") => {
                        let at = known.iter().position(|other| other == id);
                        let at = at.unwrap_or_else(|| {
                            known.push(id.clone());
                            known.len() - 1
                        });
                        *value = json!(format!("call {at}"));
                    }
                    _ => nameless(value, known),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| nameless(item, known)),
        _ => {}
    }
}
