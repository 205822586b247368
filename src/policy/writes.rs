//! Which arguments of a command count as written.
//!
//! A denial of `Edit(tests/**)` shall not keep a job from running
//! `pytest tests/x.py`. So two kinds of words are not held against it: those
//! that the granting rule itself spells, and what a program that is known to
//! run or compile files is given to run or compile. Everything else counts as
//! written: the arguments of programs that write, of programs that nothing is
//! known of, and the values of options that may name an output.

use super::bash::base_name;
use super::guard;
use super::table::listed;

/// A program that reads the files among its arguments, for all that this says
/// of itself: what the code in them does is out of sight here.
#[derive(Debug)]
struct Runner {
    /// Names without path and version, or `program subcommand`.
    programs: &'static str,
    /// Options without a value: what follows is an argument.
    flags: &'static str,
    /// Options whose value is only read.
    reads: &'static str,
}

/// Lists are separated by `, `. An option that is in none of its runner's lists
/// may write its value.
const RUNNERS: &[Runner] = &[
    Runner {
        programs: "pytest, py.test",
        flags: "-q, -qq, -v, -vv, -vvv, -x, -s, -l, -rA, -ra, --quiet, --verbose, --exitfirst, --lf, \
                --last-failed, --ff, --failed-first, --sw, --stepwise, --no-header, \
                --no-summary, --collect-only, --showlocals",
        reads: "-k, -m, -n, --deselect, --durations, --ignore, --ignore-glob, --maxfail, --tb",
    },
    Runner {
        programs: "unittest",
        flags: "-v, -q, -f, -b, --verbose, --quiet, --failfast, --buffer, --locals",
        reads: "-k, -s, -p, -t, --start-directory, --pattern, --top-level-directory",
    },
    Runner {
        programs: "cargo test, cargo t, cargo build, cargo b, cargo check, cargo c, cargo bench, cargo \
                   nextest, cargo doc, cargo d",
        flags: "-q, -v, -vv, -r, --, --quiet, --verbose, --release, --lib, --bins, --tests, --examples, \
                --benches, --all, --all-targets, --all-features, --workspace, \
                --no-default-features, --no-fail-fast, --no-run, --doc, --no-deps, --locked, \
                --offline, --frozen, --nocapture, --ignored, --include-ignored, --exact",
        reads: "-p, -F, -j, -E, --bench, --bin, --color, --example, --exclude, --features, --jobs, \
                --manifest-path, --package, --profile, --target, --test, --test-threads, --skip",
    },
    Runner {
        programs: "go test, go build, go vet",
        flags: "-v, -race, -short, -json, -failfast, -a, -n, -x, -cover",
        reads: "-run, -bench, -count, -timeout, -tags, -p, -parallel, -skip",
    },
    Runner {
        programs: "npm test, npm t, pnpm test, pnpm t, yarn test, bun test",
        flags: "-s, --, --silent",
        reads: "-t, --testNamePattern, --grep",
    },
    Runner {
        programs: "make, gmake",
        flags: "-k, -n, -s, -B, --keep-going, --dry-run, --silent, --quiet, --always-make",
        reads: "-j, -l, --jobs",
    },
    Runner {
        programs: "eslint, flake8, golangci-lint, hadolint, mypy, pylint, pyright, ruff check, shellcheck, \
                   staticcheck, yamllint",
        flags: "-q, -v, --quiet, --strict, --verbose",
        reads: "--ext, --exclude, --ignore, --select",
    },
    Runner {
        programs: "gcc, g++, cc, c++, clang, clang++, rustc",
        flags: "-c, -g, -E, -S, -Wall, -Wextra, -Werror, -fsyntax-only, -O0, -O1, -O2, -O3",
        reads: "-I, -L, -isystem, -iquote, -include, --edition, --crate-type, --crate-name",
    },
];

/// Programs that run the script which is their first argument.
const INTERPRETERS: &str = "bash, sh, dash, ksh, zsh, node, perl, php, python, ruby";

/// A script: what its options mean is its own.
const SCRIPT: Runner = Runner {
    programs: "",
    flags: "-q, -v, --quiet, --verbose",
    reads: "",
};

