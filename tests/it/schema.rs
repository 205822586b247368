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

/// Every document that `agent schema` prints, with its name.
fn all_schemas() -> Vec<(&'static str, Value)> {
    let names = ["task", "providers", "events", "result", "models", "doctor"];
    let print = |name| {
        let printed = Cli::new().args(["schema", name]).run().stdout;
        (name, serde_json::from_str(&printed).unwrap())
    };
    names.map(print).into()
}

/// What a validator such as ajv refuses in its strict mode: keywords and formats
/// that are not of the standard.
fn unknown_words(schema: &Value, path: &str, found: &mut Vec<String>) {
    const SCHEMAS: &[&str] = &["$defs", "properties", "patternProperties"];
    const KNOWN: &[&str] = &[
        "$schema",
        "$ref",
        "title",
        "description",
        "type",
        "required",
        "items",
        "prefixItems",
        "additionalProperties",
        "propertyNames",
        "minProperties",
        "maxProperties",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "enum",
        "const",
        "default",
        "examples",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedProperties",
        "deprecated",
    ];
    let Some(fields) = schema.as_object() else {
        for (at, item) in schema.as_array().into_iter().flatten().enumerate() {
            unknown_words(item, &format!("{path}/{at}"), found);
        }
        return;
    };
    for (name, value) in fields {
        let path = format!("{path}/{name}");
        if SCHEMAS.contains(&name.as_str()) {
            for (name, schema) in value.as_object().unwrap() {
                unknown_words(schema, &format!("{path}/{name}"), found);
            }
        } else if !KNOWN.contains(&name.as_str()) {
            found.push(path);
        } else if !["enum", "const", "default", "examples"].contains(&name.as_str()) {
            unknown_words(value, &path, found);
        }
    }
}

#[test]
fn the_schemas_are_in_the_words_of_the_standard_alone() {
    for (name, schema) in all_schemas() {
        let mut found = Vec::new();
        unknown_words(&schema, name, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}

#[test]
fn bounds_stand_for_the_formats_of_numbers() {
    let (_, result) = all_schemas().swap_remove(3);
    let code = &result["properties"]["exitCode"];
    assert_eq!(
        (&code["minimum"], &code["maximum"]),
        (&json!(0), &json!(255))
    );
    let turns = &result["properties"]["turns"];
    assert_eq!(turns["maximum"], u32::MAX);
    let (_, task) = all_schemas().swap_remove(0);
    let error = boon_error(
        &task,
        &json!({"version": 1, "prompt": "x", "limits": {"max_turns": -1}}),
    );
    assert!(error.is_some(), "a number below its bound");
}

fn boon_error(schema: &Value, document: &Value) -> Option<String> {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler
        .add_resource("mem:///schema.json", schema.clone())
        .unwrap();
    let index = compiler
        .compile("mem:///schema.json", &mut schemas)
        .unwrap();
    schemas
        .validate(document, index)
        .err()
        .map(|error| error.to_string())
}
