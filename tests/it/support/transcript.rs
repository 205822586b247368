//! The invariants of every conversation that is sent to a model.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong with a request, by the dialect that its path tells.
pub fn breaches(path: &str, body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let field = ["messages", "input", "contents"]
        .into_iter()
        .find(|field| body[field].is_array());
    let messages = field
        .and_then(|field| body[field].as_array())
        .map(Vec::as_slice)
        .unwrap_or_default();
    if messages.is_empty() {
        found.push("the conversation is empty".to_owned());
    } else if path.ends_with("/chat/completions") {
        chat(messages, &mut found);
        sorted(body, "/function/name", &mut found);
    } else if path.ends_with("/messages") {
        anthropic(messages, &mut found);
        sorted(body, "/name", &mut found);
        if body["max_tokens"].as_u64().is_none_or(|tokens| tokens == 0) {
            found.push("max_tokens is missing".to_owned());
        }
    } else if path.ends_with("/responses") {
        responses(messages, &mut found);
        sorted(body, "/name", &mut found);
    } else if path.ends_with(":streamGenerateContent?alt=sse") {
        gemini(messages, &mut found);
    } else {
        found.push(format!("nobody answers at {path}"));
    }
    if body["stream"] != true && !path.contains("alt=sse") {
        found.push("the reply is not streamed".to_owned());
    }
    found
        .into_iter()
        .map(|breach| format!("{path}: {breach}"))
        .collect()
}

fn anthropic(messages: &[Value], found: &mut Vec<String>) {
    let mut calls = BTreeSet::new();
    for (at, message) in messages.iter().enumerate() {
        let expected = if at % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            found.push(format!(
                "message {at} is of {}, expected {expected}",
                message["role"]
            ));
        }
        let blocks = message["content"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if blocks.is_empty()
            && message["content"]
                .as_str()
                .is_none_or(|text| text.trim().is_empty())
        {
            found.push(format!("message {at} is empty"));
        }
        if blocks.iter().any(|block| {
            block["type"] == "text"
                && block["text"]
                    .as_str()
                    .is_none_or(|text| text.trim().is_empty())
        }) {
            found.push(format!("message {at} has an empty text"));
        }
        let results = ids(blocks, "tool_result", "tool_use_id", found);
        if results != calls {
            found.push(format!(
                "message {at} answers {results:?}, called were {calls:?}"
            ));
        }
        let leading = blocks
            .iter()
            .take_while(|block| block["type"] == "tool_result")
            .count();
        if leading != results.len() {
            found.push(format!("message {at} has results behind other content"));
        }
        calls = ids(blocks, "tool_use", "id", found);
    }
    if messages.len().is_multiple_of(2) {
        found.push("the conversation ends with the assistant".to_owned());
    }
}

fn ids(blocks: &[Value], kind: &str, field: &str, found: &mut Vec<String>) -> BTreeSet<String> {
    let mut ids = BTreeSet::new();
    for block in blocks.iter().filter(|block| block["type"] == kind) {
        let id = block[field].as_str().unwrap_or_default().to_owned();
        if id.is_empty() || !ids.insert(id) {
            found.push(format!(
                "the {kind} id {} is empty or repeated",
                block[field]
            ));
        }
    }
    ids
}

fn chat(messages: &[Value], found: &mut Vec<String>) {
    let mut open: BTreeSet<String> = BTreeSet::new();
    let mut spoken = false;
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            found.push(format!(
                "calls without results before message {at}: {open:?}"
            ));
            open.clear();
        }
        let calls = message["tool_calls"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let content = &message["content"];
        let empty = content.as_array().is_none_or(Vec::is_empty)
            && content.as_str().is_none_or(|text| text.trim().is_empty());
        match role {
            "system" | "developer" if spoken => {
                found.push(format!("message {at} gives instructions too late"))
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                if !open.remove(id) {
                    found.push(format!("message {at} answers {id:?}, which nobody called"));
                }
            }
            "system" | "developer" | "user" | "assistant" => {}
            other => found.push(format!("message {at} is of {other:?}")),
        }
        if empty && calls.is_empty() && role != "tool" {
            found.push(format!("message {at} is empty"));
        }
        spoken |= !matches!(role, "system" | "developer");
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                open.insert(call["id"].as_str().unwrap_or_default().to_owned());
            } else {
                found.push(format!("message {at} calls with {arguments:?}"));
            }
        }
    }
    if !open.is_empty() {
        found.push(format!("calls without results at the end: {open:?}"));
    }
    if messages
        .last()
        .is_some_and(|last| last["role"] == "assistant")
    {
        found.push("the conversation ends with the assistant".to_owned());
    }
}

fn responses(items: &[Value], found: &mut Vec<String>) {
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") if !id.is_empty() && open.insert(id) => {}
            Some("function_call_output") if open.remove(id) => {}
            Some("message") if open.is_empty() => {}
            Some("reasoning") => {}
            _ => found.push(format!("item {at} is out of place: {item}")),
        }
    }
    if !open.is_empty() {
        found.push(format!("calls without results at the end: {open:?}"));
    }
}

fn gemini(contents: &[Value], found: &mut Vec<String>) {
    let mut calls: Vec<&Value> = Vec::new();
    for (at, content) in contents.iter().enumerate() {
        let parts = content["parts"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        if parts.is_empty() {
            found.push(format!("content {at} is empty"));
        }
        let named = |kind: &str| -> Vec<&Value> {
            let of_kind = parts.iter().filter_map(|part| part.get(kind));
            of_kind.map(|part| &part["name"]).collect()
        };
        let results = named("functionResponse");
        if results != calls {
            found.push(format!(
                "content {at} answers {results:?}, called were {calls:?}"
            ));
        }
        calls = named("functionCall");
    }
    if contents.last().is_some_and(|last| last["role"] != "user") {
        found.push("the conversation ends with the model".to_owned());
    }
}

fn sorted(body: &Value, name: &str, found: &mut Vec<String>) {
    let tools = body["tools"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool.pointer(name)?.as_str())
        .collect();
    if names.len() != tools.len() || !names.is_sorted() {
        found.push(format!("the tools are unnamed or unsorted: {names:?}"));
    }
}
