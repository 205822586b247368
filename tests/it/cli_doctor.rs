//! `agent doctor`: what it finds, what it never shows, and its exit status.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use serde_json::Value;

use crate::cli_scene::plain;
use crate::support::cli::Cli;
use crate::support::workspace::Workspace;

const REPLIES: &str = "- text: done\n";

fn document(stdout: &str) -> Value {
    serde_json::from_str(stdout).unwrap_or_else(|_| panic!("{stdout}"))
}

/// What was found about one thing.
fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().unwrap();
    let mut found = checks.iter().filter(|check| check["name"] == name);
    let check = found
        .next()
        .unwrap_or_else(|| panic!("no {name} in {document:#}"));
    assert!(found.next().is_none(), "{name} twice in {document:#}");
    check
}

fn names(document: &Value, status: &str) -> Vec<String> {
    let checks = document["checks"].as_array().unwrap().iter();
    checks
        .filter(|check| check["status"] == status)
        .map(|check| check["name"].as_str().unwrap().to_owned())
        .collect()
}

/// Everything below a directory.
fn files(directory: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        found.insert(path.display().to_string());
        if path.is_dir() {
            found.extend(files(&path));
        }
    }
    found
}

#[test]
fn a_task_that_can_run_is_told_so() {
    let cli = plain(REPLIES, "").args(["doctor", "task.yaml", "--output-format", "json"]);
    let (cwd, before) = (cli.cwd().to_owned(), files(cli.cwd()));
    let output = cli.run();
    let document = document(&output.stdout);
    assert_eq!(document["schemaVersion"], 1);
    assert_eq!(document["task"], "demo");
    assert_eq!(document["ok"], true);
    assert_eq!(names(&document, "error"), [""; 0]);
    for name in ["kernel", "bash", "workspace", "temp", "clock"] {
        assert_eq!(check(&document, name)["status"], "ok", "{document:#}");
    }
    let model = check(&document, "model");
    assert_eq!(model["found"], "scripted/model, which asks nobody");
    assert_eq!(files(&cwd), before, "it leaves nothing behind");
    assert_eq!(output.stderr, "");
}

#[test]
fn people_get_a_table_with_advice() {
    let output = plain(REPLIES, "").args(["doctor", "task.yaml"]).run();
    let lines: Vec<&str> = output.stdout.lines().collect();
    let line = |name: &str| {
        let found = lines.iter().find(|line| line[9..].starts_with(name));
        found.unwrap_or_else(|| panic!("no {name} in {}", output.stdout))
    };
    assert_eq!(*line("proxy "), "ok       proxy            none");
    assert!(line("run directory    /").contains("/.agent/runs, "));
    assert!(
        lines
            .last()
            .unwrap()
            .starts_with("demo can run here: 0 errors, ")
    );
    assert!(!output.stdout.contains('\u{1b}'));

    let args = [
        "doctor",
        "--model",
        "anthropic/claude-sonnet-5",
        "--color",
        "always",
    ];
    let output = Cli::new().args(args).expect_code(78).run();
    let found = "\u{1b}[31merror  \u{1b}[0m  model ";
    assert!(output.stdout.contains(found), "{}", output.stdout);
    let advice = "\n                          -> set ANTHROPIC_API_KEY";
    assert!(output.stdout.contains(advice), "{}", output.stdout);
    assert!(
        output
            .stdout
            .contains("\nthis machine cannot run tasks: 1 error, ")
    );
}

const CLAUDE: &str = "settings: {model: anthropic/claude-sonnet-5}\n";
const OWN: &str = "settings: {model: openai-chat/own, base_url: 'http://127.0.0.1:9/v1'}\n";
const SCRIPT: &str = "settings: {model: scripted/model.yaml}\n";
const KEY: (&str, &str) = ("ANTHROPIC_API_KEY", "sk-ant-0123456789abcdef");

/// Expects that a task cannot run for this one reason.
fn stopped_by(task: &str, env: &[(&str, &str)], args: &[&str], expect: [&str; 3]) {
    let [name, found, advice] = expect;
    let task = format!("version: 1\nname: demo\nprompt: Do it.\n{task}");
    let mut cli = Cli::new()
        .file("model.yaml", REPLIES)
        .file("task.yaml", task)
        .args(["doctor", "task.yaml", "--output-format", "json"])
        .args(args)
        .expect_code(78);
    for (name, value) in env {
        cli = cli.env(name, value);
    }
    let document = document(&cli.run().stdout);
    assert_eq!(document["ok"], false);
    assert_eq!(names(&document, "error"), [name], "{document:#}");
    let row = check(&document, name);
    assert!(row["found"].as_str().unwrap().contains(found), "{row:#}");
    assert!(row["advice"].as_str().unwrap().contains(advice), "{row:#}");
}

