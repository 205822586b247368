//! Configuration files of git, read and written as git does.

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

/// One setting of a configuration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    /// The section, in lower case.
    pub(super) section: String,
    /// What the section is for, as a URL or the name of a remote.
    pub(super) subsection: Option<String>,
    /// The name, in lower case.
    pub(super) name: String,
    /// The value; none stands for true.
    pub(super) value: Option<String>,
}

/// The settings of a file in their order, without comments; none when git could not
/// read it either.
pub(super) fn read(text: &str) -> Option<Vec<Setting>> {
    let mut reader = Reader {
        rest: text.trim_start_matches('\u{feff}').chars().peekable(),
    };
    let mut settings = Vec::new();
    let (mut section, mut subsection) = (String::new(), None);
    while let Some(next) = reader.rest.next() {
        match next {
            '#' | ';' => reader.skip_line(),
            '[' => (section, subsection) = reader.section()?,
            space if space.is_ascii_whitespace() => {}
            first if first.is_ascii_alphabetic() => {
                let (name, value) = reader.setting(first)?;
                settings.push(Setting {
                    section: section.clone(),
                    subsection: subsection.clone(),
                    name,
                    value,
                });
            }
            _ => return None,
        }
    }
    Some(settings)
}

/// A file with these settings.
pub(super) fn write(settings: &[Setting]) -> String {
    let mut text = String::new();
    let mut last = None;
    for setting in settings {
        let header = (&setting.section, &setting.subsection);
        if last != Some(header) {
            let subsection = setting.subsection.as_ref();
            let subsection = subsection.map(|name| format!(" {}", quoted(name)));
            let _ = writeln!(
                text,
                "[{}{}]",
                setting.section,
                subsection.unwrap_or_default()
            );
            last = Some(header);
        }
        let value = setting.value.as_ref();
        let value = value.map(|value| format!(" = {}", quoted(value)));
        let _ = writeln!(text, "\t{}{}", setting.name, value.unwrap_or_default());
    }
    text
}

/// A section with these settings, as a part of a file; nothing without any.
pub fn section(name: &str, settings: &[(&str, &str)]) -> String {
    let setting = |(key, value): &(&str, &str)| Setting {
        section: name.to_owned(),
        subsection: None,
        name: (*key).to_owned(),
        value: Some((*value).to_owned()),
    };
    write(&settings.iter().map(setting).collect::<Vec<_>>())
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '\n' => quoted.push_str("\\n"),
            '"' | '\\' => quoted.extend(['\\', character]),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
}

impl Reader<'_> {
    fn skip_line(&mut self) {
        let _ = self.rest.find(|character| *character == '\n');
    }

    /// What stands in brackets; the first one was read.
    fn section(&mut self) -> Option<(String, Option<String>)> {
        let mut name = String::new();
        loop {
            match self.rest.next()? {
                ']' => break,
                '"' => {
                    let subsection = self.subsection()?;
                    return Some((name.trim().to_ascii_lowercase(), Some(subsection)));
                }
                '\n' => return None,
                character => name.push(character),
            }
        }
        let name = name.to_ascii_lowercase();
        // The older way to write a subsection.
        Some(match name.split_once('.') {
            Some((section, subsection)) => (section.to_owned(), Some(subsection.to_owned())),
            None => (name, None),
        })
    }

    fn subsection(&mut self) -> Option<String> {
        let mut name = String::new();
        loop {
            match self.rest.next()? {
                '"' => break,
                '\\' => name.push(self.rest.next()?),
                '\n' => return None,
                character => name.push(character),
            }
        }
        (self.rest.next()? == ']').then_some(name)
    }

    /// A name that begins with `first`, and its value.
    fn setting(&mut self, first: char) -> Option<(String, Option<String>)> {
        let mut name = String::from(first.to_ascii_lowercase());
        while let Some(next) = self
            .rest
            .next_if(|next| next.is_ascii_alphanumeric() || *next == '-')
        {
            name.push(next.to_ascii_lowercase());
        }
        while self
            .rest
            .next_if(|next| matches!(next, ' ' | '\t' | '\r'))
            .is_some()
        {}
        match self.rest.peek() {
            None | Some('\n') => Some((name, None)),
            Some('#' | ';') => {
                self.skip_line();
                Some((name, None))
            }
            Some('=') => {
                self.rest.next();
                Some((name, Some(self.value()?)))
            }
            Some(_) => None,
        }
    }

    /// The value up to the end of its line, which a backslash carries on.
    fn value(&mut self) -> Option<String> {
        let (mut value, mut in_quotes) = (String::new(), false);
        // Blanks count only when something follows them.
        let mut blanks = String::new();
        loop {
            let Some(next) = self.rest.next().filter(|next| *next != '\n') else {
                return (!in_quotes).then_some(value);
            };
            match next {
                '#' | ';' if !in_quotes => {
                    self.skip_line();
                    return Some(value);
                }
                blank if !in_quotes && blank.is_ascii_whitespace() => {
                    if !value.is_empty() {
                        blanks.push(blank);
                    }
                    continue;
                }
                _ => value.push_str(&std::mem::take(&mut blanks)),
            }
            match next {
                '"' => in_quotes = !in_quotes,
                '\\' => match self.rest.next()? {
                    '\n' => {}
                    '\r' => {
                        self.rest.next_if_eq(&'\n')?;
                    }
                    'n' => value.push('\n'),
                    't' => value.push('\t'),
                    'b' => value.push('\u{8}'),
                    quote @ ('"' | '\\') => value.push(quote),
                    _ => return None,
                },
                other => value.push(other),
            }
        }
    }
}
