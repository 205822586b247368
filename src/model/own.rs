//! Endpoints of one's own: the file of providers as it is written, and what a
//! provider of it is once its keys and headers are known.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::ThinkingLevel;
use crate::model::assumed;
use crate::model::description::{Api, ExtraHeader, KeyPlace, Model, Price, Quirks, Source, Tier};
use crate::model::embedded::Provider;

/// Providers of one's own, and what is different about those of the catalog.
/// The file belongs to the machine, like the keys: no repository has one.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Providers")]
pub struct ProvidersFile {
    /// The version of the format: 1.
    #[schemars(range(min = 1, max = 1))]
    pub version: u32,
    /// The providers by id. A model is named `provider/id`. The id of a provider
    /// of the catalog changes that one.
    pub providers: BTreeMap<String, ProviderSection>,
}

/// An endpoint, how it is called, and its models.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderSection {
    /// The dialect that the endpoint speaks. By default `openai-chat`, for a
    /// provider of the catalog that of its models.
    pub api: Option<Api>,
    /// Where the dialect's paths start. Needed, except for a provider of the
    /// catalog.
    pub base_url: Option<String>,
    /// The environment variable with the key. Without this and `api_key_file` an
    /// endpoint gets no key.
    pub api_key_env: Option<String>,
    /// A file with the key, for when the variable is not set. `~/` is the home
    /// directory; a relative path starts at this file's directory.
    #[schemars(length(min = 1))]
    pub api_key_file: Option<String>,
    /// The header that carries the key, instead of the dialect's own; behind
    /// `Bearer ` when it is `Authorization`.
    pub api_key_header: Option<String>,
    /// The query parameter that carries the key, instead of a header.
    #[schemars(length(min = 1))]
    pub api_key_query: Option<String>,
    /// More headers of every call.
    pub headers: BTreeMap<String, String>,
    /// More headers, each with the environment variable that has its value.
    pub headers_env: BTreeMap<String, String>,
    /// Query parameters of every call, as `api-version`.
    pub query: BTreeMap<String, String>,
    /// How the endpoint differs from its dialect, for all its models.
    #[schemars(with = "Option<Quirks>")]
    pub quirks: Option<Map<String, Value>>,
    /// What holds for models that say nothing else about it.
    pub defaults: Option<ModelDefaults>,
    /// The models by id, each with what is known of it, or nothing. Without any,
    /// a provider that the catalog does not know takes every id.
    pub models: BTreeMap<String, Option<ModelSection>>,
}

/// What holds for models that say nothing else about it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelDefaults {
    /// The window in tokens, input and output together; otherwise 128000.
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// The most tokens of one reply; otherwise 16384, at most half the window.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// Whether it sees images; otherwise true.
    pub images: Option<bool>,
    /// Whether it can think before it answers; otherwise false.
    pub reasoning: Option<bool>,
    /// What to send for a level of thinking; null: it is not offered.
    #[schemars(schema_with = "levels_schema")]
    pub thinking_levels: Option<BTreeMap<ThinkingLevel, Option<String>>>,
    /// The price; otherwise it is unknown.
    pub price: Option<PriceSection>,
}

/// A model: what differs from the catalog, the provider's defaults and what is
/// assumed otherwise.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSection {
    /// For people.
    pub name: Option<String>,
    /// The dialect, when it is not the provider's.
    pub api: Option<Api>,
    /// Where the dialect's paths start, when it is not the provider's base URL.
    pub base_url: Option<String>,
    /// The window in tokens, input and output together.
    #[schemars(range(min = 1))]
    pub context_window: Option<u64>,
    /// The most tokens of one reply.
    #[schemars(range(min = 1))]
    pub max_output_tokens: Option<u64>,
    /// Whether it sees images.
    pub images: Option<bool>,
    /// Whether it can think before it answers.
    pub reasoning: Option<bool>,
    /// What to send for a level of thinking; null: it is not offered.
    #[schemars(schema_with = "levels_schema")]
    pub thinking_levels: Option<BTreeMap<ThinkingLevel, Option<String>>>,
    /// The price.
    pub price: Option<PriceSection>,
    /// How the endpoint differs from its dialect with this model.
    #[schemars(with = "Option<Quirks>")]
    pub quirks: Option<Map<String, Value>>,
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceSection {
    /// Uncached input.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Output.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Cache reads; as uncached input by default.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cache_read: Option<f64>,
    /// Cache writes; as uncached input by default.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cache_write: Option<f64>,
    /// Other prices for long prompts.
    #[serde(default)]
    pub tiers: Vec<TierSection>,
}

/// The price of a whole call whose prompt is longer than a threshold.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TierSection {
    /// Prompt tokens, cached or not, above which it holds.
    pub input_tokens_above: u64,
    /// Uncached input.
    #[schemars(range(min = 0))]
    pub input: f64,
    /// Output.
    #[schemars(range(min = 0))]
    pub output: f64,
    /// Cache reads; as uncached input by default.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cache_read: Option<f64>,
    /// Cache writes; as uncached input by default.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cache_write: Option<f64>,
}

/// A provider of the file, with what was read for it.
#[derive(Debug, Clone, Default)]
pub struct OwnProvider {
    /// As it is written, and checked.
    pub section: ProviderSection,
    /// The file with the key, absolute.
    pub key_file: Option<PathBuf>,
    /// The headers with their values.
    pub headers: Vec<ExtraHeader>,
}

