//! Finding models, their thinking levels and their prices.

use agent::message::Usage;
use agent::model::{
    Api, Catalog, MaxTokensField, Model, Price, Quirks, Source, ThinkingFormat, ThinkingLevel,
    Tier, as_of, ids, resolve,
};

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

/// What the catalog says of one thing in all its models, counted.
#[test]
fn the_catalog_is_whole() {
    let all: Vec<Model> = Catalog::default().models().collect();
    let count = |has: fn(&Model) -> bool| all.iter().filter(|model| has(model)).count();
    let tiers = |model: &Model| model.price.as_ref().map_or(0, |price| price.tiers.len());
    assert_eq!(all.len(), 675);
    assert_eq!(count(|model| model.images), 466);
    assert_eq!(count(|model| model.reasoning), 546);
    assert_eq!(count(|model| model.price.is_none()), 8);
    assert_eq!(all.iter().map(tiers).sum::<usize>(), 104);
    assert_eq!(count(|model| !model.thinking_levels.is_empty()), 391);
    for (quirk, has, expect) in QUIRKS {
        assert_eq!(count(*has), *expect, "{quirk}");
    }
    for (api, expect) in [
        (Api::AnthropicMessages, 38),
        (Api::OpenaiChat, 566),
        (Api::OpenaiResponses, 48),
        (Api::GoogleGenerativeAi, 23),
    ] {
        assert_eq!(
            all.iter().filter(|model| model.api == api).count(),
            expect,
            "{api:?}"
        );
    }
    let providers = Catalog::default().providers();
    let urls: usize = providers.iter().map(|one| one.base_urls.len()).sum();
    assert_eq!((providers.len(), urls), (16, 17));
    assert!(
        providers
            .iter()
            .all(|one| one.key_sources.len() == 1 && !one.any_model)
    );
}

type Quirk = (&'static str, fn(&Model) -> bool, usize);

const QUIRKS: &[Quirk] = &[
    (
        "adaptive_thinking",
        |model| model.quirks.adaptive_thinking,
        29,
    ),
    (
        "temperature",
        |model| model.quirks.temperature == Some(false),
        7,
    ),
    (
        "developer_role",
        |model| model.quirks.developer_role == Some(false),
        448,
    ),
    (
        "max_tokens_field",
        |model| model.quirks.max_tokens_field == MaxTokensField::MaxTokens,
        85,
    ),
    (
        "reasoning_effort: no",
        |model| model.quirks.reasoning_effort == Some(false),
        39,
    ),
    (
        "reasoning_effort: yes",
        |model| model.quirks.reasoning_effort == Some(true),
        10,
    ),
    ("store", |model| model.quirks.store == Some(false), 98),
    (
        "openrouter",
        |model| model.quirks.thinking_format == ThinkingFormat::Openrouter,
        383,
    ),
    (
        "together",
        |model| model.quirks.thinking_format == ThinkingFormat::Together,
        15,
    ),
    (
        "zai",
        |model| model.quirks.thinking_format == ThinkingFormat::Zai,
        7,
    ),
    (
        "deepseek",
        |model| model.quirks.thinking_format == ThinkingFormat::Deepseek,
        6,
    ),
    (
        "echo_reasoning_content",
        |model| model.quirks.echo_reasoning_content,
        22,
    ),
    (
        "strict_tools: yes",
        |model| model.quirks.strict_tools == Some(true),
        550,
    ),
    (
        "strict_tools: no",
        |model| model.quirks.strict_tools == Some(false),
        42,
    ),
];

/// Every field of one model, as the catalog has it.
#[test]
fn a_model_has_all_that_is_known_of_it() {
    let haiku = model("anthropic/claude-haiku-5-5");
    assert_eq!(
        (haiku.name.as_str(), haiku.source),
        ("Claude Haiku 5.5", Source::Catalog)
    );
    assert_eq!(
        (haiku.context_window, haiku.max_output_tokens),
        (1_000_000, 128_000)
    );
    assert!(haiku.images && haiku.reasoning && haiku.limits_known);
    assert_eq!(haiku.base_url_env.as_deref(), Some("ANTHROPIC_BASE_URL"));
    let tier = Tier {
        input_tokens_above: 100_000,
        input: 0.5,
        output: 2.5,
        cache_read: 0.05,
        cache_write: 0.625,
    };
    let price = Price {
        input: 0.1,
        output: 0.5,
        cache_read: 0.01,
        cache_write: 0.125,
        tiers: vec![tier],
    };
    assert_eq!(haiku.price, Some(price));
    let levels: Vec<Option<&str>> = ThinkingLevel::ALL
        .iter()
        .map(|level| haiku.thinking_levels.get(level)?.as_deref())
        .collect();
    let named = ["low", "medium", "high", "xhigh", "max"].map(Some);
    assert_eq!(levels, [&[None, None][..], &named].concat());
    assert_eq!(haiku.thinking_levels.get(&ThinkingLevel::Off), None);
    assert_eq!(haiku.quirks.temperature, Some(false));
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
    assert!(!own.key_optional && own.quirks.prompt_cache_key == Some(true));
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
    let strict = Quirks {
        strict_tools: Some(true),
        ..Quirks::default()
    };
    assert_eq!(model("groq/openai/gpt-oss-120b").quirks, strict);
}
