//! What is called "only `x`" runs nothing but `x`: every line that can be read
//! is given to bash, with an empty `PATH`, in a sandbox.
//!
//! Bash runs nothing but what the line is said to run; of a line that
//! `Bash(x:*)` allows that is `x` and what needs no rule beside it, and no file is
//! written. A command that follows a readable line is found behind it.

#![no_main]

#[path = "../../it/support/bash.rs"]
mod bash;
#[path = "../../it/support/confined.rs"]
mod confined;

use std::sync::{LazyLock, Mutex};

use agent::access::Access;
use agent::policy::{Permissions, Policy, Rule, Surroundings, simple_commands};
use libfuzzer_sys::fuzz_target;

use crate::bash::{fits, is_ambiguous};
use crate::confined::Confined;

static BASH: LazyLock<Mutex<Confined>> = LazyLock::new(|| Mutex::new(Confined::new()));

/// Allows `x`, and no writing.
static ONLY_X: LazyLock<Policy> = LazyLock::new(|| {
    let bash = BASH.lock().expect("one thread");
    let permissions = Permissions {
        allow: vec![Rule::parse("Bash(x:*)", "allow[0]").expect("a rule")],
        ..Permissions::default()
    };
    let surroundings = Surroundings {
        workspace: bash.workspace(),
        home: Some("/home/somebody".into()),
        ..Surroundings::default()
    };
    Policy::new(permissions, surroundings)
});

fuzz_target!(|line: &str| {
    let call = [Access::Exec(line.to_owned())];
    let allowed = ONLY_X.decide("bash", &call).is_allowed();
    let Ok(said) = simple_commands(line) else {
        assert!(!allowed, "{line:?} is allowed and cannot be read");
        return;
    };
    with_another_behind(line, &said);
    if said.iter().flatten().any(|word| is_ambiguous(word)) {
        return;
    }
    let mut bash = BASH.lock().expect("one thread");
    let workspace = bash.workspace().display().to_string();
    let said: Vec<Vec<String>> = said.into_iter().map(opened).collect();
    for ran in bash.run(line) {
        let ran: Vec<String> = ran.iter().map(|word| plain(word, &workspace)).collect();
        let inner = looked_through(&ran);
        let found = is_among(&ran, &said)
            || inner.iter().all(|inner| is_among(inner, &said))
            || is_read_in(&ran, &said);
        assert!(found, "{line:?} runs {ran:?}, and was said to run {said:?}");
        let only_x = inner
            .iter()
            .all(|inner| inner.first().is_some_and(|program| is_harmless(program)));
        assert!(only_x || !allowed, "{line:?} is allowed and runs {ran:?}");
    }
    let untouched = bash.is_untouched();
    assert!(untouched || !allowed, "{line:?} is allowed and writes");
});

/// Whether a program is `x`, or one that needs no rule beside it.
fn is_harmless(program: &str) -> bool {
    const BESIDE: &[&str] = &[
        "awk", "cat", "column", "cut", "echo", "egrep", "expand", "fgrep", "fold", "grep", "head",
        "jq", "nl", "nproc", "paste", "rev", "rg", "sed", "sort", "tac", "tail", "tr", "unexpand",
        "uniq", "wc",
    ];
    program == "x" || BESIDE.contains(&program)
}

/// Whether the command was said, or what follows a program that runs it.
fn is_among(ran: &[String], said: &[Vec<String>]) -> bool {
    let inner = |from: usize| ran.get(from..).unwrap_or_default();
    let mut places = 0..ran.len();
    places.any(|from| said.iter().any(|said| fits(inner(from), said)))
}

/// Whether it is the program of the sandbox, read by a `.` that was said.
fn is_read_in(ran: &[String], said: &[Vec<String>]) -> bool {
    let reads = |word: &String| word == "." || word == "source";
    ran.first().is_some_and(|program| program == "/bin/bash")
        && said.iter().any(|said| said.first().is_some_and(reads))
}

/// What a command runs that only runs others; otherwise itself.
fn looked_through(ran: &[String]) -> Vec<Vec<String>> {
    let quote = |word: &String| format!("'{}'", word.replace('\'', r"'\''"));
    let words: Vec<String> = ran.iter().map(quote).collect();
    match simple_commands(&words.join(" ")) {
        Ok(inner) => inner.into_iter().map(opened).collect(),
        Err(_) => vec![ran.to_vec()],
    }
}

/// What is said of a command, without what becomes names of files, and what
/// follows an unknown part of a word that may be several.
fn opened(words: Vec<String>) -> Vec<String> {
    let is_open = |at: usize| words.get(at).is_some_and(|word| word == "\u{fffd}");
    let open = |(at, word): (usize, &String)| match word.split_once('\u{fffd}') {
        Some((begin, _)) if is_open(at + 1) => format!("{begin}\u{fffd}"),
        _ if at > 0 && word.contains(['*', '?', '[']) => "\u{fffd}".to_owned(),
        _ => word.clone(),
    };
    words.iter().enumerate().map(open).collect()
}

/// A word as it would be in `/`, with one number for all process substitutions.
fn plain(word: &str, workspace: &str) -> String {
    let word = word.replace(workspace, "/");
    (40..63).fold(word, |word, number| {
        word.replace(&format!("/dev/fd/{number}"), "/dev/fd/63")
    })
}

/// A line that ends in a comment or in nothing open takes another one.
fn with_another_behind(line: &str, before: &[Vec<String>]) {
    let longer = format!("{line}\nthe_last_command found");
    if let Ok(after) = simple_commands(&longer) {
        let last = ["the_last_command".to_owned(), "found".to_owned()];
        assert!(after.iter().any(|words| *words == last), "{line:?}");
        assert!(
            after.len() > before.len() || before.contains(&last.to_vec()),
            "{line:?}"
        );
    }
}
