//! The permission modes: what happens when no rule speaks.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is allowed when no rule matches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reads inside the workspace; nothing else.
    #[default]
    ReadOnly,
    /// And writes inside the workspace.
    AcceptEdits,
    /// And any command, provided the sandbox is enforced.
    Workspace,
    /// Everything that no deny rule, ask rule or protection refuses.
    Bypass,
}

impl Mode {
    /// Every mode, the strictest first.
    pub const ALL: &[Self] = &[
        Self::ReadOnly,
        Self::AcceptEdits,
        Self::Workspace,
        Self::Bypass,
    ];

    /// The name in task files, flags and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::AcceptEdits => "accept_edits",
            Self::Workspace => "workspace",
            Self::Bypass => "bypass",
        }
    }

    /// What the mode allows, in words that follow "allowed:".
    pub fn allows(self, sandbox: Enforcement) -> &'static str {
        match (self, sandbox) {
            (Self::ReadOnly, _) => "reading inside the workspace",
            (Self::Workspace, Enforcement::Enforced) => {
                "reading and writing inside the workspace, and commands in the sandbox"
            }
            (Self::AcceptEdits | Self::Workspace, _) => "reading and writing inside the workspace",
            (Self::Bypass, _) => "whatever no rule and no protection refuses",
        }
    }

    /// Whether a command may run that no rule speaks about.
    pub(crate) fn runs_commands(self, sandbox: Enforcement) -> bool {
        match self {
            Self::ReadOnly | Self::AcceptEdits => false,
            Self::Workspace => sandbox == Enforcement::Enforced,
            Self::Bypass => true,
        }
    }

    /// Whether it allows what is neither a path nor a command.
    pub(crate) fn allows_everything(self) -> bool {
        self == Self::Bypass
    }

    /// What stands in the way of such a command, in words that follow "no rule
    /// allows it".
    pub(crate) fn refuses_commands(self, sandbox: Enforcement) -> String {
        match (self, sandbox) {
            (Self::Workspace, Enforcement::NotEnforced) => format!(
                "in mode {self}, which runs commands only where a sandbox is enforced, and none \
                 is here"
            ),
            _ => format!("in mode {self}"),
        }
    }
}

/// Whether the kernel keeps commands inside the job's directories.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// It does not, or that is not known.
    #[default]
    NotEnforced,
    /// A sandbox that was tried on this machine holds every command.
    Enforced,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown permission mode `{0}`: use read_only, accept_edits, workspace or bypass")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    /// Reads a mode's name; hyphens count as underscores.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text.replace('-', "_").as_str() {
            "read_only" => Ok(Self::ReadOnly),
            "accept_edits" => Ok(Self::AcceptEdits),
            "workspace" => Ok(Self::Workspace),
            "bypass" => Ok(Self::Bypass),
            _ => Err(UnknownMode(text.to_owned())),
        }
    }
}

/// What an `ask` rule means, as nobody is there to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnAsk {
    /// The call is denied, and the model goes another way.
    #[default]
    Deny,
    /// The run ends.
    Fail,
}
