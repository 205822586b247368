//! All four dialects behind one face, each with a model of the catalog that
//! thinks and sees.

use serde_json::{Value, json};

use super::cli::Cli;
use super::reply::{Response, status};
use super::{anthropic, chat, dialect, gemini, responses};

/// What a reply consists of.
#[derive(Clone)]
pub enum Say {
    /// A text.
    Text(&'static str),
    /// Thinking, signed where the dialect signs.
    Thinking(&'static str),
    /// A call: id, tool, arguments.
    Call(&'static str, &'static str, Value),
}

/// A dialect.
pub struct Four {
    /// Its name.
    pub name: &'static str,
    /// A model of the catalog.
    pub model: &'static str,
    /// The variable with the key.
    pub key_env: &'static str,
    /// The header with the key, and its value.
    pub key_header: (&'static str, &'static str),
    /// Where requests go.
    pub path: &'static str,
    /// The field with the conversation.
    pub conversation: &'static str,
    /// A whole reply of these, with 100 tokens in and 10 out.
    pub reply: fn(&[Say]) -> Response,
    /// An error: status and message.
    pub error: fn(u16, &str) -> Response,
    /// A frame of a stream that says that the provider is overloaded.
    pub overloaded: fn() -> String,
    /// The message of a provider for a conversation that is too long.
    pub too_long: &'static str,
    /// How the reply `[Thinking("Why"), Call("c1", "ls", {})]` goes back.
    pub thought_back: fn() -> Value,
}

pub use super::dialect::KEY;

/// All of them.
pub const FOUR: [Four; 4] = [
    Four {
        name: "anthropic-messages",
        model: "anthropic/claude-sonnet-5",
        key_env: "ANTHROPIC_API_KEY",
        key_header: ("x-api-key", KEY),
        path: "/v1/messages",
        conversation: "messages",
        reply: of_anthropic,
        error: |code, message| anthropic::error(code, kind_of(code), message),
        overloaded: || {
            let error = json!({"type": "overloaded_error", "message": "Overloaded"});
            anthropic::event("error", &json!({"error": error}))
        },
        too_long: "prompt is too long: 210000 tokens > 200000 maximum",
        thought_back: || {
            json!([{"role": "assistant", "content": [
                anthropic::thinking_block("Why", "c2ln"),
                anthropic::call_block("c1", "ls", &json!({})),
            ]}])
        },
    },
    Four {
        name: "openai-chat",
        model: "deepseek/deepseek-flash",
        key_env: "DEEPSEEK_API_KEY",
        key_header: ("authorization", "Bearer sk-test-0123456789abcdef"),
        path: "/chat/completions",
        conversation: "messages",
        reply: of_chat,
        error: |code, message| chat::error(code, kind_of(code), message),
        overloaded: || {
            let error =
                json!({"code": 503, "type": "overloaded", "message": "Service is too busy"});
            format!("data: {}\n\n", json!({"error": error}))
        },
        too_long: "This model's maximum context length is 131072 tokens. However, you requested \
                   140000 tokens.",
        thought_back: || {
            let function = json!({"name": "ls", "arguments": "{}"});
            json!([{"role": "assistant", "content": null, "reasoning_content": "Why",
                "tool_calls": [{"type": "function", "id": "c1", "function": function}]}])
        },
    },
    Four {
        name: "openai-responses",
        model: "openai/gpt-5.2",
        key_env: "OPENAI_API_KEY",
        key_header: ("authorization", "Bearer sk-test-0123456789abcdef"),
        path: "/responses",
        conversation: "input",
        reply: of_responses,
        error: |code, message| chat::error(code, kind_of(code), message),
        overloaded: || {
            let error = json!({"code": "server_is_overloaded", "message": "Overloaded"});
            let response = json!({"status": "failed", "error": error});
            responses::event("response.failed", json!({"response": response}))
        },
        too_long: "Your input exceeds the context window of this model. Please adjust your input \
                   and try again.",
        thought_back: || {
            json!([
                responses::reasoning_item("Why"),
                {"type": "function_call", "id": "fc_c1", "call_id": "c1", "name": "ls", "arguments": "{}"},
            ])
        },
    },
    Four {
        name: "google-generative-ai",
        model: "google/gemini-3-flash-preview",
        key_env: "GEMINI_API_KEY",
        key_header: ("x-goog-api-key", KEY),
        path: "/models/gemini-3-flash-preview:streamGenerateContent?alt=sse",
        conversation: "contents",
        reply: of_gemini,
        error: google_error,
        overloaded: || {
            let error = json!({"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"});
            format!("data: {}\r\n\r\n", json!({"error": error}))
        },
        too_long: "The input token count (1200000) exceeds the maximum number of tokens allowed \
                   (1048576).",
        thought_back: || {
            let call = json!({"name": "ls", "args": {}});
            json!([{"role": "model", "parts": [
                {"functionCall": call, "thoughtSignature": "c2ln"}]}])
        },
    },
];

impl Four {
    /// A quiet run of a task, which is tried again without delay. `more` are
    /// further lines of the task file.
    pub fn task(&self, base_url: &str, more: &str) -> Cli {
        dialect::task((self.model, self.key_env), base_url, more)
    }

    /// A whole reply of one text.
    pub fn text(&self, text: &'static str) -> Response {
        (self.reply)(&[Say::Text(text)])
    }

    /// The results in a request: texts, in order.
    pub fn results(&self, body: &Value) -> Vec<String> {
        let items = body[self.conversation].as_array().unwrap().iter();
        let blocks = items.flat_map(|item| match item["role"].as_str() {
            Some("user") => {
                let inside = item["content"].as_array().or(item["parts"].as_array());
                inside.cloned().unwrap_or_default()
            }
            _ => vec![item.clone()],
        });
        blocks
            .filter_map(|block| {
                let result = &block["functionResponse"]["response"];
                let found = match block["type"].as_str() {
                    Some("tool_result") => &block["content"],
                    Some("function_call_output") => &block["output"],
                    _ if block["role"] == "tool" => &block["content"],
                    _ => result,
                };
                (!found.is_null()).then(|| found.to_string())
            })
            .collect()
    }
}

fn kind_of(code: u16) -> &'static str {
    match code {
        429 => "rate_limit_error",
        _ => "invalid_request_error",
    }
}

fn google_error(code: u16, message: &str) -> Response {
    let named = match code {
        429 => "RESOURCE_EXHAUSTED",
        _ => "INVALID_ARGUMENT",
    };
    status(code).json(&json!({"error": {"code": code, "message": message, "status": named}}))
}

fn has_calls(says: &[Say]) -> bool {
    says.iter().any(|say| matches!(say, Say::Call(..)))
}

fn of_anthropic(says: &[Say]) -> Response {
    let block = |say: &Say| match say {
        Say::Text(text) => anthropic::text_block(text),
        Say::Thinking(text) => anthropic::thinking_block(text, "c2ln"),
        Say::Call(id, name, arguments) => anthropic::call_block(id, name, arguments),
    };
    let blocks: Vec<Value> = says.iter().map(block).collect();
    let stop = if has_calls(says) {
        "tool_use"
    } else {
        "end_turn"
    };
    anthropic::reply(&blocks, stop)
}

fn of_chat(says: &[Say]) -> Response {
    let mut index = 0;
    let delta = |say: &Say| match say {
        Say::Text(text) => json!({"content": text}),
        Say::Thinking(text) => json!({"reasoning_content": text}),
        Say::Call(id, name, arguments) => {
            // As servers write a call without arguments.
            let none = arguments.as_object().is_some_and(serde_json::Map::is_empty);
            let arguments = if none {
                String::new()
            } else {
                arguments.to_string()
            };
            let function = json!({"name": name, "arguments": arguments});
            index += 1;
            json!({"tool_calls": [
                {"index": index - 1, "id": id, "type": "function", "function": function}]})
        }
    };
    let deltas: Vec<Value> = says.iter().map(delta).collect();
    let finish = if has_calls(says) {
        "tool_calls"
    } else {
        "stop"
    };
    chat::reply(&deltas, finish)
}

fn of_responses(says: &[Say]) -> Response {
    let item = |say: &Say| match say {
        Say::Text(text) => responses::text_item(text),
        Say::Thinking(text) => responses::reasoning_item(text),
        Say::Call(id, name, arguments) => responses::call_item(id, name, arguments),
    };
    let items: Vec<Value> = says.iter().map(item).collect();
    responses::reply(&items)
}

/// Google signs the first call behind the thinking, and gives no ids.
fn of_gemini(says: &[Say]) -> Response {
    let mut thought = false;
    let part = |say: &Say| match say {
        Say::Text(text) => gemini::text_part(text),
        Say::Thinking(text) => {
            thought = true;
            json!({"text": text, "thought": true})
        }
        Say::Call(_, name, arguments) => {
            let mut part = gemini::call_part(name, arguments);
            if std::mem::take(&mut thought) {
                part["thoughtSignature"] = "c2ln".into();
            }
            part
        }
    };
    let parts: Vec<Value> = says.iter().map(part).collect();
    gemini::reply(&parts)
}
