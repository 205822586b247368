//! Words that nobody knows before a command runs (`"$f"`, `$(…)`, what `xargs`
//! appends): where an allow rule may cover them.
//!
//! Such a word could turn out to be an option. That is harmless for programs
//! that have no option by which they run, write or load something, behind `--`,
//! and as the value of an option that takes any text. What the word names may
//! then be any file, which is why it is never covered for a program that writes.

use super::bash::base_name;
use super::shell::UNKNOWN;

/// Programs without options that run, write or load.
const TAME: &[&str] = &[
    "basename",
    "cat",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "df",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expand",
    "expr",
    "false",
    "fgrep",
    "fold",
    "grep",
    "head",
    "hexdump",
    "join",
    "ls",
    "md5sum",
    "nl",
    "od",
    "paste",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "tr",
    "true",
    "type",
    "unexpand",
    "wc",
    "which",
];

/// Programs with a text of their own language among their words, of which no
/// part may be unknown.
const CODE: &[&str] = &["awk", "gawk", "gsed", "jq", "mawk", "nawk", "sed", "yq"];

/// Options that take any text, of programs or of `program subcommand`.
const TAKES_TEXT: &[(&str, &[&str])] = &[
    ("git commit", &["-m", "--message", "--author", "--date"]),
    ("git tag", &["-m", "--message"]),
    (
        "git log",
        &[
            "--author",
            "--committer",
            "--grep",
            "--since",
            "--until",
            "--after",
            "--before",
            "-n",
            "-S",
            "-G",
        ],
    ),
    (
        "cargo",
        &[
            "-p",
            "--package",
            "--test",
            "--bin",
            "--example",
            "--features",
            "-j",
        ],
    ),
    ("pytest", &["-k", "-m", "-n"]),
    ("go", &["-run", "-count", "-timeout"]),
    (
        "find",
        &[
            "-name",
            "-iname",
            "-path",
            "-type",
            "-mtime",
            "-maxdepth",
            "-mindepth",
            "-size",
            "-newer",
            "-ipath",
            "-wholename",
            "-regex",
            "-iregex",
            "-printf",
            "-perm",
            "-user",
            "-group",
            "-mmin",
        ],
    ),
    ("grep", &["-e", "--regexp"]),
    ("rg", &["-e", "-g", "-t", "-A", "-B", "-C", "-m"]),
    ("sort", &["-k", "-t"]),
    ("curl", &["-H", "--header"]),
];

/// Whether a rule may cover the unknown parts of a command.
///
/// # Errors
/// Why not.
pub(crate) fn check(words: &[String]) -> Result<(), String> {
    let program = words.first().map_or("", |word| base_name(word));
    let mut operands = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        operands |= word == "--";
        let Some(mark) = word.find(UNKNOWN) else {
            continue;
        };
        if CODE.contains(&program) {
            return Err(format!(
                "a part of what `{program}` gets is not known before it runs"
            ));
        }
        let printf = program == "printf" && at > 1;
        if is_tame(program) || printf || operands || takes_text(words, at) {
            continue;
        }
        let value = word.starts_with("--") && word.find('=').is_some_and(|equals| equals < mark);
        if mark == 0 || (word.starts_with('-') && !value) {
            return Err(format!(
                "a word of `{program}` is not known before it runs and could be an option; write the value, or put \
                 `--` before it"
            ));
        }
    }
    Ok(())
}

/// Whether a program has no option that runs, writes or loads.
pub(crate) fn is_tame(program: &str) -> bool {
    TAME.contains(&program)
}

/// Whether a word is the value of an option that takes any text. Of several
/// such options in a row every other one is itself a value: in `-e -e x` the
/// second is what the first takes.
pub(crate) fn takes_text(words: &[String], at: usize) -> bool {
    let program = words.first().map_or("", |word| base_name(word));
    let both = format!("{program} {}", words.get(1).map_or("", String::as_str));
    // What begins with `@` is a file to curl.
    let file = program == "curl"
        && words
            .get(at)
            .is_some_and(|word| word.starts_with([UNKNOWN, '@']));
    let known = |word: &&String| {
        TAKES_TEXT.iter().any(|(of, options)| {
            (*of == program || *of == both) && options.contains(&word.as_str())
        })
    };
    let before = || words.get(..at).unwrap_or_default().iter().rev();
    let run = before().take_while(known).count();
    let taken = before()
        .nth(run)
        .is_some_and(|word| takes_next(program, word));
    !file && run % 2 == 1 && !taken
}

/// Whether an option of a search may take the word behind it, so that an option
/// there is none.
fn takes_next(program: &str, word: &str) -> bool {
    const LONG: &[&str] = &[
        "--count",
        "--extended-regexp",
        "--files-with-matches",
        "--fixed-strings",
        "--hidden",
        "--ignore-case",
        "--invert-match",
        "--line-number",
        "--no-messages",
        "--only-matching",
        "--perl-regexp",
        "--quiet",
        "--recursive",
        "--word-regexp",
    ];
    let alone = match program {
        "grep" => "EFGHILPRTUZabchilnoqrsvwxyz",
        "rg" => "FHILNPSUabchilnopqsuvwxz0.",
        _ => return false,
    };
    match word.strip_prefix('-') {
        None | Some("") => false,
        Some(long) if long.starts_with('-') => !long.contains('=') && !LONG.contains(&word),
        Some(letters) => !letters.chars().all(|letter| alone.contains(letter)),
    }
}

/// Whether a word may turn out to be another.
pub(crate) fn may_be(have: &str, want: &str) -> bool {
    let Some((begin, rest)) = have.split_once(UNKNOWN) else {
        return have == want;
    };
    let end = rest.rsplit(UNKNOWN).next().unwrap_or_default();
    want.starts_with(begin) && want.ends_with(end)
}

/// Whether a word may turn out to be an option.
pub(crate) fn may_be_option(word: &str) -> bool {
    word.starts_with(UNKNOWN)
}
