//! Secrets: in no sink, in no form, on no path; and not in the environment of
//! commands.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::path::Path;

use base64::Engine as _;
use serde_json::Value;

use crate::cli_scene::{bash, plain, scripted};
use crate::support::cli::{Cli, Output};

const DECLARED: &str = "s3cr3t/va\"lue+xyz";
const KEY: &str = "sk-provider-0123456789";
const TOKEN: &str = "token of 12 chars & more";

/// With this before it a secret goes on in a second line of base64.
const LINE: &str = "what stands before the secret in a line of text, x";

/// Every form in which one of the secrets could show.
fn forms() -> Vec<String> {
    let mut forms = Vec::new();
    for secret in [DECLARED, KEY, TOKEN] {
        forms.push(secret.to_owned());
        forms.push(base64::engine::general_purpose::STANDARD.encode(secret));
        forms.push(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(secret));
        forms.push(Value::from(secret).to_string().trim_matches('"').to_owned());
        let url: String = secret
            .bytes()
            .map(|byte| match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                    char::from(byte).to_string()
                }
                _ => format!("%{byte:02X}"),
            })
            .collect();
        forms.push(url);
        forms.push(secret.bytes().map(|byte| format!("{byte:02x}")).collect());
        forms.push(secret.chars().rev().collect());
        let long = format!("{LINE}{secret}");
        let lines = base64::engine::general_purpose::STANDARD.encode(long);
        forms.extend([76, 80].map(|at| lines[at..].trim_end_matches('=').to_owned()));
    }
    forms
}

fn clean(name: &str, text: &str) {
    for form in forms() {
        assert!(!text.contains(&form), "{name} shows {form}:\n{text}");
    }
}

/// Nothing that a run left or said shows a secret.
fn all_clean(done: &Output, dir: &Path) {
    clean("standard output", &done.stdout);
    clean("standard error", &done.stderr);
    let mut open = vec![dir.to_owned()];
    let mut files = 0;
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
            } else {
                files += 1;
                let bytes = std::fs::read(entry.path()).unwrap();
                clean(
                    &entry.path().display().to_string(),
                    &String::from_utf8_lossy(&bytes),
                );
            }
        }
    }
    assert!(files >= 5, "{files} files");
}

fn with_secrets(cli: Cli) -> Cli {
    cli.env("TRACKER", DECLARED)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("CUSTOM_TOKEN", TOKEN)
}

const MORE: &str = "secrets: [{name: TRACKER, from_env: TRACKER}]\npermissions: {mode: bypass}\n\
                    workspace: {isolation: copy}\n";

fn leaking() -> String {
    let plainly = format!("printf '%s\\n' '{DECLARED}' '{KEY}' '{TOKEN}'");
    let halves = "printf s3cr3t/va; sleep 0.2; printf '\"lue+xyz\\n'";
    let encoded =
        format!("{plainly} | while read -r x; do printf %s \"$x\" | base64 -w0; echo; done");
    let others = format!(
        "{plainly} | while read -r x; do printf %s \"$x\" | od -An -v -tx1 | tr -d ' \\n'; \
         printf '\\n%s' \"$x\" | rev; echo; printf '{LINE}%s' \"$x\" | base64; done"
    );
    let flood = format!("for i in $(seq 3000); do {plainly}; done");
    let file = format!("{plainly} > leak.txt");
    let halves = halves.to_owned();
    let mut replies: String = [&plainly, &halves, &encoded, &others, &flood, &file]
        .iter()
        .map(|command| bash(command))
        .collect();
    let answer = Value::from(format!("It is {DECLARED} and {KEY}."));
    replies.push_str(&format!("- thinking: {answer}\n  text: {answer}\n"));
    replies
}

