//! Commands that read whole directories: `grep -r`, `rg`, `diff -r`, `cp -r`,
//! `git grep`. What they would meet is looked up, as no word names it.

use super::bash::base_name;
use super::sweep::Sweep;

/// How a program takes its options.
struct Shape {
    /// Letters of options that take a value.
    with_value: &'static str,
    /// Whether its first operand is a pattern.
    pattern: bool,
}

/// The walk of a command, if it walks.
pub(crate) fn sweep(words: &[String]) -> Option<Sweep> {
    let program = words.first().map_or("", |word| base_name(word));
    match program {
        "grep" | "egrep" | "fgrep" | "rgrep" => grep(program, words),
        "rg" | "ripgrep" => rg(words),
        "git" if words.get(1).is_some_and(|word| word == "grep") => Some(git_grep(words)),
        "diff" | "gdiff" => Some(Sweep {
            roots: operands(words).map(str::to_owned).collect(),
            ..everything(words)
        }),
        "fd" | "fdfind" if has(words, "xX", &["exec", "exec-batch"]) => Some(fd(words)),
        // Archives and copies of directories have all that is in them.
        "tar" | "gtar" | "bsdtar" | "rsync" | "7z" | "7za" | "7zr" => Some(Sweep {
            roots: operands(words)
                .skip(usize::from(program != "rsync"))
                .map(str::to_owned)
                .collect(),
            ..everything(words)
        })
        .filter(|sweep| !sweep.roots.is_empty()),
        "zip" if has(words, "rR", &["recurse-paths", "recurse-patterns"]) => Some(Sweep {
            roots: operands(words).map(str::to_owned).collect(),
            ..everything(words)
        }),
        "cp" | "gcp" if has(words, "rRa", &["recursive", "archive"]) => {
            let mut roots: Vec<String> = operands(words).map(str::to_owned).collect();
            // The last one is where the copies go.
            if !has(words, "t", &["target-directory"]) {
                roots.pop();
            }
            Some(Sweep {
                roots,
                ..everything(words)
            })
        }
        _ => None,
    }
}

fn everything(words: &[String]) -> Sweep {
    let values = |name: &str| {
        words
            .iter()
            .filter_map(|word| word.strip_prefix(name)?.strip_prefix('='))
            .map(str::to_owned)
            .collect()
    };
    Sweep {
        hidden: true,
        ignored: true,
        only: values("--include"),
        except: values("--exclude"),
        except_below: values("--exclude-dir"),
        ..Sweep::default()
    }
}

fn grep(program: &str, words: &[String]) -> Option<Sweep> {
    let long = ["recursive", "dereference-recursive", "directories"];
    let recursive = program == "rgrep" || has(words, "rRd", &long);
    let shape = Shape {
        with_value: "ABCDdefm",
        pattern: !has(words, "ef", &["regexp", "file"]),
    };
    recursive.then(|| Sweep {
        roots: roots(words, &shape),
        follows: has(words, "R", &["dereference-recursive"]),
        ..everything(words)
    })
}

fn rg(words: &[String]) -> Option<Sweep> {
    if has(words, "", &["files", "type-list", "version", "help"]) {
        return None;
    }
    let shape = Shape {
        with_value: "ABCEdegfjmtTMr",
        pattern: !has(words, "ef", &["regexp", "file"]),
    };
    let unrestricted: usize = words
        .iter()
        .skip(1)
        .map(|word| match word.as_str() {
            "--unrestricted" => 1,
            _ if word.starts_with('-') && !word.starts_with("--") => word.matches('u').count(),
            _ => 0,
        })
        .sum();
    // A glob brings back what would be left out, and leaves out all the rest.
    let named = rg_globs(words, shape.with_value);
    let only: Vec<String> = named
        .iter()
        .filter(|glob| !glob.starts_with('!'))
        .map(|glob| (*glob).to_owned())
        .collect();
    let globs = !only.is_empty() || has(words, "", &["iglob", "ignore-file"]);
    Some(Sweep {
        roots: roots(words, &shape),
        hidden: globs || unrestricted > 1 || has(words, ".", &["hidden"]),
        ignored: globs || unrestricted > 0 || words.iter().any(|w| w.starts_with("--no-ignore")),
        follows: has(words, "L", &["follow"]),
        only: if only.iter().any(|glob| glob.contains('/')) {
            Vec::new()
        } else {
            only
        },
        ..Sweep::default()
    })
}

