//! Known values: secrets of every kind, in every encoding, in pieces of every
//! size.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::secret::Redactor;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::Value;

use crate::support::pieces::in_pieces;

/// What people keep as secrets.
const CANARIES: &[&str] = &[
    "8chars-x",
    "QzVxQ2FuYXJ5Rm9yVGVzdHM0Mg4711ab",
    "0123456789012345",
    "d41d8cd98f00b204e9800998ecf8427e",
    "0f3c2b1a-9d8e-4f7a-b6c5-d4e3f2a1b0c9",
    "correct horse battery staple",
    "p@ss/w\"rd & 'co' <mehr>",
    "grüße-aus-köln-ünd-mehr",
    "naïve🔑emoji🔐secret",
    "ключ-от-квартиры",
    "back\\slashes\\every\\where",
    "ends-with-backslash\\",
    "'\"'\"'quotes'\"'\"'",
    "100%25sure%41and%zz",
    "a+b=c/d+e==f&g=h",
    "$(echo nothing) `here` ${HOME}!",
    "<script>alert(\"x\")</script>",
    "tab\tand\u{1}control\u{7f}marks",
    "postgres://deploy:n0t-the-real-1@db.internal:5432/app?sslmode=require",
    "Server=db;User Id=sa;Password=n0t,the;real/1==",
    "{\"client_id\": \"12345\", \"client_secret\": \"abc/def+ghi==\"}",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
    "first line of it\nsecond line, longer than the first\n\n  third, indented line",
    "windows line one\r\nwindows line two\r\nwindows line three",
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAAB\n\
     AAAAMwAAAAtzc2gtZWQyNTUxOQAAACDhN0tR3aLlYk3y\n-----END OPENSSH PRIVATE KEY-----",
    "a-very-long-secret-that-goes-on-and-on-for-more-than-any-line-of-base64-and-then-some-more-\
     0123456789-abcdefghijklmnopqrstuvwxyz-ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789-and-the-end",
];

