//! How the kernel enforces what policy assumed: commands run where they can
//! read, write and reach only what they are meant to.
//!
//! There are two tiers. `namespaces` gives a command a machine of its own in
//! which nothing else exists; `landlock` leaves it on this one and lets the
//! kernel refuse. Which of them works is found out by trying to get out
//! ([`Sandbox::establish`]), once a process and tier.
//!
//! What neither covers: programs share the processor and the disk with
//! everything else, and what they leave in the workspace is read by whoever
//! reads it next.

mod appeared;
mod aside;
mod bubblewrap;
mod closed;
mod environment;
mod explain;
mod exposed;
mod filter;
mod git_config;
mod git_credentials;
mod git_directory;
mod guard;
mod hooks;
mod kept;
mod landlock;
mod limits;
mod objects;
mod options;
mod places;
mod probe;
pub mod proxy;
mod records;
mod repositories;
mod toolchains;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use seccompiler::BpfProgram;

use crate::process::{Confinement, Leader, Wrapped};

use bubblewrap::Bubble;
use explain::Explainer;
use filter::Sockets;
use guard::Guard;
use landlock::Bonds;
use places::Places;
use proxy::RecentRefusals;
use records::Records;

pub use appeared::{Before, PathTest};
pub use bubblewrap::program as bubblewrap_program;
pub use environment::{environment, without_network};
pub use explain::about;
pub use git_config::section;
pub use git_credentials::{GitCredentials, git_credentials};
pub use hooks::HookSandbox;
pub use landlock::landlock_version;
pub use options::{GitAccess, Network, ResourceLimits, SandboxMode, SandboxOptions, TierChoice};
pub use places::Grounds;
pub use probe::works;
pub use repositories::{Denials, Survey, survey};
pub use toolchains::toolchain_variable;

/// Why the tier `landlock` is refused to a task that lists hosts.
pub const NO_HOSTS: &str = "it cannot tell the hosts of `sandbox.network` apart";

/// How commands are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// Namespaces of their own: what is not theirs is not there.
    Namespaces,
    /// Landlock rules and filters: what is not theirs is refused.
    Landlock,
}

impl Tier {
    /// Its name in task files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Landlock => "landlock",
        }
    }
}

/// What was found for a job.
#[derive(Debug)]
pub struct Established {
    /// The sandbox; none lets commands do what this program may.
    pub sandbox: Option<Sandbox>,
    /// Each tier that was wanted and not taken, with the reason.
    pub passed_over: Vec<(Tier, String)>,
}

/// There is no sandbox, and the task does not do without.
#[derive(Debug, thiserror::Error)]
#[error("commands need a sandbox and none works here: {}", reasons(.passed_over))]
pub struct NoSandbox {
    passed_over: Vec<(Tier, String)>,
}

impl NoSandbox {
    /// This tier cannot be had, for this reason.
    pub fn of(tier: Tier, reason: String) -> Self {
        Self {
            passed_over: vec![(tier, reason)],
        }
    }

    /// What may be done about it.
    pub fn hints(&self) -> Vec<String> {
        vec![
            "install bubblewrap, or run on Linux 6.2 or later with Landlock enabled".to_owned(),
            "or write `sandbox.mode: off` (`--sandbox off`): commands may then do what this \
             program may"
                .to_owned(),
        ]
    }
}

/// Both tiers, the stronger one first, with the reason where one does not work
/// here. They are tried once a process.
pub async fn tiers() -> [(Tier, Result<(), String>); 2] {
    [
        (Tier::Namespaces, probe::works(Tier::Namespaces).await),
        (Tier::Landlock, probe::works(Tier::Landlock).await),
    ]
}

/// The tier that a job with these options would get here; none where it gets none.
pub async fn expected_tier(options: &SandboxOptions) -> Option<Tier> {
    let by_name = matches!(options.network, Network::Hosts(_));
    let strict = options.mode == SandboxMode::Require;
    for tier in options.tiers().iter().copied() {
        let shut = by_name && strict && tier == Tier::Landlock;
        if !shut && probe::works(tier).await.is_ok() {
            return Some(tier);
        }
    }
    None
}

