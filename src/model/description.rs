//! A model: how to reach it, what it can do, what it costs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::message::{Cost, Usage};
use crate::model::ThinkingLevel;
use crate::model::endpoint;

/// A wire dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Anthropic's messages.
    AnthropicMessages,
    /// The chat completions of OpenAI and of everybody who copied them.
    OpenaiChat,
    /// OpenAI's responses.
    OpenaiResponses,
    /// Google's generative language API.
    GoogleGenerativeAi,
}

impl Api {
    /// The name in catalogs, sessions and model ids.
    pub fn name(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "anthropic-messages",
            Self::OpenaiChat => "openai-chat",
            Self::OpenaiResponses => "openai-responses",
            Self::GoogleGenerativeAi => "google-generative-ai",
        }
    }

    /// The dialect of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [
            Self::AnthropicMessages,
            Self::OpenaiChat,
            Self::OpenaiResponses,
            Self::GoogleGenerativeAi,
        ]
        .into_iter()
        .find(|api| api.name() == name)
    }

    /// Whether a session means this dialect by `name`, which may be pi's.
    pub fn is_named(self, name: &str) -> bool {
        self.name() == name || (self == Self::OpenaiChat && name == "openai-completions")
    }

    pub(super) fn usual_base_url(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "https://api.anthropic.com",
            Self::OpenaiChat | Self::OpenaiResponses => "https://api.openai.com/v1",
            Self::GoogleGenerativeAi => "https://generativelanguage.googleapis.com/v1beta",
        }
    }

    pub(super) fn usual_key_env(self) -> &'static str {
        match self {
            Self::AnthropicMessages => "ANTHROPIC_API_KEY",
            Self::OpenaiChat | Self::OpenaiResponses => "OPENAI_API_KEY",
            Self::GoogleGenerativeAi => "GEMINI_API_KEY",
        }
    }
}

/// A model and how to reach it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Model {
    /// The provider's id.
    pub provider: String,
    /// The id at the provider.
    pub id: String,
    /// For people.
    pub name: String,
    /// The dialect.
    pub api: Api,
    /// Where the dialect's paths start.
    pub base_url: String,
    /// The variable that may move the base URL, beside that of the key.
    pub base_url_env: Option<String>,
    /// Environment variables that may hold the key; the first one set counts.
    pub api_key_env: Vec<String>,
    /// Whether calls work without a key.
    pub key_optional: bool,
    /// The window in tokens, input and output together.
    pub context_window: u64,
    /// The most tokens of one reply.
    pub max_output_tokens: u64,
    /// Whether the two numbers above are known rather than assumed.
    pub limits_known: bool,
    /// Whether it sees images.
    pub images: bool,
    /// Whether it can think before it answers.
    pub reasoning: bool,
    /// The price; none when it is unknown.
    pub price: Option<Price>,
    /// What to send for a level; a level with `None` is not offered.
    pub thinking_levels: BTreeMap<ThinkingLevel, Option<String>>,
    /// How the endpoint differs from its dialect.
    pub quirks: Quirks,
    /// What a call carries besides what its dialect says. It may hold secrets,
    /// so that it is never written.
    #[serde(skip)]
    pub extras: Extras,
    /// Who knows it.
    pub source: Source,
}

/// Who knows a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The catalog, which is built in.
    Catalog,
    /// The user's own file of providers, alone or over the catalog.
    Providers,
    /// Nobody: its name says a dialect, and all else is assumed.
    #[default]
    AdHoc,
    /// A script plays it.
    Script,
}

/// What a call of an endpoint carries besides what its dialect says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extras {
    /// A file with the key, absolute, for when no variable has it.
    pub key_file: Option<PathBuf>,
    /// Where the key goes.
    pub key_place: KeyPlace,
    /// More headers.
    pub headers: Vec<ExtraHeader>,
    /// Query parameters of the address.
    pub query: Vec<(String, String)>,
}

