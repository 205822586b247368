//! Signals to the process, one after the other.

use std::time::{Duration, Instant};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::clock;

/// For so long after a signal, more of them are the same request: some senders
/// signal both a process and its group, or send two kinds at once, and nobody
/// who wants to hurry a run has seen by then that it takes its time.
const ECHO: Duration = Duration::from_millis(500);

/// SIGHUP, SIGINT and SIGTERM as they come; what comes at once counts once.
#[derive(Debug)]
pub struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
    /// A file over the process's size limit is an error of the write, which a
    /// run can tell; without a listener it would be a silent death.
    _file_too_large: Signal,
    last: Option<Instant>,
}

impl Signals {
    /// Listens from now on. Needs a running runtime.
    ///
    /// # Errors
    /// When the system refuses to install a handler.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            _file_too_large: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
            last: None,
        })
    }

    /// The number of the next signal. Cancel safe.
    pub async fn next(&mut self) -> i32 {
        loop {
            let number = self.any().await;
            let now = clock::monotonic();
            let echo = |last: Instant| now.duration_since(last) < ECHO;
            if !self.last.is_some_and(echo) {
                self.last = Some(now);
                return number;
            }
        }
    }

    /// Of those that came at once the one that says most: SIGHUP often only
    /// goes with another.
    async fn any(&mut self) -> i32 {
        tokio::select! {
            biased;
            Some(()) = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            Some(()) = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            Some(()) = self.hangup.recv() => SignalKind::hangup().as_raw_value(),
            else => std::future::pending().await,
        }
    }
}
