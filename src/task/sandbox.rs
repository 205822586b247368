//! The `sandbox` section of a task: as it is written, and as what is built.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sandbox::{GitAccess, Network, ResourceLimits, SandboxMode, SandboxOptions, TierChoice};
use crate::task::resolve::Resolution;
use crate::task::tree::Node;

/// What keeps commands and hooks in.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxSection {
    /// Whether they are kept in.
    pub mode: SandboxMode,
    /// How they are kept in.
    pub tier: TierChoice,
    /// What of the network they reach.
    pub network: NetworkChoice,
    /// What they may read besides the workspace, the system and toolchains.
    #[schemars(inner(length(min = 1)))]
    pub read: Vec<String>,
    /// What they may write besides the workspace.
    #[schemars(inner(length(min = 1)))]
    pub write: Vec<String>,
    /// What they may do to the repositories of the workspace.
    pub git: GitAccess,
    /// How much each of them may take.
    pub limits: SandboxLimitsSection,
    /// Whether they may use local sockets in the tier `landlock`, which cannot
    /// tell whose sockets they are; in the other they reach only their own.
    pub unix_sockets: bool,
}

/// What of the network commands reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkChoice {
    /// Nothing.
    #[default]
    Off,
    /// Everything.
    On,
}

/// How much a command may take. What is not there is not limited.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxLimitsSection {
    /// Memory of each process, as `512MiB` or `4GiB`.
    #[schemars(regex(pattern = r"^[1-9][0-9]{0,5}(KiB|MiB|GiB)$"))]
    pub memory: Option<String>,
    /// Processes at a time, counted ten times a second.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub processes: Option<u64>,
    /// The largest file that may be written, as `100MiB`.
    #[schemars(regex(pattern = r"^[1-9][0-9]{0,5}(KiB|MiB|GiB)$"))]
    pub file_size: Option<String>,
}

impl Resolution<'_> {
    /// What the section stands for; what is wrong with it is reported.
    pub(super) fn sandbox(&mut self, section: &SandboxSection, root: &Node) -> SandboxOptions {
        let read = self.sandbox_places("read", root);
        let write = self.sandbox_places("write", root);
        let limits = &section.limits;
        SandboxOptions {
            mode: section.mode,
            tier: section.tier,
            network: match section.network {
                NetworkChoice::Off => Network::Off,
                NetworkChoice::On => Network::On,
            },
            read,
            write,
            git: section.git,
            unix_sockets: section.unix_sockets,
            limits: ResourceLimits {
                memory: limits.memory.as_deref().and_then(bytes),
                processes: limits.processes,
                file_size: limits.file_size.as_deref().and_then(bytes),
            },
        }
    }

    fn sandbox_places(&mut self, key: &str, root: &Node) -> Vec<PathBuf> {
        let nodes = root.at_path(&["sandbox", key]).map_or(&[][..], Node::items);
        let mut places = Vec::new();
        for node in nodes {
            let Some(text) = node.text() else { continue };
            let path = self.base(node.at).join(self.expand_home(text));
            match path.canonicalize() {
                Ok(real) if real == Path::new("/") => {
                    let message = format!("`sandbox.{key}` must not open the whole machine");
                    let hint = "or write `sandbox.mode: off`".to_owned();
                    self.report
                        .error_with(node.at, "out_of_range", message, hint);
                }
                Ok(real) => places.push(real),
                Err(_) => {
                    let message = format!("there is no {}", path.display());
                    self.report.no_input(node.at, message);
                }
            }
        }
        places
    }
}

/// The resolved section, for the task's document.
pub(super) fn document(options: &SandboxOptions) -> Value {
    json!({
        "mode": options.mode,
        "tier": options.tier,
        "network": network_name(&options.network),
        "read": options.read,
        "write": options.write,
        "git": options.git,
        "unixSockets": options.unix_sockets,
        "limits": {
            "memoryBytes": options.limits.memory,
            "processes": options.limits.processes,
            "fileSizeBytes": options.limits.file_size,
        },
    })
}

/// How a task file writes it.
pub fn network_name(network: &Network) -> &'static str {
    match network {
        Network::Off => "off",
        Network::On => "on",
    }
}

/// The bytes of a size with a unit.
fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    units.iter().find_map(|(unit, shift)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        number.checked_shl(*shift)
    })
}
