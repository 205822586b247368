//! A model: how to reach it, what it can do, what it costs.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::message::{Cost, Usage};
use crate::model::ThinkingLevel;
use crate::model::endpoint;

/// A wire dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    pub(super) fn from_name(name: &str) -> Option<Self> {
        [
            Self::AnthropicMessages,
            Self::OpenaiChat,
            Self::OpenaiResponses,
            Self::GoogleGenerativeAi,
        ]
        .into_iter()
        .find(|api| api.name() == name)
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
#[derive(Debug, Clone, PartialEq)]
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
}

/// US dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
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

/// The price of a whole call whose prompt is longer than a threshold.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
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
    /// There is a `prompt_cache_key`.
    pub prompt_cache_key: bool,
}

/// The name of the output cap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum MaxTokensField {
    MaxTokens,
    #[default]
    MaxCompletionTokens,
}

/// How a chat endpoint is asked to think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
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