#[test]
fn a_run_that_meets_secrets_everywhere_shows_none() {
    for format in ["text", "json", "jsonl"] {
        let cli = scripted(&leaking(), MORE).args(["--allow-bypass", "--deltas", "full"]);
        let cli = with_secrets(cli).args(["--output-format", format, "-o", "out/answer.txt"]);
        // The prompt is the user's own words, with the user's own secret.
        let done = cli.args(["--append-system-prompt", DECLARED]).run();
        all_clean(&done, &done.run_dir());
        let patch = done.artifact("change.patch");
        assert!(patch.contains("+***\n+***\n+***\n"), "{patch}");
        let codes: Vec<Value> = done.result()["warnings"].as_array().unwrap().clone();
        assert!(
            codes
                .iter()
                .any(|warning| warning["code"] == "patch_redacted"),
            "{codes:?}"
        );
        let spilled = std::fs::read_dir(done.run_dir().join("tool-output"))
            .unwrap()
            .count();
        assert!(spilled > 0, "nothing was spilled");
    }
}

#[test]
fn refusals_and_checks_show_none_either() {
    let wrong = |args: &[&str]| {
        with_secrets(plain("- text: x\n", ""))
            .args(["run", "task.yaml"])
            .args(args)
    };
    let value = format!("limits.max_turns={KEY}");
    let unknown = format!("x={TOKEN}");
    for args in [
        &["--param", &unknown][..],
        &["--set", &value],
        &["-C", KEY],
        &["--events", KEY],
    ] {
        for format in ["text", "jsonl"] {
            let cli = wrong(args).args(["--output-format", format]);
            let code = match args[0] {
                "-C" => 66,
                "--events" => 0,
                _ => 65,
            };
            let done = cli.expect_code(code).run();
            clean("standard output", &done.stdout);
            clean("standard error", &done.stderr);
        }
    }
    let missing = with_secrets(Cli::new())
        .args(["run", KEY])
        .expect_code(66)
        .run();
    clean("standard error", &missing.stderr);
    let check = with_secrets(plain("- text: x\n", "")).args([
        "check",
        "task.yaml",
        "--output-format",
        "json",
    ]);
    let check = check.args(["--append-system-prompt", TOKEN]).run();
    clean("standard output", &check.stdout);
}

/// Decisions tell of the calls they are about, and of the rules.
#[test]
fn decisions_show_none_either() {
    let call = serde_json::json!({ "command": format!("deploy '{KEY}' \"{TOKEN}\"; curl {KEY}") });
    let rules =
        serde_json::json!({ "deny": [format!("Bash(curl {KEY}:*)"), format!("Read({TOKEN})")] });
    let question = serde_json::json!({ "id": 7, "policy": rules, "tool": "bash", "input": call });
    let broken = format!("{{\"id\": \"{KEY}\", \"policy\": {{\"allow\": [\"Bash({TOKEN}\"]}}}}");
    let task = plain("- text: x\n", MORE);
    let check = |cli: Cli| with_secrets(cli).args(["permissions", "check"]);
    for format in ["text", "json"] {
        for rule in [
            format!("Bash(deploy {KEY}:*)"),
            format!("Bash(curl {KEY}:*)"),
        ] {
            let cli = check(Cli::new()).args(["--tool", "bash", "--output-format", format]);
            let cli = cli.args(["--deny", &rule, "--input", &call.to_string()]);
            let done = cli.expect_code(3).run();
            clean("standard output", &done.stdout);
            assert!(done.stdout.contains("***"), "{}", done.stdout);
        }
    }
    let stream = check(Cli::new())
        .arg("--jsonl")
        .stdin(format!("{question}\n{broken}\n"));
    let done = stream.run();
    clean("standard output", &done.stdout);
    let lines: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&lines[0]["id"], &lines[0]["decision"]),
        (&Value::from(7), &Value::from("deny"))
    );
    assert!(
        lines[0]["rule"].as_str().unwrap().contains("***"),
        "{lines:?}"
    );
    // Those that a task declares count with it.
    let cli = check(task).args(["--task", "task.yaml", "--tool", "bash", "--input"]);
    let input = serde_json::json!({ "command": format!("cat <<'E'\n{DECLARED}\nE\n") });
    let done = cli.arg(input.to_string()).run();
    clean("standard output", &done.stdout);
}

