//! The only place that chooses an exit code.

use std::process::ExitCode;

use crate::event::Reason;

use super::console::Console;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// It did what it was asked.
    Done,
    /// It ended for this reason.
    Reason(Reason),
    /// `agent permissions check`: the call would be refused.
    Refused,
    /// The command that ran in our place exited with this status.
    Command(i32),
}

impl Exit {
    /// The process's exit status. Output that could not be written makes a
    /// success an I/O failure, unless its reader simply went away.
    pub(super) fn code(self, console: &Console) -> ExitCode {
        let reason = match self {
            Self::Done => Reason::Success,
            Self::Reason(reason) => reason,
            Self::Refused => Reason::Denied,
            Self::Command(status) => return ExitCode::from(status.to_le_bytes()[0]),
        };
        let reason = if reason == Reason::Success && console.failed() {
            Reason::Io
        } else {
            reason
        };
        ExitCode::from(reason.exit_code())
    }
}
