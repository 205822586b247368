//! What a long reply costs in each dialect: from bytes to the message, beside
//! finding the frames, beside a bare splitter of lines, all in the same run.
//!
//! `cargo bench --bench decoding` prints medians and their ratios.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark measures, prints, and stops at the first surprise"
)]

#[allow(dead_code, reason = "each benchmark takes what it needs")]
mod measure;
mod streams;

use std::hint::black_box;
use std::time::Duration;

use agent::model::{Assembler, Model, ReplyBody, SseDecoder, resolve, wire};

use measure::{median, timed};

const ROUNDS: usize = 25;
const DELTAS: usize = 20_000;
/// As much as comes from a connection at once.
const PIECE_BYTES: usize = 16 * 1024;

fn main() {
    println!("a reply of {DELTAS} text deltas; MB/s, and deltas of whole replies a second");
    println!(
        "  {:<22} {:>7} {:>8} {:>7} {:>12} {:>8}",
        "", "lines", "frames", "whole", "deltas/s", "ratio"
    );
    for (name, stream) in streams::all(DELTAS) {
        let url = name
            .starts_with("openai-chat")
            .then_some("http://127.0.0.1:1/v1");
        let model = resolve(name, url).unwrap();
        let mut times: [Vec<Duration>; 3] = Default::default();
        for _ in 0..ROUNDS {
            times[0].push(timed(|| black_box(lines(stream.as_bytes()))).0);
            times[1].push(timed(|| black_box(frames(stream.as_bytes()))).0);
            let (time, text) = timed(|| message(&model, stream.as_bytes()));
            assert_eq!(text.len(), DELTAS * streams::DELTA.len());
            times[2].push(time);
        }
        let [lines, frames, whole] = times.map(median).map(|time| time.as_secs_f64());
        let rate = |seconds: f64| stream.len() as f64 / 1e6 / seconds;
        println!(
            "  {:<22} {:>7.0} {:>8.0} {:>7.0} {:>12.0} {:>7.1}x",
            model.api.name(),
            rate(lines),
            rate(frames),
            rate(whole),
            DELTAS as f64 / whole,
            whole / lines
        );
    }
}

fn lines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count()
}

fn frames(bytes: &[u8]) -> usize {
    let mut sse = SseDecoder::new();
    let mut frames = Vec::new();
    let mut count = 0;
    for piece in bytes.chunks(PIECE_BYTES) {
        sse.push(piece, &mut frames).unwrap();
        count += frames.drain(..).count();
    }
    sse.finish(&mut frames).unwrap();
    count + frames.len()
}

fn message(model: &Model, bytes: &[u8]) -> String {
    let mut body = ReplyBody::new(model);
    let mut events = wire::Events::new();
    let mut assembler = Assembler::new(model);
    for piece in bytes.chunks(PIECE_BYTES) {
        body.push(piece, &mut events).unwrap();
        events.drain(..).for_each(|event| assembler.push(event));
    }
    body.end(&mut events).unwrap();
    events.drain(..).for_each(|event| assembler.push(event));
    assembler.finish().unwrap().text()
}
