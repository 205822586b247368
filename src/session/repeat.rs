//! The repeat guard: the same call with the same result again and again.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use crate::event::LoopAction;

/// From this many equal calls in a row on, the result carries a reminder.
const REMIND_AT: u32 = 3;

/// Counts equal calls in a row, over the whole session.
#[derive(Debug)]
pub(super) struct RepeatGuard {
    stop_at: u32,
    last: u64,
    count: u32,
}

impl RepeatGuard {
    pub(super) fn new(stop_at: u32) -> Self {
        Self {
            stop_at,
            last: 0,
            count: 0,
        }
    }

    /// Notes a finished call; tells what to do about it and how many equal
    /// ones there were in a row.
    pub(super) fn note(
        &mut self,
        tool: &str,
        args: &Value,
        result: &str,
    ) -> Option<(LoopAction, u32)> {
        let mut hasher = DefaultHasher::new();
        tool.hash(&mut hasher);
        args.to_string().hash(&mut hasher);
        result.hash(&mut hasher);
        let hash = hasher.finish();
        self.count = if hash == self.last { self.count + 1 } else { 1 };
        self.last = hash;
        if self.count >= self.stop_at {
            Some((LoopAction::Stop, self.count))
        } else if self.count >= REMIND_AT {
            Some((LoopAction::Remind, self.count))
        } else {
            None
        }
    }

    /// How many equal calls there were in a row.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
}
