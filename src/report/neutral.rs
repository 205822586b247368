//! Text of tools and models, made harmless for terminals and CI logs.
//!
//! Nothing of it may move a cursor, hide itself, reorder what is read, or be
//! taken by a CI runner for a command. The runners' rules: GitHub takes `::`
//! after leading blanks and `##[` anywhere in a line, Azure Pipelines
//! `##vso[` anywhere, TeamCity `##teamcity[`.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

use unicode_width::UnicodeWidthChar;

use crate::message::is_unseen;

/// `text` as one harmless line: blanks of any kind become single spaces.
pub fn neutral(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    visible(text, |character| {
        if !character.is_whitespace() {
            clean.push(character);
        } else if !clean.is_empty() && !clean.ends_with(' ') {
            clean.push(' ');
        }
    });
    clean.truncate(clean.trim_end().len());
    defused(clean)
}

/// One line of a text whose layout matters, made harmless: blanks stay, a tab
/// is four spaces. `line` is expected to hold no line feed; one becomes a space.
pub fn neutral_line(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    visible(line, |character| match character {
        '\t' => clean.push_str("    "),
        blank if blank.is_whitespace() => clean.push(' '),
        character => clean.push(character),
    });
    clean.truncate(clean.trim_end().len());
    defused(clean)
}

/// A text of several lines made harmless line by line. Tabs stay, because they
/// may matter to whoever copies the text.
pub fn neutral_text(text: &str) -> String {
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| {
            let mut clean = String::with_capacity(line.len());
            visible(line, |character| match character {
                '\t' => clean.push('\t'),
                blank if blank.is_whitespace() => clean.push(' '),
                character => clean.push(character),
            });
            clean.truncate(clean.trim_end().len());
            defused(clean)
        })
        .collect();
    lines.join("\n")
}

/// The same JSON with everything that could act on a terminal or a CI log
/// written as escapes: controls, what is unseen, and `##`. A line of JSON
/// cannot begin with `::`.
pub fn neutral_json(json: &str) -> Cow<'_, str> {
    if !json.contains("##") && !json.chars().any(acts) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 16);
    let mut before = ' ';
    for character in json.chars() {
        if acts(character) || (before == '#' && character == '#') {
            for unit in character.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(character);
        }
        before = character;
    }
    Cow::Owned(safe)
}

/// What a reader of a terminal does not see as itself, line feeds aside.
fn acts(character: char) -> bool {
    is_unseen(character) || matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// `text` cut to `columns` of a terminal; `ellipsis` marks the cut.
pub fn cut(text: &str, columns: usize, ellipsis: &str) -> String {
    let width = |character: char| character.width().unwrap_or(0);
    if text.chars().map(width).sum::<usize>() <= columns {
        return text.to_owned();
    }
    let room = columns.saturating_sub(ellipsis.chars().map(width).sum());
    let mut used = 0;
    let mut kept: String = text
        .chars()
        .take_while(|character| {
            used += width(*character);
            used <= room
        })
        .collect();
    kept.push_str(ellipsis);
    kept
}

/// Hands on the characters that a person sees, blanks included.
fn visible(text: &str, mut show: impl FnMut(char)) {
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => skip_escape(&mut rest),
            '\u{9b}' => skip_control_sequence(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            hidden if is_unseen(hidden) => {}
            shown => show(shown),
        }
    }
}

fn skip_escape(rest: &mut Peekable<Chars<'_>>) {
    match rest.peek() {
        Some('[') => {
            rest.next();
            skip_control_sequence(rest);
        }
        Some('P' | 'X' | ']' | '^' | '_') => {
            rest.next();
            skip_string(rest);
        }
        Some(' '..='/') => {
            while rest.next_if(|next| (' '..='/').contains(next)).is_some() {}
            rest.next_if(|next| ('0'..='~').contains(next));
        }
        Some('0'..='~') => {
            rest.next();
        }
        _ => {}
    }
}

/// Parameters and intermediates, then one final byte.
fn skip_control_sequence(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|next| (' '..='?').contains(next)).is_some() {}
    rest.next_if(|next| ('@'..='~').contains(next));
}

/// Up to BEL or ST. One that never ends is taken to end with its line, so that
/// it cannot swallow what follows.
fn skip_string(rest: &mut Peekable<Chars<'_>>) {
    while let Some(next) = rest.next_if(|next| *next != '\n') {
        match next {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' if rest.next_if_eq(&'\\').is_some() => return,
            _ => {}
        }
    }
}

fn defused(text: String) -> String {
    let commands = ["##[", "##vso[", "##teamcity["];
    let at_start = text.trim_start().starts_with("::");
    if !at_start
        && !commands
            .iter()
            .any(|command| find(&text, command).is_some())
    {
        return text;
    }
    let mut safe = text;
    for command in commands {
        while let Some(index) = find(&safe, command) {
            safe.insert(index + 1, ' ');
        }
    }
    if at_start {
        let index = safe.len() - safe.trim_start().len();
        safe.insert(index + 1, ' ');
    }
    safe
}

/// Where `command` stands in `text`, whatever its case.
fn find(text: &str, command: &str) -> Option<usize> {
    text.as_bytes()
        .windows(command.len())
        .position(|window| window.eq_ignore_ascii_case(command.as_bytes()))
}
