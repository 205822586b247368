//! Flags over the file, and the implicit task of a bare prompt.

use agent::model::ThinkingLevel;
use agent::policy::Mode;
use agent::task::{Job, Kind, Overrides, implicit};

use crate::task_case::{Case, lines};

const TASK: &str = "version: 1\nprompt: x\nlimits: {max_turns: 5}\npermissions: {deny: [Read]}\n";

fn with(change: impl FnOnce(&mut Overrides)) -> Case {
    let mut case = Case::new(TASK);
    change(&mut case.overrides);
    case
}

#[test]
fn flags_replace_what_the_file_says() {
    let job = with(|o| {
        o.model = Some("anthropic/claude-{{ x }}".into());
        o.base_url = Some("http://127.0.0.1:1/v1".into());
        o.thinking = Some("low".into());
        o.max_turns = Some(7);
        o.max_cost_usd = Some(0.5);
        o.timeout = Some("90s".into());
        o.permission_mode = Some("accept_edits".into());
        o.allow = vec!["Bash(ls:*)".into()];
        o.deny = vec!["Edit(a/**)".into()];
        o.append_system_prompt = Some("Be brief.".into());
        o.no_session = true;
        o.reports_dir = Some("out".into());
    })
    .job();
    assert_eq!(
        job.settings.model.as_deref(),
        Some("anthropic/claude-{{ x }}")
    );
    assert_eq!(
        job.settings.base_url.as_deref(),
        Some("http://127.0.0.1:1/v1")
    );
    assert_eq!(job.settings.thinking, ThinkingLevel::Low);
    assert_eq!(job.limits.max_turns, 7);
    assert_eq!(
        (job.limits.max_cost_usd, job.limits.cost_cap_asked),
        (0.5, true)
    );
    assert_eq!(job.limits.timeout.as_secs(), 90);
    assert_eq!(job.permissions.mode, Mode::AcceptEdits);
    assert_eq!(
        (job.permissions.allow.len(), job.permissions.deny.len()),
        (1, 2)
    );
    assert_eq!(job.append_system_prompt.as_deref(), Some("Be brief."));
    assert!(!job.persist_session);
    assert!(job.reports_dir.is_absolute() && job.reports_dir.ends_with("out"));
}

#[test]
fn a_cost_cap_counts_as_asked_for_wherever_it_comes_from() {
    let asked = |case: Case| case.job().limits.cost_cap_asked;
    assert!(!asked(with(|_| {})));
    assert!(asked(with(|o| o.max_cost_usd = Some(2.0))));
    assert!(asked(Case::new(TASK).set("limits.max_cost_usd", "2")));
    assert!(asked(Case::with("limits: {max_cost_usd: 2}")));
}

#[test]
fn errors_point_at_the_flag() {
    type Change = fn(&mut Overrides);
    let cases: [(Change, &str); 8] = [
        (
            |o| o.max_turns = Some(0),
            "--max-turns:1:1: out_of_range: `limits.max_turns` must be from 1",
        ),
        (
            |o| o.max_cost_usd = Some(-1.0),
            "--max-cost-usd:1:1: out_of_range",
        ),
        (
            |o| o.max_cost_usd = Some(f64::NAN),
            "--max-cost-usd:1:1: wrong_type",
        ),
        (
            |o| o.timeout = Some("45".into()),
            "--timeout:1:1: bad_duration: `limits.timeout`: `45` has no unit",
        ),
        (
            |o| o.thinking = Some("hihg".into()),
            "--thinking:1:1: unknown_value: `hihg` is no value of",
        ),
        (
            |o| o.permission_mode = Some("all".into()),
            "--permission-mode:1:1: unknown_value",
        ),
        (
            |o| o.base_url = Some("localhost".into()),
            "--base-url:1:1: bad_format",
        ),
        (|o| o.allow = vec!["Bash(x".into()], "--allow:1:1: bad_rule"),
    ];
    for (change, start) in cases {
        let lines = with(change).lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(start), "{lines:?}");
    }
}

#[test]
fn bypass_needs_a_flag_of_its_own() {
    let bypass = |o: &mut Overrides| o.permission_mode = Some("bypass".into());
    let lines = with(bypass).lines();
    assert!(lines[0].contains("`--allow-bypass`"), "{lines:?}");
    let job = with(|o| {
        bypass(o);
        o.allow_bypass = true;
    });
    assert_eq!(job.job().permissions.mode, Mode::Bypass);
}

