//! The published schemas are those of the types, and real logs keep them.
//!
//! `UPDATE_SCHEMAS=1` writes the fixtures anew.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::path::PathBuf;

use agent::event::{JobResult, Reason, ToolErrorStatus};
use agent::report::{Recorder, RecorderOptions, VALUE_BYTES_MAX, event_schema, result_schema};
use serde_json::{Value, json};

use crate::report_events::*;
use crate::support::cli::Cli;

#[expect(
    clippy::disallowed_methods,
    reason = "a switch for people who run the tests"
)]
fn check(name: &str, schema: &Value) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/schema")
        .join(name);
    let text = format!("{}\n", serde_json::to_string_pretty(schema).unwrap());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        published == text,
        "{} is not the schema of the types; UPDATE_SCHEMAS=1 writes it anew",
        path.display()
    );
}

#[test]
fn the_schema_of_the_events_is_published() {
    check("events.json", &event_schema());
}

#[test]
fn the_schema_of_the_result_is_published() {
    check("result.json", &result_schema());
}

#[test]
fn the_schema_of_providers_is_published() {
    check("providers.json", &agent::task::providers_schema());
}

#[test]
fn the_schema_of_the_models_is_published() {
    let schema = Cli::new().args(["schema", "models"]).run().stdout;
    check("models.json", &serde_json::from_str(&schema).unwrap());
}

#[test]
fn the_schema_of_the_doctor_is_published_and_kept() {
    let schema = Cli::new().args(["schema", "doctor"]).run().stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    check("doctor.json", &schema);
    let found = Cli::new().args(["doctor", "--output-format", "json"]).run();
    valid(schema, &[serde_json::from_str(&found.stdout).unwrap()]);
}

fn valid(schema: Value, documents: &[Value]) {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("mem:///schema.json", schema).unwrap();
    let index = compiler
        .compile("mem:///schema.json", &mut schemas)
        .unwrap();
    for document in documents {
        let error = schemas.validate(document, index).err();
        let error = error.map(|error| error.to_string());
        assert_eq!(error, None, "{document}");
    }
}

#[test]
fn a_log_with_large_values_keeps_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let kept = Kept::default();
    let mut recorder = Recorder::new(RecorderOptions {
        spill_dir: Some(folder.path().to_owned()),
        ..options(vec![Box::new(kept.clone())])
    });
    recorder.write(run_start(&["fix"]));
    let large = "x".repeat(VALUE_BYTES_MAX + 1);
    for kind in [
        job_start(),
        turn_start(),
        step_start(),
        retry_start(2),
        reply(&large, &[("a", "edit", json!({"text": large}))], Some(0.1)),
        request("a", "edit", None),
        response("a", "edit", "refuse", Some("a rule")),
        tool_error("a", "edit", ToolErrorStatus::Denied),
        tool_start("b", "read", json!({})),
        tool_update("b", "x"),
        tool_complete("b", "read", &large),
        warning("careful"),
        turn_end(&large),
        diff(&["a"]),
        job_end(Reason::Success, JobResult::default()),
    ] {
        recorder.write(in_job(kind));
    }
    let report = close(recorder, Reason::Success);
    let lines: Vec<Value> = kept
        .log()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        lines
            .iter()
            .any(|line| line["data"]["content"]["truncated"] == true)
    );
    valid(event_schema(), &lines);
    valid(
        result_schema(),
        &[serde_json::to_value(&report.result).unwrap()],
    );
}

#[test]
fn the_schema_refuses_what_is_no_event() {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler
        .add_resource("mem:///schema.json", event_schema())
        .unwrap();
    let index = compiler
        .compile("mem:///schema.json", &mut schemas)
        .unwrap();
    for document in [
        json!({}),
        json!({"v": 1, "seq": 1, "ts": "", "runId": "", "event": "heartbeat", "data": {}}),
        json!({"v": 1, "seq": 1, "ts": "", "runId": 7, "event": "heartbeat",
               "data": {"elapsedMs": 1, "waitingFor": "x"}}),
    ] {
        assert!(schemas.validate(&document, index).is_err(), "{document}");
    }
}
