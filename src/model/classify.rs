//! Which kind of error an HTTP status and a provider's words stand for.
//!
//! Status digits count only as status codes: the digits of a request id never
//! decide anything. Phrases are compared without regard to case.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::model::error::{ModelError, ModelErrorKind};

/// Words that mean a limit of rate, whatever else the message says.
const THROTTLING: &[&str] = &[
    "throttling",
    "rate limit",
    "rate_limit",
    "too many requests",
    "tokens per min",
    "requests per min",
];

/// Words that mean that the prompt is too long.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "reduce the length of the messages",
    "exceeds the available context size",
    "greater than the context length",
    "context window exceeds limit",
    "exceeded model token limit",
    "model_context_window_exceeded",
    "context_length_exceeded",
    "context length exceeded",
    "too many tokens",
    "token limit exceeded",
];

/// Pairs of words that mean it when the second follows the first.
const OVERFLOW_PAIRS: &[(&str, &str)] = &[
    ("input token count", "exceeds the maximum"),
    ("too large for model with", "maximum context length"),
    ("prompt too long", "exceeded"),
];

/// Words that mean it when a number follows at once.
const OVERFLOW_NUMBERS: &[&str] = &[
    "maximum prompt length is ",
    "maximum context length is ",
    "exceeds the limit of ",
];

/// Words that mean that money is the problem.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient quota",
    "exceeded your current quota",
    "billing_error",
    "billing_hard_limit",
    "billing hard limit",
    "billing_not_active",
    "credit balance is too low",
    "insufficient credits",
    "insufficient_credits",
    "insufficient balance",
    "insufficient_balance",
    "insufficient funds",
    "payment required",
    "payment_required",
    "spend limit",
    "spending limit",
    "spending cap",
    "usage limits",
    "usage_limit_reached",
    "out of credits",
    "quota exceeded for quota metric 'generate content api requests per day",
];

/// Words that mean a wrong key, where the status says only that the request is.
const KEY: &[&str] = &["api key not valid", "api_key_invalid", "api key expired"];

/// Words that mean a filter.
const FILTER: &[&str] = &[
    "flagged as potentially violating",
    "content_filter",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "content management policy",
    "data_inspection_failed",
];

/// Words that mean that the provider has too much to do.
const OVERLOAD: &[&str] = &[
    "overloaded",
    "server_overloaded",
    "engine_overloaded",
    "currently overloaded",
    "at capacity",
    "capacity_exceeded",
];

/// Whether `text` says that the prompt is too long for the model.
pub fn says_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    if holds(&text, THROTTLING) {
        return false;
    }
    holds(&text, OVERFLOW)
        || OVERFLOW_PAIRS.iter().any(|(first, second)| {
            text.find(first)
                .is_some_and(|at| text.get(at..).is_some_and(|rest| rest.contains(second)))
        })
        || OVERFLOW_NUMBERS.iter().any(|phrase| {
            text.match_indices(phrase).any(|(at, _)| {
                text.get(at + phrase.len()..)
                    .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
            })
        })
}

/// The error that an answer other than 200 stands for. `body` may be cut.
pub fn http_error(status: u16, body: &str) -> ModelError {
    let said = Said::parse(body);
    let kind = kind_of_status(status, &said.haystack());
    let message = match said.message {
        Some(message) => message,
        None if status_is_redirect(status) => "the provider answered with a redirect".to_owned(),
        None => readable(body).unwrap_or_else(|| "no explanation".to_owned()),
    };
    let mut error = ModelError::new(kind, message)
        .with_status(status)
        .with_code(said.code);
    error.retry_after = said.retry_after.filter(|_| error.is_retryable());
    match status {
        300..=399 => error
            .with_hint("redirects are not followed, because the key would travel; check base_url"),
        404 => error.with_hint("check the model's id and base_url"),
        407 => error
            .permanent()
            .with_hint("a proxy asks for a login; check HTTPS_PROXY and NO_PROXY"),
        _ => error,
    }
}

