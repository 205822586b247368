//! Signals to the process, one after the other.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGHUP, SIGINT and SIGTERM as they come.
#[derive(Debug)]
pub struct Signals {
    hangup: Signal,
    interrupt: Signal,
    terminate: Signal,
    /// A file over the process's size limit is an error of the write, which a
    /// run can tell; without a listener it would be a silent death.
    _file_too_large: Signal,
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
        })
    }

    /// The number of the next signal. Cancel safe.
    pub async fn next(&mut self) -> i32 {
        tokio::select! {
            Some(()) = self.hangup.recv() => SignalKind::hangup().as_raw_value(),
            Some(()) = self.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            Some(()) = self.terminate.recv() => SignalKind::terminate().as_raw_value(),
            else => std::future::pending().await,
        }
    }
}
