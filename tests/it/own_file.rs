//! The file of providers: what it may say.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::collections::BTreeMap;
use std::path::Path;

use agent::model::{Api, Catalog, KeyPlace, MaxTokensField, Model, Source, ThinkingLevel};
use agent::task::{Diagnostics, load_providers, providers_schema};
use serde_json::json;

/// What a file of this text is.
pub(crate) fn load(text: &str) -> Result<Catalog, Diagnostics> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("providers.yaml");
    std::fs::write(&path, text).unwrap();
    let env: BTreeMap<String, String> =
        [("TEAM", " blue \n"), ("BAD", "two\nlines"), ("EMPTY", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
    load_providers(&path, &env, Some(Path::new("/home/me")))
}

fn catalog(providers: &str) -> Catalog {
    load(&format!("version: 1\nproviders:\n{providers}"))
        .unwrap_or_else(|problems| panic!("{}", problems.render(false)))
}

fn model(catalog: &Catalog, name: &str) -> Model {
    catalog.resolve(name, None).unwrap()
}

#[test]
fn an_endpoint_that_says_little_takes_every_model() {
    let catalog = catalog("  ollama: {base_url: 'http://127.0.0.1:11434/v1'}\n");
    let local = model(&catalog, "ollama/qwen3:8b");
    assert_eq!(local.full_id(), "ollama/qwen3:8b");
    assert_eq!(
        (local.api, local.source),
        (Api::OpenaiChat, Source::Providers)
    );
    assert_eq!(local.base_url, "http://127.0.0.1:11434/v1");
    assert!(local.key_optional && local.api_key_env.is_empty());
    assert_eq!(
        (local.context_window, local.max_output_tokens),
        (128_000, 16_384)
    );
    assert!(!local.limits_known && local.price.is_none() && local.base_url_env.is_none());
    assert_eq!(local.quirks.max_tokens_field, MaxTokensField::MaxTokens);
    // What the catalog has is as it was.
    let sonnet = model(&catalog, "claude-sonnet-4-5");
    assert_eq!(sonnet, model(&Catalog::default(), "claude-sonnet-4-5"));
    let listed = catalog.providers();
    assert!(listed[0].any_model && listed[0].id == "ollama" && listed.len() == 17);
}

const HOUSE: &str = "  house:
    api: openai-responses
    base_url: https://models.example/v1
    api_key_env: HOUSE_KEY
    api_key_file: ~/keys/house
    api_key_header: Api-Key
    headers: {X-Fixed: here}
    headers_env: {X-Team: TEAM, X-Unset: EMPTY}
    query: {api-version: '2', b: 'x y'}
    quirks: {temperature: false, store: true}
    defaults: {context_window: 20000, reasoning: true, price: {input: 1, output: 2}}
    models:
      plain:
      large:
        name: The large one
        api: anthropic-messages
        base_url: http://10.0.0.7/large
        context_window: 500000
        max_output_tokens: 40000
        images: false
        thinking_levels: {off: null, high: hard}
        quirks: {store: false, adaptive_thinking: true}
        price:
          {input: 3, output: 15, cache_read: 0.3,
           tiers: [{input_tokens_above: 200000, input: 6, output: 22.5}]}
";

#[test]
fn a_provider_says_what_holds_for_its_models() {
    let catalog = catalog(HOUSE);
    let plain = model(&catalog, "plain");
    assert_eq!(plain, model(&catalog, "house/plain"));
    assert_eq!(
        (plain.api, plain.name.as_str()),
        (Api::OpenaiResponses, "plain")
    );
    assert_eq!(
        (plain.context_window, plain.max_output_tokens),
        (20_000, 10_000)
    );
    assert!(plain.limits_known && plain.reasoning && plain.images && !plain.key_optional);
    assert_eq!(plain.key_sources(), ["HOUSE_KEY", "/home/me/keys/house"]);
    assert_eq!(
        plain.extras.key_place,
        KeyPlace::Header("Api-Key".to_owned())
    );
    let headers: Vec<_> = plain
        .extras
        .headers
        .iter()
        .map(|header| {
            (
                header.name.as_str(),
                header.env.as_deref(),
                header.value.as_deref(),
            )
        })
        .collect();
    assert_eq!(
        headers,
        [
            ("x-fixed", None, Some("here")),
            ("x-team", Some("TEAM"), Some("blue")),
            ("x-unset", Some("EMPTY"), None),
        ]
    );
    assert_eq!(
        (plain.quirks.temperature, plain.quirks.store),
        (Some(false), Some(true))
    );
    let price = plain.price.unwrap();
    assert_eq!((price.cache_read, price.cache_write), (1.0, 1.0));
    let shown = format!("{catalog:?} {:?}", plain.extras);
    assert!(!shown.contains("blue"), "{shown}");
}

#[test]
fn a_model_says_what_is_different_about_it() {
    let catalog = catalog(HOUSE);
    let large = model(&catalog, "large");
    assert_eq!(
        (large.api, large.base_url.as_str()),
        (Api::AnthropicMessages, "http://10.0.0.7/large")
    );
    assert_eq!(
        (large.context_window, large.max_output_tokens),
        (500_000, 40_000)
    );
    assert!(!large.images && large.quirks.adaptive_thinking && large.sends_key_in_clear());
    assert_eq!(
        (large.quirks.temperature, large.quirks.store),
        (Some(false), Some(false))
    );
    assert_eq!(
        large.clamp_thinking(ThinkingLevel::Off),
        ThinkingLevel::Minimal
    );
    assert_eq!(large.level_name(ThinkingLevel::High), "hard");
    let price = large.price.unwrap();
    assert_eq!(
        (price.input, price.cache_read, price.cache_write),
        (3.0, 0.3, 3.0)
    );
    assert_eq!(
        (price.tiers[0].output, price.tiers[0].cache_read),
        (22.5, 6.0)
    );
}

#[test]
fn a_provider_of_the_catalog_is_changed_and_keeps_the_rest() {
    let catalog = catalog(
        "  anthropic:
    base_url: https://gateway.example
    models:
      claude-sonnet-4-5: {context_window: 1000000, price: {input: 1, output: 1}}
      claude-house: {context_window: 50000}
  openai: {api_key_env: OTHER_KEY, quirks: {temperature: false}}
  fireworks: {api: openai-chat}
",
    );
    let known = model(&Catalog::default(), "claude-sonnet-4-5");
    let ours = model(&catalog, "claude-sonnet-4-5");
    assert_eq!(
        (
            ours.context_window,
            ours.base_url.as_str(),
            &ours.base_url_env
        ),
        (1_000_000, "https://gateway.example", &None)
    );
    assert_eq!(ours.price.as_ref().unwrap().output, 1.0);
    assert_eq!(
        (
            &ours.name,
            ours.max_output_tokens,
            &ours.quirks,
            &ours.api_key_env
        ),
        (
            &known.name,
            known.max_output_tokens,
            &known.quirks,
            &known.api_key_env
        )
    );
    let haiku = model(&catalog, "anthropic/claude-haiku-4-5");
    assert_eq!(
        (haiku.base_url.as_str(), haiku.source),
        ("https://gateway.example", Source::Providers)
    );
    let house = model(&catalog, "claude-house");
    assert_eq!(
        (house.full_id().as_str(), house.api),
        ("anthropic/claude-house", Api::AnthropicMessages)
    );
    assert_eq!(house.api_key_env, ["ANTHROPIC_API_KEY"]);
    // The environment still moves what the file leaves where it was.
    let gpt = model(&catalog, "gpt-5.2");
    assert_eq!(gpt.base_url_env.as_deref(), Some("OPENAI_BASE_URL"));
    assert_eq!(
        (gpt.api_key_env, gpt.quirks.temperature),
        (vec!["OTHER_KEY".to_owned()], Some(false))
    );
    let ember = model(&catalog, "fireworks/accounts/fireworks/models/ember-1");
    assert_eq!(
        (ember.api, ember.base_url.as_str()),
        (Api::OpenaiChat, "https://api.fireworks.ai/inference/v1")
    );
    // Not every id is one of theirs.
    assert!(catalog.resolve("anthropic/claude-9", None).is_err());
    let zai = model(&catalog, "zai/glm-5.3");
    assert_eq!(
        (zai.source, catalog.models().count()),
        (Source::Catalog, 676)
    );
}

#[test]
fn names_of_all_providers_are_told_apart_or_suggested() {
    let catalog = catalog(
        "  near: {base_url: 'http://a/v1', models: {coder-30b: , glm-5.3: }}
  far: {base_url: 'http://b/v1', models: {coder-30b: , coder-70b: }}
  open: {base_url: 'http://c/v1'}
",
    );
    let error = |name: &str| catalog.resolve(name, None).unwrap_err();
    assert_eq!(model(&catalog, "coder-70b").provider, "far");
    assert_eq!(
        error("coder-30b").message,
        "several providers have `coder-30b`; write one of `far/coder-30b`, `near/coder-30b`"
    );
    assert_eq!(error("glm-5.3").nearest[0], "near/glm-5.3");
    assert_eq!(error("near/coder-30").nearest[0], "near/coder-30b");
    assert_eq!(error("far/coder-7b").nearest[0], "far/coder-70b");
    assert_eq!(model(&catalog, "open/any/thing").id, "any/thing");
    assert!(error("open/").message.contains("names no model"));
    // A base URL that is given goes first, and a dialect is no provider.
    let moved = catalog
        .resolve("far/coder-70b", Some("http://127.0.0.1:1/v1"))
        .unwrap();
    assert_eq!(moved.base_url, "http://127.0.0.1:1/v1");
    assert_eq!(
        model(&catalog, "openai-chat/coder-70b").source,
        Source::AdHoc
    );
}

#[test]
fn azure_can_be_told_by_deployment() {
    let catalog = catalog(
        "  azure:
    api_key_env: AZURE_OPENAI_API_KEY
    api_key_header: api-key
    query: {api-version: 2024-10-21}
    models:
      gpt-4o: {base_url: 'https://r.openai.azure.com/openai/deployments/gpt-4o'}
",
    );
    assert_eq!(
        model(&catalog, "azure/gpt-4o").extras.query,
        [("api-version".to_owned(), "2024-10-21".to_owned())]
    );
}

/// Whatever the catalog knows of a quirk may also be written, and the published
/// schema takes what the program takes.
#[test]
fn the_schema_takes_a_file_with_everything() {
    let quirks = serde_json::to_value(agent::model::Quirks::default()).unwrap();
    let document = json!({"version": 1, "providers": {"a": {
        "api": "google-generative-ai", "base_url": "http://x", "api_key_env": "K",
        "api_key_query": "key", "headers": {"a": "b"}, "quirks": quirks,
        "defaults": {"thinking_levels": {"off": null, "max": "x"}},
        "models": {"m": null, "n": {"price": {"input": 1, "output": 2.5}}},
    }}});
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler
        .add_resource("mem:///s.json", providers_schema())
        .unwrap();
    let index = compiler.compile("mem:///s.json", &mut schemas).unwrap();
    let error = schemas.validate(&document, index).err();
    assert_eq!(error.map(|error| error.to_string()), None);
    assert!(
        schemas
            .validate(&json!({"version": 1, "providers": {"a": {"x": 1}}}), index)
            .is_err()
    );
    load(&document.to_string()).unwrap();
}
