//! Why a command failed, when the sandbox refused it something: its output
//! gives the hint, and where the place lies the answer.

use std::path::{Component, Path, PathBuf};

use super::git_directory::settings;
use super::options::Network;
use super::places::{Grounds, Places};

/// What programs say when the kernel refuses something.
const REFUSED: &[&str] = &[
    "ermission denied",
    "ead-only file system",
    "peration not permitted",
    "EACCES",
    "EROFS",
    "EPERM",
    "PermissionError",
    "PermissionDenied",
];

/// What they say when a place is not there.
const MISSING: &[&str] = &["o such file or directory", "ENOENT", "FileNotFoundError"];

/// What they say without a network.
const CUT_OFF: &[&str] = &[
    "etwork is unreachable",
    "ould not resolve",
    "ailure in name resolution",
    "ame or service not known",
    "EAI_AGAIN",
    "ENETUNREACH",
    "NetworkUnreachable",
    "dns error",
    "ailed to lookup address",
    "ocket: Operation not permitted",
];

/// So much of the end of an output is looked at, and so much is told.
const LINES_MAX: usize = 200;
const REASONS_MAX: usize = 3;

/// What a sandbox knows of places.
#[derive(Debug)]
pub(super) struct Explainer {
    workspace: PathBuf,
    write: Vec<PathBuf>,
    read: Vec<PathBuf>,
    secret: Vec<PathBuf>,
    protected: Vec<PathBuf>,
    network: Network,
}

impl Explainer {
    pub(super) fn new(places: &Places, grounds: &Grounds, network: &Network) -> Self {
        let mut write = places.write.clone();
        write.extend([grounds.private_home(), grounds.private_tmp()]);
        write.extend(["/tmp", "/var/tmp", "/dev", "/proc"].map(PathBuf::from));
        Self {
            workspace: grounds.workspace.clone(),
            write,
            read: places.read.clone(),
            secret: places.secret.clone(),
            protected: grounds
                .protected
                .iter()
                .chain(&grounds.records)
                .cloned()
                .chain(grounds.repositories.iter().flat_map(|git| settings(git)))
                .collect(),
            network: network.clone(),
        }
    }

    /// Why the command that printed this could not do what it wanted, as far as
    /// that was the sandbox.
    pub(super) fn reasons(&self, output: &str) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        for line in output.lines().rev().take(LINES_MAX) {
            let says = |marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
            if self.network != Network::On && says(CUT_OFF) {
                let off = match self.network {
                    Network::Hosts(_) => {
                        "commands reach the hosts of `sandbox.network` only, by HTTP through the \
                         proxy that HTTPS_PROXY names"
                    }
                    Network::Off | Network::On => {
                        "commands do not reach the network (`sandbox.network` is off)"
                    }
                };
                reasons.push(off.to_owned());
            }
            if says(REFUSED) {
                reasons.extend(paths(line).filter_map(|path| self.refusal(&path)));
            } else if says(MISSING) {
                reasons.extend(paths(line).filter_map(|path| self.absence(&path)));
            }
            reasons.sort_unstable();
            reasons.dedup();
            if reasons.len() >= REASONS_MAX {
                reasons.truncate(REASONS_MAX);
                break;
            }
        }
        reasons
    }

    fn refusal(&self, path: &Path) -> Option<String> {
        let path = self.real(path);
        let shown = path.display();
        let below = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        if below(&self.protected) {
            return Some(format!("{shown} is protected: commands may not write it"));
        }
        if below(&self.secret) {
            return Some(format!("{shown} is kept from commands"));
        }
        if below(&self.write) {
            return None;
        }
        Some(match below(&self.read) {
            true => format!("commands may read {shown}, and not write it"),
            false => format!(
                "{shown} is outside of what commands may use: the workspace, the system and \
                 toolchains, and what `sandbox.read` and `sandbox.write` list"
            ),
        })
    }

    /// In namespaces what is not theirs is not there; this says so only of what
    /// is there outside.
    fn absence(&self, path: &Path) -> Option<String> {
        let real = self.real(path);
        let known = self.write.iter().chain(&self.read);
        let outside = !known.into_iter().any(|place| real.starts_with(place));
        (outside && real.symlink_metadata().is_ok())
            .then(|| self.refusal(path))
            .flatten()
    }

    /// The path as it is, as far as that can be told.
    fn real(&self, path: &Path) -> PathBuf {
        let mut plain = PathBuf::new();
        for part in self.workspace.join(path).components() {
            match part {
                Component::ParentDir => {
                    plain.pop();
                }
                other => plain.push(other),
            }
        }
        plain.canonicalize().unwrap_or(plain)
    }
}

/// What in a line looks like a path.
fn paths(line: &str) -> impl Iterator<Item = PathBuf> {
    let edges = [
        ' ', '\t', '\'', '"', '`', ':', ',', '(', ')', '‘', '’', '[', ']', '=',
    ];
    line.split(edges)
        .map(|word| word.trim_end_matches(['.', ';']))
        .filter(|word| word.len() > 1 && word.contains(['/', '.']))
        .map(PathBuf::from)
}
