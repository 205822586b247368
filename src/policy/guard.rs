//! How far a prefix rule carries: arguments are covered as data, but not those
//! by which a program runs another, loads code, or writes where it should not.
//!
//! The programs are in [`super::table`], to be reviewed line by line. A program
//! that is not there is held to rules that suit most programs.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use super::bash::base_name;
use super::checks::options::telling_option;
use super::scope::normal;
use super::shell::UNKNOWN;
use super::table::{Covers, Guard, OTHER, listed, rows};

/// Which paths a covered command may have among its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// It only reads: any that is not protected.
    Read,
    /// It may write: those inside the workspace.
    Workspace,
}

/// More words than these are not looked at.
const WORDS_MAX: usize = 4096;

/// Options before a subcommand that only choose among what is there: of a
/// program, those without a value and those with one.
const BEFORE_SUBCOMMAND: &[(&str, &str, &str)] = &[
    (
        "git",
        "--no-pager, -P, --no-optional-locks, --literal-pathspecs, --no-replace-objects, --no-advice, \
         --no-lazy-fetch",
        "",
    ),
    (
        "cargo",
        "-q, --quiet, -v, --verbose, --locked, --offline, --frozen",
        "--color",
    ),
    ("npm", "-s, --silent, -q, --quiet", "-w, --workspace"),
    ("pnpm", "-r, --recursive, -s, --silent", "--filter, -F"),
    ("yarn", "-s, --silent", ""),
    ("kubectl", "-A, --all-namespaces", "-n, --namespace"),
    ("helm", "--debug", "-n, --namespace"),
    ("gh", "", "-R, --repo"),
    (
        "aws",
        "--no-cli-pager, --no-paginate",
        "--profile, --region, --output",
    ),
    ("pip", "-q, --quiet, -v, --verbose", ""),
    ("uv", "-q, --quiet, -v, --verbose, --offline", ""),
    ("poetry", "-q, --quiet, -n, --no-interaction, -v", ""),
    ("docker", "-D, --debug", "-l, --log-level"),
];

/// Options before a subcommand, with a value, that choose where it works: a
/// rule that spells them means them.
const BEFORE_WHEN_SPELLED: &[(&str, &str)] = &[
    ("git", "-C"),
    ("go", "-C"),
    ("npm", "--prefix, -C"),
    ("pnpm", "--dir, -C"),
    ("yarn", "--cwd"),
    ("kubectl", "--context, --cluster"),
    ("docker", "--context"),
    ("terraform", "-chdir"),
    ("gh", "--repo"),
];

/// Options of interpreters and runners that choose nothing that runs.
const RUNNER_PLAIN: &str = "-u, -B, -s, -S, -E, -I, -O, -OO, -q, -y, --yes, --no, --no-install, --quiet, --silent, \
                            --offline, --locked, --frozen, --enable-source-maps, --trace-warnings, -w";

/// Whether a rule whose first `named` words are those of the command covers
/// the rest of it.
///
/// # Errors
/// Why it does not.
pub(crate) fn check(words: &[String], named: usize) -> Result<Reach, String> {
    if let [_, only] = words
        && matches!(only.as_str(), "--version" | "--help")
    {
        return Ok(Reach::Read);
    }
    if words.len() > WORDS_MAX {
        return Err("it has too many words to look at".to_owned());
    }
    if words
        .first()
        .is_some_and(|word| base_name(word).starts_with("git-"))
        && let Some(split) = split_program(words)
    {
        return check(&split, named + 1);
    }
    if let Some(plain) = without_plain_options(words, named) {
        let taken = words.len() - plain.len();
        return check(&plain, named.saturating_sub(taken).max(named.min(1)));
    }
    let (guard, depth) = find(words);
    let program = words.first().map_or("", |word| base_name(word));
    let refuse = |why: &str| {
        format!(
            "a prefix rule does not cover this use of `{program}`: {why}; a rule with exactly \
             this command would"
        )
    };
    match covered(guard, depth, words, named).map_err(|why| refuse(&why))? {
        Scope::Inner(from) => {
            let inner = words.get(from..).unwrap_or_default();
            return check(inner, named.saturating_sub(from));
        }
        Scope::Script => return Ok(Reach::Workspace),
        Scope::Arguments => {}
    }
    if let Some(form) = refused_form(guard, words, named) {
        return Err(refuse(&format!("{form}: {}", guard.why)));
    }
    if let Some(check) = guard.check {
        check(words, named).map_err(|why| refuse(&why))?;
    }
    Ok(match writes(guard, words) {
        true => Reach::Workspace,
        false => guard.reach,
    })
}

/// What of a command is left to judge.
enum Scope {
    /// Its arguments, by the row.
    Arguments,
    /// A command from this word on.
    Inner(usize),
    /// Nothing: the words are a script's that the rule names.
    Script,
}

