//! Whether a failed call is tried again, and when. Pure: it neither sleeps nor
//! reads a clock.

use std::time::Duration;

use crate::event::RetrySource;
use crate::model::error::ModelError;

/// How often and how patiently a failed call is tried again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// Attempts in all, the first one included.
    pub max_attempts: u32,
    /// The most that is waited after the first failure; it doubles each time.
    pub base_delay: Duration,
    /// The most that our own backoff ever waits.
    pub max_delay: Duration,
    /// The longest wait that a provider may ask for.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_attempts: 5,
            base_delay: Duration::from_secs(2),
            max_delay: Duration::from_secs(60),
            max_wait: Duration::from_secs(600),
        }
    }
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// Try again after a while.
    Wait {
        /// How long.
        delay: Duration,
        /// Who chose it.
        source: RetrySource,
    },
    /// The error is final.
    GiveUp {
        /// The reason.
        because: GiveUp,
    },
}

/// Why a call is not tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GiveUp {
    /// The same request would fail again.
    NotRetryable,
    /// The last attempt has failed.
    AttemptsSpent,
    /// The provider asks for a longer wait than allowed or than the run has.
    WaitTooLong,
    /// The run would be over before the next attempt.
    DeadlineTooNear,
}

impl GiveUp {
    /// The stable name, in snake case.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotRetryable => "not_retryable",
            Self::AttemptsSpent => "attempts_spent",
            Self::WaitTooLong => "wait_too_long",
            Self::DeadlineTooNear => "deadline_too_near",
        }
    }
}

impl RetryPolicy {
    /// Decides after `attempt` (from 1) failed with `error`. `remaining` is the
    /// run's own time; `jitter` picks a duration between zero and its argument.
    pub fn decide(
        &self,
        error: &ModelError,
        attempt: u32,
        remaining: Option<Duration>,
        jitter: impl FnOnce(Duration) -> Duration,
    ) -> RetryDecision {
        if !error.is_retryable() {
            return give_up(GiveUp::NotRetryable);
        }
        if attempt >= self.max_attempts {
            return give_up(GiveUp::AttemptsSpent);
        }
        if let Some(delay) = error.retry_after {
            if delay > self.max_wait || remaining.is_some_and(|left| delay >= left) {
                return give_up(GiveUp::WaitTooLong);
            }
            return RetryDecision::Wait {
                delay,
                source: RetrySource::RetryAfter,
            };
        }
        let most = self.backoff(attempt);
        let delay = jitter(most).min(most);
        if remaining.is_some_and(|left| delay >= left) {
            return give_up(GiveUp::DeadlineTooNear);
        }
        RetryDecision::Wait {
            delay,
            source: RetrySource::Backoff,
        }
    }

    fn backoff(&self, attempt: u32) -> Duration {
        let doublings = attempt.saturating_sub(1).min(31);
        self.base_delay
            .saturating_mul(1_u32 << doublings)
            .min(self.max_delay)
    }
}

fn give_up(because: GiveUp) -> RetryDecision {
    RetryDecision::GiveUp { because }
}
