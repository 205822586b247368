//! Runs whose answer a program reads: result, file, standard output, log.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::running::Running;
use crate::support::workspace::Workspace;

const RESPONSE: &str = "response:\n  repairs: 1\n  file: out/deep/answer.json\n  schema:\n    \
                        type: object\n    required: [fixed]\n    properties: {fixed: {type: boolean}}\n";

/// A task with this response section whose model gives these replies.
fn task(response: &str, replies: &Value) -> Cli {
    let task = format!(
        "version: 1\nprompt: do it\nsettings: {{model: scripted/replies.yaml}}\n{response}"
    );
    Cli::new()
        .file("task.yaml", task)
        .file("replies.yaml", replies.to_string())
        .args(["run", "task.yaml", "--quiet", "--run-dir", "run"])
}

fn answer_file(output: &Output) -> Option<String> {
    std::fs::read_to_string(output.cwd().join("out/deep/answer.json")).ok()
}

/// Folding the log again gives the same result and the same answer.
fn replays(output: &Output) {
    let again = Cli::at(output.cwd()).args(["replay", "run"]).run();
    assert_eq!(again.stdout, output.stdout);
}

const ANSWER: &str =
    "It is done.\n```json\n{\"fixed\": true, \"n\": 18446744073709551615, \"x\": 1.50}\n```";
const LINE: &str = "{\"fixed\":true,\"n\":18446744073709551615,\"x\":1.5}\n";

