//! Which models there are: endpoints, limits, prices, thinking levels, quirks.
//!
//! The facts are embedded as text, one model a line, and only the line that is
//! asked for is parsed: a start costs one search for a string. The first line of
//! `catalog.jsonl` says as of when they hold.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::ThinkingLevel;
use crate::model::description::{Api, MaxTokensField, Model, Price, Quirks};
use crate::model::endpoint;

const MODELS: &str = include_str!("catalog.jsonl");
const PROVIDERS: &str = include_str!("providers.jsonl");

/// No model of this name can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct UnknownModel {
    /// What is wrong, for people.
    pub message: String,
    /// The nearest names, best first.
    pub nearest: Vec<String>,
}

/// The date as of which the catalog holds, `2026-11-21`.
pub fn as_of() -> &'static str {
    MODELS
        .strip_prefix("{\"as_of\":\"")
        .and_then(|rest| rest.split('"').next())
        .unwrap_or_default()
}

/// The ids of all models of the catalog, `provider/id`.
pub fn ids() -> impl Iterator<Item = String> {
    MODELS
        .lines()
        .filter_map(names_of)
        .map(|(provider, id)| format!("{provider}/{id}"))
}

/// Finds a model: `provider/id`, a bare id that only one provider has,
/// `openai-chat/any-id` or the same with another dialect for an endpoint of
/// one's own, or `scripted/path`. `base_url` replaces the catalog's.
///
/// # Errors
/// When no model has that name (the nearest names are given), when several
/// have, when its dialect is not supported, or when `base_url` is no URL.
pub fn resolve(name: &str, base_url: Option<&str>) -> Result<Model, UnknownModel> {
    if let Some(url) = base_url {
        endpoint::check(url).map_err(|reason| {
            let shown = endpoint::without_login(url);
            unknown(format!("base_url `{shown}`: {reason}"))
        })?;
    }
    let (provider, id) = name.split_once('/').unwrap_or(("", name));
    if id.is_empty() {
        return Err(unknown(format!(
            "`{name}` names no model; write `provider/id`"
        )));
    }
    if provider == "scripted" {
        return Ok(scripted(id));
    }
    if let Some(api) = Api::from_name(provider) {
        return Ok(ad_hoc(api, id, base_url));
    }
    let line = find(provider, id).map_or_else(|| find_bare(name), Ok)?;
    from_line(line, base_url)
}

/// A line of the catalog.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    provider: String,
    id: String,
    name: String,
    api: String,
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
#[serde(deny_unknown_fields)]
struct Provider {
    id: String,
    api_key_env: String,
    base_urls: BTreeMap<String, String>,
}

fn from_line(line: &str, base_url: Option<&str>) -> Result<Model, UnknownModel> {
    let entry: Entry = serde_json::from_str(line).expect("the embedded catalog is valid");
    let Some(api) = Api::from_name(&entry.api) else {
        return Err(unknown(format!(
            "`{}/{}` speaks the dialect `{}`, which is not supported yet",
            entry.provider, entry.id, entry.api
        )));
    };
    let provider = PROVIDERS
        .lines()
        .filter_map(|line| serde_json::from_str::<Provider>(line).ok())
        .find(|provider| provider.id == entry.provider)
        .expect("every provider of the catalog is listed");
    let base_url = base_url
        .or_else(|| provider.base_urls.get(api.name()).map(String::as_str))
        .unwrap_or_else(|| api.usual_base_url());
    Ok(Model {
        provider: entry.provider,
        id: entry.id,
        name: entry.name,
        api,
        base_url: base_url.to_owned(),
        api_key_env: vec![provider.api_key_env],
        key_optional: endpoint::is_loopback(base_url),
        context_window: entry.context_window,
        max_output_tokens: entry.max_output_tokens,
        limits_known: true,
        images: entry.images,
        reasoning: entry.reasoning,
        price: entry.price,
        thinking_levels: entry.thinking_levels,
        quirks: entry.quirks,
    })
}

