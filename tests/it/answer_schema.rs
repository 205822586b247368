//! The schema of answers: what it refuses, where it is wrong, how a task and a
//! flag say it.

use agent::session::ResponseSchema;
use agent::task::Kind;
use serde_json::{Value, json};

use crate::support::cli::Cli;
use crate::task_case::Case;

/// The violations of an answer, `path: rule`.
fn violations(schema: Value, answer: &Value) -> Vec<String> {
    let schema = ResponseSchema::compile(schema).unwrap();
    match schema.read(&answer.to_string()) {
        Ok(_) => Vec::new(),
        Err(all) => all.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn every_violation_names_its_place_and_rule() {
    let schema = json!({
        "type": "object",
        "required": ["fixed", "files"],
        "additionalProperties": false,
        "properties": {
            "fixed": {"type": "boolean"},
            "files": {"type": "array", "items": {"$ref": "#/$defs/file"}, "maxItems": 2},
            "when": {"type": "string", "format": "date"}
        },
        "$defs": {"file": {"type": "string", "pattern": "^src/"}}
    });
    let check = |answer: Value, expected: &[&str]| {
        assert_eq!(violations(schema.clone(), &answer), expected, "{answer}");
    };
    check(
        json!({"fixed": true, "files": ["src/a"], "when": "2026-01-31"}),
        &[],
    );
    check(json!({"fixed": true}), &["missing properties 'files'"]);
    check(
        json!({"fixed": "yes", "files": ["src/a", "b"]}),
        &[
            "at `/fixed`: want boolean, but got string",
            "at `/files/1`: 'b' does not match pattern '^src/'",
        ],
    );
    check(
        json!({"fixed": true, "files": [], "more": 1}),
        &["additionalProperties 'more' not allowed"],
    );
    check(
        json!({"fixed": true, "files": [], "when": "2026-02-31"}),
        &["at `/when`: '2026-02-31' is not valid date: february has 28 days only"],
    );
    // The list of what is wrong is bounded, and so is each entry.
    let items = json!({"type": "array", "items": {"enum": ["x"]}});
    let many = violations(items, &json!(vec!["y"; 100]));
    assert_eq!(many.len(), 10);
    let long = violations(json!({"const": 1}), &json!("z".repeat(10_000)));
    assert!(long[0].len() < 700, "{}", long[0].len());
}

#[test]
fn a_schema_that_cannot_be_used_says_where() {
    let table = [
        (json!({"type": "objekt"}), "/type", ""),
        (
            json!({"properties": {"a": {"minimum": "1"}}}),
            "/properties/a/minimum",
            "want number",
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/x"}}}),
            "/properties/a/$ref",
            "leads to nothing",
        ),
        (
            json!({"items": {"$ref": "#anchor"}}),
            "/items/$ref",
            "leads to nothing",
        ),
        (
            json!({"a": {}, "items": {"$ref": "https://example.com/s.json"}}),
            "/items/$ref",
            "outside",
        ),
        (
            json!({"items": {"$ref": "file:///etc/passwd"}}),
            "/items/$ref",
            "outside",
        ),
        (
            json!({"items": {"pattern": "(?=a)"}}),
            "/items/pattern",
            "is not valid regex: regex parse error: (?=a)",
        ),
        (
            json!({"$schema": "https://example.com/draft"}),
            "/$schema",
            "no draft",
        ),
        (
            json!({"$schema": "http://json-schema.org/draft-03/schema#"}),
            "/$schema",
            "no draft",
        ),
        (json!({"$ref": "#"}), "", "without an end"),
    ];
    for (schema, pointer, words) in table {
        let error = ResponseSchema::compile(schema.clone()).unwrap_err();
        assert_eq!(error.pointer, pointer, "{schema}: {error}");
        assert!(error.message.contains(words), "{schema}: {error}");
    }
    for draft in [
        "http://json-schema.org/draft-04/schema#",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2019-09/schema",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let schema = json!({"$schema": draft, "type": "object"});
        assert!(ResponseSchema::compile(schema).is_ok(), "{draft}");
    }
}

#[test]
fn a_task_says_it_inline_or_in_a_file() {
    let inline = Case::with("response: {schema: {type: object, required: [fixed]}}").job();
    let response = inline.response.unwrap();
    assert_eq!(response.spec.repairs, 3);
    assert_eq!(
        **response.spec.schema.document(),
        json!({"type": "object", "required": ["fixed"]})
    );
    assert_eq!(response.file, None);

    let yaml = "type: object\nrequired: [fixed]\n";
    let json = r#"{"type": "object", "title": "😀", "required": ["fixed"]}"#;
    for (name, text) in [("s.yaml", yaml), ("s.json", json)] {
        let more = format!("response: {{schema_file: {name}, repairs: 0, file: out/a.json}}");
        let case = Case::with(&more).file(name, text);
        let job = case.job();
        let response = job.response.unwrap();
        assert_eq!(response.spec.repairs, 0);
        assert_eq!(response.file, Some(case.path().join("out/a.json")));
        assert_eq!(
            response.spec.schema.document()["required"],
            json!(["fixed"])
        );
        let resolved = &job.resolved["response"];
        assert_eq!(resolved["repairs"], 0);
        assert_eq!(resolved["schema"]["type"], "object");
    }
    // Parameters may stand in its texts.
    let case = Case::with(
        "parameters: [{key: crate, default: core}]\nresponse: {schema: {enum: ['{{ crate }}']}}",
    );
    let response = case.job().response.unwrap();
    assert_eq!(**response.spec.schema.document(), json!({"enum": ["core"]}));
}

#[test]
fn a_wrong_section_says_where() {
    let table = [
        ("response: {}", "missing_key", (3, 1)),
        (
            "response: {repairs: 11, schema: {}}",
            "out_of_range",
            (3, 21),
        ),
        (
            "response: {repairs: -1, schema: {}}",
            "out_of_range",
            (3, 21),
        ),
        ("response: {schema: text}", "wrong_type", (3, 20)),
        (
            "response: {schema: {}, schema_file: s.json}",
            "conflict",
            (3, 37),
        ),
        ("response: {schema: {}, file: .}", "conflict", (3, 30)),
        (
            "response: {schema: {}, file: task.yaml}",
            "conflict",
            (3, 30),
        ),
        (
            "response: {schema_file: s.json, file: s.json}",
            "conflict",
            (3, 39),
        ),
        (
            "response:\n  schema:\n    type: objekt",
            "bad_schema",
            (5, 11),
        ),
        (
            "response:\n  schema:\n    properties:\n      a: {$ref: '#/x'}",
            "bad_schema",
            (6, 17),
        ),
    ];
    for (more, code, place) in table {
        let problems = Case::with(more).file("s.json", "{}").problems();
        let first = &problems.list[0];
        assert_eq!(problems.list.len(), 1, "{more}: {problems}");
        assert_eq!(
            (first.code, (first.line, first.column)),
            (code, place),
            "{more}: {problems}"
        );
        assert_eq!(problems.kind, Kind::BadTask, "{more}");
    }
    // In the file that has the mistake.
    let files = [
        ("{\n  \"type\": \"objekt\"\n}", (2, 11)),
        ("{\n  \"type\": \"object\",\n}", (3, 1)),
        ("type: objekt", (1, 7)),
        ("- type", (1, 1)),
    ];
    for (text, place) in files {
        let case = Case::with("response: {schema_file: s.json}").file("s.json", text);
        let problems = case.problems();
        let first = &problems.list[0];
        assert!(first.file.ends_with("s.json"), "{problems}");
        assert_eq!((first.line, first.column), place, "{text}: {problems}");
    }
    let missing = Case::with("response: {schema_file: s.json}").problems();
    assert_eq!(missing.kind, Kind::NoInput);
}

#[test]
fn a_flag_takes_the_place_of_what_the_task_says() {
    let flag = |case: Case, value: &str| {
        let mut case = case;
        case.overrides.json_schema = Some(value.to_owned());
        case
    };
    let inline = "{\"type\": \"object\", \"title\": \"{{ no template }}\"}";
    let named = "response: {schema: {type: array}, repairs: 1}";
    for more in ["", named, "response: {schema_file: other.json}"] {
        let case = flag(Case::with(more), inline);
        let response = case.job().response.unwrap();
        assert_eq!(
            response.spec.schema.document()["title"],
            "{{ no template }}"
        );
        assert_eq!(response.spec.repairs, if more == named { 1 } else { 3 });
        for name in ["s.json", "@s.json"] {
            let case = flag(Case::with(more), name).file("s.json", "{\"type\": \"string\"}");
            let response = case.job().response.unwrap();
            assert_eq!(**response.spec.schema.document(), json!({"type": "string"}));
        }
    }
    for wrong in ["{", "{\"type\": \"objekt\"}"] {
        let problems = flag(Case::with(""), wrong).problems();
        assert_eq!(problems.kind, Kind::Usage, "{problems}");
        assert_eq!(problems.list[0].file, "--json-schema");
    }
    let problems = flag(Case::with(""), "missing.json").problems();
    assert_eq!(problems.kind, Kind::NoInput);
    let bad = flag(Case::with(""), "s.json").file("s.json", "{\"type\": 1}");
    assert_eq!(bad.problems().kind, Kind::BadTask);
}

#[test]
fn a_wrong_schema_ends_a_run_before_a_model_is_asked() {
    let task = "version: 1\nprompt: go\nsettings: {model: scripted/none.yaml}\n\
                response: {schema: {type: objekt}}\n";
    let output = Cli::new()
        .file("task.yaml", task)
        .args(["run", "task.yaml", "--quiet"])
        .expect_code(65)
        .run();
    assert!(
        output.stderr.contains("task.yaml:4:27"),
        "{}",
        output.stderr
    );
    let output = Cli::new()
        .args([
            "-p",
            "go",
            "--quiet",
            "--json-schema",
            "{\"type\": \"objekt\"}",
        ])
        .expect_code(2)
        .run();
    assert!(output.stderr.contains("--json-schema"), "{}", output.stderr);
}

#[test]
fn a_check_shows_what_is_asked_of_the_answer() {
    let output = Cli::new()
        .file(
            "task.yaml",
            "version: 1\nprompt: go\nresponse: {schema: {}, file: out/a.json}\n",
        )
        .args(["check", "task.yaml"])
        .run();
    let line = output.stdout.lines().find(|line| line.contains("response"));
    let line = line.unwrap();
    assert!(
        line.contains("at most 3 repairs, to ") && line.ends_with("out/a.json"),
        "{line}"
    );
}
