//! A log folds again to the result that it records, and a broken one does not.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use agent::event::{EventKind, JobResult, LimitKind, Reason, Spent, ToolErrorStatus};
use agent::report::{LogError, fold_log};
use proptest::prelude::*;
use serde_json::json;

use crate::report_events::*;

fn log() -> String {
    let (_, kept) = recorded(vec![
        job_start(),
        reply("a", &[("a", "read", json!({}))], Some(0.1)),
        tool_complete("a", "read", "x"),
        turn_end("done"),
        job_end(Reason::Success, JobResult::default()),
    ]);
    kept.log()
}

fn check(log: &str, expect: &str) {
    let error = fold_log(log.as_bytes(), None, |_| {})
        .unwrap_err()
        .to_string();
    assert!(error.contains(expect), "{error} is not {expect}");
}

#[test]
fn a_whole_log_is_believed_and_handed_on() {
    let mut names = 0;
    let folded = fold_log(log().as_bytes(), None, |_| names += 1).unwrap();
    assert_eq!((folded.events, folded.unknown, names), (7, 0, 7));
    assert_eq!(folded.result.final_text, "done");
}

#[test]
fn a_broken_log_is_refused_by_its_line() {
    let log = log();
    let lines: Vec<&str> = log.lines().collect();
    let joined = |lines: &[&str]| format!("{}\n", lines.join("\n"));
    check("", "the event log is empty");
    check(&log[..log.len() - 1], "line 7 of the event log is torn");
    check(&log[..log.len() - 9], "line 7 of the event log is torn");
    check(&joined(&lines[..6]), "ends after line 6 without run:end");
    check(
        &joined(&[lines[0], lines[2]]),
        "line 2 of the event log has seq 3 where 2 was due",
    );
    check(
        &joined(&lines[1..]),
        "line 1 of the event log has seq 2 where 1 was due",
    );
    check(
        &lines[1]
            .replace(r#""seq":2"#, r#""seq":1"#)
            .clone()
            .add_line(),
        "line 1 of the event log should be the run:start",
    );
    check(
        &format!("{log}{}\n", lines[6].replace(r#""seq":7"#, r#""seq":8"#)),
        "line 8 of the event log is outside the run",
    );
    check("not json\n", "line 1 of the event log is not an event");
    check(
        &log.replacen(r#""v":1"#, r#""v":2"#, 1),
        "line 1 of the event log has version 2",
    );
    check(
        &log.replace(r#""durationMs":15"#, r#""durationMs":"long""#),
        "line 4 of the event log is not an event",
    );
    check(
        &log.replace(r#""turns":1"#, r#""turns":2"#),
        "line 7: the events do not give the recorded result; it differs in turns",
    );
    check(
        &log.replacen(r#""costUsd":0.1"#, r#""costUsd":0.2"#, 1),
        "differs in costUsd",
    );
}

trait AddLine {
    fn add_line(self) -> String;
}

impl AddLine for String {
    fn add_line(mut self) -> String {
        self.push('\n');
        self
    }
}

#[test]
fn what_later_versions_add_is_passed_over() {
    let log = log();
    let mut lines: Vec<String> = log.lines().map(str::to_owned).collect();
    lines[3] = lines[3].replace(r#""durationMs":15"#, r#""durationMs":15,"new":{"a":1}"#);
    let unknown =
        r#"{"v":1,"seq":7,"ts":"","runId":"run-1","more":1,"event":"moon:full","data":[1]}"#;
    lines[6] = lines[6].replace(r#""seq":7"#, r#""seq":8"#);
    lines.insert(6, unknown.to_owned());
    let folded = fold_log(lines.join("\n").add_line().as_bytes(), None, |_| {}).unwrap();
    assert_eq!((folded.events, folded.unknown), (8, 1));
}

#[test]
fn a_reader_that_fails_is_told_by_line() {
    struct Failing;
    impl std::io::Read for Failing {
        fn read(&mut self, _buffer: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("gone"))
        }
    }
    let error = fold_log(std::io::BufReader::new(Failing), None, |_| {}).unwrap_err();
    assert!(matches!(error, LogError::Read { line: 1, .. }), "{error}");
}

fn id() -> impl Strategy<Value = String> {
    prop_oneof![Just("a"), Just("b"), Just("c")].prop_map(str::to_owned)
}

fn any_kind() -> impl Strategy<Value = EventKind> {
    let text = || any::<String>();
    let cost = prop_oneof![3 => (0.0..10.0f64).prop_map(Some), 1 => Just(None)];
    prop_oneof![
        Just(job_start()),
        Just(turn_start()),
        Just(step_start()),
        Just(step_end()),
        (text(), id(), text(), cost).prop_map(|(text, id, arg, cost)| reply(
            &text,
            &[(&id, "bash", json!({"x": arg}))],
            cost
        )),
        id().prop_map(|id| request(&id, "bash", Some("Bash(ls)"))),
        id().prop_map(|id| response(&id, "bash", "refuse", Some("a rule"))),
        (id(), text()).prop_map(|(id, arg)| tool_start(&id, "bash", json!([arg]))),
        (id(), text()).prop_map(|(id, text)| tool_update(&id, &text)),
        (id(), text()).prop_map(|(id, text)| tool_complete(&id, "bash", &text)),
        id().prop_map(|id| tool_error(&id, "bash", ToolErrorStatus::Denied)),
        (2u32..5).prop_map(retry_start),
        text().prop_map(|text| text_chunk(&text)),
        text().prop_map(|text| turn_end(&text)),
        text().prop_map(|text| warning(&text)),
        Just(diff(&["a", "b"])),
        (0.0..1.0f64).prop_map(|used| {
            let budget = [(LimitKind::Cost, Spent { limit: 0.1, used })].into();
            let error = Some(error("spent"));
            job_end(
                Reason::Budget,
                JobResult {
                    budget,
                    error,
                    ..JobResult::default()
                },
            )
        }),
    ]
}

fn pairs_hold(log: &str) {
    let mut open: Vec<String> = Vec::new();
    for (index, line) in log.lines().enumerate() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["seq"], index + 1);
        let call = format!("{} {}", line["job"], line["data"]["toolCallId"]);
        match line["event"].as_str().unwrap() {
            "tool:execution:start" => open.push(call),
            "tool:execution:complete" | "tool:execution:error" => open.retain(|id| *id != call),
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?} never ended");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_fold_of_the_log_is_the_live_report(
        kinds in prop::collection::vec((any::<bool>(), any_kind()), 0..30),
        failed in any::<bool>(),
    ) {
        let (mut recorder, kept) = recorder();
        recorder.write(run_start(&["fix", "other"]));
        for (other, kind) in kinds {
            recorder.write(emission(if other { "other" } else { "fix" }, kind));
        }
        let reason = if failed { Reason::Terminated } else { Reason::Success };
        let report = close(recorder, reason);
        let log = kept.log();
        let folded = fold_log(log.as_bytes(), None, |_| {}).unwrap();
        prop_assert_eq!(folded.result, report.result);
        prop_assert_eq!(folded.events, report.events);
        pairs_hold(&log);
    }
}
