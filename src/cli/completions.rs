//! `agent completions`: completion scripts.

use clap::Args;
use clap_complete::Shell;

use super::console::Console;
use super::exit::Exit;

/// Prints a completion script for a shell.
#[derive(Debug, Args)]
pub(super) struct CompletionsCommand {
    /// The shell.
    shell: Shell,
}

impl CompletionsCommand {
    pub(super) fn execute(&self, command: &mut clap::Command, console: &Console) -> Exit {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, command, "agent", &mut script);
        console.print(&String::from_utf8_lossy(&script));
        Exit::Done
    }
}
