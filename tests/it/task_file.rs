//! What a task file means: defaults, every section, paths, secrets, the resolved document.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::model::ThinkingLevel;
use agent::policy::{Mode, OnAsk};
use agent::session::{Limits, OnExhausted, OnUnknownPrice};
use agent::task::{Inherit, Isolation, Kind, Overrides, config_hash, load};
use serde_json::json;

use crate::task_case::Case;

const FULL: &str = include_str!("../fixtures/tasks/good/full.yaml");

fn full() -> Case {
    Case::new(FULL).env("TRACKER_TOKEN_FOR_CI", "tracker-token-value")
}

#[test]
fn version_and_prompt_are_enough() {
    let case = Case::new("version: 1\nprompt: Do it.\n");
    let job = case.job();
    assert_eq!(job.name, "task");
    assert_eq!(job.prompt, "Do it.");
    assert_eq!(job.instructions, None);
    assert_eq!(job.limits, Limits::default());
    assert_eq!(job.permissions.mode, Mode::ReadOnly);
    assert_eq!(job.settings.model, None);
    assert_eq!(job.settings.thinking, ThinkingLevel::Medium);
    assert_eq!(job.env.inherit, Inherit::Minimal);
    assert_eq!(
        job.tools,
        ["read", "grep", "find", "ls", "edit", "write", "bash"]
    );
    assert_eq!(job.workspace.path, case.path());
    assert_eq!(job.workspace.isolation, Isolation::None);
    assert_eq!(job.reports_dir, case.path().join(".agent/runs"));
    assert_eq!(job.retry.max_attempts, 5);
    assert!(job.persist_session);
    assert!(job.warnings.is_empty());
}

#[test]
fn every_section_reaches_the_job() {
    let case = full();
    let job = case.job();
    assert_eq!(job.name, "fix-lint");
    assert_eq!(job.labels["answer"], "no");
    assert_eq!(
        job.instructions.as_deref(),
        Some("You maintain this repository, crate .\n")
    );
    assert_eq!(
        job.prompt,
        "Fix every finding of the linter in 2 rounds at level low, ratio 0.5.\n\n\n"
    );
    assert_eq!(
        job.settings.model.as_deref(),
        Some("anthropic/claude-sonnet-5")
    );
    assert_eq!(job.settings.thinking, ThinkingLevel::High);
    assert_eq!(job.settings.max_output_tokens, Some(16_000));
    assert_eq!(job.settings.temperature, Some(0.0));
    let limits = &job.limits;
    assert_eq!(
        (limits.max_turns, limits.max_tool_calls, limits.max_repeats),
        (40, 200, 4)
    );
    assert_eq!((limits.max_cost_usd, limits.cost_cap_asked), (1.5, true));
    assert_eq!(
        (limits.max_denials.consecutive, limits.max_denials.total),
        (2, 10)
    );
    assert_eq!(limits.timeout, Duration::from_secs(5_400));
    assert_eq!(limits.command_timeout, Duration::from_millis(500));
    assert_eq!(limits.warn_at, [0.5, 0.95]);
    assert_eq!(limits.on_exhausted, OnExhausted::Stop);
    assert_eq!(limits.on_unknown_price, OnUnknownPrice::TokensOnly);
    assert_eq!(job.retry.max_attempts, 3);
    assert_eq!(job.retry.max_wait, Duration::from_secs(300));
    let permissions = &job.permissions;
    assert_eq!(permissions.mode, Mode::AcceptEdits);
    assert_eq!(
        (
            permissions.allow.len(),
            permissions.ask.len(),
            permissions.deny.len()
        ),
        (2, 0, 2)
    );
    assert_eq!(permissions.on_ask, OnAsk::Fail);
    assert!(permissions.fail_on_denied);
    assert_eq!(permissions.additional_directories, [case.path()]);
    assert_eq!(job.env.inherit, Inherit::None);
    assert_eq!(job.env.pass, ["RUSTFLAGS", "TRACKER_TOKEN"]);
    assert_eq!(job.secrets.len(), 1);
    assert_eq!(job.tools, ["read", "grep", "bash"]);
    assert_eq!(job.workspace.isolation, Isolation::Copy);
    assert!(job.workspace.require_clean);
    assert_eq!(job.reports_dir, case.path().join("out/runs"));
    assert!(!job.persist_session);
}

#[test]
fn the_default_name_is_the_file_s_stem_as_a_slug() {
    let cases = [
        ("fix-lint.yaml", "fix-lint"),
        ("Fix Lint!.agent.yaml", "fix-lint--agent"),
        ("--.yaml", "task"),
        ("été.yml", "t"),
    ];
    for (file, name) in cases {
        let case = Case::with("").file(file, "version: 1\nprompt: x\n");
        let job = load(Path::new(file), &case.overrides).unwrap();
        assert_eq!(job.name, name, "{file}");
        assert_eq!(job.file, Some(case.path().join(file)));
    }
}

