//! What can go wrong with one call of a model, in a form to branch on.

use std::time::Duration;

/// The most characters that an error's message keeps.
const MESSAGE_CHARS_MAX: usize = 2000;

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
            | Self::Script => false,
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
    pub request_id: Option<String>,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
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
            message: cut(message.into()),
            request_id: None,
            retry_after: None,
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
        self.code = code.filter(|code| !code.is_empty()).map(cut);
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

    /// Replaces `secret` wherever the provider's words repeat it.
    pub(crate) fn scrub(&mut self, secret: &str) {
        if secret.is_empty() {
            return;
        }
        if self.message.contains(secret) {
            self.message = self.message.replace(secret, "***");
        }
        if let Some(code) = self.code.as_mut()
            && code.contains(secret)
        {
            *code = code.replace(secret, "***");
        }
    }
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
fn cut(mut text: String) -> String {
    if let Some((at, _)) = text.char_indices().nth(MESSAGE_CHARS_MAX) {
        text.truncate(at);
        text.push('…');
    }
    text
}
