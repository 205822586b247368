//! `agent sessions export`: a session as a page that a browser shows.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::console::Console;
use crate::cli::exit::Exit;
use crate::event::Reason;
use crate::export;
use crate::report::neutral;
use crate::store::SessionTree;

use super::place::{DirFlags, Opened, SessionArgument};

/// What stands for standard output.
const STDOUT: &str = "-";

/// Writes a session as one page of HTML that needs nothing else: the
/// transcript, tool calls, diffs, branches, tokens and cost.
///
/// Prints the name of the file. An older file of that name is replaced once
/// the new one is whole.
#[derive(Debug, Args)]
pub(super) struct ExportCommand {
    #[command(flatten)]
    session: SessionArgument,

    #[command(flatten)]
    dirs: DirFlags,

    /// The page; - is standard output. By default the session's id with .html,
    /// in the current directory.
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl ExportCommand {
    pub(super) fn execute(&self, console: &Console) -> Exit {
        let Opened { path, tree, .. } = match self.dirs.open(&self.session, console) {
            Ok(opened) => opened,
            Err(exit) => return exit,
        };
        let default = || PathBuf::from(file_name(&tree.header().id));
        let output = self.output.clone().unwrap_or_else(default);
        if output.as_os_str() == STDOUT {
            return print(&tree, console);
        }
        if is_same(&output, &path) {
            console.complain("agent: the page would replace the session that it shows\n");
            return Exit::Reason(Reason::Usage);
        }
        match export::save_session_html(&tree, &console.redactor(), &output) {
            Ok(()) => {
                console.print(&format!("{}\n", neutral(&output.display().to_string())));
                Exit::Done
            }
            Err(error) => {
                let name = neutral(&output.display().to_string());
                console.complain(&format!("agent: cannot write {name}: {error}\n"));
                Exit::Reason(Reason::Io)
            }
        }
    }
}

/// The page's name for a session: an id may be anything that a file says.
fn file_name(id: &str) -> String {
    let usual = |one: char| one.is_ascii_alphanumeric() || one == '-';
    if id.is_empty() || id.len() > 64 || !id.chars().all(usual) {
        return "session.html".to_owned();
    }
    format!("{id}.html")
}

fn is_same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}

/// Writes to standard output. A reader that went away is no failure.
fn print(tree: &SessionTree, console: &Console) -> Exit {
    let mut out = BufWriter::new(io::stdout().lock());
    let written =
        export::session_html(tree, &console.redactor(), &mut out).and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            console.complain(&format!(
                "agent: cannot write to standard output: {error}\n"
            ));
            Exit::Reason(Reason::Io)
        }
        _ => Exit::Done,
    }
}
