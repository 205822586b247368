//! The section `requires` of a task: what it takes, and which versions it means.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::path::Path;

use agent::task::{Need, VersionRange};
use serde_json::json;

use crate::task_case::Case;

const WHOLE: &str = "requires:\n  commands: [git, 'cargo >= 1.80']\n  env: [DEPLOY_URL]\n  files: [Cargo.toml, ./src/]";

const VERSIONS: &str = "write the name of a program, or one with a version: `git >= 2.40`; `>`, `=`, `<` \
     and `<=` also work, and a version is up to 4 numbers with dots";

#[test]
fn each_requirement_keeps_its_place() {
    let job = Case::with(WHOLE).job();
    let told: Vec<String> = job
        .requires
        .iter()
        .map(|one| {
            format!(
                "{}:{} {} {}",
                one.place.line,
                one.place.column,
                one.need.kind(),
                one.need
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "4:14 command git",
            "4:19 command cargo >= 1.80",
            "5:9 variable DEPLOY_URL",
            "6:11 file Cargo.toml",
            "6:23 file src",
        ]
    );
    assert!(Path::new(&job.requires[0].place.file).ends_with("task.yaml"));
    assert_eq!(
        job.resolved["requires"],
        json!({
            "commands": ["git", "cargo >= 1.80"],
            "env": ["DEPLOY_URL"],
            "files": ["Cargo.toml", "src"],
        })
    );
}

#[test]
fn a_flag_and_a_parameter_can_say_it_too() {
    let job =
        Case::with("requires: {commands: ['{{ tool }}']}\nparameters: [{key: tool, default: jq}]")
            .set("requires.env", "[TOKEN]")
            .job();
    let told: Vec<String> = job
        .requires
        .iter()
        .map(|one| one.need.to_string())
        .collect();
    assert_eq!(told, ["jq", "TOKEN"]);
    assert_eq!(job.requires[1].place.to_string(), "--set requires.env:1:2");
}

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    for (section, line, message) in [
        (
            "{commands: ['cargo => 1']}",
            3,
            "`cargo => 1` is not allowed as `requires.commands[0]`",
        ),
        (
            "{commands: ['cargo >= one']}",
            3,
            "is not allowed as `requires.commands[0]`",
        ),
        ("{commands: [./build.sh]}", 3, "`./build.sh` is not allowed"),
        (
            "{commands: ['']}",
            3,
            "is not allowed as `requires.commands[0]`",
        ),
        (
            "{env: ['A B']}",
            3,
            "`A B` is not allowed as `requires.env[0]`",
        ),
        (
            "{files: [/etc/passwd]}",
            3,
            "`/etc/passwd` leads outside of the workspace",
        ),
        (
            "{files: [../x]}",
            3,
            "`../x` leads outside of the workspace",
        ),
        (
            "{files: [a/../../x]}",
            3,
            "`a/../../x` leads outside of the workspace",
        ),
        ("{files: [~/x]}", 3, "`~/x` leads outside of the workspace"),
        ("{files: ['']}", 3, "`requires.files[0]` must not be empty"),
        ("{files: [a, ./a]}", 3, "`requires.files` has `a` twice"),
        ("{env: [A, A]}", 3, "`requires.env` has `A` twice"),
        ("{command: [git]}", 3, "`command` is no key of `requires`"),
    ] {
        let problems = Case::with(&format!("requires: {section}"))
            .load()
            .unwrap_err();
        let [problem] = problems.list.as_slice() else {
            panic!("{section}: {problems}");
        };
        assert!(problem.message.contains(message), "{section}: {problems}");
        assert_eq!(problem.line, line, "{section}: {problems}");
    }
    let inside = Case::with("requires: {files: [a/../b, .github/x, a/~]}").job();
    assert_eq!(inside.requires.len(), 3);
}

#[test]
fn what_a_version_looks_like_is_told_in_words() {
    for (section, hint) in [
        ("commands: ['git == 2']", VERSIONS),
        ("commands: ['git >= v2']", VERSIONS),
        ("commands: ['git ~> 2']", VERSIONS),
        ("commands: ['git >= 1.2.3.4.5']", VERSIONS),
        ("commands: [./build.sh]", VERSIONS),
        ("env: [A-B]", "it must match ^[A-Za-z_][A-Za-z0-9_]*$"),
    ] {
        let problems = Case::with(&format!("requires: {{{section}}}"))
            .load()
            .unwrap_err();
        let hints: Vec<_> = problems
            .list
            .iter()
            .map(|one| one.hint.as_deref())
            .collect();
        assert_eq!(hints, [Some(hint)], "{section}");
    }
}

/// The range of `tool RANGE`.
fn range(text: &str) -> VersionRange {
    let job = Case::with(&format!("requires: {{commands: ['tool{text}']}}")).job();
    match &job.requires[0].need {
        Need::Command(name, Some(range)) if name == "tool" => range.clone(),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn only_the_parts_that_are_written_are_compared() {
    let versions: [&[u64]; 6] = [&[1, 79, 9], &[1, 80], &[1, 80, 1], &[1, 81], &[2], &[10, 2]];
    for (text, holds) in [
        (" >= 1.80", [false, true, true, true, true, true]),
        (">=1.80.1", [false, false, true, true, true, true]),
        (" > 1.80", [false, false, false, true, true, true]),
        (" = 1.80", [false, true, true, false, false, false]),
        (" = 2.0", [false, false, false, false, true, false]),
        (" <= 1.80", [true, true, true, false, false, false]),
        (" < 2", [true, true, true, true, false, false]),
    ] {
        let range = range(text);
        for (version, holds) in versions.iter().zip(holds) {
            assert_eq!(range.holds(version), holds, "{version:?}{text}");
        }
    }
}
