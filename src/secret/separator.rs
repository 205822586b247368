//! What may stand between two characters of a secret without a reader, a shell
//! or a JSON parser taking it for a character: what is not seen, escape
//! sequences of terminals, quotes, backslashes, line breaks, and all of these
//! as JSON escapes spell them.
//!
//! Some of it can be read in two ways: `\n` is a line break in JSON and an `n`
//! in a shell. So a place gives every reading, and the search tries each.

use crate::message::is_unseen;

/// One way to read the start of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// As this character.
    Character(char),
    /// As nothing.
    Nothing,
}

/// The longest escape sequence of a terminal, the deepest indentation behind a
/// line break, and the longest run of hidden characters in a long token, in bytes.
/// What is longer is text.
const SEPARATOR_BYTES_MAX: usize = 512;

/// What begins a line of a diff, a quotation, a list or a comment.
const LINE_MARKS: &[u8] = b"+-<>|#*";

/// What may be the end of a terminal's string, as itself and in JSON.
const STRING_ENDS: [&str; 6] = [
    "\u{7}",
    "\u{9c}",
    "\u{1b}\\",
    "\\u0007",
    "\\u001b\\\\",
    "\\u009c",
];

/// Whether a separator may begin with this byte.
pub(super) fn may_separate(byte: u8) -> bool {
    matches!(
        byte,
        0..=0x1f | 0x7f | b'\'' | b'"' | b'`' | b'\\'
            // The first bytes of characters that are not seen.
            | 0xc2 | 0xcd | 0xd8 | 0xe1..=0xe3 | 0xef | 0xf0 | 0xf3
    )
}

/// Gives each way to read the start of `rest` to `found`, with its length in
/// bytes. Whether more text could add another one is the answer.
pub(super) fn readings(rest: &str, found: &mut impl FnMut(Reading, usize)) -> bool {
    let Some(first) = rest.chars().next() else {
        return false;
    };
    let open = character(first, first.len_utf8(), rest, found);
    if first != '\\' {
        return open;
    }
    match escaped(rest) {
        Escape::Character(character_meant, length) => {
            character(character_meant, length, rest, found)
        }
        Escape::Surrogate(length) => {
            found(Reading::Nothing, length);
            false
        }
        Escape::None => false,
        Escape::Open => true,
    }
}

/// Whether a character separates, seen alone.
pub(super) fn separates(character: char) -> bool {
    matches!(character, '\'' | '"' | '`' | '\\') || is_hidden(character) || is_break(character)
}

/// Whether a reader does not see the character, or sees only that there is one:
/// the pictures of control characters, and what stands for bytes that are no text.
pub(super) fn is_hidden(character: char) -> bool {
    let blank = character.is_whitespace() && !matches!(character, ' ' | '\n' | '\r');
    let stand_in = matches!(character, '\u{2400}'..='\u{243f}' | '\u{fffc}' | '\u{fffd}');
    blank || stand_in || is_unseen(character) || matches!(character, '\u{fe00}'..='\u{fe0f}')
}

/// Whether behind the hidden characters at the start of `rest` stands one that
/// `belongs`; none when the text ends before.
pub(super) fn goes_on(rest: &[u8], belongs: impl Fn(u8) -> bool) -> Option<bool> {
    let near = rest.get(..SEPARATOR_BYTES_MAX).unwrap_or(rest);
    let text = near.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match text.chars().find(|symbol| !is_hidden(*symbol)) {
        Some(symbol) => Some(u8::try_from(symbol).is_ok_and(belongs)),
        None if near.len() < SEPARATOR_BYTES_MAX => None,
        None => Some(false),
    }
}

/// The readings of a character that `length` bytes of `rest` spell.
fn character(
    character: char,
    length: usize,
    rest: &str,
    found: &mut impl FnMut(Reading, usize),
) -> bool {
    found(Reading::Character(character), length);
    if !separates(character) {
        return false;
    }
    found(Reading::Nothing, length);
    if character.is_whitespace() {
        found(Reading::Character(' '), length);
    }
    let behind = rest.get(length..).unwrap_or_default();
    if is_break(character) {
        line_start(behind, &mut |more| {
            found(Reading::Nothing, length + more);
            found(Reading::Character(' '), length + more);
        });
        return false;
    }
    match sequence(character, behind) {
        Sequence::Of(more) => found(Reading::Nothing, length + more),
        Sequence::Open => return true,
        Sequence::None => {}
    }
    false
}

