//! What providers are asked for, by model, schema and tools.

use std::sync::Arc;

use agent::model::wire::Encoder;
use agent::model::{
    ModelError, ModelErrorKind, Quirks, ResponseFormat, StructuredOutput, ToolDefinition, resolve,
};
use serde_json::{Value, json};

use crate::support::models;

fn tools() -> Vec<ToolDefinition> {
    vec![ToolDefinition {
        name: "read".to_owned(),
        description: "Reads.".to_owned(),
        parameters: json!({"type": "object"}),
    }]
}

fn strict() -> Value {
    json!({
        "type": "object",
        "properties": {"fixed": {"type": "boolean"}},
        "required": ["fixed"],
        "additionalProperties": false
    })
}

/// `strict`, `loose`, `object`, or nothing.
fn asked(model: &str, schema: Value, tools: &[ToolDefinition]) -> &'static str {
    let own = model.ends_with("/local").then_some("http://127.0.0.1:1/v1");
    let model = resolve(model, own).expect("a model");
    word(ResponseFormat::of(&model, &Arc::new(schema), tools).as_ref())
}

fn word(format: Option<&ResponseFormat>) -> &'static str {
    match format {
        None => "",
        Some(ResponseFormat::JsonObject) => "object",
        Some(ResponseFormat::JsonSchema { strict: true, .. }) => "strict",
        Some(ResponseFormat::JsonSchema { strict: false, .. }) => "loose",
    }
}

#[test]
fn providers_are_asked_where_they_can_beside_tools() {
    let table = [
        ("anthropic/claude-sonnet-5", "strict", "strict"),
        ("openai/gpt-5", "strict", "strict"),
        ("openai/gpt-4-turbo", "", ""),
        ("google/gemini-3-flash-preview", "strict", "strict"),
        ("google/gemini-2.5-flash", "", "strict"),
        ("google/gemma-4-31b-it", "", ""),
        // Nobody knows what these do with tools.
        ("deepseek/deepseek-flash", "", ""),
        ("openai-chat/local", "", ""),
        ("anthropic-messages/local", "", ""),
        ("openai-responses/local", "", ""),
        ("scripted/replies.yaml", "", ""),
    ];
    for (model, with, without) in table {
        assert_eq!(asked(model, strict(), &tools()), with, "{model}");
        assert_eq!(
            asked(model, strict(), &[]),
            without,
            "{model} without tools"
        );
    }
    let own = resolve("openai-chat/gpt-5", Some("https://api.openai.com/v1")).expect("ad hoc");
    let format = ResponseFormat::of(&own, &Arc::new(strict()), &tools());
    assert_eq!(word(format.as_ref()), "strict");
}

#[test]
fn a_quirk_says_what_an_endpoint_takes() {
    let table = [
        ("openai-chat/local", StructuredOutput::JsonSchema, "strict"),
        ("openai-chat/local", StructuredOutput::JsonObject, "object"),
        ("openai/gpt-5", StructuredOutput::None, ""),
        ("openai/gpt-5", StructuredOutput::JsonObject, "object"),
        // It has nothing of the kind.
        (
            "anthropic/claude-sonnet-5",
            StructuredOutput::JsonObject,
            "",
        ),
        (
            "google/gemini-2.5-flash",
            StructuredOutput::JsonSchema,
            "strict",
        ),
    ];
    for (name, quirk, expected) in table {
        let mut model = resolve(name, None).expect("a model");
        model.quirks.structured_output = Some(quirk);
        let format = ResponseFormat::of(&model, &Arc::new(strict()), &tools());
        assert_eq!(word(format.as_ref()), expected, "{name} {quirk:?}");
    }
    let quirks: Quirks =
        serde_json::from_value(json!({"structured_output": "json_object"})).expect("a quirk");
    assert_eq!(quirks.structured_output, Some(StructuredOutput::JsonObject));
}

/// `strict` with another schema of the property `a`.
fn with(a: Value) -> Value {
    json!({"type": "object", "properties": {"a": a}, "required": ["a"], "additionalProperties": false})
}

