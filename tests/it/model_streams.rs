//! Streams of both dialects, as servers send them, in any pieces.

use agent::message::StopReason;
use agent::model::{Assembler, Model, ModelError, ModelErrorKind, SseDecoder, StreamEvent, wire};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::models::model;

const ANTHROPIC: &[u8] = include_bytes!("../fixtures/streams/anthropic_tools.sse");
const CHAT: &[u8] = include_bytes!("../fixtures/streams/chat_interleaved.sse");

fn anthropic() -> Model {
    model("anthropic/claude-sonnet-4-5")
}

fn chat() -> Model {
    model("groq/openai/gpt-oss-120b")
}

/// The events of a stream that arrives in `pieces`, and how it ended.
fn decode(model: &Model, pieces: &[&[u8]]) -> (Vec<StreamEvent>, Result<(), ModelError>) {
    let mut sse = SseDecoder::new();
    let mut decoder = wire::decoder(model);
    let mut events = wire::Events::new();
    let mut outcome = Ok(());
    let mut frames = Vec::new();
    for piece in pieces {
        sse.push(piece, &mut frames).expect("small");
    }
    sse.finish(&mut frames).expect("small");
    for frame in frames {
        outcome = decoder.frame(&frame, &mut events);
        if outcome.is_err() {
            break;
        }
    }
    if outcome.is_ok() {
        outcome = decoder.end(&mut events);
    }
    (events.into(), outcome)
}

/// The whole message, without what the catalog and the clock add.
fn assemble(model: &Model, stream: &str) -> Result<Value, ModelError> {
    let (events, outcome) = decode(model, &[stream.as_bytes()]);
    outcome?;
    let mut assembler = Assembler::new(model);
    for event in events {
        assembler.push(event);
    }
    let message = assembler.finish()?;
    Ok(json!({
        "content": message.content,
        "stop": message.stop_reason,
        "tokens": [message.usage.input, message.usage.output, message.usage.cache_read,
            message.usage.cache_write, message.usage.reasoning],
    }))
}

fn kind(model: &Model, stream: &str) -> ModelErrorKind {
    assemble(model, stream)
        .expect_err("the stream is broken")
        .kind
}

/// A chat stream of these data lines.
fn lines(data: &[&str]) -> String {
    data.iter()
        .map(|line| format!("data: {line}\n\n"))
        .collect()
}

#[test]
fn anthropic_thinking_text_and_calls() {
    let stream = std::str::from_utf8(ANTHROPIC).expect("UTF-8");
    assert_eq!(
        assemble(&anthropic(), stream).expect("whole"),
        json!({
            "content": [
                {"type": "thinking", "thinking": "Let me look – 看看 🙂", "thinkingSignature": "EqoBCkgI"},
                {"type": "thinking", "thinking": "", "thinkingSignature": "AAAA", "redacted": true},
                {"type": "text", "text": "Ich prüfe zwei Dateien."},
                {"type": "toolCall", "id": "toolu_01", "name": "read", "arguments": {"path": "ü/a.rs"}},
                {"type": "toolCall", "id": "toolu_02", "name": "ls", "arguments": {}},
            ],
            "stop": "toolUse",
            "tokens": [12, 89, 4000, 300, 0],
        })
    );
}

#[test]
fn chat_thinking_text_and_interleaved_calls() {
    let stream = std::str::from_utf8(CHAT).expect("UTF-8");
    let mut message = assemble(&chat(), stream).expect("whole");
    let missing = message["content"][4]["id"].take();
    assert!(
        missing.as_str().is_some_and(|id| id.starts_with("call_")),
        "{missing}"
    );
    assert_eq!(
        message,
        json!({
            "content": [
                {"type": "thinking", "thinking": "Two files – 看"},
                {"type": "text", "text": "Ich prüfe 🙂."},
                {"type": "toolCall", "id": "call_a", "name": "read", "arguments": {"path": "a.rs"}},
                {"type": "toolCall", "id": "call_b", "name": "grep", "arguments": {"pattern": "ü"}},
                {"type": "toolCall", "id": null, "name": "ls", "arguments": {}},
            ],
            "stop": "toolUse",
            "tokens": [200, 50, 800, 0, 20],
        })
    );
}

