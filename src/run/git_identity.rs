//! Who commits in a sandbox.
//!
//! The home directory of its commands is a private one, so git finds no user
//! there. Name and address of the user's own configuration are written to it and
//! nothing else: that may name programs, servers and tokens. What the repository
//! says of its user goes before, as ever.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::event::Warning;
use crate::process::{CommandSpec, Ending, Streams, capture};
use crate::task::Job;

use super::environment::{Environment, trusted_path};

/// How long git may take to read its configuration.
const PATIENCE: Duration = Duration::from_secs(10);
/// A name and an address are short, however often files say them.
const BYTES_MAX: usize = 64 * 1024;
/// What says where the user's own configuration is.
const VARIABLES: &[&str] = &["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"];

/// Writes the user's name and address for git into `home`, the private home
/// directory of the job's commands. Gives a warning when they cannot be brought
/// there; a user without any is told by git.
pub(super) async fn bring_in(home: &Path, job: &Job, environment: &Environment) -> Option<Warning> {
    let user = match ask(&job.workspace.path, environment).await {
        Ok(user) => user,
        Err(error) => return Some(warning(&error)),
    };
    if user.is_empty() {
        return None;
    }
    let written = std::fs::write(home.join(".gitconfig"), section(&user));
    written.err().map(|error| warning(&error.to_string()))
}

fn warning(error: &str) -> Warning {
    Warning {
        code: "git_identity".to_owned(),
        message: format!("commands do not know who commits: {error}"),
    }
}

/// The settings of the user by their last names: what is said last counts. Nothing
/// of the repository is read but where it is, which may choose another identity.
async fn ask(workspace: &Path, environment: &Environment) -> Result<Vec<(String, String)>, String> {
    let mut env = vec![
        ("PATH".into(), trusted_path(environment, workspace).into()),
        ("GIT_TERMINAL_PROMPT".into(), "0".into()),
    ];
    for name in VARIABLES {
        let value = environment.variables().get(*name);
        env.extend(value.map(|value| ((*name).into(), value.into())));
    }
    let args = ["config", "--global", "--includes", "--null", "--get-regexp"];
    let spec = CommandSpec {
        program: "git".into(),
        args: args
            .into_iter()
            .chain([r"^user\.(name|email)$"])
            .map(Into::into)
            .collect(),
        cwd: workspace.to_owned(),
        env,
        stdin: None,
        streams: Streams::Stdout,
        timeout: Some(PATIENCE),
        confinement: None,
    };
    let asked = capture(spec, BYTES_MAX, &CancellationToken::new()).await;
    let asked = asked.map_err(|error| error.to_string())?;
    match asked.ending {
        Ending::Exited(0) => {}
        // Without such a setting, or without any file.
        Ending::Exited(_) => return Ok(Vec::new()),
        Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled | Ending::Crowded(_) => {
            return Err("git did not tell the user's name and address".to_owned());
        }
    }
    let text = String::from_utf8_lossy(&asked.output);
    let pairs = text.split('\0').filter_map(|entry| entry.split_once('\n'));
    let last = |key: &str| {
        let mut values = pairs
            .clone()
            .filter(|(name, _)| *name == format!("user.{key}"));
        Some((key.to_owned(), values.next_back()?.1.to_owned()))
    };
    Ok(["name", "email"].into_iter().filter_map(last).collect())
}

/// The section of a configuration file with these settings.
fn section(user: &[(String, String)]) -> String {
    let mut text = "[user]\n".to_owned();
    for (key, value) in user {
        let _ = write!(text, "\t{key} = \"");
        for character in value.chars() {
            match character {
                '\n' => text.push_str("\\n"),
                '"' | '\\' => text.extend(['\\', character]),
                _ => text.push(character),
            }
        }
        text.push_str("\"\n");
    }
    text
}
