//! Where a process is on its way to the end.

use std::time::Instant;

use super::Ending;

/// Where a process is on its way to the end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Phase {
    /// It runs.
    Running {
        deadline: Option<Instant>,
        /// When its processes are counted next.
        count_at: Option<Instant>,
    },
    /// The group was told to end and has until `kill_at`.
    Terminating { ending: Ending, kill_at: Instant },
    /// The group was killed; the kernel has until `abandon_at` to make it so.
    Killing { ending: Ending, abandon_at: Instant },
    /// The leader is gone; what is still in the pipe is read.
    Draining {
        ending: Ending,
        quiet_at: Instant,
        stop_at: Instant,
    },
    /// What it left behind is killed.
    Sweeping {
        ending: Ending,
        rounds: u32,
        at: Instant,
    },
    /// Nothing is left.
    Ended(Ending),
}

impl Phase {
    /// When something is to be done although nothing was heard.
    pub(super) fn due(self) -> Option<Instant> {
        match self {
            Self::Running { deadline, count_at } => match (deadline, count_at) {
                (Some(deadline), Some(count_at)) => Some(deadline.min(count_at)),
                (deadline, count_at) => deadline.or(count_at),
            },
            Self::Terminating { kill_at, .. } => Some(kill_at),
            Self::Killing { abandon_at, .. } => Some(abandon_at),
            Self::Draining {
                quiet_at, stop_at, ..
            } => Some(quiet_at.min(stop_at)),
            Self::Sweeping { at, .. } => Some(at),
            Self::Ended(_) => None,
        }
    }

    /// Whether the process that was started still is.
    pub(super) fn has_leader(self) -> bool {
        match self {
            Self::Running { .. } | Self::Terminating { .. } | Self::Killing { .. } => true,
            Self::Draining { .. } | Self::Sweeping { .. } | Self::Ended(_) => false,
        }
    }
}
