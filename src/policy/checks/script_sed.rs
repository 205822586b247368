//! sed scripts, read as sed reads them: what they may do shows in the letters
//! of their commands.

use std::iter::Peekable;
use std::str::Chars;

/// The scripts of a command, of its options or its first operand.
///
/// # Errors
/// When an option loads a script, or its value is no plain suffix.
pub(crate) fn scripts(words: &[String]) -> Result<Vec<&str>, String> {
    const LONG: &[&str] = &[
        "quiet",
        "silent",
        "regexp-extended",
        "separate",
        "unbuffered",
        "zero-terminated",
        "null-data",
        "posix",
        "sandbox",
        "debug",
        "binary",
        "in-place",
        "version",
        "help",
        "expression",
        "line-length",
    ];
    let mut scripts = Vec::new();
    let mut operands = Vec::new();
    let mut rest = words.iter().skip(1).map(String::as_str);
    while let Some(word) = rest.next() {
        if let Some(long) = word.strip_prefix("--") {
            if long.is_empty() {
                operands.extend(rest.by_ref());
                break;
            }
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (long, None),
            };
            match LONG.iter().find(|known| known.starts_with(name)) {
                Some(&"expression") => {
                    scripts.extend(value.or_else(|| rest.next()));
                }
                Some(&"in-place") => suffix(value.unwrap_or_default())?,
                Some(&"line-length") if value.is_none() => {
                    rest.next();
                }
                Some(_) => {}
                None => return Err(format!("`{word}` may load a script")),
            }
        } else if word.len() > 1 && word.starts_with('-') {
            cluster(word, &mut rest, &mut scripts)?;
        } else {
            operands.push(word);
        }
    }
    if scripts.is_empty() {
        scripts.extend(operands.first());
    }
    Ok(scripts)
}

/// Reads letters: `-ne s/a/b/`, `-i.bak`.
fn cluster<'a>(
    word: &'a str,
    rest: &mut impl Iterator<Item = &'a str>,
    scripts: &mut Vec<&'a str>,
) -> Result<(), String> {
    for (at, letter) in word.char_indices().skip(1) {
        let stuck = word.get(at + 1..).unwrap_or_default();
        match letter {
            'n' | 'E' | 'r' | 's' | 'u' | 'z' | 'b' => {}
            'i' => return suffix(stuck),
            'e' => {
                scripts.extend(
                    Some(stuck)
                        .filter(|stuck| !stuck.is_empty())
                        .or_else(|| rest.next()),
                );
                return Ok(());
            }
            'l' => {
                if stuck.is_empty() {
                    rest.next();
                }
                return Ok(());
            }
            _ => return Err(format!("`{word}` may load a script")),
        }
    }
    Ok(())
}

/// The suffix of the copies that `-i` keeps: it can lead to another directory.
fn suffix(suffix: &str) -> Result<(), String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-~".contains(c);
    match suffix.chars().all(plain) {
        true => Ok(()),
        false => Err(format!("`{suffix}` may lead to another directory")),
    }
}

/// Whether a script only prints, deletes, substitutes and moves lines.
pub(super) fn is_plain(script: &str) -> bool {
    let mut reader = script.chars().peekable();
    while reader.peek().is_some() {
        if command(&mut reader).is_none() {
            return false;
        }
    }
    true
}

type Reader<'a> = Peekable<Chars<'a>>;

fn skip(reader: &mut Reader<'_>, wanted: impl Fn(char) -> bool) {
    while reader.next_if(|c| wanted(*c)).is_some() {}
}

/// Reads one command; none when it may do more.
fn command(reader: &mut Reader<'_>) -> Option<()> {
    skip(reader, |c| c.is_whitespace() || c == ';');
    if reader.peek().is_none() {
        return Some(());
    }
    if address(reader)? {
        skip(reader, |c| c == ' ');
        if reader.next_if_eq(&',').is_some() {
            skip(reader, |c| c == ' ');
            reader.next_if(|c| matches!(c, '+' | '~'));
            address(reader)?;
        }
    }
    skip(reader, |c| c == ' ' || c == '!');
    match reader.next()? {
        '{' | '}' => Some(()),
        'p' | 'P' | 'd' | 'D' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | 'z' | 'l' => {
            end(reader)
        }
        'q' | 'Q' => {
            skip(reader, |c| c == ' ' || c.is_ascii_digit());
            end(reader)
        }
        // The rest of the line is a name or a text.
        'b' | 't' | 'T' | ':' => {
            skip(reader, |c| {
                c.is_ascii_alphanumeric() || c == '_' || c == ' '
            });
            end(reader)
        }
        'a' | 'i' | 'c' => {
            skip(reader, |c| c != '\n');
            Some(())
        }
        '#' => {
            skip(reader, |c| c != '\n');
            Some(())
        }
        'y' => {
            let delimiter = reader.next()?;
            delimited(reader, delimiter)?;
            delimited(reader, delimiter)?;
            end(reader)
        }
        's' => {
            let delimiter = reader.next().filter(|c| !c.is_alphanumeric())?;
            delimited(reader, delimiter)?;
            delimited(reader, delimiter)?;
            skip(reader, |c| "gpiIM".contains(c) || c.is_ascii_digit());
            end(reader)
        }
        _ => None,
    }
}

/// A command ends with its line, a semicolon or a brace.
fn end(reader: &mut Reader<'_>) -> Option<()> {
    skip(reader, |c| c == ' ' || c == '\t');
    match reader.peek() {
        None | Some('}' | '#') => Some(()),
        Some(';' | '\n') => {
            reader.next();
            Some(())
        }
        Some(_) => None,
    }
}

/// Reads an address, if there is one.
fn address(reader: &mut Reader<'_>) -> Option<bool> {
    match reader.peek() {
        Some('/') => {
            reader.next();
            delimited(reader, '/')?;
        }
        Some('\\') => {
            reader.next();
            let delimiter = reader
                .next()
                .filter(|c| c.is_ascii_punctuation() && *c != '\\')?;
            delimited(reader, delimiter)?;
        }
        Some('$') => {
            reader.next();
        }
        Some(c) if c.is_ascii_digit() => skip(reader, |c| c.is_ascii_digit() || c == '~'),
        _ => return Some(false),
    }
    skip(reader, |c| matches!(c, 'I' | 'M'));
    Some(true)
}

/// Reads up to the delimiter. In brackets the delimiter may or may not be the
/// end, so such a one is refused.
fn delimited(reader: &mut Reader<'_>, delimiter: char) -> Option<()> {
    let mut bracket = false;
    let mut inside = 0;
    loop {
        let c = reader.next()?;
        match c {
            '\n' => return None,
            // A line that goes on is refused.
            '\\' => {
                reader.next().filter(|escaped| *escaped != '\n')?;
            }
            _ if c == delimiter && bracket => return None,
            _ if c == delimiter => return Some(()),
            '[' if !bracket => {
                bracket = true;
                inside = 0;
                reader.next_if_eq(&'^');
                continue;
            }
            ']' if bracket && inside > 0 => bracket = false,
            _ => {}
        }
        inside += 1;
    }
}
