//! Two large tables of questions for `permissions check --jsonl`: calls that no
//! policy may let through, and calls that people expect to be allowed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::Value;

use crate::support::cli::Cli;

/// The share of the harmless calls that may be refused.
const REFUSED_MAX: f64 = 0.03;

/// A working copy with what the calls speak of.
fn workspace() -> Cli {
    let mut cli = Cli::new();
    for name in [
        "README.md",
        "Cargo.toml",
        "Cargo.lock",
        "package.json",
        "src/main.rs",
        "src/old.rs",
        "src/private/a",
        "secrets/key",
        "scripts/check.py",
        "scripts/build.js",
        "ci/check.sh",
        "bin/tool",
        "run.sh",
        "gradlew",
        "tests/test_a.py",
        "docs/a.md",
        "x",
        "a",
        "b",
        ".env",
        ".github/workflows/x.yml",
        ".git/HEAD",
        ".git/config",
        ".git/hooks/x",
        "sub/.git/config",
        "sub/Cargo.toml",
    ] {
        cli = cli.file(name, "content\n");
    }
    cli = cli.file(".gitignore", ".env\ntarget\n");
    let (cwd, home) = (cli.cwd().to_owned(), cli.home().to_owned());
    fs::create_dir_all(home.join(".ssh")).expect("a home");
    fs::create_dir_all(home.join("notes")).expect("a home");
    let links: [(&str, &Path); 7] = [
        ("link-out", &home),
        ("link-env", Path::new(".env")),
        ("link-secrets", Path::new("secrets")),
        ("link-github", Path::new(".github")),
        ("link-in", Path::new("src")),
        ("src/link-private", Path::new("private")),
        ("src/link-up", Path::new("..")),
    ];
    for (name, target) in links {
        symlink(target, cwd.join(name)).expect("a link");
    }
    cli
}

/// The questions of a table, with their answers, in order.
fn answers(table: &str) -> Vec<(Value, Value)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/policy")
        .join(table);
    let text = fs::read_to_string(&path).expect("the table");
    let questions: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a question"))
        .collect();
    let done = workspace()
        .args(["permissions", "check", "--jsonl"])
        .stdin(text)
        .run();
    let answers: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an answer"))
        .collect();
    assert_eq!(answers.len(), questions.len(), "{table}");
    let pairs: Vec<(Value, Value)> = questions.into_iter().zip(answers).collect();
    for (question, answer) in &pairs {
        assert_eq!(question["id"], answer["id"], "{table}");
        assert_ne!(answer["reason"], "", "{question}");
    }
    let ids: BTreeMap<&str, usize> =
        pairs
            .iter()
            .fold(BTreeMap::new(), |mut ids, (question, _)| {
                *ids.entry(question["id"].as_str().expect("an id"))
                    .or_default() += 1;
                ids
            });
    assert_eq!(ids.len(), pairs.len(), "{table}: an id twice");
    pairs
}

fn listed(misses: &[&(Value, Value)]) -> String {
    let mut list = String::new();
    for (question, answer) in misses {
        let (id, input) = (&question["id"], &question["input"]);
        writeln!(
            list,
            "{id} {input}\n    {} {}",
            answer["decision"], answer["reason"]
        )
        .expect("a text");
    }
    list
}

#[test]
fn no_attack_is_allowed() {
    let pairs = answers("attacks.jsonl");
    assert!(pairs.len() >= 600, "{}", pairs.len());
    let missed: Vec<_> = pairs
        .iter()
        .filter(|(_, answer)| answer["decision"] == "allow")
        .collect();
    assert!(
        missed.is_empty(),
        "{} of {} attacks:\n{}",
        missed.len(),
        pairs.len(),
        listed(&missed)
    );
}

#[test]
fn what_is_harmless_is_allowed() {
    let pairs = answers("harmless.jsonl");
    assert!(pairs.len() >= 400, "{}", pairs.len());
    let missed: Vec<_> = pairs
        .iter()
        .filter(|(_, answer)| answer["decision"] != "allow")
        .collect();
    let share = missed.len() as f64 / pairs.len() as f64;
    assert!(
        share <= REFUSED_MAX,
        "{} of {} harmless calls are refused:\n{}",
        missed.len(),
        pairs.len(),
        listed(&missed)
    );
}
