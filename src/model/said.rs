//! What an error body of a provider says, in whichever of the usual shapes.

use std::num::NonZeroU64;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::model::error::{ModelError, ModelErrorKind};

/// The message of an answer without a body.
pub(super) const NO_EXPLANATION: &str = "no explanation";

/// A short, single-line form of a body that is no error object.
pub(super) fn readable(body: &str) -> String {
    let body = body.trim();
    if body.is_empty() {
        return NO_EXPLANATION.to_owned();
    }
    if body.starts_with('<') {
        return "the answer is a web page, not an answer of a model".to_owned();
    }
    body.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an error body says, in whichever of the usual shapes it comes.
#[derive(Default)]
pub(super) struct Said {
    message: Option<String>,
    code: Option<String>,
    /// A status that the body names, whatever that of the answer.
    pub(super) status: Option<u16>,
    /// The names of quotas and reasons, for machines.
    details: String,
    retry_after: Option<Duration>,
    request_id: Option<String>,
    /// The window that llama.cpp states as a field.
    window: Option<u64>,
}

/// `{"error": {"type", "code", "message"}}`, `{"error": "…"}`, `{"message": "…"}`
/// and `{"detail": …}`; an array of one such object too, and MiniMax's own.
#[derive(Deserialize)]
struct ErrorBody {
    error: Option<Value>,
    base_resp: Option<Value>,
    request_id: Option<String>,
    message: Option<Value>,
    detail: Option<Value>,
    code: Option<Value>,
    #[serde(rename = "type")]
    kind: Option<Value>,
}

impl Said {
    pub(super) fn parse(body: &str) -> Self {
        let body = body.trim();
        let parsed = serde_json::from_str::<ErrorBody>(body).or_else(|error| {
            let list: Vec<ErrorBody> = serde_json::from_str(body)?;
            list.into_iter().next().ok_or(error)
        });
        let Ok(parsed) = parsed else {
            return Self::default();
        };
        let mut said = match parsed.error.as_ref().or(parsed.base_resp.as_ref()) {
            Some(Value::Object(error)) => Self {
                message: error
                    .get("message")
                    .or(error.get("status_msg"))
                    .map(text_of)
                    .map(|message| with_upstream(message, error.get("metadata"))),
                code: code_of([error.get("code"), error.get("type"), error.get("status")]),
                status: error.get("code").and_then(status_of),
                details: details_of(error.get("details")),
                retry_after: retry_delay_of(error.get("details")),
                request_id: None,
                window: error.get("n_ctx").and_then(Value::as_u64),
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
        };
        said.retry_after = said
            .retry_after
            .or_else(|| wait_in(said.message.as_deref()?));
        said.request_id = parsed.request_id;
        said
    }

    /// The error that this is; `unsaid` is its message when there is none.
    pub(super) fn error(self, kind: ModelErrorKind, unsaid: String) -> ModelError {
        let message = self.message.unwrap_or(unsaid);
        let mut error = ModelError::new(kind, message).with_code(self.code);
        error.retry_after = self.retry_after.filter(|_| error.is_retryable());
        error.request_id = self.request_id.map(Into::into);
        if kind == ModelErrorKind::ContextOverflow {
            let window = self.window.or_else(|| window_in(&error.message));
            error.context_window = window.and_then(NonZeroU64::new);
        }
        error
    }

    /// All that it says in small letters.
    pub(super) fn haystack(&self) -> String {
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

/// The first code that is a word; a number is a status and said elsewhere, and
/// so is a text that is one.
fn code_of(values: [Option<&Value>; 3]) -> Option<String> {
    let is_status = |code: &str| {
        code.parse()
            .is_ok_and(|code: u16| (100..600).contains(&code))
    };
    values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .find(|code| !code.is_empty() && !is_status(code))
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

/// The window that a message states in words: `maximum context length is 8192
/// tokens`, `20777 tokens > 20000 maximum`.
fn window_in(message: &str) -> Option<u64> {
    const LEADS: &[&str] = &[
        "maximum context length",
        "maximum model length",
        "model's context length",
        "context length of only",
        "context window of",
        "context size",
        "maximum input length",
        "maximum prompt length",
        "maximum number of tokens allowed",
        "exceeds the limit of",
        "max_num_tokens",
        "max_seq_len",
        "max_model_len",
        "n_ctx",
        " > ",
    ];
    let message = message.to_ascii_lowercase();
    LEADS.iter().find_map(|lead| {
        message.match_indices(lead).find_map(|(at, _)| {
            let rest = message.get(at + lead.len()..)?;
            let rest = rest.strip_prefix(" is").unwrap_or(rest);
            let rest = rest.trim_start_matches([' ', ':', '=', '(', '`', '"', '\'', '>']);
            let end = rest.find(|next: char| !next.is_ascii_digit() && next != ',');
            let digits = rest.get(..end.unwrap_or(rest.len()))?;
            digits.replace(',', "").parse().ok()
        })
    })
}

/// The wait that a message asks for in words: `Please try again in 1m30.5s`,
/// `retry after 26 seconds`. Only some providers send a header too.
fn wait_in(message: &str) -> Option<Duration> {
    const LEADS: [&str; 5] = [
        "try again in ",
        "try again after ",
        "retry in ",
        "retry after ",
        "please wait ",
    ];
    let message = message.to_ascii_lowercase();
    LEADS.iter().find_map(|lead| {
        let (_, rest) = message.split_once(lead)?;
        span(rest)
    })
}

/// The time at the start of a text, in one or more units.
fn span(mut text: &str) -> Option<Duration> {
    let mut total = None;
    loop {
        let digits = text
            .find(|next: char| !next.is_ascii_digit() && next != '.')
            .unwrap_or(text.len());
        let (number, rest) = text.split_at_checked(digits)?;
        let Ok(number) = number.trim_end_matches('.').parse::<f64>() else {
            return total;
        };
        let rest = rest.trim_start();
        let letters = rest
            .find(|next: char| !next.is_ascii_alphabetic())
            .unwrap_or(rest.len());
        let (unit, rest) = rest.split_at_checked(letters)?;
        let seconds = match unit {
            "ms" => 0.001,
            "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3600.0,
            "d" | "day" | "days" => 86_400.0,
            _ => return total,
        };
        let part = Duration::try_from_secs_f64(number * seconds).unwrap_or(Duration::MAX);
        total = Some(total.unwrap_or(Duration::ZERO).saturating_add(part));
        text = rest.trim_start();
    }
}
