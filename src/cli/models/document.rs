//! The models as one document, for machines.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

use crate::event::published;
use crate::model::{self, Catalog, Model, Price, Quirks, Source, ThinkingLevel};
use crate::run::Environment;

/// The version of the document.
const VERSION: u32 = 1;

/// What `agent models --json` prints: the models that match, and every provider.
/// `price`, `quirks` and `thinkingLevels` are spelled as in a file of providers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Models")]
pub(in crate::cli) struct ModelsDocument {
    /// The version of the document: 1.
    schema_version: u32,
    /// The date as of which the built-in catalog holds.
    as_of: &'static str,
    /// The file of providers that was read.
    providers_file: Option<String>,
    /// The models, one's own first. A provider that takes any id stands with `*`.
    pub(super) models: Vec<ModelEntry>,
    /// The providers.
    providers: Vec<ProviderEntry>,
}

/// A model.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelEntry {
    /// What to name it by, `provider/id`.
    pub(super) id: String,
    /// The provider's id.
    pub(super) provider: String,
    /// For people.
    pub(super) name: String,
    /// Who knows it.
    source: Source,
    /// The dialect.
    api: &'static str,
    /// Where the dialect's paths start; without a login.
    base_url: String,
    /// The window in tokens, input and output together.
    pub(super) context_window: u64,
    /// The most tokens of one reply.
    pub(super) max_output_tokens: u64,
    /// Whether the two numbers above are known rather than assumed.
    pub(super) limits_known: bool,
    /// Whether it sees images.
    pub(super) images: bool,
    /// Whether it can think before it answers.
    pub(super) reasoning: bool,
    /// The levels of thinking that can be asked for.
    pub(super) thinking: Vec<ThinkingLevel>,
    /// What is sent for a level when that is not its name; null: not offered.
    thinking_levels: BTreeMap<ThinkingLevel, Option<String>>,
    /// US dollars per million tokens; null when the price is unknown.
    pub(super) price: Option<Price>,
    /// How the endpoint differs from its dialect.
    quirks: Quirks,
    /// Its key, which is never shown.
    pub(super) key: KeyEntry,
}

/// Whether there is a key.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeyEntry {
    /// Whether calls need one.
    pub(super) needed: bool,
    /// Whether it is there.
    pub(super) present: bool,
    /// Where it is looked for: variables, then a file.
    sources: Vec<String>,
    /// Why it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// A provider.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ProviderEntry {
    /// The id.
    id: String,
    /// Who knows it.
    source: Source,
    /// The dialects that it speaks, each with its base URL without a login.
    base_urls: BTreeMap<&'static str, String>,
    /// Where its key is looked for: variables, then a file.
    key_sources: Vec<String>,
    /// Whether any id may stand behind its own.
    any_model: bool,
}

impl KeyEntry {
    /// Whether nothing is missing for a call.
    pub(super) fn is_settled(&self) -> bool {
        self.present || !self.needed
    }
}

impl ModelsDocument {
    /// All models and providers of `catalog`, as `environment` lets them be asked.
    pub(super) fn new(catalog: &Catalog, environment: &Environment) -> Self {
        let providers = catalog.providers();
        let any = providers.iter().filter(|provider| provider.any_model);
        let any =
            any.filter_map(|provider| catalog.resolve(&format!("{}/*", provider.id), None).ok());
        let mut keys = Keys {
            environment,
            known: HashMap::new(),
        };
        let models = any.chain(catalog.models());
        Self {
            schema_version: VERSION,
            as_of: model::as_of(),
            providers_file: catalog.file().map(|file| file.display().to_string()),
            models: models
                .map(|model| entry(environment.place(model), &mut keys))
                .collect(),
            providers: providers
                .into_iter()
                .map(|provider| ProviderEntry {
                    id: provider.id,
                    source: provider.source,
                    base_urls: provider
                        .base_urls
                        .into_iter()
                        .map(|(api, url)| (api.name(), model::without_login(&url)))
                        .collect(),
                    key_sources: provider.key_sources,
                    any_model: provider.any_model,
                })
                .collect(),
        }
    }
}

/// The keys that were looked for, each once.
struct Keys<'a> {
    environment: &'a Environment,
    known: HashMap<Vec<String>, Result<bool, String>>,
}

impl Keys<'_> {
    fn of(&mut self, model: &Model) -> KeyEntry {
        let sources = model.key_sources();
        let look = || self.environment.api_key(model).map(|key| key.is_some());
        let found = self.known.entry(sources.clone()).or_insert_with(look);
        KeyEntry {
            needed: !model.key_optional,
            present: *found == Ok(true),
            sources,
            problem: found.clone().err(),
        }
    }
}

fn entry(model: Model, keys: &mut Keys<'_>) -> ModelEntry {
    let offered = ThinkingLevel::ALL.into_iter();
    ModelEntry {
        id: model.full_id(),
        key: keys.of(&model),
        thinking: offered.filter(|level| model.offers(*level)).collect(),
        base_url: model::without_login(&model.base_url),
        api: model.api.name(),
        provider: model.provider,
        name: model.name,
        source: model.source,
        context_window: model.context_window,
        max_output_tokens: model.max_output_tokens,
        limits_known: model.limits_known,
        images: model.images,
        reasoning: model.reasoning,
        thinking_levels: model.thinking_levels,
        price: model.price,
        quirks: model.quirks,
    }
}

/// The schema of the document (JSON Schema 2020-12).
pub(in crate::cli) fn schema() -> Value {
    let schema = SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<ModelsDocument>()
        .to_value();
    published(schema)
}
