//! The session's end of the event channel, with the place filled in.

use tokio::sync::mpsc;

use crate::event::{Emission, EventKind, Place, Warning};

/// Sends events of one place. Cheap enough to clone for every step.
#[derive(Debug, Clone)]
pub(super) struct Feed {
    sender: mpsc::Sender<Emission>,
    place: Place,
}

impl Feed {
    pub(super) fn new(sender: mpsc::Sender<Emission>, place: Place) -> Self {
        Self { sender, place }
    }

    /// Waits for room, so that nothing is dropped. When nobody listens any
    /// more the run is over and the event has no reader to miss it.
    pub(super) async fn send(&self, kind: EventKind) {
        let place = self.place.clone();
        let _ = self.sender.send(Emission { place, kind }).await;
    }

    /// Tells of something that should be known.
    pub(super) async fn warn(&self, code: &str, message: String) {
        let code = code.to_owned();
        self.warn_of([Warning { code, message }]).await;
    }

    /// The same for what was found elsewhere.
    pub(super) async fn warn_of(&self, warnings: impl IntoIterator<Item = Warning>) {
        for warning in warnings {
            self.send(EventKind::Warning(warning)).await;
        }
    }

    /// The session; empty outside of one.
    pub(super) fn session(&self) -> &str {
        self.place.session_id.as_deref().unwrap_or_default()
    }

    /// The turn, from 1; 0 outside of one.
    pub(super) fn turn(&self) -> u32 {
        self.place.turn.unwrap_or_default()
    }

    /// The step of the turn, from 1; 0 outside of one.
    pub(super) fn step(&self) -> u32 {
        self.place.step.unwrap_or_default()
    }

    /// The same feed inside turn `turn`.
    pub(super) fn in_turn(&self, turn: u32) -> Self {
        let mut inner = self.clone();
        inner.place.turn = Some(turn);
        inner
    }

    /// The same feed inside step `step`.
    pub(super) fn in_step(&self, step: u32) -> Self {
        let mut inner = self.clone();
        inner.place.step = Some(step);
        inner
    }
}
