//! Replies in the dialect of OpenAI's Chat Completions API.

use serde_json::{Value, json};

use super::reply::{Response, sse, status};

/// A reply of one text.
pub fn text(text: &str) -> Response {
    let middle = text
        .char_indices()
        .nth(text.chars().count() / 2)
        .map_or(0, |(at, _)| at);
    let (first, second) = text.split_at(middle);
    let deltas = [
        json!({"role": "assistant", "content": first}),
        json!({"content": second}),
    ];
    reply(&deltas, "stop")
}

/// A reply of one tool call.
pub fn tool_call(id: &str, name: &str, arguments: &Value) -> Response {
    tool_calls(&[(id, name, arguments.clone())])
}

/// A reply of several tool calls: id, name, arguments. Their arguments come interleaved.
pub fn tool_calls(calls: &[(&str, &str, Value)]) -> Response {
    let mut deltas = vec![json!({"role": "assistant", "content": null})];
    for (index, (id, name, _)) in calls.iter().enumerate() {
        let function = json!({"name": name, "arguments": ""});
        deltas.push(json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}));
    }
    for second in [false, true] {
        for (index, (_, _, arguments)) in calls.iter().enumerate() {
            let text = arguments.to_string();
            let middle = text
                .char_indices()
                .nth(text.chars().count() / 2)
                .map_or(0, |(at, _)| at);
            let piece = if second {
                &text[middle..]
            } else {
                &text[..middle]
            };
            deltas
                .push(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
        }
    }
    reply(&deltas, "tool_calls")
}

/// A reply of these deltas, with 100 tokens in and 10 out.
pub fn reply(deltas: &[Value], finish_reason: &str) -> Response {
    reply_with_usage(deltas, finish_reason, (100, 10))
}

/// A reply of these deltas with its tokens in and out.
pub fn reply_with_usage(
    deltas: &[Value],
    finish_reason: &str,
    (input, output): (u64, u64),
) -> Response {
    let mut body = String::new();
    for delta in deltas {
        body.push_str(&frame(
            &json!([{"index": 0, "delta": delta, "finish_reason": null}]),
            &Value::Null,
        ));
    }
    body.push_str(&frame(
        &json!([{"index": 0, "delta": {}, "finish_reason": finish_reason}]),
        &Value::Null,
    ));
    let usage = json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output});
    body.push_str(&frame(&json!([]), &usage));
    body.push_str("data: [DONE]\n\n");
    sse(body)
}

/// An error response.
pub fn error(code: u16, kind: &str, message: &str) -> Response {
    status(code).json(&json!({"error": {"message": message, "type": kind, "code": kind}}))
}

/// One frame of the stream.
pub fn frame(choices: &Value, usage: &Value) -> String {
    let mut data = json!({
        "id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1, "model": "test", "choices": choices,
    });
    if !usage.is_null() {
        data["usage"] = usage.clone();
    }
    format!("data: {data}\n\n")
}
