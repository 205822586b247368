//! What needs no rule is only computing: real bash runs every line of assignments
//! that is allowed, in a sandbox of its own, and none of them runs a command.

use std::process::Command;
use std::time::Duration;

use agent::access::Access;
use agent::policy::{Enforcement, Permissions, Policy, Rule, Surroundings};

use crate::support::assignments::{CANARY, FORMS, NAMES, USES, line};
use crate::support::confined::Confined;

/// So many lines are given to one bash, each in a subshell.
const TOGETHER: usize = 50;
const TIME_MAX: Duration = Duration::from_secs(60);
/// Runs last of such lines, so that it is seen that all of them were run.
const LAST: &str = "the_last_command";

/// Names with everything that can be done with them: one that means nothing, some
/// that bash sets in the midst of a line, and some that commands are given.
const CARRIERS: &[&str] = &["x", "_", "BASH_REMATCH", "PAGER"];

fn policy() -> Policy {
    let permissions = Permissions {
        // What assigns and needs a rule all the same has one.
        allow: vec![Rule::parse("Bash(printf:*)", "allow[0]").expect("a rule")],
        ..Permissions::default()
    };
    let surroundings = Surroundings {
        workspace: "/".into(),
        sandbox: Enforcement::Enforced,
        ..Surroundings::default()
    };
    Policy::new(permissions, surroundings)
}

fn is_allowed(policy: &Policy, line: &str) -> bool {
    let call = [Access::Exec(line.to_owned())];
    policy.decide("bash", &call).is_allowed()
}

/// Runs the lines that are allowed; says how many those were.
fn run_allowed(lines: impl Iterator<Item = String>) -> usize {
    let policy = policy();
    let lines: Vec<String> = lines.filter(|line| is_allowed(&policy, line)).collect();
    let mut bash = Confined::new();
    for together in lines.chunks(TOGETHER) {
        let mut text: String = together
            .iter()
            .map(|line| format!("(\n{line}\n)\n"))
            .collect();
        text.push_str(LAST);
        let ran = bash.run_within(TIME_MAX, &text);
        let is = |name: &str| {
            ran.iter()
                .any(|words| words.first().is_some_and(|word| word == name))
        };
        assert!(is(LAST), "not all of these were run: {together:#?}");
        if is(CANARY) {
            let runs = |line: &&String| {
                let ran = bash.run_within(TIME_MAX, line);
                ran.iter().flatten().any(|word| word == CANARY)
            };
            let guilty: Vec<&String> = together.iter().filter(runs).collect();
            panic!("allowed, and runs a command: {guilty:#?}");
        }
    }
    lines.len()
}

/// The names of the table, and those that this bash sets.
fn names() -> Vec<String> {
    #[expect(clippy::disallowed_methods, reason = "bash is asked what it knows")]
    let known = Command::new("bash")
        .args(["-c", "compgen -v"])
        .env_clear()
        .output()
        .expect("bash runs");
    let known = String::from_utf8(known.stdout).expect("names");
    let mut names: Vec<String> = NAMES
        .split_whitespace()
        .chain(known.lines())
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn no_assignment_that_is_allowed_runs_a_command() {
    let names = names();
    assert!(names.len() > 110, "only {} names", names.len());
    let lines = names
        .iter()
        .flat_map(|name| FORMS.iter().map(|form| line(form, ":", name)));
    let ran = run_allowed(lines);
    assert!(ran > 1000, "only {ran} lines are allowed");
}

#[test]
fn no_value_that_is_read_runs_a_command() {
    let policy = policy();
    let mut lines = Vec::new();
    for name in CARRIERS {
        // What is refused by itself is refused with more.
        let mut forms = FORMS.to_vec();
        forms.retain(|form| is_allowed(&policy, &line(form, ":", name)));
        for form in forms {
            lines.extend(USES.iter().map(|usage| line(form, usage, name)));
        }
    }
    let ran = run_allowed(lines.into_iter());
    assert!(ran > 1000, "only {ran} lines are allowed");
}

/// A counter takes a number, and nothing is known of it afterwards.
#[test]
fn counters_take_numbers() {
    let policy = policy();
    for line in [
        "SECONDS=0",
        "RANDOM=42",
        "OPTIND=1; while getopts ab o; do :; done; shift $((OPTIND-1))",
        "x=$((RANDOM % 10))",
        "[[ ${PIPESTATUS[0]} -eq 0 ]]",
        "n=0; for ((i=0; i<3; i++)); do ((n+=i)); done",
        "i=5; ((i<<=2)); [[ $i -gt 3 ]]",
    ] {
        assert!(is_allowed(&policy, line), "{line}");
    }
    let known = |line: &str| agent::policy::simple_commands(line).expect("read");
    assert_eq!(known("SECONDS=7; p $SECONDS"), [["p", "\u{fffc}"]]);
    assert_eq!(known("v=1; ((v<<=4)); p $v"), [["p", "\u{fffc}"]]);
    // What a variable stands for is an expression, and may assign as well.
    assert_eq!(known("v=a; w='v=5'; ((w)); p \"$v\""), [["p", "\u{fffd}"]]);
    assert!(agent::policy::simple_commands("v='PATH=5'; ((v)); p").is_err());
}