#[test]
fn a_provider_that_echoes_the_key_does_not_make_us_show_it() {
    let server = crate::support::server::ModelServer::start([crate::support::anthropic::error(
        401,
        "authentication_error",
        &format!("invalid key {KEY}"),
    )]);
    let cli = plain("", "").args([
        "-p",
        "hi",
        "--model",
        "anthropic/claude-sonnet-5",
        "--base-url",
    ]);
    let done = with_secrets(cli)
        .arg(server.url())
        .args(["--run-dir", "out"])
        .expect_code(77)
        .run();
    server.finish();
    all_clean(&done, &done.run_dir());
}

/// The variables that commands see.
const SMALL_ENVIRONMENT: &[&str] = &[
    "AGENT_COMMAND_ID",
    "DEBIAN_FRONTEND",
    "EDITOR",
    "GIT_CONFIG_COUNT",
    "GIT_CONFIG_KEY_0",
    "GIT_CONFIG_VALUE_0",
    "GIT_EDITOR",
    "GIT_PAGER",
    "GIT_TERMINAL_PROMPT",
    "HOME",
    "LC_TIME",
    "MINE",
    "PAGER",
    "PATH",
    "PWD",
    "SHLVL",
    "TERM",
    "TMPDIR",
    "VISUAL",
    "WANTED",
    "_",
    "OLDPWD",
    "GIT_OPTIONAL_LOCKS",
    // Temporary files have a place of their own, and without a network nothing is
    // tried twice.
    "JOBLIB_TEMP_FOLDER",
    "TEMP",
    "TMP",
    "BUNDLE_RETRY",
    "CARGO_NET_RETRY",
    "NUGET_ENHANCED_MAX_NETWORK_TRY_COUNT",
    "PIP_DISABLE_PIP_VERSION_CHECK",
    "PIP_RETRIES",
    "UV_HTTP_RETRIES",
    "YARN_HTTP_RETRY",
    "npm_config_audit",
    "npm_config_fetch_retries",
    "npm_config_update_notifier",
];

#[test]
fn commands_see_a_small_environment() {
    let cli = scripted(
        &format!(
            "{}- text: done\n",
            bash("env -0 | sort -z | tr '\\0' '\\n'")
        ),
        "permissions: {mode: bypass}\nenv: {set: {MINE: '1'}, pass: [WANTED]}\n",
    );
    let done = with_secrets(cli)
        .arg("--allow-bypass")
        .env("GITHUB_ENV", "/tmp/x")
        .env("GITHUB_OUTPUT", "/tmp/x")
        .env("ACTIONS_RUNTIME_URL", "http://x")
        .env("MY_PASSWORD", "p4ssw0rd!")
        .env("UNRELATED", "1")
        .env("WANTED", "yes")
        .env("LC_TIME", "C")
        .run();
    let events = done.events();
    let call = events
        .iter()
        .find(|event| event["event"] == "tool:execution:complete")
        .unwrap();
    let names: Vec<&str> = call["data"]["content"]
        .as_str()
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name))
        .collect();
    for name in &names {
        assert!(SMALL_ENVIRONMENT.contains(name), "{name} in {names:?}");
    }
    assert!(names.contains(&"WANTED") && names.contains(&"MINE") && names.contains(&"LC_TIME"));
}

