//! Which tools a hook is for: names and globs, as `bash` or `edit|write|mcp__*`.

use std::fmt;

/// Names and globs of tools, of which one must fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matcher {
    text: String,
    alternatives: Vec<String>,
}

/// A text that is no matcher.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MatchError {
    /// There is nothing between two bars, or nothing at all.
    #[error("`{0}` names no tool between two `|`")]
    Empty(String),
    /// A character that no name of a tool has.
    #[error("`{0}` is no name of a tool: letters, digits, `_`, `-`, `.`, `*` and `?` are allowed")]
    Character(String),
}

impl Matcher {
    /// Reads names and globs with `|` between them; `*` stands for any
    /// characters, `?` for one.
    ///
    /// # Errors
    /// When one of them is empty or can be no name.
    pub fn parse(text: &str) -> Result<Self, MatchError> {
        let mut alternatives = Vec::new();
        for part in text.split('|').map(str::trim) {
            if part.is_empty() {
                return Err(MatchError::Empty(text.to_owned()));
            }
            let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.*?".contains(c);
            if !part.chars().all(allowed) {
                return Err(MatchError::Character(part.to_owned()));
            }
            alternatives.push(part.to_owned());
        }
        Ok(Self {
            text: text.to_owned(),
            alternatives,
        })
    }

    /// Whether one of the alternatives fits.
    pub fn matches(&self, tool: &str) -> bool {
        self.alternatives
            .iter()
            .any(|glob| fits(glob.as_bytes(), tool.as_bytes()))
    }

    /// The alternatives that fit none of `tools`.
    pub fn idle<'m>(&'m self, tools: &'m [&str]) -> impl Iterator<Item = &'m str> {
        let idle = |glob: &&String| {
            !tools
                .iter()
                .any(|tool| fits(glob.as_bytes(), tool.as_bytes()))
        };
        self.alternatives.iter().filter(idle).map(String::as_str)
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Whether a glob fits a whole name. On a mismatch the last `*` takes one
/// character more, so the time is at most length times length.
fn fits(glob: &[u8], name: &[u8]) -> bool {
    let (mut g, mut n) = (0, 0);
    let mut star = None;
    while let Some(have) = name.get(n) {
        match glob.get(g) {
            Some(b'*') => {
                star = Some((g, n));
                g += 1;
            }
            Some(want) if *want == b'?' || want == have => {
                g += 1;
                n += 1;
            }
            _ => {
                let Some((at, taken)) = star else {
                    return false;
                };
                star = Some((at, taken + 1));
                g = at + 1;
                n = taken + 1;
            }
        }
    }
    glob.get(g..)
        .unwrap_or_default()
        .iter()
        .all(|rest| *rest == b'*')
}
