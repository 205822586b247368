//! Endpoints of one's own, as the program calls them: in every dialect, with the
//! key and the headers that the file of providers says, and without showing any.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};
use crate::support::dialect::{remains, told};
use crate::support::reply::Response;
use crate::support::server::{ModelServer, Recorded};
use crate::support::{anthropic, chat, gemini, responses};

const KEY: &str = "0a1b2c3d4e5f60718293a4b5c6d7e8f9";
const TEAM: &str = "the-blue-team-of-building-7";

fn file(providers: &str) -> String {
    format!("version: 1\nproviders:\n{providers}")
}

/// A quiet prompt under the user's own file of providers.
fn prompt(providers: &str, model: &str) -> Cli {
    let cli = Cli::new().args([
        "-p",
        "Hello",
        "--quiet",
        "--run-dir",
        "run",
        "--model",
        model,
    ]);
    let home = cli.home().join(".config/agent");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("providers.yaml"), file(providers)).unwrap();
    cli
}

/// The one request that a prompt makes, and what the program left.
fn asked(server: ModelServer, cli: Cli) -> (Recorded, Output) {
    let output = cli.run();
    assert_eq!(output.stdout, "Hi.\n");
    for (name, text) in remains(&output) {
        for secret in [KEY, TEAM] {
            assert!(!text.contains(secret), "{name} shows {secret}");
        }
    }
    let mut requests = server.finish();
    assert_eq!(requests.len(), 1);
    (requests.remove(0), output)
}

/// The codes of the warnings.
fn warnings(output: &Output) -> Vec<String> {
    let all = told(output, "warning");
    let codes = all.iter().map(|warning| warning["code"].as_str().unwrap());
    codes.map(str::to_owned).collect()
}

fn replies() -> [(
    &'static str,
    Response,
    &'static str,
    (&'static str, &'static str),
); 4] {
    [
        (
            "anthropic-messages",
            anthropic::text("Hi."),
            "/v1/messages",
            ("x-api-key", ""),
        ),
        (
            "openai-chat",
            chat::text("Hi."),
            "/chat/completions",
            ("authorization", "Bearer "),
        ),
        (
            "openai-responses",
            responses::reply(&[responses::text_item("Hi.")]),
            "/responses",
            ("authorization", "Bearer "),
        ),
        (
            "google-generative-ai",
            gemini::reply(&[gemini::text_part("Hi.")]),
            "/models/m:streamGenerateContent?alt=sse",
            ("x-goog-api-key", ""),
        ),
    ]
}

#[test]
fn every_dialect_is_called_with_the_key_of_a_variable() {
    for (api, reply, path, (header, before)) in replies() {
        let server = ModelServer::start([reply]);
        let own = format!(
            "  house: {{api: {api}, base_url: '{}', api_key_env: MINE}}\n",
            server.url()
        );
        let (request, output) = asked(
            server,
            prompt(&own, "house/m").env("MINE", format!("{KEY}\n")),
        );
        assert_eq!(request.path, path);
        assert_eq!(
            request.header(header),
            Some(format!("{before}{KEY}").as_str()),
            "{api}"
        );
        assert_eq!(output.result()["model"], "house/m");
    }
}

#[test]
fn a_key_goes_where_the_file_says() {
    for (extra, expect) in [
        ("api_key_header: api-key", ("api-key", KEY.to_owned())),
        (
            "api_key_header: Authorization",
            ("authorization", format!("Bearer {KEY}")),
        ),
    ] {
        for (api, reply, path, (usual, _)) in replies() {
            let server = ModelServer::start([reply]);
            let own = format!(
                "  house:\n    api: {api}\n    base_url: {}\n    api_key_env: MINE\n    {extra}\n    query: {{api-version: 2024-10-21, tag: 'a b'}}\n",
                server.url()
            );
            let (request, _) = asked(server, prompt(&own, "house/m").env("MINE", KEY));
            assert_eq!(request.header(expect.0), Some(expect.1.as_str()), "{api}");
            if usual != expect.0 {
                assert_eq!(request.header(usual), None, "{api}");
            }
            let mark = if path.contains('?') { '&' } else { '?' };
            assert_eq!(
                request.path,
                format!("{path}{mark}api-version=2024-10-21&tag=a+b")
            );
        }
    }
    let server = ModelServer::start([gemini::reply(&[gemini::text_part("Hi.")])]);
    let own = format!(
        "  house: {{api: google-generative-ai, base_url: '{}', api_key_env: MINE, api_key_query: key}}\n",
        server.url()
    );
    let (request, _) = asked(server, prompt(&own, "house/m").env("MINE", KEY));
    assert_eq!(
        request.path,
        format!("/models/m:streamGenerateContent?alt=sse&key={KEY}")
    );
    assert_eq!(request.header("x-goog-api-key"), None);
}

