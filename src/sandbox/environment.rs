//! The environment of commands in a sandbox: their home is a private one, the
//! toolchains stay where they are.

use std::collections::BTreeMap;
use std::path::Path;

use super::places::Grounds;
use super::toolchains;

/// Ways to daemons of the user that a command has no business with.
const DAEMONS: &[&str] = &[
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "DOCKER_HOST",
    "GPG_AGENT_INFO",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// What belongs to the home directory and follows it.
const HOMES: &[&str] = &[
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
];

/// Turns the environment of commands into that of commands in a sandbox. What
/// the task itself `named` stays as it is.
pub fn environment(
    env: &[(String, String)],
    grounds: &Grounds,
    named: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut env: BTreeMap<String, String> = env.iter().cloned().collect();
    for name in DAEMONS.iter().chain(HOMES) {
        if !named(name) {
            env.remove(*name);
        }
    }
    env.retain(|name, value| {
        named(name)
            || !toolchains::must_be_written(name)
            || Path::new(value).starts_with(&grounds.workspace)
    });
    if let Some(home) = &grounds.home {
        for (name, place) in toolchains::below_home(home) {
            env.entry(name.to_owned()).or_insert_with(|| shown(&place));
        }
    }
    for (name, place) in [
        ("HOME", grounds.private_home()),
        ("TMPDIR", grounds.private_tmp()),
    ] {
        if !named(name) {
            env.insert(name.to_owned(), shown(&place));
        }
    }
    env.into_iter().collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
