//! The paths that a command line may touch, as far as its text shows them.
//!
//! This is a net with known holes (a program opens what it likes); it keeps
//! path rules and protections from being walked around in plain sight.

use std::path::{Path, PathBuf};

use super::bash::base_name;
use super::breach::prints;
use super::code;
use super::command::CommandLine;
use super::guard;
use super::scope::{Located, Scope, Unresolved, normal};
use super::shell::UNKNOWN;
use super::texts;

/// More possible paths than this are not looked at; the command is refused.
const TOUCHED_MAX: usize = 2000;

/// A part of a command that may be a path.
#[derive(Debug)]
pub(crate) struct Touched {
    /// As it stands in the command.
    pub(crate) text: String,
    /// The word it stands in; none when the command has no known words.
    pub(crate) at: Option<usize>,
    pub(crate) place: Result<Located, Unresolved>,
}

impl Touched {
    /// Whether a part of the path is not known.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.text.contains(UNKNOWN)
    }
}

/// Which words count as paths when they do not look like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Every word: `touch VERSION`.
    All,
    /// Those that exist: `git rm VERSION`.
    Existing,
    /// None: `npm run build`, `cargo test parser`.
    None,
}

/// What a command may touch; none when there is too much to look at.
pub(crate) fn touched(command: &CommandLine, scope: &Scope) -> Option<Vec<Touched>> {
    let mut found = Vec::new();
    let look = Look {
        scope,
        directories: &command.directories,
    };
    match &command.words {
        Ok(words) => {
            let (program, arguments) = words.split_first()?;
            let names = match (guard::has_subcommands(words), base_name(program)) {
                (false, _) => Names::All,
                (true, "git") => Names::Existing,
                (true, _) if words.iter().skip(1).take(3).any(|word| sends(word)) => {
                    Names::Existing
                }
                (true, _) => Names::None,
            };
            if program.contains('/') {
                add((program, Some(0)), Names::All, &look, &mut found)?;
            }
            for (at, word) in arguments.iter().enumerate() {
                let names = if at == 0 && names == Names::Existing {
                    Names::None
                } else {
                    names
                };
                let printed = prints(base_name(program)) && word.contains(['*', ' ', '\n']);
                if printed || leaves_out(base_name(program), word) || texts::is_text(words, at + 1)
                {
                    continue;
                }
                for part in parts_of(base_name(program), word) {
                    add((part, Some(at + 1)), names, &look, &mut found)?;
                }
                for part in code::fragments(words, word) {
                    add((part, Some(at + 1)), Names::Existing, &look, &mut found)?;
                }
            }
        }
        Err(_) => {
            let outside = |c: char| c.is_whitespace() || ";&|<>()'\"`$=,{}:\\".contains(c);
            for part in command.text.split(outside) {
                add((part, None), Names::Existing, &look, &mut found)?;
            }
        }
    }
    Some(found)
}

/// Whether a subcommand hands files to somebody else.
fn sends(word: &str) -> bool {
    matches!(
        word,
        "apply"
            | "cp"
            | "create"
            | "mv"
            | "pack"
            | "publish"
            | "push"
            | "rsync"
            | "scp"
            | "sync"
            | "upload"
    )
}

/// Whether a word names what a search shall not open.
fn leaves_out(program: &str, word: &str) -> bool {
    let searches = matches!(
        program,
        "grep" | "egrep" | "fgrep" | "rgrep" | "diff" | "du"
    );
    // A label of a target: its root is the workspace.
    if matches!(program, "bazel" | "bazelisk" | "buck2") && word.starts_with("//") {
        return !word.contains("..") || word.ends_with("...");
    }
    searches && (word.starts_with("--exclude=") || word.starts_with("--exclude-dir="))
}

/// A word, the values in it, and what may stick to a short option, alone or
/// behind others: `-C..`, `-kC..`.
fn parts_of<'a>(program: &str, word: &'a str) -> Vec<&'a str> {
    if word.contains("://") && !word.contains("file://") {
        return Vec::new();
    }
    let mut parts = vec![word];
    const JOINTS: [char; 6] = ['=', ':', '@', ',', '<', ';'];
    if word.contains(JOINTS) {
        parts.extend(word.split(JOINTS));
    }
    if let Some(cluster) = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')) {
        // Which of the letters takes the rest only the program knows; `rg -.` is
        // one of them.
        let is_letter = |c: char| c.is_alphanumeric() || (program == "rg" && c == '.');
        for (at, letter) in cluster.char_indices() {
            if at > 0 && !is_letter(letter) {
                break;
            }
            parts.extend(cluster.get(at + letter.len_utf8()..));
        }
    }
    parts
}

/// Where parts of words are looked for.
struct Look<'a> {
    scope: &'a Scope,
    directories: &'a [PathBuf],
}

fn add(
    part: (&str, Option<usize>),
    names: Names,
    look: &Look<'_>,
    found: &mut Vec<Touched>,
) -> Option<()> {
    let (part, at) = part;
    // The last is what a process substitution becomes.
    let own = [
        "/dev/null",
        "/dev/stdin",
        "/dev/stdout",
        "/dev/stderr",
        "/dev/fd/63",
    ];
    if part.is_empty() || part.starts_with('-') || own.contains(&part) {
        return Some(());
    }
    if found.len() >= TOUCHED_MAX {
        return None;
    }
    for directory in look.directories {
        let scope = look.scope;
        // Of processes any is as bad as another.
        let certain = part.replace(UNKNOWN, "0");
        let path = at_home(&certain, scope).unwrap_or_else(|| directory.join(&certain));
        let counts = part.contains(['/', '.', '~', UNKNOWN])
            || match names {
                Names::All => true,
                Names::Existing => path.symlink_metadata().is_ok(),
                Names::None => false,
            };
        if !counts {
            continue;
        }
        found.push(Touched {
            text: part.to_owned(),
            at,
            place: scope.locate(&normal(&path)),
        });
        // The kernel follows a link before it goes up: `link/../x`.
        if part.contains("..")
            && let Some(real) = canonical(&path)
        {
            found.push(Touched {
                text: part.to_owned(),
                at,
                place: scope.locate(&real),
            });
        }
    }
    Some(())
}

/// What a part with a tilde stands for; the home of somebody else is only
/// known to be none of the workspace.
fn at_home(part: &str, scope: &Scope) -> Option<PathBuf> {
    let rest = part.strip_prefix('~')?;
    let own = rest.strip_prefix('/').or(rest.is_empty().then_some(rest));
    match (own, &scope.home) {
        (Some(below), Some(home)) => Some(home.join(below)),
        (Some(below), None) => Some(Path::new("/root").join(below)),
        // `x~` and `~1` are names that files have.
        (None, _) if rest.starts_with(|c: char| c.is_ascii_lowercase()) => {
            Some(Path::new("/home").join(rest))
        }
        (None, _) => None,
    }
}

/// The real path of what exists, or of the directory it would be in.
fn canonical(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok().or_else(|| {
        let parent = path.parent()?.canonicalize().ok()?;
        Some(parent.join(path.file_name()?))
    })
}
