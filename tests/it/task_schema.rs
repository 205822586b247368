//! The published schema and the reader are the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::path::Path;

use serde_json::{Value, json};

use crate::task_case::Case;

#[test]
fn the_schema_in_the_repository_is_the_one_that_is_printed() {
    let printed = format!(
        "{}\n",
        serde_json::to_string_pretty(&agent::task::schema()).unwrap()
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema/task.json");
    if std::fs::read_to_string(&file).unwrap_or_default() != printed {
        let current = Path::new(env!("CARGO_TARGET_TMPDIR")).join("task.json");
        std::fs::write(&current, printed).unwrap();
        panic!(
            "{} is not the schema; if the change is meant, copy {}",
            file.display(),
            current.display()
        );
    }
}

#[test]
fn every_object_is_closed_and_every_key_described() {
    fn walk(schema: &Value, path: &str) {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            assert_eq!(
                schema.get("additionalProperties"),
                Some(&json!(false)),
                "{path}"
            );
            for (key, inner) in properties {
                assert!(
                    inner.get("description").is_some(),
                    "{path}.{key} has no description"
                );
            }
        }
        if let Some(inner) = schema.get("$defs").and_then(Value::as_object) {
            inner.iter().for_each(|(name, schema)| walk(schema, name));
        }
    }
    walk(&agent::task::schema(), "task");
}

#[test]
fn a_general_validator_agrees_with_ours() {
    let mut compiler = boon::Compiler::new();
    let mut schemas = boon::Schemas::new();
    compiler
        .add_resource("task.json", agent::task::schema())
        .unwrap();
    let index = compiler.compile("task.json", &mut schemas).unwrap();
    let cases = [
        ("limits: {max_turns: 1}", true),
        ("limits: {max_turns: 0}", false),
        ("limits: {max_turns: 1.5}", false),
        ("limits: {timeout: 1h30m}", true),
        ("limits: {timeout: 1x}", false),
        ("limits: {warn_at: [0.5]}", true),
        ("limits: {warn_at: [2]}", false),
        ("limits: {on_exhausted: stop}", true),
        ("limits: {on_exhausted: halt}", false),
        (
            "permissions: {allow: [Read, {rule: Read, match: []}]}",
            true,
        ),
        ("permissions: {allow: [{match: []}]}", false),
        ("permissions: {allow: [[]]}", false),
        ("settings: {model: null, base_url: null}", true),
        ("settings: {model: ''}", false),
        ("settings: {base_url: ftp://x}", false),
        ("settings: {temperature: 3}", false),
        ("settings: {thinking: xhigh}", true),
        ("settings: {thinking: null}", false),
        ("tools: {enabled: []}", true),
        ("tools: {enabled: [todo]}", false),
        ("name: a-1_b", true),
        ("name: -a", false),
        ("secrets: [{name: A}]", false),
        ("env: {pass: ['A B']}", false),
        ("labels: {a: b}", true),
        ("labels: {a: 1}", false),
        ("hooks: {on_final: [{command: [x]}]}", true),
        ("hooks: {on_final: [{command: []}]}", false),
        ("hooks: {on_final: [{match: bash, command: [x]}]}", false),
        ("hooks: {before_fork: [{command: [x]}]}", false),
        ("requires: {commands: [git, 'cargo >= 1.80']}", true),
        ("requires: {commands: ['cargo ~ 1.80']}", false),
        ("requires: {env: [A], files: [a/b]}", true),
        ("requires: {files: ['']}", false),
        ("requires: {env: [1]}", false),
        ("session: {persist: 'yes'}", false),
        ("parameters: [{key: a, default: {}}]", false),
        ("matrix: {}", false),
    ];
    for (more, fits) in cases {
        let yaml = format!("version: 1\nprompt: x\n{more}\n");
        let value: Value = serde_yaml::from_str(&yaml).unwrap();
        let general = schemas.validate(&value, index).is_ok();
        assert_eq!(general, fits, "the general validator on {more}");
        let ours = Case::new(&yaml).load();
        assert_eq!(
            ours.is_ok(),
            fits,
            "ours on {more}: {:?}",
            ours.err().map(|e| e.to_string())
        );
    }
}