impl OwnProvider {
    /// A model of which the catalog knows nothing, as far as the provider's
    /// defaults do not say it either.
    pub(super) fn assumed(&self, provider: &str, id: &str) -> Model {
        let built_in = Provider::of(provider);
        let known_api = built_in.as_ref().and_then(|known| known.apis().next());
        let api = self.section.api.or(known_api).unwrap_or(Api::OpenaiChat);
        let known_url = built_in.as_ref().and_then(|known| known.base_url(api));
        let base_url = self.section.base_url.as_deref().or(known_url);
        let mut model = assumed::ad_hoc(api, id, base_url.unwrap_or_default());
        provider.clone_into(&mut model.provider);
        model.base_url_env = built_in.as_ref().and_then(Provider::base_url_env);
        model.api_key_env = built_in
            .map(|known| known.api_key_env)
            .into_iter()
            .collect();
        if let Some(defaults) = &self.section.defaults {
            defaults.clone().describe(&mut model);
        }
        model
    }

    /// `model` with what the provider and `section`, that of the model, say.
    pub(super) fn over(&self, mut model: Model, section: Option<&ModelSection>) -> Model {
        let none = ModelSection::default();
        let (provider, section) = (&self.section, section.unwrap_or(&none));
        model.source = Source::Providers;
        if let Some(api) = section.api.or(provider.api)
            && api != model.api
        {
            model.api = api;
            let known = Provider::of(&model.provider);
            if let Some(url) = known.as_ref().and_then(|known| known.base_url(api)) {
                url.clone_into(&mut model.base_url);
            }
        }
        if let Some(url) = section.base_url.as_ref().or(provider.base_url.as_ref()) {
            url.clone_into(&mut model.base_url);
            model.base_url_env = None;
        }
        if provider.api_key_env.is_some() || self.key_file.is_some() {
            model.api_key_env = provider.api_key_env.iter().cloned().collect();
            model.extras.key_file.clone_from(&self.key_file);
        }
        model.extras.key_place = provider.key_place();
        model.extras.headers.clone_from(&self.headers);
        model.extras.query = provider.query.clone().into_iter().collect();
        for quirks in [&provider.quirks, &section.quirks].into_iter().flatten() {
            model.quirks = with_quirks(model.quirks, quirks);
        }
        if let Some(name) = &section.name {
            name.clone_into(&mut model.name);
        }
        section.facts().describe(&mut model);
        model
    }
}

impl ProviderSection {
    fn key_place(&self) -> KeyPlace {
        match (&self.api_key_header, &self.api_key_query) {
            (Some(header), _) => KeyPlace::Header(header.clone()),
            (None, Some(query)) => KeyPlace::Query(query.clone()),
            (None, None) => KeyPlace::Dialect,
        }
    }
}

impl ModelSection {
    /// What it says of the model itself.
    fn facts(&self) -> ModelDefaults {
        ModelDefaults {
            context_window: self.context_window,
            max_output_tokens: self.max_output_tokens,
            images: self.images,
            reasoning: self.reasoning,
            thinking_levels: self.thinking_levels.clone(),
            price: self.price.clone(),
        }
    }
}

impl ModelDefaults {
    /// Puts what is said here in the place of what `model` says.
    fn describe(self, model: &mut Model) {
        if let Some(window) = self.context_window {
            model.context_window = window;
            model.limits_known = true;
            model.max_output_tokens = model.max_output_tokens.min((window / 2).max(1));
        }
        model.max_output_tokens = self.max_output_tokens.unwrap_or(model.max_output_tokens);
        model.images = self.images.unwrap_or(model.images);
        model.reasoning = self.reasoning.unwrap_or(model.reasoning);
        if let Some(levels) = self.thinking_levels {
            model.thinking_levels = levels;
        }
        if let Some(price) = self.price {
            model.price = Some(price.price());
        }
    }
}

impl PriceSection {
    /// The price, with what is not written filled in.
    pub(super) fn price(&self) -> Price {
        Price {
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write: self.cache_write.unwrap_or(self.input),
            tiers: self.tiers.iter().map(TierSection::tier).collect(),
        }
    }
}

impl TierSection {
    fn tier(&self) -> Tier {
        Tier {
            input_tokens_above: self.input_tokens_above,
            input: self.input,
            output: self.output,
            cache_read: self.cache_read.unwrap_or(self.input),
            cache_write: self.cache_write.unwrap_or(self.input),
        }
    }
}

/// `quirks` with those that are written in the place of its own.
pub(super) fn with_quirks(quirks: Quirks, written: &Map<String, Value>) -> Quirks {
    let mut fields = serde_json::to_value(&quirks).expect("quirks are plain values");
    if let Some(fields) = fields.as_object_mut() {
        fields.extend(written.clone());
    }
    // What is written was checked against the schema of quirks.
    serde_json::from_value(fields).unwrap_or(quirks)
}

/// A map of levels to texts or null.
fn levels_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let levels: Map<String, Value> = ThinkingLevel::ALL
        .iter()
        .map(|level| {
            let name = serde_json::json!({ "type": ["string", "null"] });
            (level.name().to_owned(), name)
        })
        .collect();
    schemars::json_schema!({
        "type": ["object", "null"],
        "properties": levels,
        "additionalProperties": false,
    })
}
