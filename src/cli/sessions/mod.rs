//! `agent sessions`: what is done with kept conversations. One file a command.

mod compact;
mod export;

use clap::{Args, Subcommand, ValueEnum};

use crate::event::Reason;
use crate::report::neutral;
use crate::store::StoreError;

use super::console::Console;
use super::exit::Exit;

/// Works on kept conversations.
#[derive(Debug, Args)]
pub(super) struct SessionsCommand {
    #[command(subcommand)]
    command: SessionsSubcommand,
}

#[derive(Debug, Subcommand)]
enum SessionsSubcommand {
    /// Summarises the older part of a conversation.
    Compact(compact::CompactCommand),
    /// Writes a session as one page of HTML.
    Export(export::ExportCommand),
}

/// What standard output gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON document.
    Json,
}

impl SessionsCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        match &self.command {
            SessionsSubcommand::Compact(command) => command.execute(console),
            SessionsSubcommand::Export(command) => command.execute(console),
        }
    }
}

/// Says why a session file cannot be used.
fn refuse(error: &StoreError, console: &Console) -> Exit {
    console.complain(&format!("agent: {}\n", neutral(&error.to_string())));
    Exit::Reason(match error {
        StoreError::Open { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Reason::NoInput
        }
        StoreError::NotASession { .. }
        | StoreError::Version { .. }
        | StoreError::BadLine { .. }
        | StoreError::Tree(_) => Reason::BadTask,
        StoreError::Open { .. }
        | StoreError::Create { .. }
        | StoreError::Exists { .. }
        | StoreError::Locked { .. }
        | StoreError::Write { .. }
        | StoreError::Sync { .. }
        | StoreError::Sealed { .. }
        | StoreError::Encode(_) => Reason::Io,
    })
}
