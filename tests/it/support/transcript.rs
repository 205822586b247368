//! The invariants of every conversation that is sent to a model.

use std::collections::BTreeSet;

use serde_json::Value;

/// What is wrong with a request, by the dialect that its path tells.
pub fn breaches(path: &str, body: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
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
    } else if path.ends_with(":streamGenerateContent") && query.starts_with("alt=sse") {
        gemini(messages, &mut found);
    } else {
        found.push(format!("nobody answers at {path}"));
    }
    if body["stream"] != true && !query.starts_with("alt=sse") {
        found.push("the reply is not streamed".to_owned());
    }
    found
        .into_iter()
        .map(|breach| format!("{path}: {breach}"))
        .collect()
}

fn anthropic(messages: &[Value], found: &mut Vec<String>) {
    let mut calls = BTreeSet::new();
    let mut ever = BTreeSet::new();
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
        results_hold_something(at, blocks, found);
        calls = ids(blocks, "tool_use", "id", found);
        for call in blocks.iter().filter(|block| block["type"] == "tool_use") {
            let id = call["id"].as_str().unwrap_or_default();
            if !is_word(id, 64) || !ever.insert(id) {
                found.push(format!("message {at} calls with the id {id:?}"));
            }
            named(at, &call["name"], found);
            if !call["input"].is_object() {
                found.push(format!("message {at} calls with {}", call["input"]));
            }
        }
    }
    if messages.len().is_multiple_of(2) {
        found.push("the conversation ends with the assistant".to_owned());
    }
}

/// A result is no empty list, and no text in it is empty.
fn results_hold_something(at: usize, blocks: &[Value], found: &mut Vec<String>) {
    for result in blocks.iter().filter(|block| block["type"] == "tool_result") {
        let inside = result["content"].as_array().map(Vec::as_slice);
        let inside = inside.unwrap_or_default();
        let is_empty = |block: &Value| block["type"] == "text" && is_blank(&block["text"]);
        if inside.is_empty() || inside.iter().any(is_empty) {
            found.push(format!("message {at} has the empty result {result}"));
        }
    }
}

fn is_blank(text: &Value) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

/// Letters, digits, `_` and `-`, between one and so many.
fn is_word(text: &str, chars_max: usize) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=chars_max).contains(&text.len()) && text.bytes().all(fits)
}

/// The name of a called tool.
fn named(at: usize, name: &Value, found: &mut Vec<String>) {
    if !is_word(name.as_str().unwrap_or_default(), 64) {
        found.push(format!("{at} names the tool {name}"));
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
    let mut ever = BTreeSet::new();
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
        if empty && (calls.is_empty() || !content.is_null()) {
            found.push(format!("message {at} is empty"));
        }
        spoken |= !matches!(role, "system" | "developer");
        for call in calls {
            named(at, &call["function"]["name"], found);
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if serde_json::from_str::<Value>(arguments).is_ok_and(|value| value.is_object()) {
                let id = call["id"].as_str().unwrap_or_default();
                if id.is_empty() || !ever.insert(id) {
                    found.push(format!("message {at} calls with the id {id:?}"));
                }
                open.insert(id.to_owned());
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
    let mut ever: BTreeSet<&str> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") if !id.is_empty() && ever.insert(id) && open.insert(id) => {
                named(at, &item["name"], found);
            }
            Some("function_call_output") if open.remove(id) => {}
            Some("message") if open.is_empty() => {}
            // What it led to stands behind it.
            Some("reasoning") if items.get(at + 1).is_some_and(is_led_to) => {}
            // Calls may be made before a last word.
            Some("message") if item["role"] == "assistant" => {}
            _ => found.push(format!("item {at} is out of place: {item}")),
        }
        let texts = item["content"].as_array().into_iter().flatten();
        let parts = item["output"].as_array().into_iter().flatten();
        let mut parts = texts.clone().chain(parts);
        let is_empty = |part: &Value| !part["text"].is_null() && is_blank(&part["text"]);
        if parts.any(is_empty) || (item["type"] == "message" && texts.count() == 0) {
            found.push(format!("item {at} says nothing: {item}"));
        }
    }
    if !open.is_empty() {
        found.push(format!("calls without results at the end: {open:?}"));
    }
    let last = items.last();
    if last.is_some_and(|last| last["role"] == "assistant" || last["type"] == "reasoning") {
        found.push("the conversation ends with the assistant".to_owned());
    }
}

fn is_led_to(item: &Value) -> bool {
    item["role"] == "assistant" || item["type"] == "function_call" || item["type"] == "reasoning"
}

fn gemini(contents: &[Value], found: &mut Vec<String>) {
    let mut calls: Vec<&Value> = Vec::new();
    let mut before = "";
    for (at, content) in contents.iter().enumerate() {
        let parts = content["parts"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        let is_empty = |part: &Value| {
            part["text"].as_str().is_some_and(str::is_empty) && part["thoughtSignature"].is_null()
        };
        if parts.is_empty() || parts.iter().any(is_empty) {
            found.push(format!("content {at} is empty"));
        }
        let of_kind = |kind: &str| -> Vec<&Value> {
            let of_kind = parts.iter().filter_map(|part| part.get(kind));
            of_kind.map(|part| &part["name"]).collect()
        };
        let results = of_kind("functionResponse");
        if results != calls {
            found.push(format!(
                "content {at} answers {results:?}, called were {calls:?}"
            ));
        }
        if !results.is_empty() && results.len() != parts.len() {
            found.push(format!("content {at} holds more than results"));
        }
        calls = of_kind("functionCall");
        for name in &calls {
            named(at, name, found);
        }
        let role = match content["role"].as_str() {
            Some("user") if !results.is_empty() => "results",
            role => role.unwrap_or_default(),
        };
        if role == before || (at == 0 && role != "user") {
            found.push(format!("content {at} is of {role} behind {before:?}"));
        }
        before = role;
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
