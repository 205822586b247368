//! Runs a tool's work on files away from the runtime's one thread, so that it
//! stalls nobody and stops when the call is cancelled.

use std::io;
use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::clock::Activity;
use crate::fingerprint::Fnv1a;
use crate::message::Content;
use crate::tool::{CallContext, Failure, Permit, ToolOutput};

/// How far the work may go on, and who hears of it.
#[derive(Debug, Clone)]
pub(super) struct Work {
    stop: CancellationToken,
    activity: Activity,
    permit: Permit,
}

/// Why work ended without a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Failed {
    /// The model is told this.
    Message(String),
    /// The call was cancelled.
    Stopped,
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

impl From<&str> for Failed {
    fn from(message: &str) -> Self {
        Self::Message(message.to_owned())
    }
}

impl Work {
    /// Says that work goes on.
    ///
    /// # Errors
    /// [`Failed::Stopped`] when it shall not.
    pub(super) fn go_on(&self) -> Result<(), Failed> {
        if self.stop.is_cancelled() {
            return Err(Failed::Stopped);
        }
        self.activity.touch();
        Ok(())
    }

    /// Whether the access may happen.
    pub(super) fn permits(&self, access: &Access) -> bool {
        self.permit.allows(access)
    }

    /// Whether the path may be read, or shown in a list.
    pub(super) fn may_read(&self, path: &Path) -> bool {
        self.permit.may_read(path)
    }

    /// The failure behind an I/O error of a reader from [`Work::watch`].
    pub(super) fn failed(&self, what: &str, error: &io::Error) -> Failed {
        if self.stop.is_cancelled() {
            return Failed::Stopped;
        }
        Failed::Message(format!("{what}: {error}"))
    }

    /// Reads from `inner`, at most `bytes_max` bytes and only while work goes on.
    pub(super) fn watch<R: io::Read>(&self, inner: R, bytes_max: u64) -> Watched<'_, R> {
        Watched {
            inner,
            work: self,
            left: bytes_max,
            hash: Fnv1a::default(),
        }
    }
}

/// A reader that stops with its call, gives up after its budget, and knows the
/// hash of what went through it.
#[derive(Debug)]
pub(super) struct Watched<'a, R> {
    inner: R,
    work: &'a Work,
    left: u64,
    hash: Fnv1a,
}

impl<R> Watched<'_, R> {
    /// The hash of the bytes so far.
    pub(super) fn hash(&self) -> u64 {
        self.hash.number()
    }
}

impl<R: io::Read> io::Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.work.go_on().is_err() {
            return Err(io::Error::other("the call was cancelled"));
        }
        if self.left == 0 && !buffer.is_empty() {
            return Err(io::Error::other("too large to search through"));
        }
        let room = usize::try_from(self.left)
            .unwrap_or(usize::MAX)
            .min(buffer.len());
        let buffer = buffer.get_mut(..room).unwrap_or_default();
        let count = self.inner.read(buffer)?;
        self.left = self.left.saturating_sub(count as u64);
        self.hash.add(buffer.get(..count).unwrap_or_default());
        Ok(count)
    }
}

/// Runs `job` on the blocking pool and waits for it. When the returned future
/// is dropped, the job stops at its next [`Work::go_on`].
pub(super) async fn run<F>(cx: &CallContext<'_>, job: F) -> ToolOutput
where
    F: FnOnce(&Work) -> Result<ToolOutput, Failed> + Send + 'static,
{
    let stop = cx.cancel.child_token();
    let _stops_when_dropped = stop.clone().drop_guard();
    let work = Work {
        stop,
        activity: cx.activity.clone(),
        permit: cx.permit.clone(),
    };
    let outcome = tokio::task::spawn_blocking(move || {
        work.go_on()?;
        job(&work)
    })
    .await;
    match outcome {
        Ok(Ok(output)) => output,
        Ok(Err(Failed::Message(message))) => ToolOutput::error(message),
        Ok(Err(Failed::Stopped)) => aborted("the call was cancelled"),
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        Err(_) => aborted("the call was cancelled"),
    }
}

/// The output of a call that was cancelled.
pub(super) fn aborted(text: impl Into<String>) -> ToolOutput {
    ToolOutput {
        content: vec![Content::text(text)],
        summary: "cancelled".to_owned(),
        failure: Some(Failure::Aborted),
        ..ToolOutput::default()
    }
}
