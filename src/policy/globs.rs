//! Globs among the words of a command: what bash will make of them, as far as
//! the directory shows now. Only programs that read have them allowed.

use std::path::Path;

use globset::GlobBuilder;

use super::bash::{CommandLine, base_name};
use super::command::NotPlain;
use super::guard;
use super::scope::{Scope, normal};

/// More entries of a directory than this are not looked at.
const ENTRIES_MAX: usize = 10_000;

/// Programs that take names and only read: whatever a glob becomes is data.
const READERS: &[&str] = &[
    "cat",
    "cksum",
    "cmp",
    "diff",
    "du",
    "egrep",
    "fgrep",
    "file",
    "find",
    "grep",
    "head",
    "ls",
    "md5sum",
    "nl",
    "rg",
    "sha1sum",
    "sha256sum",
    "sha512sum",
    "sort",
    "stat",
    "tac",
    "tail",
    "wc",
];

/// Whether a program may have a glob among its arguments at all.
pub(crate) fn may_have(words: &[String]) -> bool {
    words.first().is_some_and(|program| {
        READERS.contains(&program.as_str())
            && guard::is_known(words)
            && base_name(program) == program
    })
}

/// What the globs of a command stand for, with the words they stand in.
///
/// # Errors
/// When that cannot be known, or one would become an option.
pub(crate) fn expand(
    command: &CommandLine<'_>,
    scope: &Scope,
) -> Result<Vec<(usize, String)>, NotPlain> {
    let mut found = Vec::new();
    let Ok(words) = &command.words else {
        return Ok(found);
    };
    for at in &command.globs {
        let word = words.get(*at).map_or("", String::as_str);
        let names = expand_word(word, scope).ok_or_else(|| NotPlain {
            reason: format!("the glob `{word}` could become an option, or too much to look at"),
        })?;
        found.extend(names.into_iter().map(|name| (*at, name)));
    }
    Ok(found)
}

fn expand_word(word: &str, scope: &Scope) -> Option<Vec<String>> {
    let (folder, name) = word
        .rsplit_once('/')
        .map_or(("", word), |(folder, name)| (folder, name));
    if folder.contains(['*', '?']) || word.starts_with('/') || folder.contains("..") {
        return None;
    }
    // An option's value is not expanded alone: `--include=*.rs` is one word.
    let glob = GlobBuilder::new(&name.replace(['[', ']', '{', '}'], "?"))
        .literal_separator(true)
        .build()
        .ok()?
        .compile_matcher();
    let path = scope.workspace.join(folder);
    let entries = match std::fs::read_dir(normal(&path)) {
        Ok(entries) => entries,
        Err(_) => return Some(Vec::new()),
    };
    let mut found = Vec::new();
    for (count, entry) in entries.enumerate() {
        let entry_name = entry.ok()?.file_name();
        let hidden = entry_name.to_string_lossy().starts_with('.');
        if count > ENTRIES_MAX {
            return None;
        }
        // Bash leaves hidden names out unless the glob says the dot.
        if (hidden && !name.starts_with('.')) || !glob.is_match(Path::new(&entry_name)) {
            continue;
        }
        let text = entry_name.into_string().ok()?;
        if folder.is_empty() && text.starts_with('-') {
            return None;
        }
        found.push(if folder.is_empty() {
            text
        } else {
            format!("{folder}/{text}")
        });
    }
    Some(found)
}