/// Where in a call its key goes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum KeyPlace {
    /// Where the dialect says.
    #[default]
    Dialect,
    /// Into this header; behind `Bearer ` when it is `authorization`.
    Header(String),
    /// Into this query parameter.
    Query(String),
}

/// A header of an endpoint's own. Its value is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct ExtraHeader {
    /// Its name, in lower case.
    pub name: String,
    /// The variable that its value comes from, if it comes from one.
    pub env: Option<String>,
    /// The value; none when the variable is not set.
    pub value: Option<String>,
}

impl fmt::Debug for ExtraHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ***", self.name)
    }
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
    /// Other prices for long prompts.
    #[serde(default)]
    pub tiers: Vec<Tier>,
}

impl Price {
    /// Whether nothing costs anything.
    pub fn is_free(&self) -> bool {
        let free = |prices: [f64; 4]| prices.iter().all(|price| *price == 0.0);
        free([self.input, self.output, self.cache_read, self.cache_write])
            && self
                .tiers
                .iter()
                .all(|tier| free([tier.input, tier.output, tier.cache_read, tier.cache_write]))
    }
}

/// The price of a whole call whose prompt is longer than a threshold.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tier {
    /// Prompt tokens, cached or not, above which it holds.
    pub input_tokens_above: u64,
    /// Uncached input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Cache reads.
    pub cache_read: f64,
    /// Cache writes.
    pub cache_write: f64,
}

/// How an endpoint differs from its dialect.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quirks {
    /// Thinking is asked for as an effort instead of a budget.
    pub adaptive_thinking: bool,
    /// `false`: a temperature is refused.
    pub temperature: Option<bool>,
    /// `false`: the system prompt must not come as a developer message.
    pub developer_role: Option<bool>,
    /// The name of the output cap.
    pub max_tokens_field: MaxTokensField,
    /// `false`: there is no `reasoning_effort`.
    pub reasoning_effort: Option<bool>,
    /// `false`: there is no `store`.
    pub store: Option<bool>,
    /// How thinking is asked for.
    pub thinking_format: ThinkingFormat,
    /// Thinking must be sent back as `reasoning_content`.
    pub echo_reasoning_content: bool,
    /// Whether there is a `prompt_cache_key`; by default the Responses API has
    /// one.
    pub prompt_cache_key: Option<bool>,
    /// There is a `session_id`, which keeps a conversation where it is cached.
    pub session_id: bool,
    /// Requests go on to Anthropic: they take its marks of the prompt cache, and
    /// need tools wherever there are calls.
    pub relays_anthropic: bool,
    /// Ids of calls must be nine letters or digits.
    pub nine_letter_ids: bool,
    /// `false`: the definition of a tool must not say `strict`.
    pub strict_tools: Option<bool>,
    /// What it can be asked to make of the text, besides tools; none is what is
    /// usual for the provider.
    pub structured_output: Option<StructuredOutput>,
}

/// What an endpoint can be asked to make of the text of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StructuredOutput {
    /// Nothing.
    None,
    /// A JSON object of any shape.
    JsonObject,
    /// A JSON document that fits a schema.
    JsonSchema,
}

/// The name of the output cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum MaxTokensField {
    MaxTokens,
    #[default]
    MaxCompletionTokens,
}

/// How a chat endpoint is asked to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ThinkingFormat {
    /// `reasoning_effort`.
    #[default]
    Openai,
    /// `reasoning: {effort}`.
    Openrouter,
    /// `reasoning: {enabled}`.
    Together,
    /// `thinking: {type}`.
    Zai,
    /// `thinking: {type}`.
    Deepseek,
}

