//! `agent sandbox-watch`: ends the commands of a runner that was killed. The runner
//! starts it; people do not.

use std::io;

use clap::Args;

use crate::event::Reason;
use crate::process;

use super::exit::Exit;

/// The name of the command.
pub(super) const SANDBOX_WATCH: &str = "sandbox-watch";

/// Reads the marks of commands until the runner is gone, and ends what is left.
#[derive(Debug, Args)]
pub(super) struct SandboxWatchCommand {}

impl SandboxWatchCommand {
    pub(super) fn execute(&self) -> Exit {
        match process::watch(io::stdin().lock()) {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Reason(Reason::Io),
        }
    }
}
