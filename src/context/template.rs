//! Prompt templates: Markdown files that a prompt of `/name arguments` stands
//! for, with places for the arguments.

use serde::Deserialize;

use super::front_matter;
use super::prompt_text::PromptText;

/// The largest file.
pub(super) const FILE_BYTES_MAX: usize = 64 * 1024;
/// The most templates of a session.
pub(super) const TEMPLATES_MAX: usize = 128;

const NAME_CHARS_MAX: usize = 64;

/// A prompt template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// The file's name without `.md`.
    pub name: String,
    /// What it is for, when its front matter says so.
    pub description: Option<String>,
    /// The file, relative to the workspace when inside it, otherwise absolute.
    pub location: String,
    /// The text with its places: `$1` to `$9` for single arguments, `$@` for
    /// all of them joined by spaces, `$ARGUMENTS` for all of them as they were
    /// written, `$$` for a dollar sign.
    pub body: String,
}

#[derive(Debug, Default, Deserialize)]
struct Header {
    #[serde(default)]
    description: Option<String>,
}

impl Template {
    /// Reads the text of a template.
    ///
    /// # Errors
    /// Why it is none, in words that follow its path.
    pub(super) fn parse(text: &str, name: &str, location: String) -> Result<Self, String> {
        let parts = front_matter::split(text);
        let header: Header = match parts.yaml.filter(|yaml| !yaml.trim().is_empty()) {
            Some(yaml) => front_matter::decode(yaml)
                .map_err(|error| format!("has bad front matter: {error}"))?,
            None => Header::default(),
        };
        if parts.body.is_empty() {
            return Err("is empty".to_owned());
        }
        Ok(Self {
            name: name.to_owned(),
            description: header.description,
            location,
            body: parts.body.to_owned(),
        })
    }

    /// The text with the arguments in their places, in one pass: what an
    /// argument says is not looked at again. A text without places gets the
    /// arguments at its end, so that they are never lost.
    pub(super) fn fill(&self, arguments: &Arguments<'_>) -> String {
        let mut text = String::with_capacity(self.body.len());
        let mut rest = self.body.as_str();
        let mut placed = false;
        while let Some(at) = rest.find('$') {
            let (before, place) = rest.split_at(at);
            text.push_str(before);
            let (value, length) = match place_at(place) {
                Place::Dollar => ("$".to_owned(), 2),
                Place::One(index) => (arguments.one(index), 2),
                Place::Joined => (arguments.words.join(" "), 2),
                Place::Written => (arguments.written.to_owned(), WRITTEN.len()),
                Place::None => ("$".to_owned(), 1),
            };
            placed |= !matches!(place_at(place), Place::Dollar | Place::None);
            text.push_str(&value);
            rest = place.get(length..).unwrap_or_default();
        }
        text.push_str(rest);
        if !placed && !arguments.written.is_empty() {
            text.push_str("\n\n");
            text.push_str(arguments.written);
        }
        text
    }
}

const WRITTEN: &str = "$ARGUMENTS";

/// What a dollar sign begins.
enum Place {
    Dollar,
    One(usize),
    Joined,
    Written,
    None,
}

fn place_at(text: &str) -> Place {
    match text.as_bytes().get(1) {
        Some(b'$') => Place::Dollar,
        Some(digit @ b'1'..=b'9') => Place::One(usize::from(digit - b'1')),
        Some(b'@') => Place::Joined,
        _ => {
            let behind = text.strip_prefix(WRITTEN).map(|rest| rest.chars().next());
            let goes_on = |c: char| c.is_ascii_alphanumeric() || c == '_';
            match behind {
                Some(next) if !next.is_some_and(goes_on) => Place::Written,
                _ => Place::None,
            }
        }
    }
}

/// What stands behind a `/name`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Arguments<'t> {
    /// As it was written.
    pub(super) written: &'t str,
    /// Its words, without their quotes.
    pub(super) words: Vec<String>,
}

impl<'t> Arguments<'t> {
    /// The arguments of a prompt from a byte on. Words are divided by white
    /// space; quotes and backslashes work as in a shell, except that a quote
    /// without a partner and an apostrophe within a word (`don't`) stand for
    /// themselves. A piece of data belongs to its word as it is.
    pub(super) fn parse(prompt: PromptText<'t>, from: usize) -> Self {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut at = from;
        while let Some(c) = prompt.char_at(at) {
            let next = at + c.len_utf8();
            if prompt.is_data(at) || !(c.is_whitespace() || "'\"\\".contains(c)) {
                word.get_or_insert_default().push(c);
                at = next;
            } else if c.is_whitespace() {
                words.extend(word.take());
                at = next;
            } else if let Some(quoted) = Quoted::at(prompt, at, word.as_deref()) {
                word.get_or_insert_default().push_str(&quoted.text);
                at = quoted.end;
            } else {
                word.get_or_insert_default().push(c);
                at = next;
            }
        }
        words.extend(word);
        Self {
            written: prompt.text.get(from..).unwrap_or_default().trim(),
            words,
        }
    }

    fn one(&self, index: usize) -> String {
        self.words.get(index).cloned().unwrap_or_default()
    }
}

/// A quoted piece of a word.
struct Quoted {
    text: String,
    /// Behind it.
    end: usize,
}

impl Quoted {
    /// What a quote or a backslash begins; none when it stands for itself.
    fn at(prompt: PromptText<'_>, at: usize, word: Option<&str>) -> Option<Self> {
        let quote = prompt.char_at(at)?;
        if quote == '\\' {
            let escaped = prompt.char_at(at + 1).filter(|_| !prompt.is_data(at + 1))?;
            return (escaped.is_whitespace() || "'\"\\".contains(escaped)).then(|| Self {
                text: escaped.to_string(),
                end: at + 1 + escaped.len_utf8(),
            });
        }
        let before = word.and_then(|word| word.chars().next_back());
        if quote == '\'' && before.is_some_and(char::is_alphanumeric) {
            return None;
        }
        let mut text = String::new();
        let mut end = at + 1;
        loop {
            let c = prompt.char_at(end)?;
            let data = prompt.is_data(end);
            end += c.len_utf8();
            if c == quote && !data {
                return Some(Self { text, end });
            }
            let escaped = prompt.char_at(end).filter(|c| "\"\\".contains(*c));
            match escaped {
                Some(escaped) if c == '\\' && quote == '"' && !data && !prompt.is_data(end) => {
                    text.push(escaped);
                    end += 1;
                }
                _ => text.push(c),
            }
        }
    }
}

/// Whether a text can be a template's name.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let first = name.chars().next();
    name.len() <= NAME_CHARS_MAX
        && first.is_some_and(|c| c.is_ascii_alphanumeric())
        && name.chars().all(fits)
}