/// A model of which nothing is known; what a recording does not say is taken
/// from here.
impl Default for Model {
    fn default() -> Self {
        Self {
            provider: String::new(),
            id: String::new(),
            name: String::new(),
            api: Api::OpenaiChat,
            base_url: String::new(),
            base_url_env: None,
            api_key_env: Vec::new(),
            key_optional: true,
            context_window: 0,
            max_output_tokens: 0,
            limits_known: false,
            images: false,
            reasoning: false,
            price: None,
            thinking_levels: BTreeMap::new(),
            quirks: Quirks::default(),
            extras: Extras::default(),
            source: Source::default(),
        }
    }
}

impl Model {
    /// `provider/id`.
    pub fn full_id(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// The offered level nearest to `level`: upward first, then downward.
    pub fn clamp_thinking(&self, level: ThinkingLevel) -> ThinkingLevel {
        let upward = ThinkingLevel::ALL.iter().filter(|other| **other >= level);
        let downward = ThinkingLevel::ALL
            .iter()
            .rev()
            .filter(|other| **other < level);
        upward
            .chain(downward)
            .copied()
            .find(|level| self.offers(*level))
            .unwrap_or(ThinkingLevel::Off)
    }

    /// Whether the model can be asked for exactly this level.
    pub fn offers(&self, level: ThinkingLevel) -> bool {
        if !self.reasoning {
            return level == ThinkingLevel::Off;
        }
        match self.thinking_levels.get(&level) {
            Some(name) => name.is_some(),
            // The two highest exist only where the catalog says so.
            None => level < ThinkingLevel::Xhigh,
        }
    }

    /// What the endpoint calls `level`.
    pub fn level_name(&self, level: ThinkingLevel) -> &str {
        match self.thinking_levels.get(&level) {
            Some(Some(name)) => name,
            Some(None) | None => level.name(),
        }
    }

    /// Whether a call of it costs nothing, whatever its usage.
    pub fn is_free(&self) -> bool {
        self.price.as_ref().is_some_and(Price::is_free)
    }

    /// What `usage` costs; none when the price is unknown.
    pub fn cost(&self, usage: &Usage) -> Option<Cost> {
        let price = self.price.as_ref()?;
        let prompt = usage.prompt_tokens();
        let tier = price
            .tiers
            .iter()
            .filter(|tier| prompt > tier.input_tokens_above)
            .max_by_key(|tier| tier.input_tokens_above);
        let (input, output, cache_read, cache_write) = match tier {
            Some(tier) => (tier.input, tier.output, tier.cache_read, tier.cache_write),
            None => (
                price.input,
                price.output,
                price.cache_read,
                price.cache_write,
            ),
        };
        let mut cost = Cost {
            input: dollars(usage.input, input),
            output: dollars(usage.output, output),
            cache_read: dollars(usage.cache_read, cache_read),
            cache_write: dollars(usage.cache_write, cache_write),
            total: 0.0,
        };
        cost.total = cost.input + cost.output + cost.cache_read + cost.cache_write;
        Some(cost)
    }

    /// The model at another endpoint.
    #[must_use]
    pub fn with_base_url(self, base_url: String) -> Self {
        Self { base_url, ..self }.with_key_need()
    }

    /// The model, needing a key unless none can be found for it or its endpoint
    /// is on this machine.
    pub(super) fn with_key_need(mut self) -> Self {
        self.key_optional = self.key_sources().is_empty() || endpoint::is_loopback(&self.base_url);
        self
    }

    /// Where the key is looked for, for people: variables, then the file.
    pub fn key_sources(&self) -> Vec<String> {
        let file = self.extras.key_file.as_ref();
        let file = file.map(|path| path.display().to_string());
        self.api_key_env.iter().cloned().chain(file).collect()
    }

    /// Whether a key would travel unencrypted to another machine.
    pub fn sends_key_in_clear(&self) -> bool {
        self.base_url.starts_with("http://") && !endpoint::is_loopback(&self.base_url)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "token counts are far below 2^52"
)]
fn dollars(tokens: u64, per_million: f64) -> f64 {
    tokens as f64 * per_million / 1_000_000.0
}