#[test]
fn every_cut_gives_the_same_events() {
    for (model, stream) in [(anthropic(), ANTHROPIC), (chat(), CHAT)] {
        let whole = decode(&model, &[stream]);
        assert_eq!(whole.1, Ok(()));
        for at in 0..=stream.len() {
            let (before, after) = stream.split_at(at);
            assert_eq!(decode(&model, &[before, after]), whole, "cut at {at}");
        }
    }
}

proptest! {
    #[test]
    fn every_piece_size_gives_the_same_events(size in 1usize..200) {
        for (model, stream) in [(anthropic(), ANTHROPIC), (chat(), CHAT)] {
            let pieces: Vec<&[u8]> = stream.chunks(size).collect();
            prop_assert_eq!(decode(&model, &pieces), decode(&model, &[stream]));
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for model in [anthropic(), chat()] {
            let mut stream = b"data: ".to_vec();
            stream.extend_from_slice(&bytes);
            let (events, outcome) = decode(&model, &[&stream]);
            prop_assert!(outcome.is_err() || events.iter().any(|e| matches!(e, StreamEvent::Stop(_))));
        }
    }
}

#[test]
fn a_stream_that_ends_early_is_never_a_reply() {
    for (model, stream, whole_from) in [
        (anthropic(), ANTHROPIC, "data: {\"type\":\"message_stop\"}"),
        (chat(), CHAT, "\"finish_reason\":\"tool_calls\"}]}"),
    ] {
        let text = std::str::from_utf8(stream).expect("UTF-8");
        let whole_from = text.find(whole_from).expect("it is there") + whole_from.len();
        for at in 0..=stream.len() {
            let (events, outcome) = decode(&model, &[&stream[..at]]);
            let stopped = events
                .iter()
                .any(|event| matches!(event, StreamEvent::Stop(_)));
            assert_eq!(outcome.is_ok(), stopped, "cut at {at}");
            assert_eq!(stopped, at >= whole_from, "cut at {at}");
            assert!(outcome.is_ok() || outcome.expect_err("checked").is_retryable());
        }
    }
}

#[test]
fn nothing_comes_after_the_end() {
    for (model, stream) in [(anthropic(), ANTHROPIC), (chat(), CHAT)] {
        let twice = [stream, stream].concat();
        assert_eq!(decode(&model, &[&twice]), decode(&model, &[stream]));
    }
}

#[test]
fn chat_ends_in_many_ways() {
    let text = r#"{"choices":[{"delta":{"content":"hi"}}]}"#;
    let stop =
        |reason: &str| format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{reason}"}}]}}"#);
    let check = |data: &[&str], expect: StopReason| {
        let message = assemble(&chat(), &lines(data)).expect("whole");
        assert_eq!(message["stop"], json!(expect), "{data:?}");
    };
    check(&[text, &stop("stop"), "[DONE]"], StopReason::Stop);
    check(&[text, &stop("stop")], StopReason::Stop);
    check(&[text, "[DONE]"], StopReason::Stop);
    check(&[text, &stop("length"), "[DONE]"], StopReason::Length);
    check(
        &[text, &stop("content_filter"), "[DONE]"],
        StopReason::Refusal,
    );
    check(&[text, &stop("eos"), "[DONE]"], StopReason::Stop);
    check(
        &[r#"{"choices":[{"delta":{"refusal":"no"}}]}"#, "[DONE]"],
        StopReason::Refusal,
    );
    // A server that says `stop` although it called a tool.
    let call = r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"ls","arguments":"{}"}}]}}]}"#;
    check(&[call, &stop("stop"), "[DONE]"], StopReason::ToolUse);
    check(&[call, "[DONE]"], StopReason::ToolUse);
    check(&[text, &stop("tool_calls"), "[DONE]"], StopReason::Stop);

    assert_eq!(kind(&chat(), &lines(&[text])), ModelErrorKind::Truncated);
    assert_eq!(kind(&chat(), ""), ModelErrorKind::Truncated);
    assert_eq!(
        kind(&chat(), &lines(&["[DONE]"])),
        ModelErrorKind::Truncated
    );
    assert_eq!(
        kind(&chat(), &lines(&[text, &stop("error")])),
        ModelErrorKind::Unavailable
    );
}

