//! What can stand between the characters of a secret without a reader seeing it
//! there, and whether a text shows the secret to somebody who leaves it out.

/// A secret without letters that an escape sequence could take for its own.
pub const SECRET: &str = "KQ7ZW9LM4XC2VD8PJ5";

/// Names and texts of separators.
pub const SEPARATORS: &[(&str, &str)] = &[
    ("zero-width space", "\u{200b}"),
    ("zero-width joiner", "\u{200d}"),
    ("word joiner", "\u{2060}"),
    ("byte order mark", "\u{feff}"),
    ("soft hyphen", "\u{ad}"),
    ("variation selector", "\u{fe0f}"),
    ("right-to-left override", "\u{202e}"),
    ("replacement character", "\u{fffd}"),
    ("picture of a control character", "\u{2400}"),
    ("tag character", "\u{e0041}"),
    ("NUL", "\0"),
    ("backspace", "\u{8}"),
    ("colour", "\u{1b}[1;31m"),
    ("hyperlink", "\u{1b}]8;;http://x/\u{7}"),
    ("line break", "\n"),
    ("line break with an indentation", "\r\n    "),
    ("quotes", "''"),
    ("double quote", "\""),
    ("backtick", "`"),
    ("backslash", "\\"),
    ("escaped line break", "\\n"),
    ("escaped zero-width space", "\\u200b"),
    ("zero-width space as programs print it", "\\u{200b}"),
];

/// Whether `text` shows the secret, as it is or to a reader who leaves out what
/// stands between.
pub fn shows(text: &str) -> bool {
    [Escapes::Kept, Escapes::LeftOut]
        .iter()
        .any(|escapes| read(text, escapes).contains(SECRET))
}

enum Escapes {
    Kept,
    LeftOut,
}

/// The letters and digits of a text, and a blank for what a reader sees beside
/// them.
fn read(text: &str, escapes: &Escapes) -> String {
    let mut read = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let behind = &rest[first.len_utf8()..];
        rest = match (first, escapes) {
            ('\u{1b}', _) => behind_sequence(behind),
            ('\\', Escapes::LeftOut) if behind.starts_with("u{") => {
                behind.split_once('}').map_or("", |(_, behind)| behind)
            }
            ('\\', Escapes::LeftOut) if behind.starts_with('u') => behind.get(5..).unwrap_or(""),
            ('\\', Escapes::LeftOut) if behind.starts_with(['n', 'r', 't', 'b', 'f']) => {
                &behind[1..]
            }
            ('\n', _) => behind.trim_start_matches(['+', '-', ' ', '\t']),
            _ => behind,
        };
        if first.is_ascii_alphanumeric() {
            read.push(first);
        } else if first.is_ascii_punctuation() && !"\\'\"`".contains(first) || first == ' ' {
            read.push(' ');
        }
    }
    read
}

/// What follows the escape sequence of a terminal.
fn behind_sequence(text: &str) -> &str {
    let end = match text.chars().next() {
        Some('[') => text.find(|symbol: char| symbol.is_ascii_alphabetic()),
        Some(']') => text.find('\u{7}'),
        _ => None,
    };
    end.map_or(text, |end| &text[end + 1..])
}
