//! `$'…'`: text with escapes.

use super::read::Reader;
use super::{Refusal, refuse};

/// The text behind `$'`, up to the closing quote.
pub(super) fn ansi_quoted(reader: &mut Reader<'_>) -> Result<String, Refusal> {
    let mut text = String::new();
    loop {
        match reader.take() {
            None => return refuse("a `$'…'` is not closed"),
            Some('\'') => break,
            Some('\\') => text.push(escaped(reader)?),
            Some(c) => text.push(c),
        }
    }
    reader.no_line_end_before_documents(&text)?;
    if text.contains('\0') {
        return refuse("a `$'…'` has a NUL character");
    }
    Ok(text)
}

fn escaped(reader: &mut Reader<'_>) -> Result<char, Refusal> {
    Ok(match reader.take() {
        Some('a') => '\u{7}',
        Some('b') => '\u{8}',
        Some('e' | 'E') => '\u{1b}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('v') => '\u{b}',
        Some(c @ ('\\' | '\'' | '"' | '?')) => c,
        Some(c @ '0'..='7') => {
            reader.at -= c.len_utf8();
            number(reader, 8, 3)?
        }
        Some('x') => number(reader, 16, 2)?,
        _ => return refuse("a `$'…'` has an unusual escape"),
    })
}

/// A character by its number, only of ASCII: above it says bytes.
fn number(reader: &mut Reader<'_>, radix: u32, digits: usize) -> Result<char, Refusal> {
    let text: String = reader
        .rest()
        .chars()
        .take(digits)
        .take_while(|c| c.is_digit(radix))
        .collect();
    reader.at += text.len();
    match u8::from_str_radix(&text, radix) {
        Ok(byte) if byte.is_ascii() => Ok(char::from(byte)),
        _ => refuse("a `$'…'` has a byte that is no ASCII character"),
    }
}
