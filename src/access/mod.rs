//! What a call touches. Tools state accesses, policy judges them, so that a
//! renamed tool cannot slip past a rule.

mod door;

pub use door::open_judged;

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
}

impl Access {
    /// Whether the access changes nothing and may run beside others.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Read(_) => true,
            Self::Write(_) | Self::Exec(_) => false,
        }
    }
}