#[test]
fn chat_calls_in_odd_shapes() {
    let call = |piece: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{piece}]}}}}]}}"#);
    let calls = |pieces: &[&str]| -> Value {
        let mut data: Vec<String> = pieces.iter().map(|piece| call(piece)).collect();
        data.push("[DONE]".to_owned());
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        let message = assemble(&chat(), &lines(&data)).expect("whole");
        let list = message["content"].as_array().expect("a list");
        list.iter()
            .map(|call| {
                json!([
                    call["id"],
                    call["name"],
                    call["arguments"],
                    call["invalidArguments"]
                ])
            })
            .collect()
    };
    // All calls numbered zero, each with an id of its own.
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#,
            r#"{"index":0,"id":"b","function":{"name":"y","arguments":"{}"}}"#,
        ]),
        json!([["a", "x", {}, null], ["b", "y", {}, null]])
    );
    // Id and name repeated in every piece.
    assert_eq!(
        calls(&[
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\""}}"#,
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":":1}"}}"#,
        ]),
        json!([["a", "x", {"k": 1}, null]])
    );
    // No index, the arguments before the name, an object instead of text.
    assert_eq!(
        calls(&[
            r#"{"id":"a","function":{"arguments":"{\"k\":"}}"#,
            r#"{"id":"a","function":{"name":"x","arguments":"2}"}}"#,
            r#"{"id":"b","function":{"name":"y","arguments":{"z":3}}}"#,
        ]),
        json!([["a", "x", {"k": 2}, null], ["b", "y", {"z": 3}, null]])
    );
    // Not JSON, not an object, too deep: the raw text is kept.
    let deep = format!(
        r#"{{"index":0,"id":"a","function":{{"name":"x","arguments":"{}"}}}}"#,
        "[".repeat(10_000)
    );
    for (piece, raw) in [
        (
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{\"k\":"}}"#,
            "{\"k\":".to_owned(),
        ),
        (
            r#"{"index":0,"id":"a","function":{"name":"x","arguments":"[1]"}}"#,
            "[1]".to_owned(),
        ),
        (deep.as_str(), "[".repeat(10_000)),
    ] {
        assert_eq!(calls(&[piece]), json!([["a", "x", {}, raw]]));
    }
    // The same call twice is one call; the same id for another call is renamed.
    let same = r#"{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}"#;
    let again = r#"{"index":1,"id":"a","function":{"name":"x","arguments":"{}"}}"#;
    let other = r#"{"index":2,"id":"a","function":{"name":"y","arguments":"{}"}}"#;
    let list = calls(&[same, again, other]);
    assert_eq!(list.as_array().map(Vec::len), Some(2), "{list}");
    assert_ne!(list[1][0], json!("a"));
}

#[test]
fn chat_usage_that_makes_no_sense_is_not_known() {
    let text = r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#;
    for usage in [
        r#"{"choices":[],"usage":{"prompt_tokens":-1,"completion_tokens":5}}"#,
        r#"{"choices":[],"usage":null}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":7}}"#,
    ] {
        let (events, _) = decode(&chat(), &[lines(&[text, usage, "[DONE]"]).as_bytes()]);
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, StreamEvent::Usage(_))),
            "{events:?}"
        );
    }
}

