//! Lists and pipes of plain commands: when judging each by itself is enough.
//!
//! It is not when one command changes what the next one means: its directory,
//! its functions, the text it runs, or where its paths lead.

use super::bash::base_name;
use super::command::Simple;
use super::guard::{self, Reach};

/// Builtins that change the shell which runs the rest of the line.
const STATEFUL: &[&str] = &[
    ".",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "history",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "times",
    "trap",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// Programs that put links or other files where a later path was judged.
const MOVING: &[&str] = &["cp", "git", "ln", "mv"];

/// Subcommands of git that leave the files of the workspace alone.
const GIT_STILL: &[&str] = &["add", "branch", "commit", "fetch", "push", "tag"];

/// Programs whose words are no paths.
const NO_PATHS: &[&str] = &["echo", "false", "git", "printf", "pwd", "true"];

/// Whether the commands of a line can be judged one by one.
///
/// # Errors
/// Why they cannot.
pub(crate) fn check(parts: &[Simple<'_>]) -> Result<(), String> {
    let mut wrote = false;
    let mut moved = false;
    for part in parts {
        let program = part.words.first().map_or("", |word| base_name(word));
        let reads = guard::check(&part.words, 1) == Ok(Reach::Read);
        if STATEFUL.contains(&program) || (program == "printf" && !reads) {
            return Err(format!("`{program}` changes what the other commands do"));
        }
        if part.piped && !reads {
            return Err(format!("`{program}` may run what is piped to it"));
        }
        if wrote && !part.globs.is_empty() {
            return Err("a command before it may change what its glob means".to_owned());
        }
        if moved && !NO_PATHS.contains(&program) && names_a_path(&part.words) {
            return Err(format!(
                "a command before `{program}` may change where its paths lead"
            ));
        }
        wrote |= !reads;
        moved |= !reads && moves(program, &part.words);
    }
    Ok(())
}

fn moves(program: &str, words: &[String]) -> bool {
    let still = words
        .get(1)
        .is_some_and(|word| GIT_STILL.contains(&word.as_str()));
    let moving = MOVING.contains(&program) || !guard::is_known(words);
    moving && !(program == "git" && still)
}

fn names_a_path(words: &[String]) -> bool {
    let only_marked = guard::has_subcommands(words);
    words
        .iter()
        .skip(1)
        .any(|word| word.contains(['/', '.', '=']) || (!only_marked && !word.starts_with('-')))
}
