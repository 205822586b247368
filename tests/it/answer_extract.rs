//! Which texts are answers: one JSON document, as it was written, or nothing.

use agent::session::ResponseSchema;
use proptest::prelude::*;
use serde_json::{Value, json};

fn object() -> ResponseSchema {
    ResponseSchema::compile(json!({"type": "object"})).unwrap()
}

fn anything() -> ResponseSchema {
    ResponseSchema::compile(json!({})).unwrap()
}

fn check(schema: &ResponseSchema, text: &str, expected: Result<Value, &str>) {
    let read = schema.read(text).map_err(|violations| {
        let all: Vec<String> = violations.iter().map(ToString::to_string).collect();
        all.join("; ")
    });
    match (&read, &expected) {
        (Ok(read), Ok(expected)) => assert_eq!(read, expected, "{text:?}"),
        (Err(read), Err(expected)) => assert!(read.contains(expected), "{text:?}: {read}"),
        _ => panic!("{text:?}: {read:?}, not {expected:?}"),
    }
}

#[test]
fn a_document_is_found_where_it_is_the_only_one() {
    let a = || Ok(json!({"a": 1}));
    for text in [
        "{\"a\": 1}",
        "  \n{\"a\": 1}\n\n",
        "\u{feff}{\"a\":1}",
        "```json\n{\"a\": 1}\n```",
        "```\n{\"a\": 1}\n```\n",
        "Here it is:\n\n```json\n{\n  \"a\": 1\n}\n```\nThat is all.",
        "The answer is {\"a\": 1}.",
        "{\"a\": 1} is the answer",
        // Braces and brackets of prose and code.
        "`fn main() { go(); }` in src/a[b].rs gives {\"a\": 1}",
        "See [1] and [note]: {\"a\": 1}",
    ] {
        check(&object(), text, a());
    }
    let nested = json!({"a": {"b": [1, {"c": "}```{"}]}});
    check(&object(), &format!("So: {nested}!"), Ok(nested.clone()));
}

#[test]
fn nothing_is_guessed_or_mended() {
    let table = [
        ("", "no JSON document"),
        ("Done.", "no JSON document"),
        ("{\"a\": 1,}", "not valid JSON"),
        ("{a: 1}", "not valid JSON"),
        ("{'a': 1}", "not valid JSON"),
        ("{\"a\": 1", "not valid JSON"),
        ("{\"a\": NaN}", "not valid JSON"),
        ("{\"a\": 1e999}", "not valid JSON"),
        ("{\"a\": 1} // done", ""),
        ("```json\n{\"a\": 1,}\n```", "not valid"),
        // A part of what is broken is not what was meant.
        ("{\"a\": {\"b\": 1},}", "not valid JSON"),
        ("So: {\"a\": {\"b\": 1}", "not valid"),
        ("So: [1, {\"b\": 1},]", "not valid"),
        ("So: [true, {\"b\": 1},]", "not valid"),
        ("So: {", "not valid"),
        ("{\"a\": 1}\n{\"a\": 2}", "several"),
        ("{\"a\": 1} or {\"a\": 1}", "several"),
        ("First {\"draft\": 1}\n```json\n{\"a\": 2}\n```", "several"),
        ("[{\"a\": 1}]", "want object"),
        ("\"{\\\"a\\\": 1}\"", "want object"),
        (
            "{\"a\": 1, \"a\": 2}",
            "at `/a`: the property is there more",
        ),
        ("{\"x\": [{\"~/\": 1, \"~/\": 1}]}", "at `/x/0/~0~1`"),
    ];
    for (text, why) in table {
        if why.is_empty() {
            // A comment behind the document is prose.
            check(&object(), text, Ok(json!({"a": 1})));
        } else {
            check(&object(), text, Err(why));
        }
    }
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    check(&anything(), &deep, Err("not valid"));
}

#[test]
fn a_document_of_any_kind_counts_where_the_schema_allows_it() {
    check(&anything(), "null", Ok(json!(null)));
    check(&anything(), " 42 ", Ok(json!(42)));
    check(&anything(), "\"yes\"", Ok(json!("yes")));
    check(&anything(), "It is [1, 2].", Ok(json!([1, 2])));
    check(&anything(), "It is 42.", Err("no JSON document"));
    check(&anything(), "See [1]: {\"a\": 1}", Err("several"));
}

#[test]
fn a_number_is_kept_or_refused() {
    for kept in [
        "0",
        "-0",
        "1",
        "1.0",
        "1.10",
        "-2.50e-3",
        "0.1",
        "1E5",
        "1e+5",
        "0.30000000000000004",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "1e300",
        "1e22",
        "123456789012345680000",
        "0.000",
        "0e9",
        "2.2250738585072014e-308",
    ] {
        let read = object().read(&format!("{{\"n\": {kept}}}"));
        assert!(read.is_ok(), "{kept}: {read:?}");
    }
    for lost in [
        "18446744073709551616",
        "-9223372036854775809",
        "12345678901234567890123",
        "0.12345678901234567890",
        "3.14159265358979323846",
        "9007199254740993.5",
        "1e-400",
    ] {
        let read = object().read(&format!("{{\"n\": [{lost}]}}")).unwrap_err();
        assert_eq!(read[0].path, "/n/0", "{lost}");
        assert!(read[0].rule.contains("digits"), "{lost}: {}", read[0].rule);
    }
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
        "[{}\\[\\]\"`,: ]{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,4}", inner, 0..4).prop_map(Value::from_iter),
        ]
    });
    prop::collection::btree_map("[a-z\"{]{0,4}", value, 0..4).prop_map(Value::from_iter)
}

proptest! {
    /// Whatever is written is read as it was, alone and in prose.
    #[test]
    fn what_is_written_is_what_is_read(document in document(), before in "[a-z .`\n]{0,12}") {
        let schema = object();
        prop_assert_eq!(schema.read(&document.to_string()), Ok(document.clone()));
        let pretty = format!("{before}{document:#}{before}");
        prop_assert_eq!(schema.read(&pretty), Ok(document));
    }

    /// Half a document is none, and nothing in it is.
    #[test]
    fn a_cut_document_is_never_an_answer(document in document(), at in any::<prop::sample::Index>()) {
        let text = document.to_string();
        let mut cut = at.index(text.len());
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        prop_assert!(object().read(&text[..cut]).is_err());
    }

    /// No text makes the reader fail.
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|[{}\\[\\]\",:0-9a\n`]{0,64}") {
        if let Ok(value) = object().read(&text) {
            prop_assert!(value.is_object());
        }
    }
}
