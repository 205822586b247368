//! Commands that name files to others, by `find -exec` or through a pipe and
//! `xargs`: where these files are, and whether what is handed on is names at all.

use std::path::{Path, PathBuf};

use super::bash::base_name;
use super::find::find;
use super::globs;
use super::shell::{Hands, Namer};
use super::sweep::Sweep;
use super::walkers::{fd, sweep};

/// The walk that a command makes over the files of which it tells; none when
/// nothing is known of them.
pub(crate) fn listed_by(words: &[String]) -> Option<Sweep> {
    let program = words.first().map_or("", |word| base_name(word));
    let second = words.get(1).map_or("", String::as_str);
    let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.as_str()));
    match (program, second) {
        ("find" | "gfind", _) => Some(find(words)),
        ("git", "grep") | ("grep" | "egrep" | "fgrep" | "rgrep", _) => sweep(words),
        ("rg" | "ripgrep", _) if !has(&["--files"]) => sweep(words),
        ("rg" | "ripgrep", _) => {
            // Without a pattern, every operand is a place.
            let mut searched = words.to_vec();
            searched.retain(|word| word != "--files");
            searched.insert(1, "--regexp=x".to_owned());
            sweep(&searched)
        }
        ("git", "ls-files" | "diff" | "show" | "status" | "diff-tree" | "log") => Some(Sweep {
            hidden: true,
            ignored: has(&["-o", "--others", "-i", "--ignored"]),
            without_git: true,
            ..narrowed(words.iter().skip(2))
        }),
        ("ls", _) => Some(Sweep {
            roots: operands(words.iter().skip(1)),
            hidden: words
                .iter()
                .any(|word| word.starts_with('-') && word.contains(['a', 'A', 'f'])),
            ignored: true,
            links: true,
            depth: Some(1).filter(|_| {
                !words
                    .iter()
                    .any(|word| word.starts_with('-') && word.contains('R'))
            }),
            ..Sweep::default()
        }),
        ("fd" | "fdfind", _) => Some(fd(words)),
        _ => None,
    }
}

/// Words that narrow a list: globs of names, or places.
fn narrowed<'a>(words: impl Iterator<Item = &'a String>) -> Sweep {
    let named = operands(words);
    let globs = !named.is_empty() && named.iter().all(|name| name.starts_with("*."));
    match globs {
        true => Sweep {
            only: named,
            ..Sweep::default()
        },
        false => Sweep::default(),
    }
}

fn operands<'a>(words: impl Iterator<Item = &'a String>) -> Vec<String> {
    words
        .filter(|word| !word.starts_with('-'))
        .cloned()
        .collect()
}

/// Whether what a command hands on is names of files on its walk, as they are
/// called where it runs.
pub(crate) fn hands_names(namer: &Namer, directories: &[PathBuf], top: Option<&Path>) -> bool {
    let words = &namer.words;
    let program = words.first().map_or("", |word| base_name(word));
    let second = words.get(1).map_or("", String::as_str);
    // A file of roots may name any place.
    let anywhere = program.ends_with("find") && words.iter().any(|word| word == "-files0-from");
    match namer.hands {
        Hands::Files => return !anywhere,
        Hands::Lines => {}
        Hands::Text => return false,
    }
    let plain =
        |shape: &Names, from: usize| shape.are_listed(words.get(from..).unwrap_or_default());
    match (program, second) {
        ("find" | "gfind", _) => {
            !anywhere && !words.iter().any(|word| FIND_TEXT.contains(&word.as_str()))
        }
        ("grep" | "egrep" | "fgrep" | "rgrep", _) => plain(&GREP, 1),
        ("git", "grep") => plain(&GREP, 2),
        ("rg" | "ripgrep", _) => plain(&RG, 1),
        ("fd" | "fdfind", _) => plain(&FD, 1),
        ("git", "ls-files") => {
            // Magic and what is above are no part of the walk.
            let strays = |word: &String| word.starts_with(':') || word.contains("..");
            plain(&LS_FILES, 2) && !words.iter().any(strays)
        }
        // These names begin at the top of the repository.
        ("git", "diff") => {
            top.is_some_and(|top| directories.iter().all(|own| own == top)) && plain(&DIFF, 2)
        }
        ("ls", _) => plain(&LS, 1) && names_itself(words, directories),
        _ => false,
    }
}

