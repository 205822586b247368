//! Which session is meant, and how it is told of.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::event::Reason;
use crate::report::{neutral, neutral_json, neutral_text};
use crate::run;
use crate::store::{self, FindError, Seals, SessionTree, Store, StoreError};

use super::Format;

/// Where sessions are looked for.
#[derive(Debug, Args)]
pub(super) struct DirFlags {
    /// Looks for sessions here, and not in .agent/runs and $AGENT_DIR/sessions;
    /// may be repeated.
    #[arg(long = "dir", value_name = "DIR")]
    dirs: Vec<PathBuf>,
}

/// Where sessions are looked for, and in which form they are told of.
#[derive(Debug, Args)]
pub(super) struct PlaceFlags {
    #[command(flatten)]
    pub(super) dirs: DirFlags,

    /// What standard output gets.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t)]
    pub(super) output_format: Format,
}

/// Which session.
#[derive(Debug, Args)]
pub(super) struct SessionArgument {
    /// The session: its id, the beginning of it, its file, or its run directory.
    #[arg(value_name = "SESSION")]
    session: String,
}

/// A session that was found and read.
pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) tree: SessionTree,
    /// What knows it again; none when it is not known to be this user's.
    seals: Option<Seals>,
}

impl Opened {
    /// Lets what was made of the session be known as it is known itself.
    pub(super) fn seal(&self, store: &mut Store) {
        if let Some(seals) = &self.seals {
            // A session without a record is gone on with by the name of its file.
            let _ = store.seal(seals);
        }
    }

    /// The same for the session file itself, of which `content` was put back.
    pub(super) fn seal_content(&self, content: &[u8]) {
        if let Some(seals) = &self.seals {
            let lines = content.iter().rposition(|byte| *byte == b'\n');
            let length = lines.map_or(0, |last| last as u64 + 1);
            let _ = seals.seal(&self.path, &self.tree.header().id, length);
        }
    }
}

impl DirFlags {
    pub(super) fn roots(&self, console: &Console) -> Vec<PathBuf> {
        if self.dirs.is_empty() {
            run::session_roots_here(console.environment())
        } else {
            self.dirs.clone()
        }
    }

    /// Finds and reads a session.
    ///
    /// # Errors
    /// The exit, told already.
    pub(super) fn open(&self, which: &SessionArgument, console: &Console) -> Result<Opened, Exit> {
        let found = store::find(&self.roots(console), &which.session)
            .map_err(|error| refuse_find(&error, console))?;
        let tree = Store::read(&found.path).map_err(|error| refuse(&error, console))?;
        let seals = console
            .environment()
            .seals(&[PathBuf::from(&tree.header().cwd)]);
        let seals = seals.ok().filter(|seals| seals.check(&found.path).is_ok());
        Ok(Opened {
            path: found.path,
            tree,
            seals,
        })
    }
}

impl PlaceFlags {
    /// Prints the text or the document.
    pub(super) fn print(&self, text: &str, document: &Value, console: &Console) -> Exit {
        let watched = console.stdout_is_watched();
        let shown = match self.output_format {
            Format::Text => neutral_text(text),
            Format::Json if watched => format!("{}\n", neutral_json(&document.to_string())),
            Format::Json => format!("{document}\n"),
        };
        console.print(&console.redactor().redact(&shown));
        Exit::Done
    }
}

fn refuse_find(error: &FindError, console: &Console) -> Exit {
    if let FindError::Unreadable(error) = error {
        return refuse(error, console);
    }
    console.complain(&format!("agent: {}\n", neutral_text(&error.to_string())));
    Exit::Reason(run::find_reason(error))
}

/// Says why a session cannot be used.
pub(super) fn refuse(error: &StoreError, console: &Console) -> Exit {
    console.complain(&format!("agent: {}\n", neutral(&error.to_string())));
    Exit::Reason(run::store_reason(error))
}

/// Complains, and gives the exit of a wrong argument.
pub(super) fn misuse(message: &str, console: &Console) -> Exit {
    console.complain(&format!("agent: {}\n", neutral(message)));
    Exit::Reason(Reason::Usage)
}
