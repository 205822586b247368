//! Whether a command is what a deny rule is about, however it is said: the
//! program by its last path component, by its version or another name, options
//! before the subcommand looked through, other names of the subcommand known.

use super::bash::base_name;
use super::guard;
use super::options::has_option;
use super::shell::UNKNOWN;
use super::table::listed;
use super::uncertain;

/// Programs that are the same one.
const PROGRAMS: &[&str] = &[
    "awk, gawk, mawk, nawk",
    "cp, gcp",
    "gradle, gradlew",
    "make, gmake",
    "mv, gmv",
    "mvn, mvnd, mvnw",
    "node, nodejs",
    "rm, grm",
    "sed, gsed",
    "tar, bsdtar, gtar",
];

/// Words that say the same to a program, where the rule has one of them.
const SYNONYMS: &[(&str, &str)] = &[
    ("brew", "remove, rm, uninstall"),
    ("bun", "add, a, i, install"),
    ("bun", "remove, rm"),
    ("cargo", "b, build"),
    ("cargo", "c, check"),
    ("cargo", "d, doc"),
    ("cargo", "r, run"),
    ("cargo", "remove, rm"),
    ("cargo", "t, test"),
    ("gem", "i, install"),
    ("git", "push, send-pack, http-push"),
    ("git", "fetch, fetch-pack, http-fetch"),
    ("git", "add, stage"),
    ("helm", "del, delete, un, uninstall"),
    (
        "npm",
        "add, i, in, ins, inst, insta, instal, install, isnt, isnta, isntal, isntall",
    ),
    ("npm", "ci, clean-install, ic, install-clean, isntall-clean"),
    ("npm", "r, remove, rm, un, uninstall, unlink"),
    ("npm", "rum, run, run-script, urn"),
    ("npm", "exec, x"),
    ("npm", "t, test, tst"),
    ("npm", "c, config"),
    ("npm", "add-user, adduser, login"),
    ("npm", "author, owner"),
    ("npm", "dist-tag, dist-tags"),
    ("npm", "innit, init, create"),
    ("pnpm", "add, i, install"),
    ("pnpm", "remove, rm, un, uninstall"),
    ("pnpm", "run, run-script"),
    ("svn", "checkin, ci, commit"),
    ("svn", "del, delete, remove, rm"),
];

/// Words of a group of subcommands that may stand before the subcommand itself.
const GROUPS: &[(&str, &str)] = &[
    ("docker", "builder, buildx, container, image"),
    ("git", "subtree"),
    ("podman", "container, image"),
    ("yarn", "npm, workspace"),
];

/// Programs that do all that their operands name: any may be the rule's.
const TARGETS: &str = "ant, bazel, bmake, gmake, gradle, gradlew, gulp, invoke, just, lein, mage, make, mill, \
                       mvn, mvnd, mvnw, ninja, nox, npm-run-all, rake, run-p, run-s, samu, sbt, scons, task, \
                       tox, turbo";

/// What may follow the words of a deny rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// Options only.
    Options,
    Anything,
}

/// Whether the words fit a deny rule: the program by its last path component,
/// options looked through, the rule's options found anywhere. None in `want`
/// is any number of words.
pub(super) fn matches_laxly<'r>(
    want: impl Iterator<Item = Option<&'r String>> + Clone,
    words: &[String],
    tail: Tail,
) -> bool {
    let split = guard::split_program(words);
    split.is_some_and(|words| fits(want.clone(), &words, tail)) || fits(want, words, tail)
}

fn fits<'r>(
    mut want: impl Iterator<Item = Option<&'r String>>,
    words: &[String],
    tail: Tail,
) -> bool {
    let (Some(Some(program)), Some(have)) = (want.next(), words.first()) else {
        return false;
    };
    let (program, have) = (base_name(program), base_name(have));
    if !is_program(program, have) {
        return false;
    }
    if guard::renames_subcommands(words) {
        return true;
    }
    let mut rest = words.get(1..).unwrap_or_default();
    let may_be_option = rest.iter().any(|word| uncertain::may_be_option(word));
    let mut anywhere = listed(TARGETS, have);
    for part in want {
        match part {
            None => anywhere = true,
            Some(option) if option.starts_with('-') => {
                if !may_be_option && !has_option(words, option) {
                    return false;
                }
            }
            Some(word) => {
                let Some(at) = position_past_options(program, rest, word, anywhere) else {
                    return false;
                };
                rest = rest.get(at + 1..).unwrap_or_default();
                anywhere = false;
            }
        }
    }
    tail == Tail::Anything || anywhere || rest.iter().all(|word| word.starts_with(['-', UNKNOWN]))
}

/// Whether a program is the one that a rule names: `python3.11` is `python`.
fn is_program(want: &str, have: &str) -> bool {
    let version = |rest: &str| {
        let mut marks = rest.chars();
        marks.all(|c| c.is_ascii_digit() || c == '.' || c == '-')
    };
    want == have
        || have.strip_prefix(want).is_some_and(version)
        || PROGRAMS
            .iter()
            .any(|same| listed(same, want) && listed(same, have))
}

/// Where `word` stands, when only options, their values, and what else precedes
/// a subcommand stand before it: `+toolchain`, `NAME=value`, a group.
fn position_past_options(
    program: &str,
    words: &[String],
    word: &str,
    anywhere: bool,
) -> Option<usize> {
    let mut after_option = false;
    for (at, have) in words.iter().enumerate() {
        if says(program, have, word, anywhere) {
            return Some(at);
        }
        let option = have.starts_with('-');
        let passed = after_option || have.starts_with('+') || have.contains('=');
        if !option && !passed && !anywhere && !is_group(program, have) {
            return None;
        }
        after_option = option;
    }
    None
}

/// Whether a word of a command is the one that a rule has there, or says the
/// same. A target may be one of a part of the build: `:core:publish`.
fn says(program: &str, have: &str, want: &str, target: bool) -> bool {
    let synonym = |(of, words): &(&str, &str)| {
        is_program(of, program) && listed(words, have) && listed(words, want)
    };
    let part = target && have.split(':').any(|part| part == want);
    uncertain::may_be(have, want) || part || SYNONYMS.iter().any(synonym)
}

fn is_group(program: &str, word: &str) -> bool {
    let mut groups = GROUPS.iter();
    groups.any(|(of, words)| *of == program && listed(words, word))
}