#[test]
fn headers_come_along_and_replace_the_dialects_own() {
    let server = ModelServer::start([anthropic::text("Hi.")]);
    let own = format!(
        "  house:
    api: anthropic-messages
    base_url: {}
    headers: {{anthropic-version: 2099-01-01, X-Title: The house}}
    headers_env: {{X-Team: TEAM_NAME}}\n",
        server.url()
    );
    let (request, _) = asked(server, prompt(&own, "house/m").env("TEAM_NAME", TEAM));
    assert_eq!(request.header("anthropic-version"), Some("2099-01-01"));
    assert_eq!(request.header("x-title"), Some("The house"));
    assert_eq!(request.header("x-team"), Some(TEAM));
    assert_eq!(request.header("x-api-key"), None);

    let own = "  house: {base_url: 'http://127.0.0.1:9/v1', headers_env: {X-Team: TEAM_NAME}}\n";
    let refused = prompt(own, "house/m").expect_code(77).run();
    let error = &refused.result()["error"];
    assert_eq!(
        error["message"],
        "not authorised: there is no value for the header x-team of house"
    );
    assert_eq!(error["hints"], json!(["set TEAM_NAME"]));
}

/// Whoever answers may repeat what it was sent.
#[test]
fn a_key_from_a_file_is_never_shown() {
    let echo = format!("wrong key {KEY} of {TEAM}");
    let server = ModelServer::start([chat::error(401, "invalid_api_key", &echo)]);
    let own = format!(
        "  house: {{base_url: '{}', api_key_file: keys/house, headers_env: {{X-Team: MY_TEAM}}}}\n",
        server.url()
    );
    let cli = prompt(&own, "house/m").env("MY_TEAM", TEAM).expect_code(77);
    let keys = cli.home().join(".config/agent/keys");
    std::fs::create_dir_all(&keys).unwrap();
    let key = keys.join("house");
    std::fs::write(&key, format!("{KEY}\n")).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let output = cli.run();
    let requests = server.finish();
    assert_eq!(
        requests[0].header("authorization"),
        Some(format!("Bearer {KEY}").as_str())
    );
    let left = remains(&output);
    assert!(
        left.iter()
            .any(|(_, text)| text.contains("wrong key *** of ***")),
        "{left:?}"
    );
    for (name, text) in left {
        assert!(
            !text.contains(KEY) && !text.contains(TEAM),
            "{name}: {text}"
        );
    }
    assert_eq!(warnings(&output), ["unknown_price"]);
    let hint = format!("put a valid key into {}", key.display());
    assert_eq!(output.result()["error"]["hints"], json!([hint]));
}

/// A model that says the key aloud, in its answer and to a tool.
#[test]
fn what_a_model_repeats_of_a_key_is_redacted() {
    let say = format!("The key is {KEY}.");
    let replies = [
        chat::tool_call("c1", "bash", &json!({"command": format!("echo {KEY}")})),
        chat::text(&say),
    ];
    let server = ModelServer::start(replies);
    let own = format!(
        "  house: {{base_url: '{}', api_key_env: GATEWAY}}\n",
        server.url()
    );
    let output = prompt(&own, "house/m")
        .env("GATEWAY", KEY)
        .args(["--allow", "Bash"])
        .run();
    server.finish();
    assert_eq!(output.stdout, "The key is ***.\n");
    for (name, text) in remains(&output) {
        assert!(!text.contains(KEY), "{name}");
    }
}

