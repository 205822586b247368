//! Models of which nobody says anything: an endpoint that only its dialect
//! describes, and a script.

use std::collections::BTreeMap;
use std::path::Path;

use crate::model::description::{Api, Extras, MaxTokensField, Model, Price, Quirks, Source};
use crate::model::{embedded, endpoint};

/// The window of a model of which nobody says it.
const WINDOW_TOKENS: u64 = 128_000;
/// The output cap of a model of which nobody says it.
pub(super) const OUTPUT_TOKENS: u64 = 16_384;

/// An endpoint that no catalog knows: cautious about what it understands.
pub(super) fn ad_hoc(api: Api, id: &str, base_url: &str) -> Model {
    let original = api == Api::OpenaiChat && endpoint::host(base_url) == "api.openai.com";
    let api_key_env = api.usual_key_env();
    Model {
        provider: api.name().to_owned(),
        id: id.to_owned(),
        name: id.to_owned(),
        api,
        base_url: base_url.to_owned(),
        base_url_env: embedded::base_url_env(api_key_env),
        api_key_env: vec![api_key_env.to_owned()],
        key_optional: endpoint::is_loopback(base_url),
        context_window: WINDOW_TOKENS,
        max_output_tokens: OUTPUT_TOKENS,
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
            prompt_cache_key: original.then_some(true),
            ..Quirks::default()
        },
        extras: Extras::default(),
        source: Source::AdHoc,
    }
}

/// The model that a script plays.
pub(super) fn scripted(path: &str) -> Model {
    let stem = Path::new(path).file_stem().map_or_else(
        || path.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    );
    Model {
        provider: "scripted".to_owned(),
        name: stem.clone(),
        id: stem,
        api: Api::OpenaiChat,
        base_url: String::new(),
        base_url_env: None,
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
        extras: Extras::default(),
        source: Source::Script,
    }
}
