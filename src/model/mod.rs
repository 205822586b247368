//! One reply from a language model: requests, streams, dialects, errors.
//!
//! [`Client::send`] opens one call, [`Reply::next`] streams it,
//! [`Assembler`] folds the stream into a message. Whether a failed call is
//! tried again is decided by [`RetryPolicy`] and done in the engine, once.

mod assemble;
mod assumed;
mod body;
mod call;
mod cassette;
mod catalog;
mod classify;
mod client;
mod description;
mod embedded;
mod endpoint;
mod error;
mod http;
mod known;
mod own;
mod proxy;
mod response_format;
mod retry;
mod said;
mod schema_subset;
mod script;
mod scripted;
mod sse;
mod stream;
mod tls;
mod transport;
pub mod wire;

pub use assemble::Assembler;
pub use body::ReplyBody;
pub use cassette::{
    CASSETTE_BYTES_MAX, Cassette, CassetteError, Places, Recording, Replay, Talk, TapedCall,
    TapedOutput, TooLarge, ToolsFrom,
};
pub use catalog::{Catalog, ListedProvider, UnknownModel, ids, resolve};
pub use classify::{body_error, http_error, says_overflow};
pub use client::{Client, ClientOptions, Reply};
pub use description::{
    Api, ExtraHeader, Extras, KeyPlace, MaxTokensField, Model, Price, Quirks, Source,
    StructuredOutput, ThinkingFormat, Tier,
};
pub use embedded::as_of;
pub(crate) use embedded::{has_built_in_url, is_built_in};
pub use endpoint::without_login;
pub(crate) use endpoint::{check as check_base_url, check_header, is_header_value, login_secrets};
pub use error::{ModelError, ModelErrorKind};
pub use http::retry_after;
pub use own::{
    ModelDefaults, ModelSection, OwnProvider, PriceSection, ProviderSection, ProvidersFile,
    TierSection,
};
pub use proxy::{Proxies, Proxy};
pub use response_format::ResponseFormat;
pub use retry::{GiveUp, RetryDecision, RetryPolicy};
pub use script::{Script, ScriptError};
pub use sse::{FRAME_BYTES_MAX, Frame, SseDecoder};
pub use tls::Authorities;

use std::sync::Arc;

use serde_json::Value;

use crate::message::{Messages, StopReason, Usage};

/// One call of a model.
#[derive(Debug, Clone)]
pub struct Request {
    /// The system prompt.
    pub system: String,
    /// The conversation, oldest first; never empty, never ending with a reply.
    pub messages: Messages,
    /// The tools, sorted by name; empty forbids calls.
    pub tools: Arc<[ToolDefinition]>,
    /// How much to think, clamped to the model.
    pub thinking: ThinkingLevel,
    /// The most tokens to answer with.
    pub max_output_tokens: u64,
    /// The sampling temperature, where the model takes one.
    pub temperature: Option<f64>,
    /// What the provider is asked to make of the text.
    pub response_format: Option<ResponseFormat>,
    /// The session, for the provider's prompt cache.
    pub session_id: String,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The arguments as a JSON Schema object.
    pub parameters: Value,
}

/// How much a model thinks before it answers.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ThinkingLevel {
    Off,
    Minimal,
    Low,
    #[default]
    Medium,
    High,
    Xhigh,
    Max,
}

impl ThinkingLevel {
    /// All levels, from the least to the most.
    pub const ALL: [Self; 7] = [
        Self::Off,
        Self::Minimal,
        Self::Low,
        Self::Medium,
        Self::High,
        Self::Xhigh,
        Self::Max,
    ];

    /// The level with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }

    /// The name in files and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// A piece of a streamed reply. `index` numbers the blocks of the reply.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamEvent {
    /// The reply begins.
    Start {
        /// The model that answers, when the provider tells.
        model: Option<String>,
    },
    /// A block of text begins.
    TextStart {
        /** Block. */
        index: usize,
    },
    /// More text.
    TextDelta {
        /** Block. */
        index: usize,
        /** What is new. */
        delta: String,
    },
    /// The block is whole.
    TextEnd {
        /** Block. */
        index: usize,
    },
    /// A block of thinking begins.
    ThinkingStart {
        /** Block. */
        index: usize,
    },
    /// More thinking.
    ThinkingDelta {
        /** Block. */
        index: usize,
        /** What is new. */
        delta: String,
    },
    /// The block is whole.
    ThinkingEnd {
        /** Block. */
        index: usize,
        /** To be sent back. */
        signature: Option<String>,
        /** The signature is all there is. */
        redacted: bool,
    },
    /// A tool call begins.
    ToolCallStart {
        /** Block. */
        index: usize,
        /** May be empty. */
        id: String,
        /** The tool. */
        name: String,
    },
    /// More of the arguments' JSON text.
    ToolCallDelta {
        /** Block. */
        index: usize,
        /** What is new. */
        delta: String,
    },
    /// The call is whole.
    ToolCallEnd {
        /** Block. */
        index: usize,
    },
    /// What the provider signs a block of text or a call with; thinking has its
    /// own at its end.
    Signature {
        /** Block. */
        index: usize,
        /** To be sent back with the block. */
        signature: String,
    },
    /// Something was no text, half a character perhaps; U+FFFD stands for it.
    Replaced,
    /// The usage so far; a later one replaces it.
    Usage(Usage),
    /// The reply is whole.
    Stop(StopReason),
}