#[test]
fn a_key_that_everybody_can_read_or_nobody_is_told() {
    let server = ModelServer::start([chat::text("Hi.")]);
    let own = format!(
        "  house: {{base_url: '{}', api_key_file: ~/k}}\n",
        server.url()
    );
    let cli = prompt(&own, "house/m");
    let key = cli.home().join("k");
    std::fs::write(&key, KEY).unwrap();
    std::fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    // Quiet only means that a run without a failure has nothing to say.
    let (_, output) = asked(server, cli);
    assert_eq!(warnings(&output), ["key_file_readable", "unknown_price"]);

    let own = "  house: {base_url: 'https://house.example/v1', api_key_file: ~/none}\n";
    let refused = prompt(own, "house/m").expect_code(77).run();
    let message = refused.result()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(message.contains("no such file (api_key_file)"), "{message}");
    let own = "  house: {base_url: 'https://house.example/v1', api_key_env: MINE}\n";
    let refused = prompt(own, "house/m").expect_code(77).run();
    assert_eq!(
        refused.result()["error"]["message"],
        "not authorised: there is no key for house"
    );
    assert_eq!(
        refused.result()["error"]["hints"],
        json!(["set MINE to a valid key"])
    );
}

#[test]
fn flag_then_file_then_environment_say_where_a_provider_is() {
    let server = ModelServer::start([anthropic::text("Hi."), anthropic::text("Hi.")]);
    let nowhere = "http://127.0.0.1:9";
    let own = format!("  anthropic: {{base_url: '{}'}}\n", server.url());
    let model = "anthropic/claude-sonnet-4-5";
    prompt(&own, model)
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", nowhere)
        .run();
    let own = format!("  anthropic: {{base_url: '{nowhere}'}}\n");
    prompt(&own, model)
        .env("ANTHROPIC_API_KEY", KEY)
        .args(["--base-url", &server.url()])
        .run();
    server.finish();
    // A key's variable that several providers share moves none but its own.
    let server = ModelServer::start([chat::text("Hi.")]);
    let own = format!(
        "  house: {{base_url: '{}', api_key_env: OPENAI_API_KEY}}\n",
        server.url()
    );
    let cli = prompt(&own, "house/m").env("OPENAI_API_KEY", KEY);
    asked(server, cli.env("OPENAI_BASE_URL", nowhere));
}