/// The error that an error object inside a stream or a 200 body stands for.
pub fn body_error(body: &str) -> ModelError {
    let said = Said::parse(body);
    let text = said.haystack();
    let kind = said
        .status
        .filter(|status| (400..600).contains(status))
        .map_or_else(
            || kind_of_words(&text),
            |status| kind_of_status(status, &text),
        );
    let mut error = ModelError::new(
        kind,
        said.message
            .unwrap_or_else(|| readable(body).unwrap_or_else(|| "no explanation".to_owned())),
    )
    .with_code(said.code);
    error.retry_after = said.retry_after.filter(|_| error.is_retryable());
    error
}

fn kind_of_status(status: u16, text: &str) -> ModelErrorKind {
    if status == 413 {
        return ModelErrorKind::ContextOverflow;
    }
    if status == 429 && text.contains("resource_exhausted") && is_short_quota(text) {
        return ModelErrorKind::RateLimited;
    }
    if matches!(status, 400 | 402 | 403 | 422 | 429) && holds(text, QUOTA) {
        return ModelErrorKind::Quota;
    }
    match status {
        401 | 403 if holds(text, FILTER) => ModelErrorKind::ContentFilter,
        401 | 403 => ModelErrorKind::Auth,
        400 if holds(text, KEY) => ModelErrorKind::Auth,
        402 => ModelErrorKind::Quota,
        408 => ModelErrorKind::Timeout,
        429 if says_overflow(text) => ModelErrorKind::ContextOverflow,
        429 => ModelErrorKind::RateLimited,
        529 => ModelErrorKind::Overloaded,
        407 | 409 | 425 => ModelErrorKind::Unavailable,
        500..=599 if says_overflow(text) => ModelErrorKind::ContextOverflow,
        500..=599 if holds(text, OVERLOAD) => ModelErrorKind::Overloaded,
        500..=599 => ModelErrorKind::Unavailable,
        400..=499 if says_overflow(text) => ModelErrorKind::ContextOverflow,
        400..=499 if holds(text, FILTER) => ModelErrorKind::ContentFilter,
        _ => ModelErrorKind::InvalidRequest,
    }
}

/// Whether a quota of Google's is one of a minute: its words are those of an
/// account without money, and only the details tell.
fn is_short_quota(text: &str) -> bool {
    let long = holds(text, &["perday", "per day", "limit: 0,", "spending"]);
    !long && holds(text, &["perminute", "per minute", "retry in "])
}

fn kind_of_words(text: &str) -> ModelErrorKind {
    if holds(text, QUOTA) {
        ModelErrorKind::Quota
    } else if holds(text, THROTTLING) {
        ModelErrorKind::RateLimited
    } else if says_overflow(text) {
        ModelErrorKind::ContextOverflow
    } else if holds(text, OVERLOAD) {
        ModelErrorKind::Overloaded
    } else if holds(text, FILTER) {
        ModelErrorKind::ContentFilter
    } else if holds(
        text,
        &[
            "authentication_error",
            "permission_error",
            "invalid_api_key",
            "incorrect api key",
            "api key not valid",
        ],
    ) {
        ModelErrorKind::Auth
    } else if holds(
        text,
        &[
            "invalid_request",
            "not_found_error",
            "model_not_found",
            "invalid_prompt",
            "invalid_image",
            "invalid_base64_image",
            "image_too_large",
            "image_too_small",
            "image_parse_error",
            "image_file_too_large",
            "unsupported_image_media_type",
            "empty_image_file",
        ],
    ) {
        ModelErrorKind::InvalidRequest
    } else if holds(text, &["timeout", "timed out"]) {
        ModelErrorKind::Timeout
    } else {
        ModelErrorKind::Unavailable
    }
}

fn status_is_redirect(status: u16) -> bool {
    (300..400).contains(&status)
}

fn holds(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}

/// A short, single-line form of a body that is no error object.
fn readable(body: &str) -> Option<String> {
    let body = body.trim();
    if body.is_empty() {
        return None;
    }
    if body.starts_with('<') {
        return Some("the answer is a web page, not an answer of a model".to_owned());
    }
    let line: String = body.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(line)
}

