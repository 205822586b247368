//! A compaction that somebody asks for.

use crate::session::interrupt::Interrupt;
use crate::session::{Session, SessionError};

use super::run::{Compacted, Outcome};

impl Session {
    /// Puts a summary in the place of the older part of the conversation;
    /// `instructions` say what it should attend to. What runs and waits is
    /// cancelled first. [`Session::cancel`] also ends the compaction.
    ///
    /// # Errors
    /// [`SessionError::NothingToCompact`] when all messages stay anyway;
    /// [`SessionError::NotCompacted`] when there is no summary that is shorter
    /// than what it stands for, or no budget for it. The conversation is then as
    /// before.
    pub async fn compact(&self, instructions: Option<&str>) -> Result<Compacted, SessionError> {
        self.cancel().await;
        self.desk.at_rest().await;
        let interrupt = Interrupt::default();
        let mut lease = self.lease(&interrupt)?;
        let outcome = lease.engine().compact_by_hand(instructions, &interrupt);
        let outcome = outcome.await;
        drop(lease);
        match outcome? {
            Outcome::Done(compacted) => Ok(compacted),
            Outcome::Nothing => Err(SessionError::NothingToCompact),
            Outcome::Failed(why) => Err(SessionError::NotCompacted(why)),
        }
    }
}