#[test]
fn the_file_is_where_the_user_says_and_never_in_the_repository() {
    let own = |url: &str| {
        file(&format!(
            "  house: {{base_url: '{url}', api_key_env: MINE}}\n"
        ))
    };
    let poison = own("http://127.0.0.1:9");
    let repository = |server: &ModelServer| {
        Cli::new()
            .file(".git/HEAD", "ref: refs/heads/main\n")
            .file("providers.yaml", &poison)
            .file(".config/agent/providers.yaml", &poison)
            .file(".agent/providers.yaml", &poison)
            .file(
                "task.yaml",
                "version: 1\nprompt: Hello\nsettings: {model: house/m}\n",
            )
            .file("elsewhere/own.yaml", own(&server.url()))
            .args(["run", "task.yaml", "--quiet", "--run-dir", "run"])
            .env("MINE", KEY)
    };
    // From XDG_CONFIG_HOME, from AGENT_DIR, by name, and from the home directory.
    for place in ["xdg", "agent", "flag", "home"] {
        let server = ModelServer::start([chat::text("Hi.")]);
        let cli = repository(&server);
        let outside = cli.home().join("outside");
        let put = |dir: &Path| {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(dir.join("providers.yaml"), own(&server.url())).unwrap();
        };
        let cli = match place {
            "xdg" => {
                put(&outside.join("agent"));
                cli.env("XDG_CONFIG_HOME", &outside)
            }
            "agent" => {
                put(&outside);
                cli.env("AGENT_DIR", &outside)
            }
            "flag" => cli.args(["--providers", "elsewhere/own.yaml"]),
            _ => {
                put(&cli.home().join(".config/agent"));
                cli
            }
        };
        asked(server, cli);
    }
    // Nobody named one: the repository's is none, even where AGENT_DIR leads to it.
    let unused = ModelServer::start(Vec::<Response>::new());
    let plain = repository(&unused).expect_code(65).run();
    assert!(plain.stderr.is_empty() || !plain.stderr.contains("127.0.0.1:9"));
    let led = repository(&unused)
        .env("AGENT_DIR", ".agent")
        .expect_code(65)
        .run();
    assert_eq!(warnings(&led), ["providers_of_repository"]);
    for output in [plain, led] {
        let error = output.result()["error"]["message"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(error.starts_with("unknown model `house/m`"), "{error}");
    }
}

#[test]
fn a_wrong_file_stops_what_asks_a_model_before_it_begins() {
    let wrong = file("  house: {base_url: nowhere}\n");
    let task = "version: 1\nprompt: Hello\n";
    for (args, json) in [
        (&["run", "task.yaml", "--output-format", "json"][..], true),
        (&["check", "task.yaml"], false),
        (&["-p", "Hello", "--model", "house/m"], false),
        (&["models"], false),
    ] {
        let cli = Cli::new()
            .file("p.yaml", &wrong)
            .file("task.yaml", task)
            .args(args);
        let output = cli.args(["--providers", "p.yaml"]).expect_code(78).run();
        assert!(
            output.stderr.contains("p.yaml:3:21"),
            "{args:?}: {}",
            output.stderr
        );
        assert!(!output.cwd().join(".agent").exists());
        if json {
            let result: Value = serde_json::from_str(&output.stdout).unwrap();
            assert_eq!(result["reason"], "config");
        }
        let cli = Cli::new().file("task.yaml", task).args(args);
        let output = cli.args(["--providers", "none.yaml"]).expect_code(66).run();
        assert!(
            output.stderr.contains("none.yaml: no such file"),
            "{}",
            output.stderr
        );
    }
}

#[test]
fn a_compaction_by_hand_reads_the_file_too() {
    let server = ModelServer::start([chat::text("Hi.")]);
    let own = format!("  house: {{base_url: '{}'}}\n", server.url());
    let (_, output) = asked(server, prompt(&own, "house/m"));
    let session = output.run_dir().join("session.jsonl");
    let compact = |providers: &str| {
        Cli::new()
            .file("p.yaml", file(providers))
            .args(["sessions", "compact", "--providers", "p.yaml"])
            .arg(&session)
    };
    let wrong = compact("  house: {}\n").expect_code(78).run();
    assert!(
        wrong
            .stderr
            .contains("`providers.house.base_url` is missing"),
        "{}",
        wrong.stderr
    );
    // The session's own model is found, and there is nothing to summarise.
    let short = compact(&own).expect_code(1).run();
    assert!(!short.stderr.contains("unknown model"), "{}", short.stderr);
    let gone = compact("  other: {base_url: 'http://x'}\n")
        .expect_code(65)
        .run();
    assert!(
        gone.stderr.contains("unknown model `house/m`"),
        "{}",
        gone.stderr
    );
}

#[test]
fn check_tells_where_a_model_is_and_what_is_known_of_it() {
    let own = file(
        "  house: {base_url: 'https://me:p4ssw0rd-long@models.example/v1', models: {m: {context_window: 9000}, n: }}\n",
    );
    let task = "version: 1\nprompt: Hello\nsettings: {model: house/m}\n";
    let cli = || Cli::new().file("p.yaml", &own).file("task.yaml", task);
    let check = ["check", "task.yaml", "--providers", "p.yaml"];
    let text = cli().args(check).run().stdout;
    for line in [
        "  model        house/m\n",
        "  endpoint     openai-chat, https://models.example/v1\n",
        "  window       9000 tokens, 4500 a reply\n",
        "  price        unknown\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let assumed = cli().args(check).args(["--model", "house/n"]).run().stdout;
    assert!(
        assumed.contains("128000 tokens, 16384 a reply, assumed\n"),
        "{assumed}"
    );
    let moved = cli().args(check).args(["--model", "claude-sonnet-4-5"]);
    let moved = moved
        .env("ANTHROPIC_BASE_URL", "http://10.0.0.1")
        .run()
        .stdout;
    assert!(
        moved.contains("anthropic-messages, http://10.0.0.1\n"),
        "{moved}"
    );
    assert!(
        moved.contains("$3 in, $15 out, $0.3 cached, per million tokens\n"),
        "{moved}"
    );
    let json = cli()
        .args(check)
        .args(["--output-format", "json"])
        .run()
        .stdout;
    let document: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        document["tasks"][0]["model"],
        json!({
            "id": "house/m", "source": "providers", "api": "openai-chat",
            "baseUrl": "https://models.example/v1", "contextWindow": 9000,
            "maxOutputTokens": 4500, "limitsKnown": true, "priceKnown": false,
        })
    );
    assert!(!json.contains("p4ssw0rd"), "{json}");
}
