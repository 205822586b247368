//! What a session may use, and what happens at the end of it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits of a job. All are finite.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Model calls that give a reply, the closing one included.
    pub max_turns: u32,
    /// US dollars.
    pub max_cost_usd: f64,
    /// Whether the task or a flag asked for `max_cost_usd`; the default cap
    /// does not forbid models of unknown price.
    pub cost_cap_asked: bool,
    /// Tokens, input (cached or not) and output.
    pub max_tokens: u64,
    /// Tool calls.
    pub max_tool_calls: u32,
    /// The same call with the same result in a row.
    pub max_repeats: u32,
    /// Denied calls.
    pub max_denials: DenialLimits,
    /// Wall clock of the whole job.
    pub timeout: Duration,
    /// Without a byte from the model or a tool.
    pub idle_timeout: Duration,
    /// One command, unless its call asks for less.
    pub command_timeout: Duration,
    /// The longest wait that a provider may ask for.
    pub max_retry_wait: Duration,
    /// Shares of a limit at which to warn, each between 0 and 1.
    pub warn_at: Vec<f64>,
    /// At the last turn or an almost spent budget.
    pub on_exhausted: OnExhausted,
    /// When the model's price is unknown.
    pub on_unknown_price: OnUnknownPrice,
}

/// Breakers for a model that does not take no for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialLimits {
    /// In a row.
    pub consecutive: u32,
    /// In all.
    pub total: u32,
}

/// What happens when a budget is almost spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnExhausted {
    /// One closing reply without tools, from a reserve.
    #[default]
    WrapUp,
    /// Stop at once.
    Stop,
}

/// What happens when the model's price is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownPrice {
    /// Fail when a cost cap was asked for, else count tokens and warn.
    #[default]
    Auto,
    /// Fail.
    Fail,
    /// Count tokens only.
    TokensOnly,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 60,
            max_cost_usd: 2.0,
            cost_cap_asked: false,
            max_tokens: 3_000_000,
            max_tool_calls: 300,
            max_repeats: 5,
            max_denials: DenialLimits {
                consecutive: 3,
                total: 20,
            },
            timeout: Duration::from_secs(45 * 60),
            idle_timeout: Duration::from_secs(5 * 60),
            command_timeout: Duration::from_secs(2 * 60),
            max_retry_wait: Duration::from_secs(10 * 60),
            warn_at: vec![0.8, 0.95],
            on_exhausted: OnExhausted::WrapUp,
            on_unknown_price: OnUnknownPrice::Auto,
        }
    }
}
