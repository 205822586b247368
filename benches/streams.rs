//! A long reply of text in each dialect.

/// The text of one delta.
pub(crate) const DELTA: &str = "some more text ";

/// The dialects' streams, with the model that each is of.
pub(crate) fn all(deltas: usize) -> [(&'static str, String); 4] {
    [
        ("anthropic/claude-sonnet-4-5", anthropic(deltas)),
        ("openai/gpt-5", responses(deltas)),
        ("google/gemini-3-flash-preview", gemini(deltas)),
        ("openai-chat/bench", chat(deltas)),
    ]
}

fn anthropic(deltas: usize) -> String {
    let event =
        |kind: &str, rest: &str| format!("event: {kind}\ndata: {{\"type\":\"{kind}\"{rest}}}\n\n");
    let delta = format!(",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{DELTA}\"}}");
    event(
        "message_start",
        ",\"message\":{\"model\":\"m\",\"usage\":{\"input_tokens\":100,\"output_tokens\":1}}",
    ) + &event(
        "content_block_start",
        ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}",
    ) + &event("content_block_delta", &delta).repeat(deltas)
        + &event("content_block_stop", ",\"index\":0")
        + &event(
            "message_delta",
            ",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":9}",
        )
        + &event("message_stop", "")
}

fn responses(deltas: usize) -> String {
    let event = |kind: &str, rest: &str| {
        format!("event: {kind}\ndata: {{\"type\":\"{kind}\",\"sequence_number\":1{rest}}}\n\n")
    };
    let item = "\"output_index\":0,\"item\":{\"type\":\"message\",\"id\":\"msg_1\",\"content\":[]}";
    let delta = format!(
        ",\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\"{DELTA}\""
    );
    event("response.created", ",\"response\":{\"model\":\"m\"}")
        + &event("response.output_item.added", &format!(",{item}"))
        + &event("response.output_text.delta", &delta).repeat(deltas)
        + &event("response.output_item.done", &format!(",{item}"))
        + &event(
            "response.completed",
            ",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":100,\"output_tokens\":9}}",
        )
}

fn gemini(deltas: usize) -> String {
    let chunk = |finish: &str| {
        format!(
            "data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{DELTA}\"}}],\"role\":\"model\"}}{finish},\"index\":0}}],\"usageMetadata\":{{\"promptTokenCount\":100,\"candidatesTokenCount\":9,\"totalTokenCount\":109}},\"modelVersion\":\"m\",\"responseId\":\"r\"}}\r\n\r\n"
        )
    };
    chunk("").repeat(deltas - 1) + &chunk(",\"finishReason\":\"STOP\"")
}

fn chat(deltas: usize) -> String {
    let chunk = |delta: &str, finish: &str| {
        format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"m\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        )
    };
    chunk(&format!("{{\"content\":\"{DELTA}\"}}"), "null").repeat(deltas)
        + &chunk("{}", "\"stop\"")
        + "data: [DONE]\n\n"
}
