//! What the text of a reply must be, in the words of each dialect.

use serde::Serialize;
use serde_json::Value;

use crate::model::{Request, ResponseFormat};

/// What a schema is called where it must have a name.
const NAME: &str = "answer";

/// A chat's `response_format`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ChatFormat<'a> {
    JsonObject,
    JsonSchema { json_schema: NamedSchema<'a> },
}

/// The `text` of a request for a response.
#[derive(Serialize)]
pub(super) struct ResponsesText<'a> {
    format: ResponsesFormat<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesFormat<'a> {
    JsonObject,
    JsonSchema(NamedSchema<'a>),
}

/// Anthropic's `output_config.format`.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum AnthropicFormat<'a> {
    JsonSchema { schema: &'a Value },
}

/// The fields of Google's generation config.
#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct GeminiFormat<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
}

#[derive(Serialize)]
pub(super) struct NamedSchema<'a> {
    name: &'static str,
    schema: &'a Value,
    strict: bool,
}

pub(super) fn chat(request: &Request) -> Option<ChatFormat<'_>> {
    Some(match request.response_format.as_ref()? {
        ResponseFormat::JsonObject => ChatFormat::JsonObject,
        ResponseFormat::JsonSchema { schema, strict } => ChatFormat::JsonSchema {
            json_schema: named(schema, *strict),
        },
    })
}

pub(super) fn responses(request: &Request) -> Option<ResponsesText<'_>> {
    let format = match request.response_format.as_ref()? {
        ResponseFormat::JsonObject => ResponsesFormat::JsonObject,
        ResponseFormat::JsonSchema { schema, strict } => {
            ResponsesFormat::JsonSchema(named(schema, *strict))
        }
    };
    Some(ResponsesText { format })
}

pub(super) fn anthropic(request: &Request) -> Option<AnthropicFormat<'_>> {
    match request.response_format.as_ref()? {
        // There is nothing of the kind.
        ResponseFormat::JsonObject => None,
        ResponseFormat::JsonSchema { schema, .. } => Some(AnthropicFormat::JsonSchema { schema }),
    }
}

pub(super) fn gemini(request: &Request) -> GeminiFormat<'_> {
    let json = Some("application/json");
    match &request.response_format {
        None => GeminiFormat::default(),
        Some(ResponseFormat::JsonObject) => GeminiFormat {
            response_mime_type: json,
            response_json_schema: None,
        },
        Some(ResponseFormat::JsonSchema { schema, .. }) => GeminiFormat {
            response_mime_type: json,
            response_json_schema: Some(schema),
        },
    }
}

fn named(schema: &Value, strict: bool) -> NamedSchema<'_> {
    NamedSchema {
        name: NAME,
        schema,
        strict,
    }
}
