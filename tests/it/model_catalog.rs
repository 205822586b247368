//! Finding models, their thinking levels and their prices.

use agent::message::Usage;
use agent::model::{Api, Quirks, ThinkingLevel, as_of, ids, resolve};

use crate::support::models::model;

fn error(name: &str) -> String {
    resolve(name, None).expect_err("no such model").to_string()
}

#[test]
fn every_model_of_the_catalog_resolves() {
    assert_eq!(as_of(), "2026-11-21");
    let mut supported = 0;
    for id in ids() {
        match resolve(&id, None) {
            Ok(model) => {
                supported += 1;
                assert_eq!(model.full_id(), id);
                assert!(model.base_url.starts_with("https://"), "{id}");
                assert!(!model.api_key_env.is_empty() && !model.key_optional, "{id}");
                assert!(
                    model.context_window > 0 && model.max_output_tokens > 0,
                    "{id}"
                );
            }
            Err(error) => panic!("{id}: {error}"),
        }
    }
    assert_eq!((ids().count(), supported), (675, 675));
}

#[test]
fn names_resolve_exactly() {
    let sonnet = model("anthropic/claude-sonnet-4-5");
    assert_eq!(sonnet, model("claude-sonnet-4-5"));
    assert_eq!(sonnet.api, Api::AnthropicMessages);
    assert_eq!(sonnet.api_key_env, ["ANTHROPIC_API_KEY"]);
    // An id may hold slashes, after its provider or without it.
    assert_eq!(model("groq/openai/gpt-oss-120b").provider, "groq");
    assert_eq!(
        model("accounts/fireworks/models/ember-1").provider,
        "fireworks"
    );
    let local =
        resolve("anthropic/claude-sonnet-4-5", Some("http://127.0.0.1:1/x")).expect("known");
    assert!(local.key_optional && !local.sends_key_in_clear());
    assert_eq!(local.price, sonnet.price);
}

#[test]
fn other_names_are_errors_with_the_nearest() {
    let unknown = resolve("anthropic/claude-sonet-4-5", None).expect_err("a typo");
    assert_eq!(unknown.nearest[0], "anthropic/claude-sonnet-4-5");
    assert!(unknown.to_string().starts_with(
        "unknown model `anthropic/claude-sonet-4-5`; did you mean `anthropic/claude-sonnet-4-5`"
    ));
    assert!(error("zzzzzzzzzzzzzzzzzzzzzz").contains("provider/id"));
    assert!(error("claude-sonnet-4-").contains("did you mean"));
    assert!(error("anthropic/").contains("names no model"));
    assert!(error("").contains("names no model"));
    assert!(error("anthropic/\",\"x").contains("unknown model"));
    assert!(error("openai/gpt-oss-120b").contains("several providers"));
}

#[test]
fn ad_hoc_endpoints() {
    let local =
        resolve("openai-chat/llama3:8b", Some("http://localhost:11434/v1")).expect("ad hoc");
    assert_eq!(
        (local.provider.as_str(), local.id.as_str()),
        ("openai-chat", "llama3:8b")
    );
    assert!(local.key_optional && !local.sends_key_in_clear() && local.price.is_none());
    assert_eq!(local.quirks.store, Some(false));
    let own = resolve("openai-chat/a/b", None).expect("ad hoc");
    assert_eq!(
        (own.base_url.as_str(), own.id.as_str()),
        ("https://api.openai.com/v1", "a/b")
    );
    assert!(!own.key_optional && own.quirks.prompt_cache_key);
    for (dialect, url, key) in [
        (
            "openai-responses",
            "https://api.openai.com/v1",
            "OPENAI_API_KEY",
        ),
        (
            "google-generative-ai",
            "https://generativelanguage.googleapis.com/v1beta",
            "GEMINI_API_KEY",
        ),
    ] {
        let model = resolve(&format!("{dialect}/x"), None).expect("ad hoc");
        assert_eq!((model.api.name(), model.base_url.as_str()), (dialect, url));
        assert_eq!(model.api_key_env, [key]);
    }
    assert_eq!(model("gpt-5.2").api, Api::OpenaiResponses);
    assert_eq!(model("google/gemini-2.5-pro").api, Api::GoogleGenerativeAi);
    let far = resolve("anthropic-messages/x", Some("http://models.example/v1")).expect("ad hoc");
    assert!(far.sends_key_in_clear() && !far.key_optional);
    for (url, local) in [
        ("http://127.0.0.1:8080", true),
        ("http://[::1]:8080/v1", true),
        ("http://localhost", true),
        ("http://127.0.0.1.example.com", false),
        ("http://localhost@example.com", false),
        ("https://example.com/127.0.0.1", false),
    ] {
        let model = resolve("openai-chat/x", Some(url)).expect("a URL");
        assert_eq!(model.key_optional, local, "{url}");
    }
    for url in [
        "nonsense",
        "ftp://x",
        "file:///etc/passwd",
        "http://x?a=b",
        "",
    ] {
        assert!(resolve("openai-chat/x", Some(url)).is_err(), "{url}");
    }
}

