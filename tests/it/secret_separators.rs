//! Secrets with something between their characters that a reader, a shell or a
//! JSON parser does not take for a character: in text, in pieces, in JSON.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::borrow::Cow;
use std::sync::LazyLock;

use agent::secret::Redactor;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;

use crate::support::pieces::in_pieces;
use crate::support::separators::{SECRET, SEPARATORS, shows};

const TOKEN: &str = "ghp_Zr8QmX2vT5nK9wL4pJ7cB1hY6sD3fG0a2345";

static KNOWN: LazyLock<Redactor> = LazyLock::new(|| {
    let values = [
        SECRET,
        "correct horse battery staple",
        "it's \"quoted\" 4 me",
    ];
    Redactor::new(values.map(str::to_owned))
});

/// `text` with `separator` after its first `at` bytes.
fn parted(text: &str, at: usize, separator: &str) -> String {
    let (head, tail) = text.split_at(at);
    format!("{head}{separator}{tail}")
}

/// Redacts the whole, and checks that pieces give the same.
fn shown(redactor: &Redactor, text: &str) -> String {
    let whole = redactor.redact(text).into_owned();
    for sizes in [&[1][..], &[2, 5], &[7]] {
        assert_eq!(
            in_pieces(redactor, text, sizes),
            whole,
            "{text:?} in {sizes:?}"
        );
    }
    whole
}

#[test]
fn one_separator_at_any_place_hides_no_value() {
    for (name, separator) in SEPARATORS {
        for at in 1..SECRET.len() {
            let text = format!("is {} so", parted(SECRET, at, separator));
            assert_eq!(shown(&KNOWN, &text), "is *** so", "{name} at {at}");
        }
    }
}

#[test]
fn a_separator_between_all_characters_hides_no_value() {
    for (name, separator) in SEPARATORS {
        let letters: Vec<String> = SECRET.chars().map(String::from).collect();
        let text = format!("is {} so", letters.join(separator));
        assert_eq!(shown(&KNOWN, &text), "is *** so", "{name}");
    }
    let all: String = SEPARATORS.iter().map(|(_, separator)| *separator).collect();
    let text = format!("is {} so", parted(SECRET, 5, &all));
    assert_eq!(shown(&KNOWN, &text), "is *** so");
}

#[test]
fn encoded_values_are_found_too() {
    let coded = STANDARD.encode(format!("abc{SECRET}"));
    let hex: String = SECRET.bytes().map(|byte| format!("{byte:02x}")).collect();
    for (name, separator) in SEPARATORS {
        let text = shown(&KNOWN, &parted(&coded, 12, separator));
        assert!(text.len() < 12 && text.contains("***"), "{name}: {text:?}");
        assert_eq!(shown(&KNOWN, &parted(&hex, 11, separator)), "***", "{name}");
    }
}

#[test]
fn characters_that_json_escapes_are_read() {
    let escaped = |at: usize| {
        let code = u32::from(SECRET.as_bytes()[at]);
        format!("{}\\u{code:04x}{}", &SECRET[..at], &SECRET[at + 1..])
    };
    for at in 0..SECRET.len() {
        let line = format!("{{\"a\":\"{}\",\"b\":1}}", escaped(at));
        assert_eq!(shown(&KNOWN, &line), "{\"a\":\"***\",\"b\":1}", "{at}");
        let hex = escaped(at).replace("\\u00", "\\x");
        assert_eq!(shown(&KNOWN, &hex), "***", "{at}");
    }
    assert_eq!(
        shown(&KNOWN, r"cor\u0072ect\u0020horse battery staple"),
        "***"
    );
    assert_eq!(
        shown(&KNOWN, "correct horse\n  battery\u{a0}staple!"),
        "***!"
    );
}

#[test]
fn lines_of_diffs_and_quotations_are_joined() {
    for text in [
        "+KQ7ZW9LM\n+4XC2VD8PJ5",
        "> KQ7ZW9LM\n> 4XC2VD8PJ5",
        "    # KQ7ZW9LM\r\n    # 4XC2VD8PJ5",
        "KQ7ZW9LM\\\n    4XC2VD8PJ5",
    ] {
        let shown = shown(&KNOWN, text);
        assert!(shown.ends_with("***"), "{shown:?}");
    }
}

#[test]
fn tokens_are_found_too() {
    let none = Redactor::default();
    for (name, separator) in SEPARATORS {
        for at in [2, 4, 9, 25] {
            let text = format!("is {} so", parted(TOKEN, at, separator));
            assert_eq!(shown(&none, &text), "is *** so", "{name} at {at}");
        }
    }
    // Behind the least length what is not seen belongs to it, and a quote ends it.
    assert_eq!(shown(&none, &parted(TOKEN, 36, "\u{200b}")), "***");
    let quoted = format!("'{TOKEN}'\nnext");
    assert_eq!(shown(&none, &quoted), "'***'\nnext");
}

