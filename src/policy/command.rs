//! The words of a command line, when they can be known without running bash:
//! simple commands of literal words, joined by plain operators. Whatever else
//! bash could make of a line is refused here, with the reason.

use super::assignment::assignment_denied;

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

/// One simple command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple<'a> {
    /// Its part of the line.
    pub(crate) text: &'a str,
    /// Its words after quote removal; a glob stands as it is.
    pub(crate) words: Vec<String>,
    /// Which words are globs.
    pub(crate) globs: Vec<usize>,
    /// Whether it reads what the command before it writes.
    pub(crate) piped: bool,
    /// Whether it has neither assignments nor redirections.
    pub(crate) bare: bool,
}

/// The words that `bash -c` makes of `command`, after quote removal, when it
/// is exactly one simple command of literal words: plain characters, single
/// quotes, and double quotes in which nothing expands.
///
/// # Errors
/// When it is anything else, or when that is in doubt.
pub fn literal_words(command: &str) -> Result<Vec<String>, NotPlain> {
    let mut parts = split(command)?;
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) if !only.globs.is_empty() => {
            refuse("it has a glob; quote it when it is meant literally")
        }
        (Some(only), true) if only.bare => Ok(only.words),
        (Some(_), true) => refuse("it redirects, or sets a variable before the command"),
        _ => refuse("it joins several commands or puts one in the background"),
    }
}

/// The words of each simple command of a line: literal words, globs and free
/// redirections (`2>&1`, `>/dev/null`), joined by `&&`, `||`, `;` and `|`.
///
/// # Errors
/// When it is anything else, or when that is in doubt.
pub fn simple_commands(line: &str) -> Result<Vec<Vec<String>>, NotPlain> {
    Ok(split(line)?.into_iter().map(|part| part.words).collect())
}

/// As [`simple_commands`], with what else is known of them.
pub(crate) fn split(line: &str) -> Result<Vec<Simple<'_>>, NotPlain> {
    if line.len() > LENGTH_MAX {
        return refuse(format!("it is longer than {LENGTH_MAX} bytes"));
    }
    let mut lexer = Lexer {
        line: line.trim_end_matches([' ', '\t', '\n']),
        ..Lexer::default()
    };
    while lexer.step()? {}
    lexer.end_command(lexer.at)?;
    Ok(lexer.done)
}

/// A word that is being read.
#[derive(Debug, Default)]
struct Word {
    text: String,
    glob: bool,
    quoted: bool,
}

/// How far a line is read.
#[derive(Debug, Default)]
struct Lexer<'a> {
    line: &'a str,
    at: usize,
    done: Vec<Simple<'a>>,
    /// Where the open command begins.
    from: usize,
    piped: bool,
    words: Vec<String>,
    globs: Vec<usize>,
    dressed: bool,
    word: Option<Word>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Reads on; false at the end.
    fn step(&mut self) -> Result<bool, NotPlain> {
        let rest = self.rest();
        let Some(c) = rest.chars().next() else {
            return Ok(false);
        };
        if self.word.is_none()
            && let Some(length) = free_redirection(rest)
        {
            self.dressed = true;
            self.at += length;
            return Ok(true);
        }
        if let Some(operator) = operator(rest) {
            self.end_command(self.at)?;
            self.at += operator.len();
            self.from = self.at;
            self.piped = operator == "|";
            return Ok(true);
        }
        self.at += c.len_utf8();
        match c {
            ' ' | '\t' => self.end_word()?,
            '\'' | '"' => {
                let mut inside = self.rest().chars();
                let text = match c {
                    '"' => double_quoted(&mut inside)?,
                    _ => single_quoted(&mut inside)?,
                };
                self.at = self.line.len() - inside.as_str().len();
                let word = self.word.get_or_insert_default();
                word.text.push_str(&text);
                word.quoted = true;
            }
            '\\' => self.escaped()?,
            '*' | '?' => {
                let word = self.word.get_or_insert_default();
                word.text.push(c);
                word.glob = true;
            }
            _ => {
                let word = self.word.get_or_insert_default();
                let reference = if c == '@' { reference(rest) } else { None };
                match reference {
                    Some(reference) => {
                        word.text.push_str(reference);
                        self.at += reference.len() - 1;
                    }
                    None => {
                        plain(c, &word.text)?;
                        word.text.push(c);
                    }
                }
            }
        }
        Ok(true)
    }

    /// A backslash takes the meaning from a mark; before a letter it would
    /// only hide what a word is.
    fn escaped(&mut self) -> Result<(), NotPlain> {
        match self.rest().chars().next() {
            Some(c) if c == ' ' || c.is_ascii_punctuation() => {
                let word = self.word.get_or_insert_default();
                word.text.push(c);
                word.quoted = true;
                self.at += 1;
                Ok(())
            }
            _ => refuse("it has a backslash; use single quotes"),
        }
    }

    fn end_word(&mut self) -> Result<(), NotPlain> {
        let Some(word) = self.word.take() else {
            return Ok(());
        };
        if word.glob && word.quoted {
            return refuse("it has a glob in a word with quotes");
        }
        if self.words.is_empty() && !word.quoted && !word.glob && is_harmless_variable(&word.text) {
            self.dressed = true;
            return Ok(());
        }
        if word.glob {
            self.globs.push(self.words.len());
        }
        self.words.push(word.text);
        Ok(())
    }

    fn end_command(&mut self, end: usize) -> Result<(), NotPlain> {
        self.end_word()?;
        check_program(&self.words)?;
        self.done.push(Simple {
            text: self.line.get(self.from..end).unwrap_or_default().trim(),
            words: std::mem::take(&mut self.words),
            globs: std::mem::take(&mut self.globs),
            piped: self.piped,
            bare: !std::mem::take(&mut self.dressed),
        });
        Ok(())
    }
}

