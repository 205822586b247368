//! The laws of the log: first, last, numbers, pairs, failing sinks.

use std::io::{Error, ErrorKind};

use agent::event::{Event, EventKind, JobResult, Outcome, Reason, RetryEnd, ToolErrorStatus};
use agent::report::{Deltas, Ending, Recorder, Sink, SinkError, Streaming};
use serde_json::json;

use crate::report_events::*;

/// Fails from the nth write on, or at the end.
struct Failing {
    writes_left: u32,
    fails_to_finish: bool,
}

impl Failing {
    fn after(writes_left: u32) -> Box<dyn Sink> {
        Box::new(Self {
            writes_left,
            fails_to_finish: false,
        })
    }

    fn error() -> SinkError {
        SinkError::new("write", "the disk", Error::from(ErrorKind::StorageFull))
    }
}

impl Sink for Failing {
    fn write(&mut self, _event: &Event, _line: &str) -> Result<(), SinkError> {
        match self.writes_left.checked_sub(1) {
            None => Err(Self::error()),
            Some(left) => {
                self.writes_left = left;
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        if self.fails_to_finish {
            Err(Self::error())
        } else {
            Ok(())
        }
    }
}

#[test]
fn numbers_have_no_gaps_and_the_run_is_closed_once() {
    let (report, kept) = recorded(vec![
        job_start(),
        job_end(Reason::Success, JobResult::default()),
    ]);
    let events = kept.events();
    assert_eq!(
        kept.names(),
        ["run:start", "job:start", "job:end", "run:end"]
    );
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert!(
        events
            .iter()
            .all(|event| event.v == 1 && event.run_id == "run-1")
    );
    assert_eq!(report.events, 4);
    let Some(EventKind::RunEnd(end)) = events.last().map(|event| &event.kind) else {
        panic!("no run:end");
    };
    assert_eq!(end.result, report.result);
    assert_eq!((end.reason, end.exit_code), (Reason::Success, 0));
}

#[test]
fn a_run_end_of_the_engine_is_ignored() {
    let (_, kept) = recorded(vec![]);
    let end = kept.events().pop().unwrap().kind;
    let (mut recorder, kept) = recorder();
    recorder.write(run_start(&["fix"]));
    recorder.write(agent::event::Emission::of_run(end));
    close(recorder, Reason::Success);
    assert_eq!(kept.names(), ["run:start", "run:end"]);
}

#[test]
fn what_is_open_at_the_end_is_ended_innermost_first() {
    let (mut recorder, kept) = recorder();
    recorder.write(run_start(&["fix"]));
    let calls = [
        ("a", "bash", json!({})),
        ("b", "read", json!({})),
        ("c", "ls", json!({})),
    ];
    for kind in [
        job_start(),
        turn_start(),
        step_start(),
        reply("working", &calls, Some(0.5)),
        tool_start("a", "bash", json!({})),
        request("b", "read", None),
        tool_start("c", "ls", json!({})),
        tool_complete("c", "ls", "x"),
        retry_start(2),
        retry_start(3),
    ] {
        recorder.write(in_job(kind));
    }
    let report = close(recorder, Reason::Interrupted);
    let names = kept.names();
    assert_eq!(
        names[11..],
        [
            "tool:permission:response",
            "tool:execution:error aborted",
            "tool:execution:error skipped",
            "retry:end",
            "step:end",
            "turn:end cancelled",
            "job:end",
            "run:end"
        ]
    );
    let lines: Vec<serde_json::Value> = kept
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[14]["data"]["attempts"], 2, "two attempts were made");
    assert_eq!(lines[15]["data"]["usage"]["input"], 100);
    assert_eq!(lines[16]["data"]["finalText"], "working");
    assert_eq!(lines[17]["data"]["reason"], "interrupted");
    assert!(lines[11..18].iter().all(|line| line["job"] == "fix"));
    assert_eq!(report.result.exit_code, 130);
    assert_eq!(report.result.final_text, "", "this was no answer yet");
    assert_eq!(report.result.tool_calls["bash"].errors, 1);
    assert!(report.result.denials.is_empty(), "a cut is no denial");
}

#[test]
fn the_end_of_a_job_closes_what_is_inside_it_and_nothing_else() {
    let (mut recorder, kept) = recorder();
    recorder.write(run_start(&["fix", "other"]));
    for job in ["fix", "other"] {
        recorder.write(emission(job, job_start()));
        recorder.write(emission(job, tool_start("a", "bash", json!({}))));
    }
    recorder.write(in_job(job_end(Reason::Timeout, JobResult::default())));
    recorder.write(emission("other", tool_complete("a", "bash", "x")));
    recorder.write(emission(
        "other",
        job_end(Reason::Success, JobResult::default()),
    ));
    close(recorder, Reason::BatchPartial);
    assert_eq!(
        kept.names()[5..],
        [
            "tool:execution:error aborted",
            "job:end",
            "tool:execution:complete",
            "job:end",
            "run:end"
        ]
    );
}

#[test]
fn what_was_ended_is_not_ended_again() {
    let (_, kept) = recorded(vec![
        job_start(),
        turn_start(),
        step_start(),
        reply("", &[("a", "edit", json!({}))], None),
        request("a", "edit", None),
        response("a", "edit", "refuse", None),
        tool_error("a", "edit", ToolErrorStatus::Denied),
        retry_start(2),
        EventKind::RetryEnd(RetryEnd {
            retry_id: "retry-1".to_owned(),
            success: true,
            attempts: 2,
            final_error: None,
        }),
        step_end(),
        turn_end("done"),
        job_end(Reason::Success, JobResult::default()),
    ]);
    assert_eq!(kept.events().len(), 14);
}

#[test]
fn an_unfinished_job_gets_the_error_of_the_run() {
    let (mut recorder, kept) = recorder();
    recorder.write(run_start(&["fix"]));
    recorder.write(in_job(job_start()));
    let report = recorder.close(Ending {
        reason: Reason::Internal,
        error: Some(error("a bug")),
    });
    assert_eq!(report.result.error, Some(error("a bug")));
    let lines = kept.log();
    assert_eq!(lines.matches("a bug").count(), 2, "{lines}");
}

#[test]
fn a_failing_sink_is_dropped_and_the_others_go_on() {
    let kept = Kept::default();
    let mut recorder = Recorder::new(options(vec![
        Failing::after(1),
        Box::new(kept.clone()),
        Failing::after(100),
    ]));
    recorder.write(run_start(&["fix"]));
    assert!(recorder.failure().is_none());
    recorder.write(in_job(job_start()));
    let failure = recorder.failure().unwrap().to_string();
    assert!(failure.starts_with("cannot write the disk: "), "{failure}");
    recorder.write(in_job(job_end(Reason::Success, JobResult::default())));
    let report = close(recorder, Reason::Success);
    assert_eq!(kept.names().last().unwrap(), "run:end");
    assert_eq!(report.result.reason, Reason::Io);
    assert_eq!(
        (report.result.outcome, report.result.exit_code),
        (Outcome::Error, 74)
    );
    assert_eq!(report.result.error.unwrap().code, "io");
    assert_eq!(report.failures.len(), 1);
    let Some(EventKind::RunEnd(end)) = kept.events().pop().map(|event| event.kind) else {
        panic!("no run:end");
    };
    assert_eq!(end.exit_code, 74);
}

#[test]
fn a_failure_outranks_the_task_but_no_signal_and_no_bug() {
    for (reason, expect) in [
        (Reason::Success, Reason::Io),
        (Reason::Budget, Reason::Io),
        (Reason::Timeout, Reason::Io),
        (Reason::Unavailable, Reason::Io),
        (Reason::Internal, Reason::Internal),
        (Reason::Interrupted, Reason::Interrupted),
        (Reason::Terminated, Reason::Terminated),
    ] {
        let mut recorder = Recorder::new(options(vec![Failing::after(0)]));
        recorder.write(run_start(&["fix"]));
        assert_eq!(close(recorder, reason).result.reason, expect);
    }
}

#[test]
fn a_sink_that_fails_at_the_end_tells_those_after_it() {
    let (before, after) = (Kept::default(), Kept::default());
    let mut recorder = Recorder::new(options(vec![
        Box::new(before.clone()),
        Failing::after(1),
        Box::new(after.clone()),
    ]));
    recorder.write(run_start(&["fix"]));
    let report = close(recorder, Reason::Success);
    assert_eq!(report.result.exit_code, 74);
    assert!(before.log().contains(r#""exitCode":0"#));
    assert!(after.log().contains(r#""exitCode":74"#));
    assert_eq!(after.events().len(), 2);
}

#[test]
fn a_sink_that_cannot_finish_changes_the_report() {
    let mut recorder = Recorder::new(options(vec![Box::new(Failing {
        writes_left: 9,
        fails_to_finish: true,
    })]));
    recorder.write(run_start(&["fix"]));
    let report = close(recorder, Reason::Success);
    assert_eq!(
        (report.result.reason, report.result.exit_code),
        (Reason::Io, 74)
    );
    assert!(report.result.error.unwrap().message.contains("the disk"));
}

#[test]
fn deltas_are_as_the_options_say() {
    for (deltas, expect) in [
        (Deltas::None, vec![]),
        (
            Deltas::Delta,
            vec![json!({"delta": "one "}), json!({"delta": "two"})],
        ),
        (
            Deltas::Full,
            vec![
                json!({"content": "one ", "delta": "one "}),
                json!({"content": "one two", "delta": "two"}),
            ],
        ),
    ] {
        let kept = Kept::default();
        let mut recorder = Recorder::new(agent::report::RecorderOptions {
            deltas,
            ..options(vec![Box::new(kept.clone())])
        });
        recorder.write(run_start(&["fix"]));
        for kind in [
            text_chunk("one "),
            text_chunk("two"),
            reply("one two", &[], None),
        ] {
            recorder.write(in_job(kind));
        }
        close(recorder, Reason::Success);
        let log = kept.log();
        let mut joined = String::new();
        let mut whole = Vec::new();
        for (index, line) in log.lines().enumerate() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["seq"], index + 1, "gapless");
            if line["event"] == "message:text:chunk" {
                joined.push_str(line["data"]["delta"].as_str().unwrap());
                whole.push(line["data"]["content"].clone());
            }
        }
        let text: String = expect
            .iter()
            .map(|data| data["delta"].as_str().unwrap())
            .collect();
        assert_eq!(joined, text, "{deltas:?}");
        assert_eq!(
            whole.last().cloned().unwrap_or_default(),
            expect
                .last()
                .map(|data| data["content"].clone())
                .unwrap_or_default()
        );
    }
}

#[test]
fn without_deltas_sinks_still_hear_that_something_streams() {
    struct Counting(std::sync::Arc<std::sync::atomic::AtomicUsize>);
    impl Sink for Counting {
        fn write(&mut self, _event: &Event, _line: &str) -> Result<(), SinkError> {
            Ok(())
        }
        fn finish(&mut self) -> Result<(), SinkError> {
            Ok(())
        }
        fn streaming(&mut self, what: Streaming, bytes: usize) {
            assert_eq!(what, Streaming::Text);
            self.0
                .fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let bytes = std::sync::Arc::<std::sync::atomic::AtomicUsize>::default();
    let mut recorder = Recorder::new(options(vec![Box::new(Counting(bytes.clone()))]));
    recorder.write(run_start(&["fix"]));
    recorder.write(in_job(text_chunk("four")));
    assert_eq!(bytes.load(std::sync::atomic::Ordering::Relaxed), 4);
    assert_eq!(close(recorder, Reason::Success).events, 2);
}

#[test]
fn a_failed_sink_stands_before_the_error_of_the_job() {
    let mut recorder = Recorder::new(options(vec![Failing::after(1)]));
    recorder.write(run_start(&["fix"]));
    let end = JobResult {
        error: Some(error("provider down")),
        ..JobResult::default()
    };
    recorder.write(in_job(job_end(Reason::Unavailable, end)));
    let result = close(recorder, Reason::Unavailable).result;
    let error = result.error.unwrap();
    assert_eq!((result.exit_code, error.code.as_str()), (74, "io"));
    assert_eq!(
        error.hints,
        ["apart from that the run ended with unavailable: provider down"]
    );
}
