//! Replies in the dialect of Anthropic's Messages API.

use serde_json::{Value, json};

use super::reply::{Response, sse, status};

/// A reply of one text.
pub fn text(text: &str) -> Response {
    reply(&[text_block(text)], "end_turn")
}

/// A reply of one tool call.
pub fn tool_call(id: &str, name: &str, arguments: &Value) -> Response {
    reply(&[call_block(id, name, arguments)], "tool_use")
}

/// A reply of several tool calls: id, name, arguments.
pub fn tool_calls(calls: &[(&str, &str, Value)]) -> Response {
    let blocks: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| call_block(id, name, arguments))
        .collect();
    reply(&blocks, "tool_use")
}

/// A block of text.
pub fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A block of thinking with its signature.
pub fn thinking_block(thinking: &str, signature: &str) -> Value {
    json!({"type": "thinking", "thinking": thinking, "signature": signature})
}

/// A tool call.
pub fn call_block(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": arguments})
}

/// A reply of these blocks, with 100 tokens in and 10 out.
pub fn reply(blocks: &[Value], stop_reason: &str) -> Response {
    reply_with_usage(blocks, stop_reason, (100, 10))
}

/// A reply of these blocks with its tokens in and out.
pub fn reply_with_usage(
    blocks: &[Value],
    stop_reason: &str,
    (input, output): (u64, u64),
) -> Response {
    let message = json!({
        "id": "msg_test", "type": "message", "role": "assistant", "model": "test", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": input, "output_tokens": 1},
    });
    let mut body = event("message_start", &json!({"message": message}));
    body.push_str(&event("ping", &json!({})));
    for (index, block) in blocks.iter().enumerate() {
        body.push_str(&streamed(index, block));
    }
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    body.push_str(&event(
        "message_delta",
        &json!({"delta": delta, "usage": {"output_tokens": output}}),
    ));
    body.push_str(&event("message_stop", &json!({})));
    sse(body)
}

/// An error response.
pub fn error(code: u16, kind: &str, message: &str) -> Response {
    status(code).json(&json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_test"}))
}

/// One frame of the stream.
pub fn event(name: &str, fields: &Value) -> String {
    let mut data = fields.clone();
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}

fn streamed(index: usize, block: &Value) -> String {
    let (start, deltas) = match block["type"].as_str() {
        Some("text") => (text_block(""), halves("text_delta", "text", &block["text"])),
        Some("thinking") => {
            let mut deltas = halves("thinking_delta", "thinking", &block["thinking"]);
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            (thinking_block("", ""), deltas)
        }
        Some("tool_use") => {
            let arguments = Value::from(block["input"].to_string());
            let start =
                json!({"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}});
            (
                start,
                halves("input_json_delta", "partial_json", &arguments),
            )
        }
        _ => (block.clone(), Vec::new()),
    };
    let mut frames = event(
        "content_block_start",
        &json!({"index": index, "content_block": start}),
    );
    for delta in deltas {
        frames.push_str(&event(
            "content_block_delta",
            &json!({"index": index, "delta": delta}),
        ));
    }
    frames.push_str(&event("content_block_stop", &json!({"index": index})));
    frames
}

/// A text in two deltas, because a text never comes in one.
fn halves(kind: &str, field: &str, text: &Value) -> Vec<Value> {
    let text = text.as_str().unwrap_or_default();
    let middle = text
        .char_indices()
        .nth(text.chars().count() / 2)
        .map_or(0, |(at, _)| at);
    let (first, second) = text.split_at(middle);
    [first, second]
        .iter()
        .filter(|half| !half.is_empty())
        .map(|half| json!({"type": kind, field: half}))
        .collect()
}
