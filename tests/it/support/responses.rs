//! Replies in the dialect of OpenAI's Responses API.

use serde_json::{Value, json};

use super::reply::{Response, sse};

/// A message of one text.
pub fn text_item(text: &str) -> Value {
    json!({"type": "message", "id": "msg_test", "role": "assistant", "status": "completed",
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

/// Reasoning, with a summary of one text and what only the provider can read.
pub fn reasoning_item(summary: &str) -> Value {
    json!({"type": "reasoning", "id": "rs_test", "encrypted_content": "gAAAA",
        "summary": [{"type": "summary_text", "text": summary}]})
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
        let (kind, text) = match item["type"].as_str() {
            Some("message") => {
                start["content"] = json!([]);
                ("response.output_text.delta", &item["content"][0]["text"])
            }
            Some("reasoning") => {
                start["summary"] = json!([]);
                let kind = "response.reasoning_summary_text.delta";
                (kind, &item["summary"][0]["text"])
            }
            _ => {
                start["arguments"] = "".into();
                ("response.function_call_arguments.delta", &item["arguments"])
            }
        };
        if item["type"] != "reasoning" {
            start["status"] = "in_progress".into();
        }
        body += &event(
            "response.output_item.added",
            json!({"output_index": at, "item": start}),
        );
        body += &event(
            kind,
            json!({"output_index": at, "summary_index": 0, "delta": text}),
        );
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
