//! The values in files of credentials, where commands can read the files.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use crate::cli_scene::{bash, scripted};
use crate::support::cli::Output;

/// What no output may show.
const VALUES: &[&str] = &[
    "open-sesame-now",
    "k3y0fth3d00r",
    "pa55w0rd-in-url",
    "AbCd1234EfGh5678",
    "pgpass-word",
    "netrc-word",
];

const ENV: &str = "# passwords\nexport DB_PASSWORD='open-sesame-now'\nDOOR=k3y0fth3d00r\n\
                   DATABASE_URL=postgres://app:pa55w0rd-in-url@db.internal/app\n\
                   AbCd1234EfGh5678\nAPP_NAME=storefront\nMODE=production\n";

/// A run in which a program prints the files, which no rule sees it read.
fn run(sandbox: &str, permissions: &str) -> Output {
    let replies = format!(
        "{}- text: done\n",
        bash("sh show.sh; sh show.sh > copy.txt")
    );
    let more = format!("permissions: {permissions}\nsandbox: {sandbox}\n");
    let cli = scripted(&replies, &more)
        .file(
            "show.sh",
            "cat .en* .pg* .netr*; echo storefront in production\n",
        )
        .file(".env", ENV)
        .file(".pgpass", "db:5432:app:me:pgpass-word\n")
        .file(
            ".netrc",
            "machine example.com login me password netrc-word\n",
        );
    cli.args(["--allow-bypass"]).run()
}

fn hides_all(done: &Output) {
    for name in [
        "events.jsonl",
        "session.jsonl",
        "summary.md",
        "result.json",
        "change.patch",
    ] {
        let path = done.run_dir().join(name);
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for value in VALUES {
            assert!(!text.contains(value), "{name} shows {value}: {text}");
        }
    }
    let session = done.artifact("session.jsonl");
    assert!(session.contains("DB_PASSWORD='***'"), "{session}");
    assert!(session.contains("APP_NAME=storefront"), "{session}");
    assert!(session.contains("storefront in production"), "{session}");
}

#[test]
fn values_of_protected_files_are_hidden_where_landlock_cannot_hide_the_files() {
    hides_all(&run("{mode: require, tier: landlock}", "{mode: workspace}"));
}

#[test]
fn values_of_protected_files_are_hidden_without_a_sandbox() {
    hides_all(&run("{mode: 'off'}", "{mode: bypass}"));
}

#[test]
fn a_file_that_is_too_large_is_reported() {
    let cli = scripted(
        &format!("{}- text: done\n", bash("true")),
        "permissions: {mode: workspace}\nsandbox: {mode: require, tier: landlock}\n",
    );
    let done = cli.file(".env", "A=1\n".repeat(20_000)).run();
    let warnings = done.result()["warnings"].clone();
    let found = warnings.as_array().unwrap().iter();
    let mut found = found.filter(|warning| warning["code"] == "protected_values");
    assert!(found.next().is_some(), "{warnings}");
}
