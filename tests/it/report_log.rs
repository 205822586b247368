//! The log file and stream, large values, and the result file.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::io::{Error, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use agent::event::{JobResult, Outcome, Reason};
use agent::report::{
    JsonlSink, Opening, Recorder, RecorderOptions, VALUE_BYTES_MAX, fold_log, incomplete,
    write_result,
};
use serde_json::{Value, json};

use crate::report_events::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn each_event_is_in_the_file_at_once_and_only_its_owner_reads_it() {
    let folder = scratch();
    let path = folder.path().join("events.jsonl");
    std::fs::write(&path, "an older log").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let sink = JsonlSink::create(&path).unwrap();
    let mut recorder = Recorder::new(options(vec![Box::new(sink)]));
    recorder.write(run_start(&["fix"]));
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() == 1, "{text}");
    assert_eq!(mode(&path), 0o600);
    close(recorder, Reason::Success);
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
}

#[test]
fn a_log_that_cannot_be_opened_is_named() {
    let folder = scratch();
    let path = folder.path().join("missing/events.jsonl");
    let error = JsonlSink::create(&path).err().unwrap().to_string();
    assert!(
        error.starts_with("cannot open ") && error.contains("missing/events.jsonl"),
        "{error}"
    );
}

/// Fails every write with the same kind of error.
struct Broken(ErrorKind);

impl Write for Broken {
    fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
        Err(Error::from(self.0))
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_stream_is_no_failure_and_a_full_one_is() {
    for (kind, expect) in [
        (ErrorKind::BrokenPipe, Reason::Success),
        (ErrorKind::StorageFull, Reason::Io),
    ] {
        let kept = Kept::default();
        let mut recorder = Recorder::new(options(vec![
            Box::new(JsonlSink::stream("stdout", Box::new(Broken(kind)))),
            Box::new(kept.clone()),
        ]));
        recorder.write(run_start(&["fix"]));
        recorder.write(in_job(job_start()));
        recorder.write(in_job(job_end(Reason::Success, JobResult::default())));
        assert_eq!(close(recorder, Reason::Success).result.reason, expect);
        assert_eq!(kept.events().len(), 4);
    }
}

#[test]
fn a_device_without_room_is_a_failure() {
    let sink = JsonlSink::create(Path::new("/dev/full")).unwrap();
    let mut recorder = Recorder::new(options(vec![Box::new(sink)]));
    recorder.write(run_start(&["fix"]));
    assert!(
        recorder
            .failure()
            .unwrap()
            .to_string()
            .contains("/dev/full")
    );
}

#[test]
fn a_stream_gets_the_same_lines_as_the_file() {
    let (folder, shared, kept) = (scratch(), Shared::default(), Kept::default());
    let path = folder.path().join("events.jsonl");
    let mut recorder = Recorder::new(options(vec![
        Box::new(JsonlSink::stream("stdout", Box::new(shared.clone()))),
        Box::new(JsonlSink::create(&path).unwrap()),
        Box::new(kept.clone()),
    ]));
    recorder.write(run_start(&["fix"]));
    close(recorder, Reason::Success);
    assert_eq!(shared.text(), kept.log());
    assert_eq!(shared.text(), std::fs::read_to_string(&path).unwrap());
}

#[test]
fn large_values_stand_once_in_files_and_events_stay_whole() {
    let folder = scratch();
    let kept = Kept::default();
    let mut recorder = Recorder::new(RecorderOptions {
        spill_dir: Some(folder.path().to_owned()),
        ..options(vec![Box::new(kept.clone())])
    });
    let large = format!("{}é", "x".repeat(VALUE_BYTES_MAX - 1));
    let fits = "y".repeat(VALUE_BYTES_MAX);
    recorder.write(run_start(&["fix"]));
    let args = json!({"body": large, "other": fits, "n": 1});
    for kind in [
        job_start(),
        tool_start("a", "write", args),
        tool_complete("a", "write", &fits),
        turn_end(&large),
        job_end(Reason::Success, JobResult::default()),
    ] {
        recorder.write(in_job(kind));
    }
    let report = close(recorder, Reason::Success);
    assert!(report.failures.is_empty());
    assert_eq!(report.result.final_text, large);
    let lines: Vec<Value> = kept
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let reference = json!({"truncated": true, "bytes": VALUE_BYTES_MAX + 1, "path": "tool-output/event-3-1.txt"});
    assert_eq!(
        lines[2]["data"]["args"],
        json!({"body": reference, "other": fits, "n": 1})
    );
    assert_eq!(lines[3]["data"]["content"], fits, "64 KiB fit");
    assert_eq!(lines[4]["data"]["finalText"], reference, "kept once");
    assert_eq!(lines[6]["data"]["result"]["finalText"], reference);
    let file = folder.path().join("tool-output/event-3-1.txt");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), large);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(
        std::fs::read_dir(folder.path().join("tool-output"))
            .unwrap()
            .count(),
        1
    );

    let log = kept.log();
    let folded = fold_log(log.as_bytes(), Some(folder.path()), |_| {}).unwrap();
    assert_eq!(folded.result, report.result);
    let apart = fold_log(log.as_bytes(), None, |_| {}).unwrap();
    assert_eq!(
        apart.result.final_text,
        "[65537 bytes in tool-output/event-3-1.txt]"
    );
}

