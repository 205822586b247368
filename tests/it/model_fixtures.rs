//! Recorded streams of the four dialects: what each becomes, and that it does
//! so however its bytes are cut.
//!
//! A line of `expected.jsonl` names a file and says the whole message that it
//! is, or the error. To add a stream, add its file and its line.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::OnceLock;

use agent::model::{Model, ModelErrorKind, ReplyBody, StreamEvent, wire};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::models::model;
use crate::support::streams::{decode, fold, pieces, summary};

/// A recorded stream.
struct Recorded {
    name: String,
    model: Model,
    bytes: Vec<u8>,
    expect: Value,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/streams")
}

fn all() -> &'static [Recorded] {
    static ALL: OnceLock<Vec<Recorded>> = OnceLock::new();
    ALL.get_or_init(|| {
        let lines = std::fs::read_to_string(folder().join("expected.jsonl")).expect("a file");
        lines.lines().map(recorded).collect()
    })
}

fn recorded(line: &str) -> Recorded {
    let mut expect: Value = serde_json::from_str(line).expect("JSON");
    let name = expect["stream"].as_str().expect("a name").to_owned();
    expect.as_object_mut().expect("an object").remove("stream");
    Recorded {
        model: model(match name.split('_').next() {
            Some("anthropic") => "anthropic/claude-sonnet-4-5",
            Some("chat") => "groq/openai/gpt-oss-120b",
            Some("responses") => "openai/gpt-5.2",
            Some("gemini") => "google/gemini-3-flash-preview",
            other => panic!("{other:?} is no dialect"),
        }),
        bytes: std::fs::read(folder().join(&name)).expect("a file"),
        name,
        expect,
    }
}

fn of(dialect: &str) -> impl Iterator<Item = &'static Recorded> {
    all()
        .iter()
        .filter(move |one| one.name.starts_with(dialect))
}

impl Recorded {
    fn is_reply(&self) -> bool {
        self.expect.get("error").is_none()
    }

    /// The message or the error, without what the clock and the catalog add.
    fn outcome(&self) -> Value {
        let (events, ended) = decode(&self.model, &[&self.bytes]);
        let replaced = events.contains(&StreamEvent::Replaced);
        let told = events
            .iter()
            .any(|event| matches!(event, StreamEvent::Usage(_)));
        match ended.and_then(|()| fold(&self.model, events)) {
            Err(error) => json!({
                "error": error.kind.name(),
                "code": error.code,
                "message": error.message,
            }),
            Ok(message) => {
                let mut outcome = summary(&message);
                if !told {
                    outcome["tokens"] = Value::Null;
                }
                if replaced {
                    outcome["replaced"] = true.into();
                }
                number_fresh_ids(&mut outcome);
                outcome
            }
        }
    }

    /// From how many bytes on the reply is whole: the end of the event that the
    /// dialect ends with.
    fn whole_from(&self) -> usize {
        let text = String::from_utf8_lossy(&self.bytes);
        if text.starts_with(['{', '[']) {
            return self.bytes.len();
        }
        let marks: &[&[u8]] = match self.name.split('_').next() {
            Some("anthropic") => &[b"\"type\":\"message_stop\""],
            Some("chat") => &[b"\"finish_reason\":\"", b"data: [DONE]"],
            Some("responses") => &[
                b"\"type\":\"response.completed\"",
                b"\"type\":\"response.incomplete\"",
            ],
            _ => &[b"\"finishReason\":\""],
        };
        let mark = marks
            .iter()
            .filter_map(|mark| find(&self.bytes, mark))
            .min();
        let mark = mark.expect("a whole stream has its end");
        let rest = &self.bytes[mark..];
        let ends: [&[u8]; 3] = [b"\n\n", b"\r\r", b"\r\n\r\n"];
        let end = ends.iter().filter_map(|end| find(rest, end)).min();
        mark + end.unwrap_or(rest.len())
    }
}

fn find(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}

/// Ids that stand for missing ones are random.
fn number_fresh_ids(outcome: &mut Value) {
    let blocks = outcome["content"].as_array_mut().expect("a list");
    let fresh = blocks
        .iter_mut()
        .filter_map(|block| block.get_mut("id"))
        .filter(|id| {
            id.as_str()
                .and_then(|id| id.strip_prefix("call_"))
                .is_some_and(|rest| rest.len() == 32)
        });
    for (number, id) in fresh.enumerate() {
        *id = format!("fresh {number}").into();
    }
}

#[test]
fn each_stream_becomes_what_is_expected() {
    let mut wrong = Vec::new();
    for one in all() {
        let outcome = one.outcome();
        if outcome != one.expect {
            let mut line = json!({"stream": one.name});
            line.as_object_mut()
                .expect("an object")
                .extend(outcome.as_object().expect("an object").clone());
            wrong.push(line.to_string());
        }
    }
    assert!(wrong.is_empty(), "these became:\n{}", wrong.join("\n"));
}

