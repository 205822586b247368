//! What a call touches. Tools state accesses, policy judges them, so that a
//! renamed tool cannot slip past a rule. And the one door by which what was
//! judged is opened.

mod contained;
mod credentials;
mod door;
mod folder;
mod host;
mod record;
mod removal;
mod walk;

pub use contained::{LeadsOut, WorkingCopies};
pub use credentials::{HOME_CREDENTIALS, MACHINE_CREDENTIALS, SHARED_PLACES};
pub use door::{Entry, OpenFile, open_judged, open_stepwise};
pub use folder::{Draft, Folder, Kind, Name, create_private, look, open_below};
pub use host::{HostError, host_of};
pub use record::{Accounts, create_record, digest, keep_account, write_record};
pub use removal::remove;
pub use walk::{Hidden, Ignoring, Met, Walk, WalkOptions};

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One thing that a tool call wants to touch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "kind", content = "target")]
pub enum Access {
    /// Reads a file or below a directory; an absolute path without `.` and `..`.
    Read(PathBuf),
    /// Creates, changes or removes a file; an absolute path without `.` and `..`.
    Write(PathBuf),
    /// Runs a command line with `bash -c`.
    Exec(String),
    /// Reaches a host over the network: its name in lower case, without port.
    Network(String),
    /// Calls a tool of an MCP server.
    Server {
        /// The server's name.
        server: String,
        /// The tool's name at the server.
        tool: String,
    },
    /// Starts another agent.
    Agent(String),
    /// Loads a skill.
    Skill(String),
}

impl Access {
    /// Whether the access changes nothing and may run beside others.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Read(_) | Self::Skill(_) => true,
            Self::Write(_)
            | Self::Exec(_)
            | Self::Network(_)
            | Self::Server { .. }
            | Self::Agent(_) => false,
        }
    }
}
