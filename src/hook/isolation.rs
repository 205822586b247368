//! One call of one hook, kept apart: it has its time, and its panic is its own.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock;

use super::{Fault, Hook, HookFuture};

/// What a hook gets to end by itself once it was asked to. A command and its
/// children are gone before.
const STOP_GRACE: Duration = Duration::from_secs(3);

/// Calls one hook, within its time, and survives it.
pub(super) async fn isolated<'a, V>(
    hook: &dyn Hook,
    cancel: &CancellationToken,
    call: impl FnOnce() -> HookFuture<'a, V>,
) -> Result<V, Fault> {
    if cancel.is_cancelled() {
        return Err(Fault::Cancelled);
    }
    let limit = hook.timeout();
    let never = CancellationToken::new();
    let abandoned = async {
        cancel.cancelled().await;
        clock::sleep(STOP_GRACE, &never).await;
    };
    // The call itself may panic, not only the future that it gives.
    let mut answer = std::pin::pin!(async { call().await });
    let answer = poll_fn(|cx| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(cx)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(Fault::Panicked(words(&*panic)))))
    });
    tokio::select! {
        biased;
        answer = answer => answer,
        _ = clock::sleep(limit, &never) => Err(Fault::TimedOut(limit)),
        () = abandoned => Err(Fault::Cancelled),
    }
}

/// What a panic says.
fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "without words".to_owned())
}
