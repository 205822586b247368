//! Globs among the words of a command: what bash will make of them, as far as
//! the directories show now.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use super::scope::normal;
use super::shell::Refusal;

/// More entries of directories than this are not looked at.
const ENTRIES_MAX: usize = 20_000;

/// More names than this are not put into a command.
const NAMES_MAX: usize = 2000;

/// The names that a glob stands for in one of these directories; the glob
/// itself where there are none.
///
/// # Errors
/// When that is too much to look at, or cannot be known.
pub(crate) fn expand(glob: &str, directories: &[PathBuf]) -> Result<Vec<String>, Refusal> {
    let fail = || Refusal {
        reason: format!("the glob `{glob}` stands for too much, or for what cannot be known"),
    };
    let mut found = Vec::new();
    for directory in directories {
        let names = expand_in(glob, directory).ok_or_else(fail)?;
        found.extend(names);
    }
    found.sort();
    found.dedup();
    if found.is_empty() {
        found.push(glob.to_owned());
    }
    Ok(found)
}

fn expand_in(glob: &str, directory: &Path) -> Option<Vec<String>> {
    if glob.starts_with(['/', '~']) {
        return None;
    }
    let mut left = ENTRIES_MAX;
    let mut found = vec![String::new()];
    for part in glob.split('/') {
        let mut next = Vec::new();
        for stem in found {
            let join = |name: &str| match stem.as_str() {
                "" => name.to_owned(),
                stem => format!("{stem}/{name}"),
            };
            if !part.contains(['*', '?', '[']) {
                if part == ".." {
                    return None;
                }
                next.push(join(part));
                continue;
            }
            let matcher = matcher(part)?;
            let names = names_in(&normal(&directory.join(&stem)), &mut left)?;
            // Bash leaves hidden names out unless the glob says the dot.
            let meant = names
                .iter()
                .filter(|name| part.starts_with('.') || !name.starts_with('.'));
            next.extend(
                meant
                    .filter(|name| matcher.is_match(Path::new(name)))
                    .map(|name| join(name)),
            );
        }
        if next.len() > NAMES_MAX {
            return None;
        }
        found = next;
    }
    // Literal parts behind a glob need not be there.
    found.retain(|name| directory.join(name).symlink_metadata().is_ok());
    Some(found)
}

/// A matcher for at least what bash's pattern matches: what is in brackets
/// counts as any character.
fn matcher(part: &str) -> Option<GlobMatcher> {
    let mut pattern = String::new();
    let mut rest = part.chars();
    while let Some(c) = rest.next() {
        match c {
            '[' => {
                let inside = rest.as_str();
                // A `]` that stands first is itself in the set.
                let first = inside.trim_start_matches(['!', '^']);
                let skipped = inside.len() - first.len() + usize::from(first.starts_with(']'));
                match inside.get(skipped..).and_then(|tail| tail.find(']')) {
                    Some(end) if !inside.contains("[:") => {
                        rest = inside.get(skipped + end + 1..)?.chars();
                        pattern.push('?');
                    }
                    Some(_) => return None,
                    None => pattern.push_str("[[]"),
                }
            }
            '{' | '}' | ']' => {
                pattern.push('[');
                pattern.push(c);
                pattern.push(']');
            }
            '\\' => return None,
            c => pattern.push(c),
        }
    }
    let glob = GlobBuilder::new(&pattern)
        .literal_separator(true)
        .build()
        .ok()?;
    Some(glob.compile_matcher())
}

fn names_in(directory: &Path, left: &mut usize) -> Option<Vec<String>> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Some(Vec::new());
    };
    let mut names = Vec::new();
    for entry in entries {
        *left = left.checked_sub(1)?;
        names.push(entry.ok()?.file_name().into_string().ok()?);
    }
    Some(names)
}