/// The operator that a text begins with, if it is one that joins commands.
fn operator(rest: &str) -> Option<&'static str> {
    if rest.starts_with("|&") || rest.starts_with(";;") {
        return None;
    }
    ["&&", "||", ";", "|"]
        .into_iter()
        .find(|operator| rest.starts_with(operator))
}

/// The length of a redirection that changes no file and reads none.
fn free_redirection(rest: &str) -> Option<usize> {
    const FREE: &[&str] = &["2>&1", "1>&2", ">&2", ">&1"];
    let ended = |text: &str| text.is_empty() || text.starts_with([' ', '\t', ';', '|']);
    let duplicated = FREE.iter().find_map(|free| rest.strip_prefix(free));
    if let Some(after) = duplicated {
        return ended(after).then(|| rest.len() - after.len());
    }
    const TO: &[&str] = &["&>", "2>>", "1>>", ">>", "2>", "1>", ">", "<"];
    let target = TO.iter().find_map(|to| rest.strip_prefix(to))?;
    let after = target
        .trim_start_matches([' ', '\t'])
        .strip_prefix("/dev/null")?;
    ended(after).then(|| rest.len() - after.len())
}

/// `@{1}`, `@{upstream}`: braces that bash leaves alone.
fn reference(rest: &str) -> Option<&str> {
    let inner = rest.strip_prefix("@{")?;
    let end = inner.find('}')?;
    let name = inner.get(..end)?;
    let harmless = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    harmless.then(|| rest.get(..end + 3)).flatten()
}

fn is_harmless_variable(word: &str) -> bool {
    let Some((name, value)) = word.split_once('=') else {
        return false;
    };
    let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_name = name.chars().all(named) && !name.starts_with(|c: char| c.is_ascii_digit());
    // A time zone or a locale can be the path of a file.
    let of_zone = name == "TZ" || name.starts_with("LC_") || name.starts_with("LANG");
    let is_path = value.starts_with(['/', ':', '.']) || value.contains("..");
    let zone = name == "TZ" || !value.contains('/');
    !name.is_empty()
        && is_name
        && assignment_denied(name).is_none()
        && (!of_zone || (!is_path && zone))
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
    while let Some(c) = rest.next() {
        match c {
            '"' => return Ok(text),
            '$' | '`' => {
                return refuse(format!("`{c}` is active inside double quotes"));
            }
            '\\' => match rest.clone().next() {
                Some(marked @ ('$' | '`' | '"' | '\\')) => {
                    rest.next();
                    text.push(marked);
                }
                Some('\n') | None => return refuse("a backslash joins lines"),
                // Before anything else it stands for itself.
                Some(_) => text.push(c),
            },
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
