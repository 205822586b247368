//! Work on a session between its turns: whoever has the engine keeps turns from
//! beginning, and what was said meanwhile is taken up when it is given back, also
//! when the work is dropped.

use super::Session;
use super::engine::Engine;
use super::interrupt::Interrupt;
use super::refusal::SessionError;

/// The engine of a session at rest; it is given back on drop.
pub(super) struct Lease<'s> {
    session: &'s Session,
    engine: Option<Box<Engine>>,
}

impl Session {
    /// Takes the engine for work between turns, which `interrupt` ends.
    pub(super) fn lease(&self, interrupt: &Interrupt) -> Result<Lease<'_>, SessionError> {
        let engine = self.desk.lease(interrupt)?;
        Ok(Lease {
            session: self,
            engine: Some(engine),
        })
    }
}

impl Lease<'_> {
    pub(super) fn engine(&mut self) -> &mut Engine {
        self.engine
            .as_mut()
            .expect("the engine is there until the lease ends")
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let engine = self.engine.take();
        if let Some(next) = engine.and_then(|engine| self.session.desk.resume(engine)) {
            self.session.drive(next);
        }
    }
}
