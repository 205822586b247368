//! Compaction: a summary takes the place of the older part of a conversation.
//!
//! `run` does it, in the engine; `ask` asks the model, `by_hand` is the way in
//! for those who want it now, `branch` has a branch summarised that is left. All
//! else is pure: `cut` says where a conversation may be cut, `files` which files
//! its calls touched, `plan` what is summarised and what stays, `transcript`
//! writes messages down as text, `summary` is what the model is asked and what
//! becomes of its answer, and `fallback` what takes the place of a summary that
//! is missing or too long.

mod ask;
mod branch;
mod by_hand;
mod cut;
mod fallback;
mod files;
mod plan;
mod run;
mod summary;
mod transcript;

pub use files::TouchedFiles;
pub use plan::CompactionPlan;
pub use run::Compacted;
pub use summary::SummaryRequest;

pub(super) use branch::left_behind;
pub(super) use run::{Outcome, Wanted};

/// When a conversation is compacted, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Compaction {
    /// Whether it happens without being asked for.
    pub enabled: bool,
    /// The tokens of the model's window that a request leaves free.
    pub reserve_tokens: u64,
    /// The newest tokens that stay as they are.
    pub keep_recent_tokens: u64,
    /// How often a session is compacted without being asked for.
    pub max_compactions: u32,
    /// The share of the context that a compaction must save, between 0 and 1.
    pub min_reduction: f64,
}

/// The part of the room that a question for a summary may fill: tokens are
/// estimated.
const ROOM_SHARE: (u64, u64) = (3, 4);

impl Compaction {
    /// The tokens that a request may have in a window; of a small one at least
    /// half, whatever the reserve.
    pub(super) fn tokens_max(&self, window: u64) -> u64 {
        window.saturating_sub(self.reserve_tokens.min(window / 2))
    }

    /// The reserve in a window.
    pub(super) fn reserve_in(&self, window: u64) -> u64 {
        window - self.tokens_max(window)
    }

    /// The most tokens of a question for a summary, of the window that its answer
    /// leaves.
    pub(super) fn question_room(&self, window: u64) -> u64 {
        window.saturating_sub(self.reserve_in(window)) * ROOM_SHARE.0 / ROOM_SHARE.1
    }

    /// The newest tokens that stay: in a small window not so many that nothing
    /// would be gained. `fixed` is what every request carries.
    pub(super) fn keep_in(&self, window: u64, fixed: u64) -> u64 {
        let free = self.tokens_max(window).saturating_sub(fixed);
        self.keep_recent_tokens.min(free / 2)
    }
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            enabled: true,
            reserve_tokens: 16_384,
            keep_recent_tokens: 20_000,
            max_compactions: 8,
            min_reduction: 0.2,
        }
    }
}
