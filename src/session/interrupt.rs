//! Cancellation with a cause, and the watchdog over time and silence.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::clock::{self, Activity};

/// Why a session is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The embedding program asked.
    User,
    /// A signal to the process, by number.
    Signal(i32),
    /// The wall clock ran out.
    Timeout,
    /// Nothing was heard of a model or a tool for too long.
    Idle,
    /// Results can no longer be written.
    Output,
}

/// A cancellation token that remembers the first cause. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    token: CancellationToken,
    cause: Arc<OnceLock<Cause>>,
}

impl Interrupt {
    /// Interrupts; the first cause stays.
    pub fn trigger(&self, cause: Cause) {
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// Cancelled when interrupted.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// Why, once interrupted.
    pub fn cause(&self) -> Option<Cause> {
        self.cause.get().copied()
    }
}

/// Interrupts when the deadline passes or silence lasts too long. Never ends:
/// what it interrupted ends by itself, with everything put in order.
pub(super) async fn watch(
    interrupt: Interrupt,
    deadline: Instant,
    idle_timeout: Duration,
    activity: Activity,
) -> Infallible {
    let never = CancellationToken::new();
    loop {
        let left = deadline.saturating_duration_since(clock::monotonic());
        let quiet = idle_timeout.saturating_sub(activity.quiet_for());
        if left.is_zero() {
            interrupt.trigger(Cause::Timeout);
            std::future::pending::<()>().await;
        }
        if quiet.is_zero() {
            interrupt.trigger(Cause::Idle);
            std::future::pending::<()>().await;
        }
        clock::sleep(left.min(quiet), &never).await;
    }
}
