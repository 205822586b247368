//! `settings.fallback_models` and `--fallback-model`: what the program checks,
//! does and tells.

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::reply::Response;
use crate::support::server::{ModelServer, Recorded};
use crate::support::{anthropic, chat};

const OWN: &str = "anthropic/claude-sonnet-4-5";
const SPARE: &str = "openai-chat/local";

fn overloaded() -> Response {
    anthropic::error(529, "overloaded_error", "Overloaded.")
}

/// A run of a task with these further lines, whose models are at these places.
fn run(more: &str, own: &str, spare: &str) -> Cli {
    let task = format!(
        "version: 1\nname: job\nprompt: Do it.\nretry: {{base_delay: 1ms, max_attempts: 2}}\n{more}"
    );
    Cli::new()
        .file("task.yaml", task)
        .args(["run", "task.yaml", "--run-dir", "run", "--model", OWN])
        .env("ANTHROPIC_API_KEY", "sk-own-0123456789")
        .env("ANTHROPIC_BASE_URL", own)
        .env("OPENAI_API_KEY", "sk-spare-0123456789")
        .env("OPENAI_BASE_URL", spare)
}

fn models(output: &Output) -> Vec<(String, Value)> {
    let result = output.result();
    let models = result["models"].as_object().unwrap().iter();
    models
        .map(|(name, used)| (name.clone(), used["replies"].clone()))
        .collect()
}

/// The first one is overloaded for ever, in the middle of its work.
#[test]
fn a_run_ends_with_the_model_that_took_over() {
    let own = ModelServer::start([
        anthropic::tool_call("toolu_1", "ls", &json!({})),
        overloaded(),
        overloaded(),
    ]);
    let spare = ModelServer::start([
        chat::tool_call("call_1", "ls", &json!({})),
        chat::text("Done."),
    ]);
    let output = run("", &own.url(), &spare.url())
        .args(["--fallback-model", SPARE])
        .run();
    assert_eq!(output.stdout, "Done.\n");
    let line = format!("{SPARE} takes over from {OWN}: the provider is overloaded (HTTP 529");
    assert!(output.stderr.contains(&line), "{}", output.stderr);
    let result = output.result();
    assert_eq!(result["model"], OWN);
    assert_eq!(
        models(&output),
        [(OWN.to_owned(), json!(1)), (SPARE.to_owned(), json!(2))]
    );
    // The chat endpoint has no price, the other one has.
    assert!(result["models"][OWN]["costUsd"].as_f64().unwrap() > 0.0);
    assert_eq!(result["models"][SPARE]["costUsd"], Value::Null);
    assert_eq!(result["costUsd"], Value::Null);
    let codes: Vec<&Value> = result["warnings"].as_array().unwrap().iter().collect();
    let codes: Vec<&str> = codes
        .iter()
        .filter_map(|one| one["code"].as_str())
        .collect();
    assert_eq!(codes, ["model_fallback", "unknown_price"]);
    let summary = output.artifact("summary.md");
    assert!(summary.contains("## Models"), "{summary}");

    // What the first one called reaches the other one with its result.
    own.finish();
    let requests: Vec<Recorded> = spare.finish();
    let messages = requests[0].body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages
        .iter()
        .filter_map(|one| one["role"].as_str())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
    assert_eq!(messages[2]["tool_calls"][0]["id"], "toolu_1");
    assert_eq!(messages[3]["tool_call_id"], "toolu_1");
    assert_eq!(
        requests[0].header("authorization"),
        Some("Bearer sk-spare-0123456789")
    );

    // A later run that names no model goes on with the first one.
    let changes: Vec<Value> = output
        .session()
        .into_iter()
        .filter(|line| line["type"] == "model_change")
        .map(|mut line| line["modelId"].take())
        .collect();
    assert_eq!(changes, ["claude-sonnet-4-5", "local", "claude-sonnet-4-5"]);
}

#[test]
fn a_provider_that_cannot_be_reached_is_passed_over_too() {
    let spare = ModelServer::start([chat::text("Done.")]);
    let task = format!("settings: {{fallback_models: [{SPARE}]}}\n");
    let output = run(&task, "http://127.0.0.1:9", &spare.url()).run();
    assert_eq!(output.stdout, "Done.\n");
    assert_eq!(models(&output), [(SPARE.to_owned(), json!(1))]);
    spare.finish();
}

#[test]
fn without_any_model_that_answers_the_run_ends_with_the_first_error() {
    let own = ModelServer::start([overloaded(), overloaded()]);
    let spare = ModelServer::start([chat::error(401, "invalid_api_key", "Who?")]);
    let output = run("", &own.url(), &spare.url())
        .args(["--fallback-model", SPARE])
        .expect_code(69)
        .run();
    let result = output.result();
    assert_eq!(result["error"]["httpStatus"], 529);
    assert!(
        output
            .stderr
            .contains("the fallback openai-chat/local failed")
    );
    own.finish();
    spare.finish();
}

