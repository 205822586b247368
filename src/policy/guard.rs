//! How far a prefix rule carries: arguments are covered as data, but not those
//! by which a program runs another, loads code, or writes where it should not.
//!
//! The programs are in [`super::guard_table`] and [`super::guard_tools`], to be
//! reviewed line by line.
//! A program that is not there is held to rules that suit most programs.

use super::bash::base_name;
use super::guard_checks;
use super::guard_table::{Covers, GUARDS, Guard, OTHER};
use super::guard_tools::TOOLS;

/// Which paths a covered command may have among its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It only reads: any that is not protected.
    Read,
    /// It may write: those inside the workspace.
    Workspace,
}

/// Whether a rule whose first `named` words are those of the command covers
/// the rest of it.
///
/// # Errors
/// Why it does not.
pub(crate) fn check(words: &[String], named: usize) -> Result<Reach, String> {
    let (guard, depth) = find(words);
    let program = words.first().map_or("", |word| base_name(word));
    let refuse = |why: &str| {
        Err(format!(
            "a prefix rule does not cover this use of `{program}`: {why}; a rule with exactly \
             this command would"
        ))
    };
    let first = words.get(depth).map_or("", String::as_str);
    match guard.covers {
        Covers::Nothing => return refuse(guard.why),
        Covers::NamedScript => {
            let named_enough = match first {
                "-m" => named > depth + 1,
                _ => named > depth && !first.starts_with('-'),
            };
            let asks_version = words.len() == depth + 1 && matches!(first, "--version" | "-V");
            if asks_version {
                return Ok(Reach::Workspace);
            }
            if !named_enough {
                return refuse(guard.why);
            }
            if first == "-m" {
                return check(
                    words.get(depth + 1..).unwrap_or_default(),
                    named - depth - 1,
                );
            }
        }
        Covers::Wrapped => {
            if named <= depth || first.starts_with('-') {
                return refuse(guard.why);
            }
            return check(words.get(depth..).unwrap_or_default(), named - depth);
        }
        Covers::Subcommands(open) => {
            let asks = matches!(first, "" | "--version" | "--help" | "-V" | "-h" | "--list");
            let named_enough = named > depth && !first.starts_with(['-', '+']);
            if !asks && !named_enough && !listed(open, first) {
                return refuse(guard.why);
            }
        }
        Covers::Arguments => {}
    }
    for (at, word) in words.iter().enumerate().skip(named.max(1)) {
        if guard.operands_after_dashes && word == "--" {
            break;
        }
        if guard.by_name
            && let Some(form) = guard_checks::telling_option(word, words.get(at + 1))
        {
            return refuse(&format!("{form}: {}", guard.why));
        }
        if let Some(form) = refused_word(guard, word) {
            return refuse(&format!("{form}: {}", guard.why));
        }
        if at > 4096 {
            return refuse("it has too many words to look at");
        }
    }
    if let Some(check) = guard.check
        && let Err(why) = check(words, named)
    {
        return refuse(&why);
    }
    Ok(guard.reach)
}

/// Whether the table has the program of a command.
pub(crate) fn is_known(words: &[String]) -> bool {
    !find(words).0.programs.is_empty()
}

/// Whether the second word of a command names a subcommand.
pub(crate) fn has_subcommands(words: &[String]) -> bool {
    let (guard, depth) = find(words);
    depth > 1 || matches!(guard.covers, Covers::Subcommands(_))
}

/// The guard of a command, the one of its subcommand first, and the words
/// that name it.
fn find(words: &[String]) -> (&'static Guard, usize) {
    let program = words
        .first()
        .map_or("", |word| base_name(word))
        .to_lowercase();
    let versionless =
        program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let rows = || GUARDS.iter().chain(TOOLS);
    let named = |name: &str| rows().find(|guard| listed(guard.programs, name));
    if let Some(subcommand) = words.get(1) {
        let both = format!("{program} {subcommand}");
        if let Some(guard) = named(&both) {
            return (guard, 2);
        }
    }
    let guard = named(&program)
        .or_else(|| named(versionless))
        .unwrap_or(&OTHER);
    (guard, 1)
}

/// The refused form that a word has.
fn refused_word(guard: &Guard, word: &str) -> Option<String> {
    if listed(guard.words, word) {
        return Some(format!("`{word}`"));
    }
    if let Some(long) = word.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or(long);
        // GNU programs take any unambiguous abbreviation.
        let meant = guard
            .long
            .split(", ")
            .find(|refused| !name.is_empty() && refused.starts_with(name));
        return meant.map(|refused| format!("`{word}` (`--{refused}`)"));
    }
    let cluster = word.strip_prefix('-')?;
    // Some programs take long options after one hyphen.
    let name = cluster.split('=').next().unwrap_or(cluster);
    if name.len() > 1 && listed(guard.long, name) {
        return Some(format!("`{word}`"));
    }
    for letter in cluster.chars() {
        if guard.short.contains(letter) {
            return Some(format!("`-{letter}` in `{word}`"));
        }
        // The rest of the word is this option's value.
        if guard.with_value.contains(letter) {
            return None;
        }
    }
    None
}

/// Whether a list of the table has an item.
fn listed(list: &str, item: &str) -> bool {
    !item.is_empty() && list.split(", ").any(|listed| listed == item)
}
