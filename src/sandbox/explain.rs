//! Why a command failed, when the sandbox refused it something: its output
//! gives the hint, and where the place lies the answer.

use std::path::{Component, Path, PathBuf};

use super::Tier;
use super::git_directory::settings;
use super::options::{Network, SandboxOptions};
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

/// What they say without a network, in lower case.
const CUT_OFF: &[&str] = &[
    "bad address",
    "connect eperm",
    "could not connect to server",
    "could not resolve",
    "couldn't connect to server",
    "dns error",
    "eai_again",
    "enetunreach",
    "enotfound",
    "failed to establish a new connection",
    "failed to lookup address",
    "failure in name resolution",
    "getaddrinfo",
    "name or service not known",
    "network is unreachable",
    "networkunreachable",
    "no such host",
    "socket: operation not permitted",
    "socketexception",
    "unable to resolve host",
    "unknownhostexception",
];

/// What they say when a system call is refused, in lower case.
const NOT_PERMITTED: &[&str] = &["operation not permitted", "eperm", "permission denied"];

/// How many lines before a refusal are about the same: programs print where they were.
const LINES_BEFORE: usize = 6;

/// What a tier takes from programs that their words of a refusal do not name.
struct Taken {
    tier: Tier,
    /// What is about it, in lower case.
    about: &'static [&'static str],
    reason: &'static str,
}

const SHARED_MEMORY: &str = "the tier `landlock` has no shared memory (/dev/shm) for commands: use threads, or files \
     in $TMPDIR; the tier `namespaces` has it";
const SOCKETS: &str = "without the network the tier `landlock` has no sockets: neither servers nor clients work, \
     on this machine's own address neither; the tier `namespaces` has a loopback of its own";
const LOCAL_SOCKETS: &str =
    "the tier `landlock` refuses local sockets unless `sandbox.unix_sockets` is true";
const OWN_LOOPBACK: &str = "the loopback of commands is their own: they reach only servers that the same command \
     started";

const TAKEN: &[Taken] = &[
    Taken {
        tier: Tier::Landlock,
        about: &[
            "/dev/shm",
            "semlock",
            "shared memory",
            "shared_memory",
            "shm_open",
        ],
        reason: SHARED_MEMORY,
    },
    Taken {
        tier: Tier::Landlock,
        about: &[
            ".sock'",
            ".sock\"",
            ".sock:",
            ".sock ",
            "af_unix",
            "unix domain",
            "unix socket",
        ],
        reason: LOCAL_SOCKETS,
    },
    Taken {
        tier: Tier::Landlock,
        about: &[
            "127.0.0.1",
            "[::1]",
            "bind",
            "connect",
            "listen",
            "localhost",
            "socket",
        ],
        reason: SOCKETS,
    },
];

/// What programs say of an address at which nobody answers, in lower case.
const NOBODY_THERE: &[&str] = &[
    "connection refused",
    "econnrefused",
    "could not connect",
    "couldn't connect",
];
const THIS_MACHINE: &[&str] = &["127.0.0.1", "::1", "localhost"];

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
    tier: Tier,
    /// Whether local sockets are allowed in every tier.
    unix_sockets: bool,
}

/// Where programs keep what is temporary; not in `landlock`.
const TEMPORARY: &[&str] = &["/tmp", "/var/tmp"];
const SHARED: &str = "/dev/shm";

/// What commands in a tier find otherwise than programs are used to, for the model: in
/// words that follow a full stop and lack one.
pub fn about(tier: &str, network: &str) -> Option<String> {
    let files = match tier {
        "namespaces" => "they write the workspace and temporary files only",
        "landlock" => "they write the workspace and $TMPDIR only, not /tmp and not /dev/shm",
        _ => return None,
    };
    let network = match (network, tier) {
        ("off", "landlock") => ", and have no network and no sockets, local servers included",
        ("off", _) => ", and have no network but a loopback of their own",
        ("hosts", _) => ", and reach the hosts of the task only, through the proxy of HTTPS_PROXY",
        _ => "",
    };
    Some(format!("Commands run in a sandbox: {files}{network}"))
}

impl Explainer {
    pub(super) fn new(
        tier: Tier,
        places: &Places,
        grounds: &Grounds,
        options: &SandboxOptions,
    ) -> Self {
        let mut write = places.write.clone();
        write.extend([grounds.private_home(), grounds.private_tmp()]);
        write.extend(["/dev", "/proc"].map(PathBuf::from));
        if tier == Tier::Namespaces {
            write.extend(TEMPORARY.iter().map(PathBuf::from));
        }
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
            network: options.network.clone(),
            tier,
            unix_sockets: options.unix_sockets,
        }
    }

    /// Why the command that printed this could not do what it wanted, as far as
    /// that was the sandbox.
    pub(super) fn reasons(&self, output: &str) -> Vec<String> {
        let mut reasons: Vec<String> = Vec::new();
        let lines: Vec<&str> = output.lines().rev().take(LINES_MAX).collect();
        for (at, line) in lines.iter().enumerate() {
            let says = |marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
            let before = lines.get(at..).unwrap_or_default();
            let before = before.iter().take(LINES_BEFORE + 1);
            let around = before.map(|line| line.to_lowercase()).collect::<Vec<_>>();
            reasons.extend(self.cut_off(around.first().map_or("", String::as_str)));
            reasons.extend(self.taken(&around).map(str::to_owned));
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

    /// What a line in lower case says of the network.
    fn cut_off(&self, line: &str) -> Option<String> {
        let says = |marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
        if self.network == Network::On {
            return None;
        }
        if says(NOBODY_THERE) && says(THIS_MACHINE) {
            let reason = match self.tier {
                Tier::Namespaces => OWN_LOOPBACK,
                Tier::Landlock => SOCKETS,
            };
            return Some(reason.to_owned());
        }
        let off = match self.network {
            Network::Hosts(_) => {
                "commands reach the hosts of `sandbox.network` only, by HTTP through the proxy that \
                 HTTPS_PROXY names"
            }
            Network::Off | Network::On => {
                "commands do not reach the network (`sandbox.network` is off)"
            }
        };
        says(CUT_OFF).then(|| off.to_owned())
    }

    /// What the tier has taken, when the first of these lines in lower case, the last
    /// that was printed, is a refusal of that.
    fn taken(&self, lines: &[String]) -> Option<&'static str> {
        let says = |line: &str, marks: &[&str]| marks.iter().any(|mark| line.contains(mark));
        let refusal = lines.first().filter(|line| says(line, NOT_PERMITTED))?;
        // A refusal that names a place is about that.
        let shared = refusal.contains(SHARED);
        if refusal.contains("permission denied") && refusal.contains('/') && !shared {
            return None;
        }
        let taken = TAKEN.iter().filter(|taken| taken.tier == self.tier);
        let mut about = taken.filter(|taken| lines.iter().any(|line| says(line, taken.about)));
        let reason = about.next()?.reason;
        let allowed = match reason {
            LOCAL_SOCKETS => self.unix_sockets,
            SOCKETS => self.network == Network::On || refusal.contains("permission denied"),
            _ => false,
        };
        (!allowed).then_some(reason)
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
        if self.tier == Tier::Landlock && path.starts_with(SHARED) {
            return Some(SHARED_MEMORY.to_owned());
        }
        if below(&self.write) {
            return None;
        }
        if TEMPORARY.iter().any(|place| path.starts_with(place)) {
            return Some(format!(
                "{shown} is not given to commands: temporary files go to $TMPDIR"
            ));
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