#[test]
fn a_model_that_cannot_be_asked_is_in_the_way() {
    let key = "ANTHROPIC_API_KEY";
    let file = "ANTHROPIC_API_KEY_FILE";
    stopped_by(CLAUDE, &[], &[], ["model", "no key for anthropic", key]);
    let broken = [(key, "a b\u{7}c")];
    stopped_by(CLAUDE, &broken, &[], ["model", "no key has", key]);
    let gone = [(file, "/gone")];
    stopped_by(CLAUDE, &gone, &[], ["model", "/gone", "readable"]);

    let fail = format!("{OWN}limits: {{on_unknown_price: fail}}\n");
    let price = ["price", "price of openai-chat/own", "tokens_only"];
    stopped_by(&fail, &[], &[], price);
    stopped_by(OWN, &[], &["--max-cost-usd=1"], price);

    let proxy = [KEY, ("HTTPS_PROXY", "ftp://x")];
    let expect = ["proxy", "HTTPS_PROXY", "http://host:port"];
    stopped_by(CLAUDE, &proxy, &[], expect);
    let bundle = [KEY, ("SSL_CERT_FILE", "/gone.pem")];
    stopped_by(CLAUDE, &bundle, &[], ["certificates", "/gone.pem", "PEM"]);
}

#[test]
fn a_machine_without_what_a_task_needs_is_in_the_way() {
    let path = [("PATH", "/nowhere")];
    stopped_by(
        SCRIPT,
        &path,
        &[],
        ["bash", "not found in PATH", "install bash"],
    );
    let temp = [("TMPDIR", "/nowhere")];
    stopped_by(
        SCRIPT,
        &temp,
        &[],
        ["temp", "/nowhere is not a directory", "TMPDIR"],
    );
    let taken = ["--run-dir", "task.yaml/x"];
    stopped_by(
        SCRIPT,
        &[],
        &taken,
        ["run_directory", "not a directory", "--run-dir"],
    );
    let clean = format!("{SCRIPT}workspace: {{require_clean: true}}\n");
    stopped_by(
        &clean,
        &[],
        &[],
        ["git", "in no repository", "require_clean"],
    );
}

/// The same start of the program where bubblewrap is not installed.
#[expect(
    clippy::disallowed_methods,
    reason = "what hides a program from the program under test"
)]
fn without_bubblewrap(cli: &Cli) -> Output {
    let start = cli.command();
    let mut command = std::process::Command::new("/usr/bin/bwrap");
    command
        .args(["--dev-bind", "/", "/"])
        .args(["--ro-bind", "/dev/null", "/usr/bin/bwrap", "--"])
        .arg(start.get_program())
        .args(start.get_args())
        .current_dir(cli.cwd())
        .env_clear();
    for (name, value) in start.get_envs() {
        command.env(name, value.unwrap());
    }
    command.output().unwrap()
}

#[test]
fn the_sandbox_is_told_with_what_it_is_not() {
    let doctor = |sandbox: &str| {
        let rest = format!("permissions: {{allow: ['Bash(true)']}}\nsandbox: {sandbox}\n");
        plain(REPLIES, &rest).args(["doctor", "task.yaml", "--output-format", "json"])
    };
    for (sandbox, found) in [
        ("{mode: require}", "namespaces"),
        ("{mode: require, tier: landlock}", "landlock"),
        ("{mode: off}", "off: commands may do what this program may"),
        ("{network: [crates.io]}", "namespaces"),
    ] {
        let document = document(&doctor(sandbox).run().stdout);
        assert_eq!(check(&document, "sandbox")["found"], found);
        assert_eq!(check(&document, "sandbox")["status"], "ok");
        let landlock = check(&document, "landlock")["found"].clone();
        assert!(landlock.as_str().unwrap().contains("chmod"), "{landlock}");
        for part in ["landlock", "user_namespaces", "seccomp", "bubblewrap"] {
            assert_eq!(check(&document, part)["status"], "ok", "{document:#}");
        }
    }
    let gone = "bubblewrap is not installed";
    for (sandbox, status, found) in [
        (
            "{}",
            "warning",
            "landlock (not namespaces: bubblewrap is not installed",
        ),
        ("{mode: prefer, tier: namespaces}", "warning", gone),
        ("{tier: namespaces}", "error", gone),
        ("{mode: require, tier: namespaces}", "error", gone),
        (
            "{mode: prefer, network: [crates.io]}",
            "warning",
            "are not reached",
        ),
        ("{network: [crates.io]}", "error", "cannot tell the hosts"),
        (
            "{mode: require, network: [crates.io]}",
            "error",
            "cannot tell the hosts",
        ),
        ("{mode: require}", "warning", "landlock (not namespaces"),
    ] {
        let done = without_bubblewrap(&doctor(sandbox));
        let document = document(&String::from_utf8(done.stdout).unwrap());
        let row = check(&document, "sandbox");
        assert_eq!(row["status"], status, "{sandbox}: {row:#}");
        assert!(row["found"].as_str().unwrap().contains(found), "{row:#}");
        assert!(
            row["advice"].as_str().unwrap().contains("bubblewrap"),
            "{row:#}"
        );
        let code = if status == "error" { 78 } else { 0 };
        assert_eq!(done.status.code(), Some(code), "{sandbox}");
        assert_eq!(check(&document, "bubblewrap")["status"], "warning");
    }
}

