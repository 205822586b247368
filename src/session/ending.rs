//! What the log says when a turn does not reach its answer.

use crate::event::{
    ErrorDetail, EventKind, Interrupted, InterruptedBy, LimitKind, SessionError, SessionErrorType,
    TurnStatus,
};
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
        Stop::Incomplete(_) => SessionErrorType::ModelError,
        Stop::Model { error, .. } => match error.kind {
            ModelErrorKind::ContextOverflow => SessionErrorType::ContextLengthExceeded,
            ModelErrorKind::BadResponse | ModelErrorKind::Script => SessionErrorType::ModelError,
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