#[test]
fn each_file_has_its_line() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name")
        })
        .filter(|name| name.ends_with(".sse"))
        .collect();
    let lines: Vec<&String> = all().iter().map(|one| &one.name).collect();
    assert_eq!(lines, files.iter().collect::<Vec<_>>());
}

/// Events decide the message, so that equal events are equal messages.
fn assert_every_cut(dialect: &str) {
    for one in of(dialect) {
        let whole = decode(&one.model, &[&one.bytes]);
        for at in 0..=one.bytes.len() {
            let (before, after) = one.bytes.split_at(at);
            let cut = decode(&one.model, &[before, after]);
            assert_eq!(cut, whole, "{} cut at {at}", one.name);
        }
        let single: Vec<&[u8]> = one.bytes.chunks(1).collect();
        assert_eq!(decode(&one.model, &single), whole, "{} in bytes", one.name);
    }
}

#[test]
fn anthropic_cut_at_every_byte() {
    assert_every_cut("anthropic");
}

#[test]
fn chat_cut_at_every_byte() {
    assert_every_cut("chat");
}

#[test]
fn responses_cut_at_every_byte() {
    assert_every_cut("responses");
}

#[test]
fn gemini_cut_at_every_byte() {
    assert_every_cut("gemini");
}

/// A stream that ends early is never a reply, unless its end was said already.
fn assert_every_end(dialect: &str) {
    for one in of(dialect) {
        let whole_from = if one.is_reply() {
            one.whole_from()
        } else {
            usize::MAX
        };
        for at in 0..=one.bytes.len() {
            let (events, outcome) = decode(&one.model, &[&one.bytes[..at]]);
            let place = format!("{} ended at {at}", one.name);
            let stopped = matches!(events.last(), Some(StreamEvent::Stop(_)));
            assert_eq!(outcome.is_ok(), stopped, "{place}");
            assert_eq!(stopped, at >= whole_from, "{place}: {outcome:?}");
            if let Err(error) = outcome
                && one.is_reply()
            {
                assert_eq!(error.kind, ModelErrorKind::Truncated, "{place}: {error}");
            }
        }
    }
}

#[test]
fn anthropic_ended_at_every_byte() {
    assert_every_end("anthropic");
}

#[test]
fn chat_ended_at_every_byte() {
    assert_every_end("chat");
}

#[test]
fn responses_ended_at_every_byte() {
    assert_every_end("responses");
}

#[test]
fn gemini_ended_at_every_byte() {
    assert_every_end("gemini");
}

/// Decodes what may be anything: it ends with a reply or with an error, and
/// what it tells is not more than what came.
fn survive(model: &Model, bytes: &[u8]) {
    let mut body = ReplyBody::new(model);
    let mut events = wire::Events::new();
    let ended = body
        .push(bytes, &mut events)
        .and_then(|()| body.end(&mut events));
    let told: usize = events
        .iter()
        .map(|event| match event {
            StreamEvent::TextDelta { delta, .. }
            | StreamEvent::ThinkingDelta { delta, .. }
            | StreamEvent::ToolCallDelta { delta, .. } => delta.len(),
            _ => 1,
        })
        .sum();
    // A byte that is no text becomes three of U+FFFD.
    assert!(told <= 3 * bytes.len() + 8, "{told} of {}", bytes.len());
    if ended.is_ok() {
        assert!(matches!(events.back(), Some(StreamEvent::Stop(_))));
        let _ = fold(model, events.into());
    }
}

proptest! {
    #[test]
    fn random_pieces_give_the_same(
        which in any::<prop::sample::Index>(),
        sizes in prop::collection::vec(1usize..200, 1..60),
    ) {
        let one = which.get(all());
        let pieces = pieces(&one.bytes, &sizes);
        prop_assert_eq!(decode(&one.model, &pieces), decode(&one.model, &[&one.bytes]));
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let data = [b"data: ".as_slice(), &bytes].concat();
        for name in ["anthropic_plain", "chat_plain", "responses_plain", "gemini_plain"] {
            let one = of(name).next().expect("it is there");
            survive(&one.model, &bytes);
            survive(&one.model, &data);
        }
    }

    /// Streams with pieces removed, repeated, moved and overwritten.
    #[test]
    fn any_damage_is_survived(
        which in any::<prop::sample::Index>(),
        damage in prop::collection::vec(
            (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..4, any::<u8>()),
            1..6,
        ),
    ) {
        let one = which.get(all());
        let mut bytes = one.bytes.clone();
        for (from, to, how, byte) in damage {
            if bytes.is_empty() {
                break;
            }
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            let range = from.min(to)..from.max(to);
            match how {
                0 => drop(bytes.drain(range)),
                1 => bytes.extend_from_within(range),
                2 => bytes[from] = byte,
                _ => {
                    let piece: Vec<u8> = bytes.drain(range).collect();
                    let at = to.min(bytes.len());
                    bytes.splice(at..at, piece);
                }
            }
        }
        survive(&one.model, &bytes);
    }
}