#[test]
fn written_paths_start_at_the_file_and_defaults_at_the_current_directory() {
    let task = "version: 1\nprompt: x\nsettings: {model: scripted/a.yaml}\n\
                workspace: {path: project}\nreports: {dir: ./out}\n";
    let case = Case::with("")
        .file("tasks/written.yaml", task)
        .file("tasks/bare.yaml", "version: 1\nprompt: x\n")
        .file("tasks/project/keep", "");
    let root = case.path();
    let written = load(Path::new("tasks/written.yaml"), &case.overrides).unwrap();
    assert_eq!(written.workspace.path, root.join("tasks/project"));
    assert_eq!(written.reports_dir, root.join("tasks/out"));
    let model = format!("scripted/{}", root.join("tasks/a.yaml").display());
    assert_eq!(written.settings.model, Some(model));
    let bare = load(Path::new("tasks/bare.yaml"), &case.overrides).unwrap();
    assert_eq!(bare.workspace.path, root);
    assert_eq!(bare.reports_dir, root.join(".agent/runs"));
}

#[test]
fn the_workspace_is_real_and_a_directory() {
    let case = Case::with("workspace: {path: link}").file("real/keep", "");
    std::os::unix::fs::symlink("real", case.path().join("link")).unwrap();
    assert_eq!(case.job().workspace.path, case.path().join("real"));
    let missing = Case::with("workspace: {path: none}").problems();
    assert_eq!(missing.kind, Kind::NoInput);
    let file = Case::with("workspace: {path: task.yaml}").problems();
    assert_eq!(file.kind, Kind::BadTask);
    assert!(file.to_string().contains("is not a directory"), "{file}");
    let mut gone = Case::with("");
    gone.overrides.cwd = PathBuf::from("/does/not/exist");
    assert_eq!(gone.problems().kind, Kind::NoInput);
}

#[test]
fn a_home_directory_is_expanded_when_it_is_known() {
    let mut case = Case::with("workspace: {path: ~/w}").file("home/w/keep", "");
    case.overrides.home = Some(case.path().join("home"));
    assert_eq!(case.job().workspace.path, case.path().join("home/w"));
}

#[test]
fn texts_may_be_in_files_of_their_own() {
    let task = "version: 1\nparameters: [{key: topic, default: lint}]\n\
                prompt_file: texts/{{ topic }}.md\ninstructions_file: texts/system.md\n";
    let case = Case::new(task)
        .file("texts/lint.md", "Look at {{ topic }}.\n")
        .file("texts/system.md", "Be brief.\n");
    let job = case.job();
    assert_eq!(job.prompt, "Look at lint.\n");
    assert_eq!(job.instructions.as_deref(), Some("Be brief.\n"));

    let broken = Case::new("version: 1\nprompt_file: p.md\n").file("p.md", "one\n  {{ two }}\n");
    let lines = broken.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(lines[0].contains("p.md:2:6: undefined: `two`"), "{lines:?}");

    let missing = Case::new("version: 1\nprompt_file: p.md\n").problems();
    assert_eq!(
        (missing.kind, missing.list.len()),
        (Kind::NoInput, 1),
        "{missing}"
    );
    let empty = Case::new("version: 1\nprompt_file: p.md\n").file("p.md", " \n");
    assert_eq!(
        empty.lines(),
        ["task.yaml:2:14: out_of_range: the prompt is empty"]
    );
    let null = Case::new("version: 1\nprompt: null\n");
    assert!(
        null.lines()[0].contains("the task has no prompt"),
        "{:?}",
        null.lines()
    );
}

#[test]
fn what_a_shell_runs_by_itself_is_given_to_no_command() {
    for name in ["BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS"] {
        for section in [
            format!("env: {{pass: [{name}]}}"),
            format!("env: {{set: {{{name}: x}}}}"),
        ] {
            let lines = Case::with(&section).lines();
            assert!(
                lines[0].contains("unsafe_env") && lines[0].contains(name),
                "{lines:?}"
            );
        }
    }
    assert!(
        Case::with("env: {pass: [MY_ENV], set: {ENVIRONMENT: x}}")
            .job()
            .warnings
            .is_empty()
    );
}