#[test]
fn a_task_without_commands_needs_no_sandbox() {
    let task = plain(REPLIES, "sandbox: {tier: namespaces}\n");
    let doctor = task.args(["doctor", "task.yaml", "--output-format", "json"]);
    let done = without_bubblewrap(&doctor);
    let document = document(&String::from_utf8(done.stdout).unwrap());
    let row = check(&document, "sandbox");
    assert_eq!(row["status"], "warning", "{row:#}");
    let found = row["found"].as_str().unwrap();
    assert!(found.contains("so none is needed"), "{found}");
    assert_eq!(done.status.code(), Some(0));
}

#[test]
fn a_task_that_is_wrong_has_the_status_of_check() {
    for (task, code, found) in [
        ("version: 1\nprompt: x\nlimit: {}\n", 65, "limit"),
        (
            "version: 1\nprompt: x\nsettings: {model: anthropic/nobody}\n",
            65,
            "nobody",
        ),
        (
            "version: 1\nprompt: x\nsettings: {model: scripted/gone.yaml}\n",
            66,
            "gone.yaml",
        ),
        ("", 65, "empty"),
    ] {
        let run = |args: &[&str]| {
            let cli = Cli::new().file("task.yaml", task).args(args);
            cli.expect_code(code).run()
        };
        run(&["check", "task.yaml"]);
        let document = document(&run(&["doctor", "task.yaml", "--output-format", "json"]).stdout);
        assert_eq!(document["ok"], false);
        assert!(names(&document, "error").contains(&"task".to_owned()));
        assert!(document.to_string().contains(found), "{document:#}");
        let text = run(&["doctor", "task.yaml"]);
        assert!(format!("{}{}", text.stdout, text.stderr).contains(found));
    }
    let gone = Cli::new()
        .args(["doctor", "gone.yaml"])
        .expect_code(66)
        .run();
    assert!(gone.stderr.contains("gone.yaml"), "{}", gone.stderr);
}

#[test]
fn without_a_task_only_errors_count() {
    let output = Cli::new().args(["doctor", "--output-format", "json"]).run();
    let found = document(&output.stdout);
    assert_eq!(found["task"], Value::Null);
    assert_eq!(check(&found, "model")["status"], "warning");
    assert_eq!(check(&found, "credentials")["status"], "warning");

    let cli = Cli::new()
        .env("OPENAI_API_KEY", "sk-0123456789abcdef")
        .file("key", "sk-ant-0123456789abcdef")
        .args(["doctor", "--output-format", "json"]);
    let key = cli.cwd().join("key");
    let found = document(&cli.env("ANTHROPIC_API_KEY_FILE", key).run().stdout);
    let credentials = &check(&found, "credentials")["found"];
    assert_eq!(
        credentials,
        "anthropic (ANTHROPIC_API_KEY_FILE), openai (OPENAI_API_KEY)"
    );
    let model = check(&found, "model")["found"].as_str().unwrap();
    assert!(
        model.ends_with("key from ANTHROPIC_API_KEY_FILE"),
        "{model}"
    );
}

#[test]
fn no_secret_is_ever_shown() {
    let own = "version: 1\nproviders:\n  house:\n    api: anthropic-messages\n    base_url: https://me:canary-url-5e1f@models.example\n    api_key_env: HOUSE_KEY\n    models: {coder: {}}\n";
    let task = "version: 1\nprompt: x\nsettings: {model: house/coder}\nsecrets: [{name: S, from_env: PLAIN}]\nenv: {pass: [S]}\n";
    for model in ["house/coder", "anthropic/claude-sonnet-5", "openai/gpt-5"] {
        for format in ["text", "json"] {
            let cli = Cli::new()
                .file("own.yaml", own)
                .file("task.yaml", task)
                .file("key", "canary-file-77aa\n");
            let key = cli.cwd().join("key");
            let done = cli
                .env("HOUSE_KEY", "canary-house-1234")
                .env("ANTHROPIC_API_KEY_FILE", key)
                .env("OPENAI_API_KEY", "canary-openai-1234\u{1}")
                .env("GEMINI_API_KEY", "canary-gemini-1234")
                .env("PLAIN", "canary-plain-1234")
                .env(
                    "HTTPS_PROXY",
                    "http://user:canary-proxy-1234@proxy.example:1",
                )
                .env("SSL_CERT_FILE", "canary-not-a-file")
                .args(["doctor", "task.yaml", "--providers", "own.yaml"])
                .args(["--model", model, "--output-format", format])
                .expect_code(78)
                .run();
            let all = done.stdout + &done.stderr;
            let shown = all.replace("canary-not-a-file", "");
            assert!(!shown.contains("canary-"), "{all}");
            assert!(
                shown.contains("proxy") && shown.contains("GEMINI_API_KEY"),
                "{all}"
            );
        }
    }
}

