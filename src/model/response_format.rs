//! What the text of a reply must be, as far as the provider can see to it.
//!
//! Whether a provider is asked is decided here, by dialect, model and schema;
//! how it is written is the dialects' own. Whoever asks checks the text anyway.

use std::sync::Arc;

use serde_json::Value;

use super::description::{Api, Model, StructuredOutput};
use super::endpoint;
use super::error::{ModelError, ModelErrorKind};
use super::schema_subset::{CLOSED, STRICT};
use super::{ToolDefinition, wire};

/// What a provider is asked to make of the text of a reply.
#[derive(Debug, Clone, PartialEq)]
pub enum ResponseFormat {
    /// Any JSON object.
    JsonObject,
    /// A JSON document that fits a schema.
    JsonSchema {
        /// The schema, whose root is an object.
        schema: Arc<Value>,
        /// Whether the schema keeps the rules under which the dialect promises
        /// that the text fits; only OpenAI's tell.
        strict: bool,
    },
}

/// Words of an endpoint that does not want to be asked.
const REFUSALS: &[&str] = &[
    "response_format",
    "response format",
    "text.format",
    "output_config",
    "output_format",
    "output format",
    "structured output",
    "json_schema",
    "json schema",
    "json_object",
    "responsejsonschema",
    "response_json_schema",
    "responsemimetype",
    "response_mime_type",
    "response mime type",
    "grammar",
    "specified schema",
    "schema is too complex",
];

impl ResponseFormat {
    /// What `model` is asked for in a conversation with these tools; none where
    /// words have to do.
    ///
    /// The answer must not depend on the step: another one would cost the
    /// provider's prompt cache.
    pub fn of(model: &Model, schema: &Arc<Value>, tools: &[ToolDefinition]) -> Option<Self> {
        // Every provider wants an object at the top.
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return None;
        }
        let asked = model
            .quirks
            .structured_output
            .unwrap_or_else(|| usual(model, tools));
        match (asked, model.api) {
            (StructuredOutput::None, _)
            | (StructuredOutput::JsonObject, Api::AnthropicMessages) => None,
            (StructuredOutput::JsonObject, _) => Some(Self::JsonObject),
            (StructuredOutput::JsonSchema, Api::AnthropicMessages) if !CLOSED.fits(schema) => None,
            (StructuredOutput::JsonSchema, _) => Some(Self::JsonSchema {
                strict: STRICT.fits(schema),
                schema: without_dialect(schema),
            }),
        }
    }

    /// Whether the provider sees the schema.
    pub fn shows_schema(&self) -> bool {
        matches!(self, Self::JsonSchema { .. })
    }

    /// Whether an endpoint refused a request because of what it was asked to
    /// make of the text.
    pub fn is_refused_by(error: &ModelError) -> bool {
        if error.kind != ModelErrorKind::InvalidRequest {
            return false;
        }
        let message = error.message.to_lowercase();
        REFUSALS.iter().any(|words| message.contains(words))
    }
}

/// What an endpoint takes where nobody says so.
///
/// Many chat servers answer in JSON at once when they are asked for it, and
/// never call a tool: a server that is not known is asked in words.
fn usual(model: &Model, tools: &[ToolDefinition]) -> StructuredOutput {
    let knows = match model.api {
        Api::AnthropicMessages => model.provider == "anthropic",
        Api::OpenaiResponses => {
            let older = ["gpt-4", "gpt-4o-2024-05-13"].contains(&model.id.as_str())
                || ["gpt-4-", "gpt-3"]
                    .iter()
                    .any(|old| model.id.starts_with(old));
            matches!(model.provider.as_str(), "openai" | "xai") && !older
        }
        Api::OpenaiChat => endpoint::host(&model.base_url) == "api.openai.com",
        // The second generation refuses it beside functions.
        Api::GoogleGenerativeAi => {
            let id = model.id.strip_prefix("models/").unwrap_or(&model.id);
            wire::is_modern_gemini(model) || (tools.is_empty() && id.starts_with("gemini-2.5"))
        }
    };
    if knows {
        StructuredOutput::JsonSchema
    } else {
        StructuredOutput::None
    }
}

/// Which draft of JSON Schema it is means nothing to providers, and some refuse it.
fn without_dialect(schema: &Arc<Value>) -> Arc<Value> {
    if schema.get("$schema").is_none() {
        return Arc::clone(schema);
    }
    let mut schema = Value::clone(schema);
    if let Some(fields) = schema.as_object_mut() {
        fields.shift_remove("$schema");
    }
    Arc::new(schema)
}
