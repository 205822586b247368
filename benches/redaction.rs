//! What it costs to look for secrets in text that has none, and in text that is
//! full of them; whole and in pieces as a command writes it.
//!
//! `cargo bench --bench redaction` prints medians.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures, prints, and stops at the first surprise"
)]

#[allow(dead_code, reason = "each benchmark takes what it needs")]
mod measure;

use std::hint::black_box;

use agent::secret::Redactor;
use base64::Engine as _;

use measure::{median, row, timed};

const ROUNDS: usize = 15;
const TEXT_BYTES: usize = 4 * 1024 * 1024;
/// As much as comes from a pipe at once.
const PIECE_BYTES: usize = 16 * 1024;

fn main() {
    let few = secrets(3, 40);
    let many = secrets(20, 60);
    for (name, secrets) in [("3 secrets", &few), ("20 secrets", &many)] {
        println!("{name}");
        let build = || Redactor::new(secrets.clone()).redact("a first text").len();
        row(
            "made ready",
            median((0..ROUNDS).map(|_| timed(build).0).collect()),
        );
        let redactor = Redactor::new(secrets.clone());
        for (name, text) in texts(secrets) {
            rate(&format!("{name}, whole"), &text, || {
                redactor.redact(&text).len()
            });
            rate(&format!("{name}, in pieces"), &text, || {
                let mut stream = redactor.stream();
                let mut shown = 0;
                let mut rest = text.as_str();
                while !rest.is_empty() {
                    let at = rest.ceil_char_boundary(PIECE_BYTES.min(rest.len()));
                    let (piece, after) = rest.split_at(at);
                    shown += stream.push(piece).len();
                    rest = after;
                }
                shown + stream.finish().len()
            });
        }
    }
}

fn rate(name: &str, text: &str, work: impl Fn() -> usize) {
    let times = (0..ROUNDS).map(|_| timed(|| black_box(work())).0).collect();
    let seconds = median(times).as_secs_f64();
    println!(
        "  {name:<36} {:>9.0} MB/s",
        text.len() as f64 / 1e6 / seconds
    );
}

/// Keys of this many characters.
fn secrets(count: u64, chars: usize) -> Vec<String> {
    let letters = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(letters[usize::try_from(state >> 40).unwrap() % letters.len()])
    };
    (0..count)
        .map(|_| (0..chars).map(|_| next()).collect())
        .collect()
}

fn texts(secrets: &[String]) -> Vec<(&'static str, String)> {
    let source = include_str!("../src/secret/mod.rs");
    let log: String = (0..20_000)
        .map(|line| {
            format!(
                "2026-01-01T00:00:00Z GET https://example.com/items/{line}?page=2 200 in 12ms\n"
            )
        })
        .collect();
    let coded = base64::engine::general_purpose::STANDARD.encode(&log);
    let leaks: String = (0..20_000)
        .map(|line| format!("line {line}: {}\n", secrets[line % secrets.len()]))
        .collect();
    let filled = |text: &str| text.chars().cycle().take(TEXT_BYTES).collect();
    vec![
        ("source code", filled(source)),
        ("a log with addresses", filled(&log)),
        ("base64", filled(&coded)),
        ("secrets in each line", filled(&leaks)),
    ]
}
