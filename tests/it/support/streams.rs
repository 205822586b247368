//! Streams fed to a dialect in pieces, and what comes of them.

use agent::message::AssistantMessage;
use agent::model::{
    Assembler, Model, ModelError, ModelErrorKind, ReplyBody, Request, StreamEvent, wire,
};
use serde_json::{Value, json};

/// The events of a stream that arrives in `pieces`, and how it ended.
pub(crate) fn decode(
    model: &Model,
    pieces: &[&[u8]],
) -> (Vec<StreamEvent>, Result<(), ModelError>) {
    let mut body = ReplyBody::new(model);
    let mut events = wire::Events::new();
    for piece in pieces {
        if let Err(error) = body.push(piece, &mut events) {
            return (events.into(), Err(error));
        }
    }
    let outcome = body.end(&mut events);
    (events.into(), outcome)
}

/// The bytes in pieces of these sizes, over and over.
pub(crate) fn pieces<'b>(bytes: &'b [u8], sizes: &[usize]) -> Vec<&'b [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at((*size).min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The message of a whole stream.
pub(crate) fn assemble(model: &Model, stream: &str) -> Result<AssistantMessage, ModelError> {
    let (events, outcome) = decode(model, &[stream.as_bytes()]);
    outcome?;
    fold(model, events)
}

/// The message of an answer that is one document.
pub(crate) fn assemble_document(model: &Model, body: &str) -> Result<AssistantMessage, ModelError> {
    let mut decoder = wire::decoder(model);
    let mut events = wire::Events::new();
    decoder.document(body, &mut events)?;
    decoder.end(&mut events)?;
    fold(model, events.into())
}

/// The message that these events are.
pub(crate) fn fold(
    model: &Model,
    events: Vec<StreamEvent>,
) -> Result<AssistantMessage, ModelError> {
    let mut assembler = Assembler::new(model);
    for event in events {
        assembler.push(event);
    }
    assembler.finish()
}

/// Content, stop reason and tokens (in, out, read, written, thought).
pub(crate) fn summary(message: &AssistantMessage) -> Value {
    let usage = &message.usage;
    json!({
        "content": message.content,
        "stop": message.stop_reason,
        "tokens": [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning],
    })
}

/// The kind of the error that a stream is.
pub(crate) fn kind(model: &Model, stream: &str) -> ModelErrorKind {
    assemble(model, stream)
        .expect_err("the stream is broken")
        .kind
}

/// A stream of these data lines.
pub(crate) fn lines<S: AsRef<str>>(data: &[S]) -> String {
    data.iter()
        .map(|line| format!("data: {}\n\n", line.as_ref()))
        .collect()
}

/// The body of a request.
pub(crate) fn body(model: &Model, request: &Request) -> Value {
    serde_json::from_slice(&wire::Encoder::new(model.clone()).encode(request)).expect("JSON")
}

/// Checks that each request begins with the bytes of the one before it.
pub(crate) fn assert_grows(model: &Model, requests: &[Request]) {
    let texts: Vec<String> = requests
        .iter()
        .map(|request| {
            String::from_utf8(wire::Encoder::new(model.clone()).encode(request).to_vec())
                .expect("UTF-8")
        })
        .collect();
    for pair in texts.windows(2) {
        let [before, now] = pair else { continue };
        let prefix = before.strip_suffix("]}").expect("the messages come last");
        assert!(now.starts_with(prefix), "{before}\n{now}");
    }
}

/// Checks a recorded stream: the same events however it is cut, whole from
/// `whole_from` bytes on and a retryable error before.
pub(crate) fn assert_cuts(model: &Model, stream: &[u8], whole_from: usize) {
    let whole = decode(model, &[stream]);
    assert_eq!(whole.1, Ok(()));
    for at in 0..=stream.len() {
        let (before, after) = stream.split_at(at);
        assert_eq!(decode(model, &[before, after]), whole, "cut at {at}");
        let (events, outcome) = decode(model, &[before]);
        let stopped = matches!(events.last(), Some(StreamEvent::Stop(_)));
        assert_eq!(outcome.is_ok(), stopped, "ended at {at}");
        assert_eq!(stopped, at >= whole_from, "ended at {at}");
        if let Err(error) = outcome {
            assert!(error.is_retryable(), "ended at {at}: {error}");
        }
    }
}