type Encoding = (&'static str, usize, fn(&str) -> String);

/// How programs print them. The number is of the characters that may be left
/// beside the stars: those that hold bits of what stands around, and the rest of
/// that.
const ENCODINGS: &[Encoding] = &[
    ("plain", 0, str::to_owned),
    ("json", 0, json),
    ("json in json", 0, |value| json(&json(value))),
    ("json of python", 0, json_ascii),
    ("json of php", 0, |value| {
        json_ascii(value).replace('/', "\\/")
    }),
    ("json of go", 0, json_of_go),
    ("every character escaped", 0, |value| {
        value
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect()
    }),
    ("URL component", 0, |value| {
        percent(value, "-_.!~*'()", "%20")
    }),
    ("URL of python", 0, |value| percent(value, "-_.~/", "%20")),
    ("URL, lower case", 0, |value| {
        lower(&percent(value, "-_.~", "%20"))
    }),
    ("every byte in a URL", 0, |value| {
        value.bytes().map(|byte| format!("%{byte:02X}")).collect()
    }),
    ("form", 0, |value| percent(value, "-_.*", "+")),
    ("hex", 0, |value| {
        value.bytes().map(|byte| format!("{byte:02x}")).collect()
    }),
    ("HEX", 0, |value| {
        value.bytes().map(|byte| format!("{byte:02X}")).collect()
    }),
    ("base64", 4, |value| STANDARD.encode(value)),
    ("base64 behind one", 10, |value| {
        STANDARD.encode(format!("u{value}!"))
    }),
    ("base64 behind two", 10, |value| {
        STANDARD.encode(format!("us{value}!!"))
    }),
    ("base64 for URLs", 4, |value| URL_SAFE_NO_PAD.encode(value)),
    ("base64 in lines", 4, |value| {
        lines(&STANDARD.encode(value), 76, "\n")
    }),
    ("base64 in short lines", 80, |value| {
        let whole = format!("user-of-the-machine:{value}");
        lines(&STANDARD.encode(whole), 64, "\r\n")
    }),
    ("base64 of UTF-16", 4, |value| {
        let wide: Vec<u8> = value.encode_utf16().flat_map(u16::to_le_bytes).collect();
        STANDARD.encode(wide)
    }),
    ("html", 0, |value| markup(value, "&quot;", "&#x27;")),
    ("xml", 0, |value| markup(value, "&quot;", "&apos;")),
    ("numbers in html", 0, |value| {
        value
            .chars()
            .map(|symbol| format!("&#{};", u32::from(symbol)))
            .collect()
    }),
    ("single quotes of a shell", 0, |value| {
        value.replace('\'', r"'\''")
    }),
    ("double quotes of a shell", 0, |value| {
        escaped(value, |symbol| "\"$`\\".contains(symbol))
    }),
    ("backslashes", 0, |value| {
        escaped(value, |symbol| {
            symbol.is_ascii() && !symbol.is_ascii_alphanumeric()
        })
    }),
    ("reversed", 0, |value| value.chars().rev().collect()),
    ("CRLF", 0, |value| {
        value.replace("\r\n", "\n").replace('\n', "\r\n")
    }),
];

fn json(value: &str) -> String {
    let quoted = Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn json_ascii(value: &str) -> String {
    let mut text = String::new();
    for symbol in json(value).chars() {
        match symbol.is_ascii() {
            true => text.push(symbol),
            false => symbol
                .encode_utf16(&mut [0; 2])
                .iter()
                .for_each(|unit| text.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    text
}

fn json_of_go(value: &str) -> String {
    json(value)
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn percent(value: &str, kept: &str, space: &str) -> String {
    let symbol = |byte: u8| match char::from(byte) {
        ' ' => space.to_owned(),
        plain if plain.is_ascii_alphanumeric() || kept.contains(plain) => plain.to_string(),
        _ => format!("%{byte:02X}"),
    };
    value.bytes().map(symbol).collect()
}

/// The codes of a URL in lower case.
fn lower(text: &str) -> String {
    let mut parts = text.split('%');
    let mut shown = parts.next().unwrap().to_owned();
    for part in parts {
        shown.push('%');
        shown.push_str(&part[..2].to_lowercase());
        shown.push_str(&part[2..]);
    }
    shown
}

fn markup(value: &str, double: &str, single: &str) -> String {
    value
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', double)
        .replace('\'', single)
}

fn escaped(value: &str, special: impl Fn(char) -> bool) -> String {
    let symbol = |symbol: char| match special(symbol) {
        true => format!("\\{symbol}"),
        false => symbol.to_string(),
    };
    value.chars().map(symbol).collect()
}

fn lines(text: &str, width: usize, line_break: &str) -> String {
    let lines = text.as_bytes().chunks(width);
    let lines: Vec<&str> = lines
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    lines.join(line_break)
}

/// Only the stars stand where the value stood, and all around it is untouched.
fn check(shown: &str, left: usize, case: &str) {
    let inner = shown
        .strip_prefix("It is «")
        .and_then(|rest| rest.strip_suffix("», they say: 100% & \"more\"."))
        .unwrap_or_else(|| panic!("{case}: the text around it changed: {shown}"));
    assert!(inner.contains("***"), "{case}: {shown}");
    let rest = inner.replace("***", "");
    assert!(rest.len() <= left, "{case}: {shown}");
}

#[test]
fn no_form_of_a_value_gets_through_in_pieces_of_any_size() {
    assert!(CANARIES.len() >= 25 && ENCODINGS.len() >= 25);
    for canary in CANARIES {
        let redactor = Redactor::new([(*canary).to_owned()]);
        for (encoding, left, encode) in ENCODINGS {
            let text = format!("It is «{}», they say: 100% & \"more\".", encode(canary));
            let whole = redactor.redact(&text).into_owned();
            check(&whole, *left, &format!("{encoding} of {canary:?}"));
            for bytes in (1..=64).take_while(|bytes| *bytes < text.len()) {
                let shown = in_pieces(&redactor, &text, &[bytes]);
                assert_eq!(shown, whole, "{encoding} of {canary:?} by {bytes}");
            }
        }
    }
}

#[test]
fn a_value_of_several_lines_is_known_by_each_line() {
    let key = CANARIES
        .iter()
        .find(|one| one.starts_with("-----BEGIN"))
        .unwrap();
    // As a variable of one line, and as a file.
    for secret in [
        (*key).to_owned(),
        key.replace('\n', "\\n"),
        key.replace('\n', "\r\n"),
    ] {
        let redactor = Redactor::new([secret]);
        for line in key.lines().filter(|line| !line.starts_with("-----")) {
            let shown = redactor.redact(line).into_owned();
            assert_eq!(shown, "***");
            let coded = STANDARD.encode(line);
            assert!(
                redactor.redact(&coded).len() <= 7,
                "{}",
                redactor.redact(&coded)
            );
        }
        // The border of a key says nothing.
        let border = "-----END OPENSSH PRIVATE KEY-----";
        assert_eq!(redactor.redact(border), border);
    }
}

#[test]
fn a_line_of_base64_breaks_anywhere() {
    let secret = "the-secret-of-forty-characters-and-more-9";
    let redactor = Redactor::new([secret.to_owned()]);
    for before in 0..60 {
        let whole = format!("{}{secret}{}", "x".repeat(before), "y".repeat(9));
        for width in [64, 76] {
            let coded = STANDARD.encode(&whole);
            let shown = redactor.redact(&lines(&coded, width, "\n")).into_owned();
            // What is left is of the text around the secret, but for its borders.
            let left = shown.replace("***", "").replace('\n', "");
            let around = STANDARD.encode("x".repeat(before)).len() + 16 + 4;
            assert!(left.len() <= around, "{before} {width}: {shown}");
        }
    }
}