#[test]
fn secrets_come_from_the_environment_and_stay_out_of_the_document() {
    let job = full().job();
    assert_eq!(job.secrets[0].name, "TRACKER_TOKEN");
    assert_eq!(job.secrets[0].value, "tracker-token-value");
    assert!(!job.resolved.to_string().contains("tracker-token-value"));
    assert!(!format!("{job:?}").contains("tracker-token-value"));

    let optional = "secrets: [{name: A, from_env: A, required: false}]";
    assert!(Case::with(optional).job().secrets.is_empty());
    let short = Case::with(optional).env("A", "1234567").job();
    assert_eq!(short.warnings[0].code, "short_secret");
    assert!(!short.warnings[0].message.contains("1234567"));
    assert!(
        Case::with(optional)
            .env("A", "12345678")
            .job()
            .warnings
            .is_empty()
    );
    let common = Case::with(optional).env("A", "Production").job();
    assert_eq!(common.warnings[0].code, "short_secret");
    let says = "is a common word and is not hidden";
    assert!(common.warnings[0].message.contains(says));
    let empty = Case::with("secrets: [{name: A, from_env: A}]")
        .env("A", "")
        .lines();
    assert!(empty[0].contains("missing_secret"), "{empty:?}");
    let twice = Case::with("secrets: [{name: A, from_env: A}, {name: A, from_env: A}]");
    assert!(twice.env("A", "12345678").lines()[0].contains("declared twice"));
}

#[test]
fn the_resolved_document_tells_everything_that_counts() {
    let case = full();
    let job = case.job();
    let document = &job.resolved;
    assert_eq!(document["limits"]["maxTurns"], json!(40));
    assert_eq!(document["limits"]["timeout"], json!("1h30m"));
    assert_eq!(document["limits"]["onExhausted"], json!("stop"));
    assert_eq!(document["permissions"]["mode"], json!("accept_edits"));
    assert_eq!(document["secrets"], json!(["TRACKER_TOKEN"]));
    assert_eq!(document["env"]["set"], json!({"CARGO_TERM_COLOR": "never"}));
    assert_eq!(document["workspace"]["path"], json!(case.path()));
    assert_eq!(document["params"]["rounds"], json!(2));

    let same = config_hash(&case.job().resolved);
    assert_eq!(config_hash(document), same);
    assert_eq!(same.len(), 16);
    let other = case.set("limits.max_turns", "41").job();
    assert_ne!(config_hash(&other.resolved), same);
    assert_eq!(config_hash(&json!({})), "08f44b07b5901a25");
}

#[test]
fn every_mistake_is_in_one_report_also_what_only_a_closer_look_finds() {
    let lines = Case::new(
        "version: 1\nprompt: x\nlimits: {max_turns: many}\npermissions: {mode: bypass, alow: []}\n\
         workspace: {path: none}\nsecrets: [{name: A, from_env: NOT_SET}]\n",
    )
    .lines();
    let codes: Vec<_> = lines
        .iter()
        .map(|line| line.split(": ").nth(1).unwrap())
        .collect();
    let all = [
        "wrong_type",
        "bypass",
        "unknown_key",
        "no_input",
        "missing_secret",
    ];
    assert_eq!(codes, all, "{lines:#?}");
}

#[test]
fn problems_are_data_too() {
    let problems = Case::with("setings: {}").problems();
    assert_eq!(
        serde_json::to_value(&problems.list).unwrap(),
        json!([{
            "code": "unknown_key",
            "message": "`setings` is no key of a task",
            "file": "task.yaml",
            "line": 3,
            "column": 1,
            "hint": "did you mean `settings`?",
        }])
    );
    assert!(problems.render(true).contains("\u{1b}["));
    assert!(!problems.render(false).contains('\u{1b}'));
}

#[test]
fn a_file_that_is_named_from_elsewhere_is_found() {
    let case = Case::with("");
    let absolute = case.path().join("task.yaml");
    let overrides = Overrides {
        cwd: std::env::temp_dir(),
        ..Overrides::default()
    };
    let job = load(&absolute, &overrides).unwrap();
    assert_eq!(job.file, Some(absolute));
}

#[test]
fn a_repository_speaks_only_through_what_is_named() {
    use agent::context::RepoConfig::{AgentsMd, Skills, Templates};
    assert_eq!(Case::with("").job().load_repo_config, []);
    let job = Case::with("load_repo_config: [agents_md, templates, skills]").job();
    assert_eq!(job.load_repo_config, [AgentsMd, Templates, Skills]);
    assert_eq!(
        job.resolved["loadRepoConfig"],
        serde_json::json!(["agents_md", "templates", "skills"])
    );
    let set = Case::with("").set("load_repo_config", "[skills]");
    assert_eq!(set.job().load_repo_config, [Skills]);

    let lines = Case::with("load_repo_config: [skill, hooks, skills, skills]").lines();
    assert!(lines[0].contains("did you mean `skills`"), "{lines:?}");
    assert!(lines[1].contains("`hooks` is no value"), "{lines:?}");
    assert!(lines[2].contains("duplicate_value"), "{lines:?}");
    assert_eq!(lines.len(), 3);
    let lines = Case::with("load_repo_config: true").lines();
    assert!(lines[0].contains("must be a list"), "{lines:?}");
}
