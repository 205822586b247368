//! The values in a workspace's files of credentials, where commands can read
//! the files: no output of the run may show them.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use crate::event::Warning;
use crate::model;
use crate::sandbox::Tier;
use crate::secret::Redactor;
use crate::task;

use super::blocking::blocking;
use super::environment::looks_like_credential;
use super::job::JobContext;

/// The most files that are read, and the most bytes and values of all together.
const FILES_MAX: usize = 200;
const FILE_BYTES_MAX: u64 = 64 * 1024;
const VALUES_MAX: usize = 500;
/// A longer value is a document and not a credential.
const VALUE_BYTES_MAX: usize = 4 * 1024;
/// The least characters of a value whose name says nothing of it.
const CHARS_MIN: usize = 8;

/// Makes the values in `files` known secrets of the run, unless commands cannot
/// read the files: only namespaces keep them from it. Gives a warning when some
/// values could not be learned.
pub(super) async fn hide(
    tier: Option<Tier>,
    files: Vec<PathBuf>,
    context: &JobContext,
) -> Option<Warning> {
    if files.is_empty() || tier == Some(Tier::Namespaces) {
        return None;
    }
    let redactor = context.settings.redactor.clone();
    let missed = blocking(move || learn_now(&files, &redactor)).await;
    missed.map(|missed| Warning {
        code: "protected_values".to_owned(),
        message: format!(
            "commands can read {missed}, and not all of its values are hidden in the output of \
             the run: move such files out of the workspace"
        ),
    })
}

/// Gives the first file of which something was missed.
fn learn_now(paths: &[PathBuf], redactor: &Redactor) -> Option<String> {
    let mut found = Vec::new();
    let files: Vec<PathBuf> = paths.iter().flat_map(|path| files_at(path)).collect();
    let mut missed = files.get(FILES_MAX).map(|file| file.display().to_string());
    for file in files.iter().take(FILES_MAX) {
        let read = task::read_text(file, FILE_BYTES_MAX);
        let text = match &read {
            Ok(text) => text.as_str(),
            Err(_) => "",
        };
        let new = text.lines().flat_map(values_of_line);
        found.extend(new.filter(|value| value.len() <= VALUE_BYTES_MAX));
        if (read.is_err() || found.len() > VALUES_MAX) && missed.is_none() {
            missed = Some(file.display().to_string());
        }
    }
    found.truncate(VALUES_MAX);
    redactor.learn(found);
    missed
}

/// The files in a directory of credentials, or the file itself. A link is not
/// followed to a directory, of which anything would become a secret.
fn files_at(path: &Path) -> Vec<PathBuf> {
    let is_directory = |found: Metadata| found.is_dir();
    if !path.symlink_metadata().is_ok_and(is_directory) {
        let elsewhere = path.metadata().is_ok_and(is_directory);
        return (!elsewhere).then(|| path.to_owned()).into_iter().collect();
    }
    let entries = path.read_dir().into_iter().flatten().flatten();
    let entries = entries.take(FILES_MAX);
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.path()).collect()
}

/// The values in a line such as `NAME=value`, `name: "value",` or
/// `machine host login name password value`.
fn values_of_line(line: &str) -> Vec<String> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return Vec::new();
    }
    if line.contains("://") {
        let word = line
            .split(['=', '"', '\''])
            .find(|word| word.contains("://"));
        return word
            .map(str::trim)
            .map(model::login_secrets)
            .unwrap_or_default();
    }
    let Some((name, value)) = line.split_once(['=', ':']) else {
        return values_of_words(line);
    };
    let name = bare(name.trim_start_matches("export ")).replace(['-', '.'], "_");
    let value = bare(value);
    let mut values: Vec<&str> = Vec::new();
    if looks_like_credential(&name) || looks_made(value) {
        values.push(value);
    }
    // `host:port:database:user:password`
    if value.matches(':').count() >= 3 {
        values.extend(value.rsplit(':').next());
    }
    values.into_iter().map(str::to_owned).collect()
}

/// Those that look made, and the one behind `password`.
fn values_of_words(line: &str) -> Vec<String> {
    let mut last = "";
    let mut values = Vec::new();
    for word in line.split_whitespace().map(bare) {
        if looks_made(word) || last == "password" {
            values.push(word.to_owned());
        }
        last = word;
    }
    values
}

/// A name or a value without blanks, quotes and the comma behind it.
fn bare(text: &str) -> &str {
    text.trim_matches(|symbol: char| symbol.is_whitespace() || matches!(symbol, '"' | '\'' | ','))
}

/// Whether a value has letters and digits, as words and paths seldom have.
fn looks_made(value: &str) -> bool {
    let has = |is: fn(char) -> bool| value.chars().any(is);
    value.chars().count() >= CHARS_MIN
        && has(|symbol| symbol.is_ascii_digit())
        && has(char::is_alphabetic)
}