/// What a rule for `named` words covers by the kind of the program.
fn covered(guard: &Guard, depth: usize, words: &[String], named: usize) -> Result<Scope, String> {
    let first = words.get(depth).map_or("", String::as_str);
    match guard.covers {
        Covers::Arguments => Ok(Scope::Arguments),
        Covers::Nothing => Err(guard.why.to_owned()),
        Covers::NamedScript => {
            let options = options_before(words, depth, named);
            let script = words.get(options).map_or("", String::as_str);
            match script {
                "-V" if words.len() == depth + 1 => Ok(Scope::Script),
                "-m" if named > options + 1 => Ok(Scope::Inner(options + 1)),
                "-n" if named > depth && only_parses(words) => Ok(Scope::Script),
                _ if named > options && !script.starts_with(['-', '+']) => Ok(Scope::Script),
                _ => Err(guard.why.to_owned()),
            }
        }
        Covers::Wrapped => {
            let options = options_before(words, depth, named);
            let inner = words.get(options).map_or("", String::as_str);
            match named > options && !inner.starts_with('-') {
                true => Ok(Scope::Inner(options)),
                false => Err(guard.why.to_owned()),
            }
        }
        Covers::Subcommands(open) => {
            let asks = matches!(first, "" | "-V" | "-h" | "--list" | "-v" | "version");
            let named_enough = named > depth && !first.starts_with(['-', '+']);
            match asks || named_enough || listed(open, first) {
                true => Ok(Scope::Arguments),
                false => Err(guard.why.to_owned()),
            }
        }
    }
}

/// Whether a shell parses a script and runs nothing; another option before the
/// script could make it run that after all.
fn only_parses(words: &[String]) -> bool {
    let [program, option, script, ..] = words else {
        return false;
    };
    let shell = matches!(base_name(program), "bash" | "dash" | "sh");
    shell && option == "-n" && !script.starts_with(['-', '+', UNKNOWN])
}

/// Where the first word after `depth` stands that is none of the options that
/// choose nothing, as far as the rule names them.
fn options_before(words: &[String], depth: usize, named: usize) -> usize {
    let rest = words.iter().enumerate().skip(depth);
    let mut plain = rest.take_while(|(at, word)| *at < named && listed(RUNNER_PLAIN, word));
    plain.by_ref().last().map_or(depth, |(at, _)| at + 1)
}

/// The words of `git-push x` as those of `git push x`: families of programs
/// install their subcommands under such names too.
pub(crate) fn split_program(words: &[String]) -> Option<Vec<String>> {
    let (name, rest) = words.split_first()?;
    let (program, subcommand) = base_name(name).split_once('-')?;
    let named = !program.is_empty() && !subcommand.is_empty();
    named.then(|| {
        let first = [program.to_owned(), subcommand.to_owned()];
        first.into_iter().chain(rest.iter().cloned()).collect()
    })
}

/// The words of a command as it is without options before its subcommand that
/// change nothing: `git --no-pager log`, `cargo +nightly fmt`, and `git -C .`
/// where that leads to where it runs. None when there are no such options.
pub(crate) fn without_idle_options(
    words: &[String],
    directories: &[PathBuf],
) -> Option<Vec<String>> {
    let program = words.first()?;
    let name = base_name(program);
    let idle = BEFORE_SUBCOMMAND.iter().find(|(own, ..)| *own == name);
    let alone = idle.map_or("", |(_, alone, _)| *alone);
    let mut at = 1;
    loop {
        let word = words.get(at)?;
        let next = words.get(at + 1).map_or("", String::as_str);
        let toolchain = name == "cargo" && word.strip_prefix('+').is_some_and(is_channel);
        if listed(alone, word) || toolchain {
            at += 1;
        } else if name == "git" && word == "-C" && stays(next, directories) {
            at += 2;
        } else {
            break;
        }
    }
    (at > 1).then(|| {
        let rest = words.iter().skip(at);
        std::iter::once(program).chain(rest).cloned().collect()
    })
}

/// Whether a toolchain is one of Rust's own, by its channel or version; a name
/// of the user's own could be any directory.
fn is_channel(toolchain: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let (channel, date) = toolchain.split_once('-').unwrap_or((toolchain, "0"));
    let known = matches!(channel, "beta" | "nightly" | "stable");
    (known || channel.split('.').all(digits)) && date.split('-').all(digits)
}

/// Whether a directory is the one where a command runs already.
fn stays(directory: &str, directories: &[PathBuf]) -> bool {
    let plain = !directory.is_empty() && !directory.contains([UNKNOWN, '~']);
    let up = directory.split('/').any(|part| part == "..");
    plain
        && !up
        && directories
            .iter()
            .all(|from| normal(&from.join(directory)) == *from)
}

