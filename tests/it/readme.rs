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

/// Each file of providers of the README loads, and each of their models is one.
#[test]
fn the_files_of_providers_of_the_readme_are_valid() {
    let readme = readme();
    let section = readme
        .split("## Endpoints of your own")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("a section about endpoints");
    let blocks: Vec<&str> = section
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("providers.yaml");
    let mut providers = Vec::new();
    for block in blocks {
        std::fs::write(&path, block).expect("a file");
        let catalog = task::load_providers(&path, &Default::default(), Some(folder.path()))
            .unwrap_or_else(|problems| panic!("{}", problems.render(false)));
        for (id, own) in catalog.own() {
            providers.push(id.to_owned());
            let ids: Vec<&str> = own.section.models.keys().map(String::as_str).collect();
            for model in if ids.is_empty() { vec!["any:1b"] } else { ids } {
                let model = catalog
                    .resolve(&format!("{id}/{model}"), None)
                    .expect("a model");
                assert!(model.context_window >= model.max_output_tokens, "{id}");
            }
        }
    }
    let expect = [
        "anthropic",
        "house",
        "ollama",
        "llamacpp",
        "vllm",
        "lmstudio",
        "litellm",
        "litellm-claude",
        "openrouter",
        "azure",
        "azure-dated",
    ];
    assert_eq!(providers, expect);
}