/// The tiers that were not taken, each with its reason.
pub fn reasons(passed_over: &[(Tier, String)]) -> String {
    let one = |(tier, reason): &(Tier, String)| format!("{}: {reason}", tier.name());
    passed_over.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Keeps the commands of a job in.
#[derive(Debug)]
pub struct Sandbox {
    tier: Tier,
    network: Network,
    refusals: Option<RecentRefusals>,
    walls: Walls,
    /// Those of hooks: with another home.
    hook_walls: Option<Walls>,
    limits: Vec<OsString>,
    processes_max: Option<u64>,
    guard: Guard,
    records: Records,
    explainer: Explainer,
}

#[derive(Debug)]
enum Walls {
    Namespaces(Bubble),
    Landlock(Bonds),
}

impl Walls {
    /// Those of a tier. What is private to commands is made.
    fn new(
        tier: Tier,
        places: &Places,
        grounds: &Grounds,
        (network, proxy): (&Network, PathBuf),
        filters: Vec<BpfProgram>,
    ) -> Result<Self, String> {
        let private = [grounds.private_home(), grounds.private_tmp()];
        for path in &private {
            std::fs::create_dir_all(path)
                .map_err(|error| format!("{} cannot be made: {error}", path.display()))?;
        }
        Ok(match tier {
            Tier::Namespaces => {
                Self::Namespaces(Bubble::new(places, grounds, (network, &proxy), &filters)?)
            }
            Tier::Landlock => Self::Landlock(Bonds::new(places, &private, network, filters)?),
        })
    }
}

impl Sandbox {
    /// The strongest sandbox that works here and that `options` ask for. Where one
    /// is preferred only and the tier knows no hosts, commands reach none of them.
    ///
    /// # Errors
    /// When one is required and there is none.
    pub async fn establish(
        options: &SandboxOptions,
        grounds: Grounds,
    ) -> Result<Established, NoSandbox> {
        let mut passed_over = Vec::new();
        let mut options = options.clone();
        for tier in options.tiers().iter().copied() {
            let by_name = matches!(options.network, Network::Hosts(_));
            if by_name && tier == Tier::Landlock && options.mode == SandboxMode::Prefer {
                options.network = Network::Off;
            }
            let built = match probe::works(tier).await {
                Ok(()) => Self::build(tier, &options, grounds.clone()),
                Err(reason) => Err(reason),
            };
            match built {
                Ok(sandbox) => {
                    return Ok(Established {
                        sandbox: Some(sandbox),
                        passed_over,
                    });
                }
                Err(reason) => passed_over.push((tier, reason)),
            }
        }
        match options.mode {
            SandboxMode::Require => Err(NoSandbox { passed_over }),
            SandboxMode::Prefer | SandboxMode::Off => Ok(Established {
                sandbox: None,
                passed_over,
            }),
        }
    }

    /// Makes the sandbox of a tier without asking whether it works.
    fn build(tier: Tier, options: &SandboxOptions, grounds: Grounds) -> Result<Self, String> {
        let places = grounds.places(&options.read, &options.write);
        let sockets = match (&options.network, tier, options.unix_sockets) {
            (Network::Hosts(_), Tier::Landlock, _) => {
                return Err(NO_HOSTS.to_owned());
            }
            // In namespaces loopback and local sockets reach nobody else.
            (Network::On, _, true) | (_, Tier::Namespaces, _) => Sockets::Network,
            // Behind a local socket may sit a daemon that does everything.
            (Network::On, Tier::Landlock, false) => Sockets::Internet,
            (Network::Off, Tier::Landlock, true) => Sockets::Local,
            (Network::Off, Tier::Landlock, false) => Sockets::Pairs,
        };
        let filters = filter::filters(sockets, tier)?;
        let exposed = exposed::exposed(&grounds.protected, &places);
        let repositories = exposed::exposed_repositories(&grounds.repositories, &places);
        let walls = |own: &Grounds| {
            let network = (&options.network, grounds.proxy_socket());
            Walls::new(tier, &places, own, network, filters.clone())
        };
        let hook_walls = grounds.for_hooks().as_ref().map(&walls).transpose()?;
        let walls = walls(&grounds)?;
        let guard = Guard::new(tier, &grounds, &exposed, &repositories)
            .map_err(|error| format!("the protected files cannot be read: {error}"))?;
        Ok(Self {
            tier,
            network: options.network.clone(),
            refusals: None,
            walls,
            hook_walls,
            limits: limits::wrapper(&options.limits)?,
            processes_max: options.limits.processes,
            guard,
            records: Records::new(tier, &grounds, &places.write),
            explainer: Explainer::new(tier, &places, &grounds, options),
        })
    }

    /// How it keeps commands in.
    pub fn tier(&self) -> Tier {
        self.tier
    }

    /// What of the network commands reach.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Tells whoever ran a command what the proxy refused meanwhile.
    #[must_use]
    pub fn with_refusals(self, refusals: RecentRefusals) -> Self {
        Self {
            refusals: Some(refusals),
            ..self
        }
    }
}

impl Sandbox {
    fn wrap_in(
        &self,
        walls: &Walls,
        program: PathBuf,
        args: Vec<OsString>,
        cwd: &Path,
    ) -> io::Result<Wrapped> {
        self.records.seal();
        let (program, args) = limits::limited(&self.limits, program, args);
        match walls {
            Walls::Namespaces(bubble) => bubble.wrap(program, args, cwd),
            Walls::Landlock(_) => Ok(Wrapped {
                program,
                args,
                handed: Vec::new(),
                leader: Leader::Command,
            }),
        }
    }
}

impl Walls {
    fn bind_thread(&self) -> io::Result<()> {
        match self {
            Self::Namespaces(_) => Ok(()),
            Self::Landlock(bonds) => bonds.put_on(),
        }
    }
}

impl Confinement for Sandbox {
    fn wrap(&self, program: PathBuf, args: Vec<OsString>, cwd: &Path) -> io::Result<Wrapped> {
        self.wrap_in(&self.walls, program, args, cwd)
    }

    fn binds_thread(&self) -> bool {
        matches!(self.walls, Walls::Landlock(_))
    }

    fn fence_thread(&self) -> bool {
        landlock::fence_thread()
    }

    fn bind_thread(&self) -> io::Result<()> {
        self.walls.bind_thread()
    }

    fn processes_max(&self) -> Option<u64> {
        self.processes_max
    }

    fn settle(&self) -> Vec<String> {
        let mut undone = self.guard.settle();
        undone.extend(self.records.check());
        let refused = self.refusals.as_ref().map(RecentRefusals::take);
        for refusal in refused.unwrap_or_default() {
            undone.push(format!("the network was refused: {}", refusal.reason));
        }
        undone
    }

    fn reasons(&self, output: &str) -> Vec<String> {
        self.explainer.reasons(output)
    }

    fn breach(&self) -> Option<String> {
        self.records.broken().or_else(|| self.guard.broken())
    }
}