#[test]
fn errors_inside_a_stream_are_typed() {
    let overloaded = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    assert_eq!(kind(&anthropic(), overloaded), ModelErrorKind::Overloaded);
    let router =
        lines(&[r#"{"error":{"code":429,"message":"Provider returned error"},"choices":[]}"#]);
    assert_eq!(kind(&chat(), &router), ModelErrorKind::RateLimited);
    assert_eq!(
        kind(&chat(), &lines(&[r#"{"error":"out of memory"}"#])),
        ModelErrorKind::Unavailable
    );
    assert_eq!(
        kind(&chat(), &lines(&["{broken"])),
        ModelErrorKind::BadResponse
    );
    assert_eq!(
        kind(&anthropic(), &lines(&["{broken"])),
        ModelErrorKind::BadResponse
    );
}

#[test]
fn anthropic_events_out_of_order_are_refused() {
    let start =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let delta =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}"#;
    let stop = r#"{"type":"content_block_stop","index":0}"#;
    for data in [vec![delta], vec![start, stop, delta], vec![start, start]] {
        assert_eq!(
            kind(&anthropic(), &lines(&data)),
            ModelErrorKind::BadResponse,
            "{data:?}"
        );
    }
}

#[test]
fn anthropic_stop_reasons() {
    let with = |reason: &str| {
        lines(&[
            r#"{"type":"message_start","message":{}}"#,
            &format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}"}}}}"#),
            r#"{"type":"message_stop"}"#,
        ])
    };
    for (reason, expect) in [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
    ] {
        assert_eq!(
            assemble(&anthropic(), &with(reason)).expect("whole")["stop"],
            expect
        );
    }
    assert_eq!(
        kind(&anthropic(), &with("model_context_window_exceeded")),
        ModelErrorKind::ContextOverflow
    );
}

#[test]
fn a_usage_of_zero_for_a_prompt_is_not_known() {
    let usage = |input: u64| json!({"input_tokens": input, "output_tokens": 0});
    let stream = |input: u64| {
        let start =
            json!({"type": "message_start", "message": {"model": "m", "usage": usage(input)}});
        let delta = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 3}});
        let stop = json!({"type": "message_stop"});
        [start, delta, stop]
            .map(|event| {
                format!(
                    "event: {}\ndata: {event}\n\n",
                    event["type"].as_str().unwrap_or_default()
                )
            })
            .concat()
    };
    let counts = |input: u64| {
        let (events, outcome) = decode(&anthropic(), &[stream(input).as_bytes()]);
        assert_eq!(outcome, Ok(()));
        events
            .iter()
            .any(|event| matches!(event, StreamEvent::Usage(_)))
    };
    assert!(!counts(0));
    assert!(counts(5));
}

#[test]
fn control_characters_in_strings_of_arguments_are_repaired() {
    let call = |arguments: &str| {
        let function = json!({"name": "write", "arguments": arguments});
        let delta = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": function}]}}]});
        let message = assemble(&chat(), &lines(&[&delta.to_string(), "[DONE]"])).expect("whole");
        message["content"][0].clone()
    };
    let repaired = call("{\n\t\"text\": \"one\ntwo\tthree \\\" \\\\\", \"more\": \"\r\n\u{1}\"\n}");
    assert_eq!(
        repaired["arguments"],
        json!({"text": "one\ntwo\tthree \" \\", "more": "\r\n\u{1}"})
    );
    assert_eq!(repaired["invalidArguments"], Value::Null);
    for unclear in [
        "{\"text\": \"one\ntwo}",
        "{\"text\": \"say \"one\n\" to it\"}",
        "{\"text\": \"one\ntwo\"} {}",
        "{\"text\": \"a backslash \\\n before a line break\"}",
    ] {
        assert_eq!(call(unclear)["invalidArguments"], unclear);
    }
}
