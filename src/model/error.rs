//! What can go wrong with one call of a model, in a form to branch on.

use std::num::NonZeroU64;
use std::time::Duration;

/// The most characters that an error's message keeps.
const MESSAGE_CHARS_MAX: usize = 2000;
/// The most characters of the provider's code and of its id of the request.
const CODE_CHARS_MAX: usize = 200;
/// From how many bytes on a part of a key counts as a piece of the secret.
const KEY_PART_BYTES: usize = 8;

/// The class of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModelErrorKind {
    /// The key is missing, wrong, or not allowed to do this.
    Auth,
    /// A spending limit or a prepaid balance is used up.
    Quota,
    /// Too many requests or tokens in a short time.
    RateLimited,
    /// The provider has more work than it can do.
    Overloaded,
    /// No connection, or the provider failed (5xx).
    Unavailable,
    /// Nothing came for too long.
    Timeout,
    /// The conversation does not fit the model's window.
    ContextOverflow,
    /// The provider refuses the request as it is.
    InvalidRequest,
    /// A filter of the provider refuses the content.
    ContentFilter,
    /// The answer is not what the dialect promises.
    BadResponse,
    /// The stream ended before the reply was whole.
    Truncated,
    /// The call was cancelled by us.
    Cancelled,
    /// A scripted model has no reply, or none that fits the request.
    Script,
    /// A cassette has no answer, or one to another request.
    Replay,
    /// What is configured for connections cannot be used: an address, a proxy,
    /// a bundle of certificates.
    Setup,
}

impl ModelErrorKind {
    /// The stable name, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auth => "auth",
            Self::Quota => "quota",
            Self::RateLimited => "rate_limited",
            Self::Overloaded => "overloaded",
            Self::Unavailable => "unavailable",
            Self::Timeout => "timeout",
            Self::ContextOverflow => "context_overflow",
            Self::InvalidRequest => "invalid_request",
            Self::ContentFilter => "content_filter",
            Self::BadResponse => "bad_response",
            Self::Truncated => "truncated",
            Self::Cancelled => "cancelled",
            Self::Script => "script",
            Self::Replay => "replay_mismatch",
            Self::Setup => "setup",
        }
    }

    /// Whether the same request may succeed a little later.
    fn is_transient(self) -> bool {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::Unavailable
            | Self::Timeout
            | Self::BadResponse
            | Self::Truncated => true,
            Self::Auth
            | Self::Quota
            | Self::ContextOverflow
            | Self::InvalidRequest
            | Self::ContentFilter
            | Self::Cancelled
            | Self::Script
            | Self::Replay
            | Self::Setup => false,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Auth => "not authorised",
            Self::Quota => "quota or balance used up",
            Self::RateLimited => "rate limited",
            Self::Overloaded => "the provider is overloaded",
            Self::Unavailable => "the provider is unavailable",
            Self::Timeout => "timed out",
            Self::ContextOverflow => "the conversation exceeds the model's context window",
            Self::InvalidRequest => "the provider refused the request",
            Self::ContentFilter => "refused by a content filter",
            Self::BadResponse => "the answer could not be understood",
            Self::Truncated => "the reply was cut off",
            Self::Cancelled => "cancelled",
            Self::Script => "the scripted model failed",
            Self::Replay => "the run is not the one of the cassette",
            Self::Setup => "the connection cannot be set up",
        }
    }
}

/// A failed call. `Display` is for people; `kind` is to branch on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}{}: {message}", .kind.words(), origin(*.http_status, .code.as_deref()))]
pub struct ModelError {
    /// The class.
    pub kind: ModelErrorKind,
    /// The HTTP status, when there was an answer.
    pub http_status: Option<u16>,
    /// The provider's own code.
    pub code: Option<String>,
    /// What happened, at most about 2,000 characters.
    pub message: String,
    /// The provider's id of the request.
    pub request_id: Option<Box<str>>,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
    /// The model's window in tokens, when an overflow says it.
    pub context_window: Option<NonZeroU64>,
    /// What to do about it, for people.
    pub hints: Vec<String>,
    /// Whether trying again is pointless although the kind is a passing one,
    /// as with a certificate that is not trusted.
    pub permanent: bool,
}