/// What an error body says, in whichever of the usual shapes it comes.
#[derive(Default)]
struct Said {
    message: Option<String>,
    code: Option<String>,
    status: Option<u16>,
    /// The names of quotas and reasons, for machines.
    details: String,
    retry_after: Option<Duration>,
}

/// `{"error": {"type", "code", "message"}}`, `{"error": "…"}`, `{"message": "…"}`
/// and `{"detail": …}`; an array of one such object too.
#[derive(Deserialize)]
struct ErrorBody {
    error: Option<Value>,
    message: Option<Value>,
    detail: Option<Value>,
    code: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<Value>,
}

impl Said {
    fn parse(body: &str) -> Self {
        let body = body.trim();
        let parsed = serde_json::from_str::<ErrorBody>(body).or_else(|error| {
            let list: Vec<ErrorBody> = serde_json::from_str(body)?;
            list.into_iter().next().ok_or(error)
        });
        let Ok(parsed) = parsed else {
            return Self::default();
        };
        match &parsed.error {
            Some(Value::Object(error)) => Self {
                message: error
                    .get("message")
                    .map(text_of)
                    .map(|message| with_upstream(message, error.get("metadata"))),
                code: code_of([error.get("code"), error.get("type"), error.get("status")]),
                status: error.get("code").and_then(status_of),
                details: details_of(error.get("details")),
                retry_after: retry_delay_of(error.get("details")),
            },
            Some(Value::String(message)) => Self {
                message: Some(message.clone()),
                code: code_of([parsed.code.as_ref(), parsed.kind.as_ref(), None]),
                status: parsed.code.as_ref().and_then(status_of),
                ..Self::default()
            },
            _ => Self {
                message: parsed
                    .message
                    .as_ref()
                    .or(parsed.detail.as_ref())
                    .map(text_of),
                code: code_of([parsed.code.as_ref(), parsed.kind.as_ref(), None]),
                status: parsed.code.as_ref().and_then(status_of),
                ..Self::default()
            },
        }
    }

    fn haystack(&self) -> String {
        let mut text = self.code.clone().unwrap_or_default();
        text.push(' ');
        text.push_str(self.message.as_deref().unwrap_or_default());
        text.push_str(&self.details);
        text.make_ascii_lowercase();
        text
    }
}

/// Google lists which quota was exceeded, and why a key is refused.
fn details_of(details: Option<&Value>) -> String {
    let details = details.and_then(Value::as_array);
    let mut words = String::new();
    for detail in details.into_iter().flatten() {
        let violations = detail.get("violations").and_then(Value::as_array);
        let quotas = violations.into_iter().flatten();
        let named = quotas.filter_map(|violation| violation.get("quotaId"));
        for word in named.chain(detail.get("reason")).filter_map(Value::as_str) {
            words.push(' ');
            words.push_str(word);
        }
    }
    words
}

/// Google says among the details how long to wait, `34.5s`.
fn retry_delay_of(details: Option<&Value>) -> Option<Duration> {
    let delay = details?
        .as_array()?
        .iter()
        .find_map(|detail| detail.get("retryDelay")?.as_str())?;
    let seconds: f64 = delay.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// Routers put the words of the provider behind them into `metadata.raw`.
fn with_upstream(message: String, metadata: Option<&Value>) -> String {
    match metadata
        .and_then(|metadata| metadata.get("raw"))
        .map(text_of)
    {
        Some(raw) if !raw.is_empty() => format!("{message}: {raw}"),
        _ => message,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The first code that is a word; a number is a status and said elsewhere.
fn code_of(values: [Option<&Value>; 3]) -> Option<String> {
    values
        .into_iter()
        .flatten()
        .find_map(|value| value.as_str())
        .filter(|code| !code.is_empty())
        .map(str::to_owned)
}

fn status_of(value: &Value) -> Option<u16> {
    match value {
        Value::Number(number) => number
            .as_u64()
            .and_then(|status| u16::try_from(status).ok()),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}
