//! The words of a command line, when they can be known without running bash:
//! one simple command of literal words. Whatever else bash could make of a
//! line is refused here, with the reason.

/// The longest command that is looked at, in bytes.
const LENGTH_MAX: usize = 64 * 1024;

/// Words that start a compound command, quoted or not.
const RESERVED: &[&str] = &[
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for",
    "function", "if", "in", "select", "then", "time", "until", "while",
];

/// The command is not one plain command of literal words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not one plain command: {reason}")]
pub struct NotPlain {
    /// What stands in the way, for people and models.
    pub reason: String,
}

fn refuse<T>(reason: impl Into<String>) -> Result<T, NotPlain> {
    Err(NotPlain {
        reason: reason.into(),
    })
}

/// The words that `bash -c` makes of `command`, after quote removal, when it
/// is exactly one simple command of literal words: plain characters, single
/// quotes, and double quotes in which nothing expands.
///
/// # Errors
/// When it is anything else, or when that is in doubt.
pub fn literal_words(command: &str) -> Result<Vec<String>, NotPlain> {
    if command.len() > LENGTH_MAX {
        return refuse(format!("it is longer than {LENGTH_MAX} bytes"));
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => word
                .get_or_insert_default()
                .push_str(&single_quoted(&mut rest)?),
            '"' => word
                .get_or_insert_default()
                .push_str(&double_quoted(&mut rest)?),
            _ => {
                let so_far = word.get_or_insert_default();
                plain(c, so_far)?;
                so_far.push(c);
            }
        }
    }
    words.extend(word);
    check_program(&words)?;
    Ok(words)
}

fn single_quoted(rest: &mut std::str::Chars<'_>) -> Result<String, NotPlain> {
    let mut text = String::new();
    for c in rest.by_ref() {
        match c {
            '\'' => return Ok(text),
            _ if unprintable(c) => return refuse("it contains a control character"),
            _ => text.push(c),
        }
    }
    refuse("a single quote is not closed")
}

fn double_quoted(rest: &mut std::str::Chars<'_>) -> Result<String, NotPlain> {
    let mut text = String::new();
    for c in rest.by_ref() {
        match c {
            '"' => return Ok(text),
            '$' | '`' | '\\' | '!' => {
                return refuse(format!("`{c}` is active inside double quotes"));
            }
            _ if unprintable(c) => return refuse("it contains a control character"),
            _ => text.push(c),
        }
    }
    refuse("a double quote is not closed")
}

/// Tabs and line ends are literal inside quotes; other control characters have
/// no business in a command.
fn unprintable(c: char) -> bool {
    c.is_control() && c != '\t' && c != '\n'
}

fn plain(c: char, so_far: &str) -> Result<(), NotPlain> {
    let reason = match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' => return Ok(()),
        '_' | '-' | '.' | '/' | ',' | ':' | '@' | '%' | '+' | '=' => return Ok(()),
        '^' if !so_far.is_empty() => return Ok(()),
        // `HEAD~1`; elsewhere (`~`, `x=~`, `x:~`) bash may expand it.
        '~' if so_far.ends_with(|last: char| last.is_ascii_alphanumeric()) => return Ok(()),
        '~' => "`~` is expanded by the shell",
        ';' | '&' | '|' => "it joins several commands or puts one in the background",
        '<' | '>' => "it redirects or substitutes",
        '(' | ')' => "it has a subshell or an array",
        '\n' | '\r' => "it has several lines",
        '$' | '`' => "it expands variables or substitutes commands",
        '*' | '?' | '[' | ']' => "it has a glob; quote it when it is meant literally",
        '{' | '}' => "it has a brace expansion or a group",
        '\\' => "it has a backslash; use single quotes",
        '!' | '^' => "it has a history or negation mark",
        '#' => "it has a comment",
        _ if c.is_control() => "it contains a control character",
        _ => "it has a character outside ASCII that is not quoted",
    };
    refuse(reason)
}

fn check_program(words: &[String]) -> Result<(), NotPlain> {
    let Some(program) = words.first() else {
        return refuse("it is empty");
    };
    if RESERVED.contains(&program.as_str()) {
        return refuse(format!("`{program}` starts a compound command"));
    }
    if program.contains('=') {
        return refuse("it sets a variable before the command");
    }
    let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '+' | '-');
    if !program.chars().all(named) || program.starts_with(['-', '+']) || program.is_empty() {
        return refuse("its first word is no program name");
    }
    Ok(())
}
