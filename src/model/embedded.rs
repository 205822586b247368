//! The catalog that is built in: endpoints, limits, prices, thinking levels,
//! quirks.
//!
//! The facts are embedded as text, one model a line, and only the line that is
//! asked for is parsed: a start costs one search for a string. The first line of
//! `catalog.jsonl` says as of when they hold.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::ThinkingLevel;
use crate::model::description::{Api, Extras, Model, Price, Quirks, Source};

const MODELS: &str = include_str!("catalog.jsonl");
const PROVIDERS: &str = include_str!("providers.jsonl");

/// The date as of which the catalog holds, `2026-11-21`.
pub fn as_of() -> &'static str {
    MODELS
        .strip_prefix("{\"as_of\":\"")
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_default()
}

/// A line of the catalog.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    provider: String,
    id: String,
    name: String,
    api: Api,
    context_window: u64,
    max_output_tokens: u64,
    #[serde(default)]
    images: bool,
    #[serde(default)]
    reasoning: bool,
    price: Option<Price>,
    #[serde(default)]
    thinking_levels: BTreeMap<ThinkingLevel, Option<String>>,
    #[serde(default)]
    quirks: Quirks,
}

/// A line of the providers.
#[derive(Deserialize)]
pub(super) struct Provider {
    pub(super) api_key_env: String,
    base_urls: BTreeMap<String, String>,
}

impl Provider {
    /// The provider of this id.
    pub(super) fn of(id: &str) -> Option<Self> {
        let start = format!("{{\"id\":\"{id}\",");
        let line = PROVIDERS.lines().find(|line| line.starts_with(&start))?;
        serde_json::from_str(line).ok()
    }

    /// Where the paths of a dialect start at it.
    pub(super) fn base_url(&self, api: Api) -> Option<&str> {
        self.base_urls.get(api.name()).map(String::as_str)
    }

    /// The dialects that it speaks.
    pub(super) fn apis(&self) -> impl Iterator<Item = Api> {
        self.base_urls
            .keys()
            .filter_map(|name| Api::from_name(name))
    }

    /// The variable that moves the base URL: `ANTHROPIC_BASE_URL` beside
    /// `ANTHROPIC_API_KEY`.
    pub(super) fn base_url_env(&self) -> Option<String> {
        base_url_env(&self.api_key_env)
    }
}

/// The variable that moves the base URL of a provider with this key variable.
pub(super) fn base_url_env(api_key_env: &str) -> Option<String> {
    let prefix = api_key_env.strip_suffix("_API_KEY")?;
    Some(format!("{prefix}_BASE_URL"))
}

/// Whether the catalog has a provider of this id.
pub(crate) fn is_built_in(provider: &str) -> bool {
    providers().any(|id| id == provider)
}

/// Whether the catalog knows where a provider speaks a dialect.
pub(crate) fn has_built_in_url(provider: &str, api: Api) -> bool {
    Provider::of(provider).is_some_and(|provider| provider.base_url(api).is_some())
}

/// The ids of all providers.
pub(super) fn providers() -> impl Iterator<Item = &'static str> {
    PROVIDERS.lines().filter_map(|line| {
        let rest = line.strip_prefix("{\"id\":\"")?;
        rest.split('"').next()
    })
}

/// Provider and id of every model.
pub(super) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    MODELS.lines().filter_map(names_of)
}

/// Whether there is a model `provider/id`.
pub(super) fn has(provider: &str, id: &str) -> bool {
    line(provider, id).is_some()
}

/// The model `provider/id`.
pub(super) fn find(provider: &str, id: &str) -> Option<Model> {
    let entry = serde_json::from_str(line(provider, id)?);
    Some(described(entry.expect("the embedded catalog is valid")))
}

fn line(provider: &str, id: &str) -> Option<&'static str> {
    if provider.contains('"') || id.contains('"') {
        return None;
    }
    let start = format!("\n{{\"provider\":\"{provider}\",\"id\":\"{id}\",");
    let at = MODELS.find(&start)?;
    MODELS.get(at + 1..)?.lines().next()
}

/// Provider and id of a line, without parsing it.
fn names_of(line: &'static str) -> Option<(&'static str, &'static str)> {
    let rest = line.strip_prefix("{\"provider\":\"")?;
    let (provider, rest) = rest.split_once("\",\"id\":\"")?;
    let (id, _) = rest.split_once('"')?;
    Some((provider, id))
}

fn described(entry: Entry) -> Model {
    let provider = Provider::of(&entry.provider).expect("every provider is listed");
    let base_url = provider.base_url(entry.api);
    let base_url = base_url.unwrap_or_else(|| entry.api.usual_base_url());
    Model {
        quirks: entry.quirks.with_known(&entry.provider, &entry.id),
        base_url: base_url.to_owned(),
        base_url_env: provider.base_url_env(),
        api_key_env: vec![provider.api_key_env],
        key_optional: false,
        provider: entry.provider,
        id: entry.id,
        name: entry.name,
        api: entry.api,
        context_window: entry.context_window,
        max_output_tokens: entry.max_output_tokens,
        limits_known: true,
        images: entry.images,
        reasoning: entry.reasoning,
        price: entry.price,
        thinking_levels: entry.thinking_levels,
        extras: Extras::default(),
        source: Source::Catalog,
    }
}
