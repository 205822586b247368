//! Paths in the code that a command has among its words: `python3 -c
//! 'open("x")'`, `sed 'r x'`, `vim -c 'r x'`. The code is not understood; what
//! is in quotes in it, what has a slash, and the words of languages of commands
//! may each be a path.

use super::bash::base_name;
use super::guard;

/// How the words of a program are looked into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    /// Paths stand in quotes.
    Quotes,
    /// Paths are words among others.
    Commands,
    /// The same, but only where the program does more than print.
    Editing,
}

/// Programs with code among their words, without version. Lists are separated
/// by `, `.
const LANGUAGES: &[(Language, &str)] = &[
    (
        Language::Quotes,
        "bun, crystal, deno, duckdb, elixir, erl, groovy, guile, irb, jshell, julia, lua, luajit, node, \
         nodejs, octave, osascript, perl, php, pypy, python, raku, rscript, ruby, swift, tclsh, ts-node, tsx",
    ),
    (
        Language::Commands,
        "ed, emacs, ex, gdb, lldb, mariadb, mysql, nvim, psql, sqlite, sqlite3, vi, view, vim",
    ),
    (
        Language::Editing,
        "awk, gawk, gsed, mawk, nawk, original-awk, sed",
    ),
];

/// Marks that no path of interest has.
const MARKS: &[char] = &[
    '(', ')', '[', ']', '{', '}', '<', '>', ';', ',', '=', '|', '&', '!', '"', '\'', '`', ' ',
    '\t', '\n',
];

/// Parts of a command's word that may be paths, when it holds code.
pub(super) fn fragments<'a>(words: &[String], word: &'a str) -> Vec<&'a str> {
    let program = words.first().map_or("", |word| base_name(word));
    let lower = program.to_lowercase();
    let versionless = lower.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let listed = |list: &str| {
        list.split(", ")
            .any(|own| own == lower || own == versionless)
    };
    let language = LANGUAGES.iter().find(|(_, programs)| listed(programs));
    // Git runs what follows a `!` in its settings.
    if language.is_none() && !word.starts_with('!') || !word.contains(MARKS) {
        return Vec::new();
    }
    let quoted = word.split(['"', '\'', '`']);
    match language.map(|(language, _)| *language) {
        Some(Language::Quotes) => {
            let parts = word
                .split(MARKS)
                .filter(|part| part.contains(['/', '.', '~']));
            quoted.chain(parts).collect()
        }
        Some(Language::Editing) if guard::check(words, 1).is_ok() => Vec::new(),
        Some(Language::Editing) => {
            // A letter may stick to its file: `rfile`.
            let parts = word.split(MARKS);
            let stuck = parts.filter_map(|part| part.strip_prefix(['r', 'R', 'w', 'W']));
            word.split(MARKS).chain(stuck).chain(quoted).collect()
        }
        Some(Language::Commands) | None => word.split(MARKS).chain(quoted).collect(),
    }
}