/// An endpoint that no catalog knows: cautious about what it understands.
fn ad_hoc(api: Api, id: &str, base_url: Option<&str>) -> Model {
    let base_url = base_url.unwrap_or_else(|| api.usual_base_url());
    let original = api == Api::OpenaiChat && endpoint::host(base_url) == "api.openai.com";
    Model {
        provider: api.name().to_owned(),
        id: id.to_owned(),
        name: id.to_owned(),
        api,
        base_url: base_url.to_owned(),
        api_key_env: vec![api.usual_key_env().to_owned()],
        key_optional: endpoint::is_loopback(base_url),
        context_window: 128_000,
        max_output_tokens: 16_384,
        limits_known: false,
        images: true,
        reasoning: false,
        price: None,
        thinking_levels: BTreeMap::new(),
        quirks: Quirks {
            developer_role: Some(false),
            max_tokens_field: if original {
                MaxTokensField::MaxCompletionTokens
            } else {
                MaxTokensField::MaxTokens
            },
            store: Some(original),
            prompt_cache_key: original,
            ..Quirks::default()
        },
    }
}

fn scripted(path: &str) -> Model {
    let stem = std::path::Path::new(path).file_stem().map_or_else(
        || path.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    Model {
        provider: "scripted".to_owned(),
        name: stem.clone(),
        id: stem,
        api: Api::OpenaiChat,
        base_url: String::new(),
        api_key_env: Vec::new(),
        key_optional: true,
        context_window: 200_000,
        max_output_tokens: 32_000,
        limits_known: false,
        images: true,
        reasoning: true,
        price: Some(Price::default()),
        thinking_levels: BTreeMap::new(),
        quirks: Quirks::default(),
    }
}

/// The line of `provider/id`.
fn find(provider: &str, id: &str) -> Option<&'static str> {
    if provider.contains('"') || id.contains('"') {
        return None;
    }
    let start = format!("\n{{\"provider\":\"{provider}\",\"id\":\"{id}\",");
    let at = MODELS.find(&start)?;
    MODELS.get(at + 1..)?.lines().next()
}

/// The line of an id that only one provider has.
fn find_bare(name: &str) -> Result<&'static str, UnknownModel> {
    let mut lines = MODELS
        .lines()
        .filter(|line| names_of(line).is_some_and(|(_, id)| id == name));
    let Some(first) = lines.next() else {
        let nearest = nearest(name);
        let hint = match nearest.as_slice() {
            [] => "a model is written `provider/id`".to_owned(),
            names => format!("did you mean {}?", quoted(names)),
        };
        return Err(UnknownModel {
            message: format!("unknown model `{name}`; {hint}"),
            nearest,
        });
    };
    let others: Vec<&str> = lines.collect();
    if others.is_empty() {
        return Ok(first);
    }
    let nearest: Vec<String> = std::iter::once(first)
        .chain(others)
        .filter_map(names_of)
        .map(|(provider, id)| format!("{provider}/{id}"))
        .collect();
    Err(UnknownModel {
        message: format!(
            "several providers have `{name}`; write one of {}",
            quoted(&nearest)
        ),
        nearest,
    })
}

/// Provider and id of a line, without parsing it.
fn names_of(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("{\"provider\":\"")?;
    let (provider, rest) = rest.split_once("\",\"id\":\"")?;
    let (id, _) = rest.split_once('"')?;
    Some((provider, id))
}

fn nearest(name: &str) -> Vec<String> {
    let wanted = name.to_ascii_lowercase();
    let mut scored: Vec<(f64, String)> = MODELS
        .lines()
        .filter_map(names_of)
        .map(|(provider, id)| {
            let full = format!("{provider}/{id}");
            let score =
                strsim::normalized_damerau_levenshtein(&wanted, &full.to_ascii_lowercase()).max(
                    strsim::normalized_damerau_levenshtein(&wanted, &id.to_ascii_lowercase()),
                );
            (score, full)
        })
        .filter(|(score, _)| *score >= 0.6)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

fn quoted(names: &[String]) -> String {
    names
        .iter()
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn unknown(message: String) -> UnknownModel {
    UnknownModel {
        message,
        nearest: Vec::new(),
    }
}
