//! What a task says about the sandbox.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tier;
use super::proxy::Hosts;

/// Whether commands are kept in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// A task whose commands could start does not run where no tier works.
    #[default]
    Require,
    /// By the strongest tier that works; without one there is a warning, and they
    /// may do what this program may.
    Prefer,
    /// They may do what this program may.
    Off,
}

/// The tier that a task asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TierChoice {
    /// The strongest one that works.
    #[default]
    Auto,
    /// `namespaces` or none.
    Namespaces,
    /// `landlock` or none.
    Landlock,
}

/// What commands may do to the repositories of the workspace.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GitAccess {
    /// They may read them: no commits, no hooks, no settings.
    #[default]
    ReadOnly,
    /// They may commit: change objects, references and the index, and no settings.
    Writable,
}

/// What of the network commands reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nothing.
    #[default]
    Off,
    /// Everything.
    On,
    /// These, by name and through a proxy.
    Hosts(Hosts),
}

/// How much a command may take. None is as much as it wants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// Bytes of data of each process.
    pub memory: Option<u64>,
    /// Processes at a time, counted ten times a second.
    pub processes: Option<u64>,
    /// Bytes of a file that is written.
    pub file_size: Option<u64>,
}

/// What a task says about the sandbox, resolved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxOptions {
    /// Whether commands are kept in.
    pub mode: SandboxMode,
    /// How.
    pub tier: TierChoice,
    /// What of the network they reach.
    pub network: Network,
    /// What they may read besides the usual places; absolute.
    pub read: Vec<PathBuf>,
    /// What they may write besides the workspace; absolute.
    pub write: Vec<PathBuf>,
    /// What they may do to the repositories of the workspace.
    pub git: GitAccess,
    /// Whether they may make local sockets where the sandbox cannot tell whose
    /// socket they connect to.
    pub unix_sockets: bool,
    /// How much each may take.
    pub limits: ResourceLimits,
}

impl SandboxOptions {
    /// The tiers that are tried, the strongest first.
    pub fn tiers(&self) -> &'static [Tier] {
        match (self.mode, self.tier) {
            (SandboxMode::Off, _) => &[],
            (_, TierChoice::Auto) => &[Tier::Namespaces, Tier::Landlock],
            (_, TierChoice::Namespaces) => &[Tier::Namespaces],
            (_, TierChoice::Landlock) => &[Tier::Landlock],
        }
    }
}