#[test]
fn a_value_that_cannot_be_put_aside_stays_and_is_a_failure() {
    let folder = scratch();
    std::fs::write(folder.path().join("tool-output"), "in the way").unwrap();
    let kept = Kept::default();
    let mut recorder = Recorder::new(RecorderOptions {
        spill_dir: Some(folder.path().to_owned()),
        ..options(vec![Box::new(kept.clone())])
    });
    let large = "x".repeat(VALUE_BYTES_MAX + 1);
    recorder.write(run_start(&["fix"]));
    recorder.write(in_job(tool_complete("a", "read", &large)));
    assert!(recorder.failure().is_some());
    assert!(kept.log().contains(&large));
    assert_eq!(close(recorder, Reason::Success).result.reason, Reason::Io);
}

#[test]
fn a_reference_that_a_model_made_up_opens_nothing() {
    let folder = scratch();
    std::fs::write(folder.path().join("bait"), "b".repeat(VALUE_BYTES_MAX + 1)).unwrap();
    let forged = json!({"truncated": true, "bytes": VALUE_BYTES_MAX + 1, "path": "bait"});
    let up =
        json!({"truncated": true, "bytes": 70_000, "path": "tool-output/event-../../bait.txt"});
    let args = json!({"a": forged, "b": up});
    let (report, kept) = recorded(vec![
        reply("", &[("a", "edit", args.clone())], None),
        tool_error("a", "edit", agent::event::ToolErrorStatus::Denied),
    ]);
    assert_eq!(report.result.denials[0].input, args);
    let folded = fold_log(kept.log().as_bytes(), Some(folder.path()), |_| {}).unwrap();
    assert_eq!(folded.result.denials[0].input, args);
}

#[test]
fn the_result_file_is_replaced_whole_and_private() {
    let folder = scratch();
    let path = folder.path().join("result.json");
    let first = incomplete(Opening {
        run_id: "run-1".to_owned(),
        task: "fix".to_owned(),
        model: "scripted/demo".to_owned(),
        started_at: "2026-11-21T20:01:02.345Z".to_owned(),
        run_dir: None,
    });
    assert_eq!(
        (first.outcome, first.reason, first.exit_code),
        (Outcome::Error, Reason::Incomplete, 1)
    );
    write_result(&path, &first).unwrap();
    let (report, _) = recorded(vec![turn_end("done")]);
    write_result(&path, &report.result).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let read: agent::event::ResultDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(read, report.result);
    assert!(text.ends_with("}\n"));
    assert_eq!(mode(&path), 0o600);
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        1,
        "nothing is left beside it"
    );
    let error = write_result(&folder.path().join("no/result.json"), &first).unwrap_err();
    assert!(error.to_string().contains("no/result.json"), "{error}");
}
