//! The README stays true: its exit codes are those of the program, and its
//! task is valid.

use agent::event::{Reason, Rerun};
use agent::task::{self, Overrides};

fn readme() -> String {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"))
        .expect("the README is part of the project")
}

#[test]
fn the_exit_code_table_is_the_programs_own() {
    let rerun = |reason: &Reason| match reason.rerun() {
        Rerun::NotNeeded => "–",
        Rerun::No => "no",
        Rerun::Yes => "yes",
        Rerun::Later => "later",
        Rerun::Maybe => "maybe",
    };
    let expected: Vec<String> = Reason::ALL
        .iter()
        .map(|reason| {
            format!(
                "| {} | {} | {} | {} |",
                reason.exit_code(),
                reason.name(),
                reason.meaning(),
                rerun(reason)
            )
        })
        .collect();
    let readme = readme();
    let table = readme
        .split("## Exit codes")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("a section about exit codes");
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| code"))
        .collect();
    assert_eq!(rows, expected, "in the README, on the left");
}

#[test]
fn the_task_of_the_readme_is_valid() {
    let readme = readme();
    let task = readme
        .split("## A task")
        .nth(1)
        .and_then(|rest| rest.split("```yaml\n").nth(1))
        .and_then(|rest| rest.split("```").next())
        .expect("a task in the README");
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("readme.yaml");
    std::fs::write(&path, task).expect("a file");
    let overrides = Overrides {
        cwd: folder.path().to_path_buf(),
        env: [("TRACKER_TOKEN".to_owned(), "a-long-secret".to_owned())].into(),
        ..Overrides::default()
    };
    let job = task::load(&path, &overrides).unwrap_or_else(|problems| {
        panic!("{}", problems.render(false));
    });
    assert_eq!(job.prompt, "Fix every finding of the linter in core.");
    assert_eq!(job.limits.max_turns, 40);
}
