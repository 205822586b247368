//! Which kind of error an HTTP status and a provider's words stand for.
//!
//! Status digits count only as status codes: the digits of a request id never
//! decide anything. Phrases are compared without regard to case.

use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::said::{Said, readable};

/// Words that mean a limit of rate, whatever else the message says.
const THROTTLING: &[&str] = &[
    "throttl",
    "rate limit",
    "rate_limit",
    "rate-limit",
    "too many requests",
    "too_many_requests",
    "tokens per min",
    "tokens per hour",
    "tokens per day",
    "requests per min",
    "requests per day",
    "please wait before trying again",
];

/// Words that mean that the prompt is too long.
const OVERFLOW: &[&str] = &[
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "input is too long for requested model",
    "exceeds the context window",
    "exceed context limit",
    "exceed the configured limit",
    "reduce the length of the messages",
    "exceeds the available context size",
    "context size has been exceeded",
    "context size exceeded",
    "exceeds the context length",
    "exceeds the model's maximum context length",
    "greater than the context length",
    "longer than the maximum model length",
    "longer than the model's context length",
    "too long to fit into the model",
    "context window exceeds limit",
    "exceeded model token limit",
    "prompt exceeds max length",
    "number of input tokens exceeds maximum length",
    "range of input length should be",
    "tokens + `max_new_tokens` must be",
    "model_context_window_exceeded",
    "contextwindowexceedederror",
    "context_length_exceeded",
    "context length exceeded",
    "too many tokens",
    "token limit exceeded",
];

/// Pairs of words that mean it when the second follows the first.
const OVERFLOW_PAIRS: &[(&str, &str)] = &[
    ("input token count", "exceeds the maximum"),
    ("input token count", "only supports up to"),
    ("too large for model with", "maximum context length"),
    ("requested tokens", "exceed context window"),
    ("trying to keep the first", "context length of only"),
    ("sum of prompt length", "should not exceed max_num_tokens"),
    ("sum of prompt length", "should not exceed max_seq_len"),
    ("prompt length", "exceeds maximum input length"),
    ("input length", "exceeds maximum input length"),
    ("default_max_tokens", "should be greater than 0"),
];

/// Words that mean it when a number follows at once.
const OVERFLOW_NUMBERS: &[&str] = &[
    "maximum prompt length is ",
    "maximum context length is ",
    "maximum context length: ",
    "exceeds the limit of ",
];

/// Words of a request that is by itself larger than what a minute allows.
const LARGER_THAN_A_MINUTE: &[&str] = &["request too large", "tokens must be reduced"];

/// Words that mean that money is the problem.
const QUOTA: &[&str] = &[
    "insufficient_quota",
    "insufficient quota",
    "exceeded your current quota",
    "exceeded your monthly quota",
    "exceeded_current_quota",
    "billing_error",
    "billing_hard_limit",
    "billing hard limit",
    "billing_not_active",
    "budget_exceeded",
    "budget has been exceeded",
    "credit balance is too low",
    "credit limit exceeded",
    "doesn't have any credits",
    "extra usage is required",
    "insufficient account balance",
    "insufficient credits",
    "insufficient_credits",
    "insufficient balance",
    "insufficient_balance",
    "insufficient funds",
    "out of credits",
    "payment required",
    "payment_required",
    "reached its monthly spending limit",
    "spend limit",
    "spending limit",
    "spending cap",
    "usage limits",
    "usage_limit_reached",
    "arrearage",
    "quota exceeded for quota metric 'generate content api requests per day",
];

/// Words that mean a wrong key, where the status says only that the request is.
const KEY: &[&str] = &[
    "api key not valid",
    "api_key_invalid",
    "api key expired",
    "incorrect api key",
    "invalid api key",
    "invalid_api_key",
];

/// Words that mean a filter.
const FILTER: &[&str] = &[
    "flagged as potentially violating",
    "input was flagged",
    "content_filter",
    "content filtering policy",
    "content_policy_violation",
    "responsibleaipolicyviolation",
    "content management policy",
    "content exists risk",
    "data_inspection_failed",
];

/// Words that mean that the provider has too much to do.
const OVERLOAD: &[&str] = &[
    "overloaded",
    "at capacity",
    "capacity exceeded",
    "capacity_exceeded",
    "high demand",
    "high traffic",
    "server busy",
    "too busy",
];

/// Words that mean that the model wrote a call which its provider could not
/// read; another try may go better.
const BAD_CALL: &[&str] = &["tool_use_failed", "failed to call a function"];