#[test]
fn nothing_is_sent_and_nobody_is_waited_for() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let url = format!("http://{}/v1", server.local_addr().unwrap());
    let elsewhere = tempfile::tempdir().unwrap();
    let bin = elsewhere.path().to_owned();
    std::fs::write(bin.join("git"), "#!/bin/sh\nexec sleep 1000\n").unwrap();
    let cli = Cli::new();
    std::fs::set_permissions(bin.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([bin.as_path(), Path::new("/usr/bin"), Path::new("/bin")]);
    let output = cli
        .env("PATH", path.unwrap())
        .args(["doctor", "--model", "openai-chat/own", "--base-url", &url])
        .args(["--output-format", "json"])
        .run();
    let document = document(&output.stdout);
    let git = check(&document, "git");
    assert_eq!(git["status"], "warning");
    assert_eq!(git["found"], "`git` said nothing for 2 s");
    let accepted = server.accept().map(|_| ());
    assert_eq!(accepted.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[test]
fn what_was_found_moves_no_cursor() {
    let cli = Cli::new().file("a\u{1b}[31mb\u{202e}c/x", "");
    let output = cli.args(["doctor", "-C", "a\u{1b}[31mb\u{202e}c"]).run();
    assert!(
        !output.stdout.contains(['\u{1b}', '\u{202e}']),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("abc"), "{}", output.stdout);
}

#[test]
fn a_repository_is_asked_without_running_what_it_names() {
    let workspace = Workspace::git(&[("a.txt", "a")]);
    let canary = workspace.path().join("canary.sh");
    let program = format!("#!/bin/sh\ntouch {0}/ran\n", workspace.path().display());
    workspace.write("canary.sh", program);
    std::fs::set_permissions(&canary, std::fs::Permissions::from_mode(0o755)).unwrap();
    let canary = canary.to_str().unwrap();
    for name in [
        "core.fsmonitor",
        "core.pager",
        "core.editor",
        "core.sshCommand",
    ] {
        workspace.run_git(&["config", name, canary]);
    }
    workspace.run_git(&["config", "user.useConfigOnly", "true"]);
    let git = |task: &str| {
        let task = format!("version: 1\nprompt: x\nsettings: {{model: scripted/m.yaml}}\n{task}");
        let output = Cli::at(workspace.path())
            .file("task.yaml", task)
            .file("m.yaml", REPLIES)
            .args(["doctor", "task.yaml", "--output-format", "json"])
            .run();
        check(&document(&output.stdout), "git").clone()
    };
    let nobody = git("");
    assert_eq!(nobody["status"], "warning", "{nobody}");
    assert!(nobody["advice"].as_str().unwrap().contains("user.name"));
    let somebody =
        git("env: {set: {GIT_COMMITTER_NAME: Me, GIT_COMMITTER_EMAIL: me@example.invalid}}\n");
    assert_eq!(somebody["status"], "ok", "{somebody}");
    assert!(!workspace.exists("ran"));
}

#[test]
fn a_bubblewrap_that_the_sandbox_does_not_use_is_none() {
    let cli = plain(REPLIES, "");
    let bin = tempfile::tempdir().unwrap();
    let fake = bin.path().join("bwrap");
    std::fs::write(&fake, "#!/bin/sh\necho bubblewrap 9.9.9\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&fake, executable).unwrap();
    let mut path = bin.path().as_os_str().to_owned();
    path.push(":");
    path.push(crate::support::cli::path());
    let args = ["doctor", "task.yaml", "--output-format", "json"];
    let cli = cli.env("PATH", path).args(args);
    let done = without_bubblewrap(&cli);
    let document = document(&String::from_utf8(done.stdout).unwrap());
    assert_eq!(check(&document, "bubblewrap")["status"], "warning");
    let real = self::document(&cli.run().stdout);
    let found = check(&real, "bubblewrap")["found"].as_str().unwrap();
    assert!(!found.contains("9.9.9"), "{found}");
}
