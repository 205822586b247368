//! What needs no rule runs no command: lines of assignments, each with a use of the
//! variable, are given to bash in a sandbox when they are allowed.
//!
//! An input chooses the pieces: three bytes a statement, for the name, the form
//! and the use. A fourth one says how the statement follows the one before.

#![no_main]

#[path = "../../it/support/assignments.rs"]
mod assignments;
#[path = "../../it/support/bash.rs"]
mod bash;
#[path = "../../it/support/confined.rs"]
mod confined;

use std::sync::{LazyLock, Mutex};

use agent::access::Access;
use agent::policy::{Enforcement, Permissions, Policy, Surroundings};
use libfuzzer_sys::fuzz_target;

use crate::assignments::{CANARY, FORMS, NAMES, USES, line};
use crate::confined::Confined;

static BASH: LazyLock<Mutex<Confined>> = LazyLock::new(|| Mutex::new(Confined::new()));

/// How a statement goes on from the one before it.
const JOINED: &[&str] = &["\n", "; ", " && ", " || ", " & ", "\n(:)\n", "\nset -- x\n"];

/// No rule at all, where a sandbox is enforced.
static NOTHING: LazyLock<Policy> = LazyLock::new(|| {
    let surroundings = Surroundings {
        workspace: "/".into(),
        sandbox: Enforcement::Enforced,
        ..Surroundings::default()
    };
    Policy::new(Permissions::default(), surroundings)
});

fn chosen<'t>(table: &[&'t str], byte: u8) -> &'t str {
    table[usize::from(byte) % table.len()]
}

fuzz_target!(|data: &[u8]| {
    let names: Vec<&str> = NAMES.split_whitespace().collect();
    let mut text = String::new();
    for bytes in data.chunks_exact(4).take(6) {
        let [name, form, usage, joined] = bytes else {
            return;
        };
        if !text.is_empty() {
            text.push_str(chosen(JOINED, *joined));
        }
        let (form, usage) = (chosen(FORMS, *form), chosen(USES, *usage));
        text.push_str(&line(form, usage, chosen(&names, *name)));
    }
    let call = [Access::Exec(text.clone())];
    if text.is_empty() || !NOTHING.decide("bash", &call).is_allowed() {
        return;
    }
    let mut bash = BASH.lock().expect("one thread");
    for ran in bash.run(&text) {
        let runs = ran.iter().any(|word| word == CANARY);
        assert!(!runs, "{text:?} is allowed and runs {ran:?}");
    }
});
