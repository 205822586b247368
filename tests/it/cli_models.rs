//! `agent models`: the table, the document, and what it finds.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use serde_json::{Value, json};

use crate::support::cli::{Cli, Output};

const OWN: &str = "version: 1
providers:
  local: {base_url: 'http://127.0.0.1:11434/v1'}
  house:
    api: anthropic-messages
    base_url: https://me:hunter22hunter@models.example
    api_key_env: HOUSE_KEY
    models:
      Coder-1: {name: The Coder, context_window: 32768, max_output_tokens: 999, images: false,
                reasoning: true, thinking_levels: {minimal: null, max: most},
                price: {input: 0.07, output: 1.5}}
  google: {api_key_file: key.txt}
";

fn models(args: &[&str]) -> Cli {
    Cli::new()
        .file("own.yaml", OWN)
        .args(["models", "--providers", "own.yaml"])
        .args(args)
}

fn document(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap()
}

fn ids(document: &Value) -> Vec<String> {
    let models = document["models"].as_array().unwrap();
    models
        .iter()
        .map(|model| model["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn the_table_is_plain_and_whole_when_nobody_watches() {
    let output = models(&["coder-1"])
        .env("HOUSE_KEY", "a-key-of-the-house")
        .run();
    assert_eq!(
        output.stdout,
        "MODEL          WINDOW  REPLY  $ IN/OUT/CACHED  THINKING      IMAGES  KEY\n\
         house/Coder-1     33K    999  0.07/1.5/0.07    off,low-high,max  -       yes\n"
            .replace("THINKING      IMAGES", "THINKING          IMAGES")
    );
    let all = models(&[]).run();
    assert_eq!(all.stderr, "");
    // A head, one's own two, and the catalog.
    assert_eq!(all.stdout.lines().count(), 1 + 2 + 675);
    assert!(all.stdout.contains("\nlocal/* "), "{}", &all.stdout[..400]);
    assert!(!all.stdout.contains('\u{1b}'));
    let free = models(&["openrouter", ":free"]).run().stdout;
    assert!(
        free.lines().skip(1).all(|line| line.contains("  free  ")),
        "{free}"
    );
}

#[test]
fn words_match_in_any_order_and_what_is_near_is_suggested() {
    let found = |args: &[&str]| ids(&document(&models(args).arg("--json").run()));
    assert_eq!(found(&["CODER", "the"]), ["house/Coder-1"]);
    assert_eq!(found(&["the coder"]), ["house/Coder-1"]);
    assert_eq!(
        found(&["5-5 sonnet", "anthropic/"]),
        ["anthropic/claude-sonnet-5-5"]
    );
    assert_eq!(found(&["--provider", "cerebras"]).len(), 2);
    let nothing = |args: &[&str]| models(args).expect_code(66).run();
    let output = nothing(&["sonet", "antropic"]);
    assert_eq!(output.stdout, "");
    assert!(
        output
            .stderr
            .starts_with("agent: no model matches; did you mean anthropic/claude-sonnet-"),
        "{}",
        output.stderr
    );
    assert_eq!(nothing(&["qqqqqqqq"]).stderr, "agent: no model matches\n");
    let output = nothing(&["--provider", "antropic", "--json"]);
    assert!(
        output
            .stderr
            .contains("there is no provider `antropic`; there are house, local, anthropic, ")
    );
    assert_eq!(document(&output)["models"], json!([]));
}

#[test]
fn only_what_can_be_asked_is_available() {
    let available = models(&["--available", "--json"]).run();
    assert_eq!(ids(&document(&available)), ["local/*"]);
    let cli = models(&["--available", "--json"])
        .env("HOUSE_KEY", "a-key-of-the-house")
        .env("CEREBRAS_API_KEY_FILE", "key.txt")
        .env("MISTRAL_API_KEY_FILE", "none.txt")
        .env("MISTRAL_BASE_URL", "http://127.0.0.1:4000/v1")
        .file("key.txt", "the-key-in-a-file\n");
    let output = cli.run();
    let found = document(&output);
    let providers: std::collections::BTreeSet<String> = ids(&found)
        .iter()
        .map(|id| id.split('/').next().unwrap().to_owned())
        .collect();
    // On this machine no key is needed, so one that cannot be read is no matter.
    let expect = ["cerebras", "google", "house", "local", "mistral"];
    assert_eq!(
        providers.iter().map(String::as_str).collect::<Vec<_>>(),
        expect
    );
    assert!(!output.stdout.contains("a-key-of-the-house") && !output.stdout.contains("the-key-in"));
    let mistral = found["models"].as_array().unwrap().iter();
    let mistral = mistral
        .clone()
        .find(|model| model["provider"] == "mistral")
        .unwrap();
    assert_eq!(mistral["baseUrl"], "http://127.0.0.1:4000/v1");
    assert_eq!(mistral["key"]["needed"], false);
    // What stands in the place of a file's name may be a key.
    assert_eq!(
        mistral["key"]["problem"],
        "cannot read ***: no such file (MISTRAL_API_KEY_FILE)"
    );
}

#[test]
fn the_document_says_everything_and_keeps_its_schema() {
    let output = models(&["--json"]).run();
    let found = document(&output);
    assert_eq!(found["asOf"], "2026-11-21");
    assert_eq!(
        found["models"][1],
        json!({
            "id": "house/Coder-1", "provider": "house", "name": "The Coder",
            "source": "providers", "api": "anthropic-messages",
            "baseUrl": "https://models.example",
            "contextWindow": 32768, "maxOutputTokens": 999, "limitsKnown": true,
            "images": false, "reasoning": true,
            "thinking": ["off", "low", "medium", "high", "max"],
            "thinkingLevels": {"minimal": null, "max": "most"},
            "price": {"input": 0.07, "output": 1.5, "cache_read": 0.07, "cache_write": 0.07,
                      "tiers": []},
            "quirks": {
                "adaptive_thinking": false, "temperature": null, "developer_role": false,
                "max_tokens_field": "max_tokens", "reasoning_effort": null, "store": false,
                "thinking_format": "openai", "echo_reasoning_content": false,
                "prompt_cache_key": null, "session_id": false, "relays_anthropic": false,
                "nine_letter_ids": false, "strict_tools": null, "structured_output": null,
            },
            "key": {"needed": true, "present": false, "sources": ["HOUSE_KEY"]},
        })
    );
    let providers = found["providers"].as_array().unwrap();
    assert_eq!(providers.len(), 18);
    assert_eq!(
        providers[1],
        json!({
            "id": "local", "source": "providers", "keySources": [], "anyModel": true,
            "baseUrls": {"openai-chat": "http://127.0.0.1:11434/v1"},
        })
    );
    let fireworks = providers
        .iter()
        .find(|one| one["id"] == "fireworks")
        .unwrap();
    assert_eq!(fireworks["baseUrls"].as_object().unwrap().len(), 2);
    assert!(!output.stdout.contains("hunter22hunter"));
    let schema = Cli::new().args(["schema", "models"]).run().stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("mem:///s.json", schema).unwrap();
    let index = compiler.compile("mem:///s.json", &mut schemas).unwrap();
    let error = schemas.validate(&found, index).err();
    assert_eq!(error.map(|error| error.to_string()), None);
}

/// Whoever reads only the head of the list leaves no complaint behind.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let cli = models(&[]);
    let mut child = cli
        .command()
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert!(output.status.success());
}

/// Without git nothing says how far a repository reaches: only what is named
/// relative to where one works is taken for a part of it.
#[test]
fn without_git_an_absolute_agent_dir_is_ones_own() {
    let table = [
        (false, true, true),
        (false, false, false),
        (true, true, false),
        (true, false, false),
    ];
    for (git, absolute, read) in table {
        let cli = Cli::new().file("agent/providers.yaml", OWN);
        let cli = match git {
            true => cli.file(".git/HEAD", "ref: refs/heads/main\n"),
            false => cli,
        };
        let dir = match absolute {
            true => cli.cwd().join("agent"),
            false => "agent".into(),
        };
        let cli = cli.env("AGENT_DIR", dir).args(["models", "house"]);
        let output = cli.expect_code(if read { 0 } else { 66 }).run();
        let is_listed = output.stdout.contains("house/Coder-1");
        assert_eq!(is_listed, read, "{git} {absolute}: {}", output.stderr);
        let is_told = output.stderr.contains("belongs to the repository");
        assert_eq!(is_told, !read, "{git} {absolute}: {}", output.stderr);
    }
}
