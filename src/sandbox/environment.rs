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

/// Where programs keep what is temporary; `/tmp` is not the commands' in every tier.
/// joblib would take `/dev/shm`.
const TEMPORARY: &[&str] = &["TMPDIR", "TMP", "TEMP", "JOBLIB_TEMP_FOLDER"];

/// By which package managers ask a host once, and for nothing that can wait.
const GIVE_UP: &[(&str, &str)] = &[
    ("BUNDLE_RETRY", "0"),
    ("CARGO_NET_RETRY", "0"),
    ("NUGET_ENHANCED_MAX_NETWORK_TRY_COUNT", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("PIP_RETRIES", "0"),
    ("UV_HTTP_RETRIES", "0"),
    ("YARN_HTTP_RETRY", "0"),
    ("npm_config_audit", "false"),
    ("npm_config_fetch_retries", "0"),
    ("npm_config_update_notifier", "false"),
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
    let temporary = TEMPORARY.iter().map(|name| (*name, grounds.private_tmp()));
    for (name, place) in temporary.chain([("HOME", grounds.private_home())]) {
        if !named(name) {
            env.insert(name.to_owned(), shown(&place));
        }
    }
    env.into_iter().collect()
}

/// The environment of commands that reach no host: package managers do not try again,
/// for minutes, what cannot work. What is there or `named` by the task stays.
pub fn without_network(
    env: &[(String, String)],
    named: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let mut env: BTreeMap<String, String> = env.iter().cloned().collect();
    for (name, value) in GIVE_UP.iter().filter(|(name, _)| !named(name)) {
        env.entry((*name).to_owned())
            .or_insert_with(|| (*value).to_owned());
    }
    env.into_iter().collect()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}
