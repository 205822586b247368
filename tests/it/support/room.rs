//! A session that several use at once, and a tool that waits for the test:
//! while it does, its turn runs for sure.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::sync::Arc;

use agent::event::{Emission, EventKind};
use agent::session::Session;
use agent::tool::ToolOutput;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::session::{PROMPT_MAX, Stage, TestTool, drain};
use super::told::{assert_valid, lawful};

/// A session that several use at once.
pub(crate) struct Room {
    pub(crate) session: Session,
    events: mpsc::Receiver<Emission>,
    _dir: tempfile::TempDir,
}

impl Stage {
    /// Creates the session for several to use at once: its events wait until
    /// somebody asks for them.
    pub(crate) async fn room(self) -> Room {
        let (sender, events) = mpsc::channel(10_000);
        let created = Session::create(self.options(sender)).await.unwrap();
        Room {
            session: created.session,
            events,
            _dir: self.dir,
        }
    }
}

impl Room {
    /// Ends the session; gives all its events as a lawful log has them. The
    /// history must be valid and the script played to its end.
    pub(crate) async fn end(mut self) -> Vec<Value> {
        assert_valid(&self.session.messages());
        let closed = self.session.close(&CancellationToken::new()).await;
        assert_eq!(closed.scripted, Ok(()));
        let mut kept = Vec::new();
        drain(&mut self.events, &mut kept);
        lawful(&kept)
    }

    /// Waits for the next event that `is` accepts.
    pub(crate) async fn until(&mut self, is: impl Fn(&EventKind) -> bool) {
        let waiting = async {
            while let Some(emission) = self.events.recv().await {
                if is(&emission.kind) {
                    return;
                }
            }
            panic!("the event never came");
        };
        let came = tokio::time::timeout(PROMPT_MAX, waiting).await;
        came.expect("the event comes in time");
    }
}

/// A gate in front of a tool's result.
#[derive(Clone)]
pub(crate) struct Gate {
    reached: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    /// A closed gate.
    pub(crate) fn new() -> Self {
        Self {
            reached: Arc::new(Semaphore::new(0)),
            opened: Arc::new(Semaphore::new(0)),
        }
    }

    /// The tool `gate`: each call waits for one opening, or its cancellation.
    pub(crate) fn tool(&self) -> TestTool {
        let gate = self.clone();
        TestTool::reads("gate", move |_, cancel| {
            let gate = gate.clone();
            async move {
                gate.reached.add_permits(1);
                tokio::select! {
                    _ = take(&gate.opened) => ToolOutput::text("opened", "opened"),
                    () = cancel.cancelled() => ToolOutput::error("cancelled"),
                }
            }
        })
    }

    /// Waits until a call stands before the gate.
    pub(crate) async fn reached(&self) {
        take(&self.reached).await;
    }

    /// Lets one call pass.
    pub(crate) fn open(&self) {
        self.opened.add_permits(1);
    }
}

async fn take(semaphore: &Semaphore) {
    let permit = semaphore.acquire().await;
    permit.expect("nobody closes it").forget();
}
