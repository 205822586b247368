//! Replies in the dialect of Google's generative language API.

use serde_json::{Value, json};

use super::reply::{Response, sse};

/// A part of text.
pub fn text_part(text: &str) -> Value {
    json!({"text": text})
}

/// A tool call, without an id.
pub fn call_part(name: &str, arguments: &Value) -> Value {
    json!({"functionCall": {"name": name, "args": arguments}})
}

/// A reply of these parts, a chunk each, with 100 tokens in and 10 out.
pub fn reply(parts: &[Value]) -> Response {
    let mut body = String::new();
    for part in parts {
        body += &chunk(json!({"content": {"role": "model", "parts": [part]}}));
    }
    body += &chunk(json!({"finishReason": "STOP"}));
    sse(body)
}

fn chunk(candidate: Value) -> String {
    let usage = json!({"promptTokenCount": 100, "candidatesTokenCount": 10});
    let data = json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "test"});
    format!("data: {data}\r\n\r\n")
}