fn is_break(character: char) -> bool {
    matches!(
        character,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The lengths of what begins a line and is no part of what was broken: its
/// indentation, the mark of a diff or of a comment, and both.
fn line_start(line: &str, found: &mut impl FnMut(usize)) {
    let line = line.as_bytes();
    let blanks = |from: usize| {
        let rest = line.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| b" \t".contains(byte)).count();
        count.min(SEPARATOR_BYTES_MAX)
    };
    let indentation = blanks(0);
    if indentation > 0 {
        found(indentation);
    }
    if line
        .get(indentation)
        .is_some_and(|byte| LINE_MARKS.contains(byte))
    {
        let mark = indentation + 1;
        found(mark);
        let more = blanks(mark);
        if more > 0 {
            found(mark + more);
        }
    }
}

/// The rest of a terminal's escape sequence.
enum Sequence {
    None,
    Of(usize),
    Open,
}

/// What follows the first character of an escape sequence.
fn sequence(first: char, behind: &str) -> Sequence {
    let second = behind.chars().next();
    match (first, second) {
        ('\u{1b}', None) => Sequence::Open,
        ('\u{1b}', Some('[')) => control_sequence(behind, 1),
        ('\u{9b}', _) => control_sequence(behind, 0),
        ('\u{1b}', Some('P' | 'X' | ']' | '^' | '_')) => string(behind),
        ('\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}', _) => string(behind),
        ('\u{1b}', Some(' '..='/')) => {
            let count = behind
                .bytes()
                .take_while(|byte| matches!(byte, b' '..=b'/'));
            let count = count.take(SEPARATOR_BYTES_MAX).count();
            match behind.as_bytes().get(count) {
                Some(b'0'..=b'~') => Sequence::Of(count + 1),
                Some(_) => Sequence::Of(count),
                None => Sequence::Open,
            }
        }
        ('\u{1b}', Some('0'..='~')) => Sequence::Of(1),
        _ => Sequence::None,
    }
}

/// Parameters and intermediates from `start` on, then one final byte.
fn control_sequence(behind: &str, start: usize) -> Sequence {
    let rest = behind.as_bytes().get(start..).unwrap_or_default();
    let count = rest
        .iter()
        .take_while(|byte| matches!(byte, b' '..=b'?'))
        .count();
    match rest.get(count) {
        _ if count > SEPARATOR_BYTES_MAX => Sequence::None,
        None => Sequence::Open,
        Some(b'@'..=b'~') => Sequence::Of(start + count + 1),
        Some(_) => Sequence::Of(start + count),
    }
}

/// Up to BEL or ST, or to the end of the line.
fn string(behind: &str) -> Sequence {
    let cut = behind.floor_char_boundary(SEPARATOR_BYTES_MAX);
    let near = behind.get(..cut).unwrap_or_default();
    let line = near.find('\n').unwrap_or(near.len());
    let ends = STRING_ENDS.iter().filter_map(|end| {
        let at = near.get(..line)?.find(end)?;
        Some(at + end.len())
    });
    match ends.min() {
        Some(length) => Sequence::Of(length),
        None if line < near.len() => Sequence::Of(line),
        None if cut == behind.len() => Sequence::Open,
        None => Sequence::None,
    }
}

/// What a backslash and its letters mean.
enum Escape {
    Character(char, usize),
    /// Half of a character, with this length.
    Surrogate(usize),
    None,
    Open,
}

fn escaped(rest: &str) -> Escape {
    let bytes = rest.as_bytes();
    let simple = |character: char| Escape::Character(character, 2);
    match bytes.get(1) {
        None => Escape::Open,
        Some(b'n') => simple('\n'),
        Some(b'r') => simple('\r'),
        Some(b't') => simple('\t'),
        Some(b'b') => simple('\u{8}'),
        Some(b'f') => simple('\u{c}'),
        Some(b'v') => simple('\u{b}'),
        Some(b'a') => simple('\u{7}'),
        Some(b'e') => simple('\u{1b}'),
        Some(b'u') if bytes.get(2) == Some(&b'{') => braced(rest),
        Some(b'u') => digits(bytes, 2..6, 16),
        Some(b'x') => digits(bytes, 2..4, 16),
        Some(b'0') => match digits(bytes, 1..4, 8) {
            Escape::None => simple('\0'),
            other => other,
        },
        Some(_) => Escape::None,
    }
}

/// The character of `\u{200b}`, as many languages spell it.
fn braced(rest: &str) -> Escape {
    let number = rest.get(3..).unwrap_or_default();
    let count = number.bytes().take_while(u8::is_ascii_hexdigit).count();
    let known = number.get(..count).unwrap_or_default();
    match number.as_bytes().get(count) {
        None if count <= 6 => Escape::Open,
        Some(b'}') => match u32::from_str_radix(known, 16).map(char::from_u32) {
            Ok(Some(character)) => Escape::Character(character, count + 4),
            Ok(None) | Err(_) => Escape::None,
        },
        None | Some(_) => Escape::None,
    }
}

/// The character with this number.
fn digits(bytes: &[u8], place: std::ops::Range<usize>, base: u32) -> Escape {
    let end = place.end;
    let mut number = 0;
    for at in place {
        let Some(byte) = bytes.get(at) else {
            return Escape::Open;
        };
        let Some(digit) = char::from(*byte).to_digit(base) else {
            return Escape::None;
        };
        number = number * base + digit;
    }
    match char::from_u32(number) {
        Some(character) => Escape::Character(character, end),
        None => Escape::Surrogate(end),
    }
}