/// Whether `text` says that the prompt is too long for the model.
pub fn says_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    if holds(&text, THROTTLING) {
        return false;
    }
    let followed = |(first, second): &(&str, &str)| {
        text.find(first)
            .is_some_and(|at| text.get(at..).is_some_and(|rest| rest.contains(second)))
    };
    let numbered = |phrase: &&str| {
        text.match_indices(phrase).any(|(at, _)| {
            text.get(at + phrase.len()..)
                .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
        })
    };
    holds(&text, OVERFLOW)
        || OVERFLOW_PAIRS.iter().any(followed)
        || OVERFLOW_NUMBERS.iter().any(numbered)
}

/// The error that an answer other than 200 stands for. `body` may be cut.
pub fn http_error(status: u16, body: &str) -> ModelError {
    let said = Said::parse(body);
    let text = said.haystack();
    let unsaid = match status {
        300..=399 => "the provider answered with a redirect".to_owned(),
        _ => readable(body),
    };
    let error = said.error(kind_of_status(status, &text), unsaid);
    let error = hinted(error.with_status(status), &text);
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
    hinted(said.error(kind, readable(body)), &text)
}

/// A limit of a minute that is smaller than the request stays so.
fn hinted(error: ModelError, text: &str) -> ModelError {
    if error.kind != ModelErrorKind::RateLimited || !holds(text, LARGER_THAN_A_MINUTE) {
        return error;
    }
    let mut error = error.permanent().with_hint(
        "the request is larger than what the account may send in a minute: raise the account's \
         limit, or keep the conversation shorter",
    );
    error.retry_after = None;
    error
}

fn kind_of_status(status: u16, text: &str) -> ModelErrorKind {
    if status == 429 && text.contains("resource_exhausted") && is_short_quota(text) {
        return ModelErrorKind::RateLimited;
    }
    if status >= 400 && holds(text, QUOTA) {
        return ModelErrorKind::Quota;
    }
    match status {
        401 | 403 if holds(text, FILTER) => ModelErrorKind::ContentFilter,
        401 | 403 => ModelErrorKind::Auth,
        400 if holds(text, KEY) => ModelErrorKind::Auth,
        402 => ModelErrorKind::Quota,
        407 | 409 | 425 => ModelErrorKind::Unavailable,
        408 => ModelErrorKind::Timeout,
        400 | 413 if holds(text, THROTTLING) => ModelErrorKind::RateLimited,
        413 => ModelErrorKind::ContextOverflow,
        429 | 498 | 500..=599 if holds(text, OVERLOAD) => ModelErrorKind::Overloaded,
        498 | 529 => ModelErrorKind::Overloaded,
        400..=599 if says_overflow(text) => ModelErrorKind::ContextOverflow,
        429 => ModelErrorKind::RateLimited,
        500..=599 => ModelErrorKind::Unavailable,
        400..=499 if holds(text, FILTER) => ModelErrorKind::ContentFilter,
        400..=499 if holds(text, BAD_CALL) => ModelErrorKind::BadResponse,
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
    const AUTH: &[&str] = &["authentication_error", "permission_error", "unauthorized"];
    const REQUEST: &[&str] = &[
        "invalid_request",
        "not_found_error",
        "model_not_found",
        "not found, try pulling it",
        "invalid_prompt",
        "invalid_image",
        "invalid_base64_image",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
    ];
    const TIMEOUT: &[&str] = &["timeout", "timed out"];
    // The first that fits decides.
    let kinds: [(&[&str], ModelErrorKind); 6] = [
        (OVERLOAD, ModelErrorKind::Overloaded),
        (FILTER, ModelErrorKind::ContentFilter),
        (KEY, ModelErrorKind::Auth),
        (AUTH, ModelErrorKind::Auth),
        (REQUEST, ModelErrorKind::InvalidRequest),
        (TIMEOUT, ModelErrorKind::Timeout),
    ];
    if holds(text, QUOTA) {
        return ModelErrorKind::Quota;
    }
    if holds(text, THROTTLING) && !holds(text, OVERLOAD) {
        return ModelErrorKind::RateLimited;
    }
    if says_overflow(text) {
        return ModelErrorKind::ContextOverflow;
    }
    if holds(text, BAD_CALL) {
        return ModelErrorKind::BadResponse;
    }
    kinds
        .iter()
        .find(|(words, _)| holds(text, words))
        .map_or(ModelErrorKind::Unavailable, |(_, kind)| *kind)
}

fn holds(text: &str, phrases: &[&str]) -> bool {
    phrases.iter().any(|phrase| text.contains(phrase))
}