/// Parts of the names of options by which programs change what they are given.
const REWRITING: &[&str] = &[
    "accept",
    "bless",
    "fix",
    "inplace",
    "in-place",
    "overwrite",
    "record",
    "regen",
    "rewrite",
    "update",
    "write",
];

/// Whether the word at `at` counts as written by the command. The first
/// `spelled` words are those of the rule that grants it.
pub(super) fn is_written(words: &[String], spelled: usize, at: usize) -> bool {
    if at < spelled {
        return false;
    }
    let Some((runner, first)) = runner(words, spelled) else {
        return true;
    };
    let Some(word) = words.get(at).filter(|_| at >= first) else {
        return true;
    };
    let rewriting = words
        .iter()
        .skip(first.max(spelled))
        .any(|word| rewrites(word));
    // What a file of arguments says is not known.
    if rewriting || word.starts_with('@') {
        return true;
    }
    if word.starts_with('-') {
        return !runner.reads_value_of(word);
    }
    match words.get(at - 1).filter(|option| option.starts_with('-')) {
        // The value is in the option itself, or it takes none.
        Some(option) if at > first => {
            let takes_none = option.contains('=') || listed(runner.flags, option);
            !(takes_none || runner.reads_value_of(option))
        }
        Some(_) | None => false,
    }
}

/// Subcommands of git that write the files of the workspace.
const GIT_TREE: &str = "am, apply, bisect, checkout, checkout-index, cherry-pick, clean, merge, \
              merge-file, mv, pull, read-tree, rebase, reset, restore, revert, rm, \
              sparse-checkout, stash, submodule, switch, update-index, worktree";

/// Subcommands of git whose paths are written only where they are named.
const GIT_NAMED: &str = "checkout-index, clean, mv, restore, rm";

/// Commands that leave the tree alone although others of their kind do not.
const GIT_HARMLESS: &[&[&str]] = &[
    &["stash", "list"],
    &["stash", "show"],
    &["apply", "--check"],
    &["apply", "--stat"],
    &["apply", "--numstat"],
];

/// Whether a command may rewrite any file of the workspace, named or not.
pub(super) fn rewrites_tree(words: &[String]) -> bool {
    let [program, arguments @ ..] = words else {
        return false;
    };
    let program = program.rsplit('/').next().unwrap_or(program);
    if writes_unnamed(words) {
        return true;
    }
    // Options of git itself come first; what they take is not known here.
    let subcommand = match arguments.first() {
        Some(first) if program == "git" => first.as_str(),
        _ => return false,
    };
    if subcommand.starts_with('-') {
        return true;
    }
    if !listed(GIT_TREE, subcommand) {
        return false;
    }
    let texts: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let harmless = GIT_HARMLESS.iter().any(|known| texts.starts_with(known))
        && !texts
            .iter()
            .any(|word| *word == "--apply" || *word == "--index");
    // A pathspec can say more than the path it looks like.
    let magic = |word: &&str| word.contains(['*', '?', '[']) || word.starts_with(':');
    let rest = texts.get(1..).unwrap_or_default();
    let operands: Vec<&str> = rest
        .iter()
        .filter(|word| !word.starts_with('-'))
        .copied()
        .collect();
    let from_file = rest.iter().any(|word| word.starts_with("--pathspec"));
    let plain = !operands.is_empty() && !operands.iter().any(magic) && !from_file;
    match (subcommand, rest) {
        _ if harmless => false,
        // A new branch from where the tree stands.
        ("checkout", ["-b", _]) | ("switch", ["-c" | "--create", _]) => false,
        ("checkout", ["--", ..]) => !plain,
        ("reset", _) => {
            rest.iter().any(|word| {
                ["--h", "--m", "--k"]
                    .iter()
                    .any(|mode| word.starts_with(mode))
            }) && !rest.contains(&"--mixed")
        }
        _ => !(listed(GIT_NAMED, subcommand) && plain),
    }
}

