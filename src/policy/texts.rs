//! Words of commands that are patterns, expressions or messages, and no paths:
//! `jq .env package.json` opens no `.env`.

use super::bash::base_name;
use super::checks::sed_scripts;
use super::guard;
use super::table::listed;
use super::uncertain;

/// A program whose first operand is a pattern or an expression. Lists are
/// separated by `, `; where an option is in none, nothing is said.
struct Shape {
    /// Names, or `program subcommand`.
    programs: &'static str,
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with one.
    values: &'static str,
    long_flags: &'static str,
    long_values: &'static str,
    /// Options with two values.
    long_pairs: &'static str,
    /// Options that take the pattern, so that no operand is it.
    instead: &'static str,
}

const SHAPES: &[Shape] = &[
    Shape {
        programs: "grep, egrep, fgrep, ggrep, zgrep, git grep",
        flags: "EFGHILPTUVZabchilnoqrRsvwxyz0123456789pW",
        values: "ABCDdm",
        long_flags: "extended-regexp, fixed-strings, basic-regexp, perl-regexp, ignore-case, word-regexp, \
                     line-regexp, no-messages, invert-match, count, files-with-matches, \
                     files-without-match, only-matching, quiet, silent, byte-offset, with-filename, \
                     no-filename, line-number, initial-tab, null, text, recursive, \
                     dereference-recursive, color, colour, null-data, name-only, cached, untracked, \
                     heading, break, show-function, function-context, all-match",
        long_values: "max-count, after-context, before-context, context, include, exclude, exclude-dir",
        long_pairs: "",
        instead: "-e, -f, --regexp, --file",
    },
    Shape {
        programs: "rg, ripgrep",
        flags: "FHILNPSUVXabchilnopqsuvwxz0.Q",
        values: "ABCEMTdgjmrt",
        long_flags: "hidden, no-ignore, no-ignore-vcs, ignore-case, smart-case, case-sensitive, \
                     fixed-strings, word-regexp, line-regexp, files-with-matches, files-without-match, \
                     count, count-matches, only-matching, line-number, no-line-number, no-heading, heading, \
                     with-filename, no-filename, column, vimgrep, json, stats, quiet, invert-match, \
                     multiline, multiline-dotall, pcre2, text, trim, follow, unrestricted, null, \
                     pretty, no-messages, passthru",
        long_values: "glob, iglob, type, type-not, max-count, max-depth, context, after-context, \
                      before-context, threads, sort, sortr, color, colors, encoding, replace, \
                      max-columns, max-filesize",
        long_pairs: "",
        instead: "-e, -f, --regexp, --file, --files, --type-list",
    },
    Shape {
        programs: "jq, gojq, jaq",
        flags: "CMRSVaceghjnrs",
        values: "",
        long_flags: "null-input, raw-input, slurp, compact-output, raw-output, raw-output0, join-output, \
                     ascii-output, sort-keys, color-output, monochrome-output, tab, unbuffered, stream, \
                     stream-errors, seq, exit-status, args, jsonargs",
        long_values: "indent",
        long_pairs: "arg, argjson, slurpfile, rawfile",
        instead: "-f, -L, --from-file, --library-path",
    },
];

/// Whether the word at `at` is a text.
pub(super) fn is_text(words: &[String], at: usize) -> bool {
    if uncertain::takes_text(words, at) {
        return true;
    }
    let program = words.first().map_or("", |word| base_name(word));
    let word = words.get(at).map_or("", String::as_str);
    match program {
        // A script that only prints opens nothing; a file of the same name is none.
        "sed" | "gsed" => {
            let this = |script: &&str| std::ptr::eq(*script, word);
            guard::check(words, 1).is_ok()
                && sed_scripts(words).is_ok_and(|all| all.iter().any(this))
        }
        "yq" => is_expression(words, at),
        _ => pattern_at(program, words) == Some(at),
    }
}

/// The expression of `yq`: before the files, where there are some. One that
/// could be the name of a file is opened where there is such a file.
fn is_expression(words: &[String], at: usize) -> bool {
    let mut operands = words
        .iter()
        .enumerate()
        .skip(1)
        .filter(|(_, word)| !word.starts_with('-'))
        .skip_while(|(_, word)| matches!(word.as_str(), "e" | "ea" | "eval" | "eval-all"));
    let first = operands.next();
    let name = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let plain = |(place, word): (usize, &String)| {
        place == at && word.starts_with('.') && !word.chars().all(name)
    };
    first.is_some_and(plain) && operands.next().is_some()
}

/// Where the pattern of a command stands, when that is certain.
pub(super) fn pattern_at(program: &str, words: &[String]) -> Option<usize> {
    let both = format!("{program} {}", words.get(1).map_or("", String::as_str));
    let (shape, mut at) = SHAPES.iter().find_map(|shape| {
        let named = |name: &str| listed(shape.programs, name);
        named(&both)
            .then_some((shape, 2))
            .or(named(program).then_some((shape, 1)))
    })?;
    let mut found = None;
    while let Some(word) = words.get(at) {
        let Some(option) = word.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            found = found.or(Some(at));
            at += 1;
            continue;
        };
        if option == "-" {
            return found.or(Some(at + 1));
        }
        at += shape.words_of(word, option)?;
    }
    found
}

impl Shape {
    /// How many words an option is, with its values; none when it is not known
    /// or takes the pattern.
    fn words_of(&self, word: &str, option: &str) -> Option<usize> {
        if let Some(long) = option.strip_prefix('-') {
            let (name, glued) = match long.split_once('=') {
                Some((name, _)) => (name, true),
                None => (long, false),
            };
            if listed(self.instead, &format!("--{name}")) {
                return None;
            }
            return match (
                listed(self.long_flags, name),
                listed(self.long_values, name),
            ) {
                (true, _) => Some(1),
                (_, true) if glued => Some(1),
                (_, true) => Some(2),
                _ if listed(self.long_pairs, name) => Some(3),
                _ => None,
            };
        }
        if listed(self.instead, word) {
            return None;
        }
        let mut letters = option.chars();
        while let Some(letter) = letters.next() {
            if self.values.contains(letter) {
                return Some(if letters.as_str().is_empty() { 2 } else { 1 });
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(1)
    }
}
