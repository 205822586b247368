//! Redaction: values, encodings, token shapes, pieces.

use std::borrow::Cow;
use std::sync::LazyLock;

use agent::secret::{Redactor, weakness};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;

use crate::support::pieces::in_pieces;

const VALUE: &str = "p@ss/w\"rd & 'co' ünd mehr";

fn knows(values: &[&str]) -> Redactor {
    Redactor::new(values.iter().map(|value| (*value).to_owned()))
}

fn check(redactor: &Redactor, text: &str, expect: &str) {
    assert_eq!(redactor.redact(text), expect, "{text}");
}

#[test]
fn values_become_stars() {
    let redactor = knows(&["hunter2hunter2", " spaced-value\n", "short"]);
    check(&redactor, "a hunter2hunter2 b", "a *** b");
    check(&redactor, "spaced-value", "***");
    check(&redactor, "hunter2hunter2hunter2hunter2!", "***!");
    check(&redactor, "hunter2hunter", "hunter2hunter");
    check(&redactor, "a short one", "a short one");
    assert_eq!(redactor.ignored(), 1);
    assert_eq!(knows(&["", "  "]).ignored(), 0);
}

#[test]
fn overlapping_values_leave_no_rest() {
    let redactor = knows(&["abcdefgh", "efghijkl", "abcdefghijkl-and-more"]);
    check(&redactor, "<abcdefghijkl>", "<***>");
    check(&redactor, "<abcdefghijkl-and-more>", "<***>");
}

