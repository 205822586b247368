//! What the result says of a run, from its events alone.

use std::collections::BTreeMap;

use agent::event::{
    Denial, EventKind, JobResult, LimitKind, Outcome, Reason, Spent, ToolCount, ToolErrorStatus,
};
use agent::report::{RunEnding, Summary};
use serde_json::json;

use crate::report_events::*;

fn conclusion(used: f64) -> JobResult {
    JobResult {
        budget: BTreeMap::from([(LimitKind::Turns, Spent { limit: 60.0, used })]),
        session_file: Some("session.jsonl".to_owned()),
        ..JobResult::default()
    }
}

#[test]
fn one_job_is_the_whole_result() {
    let (report, _) = recorded(vec![
        job_start(),
        turn_start(),
        reply("first", &[("a", "read", json!({}))], Some(0.25)),
        tool_complete("a", "read", "x"),
        warning("careful"),
        reply("second", &[], Some(0.5)),
        turn_end("second"),
        diff(&["src/lib.rs"]),
        job_end(Reason::Success, conclusion(2.0)),
    ]);
    let result = report.result;
    assert_eq!(result.schema_version, 1);
    assert_eq!(
        (result.run_id.as_str(), result.task.as_str()),
        ("run-1", "fix")
    );
    assert_eq!((result.outcome, result.exit_code), (Outcome::Success, 0));
    assert_eq!(result.final_text, "second");
    assert_eq!(result.model, "scripted/demo");
    assert_eq!(result.turns, 2);
    assert_eq!((result.usage.input, result.usage.output), (200, 40));
    assert_eq!(result.cost_usd, Some(0.75));
    assert_eq!(
        result.budget[&LimitKind::Turns],
        Spent {
            limit: 60.0,
            used: 2.0
        }
    );
    assert_eq!(result.files_changed, [changed("src/lib.rs")]);
    assert_eq!(result.warnings.len(), 1);
    assert_eq!(result.session_file.as_deref(), Some("session.jsonl"));
    assert_eq!(result.artifacts.patch.as_deref(), Some("change.patch"));
    assert_eq!(result.artifacts.run_dir.as_deref(), Some("/runs/1"));
    assert!(result.jobs.is_empty() && result.error.is_none());
}

#[test]
fn tool_calls_are_counted_by_how_they_ended() {
    let count = |count, errors, denied| ToolCount {
        count,
        errors,
        denied,
    };
    for (kinds, expect) in [
        (vec![tool_complete("a", "bash", "")], count(1, 0, 0)),
        (
            vec![
                tool_start("a", "bash", json!({})),
                tool_complete("a", "bash", ""),
            ],
            count(1, 0, 0),
        ),
        (
            vec![tool_error("a", "bash", ToolErrorStatus::Error)],
            count(1, 1, 0),
        ),
        (
            vec![tool_error("a", "bash", ToolErrorStatus::Timeout)],
            count(1, 1, 0),
        ),
        (
            vec![tool_error("a", "bash", ToolErrorStatus::Denied)],
            count(1, 1, 1),
        ),
        (
            vec![
                tool_complete("a", "bash", ""),
                tool_error("b", "bash", ToolErrorStatus::Denied),
                tool_error("c", "bash", ToolErrorStatus::Skipped),
            ],
            count(3, 2, 1),
        ),
    ] {
        let (report, _) = recorded(kinds);
        assert_eq!(report.result.tool_calls["bash"], expect);
    }
}

#[test]
fn a_denial_has_arguments_rule_reason_and_a_way_out() {
    let args = json!({"path": ".github/ci.yml"});
    let rule = "permissions.deny[0] Edit(.github/**)";
    let (report, _) = recorded(vec![
        reply(
            "",
            &[("a", "edit", args.clone()), ("b", "edit", json!({}))],
            None,
        ),
        request("a", "edit", Some("Edit(.github/ci.yml)")),
        response("a", "edit", "refuse", Some(rule)),
        tool_error("a", "edit", ToolErrorStatus::Denied),
        request("b", "edit", None),
        response("b", "edit", "allow", None),
        tool_complete("b", "edit", ""),
        tool_error("c", "ls", ToolErrorStatus::Denied),
    ]);
    assert_eq!(
        report.result.denials,
        [
            Denial {
                tool: "edit".to_owned(),
                input: args,
                rule: Some(rule.to_owned()),
                reason: "that file is protected".to_owned(),
                suggested_rule: Some("Edit(.github/ci.yml)".to_owned()),
            },
            Denial {
                tool: "ls".to_owned(),
                input: json!(null),
                rule: None,
                reason: "it did not work\nat all".to_owned(),
                suggested_rule: None,
            }
        ]
    );
}