/// Whether a command writes files that an archive or a patch names.
pub(super) fn unpacks(words: &[String]) -> bool {
    let [program, arguments @ ..] = words else {
        return false;
    };
    let program = program.rsplit('/').next().unwrap_or(program);
    let first = arguments.first().map_or("", String::as_str);
    let letters = |wanted: &[char]| {
        let cluster = |word: &&String| word.starts_with('-') && !word.starts_with("--");
        arguments
            .iter()
            .filter(cluster)
            .any(|word| word.contains(wanted))
    };
    let long = |begin: &str| arguments.iter().any(|word| word.starts_with(begin));
    match program {
        "tar" | "gtar" | "bsdtar" => {
            let old = !first.starts_with('-') && first.contains('x');
            (old || letters(&['x']) || long("--ex") || long("--get"))
                && !(letters(&['O']) || long("--to-stdout"))
        }
        "unzip" => !letters(&['l', 'p', 't', 'v', 'Z', 'c', 'z']),
        "7z" | "7za" | "7zr" => matches!(first, "x" | "e"),
        "cpio" | "pax" => true,
        "patch" => !(long("--dry") || letters(&['C'])),
        _ => false,
    }
}

/// Whether a command leaves what is below a directory that it is given as it
/// is: `git add .` only takes note of it.
pub(super) fn leaves_files_alone(words: &[String]) -> bool {
    let program = words.first().map(String::as_str);
    only_records(words) || matches!(program, Some("mkdir" | "touch"))
}

/// Whether a command takes note of files and writes none: one of git that
/// records them, without an option that runs another program.
pub(super) fn only_records(words: &[String]) -> bool {
    let first = words.get(1).map_or("", String::as_str);
    let git = words.first().is_some_and(|program| program == "git");
    git && listed("add, branch, commit, fetch, push, tag", first) && guard::check(words, 2).is_ok()
}

/// Options by which what unpacks is told where.
const PLACES: &[&str] = &["-C", "--directory", "-d", "-o", "--output"];

/// What else may write files that none of its words names: the program or its
/// subcommand, what has to be among the words, and what must not.
const UNNAMED: &[(&str, &[&str], &[&str])] = &[
    ("cargo fmt", &[], &["--check", "--help"]),
    ("cargo fix", &[], &[]),
    ("cargo clippy", &["--fix"], &[]),
];

/// Whether a command of no version control may rewrite files it does not name.
fn writes_unnamed(words: &[String]) -> bool {
    let program = words.first().map_or("", |word| base_name(word));
    let both = format!("{program} {}", words.get(1).map_or("", String::as_str));
    let any = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    (unpacks(words) && !any(PLACES))
        || UNNAMED.iter().any(|(of, wanted, without)| {
            (*of == program || *of == both) && (wanted.is_empty() || any(wanted)) && !any(without)
        })
}

/// Whether an option makes its program change what it is given to look at.
fn rewrites(word: &str) -> bool {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    name.starts_with('-')
        && (matches!(name, "-u" | "-w" | "-i")
            || REWRITING.contains(&value)
            || REWRITING.iter().any(|part| name.contains(part)))
}

/// The runner that a command is of, and where its arguments begin.
fn runner(words: &[String], spelled: usize) -> Option<(&'static Runner, usize)> {
    let (program, arguments) = words.split_first()?;
    // What stands in the workspace under a known name is not known.
    if program.contains('/') {
        return None;
    }
    let first = arguments.first().map_or("", String::as_str);
    let both = format!("{program} {first}");
    let named = |name: &str| RUNNERS.iter().find(|runner| listed(runner.programs, name));
    if let Some(runner) = named(&both) {
        return Some((runner, 2));
    }
    if let Some(runner) = named(program) {
        return Some((runner, 1));
    }
    let versionless = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !listed(INTERPRETERS, versionless) {
        return None;
    }
    match first {
        "-m" if spelled > 2 => named(arguments.get(1)?).map(|runner| (runner, 3)),
        _ if spelled > 1 && !first.starts_with('-') => Some((&SCRIPT, 2)),
        _ => None,
    }
}

impl Runner {
    /// Whether an option holds a value, as `--tb=short` or `-Iinclude`, that is
    /// only read.
    fn reads_value_of(&self, word: &str) -> bool {
        let name = word.split('=').next().unwrap_or(word);
        if listed(self.reads, name) {
            return true;
        }
        let letter = word.get(..2).unwrap_or_default();
        !word.starts_with("--") && letter.len() < word.len() && listed(self.reads, letter)
    }
}
