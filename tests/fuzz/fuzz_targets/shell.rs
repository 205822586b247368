//! What is called "only `x`" runs nothing but `x`: every line that can be read
//! is given to bash, with an empty `PATH`, in a sandbox.
//!
//! Bash runs nothing but what the line is said to run; of a line that
//! `Bash(x:*)` allows that is `x`, and no file is written. A command that
//! follows a readable line is found behind it.

#![no_main]

#[path = "../../it/support/bash.rs"]
mod bash;
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
    for ran in bash.run(line) {
        let found = said.iter().any(|said| fits(&ran, said));
        assert!(found, "{line:?} runs {ran:?}, and was said to run {said:?}");
        let only_x = ran.first().is_some_and(|program| program == "x");
        assert!(only_x || !allowed, "{line:?} is allowed and runs {ran:?}");
    }
    let untouched = bash.is_untouched();
    assert!(untouched || !allowed, "{line:?} is allowed and writes");
});

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
