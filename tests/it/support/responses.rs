//! Replies in the dialect of OpenAI's Responses API.

use serde_json::{Value, json};

use super::reply::{Response, sse};

/// A message of one text.
pub fn text_item(text: &str) -> Value {
    json!({"type": "message", "id": "msg_test", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// A tool call.
pub fn call_item(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": name,
        "status": "completed", "arguments": arguments.to_string()})
}

/// A reply of these items, with 100 tokens in and 10 out.
pub fn reply(items: &[Value]) -> Response {
    let mut body = event(
        "response.created",
        json!({"response": {"status": "in_progress", "model": "test"}}),
    );
    for (at, item) in items.iter().enumerate() {
        let mut start = item.clone();
        start["status"] = "in_progress".into();
        let (kind, text) = if item["type"] == "message" {
            start["content"] = json!([]);
            ("response.output_text.delta", &item["content"][0]["text"])
        } else {
            start["arguments"] = "".into();
            ("response.function_call_arguments.delta", &item["arguments"])
        };
        body += &event(
            "response.output_item.added",
            json!({"output_index": at, "item": start}),
        );
        body += &event(kind, json!({"output_index": at, "delta": text}));
        body += &event(
            "response.output_item.done",
            json!({"output_index": at, "item": item}),
        );
    }
    let usage = json!({"input_tokens": 100, "output_tokens": 10});
    body += &event(
        "response.completed",
        json!({"response": {"status": "completed", "usage": usage}}),
    );
    sse(body)
}

/// One frame of the stream.
pub fn event(name: &str, mut fields: Value) -> String {
    fields["type"] = name.into();
    format!("event: {name}\ndata: {fields}\n\n")
}
