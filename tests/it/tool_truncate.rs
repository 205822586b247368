//! Cleaning and cutting of text.

use agent::tool::truncate::{BYTES_MAX, Cleaner, LINES_MAX, Return, clean, head, tail};
use proptest::prelude::*;

fn terminal(pieces: &[&[u8]]) -> String {
    let mut cleaner = Cleaner::new(Return::Overwrites);
    let mut out = String::new();
    for piece in pieces {
        cleaner.push(piece, &mut out);
    }
    cleaner.finish(&mut out);
    out
}

#[test]
fn files_become_plain_text() {
    let check = |input: &[u8], expect: &str| assert_eq!(clean(input), expect, "{input:?}");
    check(b"plain\ttext\n", "plain\ttext\n");
    check(b"\x1b[1;31mred\x1b[0m", "red");
    check(b"\x1b]0;title\x07after", "after");
    check(b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link");
    check(b"\x1b(Bcharset", "charset");
    check(b"\x1b]never ends\nnext", "\nnext");
    check(b"a\r\nb\r\n", "a\nb\n");
    check(b"a\rb", "a\nb");
    check(b"a\x00\x07\x0b\x7fb", "ab");
    check("a\u{85}\u{9b}b".as_bytes(), "ab");
    check(b"bad \xff byte \xc3", "bad \u{fffd} byte \u{fffd}");
    check("é 漢 🎉".as_bytes(), "é 漢 🎉");
}

#[test]
fn terminals_overwrite_lines() {
    let check = |pieces: &[&[u8]], expect: &str| assert_eq!(terminal(pieces), expect, "{pieces:?}");
    check(&[b" 10%\r 20%\r100%\ndone"], "100%\ndone");
    check(&[b"a\r", b"\nb"], "a\nb");
    check(&[b"a\r\r\nb"], "a\nb");
    check(&[b"kept\r\x1b[0m\n"], "kept\n");
    check(&[b"ab\x08c"], "ac");
    check(&[b"\xe6\xbc", b"\xa2\n"], "漢\n");
    check(&[b"\x1b", b"[3", b"1mred"], "red");
    let long = "x".repeat(20_000);
    check(&[long.as_bytes(), b"\ry"], &format!("{long}\ny"));
}

#[test]
fn whole_lines_are_cut_from_either_end() {
    let many: String = (1..=LINES_MAX + 5)
        .map(|line| format!("{line}\n"))
        .collect();
    let first = head(&many);
    assert!(first.truncated && first.lines == LINES_MAX && first.text.ends_with("\n2000\n"));
    let last = tail(&many);
    assert!(last.truncated && last.lines == LINES_MAX && last.text.starts_with("6\n"));

    let wide = format!("{}\n", "x".repeat(999)).repeat(100);
    for cut in [head(&wide), tail(&wide)] {
        assert!(
            cut.truncated && cut.text.len() <= BYTES_MAX && cut.lines == 51,
            "{}",
            cut.lines
        );
        assert_eq!(cut.text.len() % 1000, 0);
    }
    for text in ["", "a", "a\n", "a\nb"] {
        assert_eq!((head(text).text, head(text).truncated), (text, false));
        assert_eq!((tail(text).text, tail(text).truncated), (text, false));
    }
    let one = "é".repeat(BYTES_MAX);
    for cut in [head(&one), tail(&one)] {
        assert!(cut.truncated && cut.lines == 1 && cut.text.len() == BYTES_MAX);
    }
}

proptest! {
    #[test]
    fn cleaning_does_not_depend_on_the_splits(
        bytes in proptest::collection::vec(prop_oneof![
            any::<u8>(),
            proptest::sample::select(b"\x1b[]\r\n\x07\x08;0m\xe2\x82\xac\\".to_vec()),
        ], 0..200),
        splits in proptest::collection::vec(0_usize..200, 0..6),
    ) {
        let whole = terminal(&[&bytes]);
        let mut splits: Vec<usize> = splits.into_iter().map(|at| at.min(bytes.len())).collect();
        splits.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for at in splits {
            pieces.push(&bytes[from..at]);
            from = at;
        }
        pieces.push(&bytes[from..]);
        prop_assert_eq!(&terminal(&pieces), &whole);
        prop_assert!(whole.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'));
    }
}
