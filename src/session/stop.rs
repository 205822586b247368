//! How a turn ends.

use std::time::Duration;

use serde_json::{Value, json};

use crate::event::{LimitKind, Reason};
use crate::message::Usage;
use crate::model::{GiveUp, ModelError, ModelErrorKind};
use crate::store::StoreError;

use super::interrupt::Cause;
use super::models::ChoiceError;
use super::response::Misfit;

/// A turn's final answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The model's last text, never empty; or what a hook answered.
    pub text: String,
    /// Model calls that gave a reply.
    pub steps: u32,
    /// The turn's own usage.
    pub usage: Usage,
    /// The document in it, when answers must fit a schema.
    pub structured: Option<Value>,
}

impl Answer {
    /// What a hook answered in the model's place.
    pub(super) fn of_hook(text: String, structured: Option<Value>) -> Self {
        Self {
            text,
            steps: 0,
            usage: Usage::default(),
            structured,
        }
    }
}

/// Why a session stopped without a final answer.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// It was interrupted.
    #[error("{}", describe_cause(.0))]
    Interrupted(Cause),
    /// A budget is spent.
    #[error("the limit on {} is reached", limit_name(*.0))]
    Limit(LimitKind),
    /// Denials ended it.
    #[error("{0}")]
    Denied(String),
    /// The model ended without a usable answer.
    #[error("{0}")]
    Incomplete(String),
    /// The final answer does not fit the schema that it must fit.
    #[error("{0}")]
    InvalidResponse(Box<Misfit>),
    /// No model can be asked.
    #[error("{0}")]
    NoModel(Box<ChoiceError>),
    /// The model could not be asked.
    #[error("{error}{}", given_up(.error, *.because))]
    Model {
        /// The last error.
        #[source]
        error: Box<ModelError>,
        /// Why it was not tried again.
        because: GiveUp,
    },
    /// The session could not be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A cost limit is set and the model's price is unknown.
    #[error("the price of {0} is unknown, so the cost limit cannot be kept")]
    UnknownPrice(String),
}

impl Stop {
    /// The reason that a result document and the exit code give.
    pub fn reason(&self) -> Reason {
        match self {
            Self::Interrupted(cause) => match cause {
                Cause::Timeout | Cause::Idle => Reason::Timeout,
                Cause::Output => Reason::Io,
                Cause::Signal(1) => Reason::HungUp,
                Cause::Signal(15) => Reason::Terminated,
                Cause::Signal(_) | Cause::User => Reason::Interrupted,
            },
            Self::Limit(_) => Reason::Budget,
            Self::Denied(_) => Reason::Denied,
            Self::Incomplete(_) => Reason::Incomplete,
            Self::InvalidResponse(_) => Reason::InvalidResponse,
            Self::NoModel(error) => match **error {
                ChoiceError::Credentials(_) | ChoiceError::Client(_) => Reason::Auth,
                ChoiceError::NotRecorded { .. } => Reason::ReplayMismatch,
                ChoiceError::Unknown(_) | ChoiceError::NoModel { .. } => Reason::BadTask,
            },
            Self::Model { error, because } => model_reason(error, *because),
            Self::Store(_) => Reason::Io,
            Self::UnknownPrice(_) => Reason::Config,
        }
    }

    /// What to do next, for people.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::NoModel(error) => error.hints(),
            Self::Model { error, because } => {
                let mut hints = error.hints.clone();
                if *because == GiveUp::WaitTooLong {
                    hints.push(
                        "come back later, or raise limits.max_retry_wait and limits.timeout"
                            .to_owned(),
                    );
                }
                hints
            }
            Self::Limit(kind) => vec![format!("raise limits.{}", limit_field(*kind))],
            Self::UnknownPrice(_) => vec![
                "set limits.on_unknown_price: tokens_only and rely on limits.max_tokens".to_owned(),
            ],
            Self::Interrupted(Cause::Timeout) => vec!["raise limits.timeout".to_owned()],
            Self::Interrupted(Cause::Idle) => vec!["raise limits.idle_timeout".to_owned()],
            Self::InvalidResponse(_) => {
                vec!["raise response.repairs, or simplify the schema".to_owned()]
            }
            Self::Interrupted(_) | Self::Denied(_) | Self::Incomplete(_) | Self::Store(_) => {
                Vec::new()
            }
        }
    }

    /// What machines may want to know of the error beyond its message.
    pub fn details(&self) -> Option<Value> {
        if let Self::InvalidResponse(misfit) = self {
            let violations = misfit.violations.iter();
            let violations: Vec<Value> = violations
                .map(|violation| json!({"path": violation.path, "rule": violation.rule}))
                .collect();
            return Some(json!({"violations": violations, "repairs": misfit.repairs}));
        }
        let Self::Model { error, because } = self else {
            return None;
        };
        Some(json!({
            "httpStatus": error.http_status,
            "providerCode": error.code,
            "requestId": error.request_id,
            "retryAfterMs": error.retry_after.map(milliseconds),
            "gaveUp": because.name(),
        }))
    }

    /// Whether the provider found the conversation too long.
    pub(super) fn is_overflow(&self) -> bool {
        matches!(self, Self::Model { error, .. } if error.kind == ModelErrorKind::ContextOverflow)
    }

    /// The provider's HTTP status, when there was one.
    pub fn http_status(&self) -> Option<u16> {
        match self {
            Self::Model { error, .. } => error.http_status,
            _ => None,
        }
    }

    /// The provider's id of the request, when there was one.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Model { error, .. } => error.request_id.as_deref(),
            _ => None,
        }
    }

    /// A stable name for the error report.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Model { error, .. } => error.kind.name(),
            Self::NoModel(error) => match **error {
                ChoiceError::Credentials(_) | ChoiceError::Client(_) => "auth",
                ChoiceError::NotRecorded { .. } => Reason::ReplayMismatch.name(),
                ChoiceError::Unknown(_) | ChoiceError::NoModel { .. } => "model",
            },
            Self::UnknownPrice(_) => "unknown_price",
            Self::Store(_) => "session_file",
            Self::Limit(_) => "limit",
            Self::Interrupted(Cause::Idle) => "idle",
            Self::Interrupted(_)
            | Self::Denied(_)
            | Self::Incomplete(_)
            | Self::InvalidResponse(_) => self.reason().name(),
        }
    }
}

