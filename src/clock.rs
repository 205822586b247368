//! The only source of time, ids, randomness and sleep.
//!
//! Waits are measured on the monotonic clock, so a jump of the wall clock
//! neither ends nor prolongs a run; wall-clock stamps are for people.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

/// A wall-clock time in UTC with milliseconds, as every log writes it:
/// `2026-11-21T20:01:02.345Z`.
pub fn timestamp() -> String {
    format!("{:.3}", now())
}

/// Milliseconds since the Unix epoch.
pub fn unix_ms() -> i64 {
    now().as_millisecond()
}

/// Today's date in UTC, `2026-11-21`.
pub fn date() -> String {
    now().strftime("%Y-%m-%d").to_string()
}

/// A new UUID of version 7: unique, and ordered by the time of its making.
#[expect(clippy::disallowed_methods, reason = "the one source of ids")]
pub fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Eight random hexadecimal digits: the id of a session entry.
pub fn short_id() -> String {
    format!("{:08x}", fastrand::u32(..))
}

/// A random duration between zero and `most`: full jitter for a backoff.
pub fn jitter(most: Duration) -> Duration {
    most.mul_f64(fastrand::f64())
}

/// A point on the monotonic clock.
#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of the monotonic clock"
)]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// Milliseconds since `start`.
pub fn elapsed_ms(start: Instant) -> u64 {
    u64::try_from(monotonic().duration_since(start).as_millis()).unwrap_or(u64::MAX)
}

/// How a sleep ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slept {
    /// The whole time passed.
    Whole,
    /// The token was cancelled first.
    Cancelled,
}

/// Sleeps for `duration` or until `cancel`. Cancel safe.
#[expect(clippy::disallowed_methods, reason = "the one sleep")]
pub async fn sleep(duration: Duration, cancel: &CancellationToken) -> Slept {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Slept::Cancelled,
        () = tokio::time::sleep(duration) => Slept::Whole,
    }
}

/// Waits until `at`; without a time it waits forever. Cancel safe.
pub async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(tokio::time::Instant::from_std(at)).await,
        None => std::future::pending().await,
    }
}

/// Blocks the thread for `duration`. Only for a few milliseconds, and for the very
/// end of a run, when no runtime turns any more.
#[expect(clippy::disallowed_methods, reason = "the one blocking sleep")]
pub fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one reader of the wall clock"
)]
fn now() -> Timestamp {
    Timestamp::now()
}

/// When something was last heard of a model or a tool, shared by everything
/// that hears. The idle limit reads it.
#[derive(Debug, Clone)]
pub struct Activity {
    start: Instant,
    last_ms: std::sync::Arc<std::sync::atomic::AtomicU64>,
    paused: std::sync::Arc<std::sync::atomic::AtomicU32>,
}

impl Activity {
    /// Starts with "just now".
    #[expect(
        clippy::new_without_default,
        reason = "reading the clock is no default"
    )]
    pub fn new() -> Self {
        Self {
            start: monotonic(),
            last_ms: std::sync::Arc::default(),
            paused: std::sync::Arc::default(),
        }
    }

    /// Something was heard.
    pub fn touch(&self) {
        self.last_ms
            .store(elapsed_ms(self.start), std::sync::atomic::Ordering::Relaxed);
    }

    /// Awaits `waiting` without the silence counting: a wait that was agreed
    /// on is not idleness.
    pub async fn paused<T>(&self, waiting: impl Future<Output = T>) -> T {
        self.paused
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let outcome = waiting.await;
        self.touch();
        self.paused
            .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        outcome
    }

    /// The time since something was last heard; none while paused.
    pub fn quiet_for(&self) -> Duration {
        if self.paused.load(std::sync::atomic::Ordering::Relaxed) > 0 {
            return Duration::ZERO;
        }
        let last = self.last_ms.load(std::sync::atomic::Ordering::Relaxed);
        Duration::from_millis(elapsed_ms(self.start).saturating_sub(last))
    }
}
