//! The `sandbox` section of a task: as it is written, and as what is built.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::sandbox::proxy::Hosts;
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

/// What of the network commands reach: `off`, `on`, or a list of hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum NetworkChoice {
    /// All or nothing.
    Whole(NetworkSwitch),
    /// These hosts, in the tier `namespaces`: `crates.io`, `*.crates.io` for all
    /// below it, an address, each with `:port` where it is not 80 or 443.
    Hosts(#[schemars(length(min = 1))] Vec<String>),
}

impl Default for NetworkChoice {
    fn default() -> Self {
        Self::Whole(NetworkSwitch::Off)
    }
}

/// The whole network or nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NetworkSwitch {
    /// Nothing.
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
            network: self.network(section, root),
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

    fn network(&mut self, section: &SandboxSection, root: &Node) -> Network {
        let entries = match &section.network {
            NetworkChoice::Whole(NetworkSwitch::Off) => return Network::Off,
            NetworkChoice::Whole(NetworkSwitch::On) => return Network::On,
            NetworkChoice::Hosts(entries) => entries,
        };
        let node = root.at_path(&["sandbox", "network"]);
        let at = node.map_or(root.at, |node| node.at);
        if section.mode == SandboxMode::Off {
            let message =
                "a list in `sandbox.network` needs a sandbox, and `sandbox.mode` is `off`";
            self.report.error(at, "out_of_range", message);
        }
        for (index, (entry, node)) in entries
            .iter()
            .zip(node.map_or(&[][..], Node::items))
            .enumerate()
        {
            let error = Hosts::parse([entry.as_str()]).err();
            let twice = entries.iter().take(index).any(|other| other == entry);
            let twice = twice.then(|| format!("`sandbox.network` has `{entry}` twice"));
            if let Some(message) = error.or(twice) {
                self.report.error(node.at, "bad_host", message);
            }
        }
        if entries.is_empty() {
            let message = "`sandbox.network` lists no host; `off` reaches none";
            self.report.error(at, "out_of_range", message);
        }
        let hosts = Hosts::parse(entries.iter().map(String::as_str));
        hosts.map_or(Network::Off, Network::Hosts)
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
        "network": match &options.network {
            Network::Off | Network::On => json!(network_name(&options.network)),
            Network::Hosts(hosts) => json!(hosts.written()),
        },
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

/// Its name in reports.
pub fn network_name(network: &Network) -> &'static str {
    match network {
        Network::Off => "off",
        Network::On => "on",
        Network::Hosts(_) => "hosts",
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
