//! Server-sent events: the grammar, and that pieces do not matter.

use agent::model::{FRAME_BYTES_MAX, Frame, ModelErrorKind, SseDecoder};
use proptest::prelude::*;

fn decode(pieces: &[&[u8]]) -> Vec<(String, String)> {
    let mut decoder = SseDecoder::new();
    let mut frames: Vec<Frame> = Vec::new();
    for piece in pieces {
        decoder
            .push(piece, &mut frames)
            .expect("nothing here is too large");
    }
    decoder
        .finish(&mut frames)
        .expect("nothing here is too large");
    frames
        .into_iter()
        .map(|frame| (frame.event, frame.data))
        .collect()
}

fn check(input: &[u8], expect: &[(&str, &str)]) {
    let expect: Vec<(String, String)> = expect
        .iter()
        .map(|(event, data)| ((*event).to_owned(), (*data).to_owned()))
        .collect();
    assert_eq!(
        decode(&[input]),
        expect,
        "{}",
        String::from_utf8_lossy(input)
    );
    let single: Vec<&[u8]> = input.chunks(1).collect();
    assert_eq!(
        decode(&single),
        expect,
        "byte by byte: {}",
        String::from_utf8_lossy(input)
    );
}

#[test]
fn the_grammar() {
    check(b"data: a\n\n", &[("", "a")]);
    check(b"data:a\n\ndata:  b\n\n", &[("", "a"), ("", " b")]);
    check(b"data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]);
    check(b"data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]);
    check(b"data: a\r\n\ndata: b\n\r\n", &[("", "a"), ("", "b")]);
    check(b"data: a\ndata: b\ndata:\n\n", &[("", "a\nb\n")]);
    check(
        b"event: x\ndata: a\n\ndata: b\n\n",
        &[("x", "a"), ("", "b")],
    );
    check(b": ping\n\n:\n\ndata: a\n\n", &[("", "a")]);
    check(b"event: x\n\ndata: a\n\n", &[("", "a")]);
    check(
        b"id: 1\nretry: 5\nother: x\nnonsense\ndata: a\n\n",
        &[("", "a")],
    );
    check(b"data\n\ndata:\n\n", &[]);
    check(b"\n\n\n", &[]);
    check(b"", &[]);
}

#[test]
fn a_last_frame_without_its_blank_line_counts() {
    check(b"data: a", &[("", "a")]);
    check(b"data: a\n", &[("", "a")]);
    check(b"data: a\r", &[("", "a")]);
    check(b"event: x\ndata: a", &[("x", "a")]);
}

#[test]
fn a_byte_order_mark_is_skipped_once() {
    check(b"\xef\xbb\xbfdata: a\n\n", &[("", "a")]);
    check(b"data: a\n\n\xef\xbb\xbfdata: b\n\n", &[("", "a")]);
}

#[test]
fn text_that_is_not_utf8_is_replaced() {
    check(
        "data: 看 🙂 \u{2028}\n\n".as_bytes(),
        &[("", "看 🙂 \u{2028}")],
    );
    check(b"data: a\xffb\n\n", &[("", "a\u{fffd}b")]);
    check(b"data: nul\0\n\n", &[("", "nul\0")]);
}

#[test]
fn a_line_or_frame_that_never_ends_is_refused() {
    let piece = vec![b'x'; 1024 * 1024];
    let mut decoder = SseDecoder::new();
    let mut frames = Vec::new();
    let error = (0..=FRAME_BYTES_MAX / piece.len())
        .find_map(|_| decoder.push(&piece, &mut frames).err())
        .expect("the line is too long");
    assert_eq!(error.kind, ModelErrorKind::BadResponse);

    let mut line = b"data: ".to_vec();
    line.extend_from_slice(&piece);
    line.push(b'\n');
    let mut decoder = SseDecoder::new();
    let error = (0..=FRAME_BYTES_MAX / piece.len())
        .find_map(|_| decoder.push(&line, &mut frames).err())
        .expect("the frame is too long");
    assert_eq!(error.kind, ModelErrorKind::BadResponse);
    assert!(frames.is_empty());
}

#[test]
fn many_small_pieces_take_linear_time() {
    let mut decoder = SseDecoder::new();
    let mut frames = Vec::new();
    let mut stream = b"data: ".to_vec();
    stream.extend(std::iter::repeat_n(b'x', 2 * 1024 * 1024));
    stream.extend_from_slice(b"\n\n");
    for piece in stream.chunks(1) {
        decoder.push(piece, &mut frames).expect("under the cap");
    }
    assert_eq!(frames.len(), 1);
    assert_eq!(frames[0].data.len(), 2 * 1024 * 1024);
}

proptest! {
    #[test]
    fn any_split_gives_the_same_frames(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("data: 看🙂".to_owned()), Just("event: x".to_owned()), Just(String::new()),
                Just(": c".to_owned()), "[ -~]{0,12}",
            ],
            0..12,
        ),
        endings in proptest::collection::vec(prop_oneof![Just("\n"), Just("\r"), Just("\r\n")], 12),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let text: String = lines.iter().zip(endings.iter().cycle())
            .flat_map(|(line, ending)| [line.as_str(), ending]).collect();
        let bytes = text.as_bytes();
        let mut places: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        places.push(bytes.len());
        places.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for place in places {
            pieces.push(&bytes[from..place]);
            from = place;
        }
        prop_assert_eq!(decode(&pieces), decode(&[bytes]));
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(decode(&single), decode(&[&bytes]));
    }
}
