//! `agent sandbox-forward`: the inner end of a sandbox's way to the hosts of
//! `sandbox.network`. The sandbox starts it; people do not.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use tokio::runtime::Builder;

use crate::event::Reason;
use crate::sandbox::proxy;

use super::console::Console;
use super::exit::Exit;

/// What a shell says of a command that it cannot start.
const NOT_STARTED: i32 = 126;

/// Runs a command whose connections go to a proxy behind a socket.
#[derive(Debug, Args)]
pub(super) struct SandboxForwardCommand {
    /// The socket of the proxy.
    #[arg(long, value_name = "PATH")]
    socket: PathBuf,

    /// The command.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl SandboxForwardCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let Some((program, args)) = self.command.split_first() else {
            return Exit::Reason(Reason::Usage);
        };
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                console.complain(&format!("agent: cannot start the runtime: {error}\n"));
                return Exit::Reason(Reason::Internal);
            }
        };
        match runtime.block_on(proxy::forward(&self.socket, program, args)) {
            Ok(status) => Exit::Command(status),
            Err(error) => {
                console.complain(&format!("agent: {error}\n"));
                Exit::Command(NOT_STARTED)
            }
        }
    }
}