#[test]
fn innocent_text_is_borrowed() {
    let redactor = knows(&["hunter2hunter2"]);
    for text in [
        "",
        "nothing here",
        "task-force sk-short eyJ AKIA",
        "-----BEGIN CERTIFICATE-----",
    ] {
        assert!(
            matches!(redactor.redact(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
    assert!(matches!(
        Redactor::default().redact("x"),
        Cow::Borrowed("x")
    ));
}

#[test]
fn encodings_are_known() {
    let redactor = knows(&[VALUE]);
    let json = serde_json::to_string(VALUE).unwrap();
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    for text in [
        VALUE.to_owned(),
        json.clone(),
        serde_json::to_string(&json).unwrap(),
        hex.to_uppercase(),
        hex,
        "p%40ss%2Fw%22rd%20%26%20%27co%27%20%C3%BCnd%20mehr".into(),
        "p%40ss%2fw%22rd+%26+%27co%27+%c3%bcnd+mehr".into(),
        "p%40ss%2Fw%22rd%20%26%20'co'%20%C3%BCnd%20mehr".into(),
        r#"p@ss/w\"rd & 'co' \u00fcnd mehr"#.into(),
        r#"p@ss\/w\"rd & 'co' ünd mehr"#.into(),
        r#"'p@ss/w"rd & '\''co'\'' ünd mehr'"#.into(),
        "p@ss/w&quot;rd &amp; &#39;co&#39; ünd mehr".into(),
    ] {
        let shown = redactor.redact(&text).into_owned();
        assert!(shown.contains("***"), "{text}");
        assert!(shown.len() <= "\"\\\"***\\\"\"".len(), "{text}: {shown}");
    }
}

#[test]
fn base64_is_known_at_every_offset() {
    let redactor = knows(&["a-rather-long-password"]);
    for before in ["", "u", "us", "use", "user:"] {
        for after in ["", "!", "!!", "!!!"] {
            let whole = format!("{before}a-rather-long-password{after}");
            for text in [STANDARD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)] {
                let shown = redactor.redact(&text).into_owned();
                assert!(shown.contains("***"), "{whole}");
                // Of the value itself, two characters at each border may show.
                assert!(
                    shown.len() <= 3 + (before.len() + after.len()) * 4 / 3 + 9,
                    "{whole}: {shown}"
                );
            }
        }
    }
}

#[test]
fn lines_of_a_value_are_values() {
    let redactor = knows(&["first-line-of-it\n  second-line-of-it\nend"]);
    check(&redactor, "x first-line-of-it y", "x *** y");
    check(&redactor, "12: second-line-of-it", "12: ***");
    check(&redactor, "the end", "the end");
}

fn token(start: &str, count: usize) -> String {
    let body = "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3";
    format!(
        "{start}{}",
        body.chars().cycle().take(count).collect::<String>()
    )
}

#[test]
fn token_shapes_are_known() {
    let none = Redactor::default();
    for text in [
        token("ghp_", 36),
        token("gho_", 36),
        token("ghs_", 36),
        token("github_pat_", 82),
        token("glpat-", 20),
        token("sk-ant-api03-", 90),
        token("sk-proj-", 48),
        token("sk-", 48),
        token("AIza", 35),
        token("xoxb-", 50),
        "AKIAIOSFODNN7EXAMPLE".into(),
        format!(
            "{}.{}.{}",
            token("eyJ", 33),
            token("eyJ", 60),
            token("", 43)
        ),
    ] {
        check(&none, &text, "***");
        check(&none, &format!("token={text}, next"), "token=***, next");
        check(
            &none,
            &format!("{{\"a\":\"\\n{text}\\n\"}}"),
            "{\"a\":\"\\n***\\n\"}",
        );
    }
}

#[test]
fn words_are_not_tokens() {
    let none = Redactor::default();
    for text in [
        "ghp_short",
        "sk-learn",
        "a-task-with-a-very-long-name-that-goes-on-and-on",
        "desk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "AKIA",
        "eyJhbGciOiJIUzI1NiJ9",
        "crate::eyJ.method.call",
        "if text.starts_with(\"-----BEGIN PRIVATE KEY-----\") { return }",
    ] {
        check(&none, text, text);
    }
}

fn pem(line_break: &str) -> String {
    let body = token("MII", 61);
    [
        "-----BEGIN RSA PRIVATE KEY-----",
        &body,
        &body,
        "-----END RSA PRIVATE KEY-----",
    ]
    .join(line_break)
}

#[test]
fn private_keys_are_known() {
    let none = Redactor::default();
    check(
        &none,
        &format!("key:\n{}\nend", pem("\n")),
        "key:\n***\nend",
    );
    check(&none, &format!("{}\nend", pem("\n    ")), "***\nend");
    check(
        &none,
        &format!("{{\"key\":\"{}\"}}", pem("\\n")),
        "{\"key\":\"***\"}",
    );
    // Cut off by a limit, it must not take the rest of the line with it.
    let cut = &pem("\\n")[..70];
    check(
        &none,
        &format!("{{\"key\":\"{cut}\",\"next\":1}}"),
        "{\"key\":\"***\",\"next\":1}",
    );
}

#[test]
fn a_line_of_json_stays_json() {
    for secret in [
        "nsecretvalue",
        "ends-with-backslash\\",
        "q\"uoted-value",
        "line\nbreak-value",
    ] {
        let redactor = knows(&[secret]);
        for text in [
            secret.to_owned(),
            format!("\n{}", &secret[1..]),
            format!("\\{secret}\\"),
            format!("\"{secret}\""),
        ] {
            let line = serde_json::to_string(&serde_json::json!({"a": text, "b": 1})).unwrap();
            let shown = redactor.redact(&line).into_owned();
            let parsed: serde_json::Value =
                serde_json::from_str(&shown).unwrap_or_else(|error| panic!("{shown}: {error}"));
            assert_eq!(parsed["b"], 1);
        }
    }
}

/// What stands behind a label in the next line is none of its own.
#[test]
fn a_label_at_the_end_of_a_line_leaves_the_line_break() {
    let none = Redactor::default();
    let key = token("", 44);
    for label in [
        "Bearer ",
        "aws_secret_access_key =",
        "sig=",
        "PRIVATE-TOKEN:",
    ] {
        for text in [format!("{label}\n{key}"), format!("{label}\t\n {key}")] {
            let line = serde_json::json!({ "a": text, "b": 1 }).to_string();
            check(&none, &line, &line);
            let twice = serde_json::json!({ "c": line }).to_string();
            check(&none, &twice, &twice);
        }
        let quoted = serde_json::json!({ "a": format!("{label}\"{key}\"") }).to_string();
        check(&none, &quoted, &quoted.replace(&key, "***"));
    }
}

#[test]
fn a_stream_holds_back_little() {
    let mut stream = knows(&["hunter2hunter2"]).stream();
    assert_eq!(stream.push("hello hun"), "hello ");
    assert_eq!(stream.push("ch and hunter2"), "hunch and ");
    assert_eq!(stream.push("hunter2 done"), "*** done");
    assert_eq!(stream.finish(), "");
    assert_eq!(stream.push("hunter"), "");
    assert_eq!(stream.finish(), "hunter");
    // A long token is decided once it is long enough; nothing piles up.
    let mut stream = Redactor::default().stream();
    assert_eq!(stream.push(&token("ghp_", 5000)), "***");
    assert_eq!(stream.push(&token("", 5000)), "");
    assert_eq!(stream.push(" end"), " end");
}

/// A common word is no secret, whatever declares it one.
#[test]
fn common_words_are_not_hidden() {
    let redactor = knows(&["production", "Password", "1234567"]);
    check(&redactor, "password: production", "password: production");
    assert_eq!(redactor.ignored(), 3);
    assert_eq!(weakness(" 1234567 "), Some("has fewer than 8 characters"));
    assert_eq!(weakness("PRODUCTION"), Some("is a common word"));
    assert_eq!(weakness("production-1"), None);
}

/// Made once: its forms are many.
static KNOWN: LazyLock<Redactor> =
    LazyLock::new(|| knows(&["hunter2hunter2", "2hunter2-more", "äöüßäöüß-geheim", VALUE]));

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("hunter2hunter2".to_owned()),
        Just("hunter2".to_owned()),
        Just("äöüßäöüß-geheim".to_owned()),
        Just(VALUE.to_owned()),
        Just(serde_json::to_string(VALUE).unwrap()),
        Just(STANDARD.encode(VALUE)),
        Just(token("ghp_", 36)),
        Just(token("sk-ant-", 40)),
        Just(format!("{}.{}.x", token("eyJ", 20), token("eyJ", 20))),
        Just(pem("\n")),
        Just(pem("\\n")),
        Just("\\".to_owned()),
        Just("-----".to_owned()),
        "[ -~\n]{0,12}",
        ".{0,4}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn pieces_give_what_the_whole_gives(
        fragments in prop::collection::vec(fragment(), 0..8),
        sizes in prop::collection::vec(1usize..40, 1..20),
    ) {
        let text = fragments.concat();
        let shown = in_pieces(&KNOWN, &text, &sizes);
        prop_assert_eq!(shown, KNOWN.redact(&text));
    }

    #[test]
    fn no_value_survives(before in ".{0,20}", after in ".{0,20}") {
        let shown = KNOWN.redact(&format!("{before}hunter2hunter2{after}")).into_owned();
        prop_assert!(!shown.contains("hunter2hunter2"));
    }
}