/// The words of a command without the options before its subcommand that
/// change nothing, or that the rule spells; none when there are none.
fn without_plain_options(words: &[String], named: usize) -> Option<Vec<String>> {
    let program = words.first()?;
    let name = base_name(program);
    let plain = BEFORE_SUBCOMMAND.iter().find(|(own, ..)| *own == name);
    let (alone, with_value) =
        plain.map_or(("", ""), |(_, alone, with_value)| (*alone, *with_value));
    let spelled = BEFORE_WHEN_SPELLED.iter().find(|(own, _)| *own == name);
    let spelled = spelled.map_or("", |(_, options)| *options);
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let option = word
            .split_once('=')
            .map_or(word.as_str(), |(option, _)| option);
        let taken = if option.len() < word.len() { 1 } else { 2 };
        let toolchain = name == "cargo" && word.starts_with('+');
        let by_rule = listed(spelled, option) && at + taken < named;
        if listed(alone, word) || (toolchain && at + 1 < named) {
            at += 1;
        } else if listed(with_value, option) || by_rule {
            at += taken;
        } else {
            break;
        }
    }
    (at > 1).then(|| {
        let rest = words.iter().skip(at);
        std::iter::once(program).chain(rest).cloned().collect()
    })
}

/// The first form among the arguments that a row refuses.
fn refused_form(guard: &Guard, words: &[String], named: usize) -> Option<String> {
    for (at, word) in words.iter().enumerate().skip(named.max(1)) {
        if guard.operands_after_dashes && word == "--" {
            return None;
        }
        if guard.by_name
            && let Some(form) = telling_option(word, words.get(at + 1))
        {
            return Some(form);
        }
        if let Some(form) = refused_word(guard, word).or_else(|| glued_path(word)) {
            return Some(form);
        }
    }
    None
}

/// A path behind several letters, as `-so/etc/x`: which letter it belongs to
/// only the program knows.
fn glued_path(word: &str) -> Option<String> {
    let cluster = word
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))?;
    let letters = cluster
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .count();
    let rest = cluster.get(letters..).unwrap_or_default();
    let path = rest.starts_with(['/', '~']) || rest.starts_with("../");
    (letters > 1 && path).then(|| format!("`{word}` holds a path"))
}

/// Whether an option makes a program that only reads write what it is given.
fn writes(guard: &Guard, words: &[String]) -> bool {
    !guard.writes.is_empty()
        && words
            .iter()
            .skip(1)
            .any(|word| match word.strip_prefix("--") {
                Some(long) => {
                    let name = long.split('=').next().unwrap_or(long);
                    guard.writes.split(", ").any(|option| {
                        !name.is_empty() && option.len() > 1 && option.starts_with(name)
                    })
                }
                None => word.strip_prefix('-').is_some_and(|cluster| {
                    let letters = guard.writes.split(", ").filter(|option| option.len() == 1);
                    letters.into_iter().any(|letter| cluster.contains(letter))
                }),
            })
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

/// Whether a command gives subcommands other names, so that none can be told.
pub(crate) fn renames_subcommands(words: &[String]) -> bool {
    let mut rest = words.iter().skip(1).map(|word| word.to_lowercase());
    let git = words.first().is_some_and(|word| base_name(word) == "git");
    git && rest.any(|word| {
        let setting = word.trim_start_matches("-c");
        setting.starts_with("alias.")
            || word.starts_with("--config-env")
            || setting.starts_with("include")
    })
}

/// The row of each program; of several rows the first counts.
static INDEX: LazyLock<HashMap<&'static str, &'static Guard>> = LazyLock::new(|| {
    let mut index = HashMap::new();
    for guard in rows() {
        for program in guard.programs.split(", ") {
            index.entry(program).or_insert(guard);
        }
    }
    index
});

/// The guard of a command, the one of its subcommand first, and the words
/// that name it.
fn find(words: &[String]) -> (&'static Guard, usize) {
    let program = words
        .first()
        .map_or("", |word| base_name(word))
        .to_lowercase();
    let versionless =
        program.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
    let named = |name: &str| INDEX.get(name).copied();
    if let Some(subcommand) = words.get(1) {
        let both = format!("{program} {subcommand}");
        if let Some(guard) = named(&both) {
            return (guard, 2);
        }
    }
    let guard = named(&program)
        .or_else(|| named(versionless))
        // `vim.basic` and its like.
        .or_else(|| named(program.split('.').next().unwrap_or_default()))
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
        if listed(guard.plain_long, name) {
            return None;
        }
        // `--config.script-shell` sets one key of what `--config` sets.
        let group = name.split_once('.').map_or("", |(group, _)| group);
        if listed(guard.long, group) {
            return Some(format!("`{word}` (`--{group}`)"));
        }
        // GNU programs take any unambiguous abbreviation, others `_` for `-`.
        let name = name.replace('_', "-");
        let meant = guard.long.split(", ").find(|refused| {
            !name.is_empty() && refused.replace('_', "-").starts_with(name.as_str())
        });
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
