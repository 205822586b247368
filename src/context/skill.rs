//! Skills: directories with a `SKILL.md`, which says what kind of work it is
//! for and how to do it.
//!
//! The format is that of the Agent Skills specification: front matter with
//! `name` (the directory's) and `description`; other keys are for other
//! readers, but for `disable-model-invocation`, which keeps a skill out of the
//! list that the model sees.

use std::path::PathBuf;

use serde::Deserialize;

use super::front_matter;

/// The name of the file.
pub(super) const FILE: &str = "SKILL.md";
/// The largest file.
pub(super) const FILE_BYTES_MAX: usize = 64 * 1024;
/// The most skills of a session.
pub(super) const SKILLS_MAX: usize = 64;
/// The most bytes of all their names, places and descriptions.
pub(super) const LIST_BYTES_MAX: usize = 32 * 1024;

const NAME_CHARS_MAX: usize = 64;
const DESCRIPTION_CHARS_MAX: usize = 1_024;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Lower-case letters, digits and single hyphens; the directory's name.
    pub name: String,
    /// What it does and when it is of use, on one line.
    pub description: String,
    /// Its `SKILL.md`, relative to the workspace when inside it, otherwise
    /// absolute.
    pub location: String,
    /// The directory, absolute and real: what lies in it belongs to the skill.
    pub directory: PathBuf,
    /// What to do, without the front matter.
    pub body: String,
    /// Whether the model is told of it; without that only `/skill:name` uses it.
    pub listed: bool,
}

#[derive(Debug, Deserialize)]
struct Header {
    name: String,
    description: String,
    #[serde(default, rename = "disable-model-invocation")]
    unlisted: bool,
}

impl Skill {
    /// What it takes of the list that the model sees.
    pub(super) fn listed_bytes(&self) -> usize {
        match self.listed {
            true => self.name.len() + self.location.len() + self.description.len(),
            false => 0,
        }
    }

    /// Reads the text of a `SKILL.md` in a directory called `directory_name`.
    ///
    /// # Errors
    /// Why it is no skill, in words that follow its path.
    pub(super) fn parse(
        text: &str,
        directory_name: &str,
        location: String,
        directory: PathBuf,
    ) -> Result<Self, String> {
        let parts = front_matter::split(text);
        let yaml = parts
            .yaml
            .ok_or("does not begin with front matter (`---`, name, description, `---`)")?;
        let header: Header =
            front_matter::decode(yaml).map_err(|error| format!("has bad front matter: {error}"))?;
        if header.name != directory_name {
            return Err(format!(
                "is named `{}` in its front matter, but its directory is `{directory_name}`",
                header.name
            ));
        }
        if !is_name(&header.name) {
            return Err(
                "has a bad name: only lower-case letters, digits and single hyphens, at most 64"
                    .to_owned(),
            );
        }
        let words: Vec<&str> = header.description.split_whitespace().collect();
        let description = words.join(" ");
        let length = description.chars().count();
        if length == 0 || length > DESCRIPTION_CHARS_MAX {
            return Err(format!(
                "has a description of {length} characters; it needs 1 to {DESCRIPTION_CHARS_MAX}"
            ));
        }
        Ok(Self {
            name: header.name,
            description,
            location,
            directory,
            body: parts.body.to_owned(),
            listed: !header.unlisted,
        })
    }
}

/// Whether a text can be a skill's name.
pub(super) fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        !part.is_empty() && part.chars().all(fits)
    };
    name.len() <= NAME_CHARS_MAX && name.split('-').all(part)
}