#[test]
fn set_replaces_any_key() {
    let set = |path: &str, value: &str| -> Job { Case::new(TASK).set(path, value).job() };
    assert_eq!(set("limits.max_turns", "9").limits.max_turns, 9);
    assert_eq!(
        set("limits.max_denials.total", "9")
            .limits
            .max_denials
            .total,
        9
    );
    assert_eq!(set("tools.enabled", "[read, ls]").tools, ["read", "ls"]);
    assert_eq!(set("labels", "{a: b}").labels["a"], "b");
    assert_eq!(set("labels.a", "b").labels["a"], "b");
    assert_eq!(set("description", "").description, "");
    assert_eq!(set("prompt", "Do that.").prompt, "Do that.");
    assert_eq!(set("settings.model", "null").settings.model, None);
    let last = Case::new(TASK)
        .set("limits.max_turns", "8")
        .set("limits.max_turns", "9")
        .job();
    assert_eq!(last.limits.max_turns, 9);
}

#[test]
fn a_flag_of_its_own_wins_over_set() {
    let mut case = Case::new(TASK).set("limits.max_turns", "9");
    case.overrides.max_turns = Some(4);
    assert_eq!(case.job().limits.max_turns, 4);
}

#[test]
fn set_is_as_strict_as_the_file() {
    for (path, value, start) in [
        (
            "limits.max_turns",
            "many",
            "--set limits.max_turns:1:1: wrong_type",
        ),
        (
            "limits.max_turn",
            "3",
            "--set limits.max_turn:1:1: unknown_key",
        ),
        (
            "limits",
            "{max_turns: 1, x: 2}",
            "--set limits:1:16: unknown_key",
        ),
        ("limits..x", "1", "--set:1:1: bad_path"),
        (
            "prompt.x",
            "1",
            "--set prompt.x:1:1: bad_path: `prompt` is no map",
        ),
        ("prompt", "[", "--set prompt:1:1: invalid_yaml"),
        ("prompt", "!x y", "--set prompt:1:1: tag"),
    ] {
        let lines = Case::new(TASK).set(path, value).lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].starts_with(start), "{lines:?}");
    }
}

#[test]
fn set_does_not_hide_what_is_wrong_in_the_file() {
    let lines = Case::with("limits: 5").set("limits.max_turns", "3").lines();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("task.yaml:3:9: wrong_type")),
        "{lines:?}"
    );
}

#[test]
fn flags_start_at_the_current_directory() {
    let mut case = Case::with("").file("tasks/t.yaml", TASK);
    case.overrides.model = Some("scripted/replies.yaml".into());
    case.overrides.reports_dir = Some("out".into());
    let job = agent::task::load("tasks/t.yaml".as_ref(), &case.overrides).unwrap();
    let model = format!("scripted/{}", case.path().join("replies.yaml").display());
    assert_eq!(job.settings.model, Some(model));
    assert_eq!(job.reports_dir, case.path().join("out"));
}

#[test]
fn a_bare_prompt_is_a_task_with_the_same_defaults() {
    let case = Case::with("");
    let job = implicit("Say {{ hello }} \n", &case.overrides).unwrap();
    assert_eq!(
        (job.name.as_str(), job.prompt.as_str()),
        ("prompt", "Say {{ hello }} \n")
    );
    assert_eq!(job.file, None);
    assert_eq!(job.workspace.path, case.path());
    let file = case.job();
    assert_eq!(job.limits, file.limits);
    assert_eq!(job.tools, file.tools);
    assert_eq!(job.reports_dir, file.reports_dir);
}

#[test]
fn a_bare_prompt_is_checked_too() {
    let mut overrides = Case::with("").overrides.clone();
    overrides.cwd = std::env::temp_dir();
    let empty = implicit(" \n", &overrides).err().unwrap();
    assert_eq!(empty.kind, Kind::BadTask);
    assert!(lines(&empty)[0].contains("the prompt is empty"));
    overrides.params.push(("a".into(), "b".into()));
    overrides.max_turns = Some(0);
    let problems = implicit("x", &overrides).err().unwrap();
    assert_eq!(problems.list.len(), 2, "{problems}");
}