#[test]
fn a_fitting_answer_is_one_document_everywhere() {
    let replies = json!([{"text": "not yet"}, {"text": ANSWER}]);
    let output = task(RESPONSE, &replies)
        .file("out/deep/answer.json", "stale")
        .args(["-o", "last.txt"])
        .run();
    assert_eq!(output.stdout, LINE);
    assert_eq!(answer_file(&output).unwrap(), LINE);
    let kept = std::fs::read_to_string(output.cwd().join("last.txt")).unwrap();
    assert_eq!(kept, LINE);
    let mode = std::fs::metadata(output.cwd().join("out/deep/answer.json")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let result = output.result();
    let document: Value = serde_json::from_str(LINE).unwrap();
    assert_eq!(result["structuredOutput"], document);
    assert_eq!(
        (&result["repairs"], &result["turns"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(
        (&result["reason"], &result["finalText"]),
        (&json!("success"), &json!(ANSWER))
    );
    replays(&output);
}

#[test]
fn an_answer_that_never_fits_is_a_failure_without_a_document() {
    let replies = json!([{"text": "{\"fixed\": 1}"}, {"text": "{\"fixed\": \"no\"}"}]);
    let output = task(RESPONSE, &replies)
        .file("out/deep/answer.json", "stale")
        .args(["-o", "last.txt"])
        .expect_code(1)
        .run();
    assert_eq!(output.stdout, "");
    assert_eq!(answer_file(&output), None);
    assert_eq!(
        std::fs::read_to_string(output.cwd().join("last.txt")).unwrap(),
        ""
    );
    let result = output.result();
    assert_eq!(result["reason"], "invalid_response");
    assert_eq!(result["outcome"], "failure");
    assert_eq!(result["finalText"], "{\"fixed\": \"no\"}");
    assert_eq!(result.get("structuredOutput"), None);
    assert_eq!(result["repairs"], 1);
    assert_eq!(result["error"]["code"], "invalid_response");
    assert_eq!(
        result["error"]["message"],
        "the final answer does not fit the response schema, though it was asked for again: \
         at `/fixed`: want boolean, but got string"
    );
    let again = Cli::at(output.cwd())
        .args(["replay", "run"])
        .expect_code(1)
        .run();
    assert_eq!(again.stdout, "");
}

#[test]
fn a_null_is_an_answer_too() {
    let response = "response: {schema: {type: 'null'}, file: out/deep/answer.json}\n";
    let output = task(response, &json!([{"text": "null"}])).run();
    assert_eq!(output.stdout, "null\n");
    assert_eq!(answer_file(&output).unwrap(), "null\n");
    assert_eq!(output.result().get("structuredOutput"), Some(&Value::Null));
    replays(&output);
}

#[test]
fn a_run_that_ends_otherwise_has_no_document() {
    let good = json!({"text": "{\"fixed\": true}"});
    let edit = json!({"calls": [{"name": "write", "arguments": {"path": "x", "content": "x"}}]});
    let table = [
        // Denied, though the answer fits.
        (
            json!([edit, good]),
            "permissions: {fail_on_denied: true}\n",
            3,
            "denied",
        ),
        (
            json!([{"text": "{\"fixed\": 1}"}, good]),
            "limits: {max_turns: 1}\n",
            4,
            "budget",
        ),
        (json!([{"error": {"status": 401}}]), "", 77, "auth"),
        (
            json!([{"text": "no", "stop": "refusal"}]),
            "",
            1,
            "incomplete",
        ),
    ];
    for (replies, more, code, reason) in table {
        let output = task(&format!("{RESPONSE}{more}"), &replies)
            .file("out/deep/answer.json", "stale")
            .expect_code(code)
            .run();
        assert_eq!(output.stdout, "", "{reason}");
        assert_eq!(answer_file(&output), None, "{reason}");
        let result = output.result();
        assert_eq!(result["reason"], reason);
        assert_eq!(result.get("structuredOutput"), None, "{reason}");
    }
}

#[test]
fn a_link_does_not_lead_the_answer_elsewhere() {
    let command = "rmdir out/deep && mkdir other && ln -s ../other out/deep";
    let replies = json!([
        {"calls": [{"name": "bash", "arguments": {"command": command}}]},
        {"text": "{\"fixed\": true}"}
    ]);
    let response = format!("{RESPONSE}permissions: {{allow: [Bash]}}\n");
    let output = task(&response, &replies).expect_code(74).run();
    assert!(output.cwd().join("out/deep").is_symlink());
    let message = output.result()["error"]["message"].to_string();
    assert!(message.contains("became another one"), "{message}");
    let other = std::fs::read_dir(output.cwd().join("other")).unwrap();
    assert_eq!(other.count(), 0);
}

#[test]
fn a_place_that_takes_no_answer_is_told_before_a_model_is_asked() {
    let output = task(RESPONSE, &json!([]))
        .file("out", "a file")
        .expect_code(74)
        .run();
    let result = output.result();
    assert_eq!(
        (&result["reason"], &result["error"]["code"]),
        (&json!("io"), &json!("response_file"))
    );
    assert_eq!(result.get("structuredOutput"), None);
    assert_eq!((&result["turns"], output.stdout.as_str()), (&json!(0), ""));
    assert!(!output.event_names().contains(&"turn:start".to_owned()));
}

#[test]
fn people_see_that_an_answer_is_asked_for_again() {
    let output = Cli::new()
        .file("replies.yaml", "- text: no\n- text: '{}'\n")
        .args(["-p", "go", "--model", "scripted/replies.yaml"])
        .args(["--json-schema", "{\"type\": \"object\"}"])
        .run();
    let seen = output.stderr.matches("it is asked for again").count();
    assert_eq!(seen, 1, "{}", output.stderr);
    assert_eq!(output.stdout, "{}\n");
}

#[test]
fn the_model_writes_neither_the_file_nor_the_schema() {
    let write = |path: &str| json!({"name": "write", "arguments": {"path": path, "content": "x"}});
    let replies = json!([
        {"calls": [write("out/answer.json"), write("schema.json")]},
        {"text": "{}"}
    ]);
    let response = "permissions: {mode: accept_edits}\n\
                    response: {schema_file: schema.json, file: out/answer.json}\n";
    let output = task(response, &replies)
        .file("schema.json", "{\"type\": \"object\"}")
        .run();
    let result = output.result();
    assert_eq!(result["toolCalls"]["write"]["denied"], 2, "{result}");
    assert_eq!(result["structuredOutput"], json!({}));
}

#[test]
fn secrets_are_in_no_copy_of_the_answer() {
    let secret = "hunter2hunter2";
    let text = json!({"fixed": true, secret: [secret, {"a": format!("x{secret}")}], "n": 1234567890123u64});
    let response =
        format!("{RESPONSE}secrets: [{{name: A, from_env: A}}, {{name: B, from_env: B}}]\n");
    let output = task(&response, &json!([{"text": text.to_string()}]))
        .env("A", secret)
        .env("B", "1234567890123")
        .run();
    let clean = "{\"fixed\":true,\"***\":[\"***\",{\"a\":\"x***\"}],\"n\":\"***\"}\n";
    assert_eq!(output.stdout, clean);
    assert_eq!(answer_file(&output).unwrap(), clean);
    for name in ["result.json", "events.jsonl", "session.jsonl", "summary.md"] {
        let text = output.artifact(name);
        assert!(
            !text.contains(secret) && !text.contains("1234567890123"),
            "{name}"
        );
    }
    replays(&output);
}

#[test]
fn a_prompt_takes_its_schema_from_a_flag() {
    let inline = "{\"type\": \"object\", \"required\": [\"ok\"]}";
    for value in [inline, "schema.json", "@schema.json"] {
        let output = Cli::new()
            .file("schema.json", inline)
            .file("replies.yaml", "- text: 'sure: {\"ok\": 1}'\n")
            .args(["-p", "go", "--quiet", "--model", "scripted/replies.yaml"])
            .args(["--json-schema", value, "--output-format", "json"])
            .run();
        let result: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(result["structuredOutput"], json!({"ok": 1}), "{value}");
        assert_eq!(result["repairs"], 0, "{value}");
    }
}

#[test]
fn on_a_terminal_of_ci_the_answer_stays_json() {
    let words = "##[group]\u{1b}[31m\u{200b}";
    let text = json!({"fixed": true, "words": words}).to_string();
    let output = task(RESPONSE, &json!([{"text": text}]))
        .env("CI", "true")
        .run();
    assert!(!output.stdout.contains("##") && !output.stdout.contains('\u{1b}'));
    let read: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(read["words"], words);
}

#[test]
fn several_tasks_print_one_line_each() {
    let one =
        "version: 1\nprompt: do it\nsettings: {model: scripted/one.yaml}\nresponse: {schema: {}}\n";
    let two = one
        .replace("one.yaml", "two.yaml")
        .replace("response: {schema: {}}\n", "");
    let output = Cli::new()
        .file("one.yaml", "- text: '[1, 2]'\n")
        .file("two.yaml", "- text: plain\n")
        .file("a.yaml", one)
        .file("b.yaml", two)
        .args(["run", "a.yaml", "b.yaml", "--quiet"])
        .run();
    assert_eq!(output.stdout, "[1,2]\nplain\n");
    let result = output.result();
    assert_eq!(result.get("structuredOutput"), None);
    assert_eq!(result["jobs"][0]["structuredOutput"], json!([1, 2]));
    assert_eq!(result["jobs"][1].get("structuredOutput"), None);
}

#[test]
fn on_a_terminal_of_ci_each_answer_is_shown_as_what_it_is() {
    let plain = "version: 1\nprompt: do it\nsettings: {model: scripted/text.yaml}\n";
    let output = Cli::new()
        .file(
            "text.yaml",
            "- text: \"::set-env name=A::b\\r::error::c\\nkept \\\"so\\\" ##[x]\"\n",
        )
        .file("json.yaml", "- text: '{\"words\": \"##[group]\"}'\n")
        .file("a.yaml", plain)
        .file(
            "b.yaml",
            format!(
                "{}response: {{schema: {{}}}}\n",
                plain.replace("text.yaml", "json.yaml")
            ),
        )
        .args(["run", "a.yaml", "b.yaml", "--quiet"])
        .env("CI", "true")
        .run();
    let (text, document) = output.stdout.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(text, ": :set-env name=A::b ::error::c\nkept \"so\" # #[x]");
    assert!(!document.contains("##"), "{document}");
    let document: Value = serde_json::from_str(document).unwrap();
    assert_eq!(document, json!({"words": "##[group]"}));
}

#[test]
fn a_session_that_goes_on_may_be_asked_for_a_document() {
    let first = Cli::new()
        .file("replies.yaml", "- text: plain\n")
        .args(["-p", "go", "--quiet", "--model", "scripted/replies.yaml"])
        .run();
    let expects =
        json!([{"text": "{\"ok\": true}", "expect": {"contains": ["plain", "# Final answer"]}}]);
    for fork in [vec![], vec!["--fork-session"]] {
        std::fs::write(first.cwd().join("more.yaml"), expects.to_string()).unwrap();
        let output = Cli::at(first.cwd())
            .env("HOME", first.home())
            .args([
                "-p",
                "again",
                "--quiet",
                "--model",
                "scripted/more.yaml",
                "--continue",
            ])
            .args(["--json-schema", "{\"type\": \"object\"}"])
            .args(fork)
            .run();
        assert_eq!(output.stdout, "{\"ok\":true}\n");
    }
}

/// A signal that comes once the answer is there, but before the run is over.
#[test]
fn a_signal_leaves_no_answer_for_a_program() {
    let hook = "hooks:\n  on_final:\n    - command: [sh, -c, 'touch final; sleep 30']\n";
    let cli = task(&format!("{RESPONSE}{hook}"), &json!([{"text": ANSWER}]))
        .file("out/deep/answer.json", "stale");
    let running = Running::start(cli.command(), &cli.cwd().join("run"));
    let reached = cli.cwd().join("final");
    running.wait_until("the hook", || reached.exists());
    let end = running.end_by(rustix::process::Signal::TERM);
    assert_eq!(end.code, Some(143), "{}", end.stderr);
    let result = end.result();
    assert_eq!(result["reason"], "terminated");
    assert_eq!(result.get("structuredOutput"), None);
    assert!(!cli.cwd().join("out/deep/answer.json").exists());
}

/// It is our own file, and nobody is to take it for the new answer.
#[test]
fn an_older_answer_is_neither_in_the_way_nor_left() {
    for (is_committed, more, code) in [
        (false, &[][..], 0),
        (true, &[][..], 0),
        (false, &[("other.txt", "new")][..], 78),
    ] {
        let site = Workspace::git(&[("a.txt", "a")]);
        let file = site.write("answer.json", "stale");
        if is_committed {
            site.commit("with the answer");
        }
        for (name, text) in more {
            site.write(name, text);
        }
        let workspace = format!("{{path: '{}', require_clean: true}}", site.path().display());
        let response = RESPONSE.replace("out/deep/answer.json", &file.display().to_string());
        let task = format!("{response}workspace: {workspace}\n");
        self::task(&task, &json!([{"text": "{\"fixed\": true}"}]))
            .expect_code(code)
            .run();
        let now = std::fs::read_to_string(&file).ok();
        let expected = (code == 0).then(|| "{\"fixed\":true}\n".to_owned());
        assert_eq!(now, expected, "{is_committed} {more:?}");
    }
}