#[test]
fn a_call_id_that_comes_again_is_another_call() {
    let (report, _) = recorded(vec![
        reply("", &[("a", "edit", json!({"n": 1}))], None),
        response("a", "edit", "refuse", Some("an old rule")),
        tool_error("a", "edit", ToolErrorStatus::Denied),
        reply("", &[("a", "edit", json!({"n": 2}))], None),
        tool_error("a", "edit", ToolErrorStatus::Denied),
    ]);
    let second = &report.result.denials[1];
    assert_eq!((&second.input, &second.rule), (&json!({"n": 2}), &None));
}

#[test]
fn one_unknown_price_makes_the_cost_unknown() {
    for (costs, expect) in [
        (vec![], Some(0.0)),
        (vec![Some(0.5), Some(0.25)], Some(0.75)),
        (vec![Some(0.5), None, Some(0.25)], None),
        (vec![None], None),
    ] {
        let replies = costs.into_iter().map(|cost| reply("", &[], cost)).collect();
        assert_eq!(recorded(replies).0.result.cost_usd, expect);
    }
}

#[test]
fn retries_are_counted_one_by_one() {
    let (report, _) = recorded(vec![retry_start(2), retry_start(3)]);
    assert_eq!(report.result.retries, 2);
}

#[test]
fn a_sub_agent_counts_for_tokens_but_speaks_not_for_the_job() {
    let (mut recorder, _) = recorder();
    recorder.write(run_start(&["fix"]));
    let mut inner = in_job(reply("inner", &[], Some(1.0)));
    inner.place.agent_id = Some("task-1".to_owned());
    if let EventKind::MessageComplete(message) = &mut inner.kind {
        message.agent_id = "task-1".to_owned();
    }
    let mut ended = in_job(turn_end("inner"));
    ended.place.agent_id = Some("task-1".to_owned());
    recorder.write(in_job(turn_end("outer")));
    recorder.write(inner);
    recorder.write(ended);
    let result = close(recorder, Reason::Success).result;
    assert_eq!((result.turns, result.cost_usd), (0, Some(1.0)));
    assert_eq!(
        (result.final_text.as_str(), result.usage.input),
        ("outer", 100)
    );
}

#[test]
fn several_jobs_are_summed_and_listed() {
    let (mut recorder, _) = recorder();
    recorder.write(run_start(&["fix", "other"]));
    recorder.write(agent::event::Emission::of_run(warning("of the run")));
    for (job, reason) in [("fix", Reason::Success), ("other", Reason::Budget)] {
        recorder.write(emission(job, job_start()));
        recorder.write(emission(job, reply("hi", &[], Some(0.5))));
        recorder.write(emission(job, warning(job)));
        recorder.write(emission(job, turn_end(job)));
        let mut end = conclusion(1.0);
        end.error = (reason == Reason::Budget).then(|| error("spent"));
        recorder.write(emission(job, job_end(reason, end)));
    }
    let result = close(recorder, Reason::BatchPartial).result;
    assert_eq!(result.task, "fix, other");
    assert_eq!(result.exit_code, 8);
    assert_eq!((result.turns, result.cost_usd), (2, Some(1.0)));
    assert_eq!(
        result.budget[&LimitKind::Turns],
        Spent {
            limit: 120.0,
            used: 2.0
        }
    );
    assert_eq!(result.final_text, "fix\n\nother");
    let messages: Vec<&str> = result.warnings.iter().map(|w| w.message.as_str()).collect();
    assert_eq!(messages, ["of the run", "fix", "other"]);
    assert_eq!(result.error, Some(error("spent")));
    let jobs: Vec<_> = result
        .jobs
        .iter()
        .map(|job| (job.task.as_str(), job.exit_code, job.turns, job.duration_ms))
        .collect();
    assert_eq!(jobs, [("fix", 0, 1, 7), ("other", 4, 1, 7)]);
    assert_eq!(result.jobs[0].error, None);
    assert_eq!(
        result.jobs[1].session_file.as_deref(),
        Some("session.jsonl")
    );
}

#[test]
fn the_duration_is_that_of_the_stamps() {
    let (_, kept) = recorded(vec![]);
    let mut start = kept.events().remove(0);
    start.ts = "2026-11-21T20:01:02.345Z".to_owned();
    let mut summary = Summary::new();
    summary.observe(&start);
    for (ended_at, expect) in [
        ("2026-11-21T20:01:02.345Z", 0),
        ("2026-11-21T20:02:03.346Z", 61_001),
        ("2026-11-21T20:01:00.000Z", 0),
        ("not a time", 0),
    ] {
        let result = summary.result(&RunEnding {
            reason: Reason::Success,
            error: None,
            ended_at,
        });
        assert_eq!(result.duration_ms, expect, "{ended_at}");
        assert_eq!(result.started_at, start.ts);
    }
}

#[test]
fn a_run_that_never_started_has_an_empty_result() {
    let result = Summary::new().result(&RunEnding {
        reason: Reason::BadTask,
        error: Some(error("no such field")),
        ended_at: "2026-11-21T20:01:00.000Z",
    });
    assert_eq!((result.exit_code, result.turns), (65, 0));
    assert_eq!(result.error, Some(error("no such field")));
}
