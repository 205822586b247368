//! The sandbox: which tier keeps the task's commands in and why no stronger one,
//! and what the machine has of what tiers are made of.

use std::fs;
use std::path::Path;

use crate::run::probe;
use crate::sandbox::{self, Network, SandboxMode, Tier};
use crate::task::Job;

use super::finding::Finding;
use super::{Patient, TIMEOUT, trusted_env};

/// What to do for the stronger tier.
const BUBBLEWRAP: &str = "install bubblewrap, and let users make namespaces";

/// The tier, and what there is for it.
pub(super) async fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let env = trusted_env(patient);
    let cwd = &patient.job.workspace.path;
    let (namespaces, landlock, bubblewrap) = tokio::join!(
        sandbox::works(Tier::Namespaces),
        sandbox::works(Tier::Landlock),
        bubblewrap(cwd, &env),
    );
    let can_unshare = namespaces.is_ok();
    let works = [(Tier::Namespaces, namespaces), (Tier::Landlock, landlock)];
    vec![
        tier(patient.job, &works),
        landlock_rules(sandbox::landlock_version()),
        user_namespaces(can_unshare),
        seccomp(),
        bubblewrap,
    ]
}

/// The bubblewrap that the sandbox uses: another one on `PATH` is of no use to it.
async fn bubblewrap(cwd: &Path, env: &[(String, String)]) -> Finding {
    const NAME: &str = "bubblewrap";
    let program = match sandbox::bubblewrap_program() {
        Ok(program) => program.display().to_string(),
        Err(error) => return Finding::warning(NAME, error, BUBBLEWRAP),
    };
    match probe::ask(&[&program, "--version"], cwd, env, TIMEOUT).await {
        Ok(said) if said.well => Finding::ok(NAME, said.line()),
        Ok(said) => Finding::warning(NAME, said.line(), BUBBLEWRAP),
        Err(error) => Finding::warning(NAME, error, BUBBLEWRAP),
    }
}

/// What commands of a task with these options are kept in by, when of each tier
/// this is known.
fn tier(job: &Job, works: &[(Tier, Result<(), String>)]) -> Finding {
    const NAME: &str = "sandbox";
    let options = &job.sandbox;
    if options.mode == SandboxMode::Off {
        return Finding::ok(NAME, "off: commands may do what this program may");
    }
    let by_name = matches!(options.network, Network::Hosts(_));
    let strict = options.mode == SandboxMode::Require;
    let asked = works
        .iter()
        .filter(|(tier, _)| options.tiers().contains(tier));
    let mut passed_over = Vec::new();
    for (tier, works) in asked {
        let shut = by_name && *tier == Tier::Landlock;
        match works {
            Err(reason) => passed_over.push((*tier, reason.clone())),
            Ok(()) if shut && strict => passed_over.push((*tier, sandbox::NO_HOSTS.to_owned())),
            Ok(()) => return taken(*tier, shut, &passed_over),
        }
    }
    let found = format!("none works: {}", sandbox::reasons(&passed_over));
    if !job.may_start_commands() {
        return Finding::warning(
            NAME,
            format!("{found}; nothing in the task allows a command, so none is needed"),
            BUBBLEWRAP,
        );
    }
    match strict {
        true => Finding::error(
            NAME,
            format!("required, and {found}"),
            format!("{BUBBLEWRAP}, or run on Linux 6.2 or later with Landlock enabled"),
        ),
        false => Finding::warning(
            NAME,
            format!("{found}; commands may do what this program may"),
            format!("{BUBBLEWRAP}; `sandbox.mode: require` would refuse the task"),
        ),
    }
}

fn taken(tier: Tier, shut: bool, passed_over: &[(Tier, String)]) -> Finding {
    let mut found = tier.name().to_owned();
    if !passed_over.is_empty() {
        found.push_str(&format!(" (not {})", sandbox::reasons(passed_over)));
    }
    if shut {
        let found = format!("{found}; the hosts of sandbox.network are not reached");
        return Finding::warning("sandbox", found, BUBBLEWRAP);
    }
    match passed_over.is_empty() {
        true => Finding::ok("sandbox", found),
        false => Finding::warning("sandbox", found, BUBBLEWRAP),
    }
}

/// From this version on, rules keep signals to a command's own processes.
const SIGNALS_VERSION: i32 = 6;

/// What no version covers.
const NOT_COVERED: &str = "no rule keeps commands in that tier from chmod and touch on files of \
                           this user elsewhere, or from seeing names, sizes and dates";

fn landlock_rules(version: Option<i32>) -> Finding {
    match version {
        Some(version) if version < SIGNALS_VERSION => Finding::warning(
            "landlock",
            format!(
                "version {version} of its rules: commands in that tier can send signals to \
                 other processes of this user, though not to this program; {NOT_COVERED}"
            ),
            "run on Linux 6.12 or later",
        ),
        Some(version) => Finding::ok(
            "landlock",
            format!("version {version} of its rules; {NOT_COVERED}"),
        ),
        None => Finding::warning(
            "landlock",
            "this kernel has none, or it is not enabled",
            "run on Linux 6.2 or later, with landlock in the kernel's list of `lsm`",
        ),
    }
}

/// Settings of the kernel, the value by which each keeps users from making
/// namespaces, and one by which it does not.
const NAMESPACE_SETTINGS: &[(&str, &str, &str)] = &[
    ("user.max_user_namespaces", "0", "15000"),
    ("kernel.unprivileged_userns_clone", "0", "1"),
    ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
];

/// Whether users can make namespaces; when they cannot, the setting to blame.
fn user_namespaces(work: bool) -> Finding {
    const NAME: &str = "user_namespaces";
    if work {
        return Finding::ok(NAME, "they work");
    }
    let refused = NAMESPACE_SETTINGS.iter().find(|(name, refused, _)| {
        let file = format!("/proc/sys/{}", name.replace('.', "/"));
        fs::read_to_string(file).is_ok_and(|value| value.trim() == *refused)
    });
    match refused {
        Some((name, value, other)) => Finding::warning(
            NAME,
            format!("refused by {name} = {value}"),
            format!("sysctl -w {name}={other}"),
        ),
        None => Finding::warning(
            NAME,
            "not seen to work, and no setting of the kernel refuses them",
            "a container may refuse them: allow them in its profile, or use the tier landlock",
        ),
    }
}

/// Whether the kernel takes filters of system calls.
fn seccomp() -> Finding {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    match status.lines().any(|line| line.starts_with("Seccomp:")) {
        true => Finding::ok("seccomp", "filters of system calls"),
        false => Finding::warning(
            "seccomp",
            "this kernel has no filters of system calls",
            "run on a kernel with CONFIG_SECCOMP_FILTER: no tier works without",
        ),
    }
}
