//! YAML between two lines of `---` at the begin of a Markdown file.

use serde::de::DeserializeOwned;

/// A Markdown file, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts<'t> {
    /// The YAML; none when the file does not begin with it.
    pub(super) yaml: Option<&'t str>,
    /// What follows, without blank lines around it.
    pub(super) body: &'t str,
}

/// Takes a file apart. Without a second line of `---` all of it is body.
pub(super) fn split(text: &str) -> Parts<'_> {
    let whole = Parts {
        yaml: None,
        body: trimmed(text),
    };
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else {
        return whole;
    };
    let mut end = first.len();
    for line in lines {
        if line.trim_end() == "---" {
            let behind = end + line.len();
            return Parts {
                yaml: text.get(first.len()..end),
                body: trimmed(text.get(behind..).unwrap_or_default()),
            };
        }
        end += line.len();
    }
    whole
}

/// Without blank lines before and white space behind.
fn trimmed(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some((line, rest)) = text.split_once('\n') {
        if !line.trim().is_empty() {
            break;
        }
        text = rest;
    }
    text
}

/// Decodes the YAML, bounded.
///
/// # Errors
/// In one line, what is wrong with it.
pub(super) fn decode<T: DeserializeOwned>(yaml: &str) -> Result<T, String> {
    let options = serde_yaml::options! {
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_yaml::from_str_with_options(yaml, options).map_err(|error| {
        let text = error.to_string();
        text.lines().next().unwrap_or_default().to_owned()
    })
}