/// Predicates of `find` that print something else than names.
const FIND_TEXT: &[&str] = &["-exec", "-execdir", "-ls", "-ok", "-okdir", "-printf"];

/// Whether the operands of an `ls` are what it prints: of a directory it prints
/// what is in it, without saying where that is.
fn names_itself(words: &[String], directories: &[PathBuf]) -> bool {
    let opens = |operand: &String| {
        let names = match operand.contains(['*', '?', '[']) {
            true => globs::expand(operand, directories),
            false => Ok(vec![operand.clone()]),
        };
        names.map_or(true, |names| {
            let mut places = directories.iter();
            places.any(|place| names.iter().any(|name| place.join(name).is_dir()))
        })
    };
    let whole = words
        .iter()
        .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('d'));
    whole || !operands(words.iter().skip(1)).iter().any(opens)
}

/// The options with which a command prints nothing but names. Lists are
/// separated by `, `.
struct Names {
    /// Letters without a value.
    letters: &'static str,
    /// Letters with one.
    with_value: &'static str,
    /// Long options without a value.
    long: &'static str,
    /// Long options with one.
    long_with_value: &'static str,
    /// Options of which it takes one to print names; none when it always does.
    needs: &'static str,
}

const GREP: Names = Names {
    letters: "rRlLiwvxEFGPHsaIzZ",
    with_value: "e",
    long: "recursive, dereference-recursive, files-with-matches, files-without-match, ignore-case, \
           word-regexp, extended-regexp, fixed-strings, perl-regexp, null, untracked, cached, \
           no-messages",
    long_with_value: "regexp, include, exclude, exclude-dir",
    needs: "-l, -L, --files-with-matches, --files-without-match",
};

const RG: Names = Names {
    letters: "liwxvFSsnUuLH0.",
    with_value: "gtTed",
    long: "files, files-with-matches, files-without-match, hidden, no-ignore, no-messages, \
           ignore-case, smart-case, fixed-strings, word-regexp, null, follow, unrestricted",
    long_with_value: "glob, iglob, type, type-not, regexp, max-depth, sort",
    needs: "-l, --files, --files-with-matches, --files-without-match",
};

const FD: Names = Names {
    letters: "HIusigFpL0",
    with_value: "teEdj",
    long: "hidden, no-ignore, unrestricted, glob, follow, ignore-case, case-sensitive, print0, \
           fixed-strings, full-path",
    long_with_value: "type, extension, exclude, max-depth, min-depth, threads",
    needs: "",
};

const LS_FILES: Names = Names {
    letters: "ocmdikz",
    with_value: "",
    long: "others, cached, modified, deleted, ignored, killed, exclude-standard, deduplicate",
    long_with_value: "",
    needs: "",
};

const DIFF: Names = Names {
    letters: "z",
    with_value: "",
    long: "name-only, cached, staged, merge-base",
    long_with_value: "diff-filter",
    needs: "--name-only",
};

const LS: Names = Names {
    // With `-a` it names what is above as well.
    letters: "1ArtSUXvdpL",
    with_value: "",
    long: "almost-all, reverse, directory",
    long_with_value: "sort",
    needs: "",
};

impl Names {
    /// Whether a command with these arguments prints names and nothing else.
    fn are_listed(&self, arguments: &[String]) -> bool {
        let has = |list: &str, item: &str| list.split(", ").any(|listed| listed == item);
        let mut lists = self.needs.is_empty();
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            if word == "--" {
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                lists |= has(self.needs, word);
                match long.split_once('=') {
                    Some((name, _)) if has(self.long_with_value, name) => {}
                    None if has(self.long_with_value, long) => drop(rest.next()),
                    None if has(self.long, long) => {}
                    _ => return false,
                }
                continue;
            }
            for (at, letter) in word.strip_prefix('-').unwrap_or_default().char_indices() {
                if self.with_value.contains(letter) {
                    // The value is the rest of the word, or the next one.
                    if at + 2 == word.len() {
                        rest.next();
                    }
                    break;
                }
                if !self.letters.contains(letter) {
                    return false;
                }
                lists |= has(self.needs, &format!("-{letter}"));
            }
        }
        lists
    }
}
