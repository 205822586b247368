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
    /// Everything that no deny rule, ask rule or protection refuses.
    Bypass,
}

impl Mode {
    /// Every mode, the strictest first.
    pub const ALL: &[Self] = &[Self::ReadOnly, Self::AcceptEdits, Self::Bypass];

    /// The name in task files, flags and events.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read_only",
            Self::AcceptEdits => "accept_edits",
            Self::Bypass => "bypass",
        }
    }

    /// What the mode allows, in words that follow "allowed:".
    pub fn allows(self) -> &'static str {
        match self {
            Self::ReadOnly => "reading inside the workspace",
            Self::AcceptEdits => "reading and writing inside the workspace",
            Self::Bypass => "whatever no rule and no protection refuses",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnknownMode {
    /// A mode that needs the sandbox.
    #[error(
        "permission mode `workspace` allows any command inside a sandbox, which this version \
         does not have; use `accept_edits` with `Bash(...)` rules"
    )]
    NeedsSandbox,
    /// Anything else.
    #[error("unknown permission mode `{0}`: use read_only, accept_edits or bypass")]
    Unknown(String),
}

impl FromStr for Mode {
    type Err = UnknownMode;

    /// Reads a mode's name; hyphens count as underscores.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text.replace('-', "_").as_str() {
            "read_only" => Ok(Self::ReadOnly),
            "accept_edits" => Ok(Self::AcceptEdits),
            "bypass" => Ok(Self::Bypass),
            "workspace" => Err(UnknownMode::NeedsSandbox),
            _ => Err(UnknownMode::Unknown(text.to_owned())),
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
