//! Whether and when a failed call is tried again.

use std::time::Duration;

use agent::event::RetrySource;
use agent::model::{GiveUp, ModelError, ModelErrorKind, RetryDecision, RetryPolicy, retry_after};

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Decides with the longest wait that jitter can choose.
fn decide(error: &ModelError, attempt: u32, remaining: Option<Duration>) -> RetryDecision {
    RetryPolicy::default().decide(error, attempt, remaining, |most| most)
}

fn error(kind: ModelErrorKind, retry_after: Option<Duration>) -> ModelError {
    let mut error = ModelError::new(kind, "x");
    error.retry_after = retry_after;
    error
}

fn wait(seconds: u64, source: RetrySource) -> RetryDecision {
    RetryDecision::Wait {
        delay: s(seconds),
        source,
    }
}

fn give_up(because: GiveUp) -> RetryDecision {
    RetryDecision::GiveUp { because }
}

#[test]
fn backoff_doubles_up_to_its_cap() {
    let passing = error(ModelErrorKind::Unavailable, None);
    for (attempt, seconds) in [(1, 2), (2, 4), (3, 8), (4, 16)] {
        assert_eq!(
            decide(&passing, attempt, None),
            wait(seconds, RetrySource::Backoff)
        );
    }
    assert_eq!(decide(&passing, 5, None), give_up(GiveUp::AttemptsSpent));
    let patient = RetryPolicy {
        max_attempts: u32::MAX,
        ..RetryPolicy::default()
    };
    for attempt in [6, 31, 32, 33, 1000] {
        assert_eq!(
            patient.decide(&passing, attempt, None, |most| most),
            wait(60, RetrySource::Backoff)
        );
    }
}

#[test]
fn jitter_chooses_between_zero_and_the_backoff() {
    let passing = error(ModelErrorKind::Unavailable, None);
    let policy = RetryPolicy::default();
    let asked = std::cell::Cell::new(None);
    let decision = policy.decide(&passing, 2, None, |most| {
        asked.set(Some(most));
        Duration::ZERO
    });
    assert_eq!(asked.get(), Some(s(4)));
    assert_eq!(decision, wait(0, RetrySource::Backoff));
    assert_eq!(
        policy.decide(&passing, 1, None, |_| s(99)),
        wait(2, RetrySource::Backoff)
    );
}

#[test]
fn only_passing_errors_are_tried_again() {
    use ModelErrorKind as K;
    for kind in [
        K::RateLimited,
        K::Overloaded,
        K::Unavailable,
        K::Timeout,
        K::BadResponse,
        K::Truncated,
    ] {
        assert_eq!(
            decide(&error(kind, None), 1, None),
            wait(2, RetrySource::Backoff),
            "{kind:?}"
        );
        assert_eq!(
            decide(&error(kind, None).permanent(), 1, None),
            give_up(GiveUp::NotRetryable)
        );
    }
    for kind in [
        K::Auth,
        K::Quota,
        K::ContextOverflow,
        K::InvalidRequest,
        K::ContentFilter,
        K::Cancelled,
        K::Script,
    ] {
        assert_eq!(
            decide(&error(kind, Some(s(1))), 1, None),
            give_up(GiveUp::NotRetryable),
            "{kind:?}"
        );
    }
}

#[test]
fn a_providers_wait_wins_within_the_limits() {
    let asks = |seconds| error(ModelErrorKind::RateLimited, Some(s(seconds)));
    assert_eq!(decide(&asks(7), 1, None), wait(7, RetrySource::RetryAfter));
    assert_eq!(decide(&asks(0), 1, None), wait(0, RetrySource::RetryAfter));
    assert_eq!(
        decide(&asks(600), 1, None),
        wait(600, RetrySource::RetryAfter)
    );
    assert_eq!(decide(&asks(601), 1, None), give_up(GiveUp::WaitTooLong));
    assert_eq!(
        decide(&asks(30), 1, Some(s(30))),
        give_up(GiveUp::WaitTooLong)
    );
    assert_eq!(
        decide(&asks(30), 1, Some(s(31))),
        wait(30, RetrySource::RetryAfter)
    );
    assert_eq!(decide(&asks(7), 5, None), give_up(GiveUp::AttemptsSpent));
    let passing = error(ModelErrorKind::Unavailable, None);
    assert_eq!(
        decide(&passing, 3, Some(s(8))),
        give_up(GiveUp::DeadlineTooNear)
    );
}

#[test]
fn the_headers() {
    // 2026-11-21 20:00:00 UTC.
    let now_ms = 1_795_291_200_000;
    let check = |ms: Option<&str>, after: Option<&str>, expect: Option<Duration>| {
        assert_eq!(retry_after(ms, after, now_ms), expect, "{ms:?} {after:?}");
    };
    check(None, None, None);
    check(None, Some("3"), Some(s(3)));
    check(None, Some("1.5"), Some(Duration::from_millis(1500)));
    check(Some("250"), Some("3"), Some(Duration::from_millis(250)));
    check(Some("junk"), Some("3"), Some(s(3)));
    check(None, Some("Sat, 21 Nov 2026 20:00:30 GMT"), Some(s(30)));
    check(
        None,
        Some("Sat, 21 Nov 2026 19:00:00 GMT"),
        Some(Duration::ZERO),
    );
    check(None, Some("soon"), None);
    check(None, Some("-5"), None);
    check(None, Some("nan"), None);
    check(None, Some(""), None);
    check(None, Some("1000000000"), Some(s(1_000_000_000)));
    check(None, Some("1e300"), Some(Duration::MAX));
}