#[test]
fn a_line_of_json_stays_json() {
    for (name, separator) in SEPARATORS {
        for at in [1, 9] {
            let text = format!("\n{}\n", parted(SECRET, at, separator));
            let line = serde_json::json!({"a": text, "b": 1}).to_string();
            let shown = shown(&KNOWN, &line);
            let parsed: serde_json::Value = serde_json::from_str(&shown)
                .unwrap_or_else(|error| panic!("{name}: {shown}: {error}"));
            assert_eq!(
                (&parsed["a"], &parsed["b"]),
                (&"\n***\n".into(), &1.into()),
                "{name}"
            );
            let twice = serde_json::json!({"c": line}).to_string();
            let shown = KNOWN.redact(&twice).into_owned();
            assert!(!shows(&shown), "{name}: {shown}");
            serde_json::from_str::<serde_json::Value>(&shown).unwrap();
        }
    }
}

#[test]
fn what_is_not_whole_stays() {
    for (name, separator) in SEPARATORS {
        for text in [
            format!("is {separator}KQ7ZW9{separator}LM4XC2VD8 so"),
            format!("{separator}{separator} {SECRET:.9} {separator}"),
            format!("KQ7ZW9LM4{separator}.XC2VD8PJ5"),
        ] {
            assert_eq!(shown(&KNOWN, &text), text, "{name}");
        }
    }
    assert!(matches!(
        KNOWN.redact("a\nb\"c\" \\n \u{200b}"),
        Cow::Borrowed(_)
    ));
}

#[test]
fn a_stream_holds_back_little_behind_a_separator() {
    let mut stream = KNOWN.stream();
    assert_eq!(stream.push("line\nnext \"K"), "line\nnext \"");
    assert_eq!(stream.push("Q7\u{1b}[3"), "");
    assert_eq!(stream.push("1mZW9LM4XC2VD8PJ5\" ."), "***\" .");
    // A value that never comes is given back.
    assert_eq!(stream.push("KQ7\u{1b}]8;;"), "");
    let long = "x".repeat(5_000);
    assert!(stream.push(&long).len() >= 5_000);
}

#[test]
fn what_one_learns_all_know() {
    let redactor = Redactor::default();
    let other = redactor.clone();
    assert_eq!(redactor.redact(SECRET), SECRET);
    assert_eq!(other.learn([SECRET.to_owned(), "short".to_owned()]), 1);
    assert_eq!(other.learn([SECRET.to_owned()]), 0);
    assert_eq!(redactor.redact(SECRET), "***");
    assert_eq!(redactor.ignored(), 1);
    assert_eq!(Redactor::default().redact(SECRET), SECRET);
}

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(SECRET.to_owned()),
        Just("KQ7Z".to_owned()),
        Just("W9LM4XC2VD8PJ5".to_owned()),
        Just("correct horse".to_owned()),
        Just(" battery staple".to_owned()),
        Just("it's \"quot".to_owned()),
        Just("ed\" 4 me".to_owned()),
        Just(TOKEN[..14].to_owned()),
        Just(TOKEN[14..].to_owned()),
        Just("gh".to_owned()),
        Just("p_".to_owned()),
        prop::sample::select(SEPARATORS).prop_map(|(_, separator)| separator.to_owned()),
        Just("\u{1b}".to_owned()),
        Just("\\".to_owned()),
        Just("\\u".to_owned()),
        "[ -~\n]{0,6}",
        ".{0,3}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn pieces_give_what_the_whole_gives_with_separators(
        fragments in prop::collection::vec(fragment(), 0..10),
        sizes in prop::collection::vec(1usize..30, 1..20),
    ) {
        let text = fragments.concat();
        let shown = in_pieces(&KNOWN, &text, &sizes);
        prop_assert_eq!(shown, KNOWN.redact(&text));
    }

    #[test]
    fn any_separators_anywhere_hide_no_value(
        separators in prop::collection::vec(prop::sample::select(SEPARATORS), SECRET.len()),
        every in 1usize..6,
    ) {
        let mut text = String::new();
        for (at, (letter, (_, separator))) in SECRET.chars().zip(separators).enumerate() {
            text.push(letter);
            if at % every == 0 && at + 1 < SECRET.len() {
                text.push_str(separator);
            }
        }
        prop_assert_eq!(KNOWN.redact(&text), "***");
    }
}

/// Line breaks with indentation can be read in many ways, which lead to few places.
#[test]
fn a_text_of_separators_is_searched_in_few_steps() {
    let redactor = Redactor::new(["sesame-open-42".to_owned()]);
    let broken: Vec<String> = "sesame-open-42".chars().map(String::from).collect();
    for (between, count) in [("\n\t", 14), ("\n\t\n\t", 7), ("\"\n'\t", 7)] {
        let noise = format!("s{}", between.repeat(count)).repeat(300);
        let text = format!("{noise}{}{noise}", broken.join(&between.repeat(count)));
        let shown = redactor.redact(&text);
        assert!(shown.contains("***"), "{between:?}");
        assert!(!shown.contains("42"), "{between:?}");
    }
}
