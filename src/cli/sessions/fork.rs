//! `agent sessions fork`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::store::{Durability, EntryId, ForkFile, Header, Store, TreeError};

use super::place::{Opened, PlaceFlags, SessionArgument, misuse, refuse};

/// Begins a new session with the first entries of another one, which stays as
/// it is.
#[derive(Debug, Args)]
pub(super) struct ForkCommand {
    #[command(flatten)]
    session: SessionArgument,

    /// The last entry of the new session, as show and tree name it; by default
    /// the newest.
    #[arg(long, value_name = "ENTRY")]
    entry: Option<String>,

    /// The new session file; by default one beside the other.
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    place: PlaceFlags,
}

impl ForkCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let opened = match self.place.dirs.open(&self.session, console) {
            Ok(opened) => opened,
            Err(exit) => return exit,
        };
        let tree = &opened.tree;
        let at = match &self.entry {
            Some(entry) => Some(EntryId::from(entry.as_str())),
            None => tree.leaf().map(|leaf| leaf.id.clone()),
        };
        if let Some(entry) = at.as_ref().filter(|entry| tree.entry(entry).is_none()) {
            return misuse(&TreeError::UnknownEntry(entry.clone()).to_string(), console);
        }
        let to = self.target(&opened, console);
        let forked = Store::fork_file(tree, &opened.path, at.as_ref(), to).and_then(|mut fork| {
            opened.seal(&mut fork);
            fork.close().map(|()| fork)
        });
        let fork = match forked {
            Ok(fork) => fork,
            Err(error) => return refuse(&error, console),
        };
        let header = fork.tree().header();
        let path = fork.path().map(PathBuf::from).unwrap_or_default();
        let document = json!({
            "id": header.id,
            "path": path,
            "parentSession": header.parent_session,
            "fromEntry": at,
            "entries": fork.tree().entries().len(),
        });
        let text = format!("{} {}\n", header.id, path.display());
        self.place.print(&text, &document, console)
    }

    fn target(&self, opened: &Opened, console: &Console) -> ForkFile {
        let header = Header::new(opened.tree.header().cwd.clone());
        let path = match &self.output {
            Some(path) => path.clone(),
            None => ForkFile::beside(&opened.path, &header),
        };
        ForkFile {
            path,
            header,
            durability: Durability::Step,
            redactor: console.redactor(),
        }
    }
}