#[test]
fn scripted_models_need_nothing() {
    let model = model("scripted/replies/fix-bug.yaml");
    assert_eq!(model.full_id(), "scripted/fix-bug");
    assert_eq!(
        (model.context_window, model.max_output_tokens),
        (200_000, 32_000)
    );
    assert!(model.key_optional && model.api_key_env.is_empty());
    let usage = Usage {
        input: 1_000_000,
        ..Usage::default()
    };
    assert_eq!(model.cost(&usage).expect("known").total, 0.0);
}

#[test]
fn thinking_levels_are_clamped_upward_first() {
    use ThinkingLevel as L;
    let check = |name: &str, asked: L, expect: L| {
        assert_eq!(
            model(name).clamp_thinking(asked),
            expect,
            "{name} {asked:?}"
        );
    };
    check("anthropic/claude-sonnet-4-5", L::Off, L::Off);
    check("anthropic/claude-sonnet-4-5", L::Medium, L::Medium);
    check("anthropic/claude-sonnet-4-5", L::Max, L::High);
    check("anthropic/claude-opus-4-6", L::Xhigh, L::Max);
    check("anthropic/claude-opus-5-5", L::Off, L::Low);
    check("deepseek/deepseek-flash", L::Medium, L::High);
    check("mistral/mistral-medium-latest", L::Max, L::High);
    check("mistral/codestral-2508", L::High, L::Off);
    assert_eq!(
        model("anthropic/claude-opus-5-5").level_name(L::High),
        "high"
    );
}

#[test]
fn costs_follow_the_tiers() {
    let usage = |input, cache_read| Usage {
        input,
        cache_read,
        output: 1000,
        cache_write: 1000,
        ..Usage::default()
    };
    let check = |usage: Usage, expect: f64| {
        let cost = model("anthropic/claude-haiku-5-5")
            .cost(&usage)
            .expect("known");
        assert!((cost.total - expect).abs() < 1e-12, "{cost:?} {expect}");
    };
    check(
        usage(10_000, 10_000),
        (1000.0 + 500.0 + 100.0 + 125.0) / 1e6,
    );
    // 100,000 exactly is not above the threshold; one more token is.
    check(usage(9_000, 90_000), (900.0 + 500.0 + 900.0 + 125.0) / 1e6);
    check(
        usage(9_001, 90_000),
        (4500.5 + 2500.0 + 4500.0 + 625.0) / 1e6,
    );
    // A router's price depends on where it sends the request.
    assert_eq!(model("openrouter/auto").cost(&usage(1, 1)), None);
}

#[test]
fn quirks_are_read() {
    assert!(model("anthropic/claude-opus-5").quirks.adaptive_thinking);
    assert_eq!(model("groq/openai/gpt-oss-120b").quirks, Quirks::default());
}