impl From<ModelError> for Stop {
    /// An error that no further attempt would change.
    fn from(error: ModelError) -> Self {
        Self::Model {
            error: Box::new(error),
            because: GiveUp::NotRetryable,
        }
    }
}

impl From<ChoiceError> for Stop {
    fn from(error: ChoiceError) -> Self {
        match error {
            ChoiceError::Client(error) => Self::from(*error),
            other => Self::NoModel(Box::new(other)),
        }
    }
}

fn milliseconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}

/// Why a failure that passes was not waited for.
fn given_up(error: &ModelError, because: GiveUp) -> String {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    match (because, error.retry_after) {
        (GiveUp::WaitTooLong, Some(wait)) if wait > YEAR => {
            "; it asks to wait for more than a year".to_owned()
        }
        (GiveUp::WaitTooLong, Some(wait)) => format!(
            "; it asks to wait {} s, which is longer than allowed or left",
            wait.as_secs_f64().ceil()
        ),
        (GiveUp::DeadlineTooNear, _) => {
            "; the time that is left is too short for another attempt".to_owned()
        }
        (GiveUp::WaitTooLong | GiveUp::NotRetryable | GiveUp::AttemptsSpent, _) => String::new(),
    }
}

fn model_reason(error: &ModelError, because: GiveUp) -> Reason {
    match error.kind {
        ModelErrorKind::Auth | ModelErrorKind::Quota => Reason::Auth,
        ModelErrorKind::RateLimited => Reason::RateLimited,
        // It would have passed, but not soon.
        _ if because == GiveUp::WaitTooLong => Reason::RateLimited,
        ModelErrorKind::Overloaded
        | ModelErrorKind::Unavailable
        | ModelErrorKind::Timeout
        | ModelErrorKind::BadResponse
        | ModelErrorKind::Truncated => Reason::Unavailable,
        ModelErrorKind::ContextOverflow | ModelErrorKind::ContentFilter => Reason::Incomplete,
        ModelErrorKind::InvalidRequest | ModelErrorKind::Setup => Reason::Config,
        ModelErrorKind::Script => Reason::BadTask,
        ModelErrorKind::Replay => Reason::ReplayMismatch,
        ModelErrorKind::Cancelled => Reason::Interrupted,
    }
}

fn describe_cause(cause: &Cause) -> String {
    match cause {
        Cause::User => "cancelled".to_owned(),
        Cause::Signal(1) => "cancelled by SIGHUP".to_owned(),
        Cause::Signal(2) => "cancelled by SIGINT".to_owned(),
        Cause::Signal(15) => "cancelled by SIGTERM".to_owned(),
        Cause::Signal(number) => format!("cancelled by signal {number}"),
        Cause::Timeout => "the time limit is reached".to_owned(),
        Cause::Idle => "nothing was heard of the model or a tool for too long".to_owned(),
        Cause::Output => "results can no longer be written".to_owned(),
    }
}

/// What a budget is called in a sentence.
fn limit_name(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Turns => "turns",
        LimitKind::Cost => "cost",
        LimitKind::Tokens => "tokens",
        LimitKind::ToolCalls => "tool calls",
        LimitKind::Repeats => "repeated calls",
        LimitKind::DenialsInARow => "denials in a row",
        LimitKind::Denials => "denials",
        LimitKind::Time => "time",
        LimitKind::Idle => "silence",
    }
}

fn limit_field(kind: LimitKind) -> &'static str {
    match kind {
        LimitKind::Turns => "max_turns",
        LimitKind::Cost => "max_cost_usd",
        LimitKind::Tokens => "max_tokens",
        LimitKind::ToolCalls => "max_tool_calls",
        LimitKind::Repeats => "max_repeats",
        LimitKind::DenialsInARow | LimitKind::Denials => "max_denials",
        LimitKind::Time => "timeout",
        LimitKind::Idle => "idle_timeout",
    }
}