#[test]
fn credentials_are_given_only_by_name_and_are_hidden_then_too() {
    const VALUE: &str = "value-of-twelve";
    let names = [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GITHUB_TOKEN",
        "GITHUB_ENV",
        "GITHUB_OUTPUT",
        "GITHUB_PATH",
        "GITHUB_STATE",
        "GITHUB_STEP_SUMMARY",
        "ACTIONS_RUNTIME_TOKEN",
        "ACTIONS_ID_TOKEN_REQUEST_URL",
        "DEPLOY_KEY",
        "MY_SECRET",
        "DB_PASSWORD",
        "AWS_SESSION_TOKEN",
        "SSH_AUTH_SOCK",
        "BASH_ENV",
        "ENV",
        "SHELLOPTS",
        "LD_PRELOAD",
        "GIT_ASKPASS",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "HTTPS_PROXY",
    ];
    let show = format!(
        "{}- text: done\n",
        bash("env; printf 'set: %s\\n' \"$MINE_TOKEN\"")
    );
    let run = |more: &str| {
        let mut cli = scripted(&show, &format!("permissions: {{mode: bypass}}\n{more}"));
        for name in names.iter().filter(|name| **name != "SHELLOPTS") {
            cli = cli.env(name, VALUE);
        }
        let done = cli.arg("--allow-bypass").run();
        done.session()
            .iter()
            .find(|line| line["message"]["role"] == "toolResult")
            .unwrap()["message"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let has = |text: &str, name: &str| {
        text.lines()
            .any(|line| line.starts_with(&format!("{name}=")))
    };
    let text = run("");
    for name in names {
        assert!(!has(&text, name), "{name}: {text}");
    }
    let text = run("env: {pass: [DEPLOY_KEY], set: {MINE_TOKEN: written-in-the-task}}\n");
    assert!(text.contains("DEPLOY_KEY=***\n"), "{text}");
    assert!(text.contains("set: ***"), "{text}");
    for name in names.iter().filter(|name| **name != "DEPLOY_KEY") {
        assert!(!has(&text, name), "{name}: {text}");
    }
}

#[test]
fn what_names_a_place_or_a_person_is_no_secret() {
    let cli = scripted("- text: done at /usr/local/bin by alexandria\n", "");
    let done = cli
        .env("KEY_DIR", "/usr/local/bin")
        .env("USER", "alexandria")
        .env("OWNER_KEY", "alexandria")
        .run();
    assert_eq!(done.stdout, "done at /usr/local/bin by alexandria\n");
}

#[test]
fn names_of_credentials_are_known_by_their_words() {
    const VALUE: &str = "value-of-twelve";
    for name in [
        "DOCKER_AUTH_CONFIG",
        "NPM_CONFIG__AUTH",
        "SENTRY_DSN",
        "SESSION_COOKIE",
    ] {
        let cli = scripted(&format!("- text: 'it is {VALUE}'\n"), "");
        let done = cli.env(name, VALUE).run();
        assert!(!done.stdout.contains(VALUE), "{name}");
        assert!(!done.artifact("events.jsonl").contains(VALUE), "{name}");
    }
}

#[test]
fn the_login_of_an_endpoint_is_not_kept() {
    let cli = scripted("- text: done\n", "");
    let cli = cli.args(["--base-url", "http://user:pass-word@127.0.0.1:9/v1"]);
    let done = cli.run();
    let document: Value = serde_json::from_str(&done.artifact("run.json")).unwrap();
    let shown = &document["tasks"][0]["settings"]["baseUrl"];
    assert_eq!(shown, "http://127.0.0.1:9/v1");
}

#[test]
fn files_of_the_workspace_do_not_become_a_repository_of_their_own() {
    let replies = format!("{}- text: done\n", bash("git status"));
    let cli = scripted(&replies, "permissions: {allow: ['Bash(git status:*)']}\n");
    let program = cli.cwd().join("made");
    let config = format!(
        "[core]\nrepositoryformatversion = 0\nbare = false\nworktree = {}\n\
         fsmonitor = \"touch {};\"\n",
        cli.cwd().display(),
        program.display()
    );
    let done = cli
        .file("HEAD", "ref: refs/heads/main\n")
        .file("config", config)
        .file("objects/info/none", "")
        .file("refs/heads/none", "")
        .run();
    let session = done.artifact("session.jsonl");
    assert!(session.contains("safe.bareRepository"), "{session}");
    assert!(!program.exists(), "a program of the workspace was run");
}