impl ModelError {
    /// An error with a message and nothing else.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            http_status: None,
            code: None,
            message: cut(message.into(), MESSAGE_CHARS_MAX),
            request_id: None,
            retry_after: None,
            context_window: None,
            hints: Vec::new(),
            permanent: false,
        }
    }

    /// Whether the same request may succeed a little later.
    pub fn is_retryable(&self) -> bool {
        self.kind.is_transient() && !self.permanent
    }

    /// Adds the provider's own code.
    #[must_use]
    pub fn with_code(mut self, code: Option<String>) -> Self {
        self.code = code
            .filter(|code| !code.is_empty())
            .map(|code| cut(code, CODE_CHARS_MAX));
        self
    }

    /// Adds the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.http_status = Some(status);
        self
    }

    /// Adds advice for people.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Says that trying again is pointless.
    #[must_use]
    pub fn permanent(mut self) -> Self {
        self.permanent = true;
        self
    }

    /// Replaces the key and its parts wherever the provider's words repeat them.
    pub(super) fn scrub(&mut self, key: &str) {
        self.message = without_key(&self.message, key);
        self.code = self.code.as_deref().map(|code| without_key(code, key));
    }
}

/// `text` without the key, without longer parts of it, and without what a
/// provider leaves of it between its own asterisks, as in `sk-a***wxyz`.
fn without_key(text: &str, key: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for word in text.split_inclusive(|next: char| next.is_whitespace()) {
        match shown_part(word, key) {
            Some((before, after)) => {
                clean.push_str(before);
                clean.push_str("***");
                clean.push_str(after);
            }
            None => clean.push_str(word),
        }
    }
    clean
}

/// What stands before and behind the part of the key in a word.
fn shown_part<'w>(word: &'w str, key: &str) -> Option<(&'w str, &'w str)> {
    let (first, last) = span_of_rest(word, key).or_else(|| span_of_parts(word, key))?;
    Some((word.get(..first)?, word.get(last..)?))
}

/// The bytes of a word from the first long part of the key to the last one.
fn span_of_parts(word: &str, key: &str) -> Option<(usize, usize)> {
    let length = KEY_PART_BYTES.min(key.len());
    if length == 0 {
        return None;
    }
    let parts: Vec<&[u8]> = key.as_bytes().windows(length).collect();
    let mut found = word
        .as_bytes()
        .windows(length)
        .enumerate()
        .filter(|(_, window)| parts.contains(window))
        .map(|(at, _)| at);
    let first = found.next()?;
    Some((first, found.next_back().unwrap_or(first) + length))
}

/// The bytes of a word that masks all of the key but its ends.
fn span_of_rest(word: &str, key: &str) -> Option<(usize, usize)> {
    let is_mask = |next: char| matches!(next, '*' | '…' | '.');
    let is_key = |next: char| next.is_ascii_alphanumeric() || matches!(next, '-' | '_');
    let mask = word.find(['*', '…']).or_else(|| word.find("..."))?;
    let (head, rest) = word.split_at_checked(mask)?;
    let tail = rest.trim_start_matches(is_mask);
    let start = mask - head.len() + head.trim_end_matches(is_key).len();
    let shown = tail.len() - tail.trim_start_matches(is_key).len();
    let end = word.len() - tail.len() + shown;
    let (head, tail) = (word.get(start..mask)?, tail.get(..shown)?);
    let repeats = key.starts_with(head) && key.ends_with(tail) && head.len() + tail.len() > 1;
    repeats.then_some((start, end))
}

fn origin(status: Option<u16>, code: Option<&str>) -> String {
    match (status, code) {
        (Some(status), Some(code)) => format!(" (HTTP {status}, {code})"),
        (Some(status), None) => format!(" (HTTP {status})"),
        (None, Some(code)) => format!(" ({code})"),
        (None, None) => String::new(),
    }
}

/// Cuts at a character boundary and says so.
fn cut(mut text: String, chars_max: usize) -> String {
    if let Some((at, _)) = text.char_indices().nth(chars_max) {
        text.truncate(at);
        text.push('…');
    }
    text
}
