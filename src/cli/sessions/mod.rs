//! `agent sessions`: what is done with kept conversations. One file a command.

mod compact;
mod export;
mod fork;
mod line;
mod list;
mod place;
mod show;
mod summarise;
mod tree;

use clap::{Args, Subcommand, ValueEnum};

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
    /// Lists the sessions there are, the newest first.
    List(list::ListCommand),
    /// Shows a session: its header, its counts, its entries.
    Show(show::ShowCommand),
    /// Draws the branches of a session.
    Tree(tree::TreeCommand),
    /// Begins a new session with the first entries of another one.
    Fork(fork::ForkCommand),
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
            SessionsSubcommand::List(command) => command.execute(console),
            SessionsSubcommand::Show(command) => command.execute(console),
            SessionsSubcommand::Tree(command) => command.execute(console),
            SessionsSubcommand::Fork(command) => command.execute(console),
            SessionsSubcommand::Compact(command) => command.execute(console),
            SessionsSubcommand::Export(command) => command.execute(console),
        }
    }
}