#[test]
fn a_schema_is_promised_only_within_the_providers_rules() {
    let mut optional = with(json!({"type": "string"}));
    optional["required"] = json!([]);
    let mut open = strict();
    open["additionalProperties"] = json!(true);
    let mut recursive = with(json!({"anyOf": [{"$ref": "#"}, {"type": "null"}]}));
    recursive["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    let mut deep = json!({"type": "string"});
    for _ in 0..12 {
        deep = with(deep);
    }
    // The schema, OpenAI, Anthropic.
    let table = [
        (strict(), "strict", "strict"),
        (json!({"type": "array"}), "", ""),
        (json!({}), "", ""),
        (json!({"type": "object"}), "loose", ""),
        (optional, "loose", "loose"),
        (open, "loose", ""),
        (with(json!({"type": "integer", "minimum": 1})), "strict", ""),
        (with(json!({"type": "string", "minLength": 1})), "loose", ""),
        (
            with(json!({"type": "string", "format": "date"})),
            "strict",
            "strict",
        ),
        (
            with(json!({"type": "string", "format": "iri"})),
            "loose",
            "",
        ),
        (
            with(json!({"type": "array", "items": {"type": "string"}, "minItems": 1})),
            "strict",
            "strict",
        ),
        (
            with(json!({"type": "array", "items": {"type": "string"}, "minItems": 2})),
            "strict",
            "",
        ),
        (with(json!({"enum": ["x", 1, null]})), "strict", "strict"),
        (with(json!({"enum": [{"x": 1}]})), "loose", ""),
        (
            with(json!({"type": ["string", "null"]})),
            "strict",
            "strict",
        ),
        (with(json!({"allOf": [{"type": "string"}]})), "loose", ""),
        (with(json!({"type": "object"})), "loose", ""),
        (with(json!(true)), "loose", ""),
        (with(json!({})), "loose", ""),
        (with(json!({"$ref": "#/properties/b"})), "loose", ""),
        (recursive, "strict", ""),
        (deep, "loose", ""),
    ];
    for (schema, openai, anthropic) in table {
        assert_eq!(
            asked("openai/gpt-5", schema.clone(), &tools()),
            openai,
            "{schema}"
        );
        assert_eq!(
            asked("anthropic/claude-sonnet-5", schema.clone(), &tools()),
            anthropic,
            "{schema}"
        );
    }
}

#[test]
fn the_draft_is_not_sent_on() {
    let mut schema = strict();
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    let model = resolve("openai/gpt-5", None).expect("a model");
    let format = ResponseFormat::of(&model, &Arc::new(schema), &[]);
    let expected = ResponseFormat::JsonSchema {
        schema: Arc::new(strict()),
        strict: true,
    };
    assert_eq!(format, Some(expected));
}

#[test]
fn a_refusal_of_the_format_is_told_from_others() {
    let table = [
        (
            "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            true,
        ),
        (
            "Invalid schema for response_format 'answer': In context=(), 'additionalProperties' is required",
            true,
        ),
        (
            "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
            true,
        ),
        (
            "Function calling with a response mime type: 'application/json' is unsupported",
            true,
        ),
        (
            "Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config'",
            true,
        ),
        (
            "The compiled grammar is too large, which would cause performance issues.",
            true,
        ),
        (
            "The specified schema produces a constraint that has too many states for serving.",
            true,
        ),
        ("Cannot use custom grammar constraints with tools.", true),
        (
            "messages: roles must alternate between \"user\" and \"assistant\"",
            false,
        ),
        (
            "Invalid schema for function 'read': schema must be an object",
            false,
        ),
        ("Unsupported parameter: 'temperature'", false),
    ];
    for (message, refused) in table {
        let error = ModelError::new(ModelErrorKind::InvalidRequest, message);
        assert_eq!(ResponseFormat::is_refused_by(&error), refused, "{message}");
        let other = ModelError::new(ModelErrorKind::Unavailable, message);
        assert!(!ResponseFormat::is_refused_by(&other), "{message}");
    }
}

#[test]
fn the_chat_dialect_says_it_in_its_own_field() {
    let model = models::model("openai-chat/m");
    let body = |format: Option<ResponseFormat>| {
        let mut request = models::request(vec![models::user("go")]);
        request.response_format = format;
        let bytes = Encoder::new(Arc::new(model.clone())).encode(&request);
        serde_json::from_slice::<Value>(&bytes).expect("a body")["response_format"].clone()
    };
    assert_eq!(body(None), Value::Null);
    assert_eq!(
        body(Some(ResponseFormat::JsonObject)),
        json!({"type": "json_object"})
    );
    let format = ResponseFormat::JsonSchema {
        schema: Arc::new(strict()),
        strict: true,
    };
    assert_eq!(
        body(Some(format)),
        json!({"type": "json_schema", "json_schema":
            {"name": "answer", "strict": true, "schema": strict()}})
    );
}