#[test]
fn names_and_keys_are_looked_at_before_the_first_call() {
    let nobody = "http://127.0.0.1:9";
    let typo = run("", nobody, nobody).args(["--fallback-model", "anthropic/claude-sonet-4-5"]);
    let typo = typo.expect_code(65).run();
    assert!(typo.stderr.contains("did you mean"), "{}", typo.stderr);

    let own = ModelServer::start([anthropic::text("Done.")]);
    let task = "settings: {fallback_models: [zai/glm-5.3], small_model: groq/openai/gpt-oss-20b}\n";
    let output = run(task, &own.url(), nobody).run();
    let result = output.result();
    let warnings = result["warnings"].as_array().unwrap();
    let told: Vec<&str> = warnings
        .iter()
        .filter_map(|one| one["message"].as_str())
        .collect();
    assert!(
        told[0].starts_with("the fallback zai/glm-5.3 is left out: "),
        "{told:?}"
    );
    assert!(told[1].starts_with("the small model groq/openai/gpt-oss-20b is left out: "));
    assert_eq!(told.len(), 2);
    own.finish();
}

/// The resolved settings, and what is said to people.
fn check(more: &str, args: &[&str]) -> (Value, String) {
    let task = format!("version: 1\nprompt: x\nsettings:\n  model: {OWN}\n{more}");
    let cli = || {
        Cli::new()
            .file("tasks/task.yaml", &task)
            .file("tasks/spare.yaml", "- text: hi\n")
            .file("spare.yaml", "- text: hi\n")
            .args(["check", "tasks/task.yaml"])
            .args(args)
    };
    let document = cli().args(["--output-format", "json"]).run();
    let document: Value = serde_json::from_str(&document.stdout).unwrap();
    let settings = document["tasks"][0]["task"]["settings"].clone();
    (settings, cli().run().stdout)
}

#[test]
fn check_shows_the_models_that_may_be_asked() {
    let task = "  fallback_models: [zai/glm-5.3, openai/gpt-4o]\n  small_model: zai/glm-5.3\n";
    let (settings, text) = check(task, &[]);
    assert_eq!(
        settings["fallbackModels"],
        json!(["zai/glm-5.3", "openai/gpt-4o"])
    );
    assert_eq!(settings["smallModel"], "zai/glm-5.3");
    for line in [
        "fallback     zai/glm-5.3, openai/gpt-4o",
        "summaries    zai/glm-5.3",
        "warning      the fallback zai/glm-5.3 is left out: ",
        "warning      the small model zai/glm-5.3 is left out: ",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    // Flags replace the list; each may hold several.
    let flags = [
        "--fallback-model",
        "openai/gpt-4o,zai/glm-5.3",
        "--fallback-model",
        OWN,
    ];
    let (settings, _) = check(task, &flags);
    assert_eq!(
        settings["fallbackModels"],
        json!(["openai/gpt-4o", "zai/glm-5.3", OWN])
    );
    // A script of the task is beside it, that of a flag here.
    let (settings, _) = check("  fallback_models: [scripted/spare.yaml]\n", &[]);
    let path = settings["fallbackModels"][0].as_str().unwrap().to_owned();
    assert!(path.ends_with("/tasks/spare.yaml"), "{path}");
    let (settings, text) = check("", &["--fallback-model", "scripted/spare.yaml"]);
    let path = settings["fallbackModels"][0].as_str().unwrap();
    assert!(
        path.ends_with("/spare.yaml") && !path.contains("/tasks/"),
        "{path}"
    );
    assert!(!text.contains("warning"), "{text}");
}

/// The dearest model says what a task may cost.
#[test]
fn check_names_the_worst_cost_of_all_models() {
    let worst = |args: &[&str]| {
        let limits = [
            "--max-cost-usd",
            "100000",
            "--set",
            "limits.max_tokens=1000000",
        ];
        let (_, text) = check("", &[&limits[..], args].concat());
        let line = text
            .lines()
            .find(|line| line.contains("worst case"))
            .unwrap();
        line.trim()
            .trim_start_matches("worst case")
            .trim()
            .to_owned()
    };
    assert_eq!(worst(&[]), "$15.00");
    let dear = worst(&["--fallback-model", "anthropic/claude-opus-4-5"]);
    assert_eq!(dear, "$25.00");
    let unknown = worst(&["--fallback-model", SPARE]);
    assert!(unknown.starts_with("unknown price"), "{unknown}");
}

#[test]
fn a_scripted_model_takes_over_from_another() {
    let output = Cli::new()
        .file("own.yaml", "- error: {status: 529, message: Overloaded.}\n")
        .file("spare.yaml", "- text: Done.\n")
        .args([
            "-p",
            "Go.",
            "--model",
            "scripted/own.yaml",
            "--run-dir",
            "run",
        ])
        .args([
            "--fallback-model",
            "scripted/spare.yaml",
            "--set",
            "retry.max_attempts=1",
        ])
        .run();
    assert_eq!(output.stdout, "Done.\n");
    assert_eq!(models(&output), [("scripted/spare".to_owned(), json!(1))]);
    Cli::new()
        .file("own.yaml", "- text: Done.\n")
        .args([
            "-p",
            "Go.",
            "--model",
            "scripted/own.yaml",
            "--run-dir",
            "run",
        ])
        .args(["--fallback-model", "scripted/none.yaml"])
        .expect_code(66)
        .run();
}
