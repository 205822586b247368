//! Commands that need no rule of their own beside one that a rule allows:
//! `cargo test 2>&1 | tail -20; echo "exit: $?"`.
//!
//! They print their own words, or pass on what they read from a pipe or a
//! here-document, and open no file. Deny rules, protections and what is said of
//! redirections hold for them as for all others; a line that has nothing else
//! still needs a rule. A filter is held to this table and, as a second barrier,
//! to the row that the argument table has of it: a script of `sed` has to be
//! one that only prints.

use super::command::CommandLine;
use super::guard::{self, Reach};
use super::shell::UNKNOWN;
use super::table::listed;

/// A filter, as far as it reads standard input alone. Lists are separated by
/// `, `; an option that is in none of them makes it need a rule.
struct Filter {
    programs: &'static str,
    /// Letters of options without a value.
    flags: &'static str,
    /// Letters of options with one.
    values: &'static str,
    long_flags: &'static str,
    long_values: &'static str,
    /// How many operands are no files.
    operands: usize,
    /// Options that take what is otherwise the first operand.
    instead: &'static str,
}

const FILTER: Filter = Filter {
    programs: "",
    flags: "",
    values: "",
    long_flags: "",
    long_values: "",
    operands: 0,
    instead: "",
};

const FILTERS: &[Filter] = &[
    Filter {
        programs: "head, tail",
        flags: "qvz0123456789",
        values: "cn",
        long_flags: "quiet, silent, verbose",
        long_values: "bytes, lines",
        ..FILTER
    },
    Filter {
        programs: "wc",
        flags: "cLlmw",
        long_flags: "bytes, chars, lines, max-line-length, words",
        ..FILTER
    },
    Filter {
        programs: "cat, tac, rev",
        flags: "AbEenstTuv",
        long_flags: "number, number-nonblank, show-all, show-ends, show-nonprinting, show-tabs, squeeze-blank",
        ..FILTER
    },
    Filter {
        programs: "sort",
        flags: "bdfghiMnRrsuVz",
        values: "kt",
        long_flags: "general-numeric-sort, human-numeric-sort, ignore-case, numeric-sort, reverse, stable, \
                     unique, version-sort",
        long_values: "field-separator, key",
        ..FILTER
    },
    Filter {
        programs: "uniq",
        flags: "cDdiuz",
        values: "fsw",
        long_flags: "count, ignore-case, repeated, unique",
        long_values: "check-chars, skip-chars, skip-fields",
        ..FILTER
    },
    Filter {
        programs: "cut",
        flags: "nsz",
        values: "bcdf",
        long_flags: "complement, only-delimited",
        long_values: "bytes, characters, delimiter, fields, output-delimiter",
        ..FILTER
    },
    Filter {
        programs: "tr",
        flags: "Ccdst",
        long_flags: "complement, delete, squeeze-repeats, truncate-set1",
        operands: 2,
        ..FILTER
    },
    Filter {
        programs: "nl, fold, column, expand, unexpand, paste",
        flags: "asxz",
        values: "bcdiltw",
        ..FILTER
    },
    Filter {
        programs: "grep, egrep, fgrep",
        flags: "aEFGHhIiLlcnoPqsTvwxyZz0123456789",
        values: "ABCm",
        long_flags: "color, colour, count, extended-regexp, fixed-strings, ignore-case, invert-match, \
                     line-buffered, line-number, line-regexp, only-matching, perl-regexp, quiet, \
                     silent, text, word-regexp",
        long_values: "after-context, before-context, color, colour, context, max-count",
        operands: 1,
        instead: "e, regexp",
    },
    Filter {
        programs: "rg",
        flags: "acFHhIiLlNnoPqSsUvwx",
        values: "ABCm",
        long_flags: "case-sensitive, count, fixed-strings, ignore-case, invert-match, line-number, multiline, \
                     no-line-number, only-matching, quiet, smart-case, word-regexp",
        long_values: "after-context, before-context, color, context, max-count",
        operands: 1,
        instead: "e, regexp",
    },
    Filter {
        programs: "sed",
        flags: "Enrsuz",
        long_flags: "quiet, regexp-extended, silent, unbuffered",
        operands: 1,
        instead: "e, expression",
        ..FILTER
    },
    Filter {
        programs: "awk",
        values: "F",
        operands: 1,
        ..FILTER
    },
    Filter {
        programs: "jq",
        flags: "aCcejMnRrSs",
        long_flags: "ascii-output, color-output, compact-output, exit-status, join-output, monochrome-output, \
                     null-input, raw-input, raw-output, slurp, sort-keys, tab",
        operands: 1,
        ..FILTER
    },
];

/// Whether a command needs no rule beside an allowed one.
pub(super) fn is_companion(command: &CommandLine) -> bool {
    let Ok(words) = &command.words else {
        return false;
    };
    // What another program runs is not only printed: `sudo echo`.
    if command.free || !command.outers().is_empty() {
        return false;
    }
    match words.as_slice() {
        [program, ..] if program == "echo" => true,
        [program] => program == "nproc" || is_filter(command, words),
        words => is_filter(command, words),
    }
}

fn is_filter(command: &CommandLine, words: &[String]) -> bool {
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    let known = !arguments.iter().any(|word| word.contains(UNKNOWN));
    let filter = FILTERS.iter().find(|row| listed(row.programs, program));
    command.is_fed()
        && known
        && command.globs.is_empty()
        && filter.is_some_and(|row| row.reads_input_only(arguments))
        && guard::check(words, 1) == Ok(Reach::Read)
}

impl Filter {
    /// Whether no argument is a file, or an option that is not known.
    fn reads_input_only(&self, arguments: &[String]) -> bool {
        let mut operands = 0;
        let mut instead = 0;
        let mut rest = arguments.iter().map(String::as_str);
        while let Some(word) = rest.next() {
            let Some(option) = word.strip_prefix('-').filter(|option| !option.is_empty()) else {
                operands += 1;
                continue;
            };
            let read = match option.strip_prefix('-') {
                Some("") => {
                    operands += rest.by_ref().count();
                    break;
                }
                Some(long) => self.long(long, &mut rest),
                None => self.cluster(option, &mut rest),
            };
            match read {
                Some(taken) => instead += usize::from(taken),
                None => return false,
            }
        }
        operands + usize::from(instead > 0) <= self.operands
    }

    /// Reads a long option; says whether it takes what is otherwise an operand,
    /// none when it is not known.
    fn long<'a>(&self, long: &str, rest: &mut impl Iterator<Item = &'a str>) -> Option<bool> {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let taken = listed(self.instead, name);
        if value.is_none() && listed(self.long_flags, name) {
            return Some(false);
        }
        (taken || listed(self.long_values, name)).then_some(())?;
        value.or_else(|| rest.next()).map(|_| taken)
    }

    /// Reads letters, in the same way.
    fn cluster<'a>(&self, letters: &str, rest: &mut impl Iterator<Item = &'a str>) -> Option<bool> {
        for (at, letter) in letters.char_indices() {
            if self.flags.contains(letter) {
                continue;
            }
            let taken = listed(self.instead, letters.get(at..at + 1)?);
            (taken || self.values.contains(letter)).then_some(())?;
            let stuck = letters.get(at + 1..).filter(|stuck| !stuck.is_empty());
            return stuck.or_else(|| rest.next()).map(|_| taken);
        }
        Some(false)
    }
}
