//! Commands that print names of files, which `xargs` and `find -exec` hand to
//! others: which files these may be.

use super::bash::base_name;
use super::sweep::{Sweep, sweep};

/// Options of `find` that take a word, apart from those that are looked at.
const FIND_VALUES: &str = "-ipath, -path, -wholename, -iwholename, -regex, -iregex, -size, -mtime, -mmin, -ctime, \
                           -cmin, -atime, -amin, -newer, -newermt, -perm, -user, -group, -uid, -gid, \
                           -mindepth, -printf, -regextype, -lname, -ilname, -inum, -links, -samefile, -xtype";

/// The files that a command names; none when nothing is known of them.
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

/// `find`: what its expression leaves is at least what it prints.
fn find(words: &[String]) -> Sweep {
    let rest: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let begins = |word: &&&str| !word.starts_with(['-', '(', '!', ',']);
    let options = rest
        .iter()
        .take_while(|word| matches!(**word, "-L" | "-H" | "-P"))
        .count();
    let expression = rest.get(options..).unwrap_or_default();
    let roots: Vec<String> = expression
        .iter()
        .take_while(begins)
        .map(|root| (*root).to_owned())
        .collect();
    let tests = expression.get(roots.len()..).unwrap_or_default();
    let mut found = Sweep {
        roots,
        hidden: true,
        ignored: true,
        follows: rest.iter().any(|word| matches!(*word, "-L" | "-follow")),
        links: true,
        ..Sweep::default()
    };
    // Every way through the expression has to be narrowed by a name.
    let mut unnamed = false;
    for way in tests.split(|word| matches!(*word, "-o" | "-or" | ",")) {
        let names = names_of(way, &mut found);
        unnamed |= names.is_empty() && !way.contains(&"-prune");
        found.only.extend(names);
    }
    if unnamed {
        found.only.clear();
    }
    if !found.only.is_empty() {
        found.except.clear();
    }
    found
}

/// The names by which one way through an expression narrows what is found;
/// what narrows it otherwise goes to `found`.
fn names_of(way: &[&str], found: &mut Sweep) -> Vec<String> {
    let mut names = Vec::new();
    let mut negated = false;
    let mut rest = way.iter();
    while let Some(word) = rest.next() {
        match *word {
            "!" | "-not" => {
                negated = true;
                continue;
            }
            "-name" | "-iname" => {
                let name = rest.next().map(|name| (*name).to_owned());
                match negated {
                    true => found.except.extend(name),
                    false => names.extend(name),
                }
            }
            "-type" => {
                let kind = rest.next().copied().unwrap_or_default();
                found.links &= negated || kind.contains(['l', 'd']);
                found.directories_only |= kind == "d" && !negated;
            }
            "-maxdepth" => found.depth = rest.next().and_then(|depth| depth.parse().ok()),
            value if FIND_VALUES.split(", ").any(|option| option == value) => drop(rest.next()),
            _ => {}
        }
        negated = false;
    }
    names
}

/// `fd`: what comes behind `-x` is a command.
fn fd(words: &[String]) -> Sweep {
    let runs = |word: &String| matches!(word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let end = words.iter().position(runs).unwrap_or(words.len());
    let words = words.get(..end).unwrap_or_default();
    let letters = |wanted: [char; 2]| {
        words
            .iter()
            .any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains(wanted))
    };
    let long = |name: &str| words.iter().any(|word| word == name);
    Sweep {
        roots: operands(words.iter().skip(1)).into_iter().skip(1).collect(),
        hidden: letters(['H', 'u']) || long("--hidden") || long("--unrestricted"),
        // Ignore files count only in a repository.
        ignored: true,
        ..Sweep::default()
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
