//! The machine: kernel, clock, core dumps, and who reads what is printed.

use std::fs;

use rustix::process::{Resource, getrlimit};

use crate::model;
use crate::run::Environment;

use super::super::console::Console;
use super::finding::Finding;

/// What CI systems set, and how they are called.
const CI_SYSTEMS: &[(&str, &str)] = &[
    ("GITHUB_ACTIONS", "GitHub Actions"),
    ("GITLAB_CI", "GitLab CI"),
    ("TF_BUILD", "Azure Pipelines"),
    ("BUILDKITE", "Buildkite"),
    ("CIRCLECI", "CircleCI"),
    ("TEAMCITY_VERSION", "TeamCity"),
    ("JENKINS_URL", "Jenkins"),
    ("CI", "a CI system"),
];

/// The kernel.
pub(super) fn kernel() -> Finding {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    let arch = std::env::consts::ARCH;
    match (read("ostype"), read("osrelease")) {
        (Ok(system), Ok(release)) => Finding::ok(
            "kernel",
            format!("{} {}, {arch}", system.trim(), release.trim()),
        ),
        (Err(error), _) | (_, Err(error)) => Finding::warning(
            "kernel",
            format!(
                "{}, {arch}: /proc is not there: {error}",
                std::env::consts::OS
            ),
            "mount /proc: what commands leave behind is found there",
        ),
    }
}

/// The clock, of which `today` is the date: it cannot be earlier than what this
/// program was built with.
pub(super) fn clock(today: &str) -> Finding {
    let known = model::as_of();
    if today < known {
        let found = format!("it is {today}, which is before {known}, when this program was made");
        let advice = "set the clock: certificates are not valid yet";
        return Finding::warning("clock", found, advice);
    }
    Finding::ok("clock", format!("{today} in UTC"))
}

/// Whether a crash would leave the memory of this program on the disk.
pub(super) fn core_dumps() -> Finding {
    match getrlimit(Resource::Core).current {
        Some(0) => Finding::ok("core_dumps", "off"),
        limit => {
            let size = limit.map_or("without a limit".to_owned(), |limit| {
                format!("up to {limit} bytes")
            });
            let advice = "`ulimit -c 0` before the run: a dump holds the keys of providers";
            Finding::warning("core_dumps", format!("a crash leaves one, {size}"), advice)
        }
    }
}

/// Who reads the output.
pub(super) fn terminal(environment: &Environment, console: &Console) -> Finding {
    let set = |name: &str| {
        let value = environment.value(name);
        value.is_some_and(|value| !matches!(value, "0" | "false"))
    };
    let system = CI_SYSTEMS.iter().find(|(variable, _)| set(variable));
    let reader = match (console.stdout_width(), console.is_interactive()) {
        (Some(_), _) => "a terminal reads standard output",
        (None, true) => "a terminal reads standard error",
        (None, false) => "no terminal",
    };
    Finding::ok(
        "terminal",
        match system {
            Some((variable, name)) => format!("{reader}, and {name} by {variable}"),
            None => format!("{reader}, no CI system"),
        },
    )
}