/// The values of `-g` and `--glob`.
fn rg_globs<'a>(words: &'a [String], with_value: &str) -> Vec<&'a str> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let value = match word.strip_prefix("--") {
            Some(long) => long.strip_prefix("glob"),
            None => word.strip_prefix('-').and_then(|cluster| {
                // The first letter that takes a value ends the cluster.
                let at = cluster.find(|c| with_value.contains(c))?;
                cluster.get(at..)?.strip_prefix('g')
            }),
        };
        match value.map(|value| value.strip_prefix('=').unwrap_or(value)) {
            Some("") => found.extend(words.get(at + 1).map(String::as_str)),
            Some(value) => found.push(value),
            None => {}
        }
    }
    found
}

fn git_grep(words: &[String]) -> Sweep {
    let shape = Shape {
        with_value: "ABCefm",
        pattern: !has(words, "ef", &[]),
    };
    // A path may come behind a revision, and magic says more than a path.
    let magic = |root: &String| root.starts_with(':') || root.contains(['*', '?', '[']);
    let named = roots(words.get(1..).unwrap_or_default(), &shape);
    Sweep {
        roots: match named.iter().any(magic) {
            true => Vec::new(),
            false => named,
        },
        hidden: true,
        ignored: has(words, "", &["no-index", "no-exclude-standard", "untracked"]),
        without_git: true,
        ..Sweep::default()
    }
}

/// Whether a command has one of these options: letters in any cluster, long
/// names in any abbreviation.
fn has(words: &[String], letters: &str, long: &[&str]) -> bool {
    words.iter().skip(1).any(|word| {
        if let Some(name) = word.strip_prefix("--") {
            let name = name.split('=').next().unwrap_or(name);
            return !name.is_empty() && long.iter().any(|long| long.starts_with(name));
        }
        word.strip_prefix('-')
            .is_some_and(|cluster| cluster.contains(|c| letters.contains(c)))
    })
}

fn operands(words: &[String]) -> impl Iterator<Item = &str> {
    let rest = words.iter().skip(1).map(String::as_str);
    rest.filter(|word| !word.starts_with('-'))
}

/// The words where a walk may begin. What may be the value of an option is
/// counted as well, but does not stand for the operand that it may not be.
fn roots(words: &[String], shape: &Shape) -> Vec<String> {
    let mut certain = Vec::new();
    let mut doubtful = Vec::new();
    let mut previous = "";
    for word in words.iter().skip(1).map(String::as_str) {
        let takes_next = match previous.strip_prefix('-') {
            Some(long) if long.starts_with('-') => long.len() > 1 && !long.contains('='),
            Some(cluster) => cluster
                .find(|c| shape.with_value.contains(c))
                .is_some_and(|at| at + 1 == cluster.len()),
            None => false,
        };
        previous = word;
        match (word.starts_with('-') && word.len() > 1, takes_next) {
            (true, _) => {}
            (false, true) => doubtful.push(word.to_owned()),
            (false, false) => certain.push(word.to_owned()),
        }
    }
    if shape.pattern && !certain.is_empty() {
        certain.remove(0);
    }
    if certain.is_empty() {
        return Vec::new();
    }
    certain.extend(doubtful);
    certain
}

/// Options of `fd` that take the next word.
const FD_VALUES: &str = "-t, --type, -e, --extension, -E, --exclude, -d, --max-depth, --min-depth, -j, --threads, \
                         -S, --size, -c, --color, -o, --owner, --changed-within, --changed-before";

/// `fd`: what comes behind `-x` is a command.
pub(crate) fn fd(words: &[String]) -> Sweep {
    let runs = |word: &String| matches!(word.as_str(), "-x" | "-X" | "--exec" | "--exec-batch");
    let end = words.iter().position(runs).unwrap_or(words.len());
    let words = words.get(..end).unwrap_or_default();
    let mut operands = Vec::new();
    let mut before = "";
    for word in words.iter().skip(1) {
        let value = FD_VALUES.split(", ").any(|option| option == before);
        if !value && !word.starts_with('-') {
            operands.push(word.clone());
        }
        before = word;
    }
    Sweep {
        // The first one is the pattern.
        roots: operands.into_iter().skip(1).collect(),
        hidden: has(words, "Hu", &["hidden", "unrestricted"]),
        // Ignore files count only in a repository.
        ignored: true,
        ..Sweep::default()
    }
}
