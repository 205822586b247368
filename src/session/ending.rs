//! What the log says when a step ends, and when a turn does not reach its answer.

use crate::clock;
use crate::context::notes;
use crate::event::{
    ErrorDetail, EventKind, Interrupted, InterruptedBy, LimitKind, SessionError, SessionErrorType,
    SessionState, StateUpdate, StepEnd, TurnStatus,
};
use crate::message::{AssistantMessage, StopReason, Usage};
use crate::model::ModelErrorKind;

use super::budget::Accounts;
use super::feed::Feed;
use super::interrupt::Cause;
use super::stop::{Answer, Stop};

/// The status that `turn:end` gives.
pub(super) fn status(outcome: &Result<Answer, Stop>) -> TurnStatus {
    match outcome {
        Ok(_) => TurnStatus::Ok,
        Err(Stop::Limit(_) | Stop::Denied(_)) => TurnStatus::Limit,
        Err(Stop::Interrupted(_)) => TurnStatus::Cancelled,
        Err(Stop::InvalidResponse(_)) => TurnStatus::Invalid,
        Err(
            Stop::Incomplete(_)
            | Stop::NoModel(_)
            | Stop::Model { .. }
            | Stop::Store(_)
            | Stop::UnknownPrice(_),
        ) => TurnStatus::Error,
    }
}

/// The event that says why a turn did not reach its answer.
pub(super) async fn tell_stop(accounts: &Accounts, stop: &Stop, feed: &Feed) {
    let interrupted = |by| {
        EventKind::SessionInterrupted(Interrupted {
            agent_id: "main".to_owned(),
            content: stop.to_string(),
            by,
        })
    };
    let error_type = match stop {
        Stop::Interrupted(cause) => {
            let by = match cause {
                Cause::User => InterruptedBy::User,
                Cause::Signal(_) | Cause::Output => InterruptedBy::Signal,
                Cause::Timeout => {
                    accounts.reached(LimitKind::Time, feed).await;
                    InterruptedBy::Timeout
                }
                Cause::Idle => {
                    accounts.reached(LimitKind::Idle, feed).await;
                    InterruptedBy::Timeout
                }
            };
            feed.send(interrupted(by)).await;
            return;
        }
        Stop::Limit(_) => {
            feed.send(interrupted(InterruptedBy::Budget)).await;
            return;
        }
        Stop::Denied(_) => {
            feed.send(interrupted(InterruptedBy::Policy)).await;
            return;
        }
        Stop::Incomplete(_) | Stop::InvalidResponse(_) => SessionErrorType::ModelError,
        Stop::Model { error, .. } => match error.kind {
            ModelErrorKind::ContextOverflow => SessionErrorType::ContextLengthExceeded,
            ModelErrorKind::BadResponse | ModelErrorKind::Script => SessionErrorType::ModelError,
            ModelErrorKind::Setup => SessionErrorType::FatalError,
            _ => SessionErrorType::ApiError,
        },
        Stop::NoModel(_) | Stop::Store(_) | Stop::UnknownPrice(_) => SessionErrorType::FatalError,
    };
    feed.send(EventKind::SessionError(SessionError {
        error_type,
        error: ErrorDetail {
            code: stop.code().to_owned(),
            message: stop.to_string(),
            details: stop.details(),
        },
    }))
    .await;
}

/// What a closing answer is asked for with.
pub(super) fn closing_note(kind: LimitKind) -> notes::Closing {
    match kind {
        LimitKind::Turns => notes::Closing::Turns,
        LimitKind::ToolCalls => notes::Closing::ToolCalls,
        LimitKind::Time | LimitKind::Idle => notes::Closing::Time,
        LimitKind::Cost
        | LimitKind::Tokens
        | LimitKind::Repeats
        | LimitKind::DenialsInARow
        | LimitKind::Denials => notes::Closing::Budget,
    }
}

/// Tells of the end of a step that had no reply, so that its pair closes.
pub(super) async fn failed_step(feed: &Feed, stop: &Stop) {
    step(feed, &failed_reply(stop), None, Vec::new()).await;
}

/// Tells of the end of a step.
pub(super) async fn step(
    feed: &Feed,
    reply: &AssistantMessage,
    cost_usd: Option<f64>,
    files: Vec<String>,
) {
    feed.send(EventKind::StepEnd(StepEnd {
        stop_reason: reply.stop_reason,
        usage: reply.usage,
        cost_usd,
        files,
    }))
    .await;
}

/// What stands for a reply that never came.
fn failed_reply(stop: &Stop) -> AssistantMessage {
    let aborted = matches!(stop, Stop::Interrupted(_));
    AssistantMessage {
        content: Vec::new(),
        api: String::new(),
        provider: String::new(),
        model: String::new(),
        usage: Usage::default(),
        stop_reason: if aborted {
            StopReason::Aborted
        } else {
            StopReason::Error
        },
        error_message: Some(stop.to_string()),
        timestamp: clock::unix_ms(),
    }
}

/// Tells what the session does now.
pub(super) async fn state(feed: &Feed, state: SessionState) {
    feed.send(EventKind::StateUpdate(StateUpdate { state }))
        .await;
}
