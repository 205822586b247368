//! Whatever the text and wherever it is cut: the pieces give what the whole
//! gives, no value is left, and a line of JSON stays JSON.

#![no_main]

use std::sync::LazyLock;

use agent::secret::Redactor;
use libfuzzer_sys::fuzz_target;

const VALUES: [&str; 3] = [
    "hunter2hunter2",
    "2hunter2-\"more\"\\",
    "line one 11\nline two 22",
];

static KNOWN: LazyLock<Redactor> =
    LazyLock::new(|| Redactor::new(VALUES.iter().map(|value| (*value).to_owned())));

/// Bytes below this number put in a value, so that there is something to find.
const FIRST_PLAIN: u8 = 4;

fuzz_target!(|input: (Vec<u8>, Vec<u8>)| {
    let (bytes, cuts) = input;
    let mut text = String::new();
    for piece in bytes.chunk_by(|one, other| (*one < FIRST_PLAIN) == (*other < FIRST_PLAIN)) {
        match piece.first() {
            Some(first) if *first < FIRST_PLAIN => {
                text.push_str(VALUES[usize::from(*first) % VALUES.len()]);
            }
            _ => text.push_str(&String::from_utf8_lossy(piece)),
        }
    }
    let whole = KNOWN.redact(&text).into_owned();
    for value in VALUES {
        assert!(
            !whole.contains(value),
            "{value:?} is left of {text:?}: {whole:?}"
        );
    }
    let mut stream = KNOWN.stream();
    let (mut shown, mut rest) = (String::new(), text.as_str());
    for cut in &cuts {
        let at = rest.ceil_char_boundary(usize::from(*cut).min(rest.len()));
        let (piece, after) = rest.split_at(at);
        shown.push_str(&stream.push(piece));
        rest = after;
    }
    shown.push_str(&stream.push(rest));
    shown.push_str(&stream.finish());
    assert_eq!(shown, whole, "{text:?} cut at {cuts:?}");
    let line = serde_json::json!({ "text": text, "next": 1 }).to_string();
    let shown = KNOWN.redact(&line);
    let read: Result<serde_json::Value, _> = serde_json::from_str(&shown);
    assert!(
        read.is_ok_and(|read| read["next"] == 1),
        "{line} became {shown}"
    );
});
