//! The tier that needs no privilege at all: Landlock rules for files, filters
//! for system calls, no capabilities, put on the thread that starts a command.

use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible as _, LandlockStatus,
    PathBeneath, PathFd, Ruleset, RulesetAttr as _, RulesetCreated, RulesetCreatedAttr as _,
    RulesetError, RulesetStatus, Scope,
};
use rustix::thread::{CapabilitySet, CapabilitySets};
use seccompiler::BpfProgram;

use super::options::Network;
use super::places::Places;

/// What is promised: files that cannot be cut short are from this one on.
const PROMISED: ABI = ABI::V3;
/// What is used where it is there: devices, signals and abstract sockets.
const WANTED: ABI = ABI::V6;

/// Devices that every program may use. The terminal is not one: it is the
/// runner's, and who writes there could tell it anything.
const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What a thread is bound by.
#[derive(Debug)]
pub(super) struct Bonds {
    rules: RulesetCreated,
    filters: Vec<BpfProgram>,
}

impl Bonds {
    /// Makes the rules for these places, to be put on as often as wanted.
    ///
    /// # Errors
    /// In words: the kernel does not know Landlock, or too little of it.
    pub(super) fn new(
        places: &Places,
        private: &[PathBuf],
        network: &Network,
        filters: Vec<BpfProgram>,
    ) -> Result<Self, String> {
        let rules = ruleset(network).map_err(|error| match error {
            // In which of its rights it falls short is of no use to anybody.
            RulesetError::HandleAccesses(_) => {
                format!("this kernel has no Landlock of version {PROMISED} or later")
            }
            error => format!("Landlock rules cannot be made: {error}"),
        })?;
        let rules = with_places(rules, places, private)
            .map_err(|error| format!("a Landlock rule cannot be made: {error}"))?;
        Ok(Self { rules, filters })
    }

    /// Binds the calling thread for good.
    ///
    /// # Errors
    /// When any part of it did not take.
    pub(super) fn put_on(&self) -> io::Result<()> {
        drop_capabilities()?;
        let status = self
            .rules
            .try_clone()?
            .restrict_self()
            .map_err(io::Error::other)?;
        if status.ruleset == RulesetStatus::NotEnforced || !status.no_new_privs {
            return Err(io::Error::other(
                "the kernel did not take the Landlock rules",
            ));
        }
        for filter in &self.filters {
            seccompiler::apply_filter(filter).map_err(io::Error::other)?;
        }
        Ok(())
    }
}

fn ruleset(network: &Network) -> Result<RulesetCreated, RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(PROMISED))?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?;
    let ruleset = match network {
        Network::Off | Network::Hosts(_) => ruleset.handle_access(AccessNet::from_all(WANTED))?,
        Network::On => ruleset,
    };
    ruleset.create()
}

fn with_places(
    mut rules: RulesetCreated,
    places: &Places,
    private: &[PathBuf],
) -> Result<RulesetCreated, RulesetError> {
    let read = AccessFs::from_read(WANTED);
    let write = AccessFs::from_all(WANTED) & !AccessFs::IoctlDev;
    for place in &places.read {
        rules = allow_around(rules, place, read, &places.secret)?;
    }
    for place in places.write.iter().chain(private) {
        rules = allow(rules, place, write)?;
    }
    let device = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    for path in DEVICES.iter().map(Path::new) {
        rules = allow(rules, path, device)?;
    }
    rules = allow(
        rules,
        Path::new("/proc"),
        AccessFs::ReadFile | AccessFs::ReadDir,
    )?;
    allow(
        rules,
        Path::new("/sys"),
        AccessFs::ReadFile | AccessFs::ReadDir,
    )
}

/// Allows `place` without the secret ones below it: Landlock only ever allows,
/// so what lies beside them is allowed one by one.
fn allow_around(
    rules: RulesetCreated,
    place: &Path,
    access: BitFlags<AccessFs>,
    secret: &[PathBuf],
) -> Result<RulesetCreated, RulesetError> {
    if secret.iter().any(|secret| place.starts_with(secret)) {
        return Ok(rules);
    }
    if !secret.iter().any(|secret| secret.starts_with(place)) {
        return allow(rules, place, access);
    }
    // The names may be read: listing them is no secret, their contents are.
    let mut rules = allow(rules, place, AccessFs::ReadDir.into())?;
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries {
        let path = entry.path();
        // A link opens what it leads to.
        let leads = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !secret.iter().any(|secret| leads.starts_with(secret)) {
            rules = allow_around(rules, &path, access, secret)?;
        }
    }
    Ok(rules)
}

/// A place that is gone or cannot be opened cannot be used either.
fn allow(
    rules: RulesetCreated,
    place: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(place) = PathFd::new(place) else {
        return Ok(rules);
    };
    // For files the crate leaves out what is for directories only.
    rules.add_rule(PathBeneath::new(place, access))
}

/// Keeps the signals of the calling thread to what it starts, and says whether that
/// took: kernels before 6.12 cannot.
pub(super) fn fence_thread() -> bool {
    let fence = || -> Result<_, Box<dyn std::error::Error>> {
        // A layer refuses what moves between directories unless it says otherwise.
        let rules = Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::Refer)?
            .scope(Scope::Signal)?
            .create()?
            .add_rule(PathBeneath::new(PathFd::new("/")?, AccessFs::Refer))?;
        Ok(rules.restrict_self()?)
    };
    let whole = fence().is_ok_and(|status| status.ruleset == RulesetStatus::FullyEnforced);
    // Whoever relies on this sends signals to everybody, so it is tried as well.
    let parent = rustix::process::getppid();
    let others = parent.is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    whole && !others
}

/// The version of Landlock that this kernel has; none when it has none, or when it
/// is not enabled. Asked by a thread that is bound and ends.
pub fn landlock_version() -> Option<i32> {
    let ask = || {
        let rules = Ruleset::default()
            .handle_access(AccessFs::Execute)?
            .create()?;
        rules.restrict_self()
    };
    let asked = std::thread::spawn(ask).join().ok()?.ok()?;
    match asked.landlock {
        LandlockStatus::Available {
            effective_abi,
            kernel_abi,
        } => Some(kernel_abi.unwrap_or(effective_abi as i32)),
        LandlockStatus::NotEnabled | LandlockStatus::NotImplemented => None,
    }
}

/// Takes every capability from the calling thread, and the way to get one back.
fn drop_capabilities() -> io::Result<()> {
    for capability in CapabilitySet::all().iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // An ordinary user cannot, and gains none by running a program
            // once privileges cannot be gained. Later kernels know more.
            Err(rustix::io::Errno::PERM | rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: CapabilitySet::empty(),
            permitted: CapabilitySet::empty(),
            inheritable: CapabilitySet::empty(),
        },
    )?;
    Ok(())
}
