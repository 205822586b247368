//! Whom git in a sandbox knows.
//!
//! The home directory of its commands is a private one, so git finds no user
//! there. Name and address of the user's own configuration are written to it, and
//! that the user trusts the repository, which may be another's; nothing else: that
//! may name programs, servers and tokens. What the repository says of its user goes
//! before, as ever.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::event::Warning;
use crate::process::{CommandSpec, Ending, Streams, capture};
use crate::sandbox::{GitAccess, section};
use crate::task::Job;

use super::environment::{Environment, trusted_path};

/// How long git may take to read its configuration.
const PATIENCE: Duration = Duration::from_secs(10);
/// Names, addresses and places are short, however often files say them.
const BYTES_MAX: usize = 64 * 1024;
/// What says where the user's own configuration is.
const VARIABLES: &[&str] = &["HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL"];
/// What is asked for.
const SETTINGS: &str = r"^(user\.(name|email)|safe\.directory)$";

/// Writes what git has to know into `home`, the private home directory of the
/// job's commands: that the user trusts the repository, and where commands may
/// commit, who does. Gives a warning when that cannot be brought there; a user who
/// says nothing is told by git.
pub(super) async fn bring_in(
    home: &Path,
    access: GitAccess,
    job: &Job,
    environment: &Environment,
) -> Option<Warning> {
    let workspace = &job.workspace.path;
    let settings = match ask(job, environment).await {
        Ok(settings) => settings,
        Err(error) => return Some(warning(&error)),
    };
    let mut text = String::new();
    if access == GitAccess::Writable {
        let keys = [("name", "user.name"), ("email", "user.email")];
        let last = |(key, name)| Some((key, settings.of(name).next_back()?));
        let user: Vec<_> = keys.into_iter().filter_map(last).collect();
        text.push_str(&section("user", &user));
    }
    let repository = repository(workspace);
    let own_home = environment.value("HOME").unwrap_or_default();
    if let Some(directory) = repository.to_str()
        && is_trusted(repository, settings.of("safe.directory"), own_home)
    {
        text.push_str(&section("safe", &[("directory", directory)]));
    }
    if text.is_empty() {
        return None;
    }
    let written = std::fs::write(home.join(".gitconfig"), text);
    written.err().map(|error| warning(&error.to_string()))
}

fn warning(error: &str) -> Warning {
    Warning {
        code: "git_identity".to_owned(),
        message: format!(
            "git in commands does not know who commits and which repositories are trusted: {error}"
        ),
    }
}

/// Settings with their values, in the order of the files.
#[derive(Default)]
struct Settings(Vec<(String, String)>);

impl Settings {
    fn of(&self, name: &'static str) -> impl DoubleEndedIterator<Item = &str> {
        let values = self.0.iter().filter(move |(key, _)| key == name);
        values.map(|(_, value)| value.as_str())
    }
}

/// The settings of the user. Nothing of the repository is read but where it is,
/// which may choose another identity.
async fn ask(job: &Job, environment: &Environment) -> Result<Settings, String> {
    let workspace = &job.workspace.path;
    // To ask takes a process: not where there is nothing to ask for.
    if !files(environment).iter().any(|file| file.is_file()) {
        return Ok(Settings::default());
    }
    let mut env = vec![
        (
            "PATH".into(),
            trusted_path(environment, job, workspace).into(),
        ),
        ("GIT_TERMINAL_PROMPT".into(), "0".into()),
    ];
    for name in VARIABLES {
        let value = environment.variables().get(*name);
        env.extend(value.map(|value| ((*name).into(), value.into())));
    }
    let args = ["config", "--global", "--includes", "--null", "--get-regexp"];
    let spec = CommandSpec {
        program: "git".into(),
        args: args.into_iter().chain([SETTINGS]).map(Into::into).collect(),
        cwd: workspace.to_owned(),
        env,
        stdin: None,
        streams: Streams::Apart,
        timeout: Some(PATIENCE),
        confinement: None,
    };
    let asked = match capture(spec, BYTES_MAX, &CancellationToken::new()).await {
        Ok(asked) => asked,
        // Without git nobody commits.
        Err(error) if error.source.kind() == ErrorKind::NotFound => return Ok(Settings::default()),
        Err(error) => return Err(error.to_string()),
    };
    match asked.ending {
        Ending::Exited(0) => {}
        // Without such a setting, or without any file.
        Ending::Exited(1) => return Ok(Settings::default()),
        Ending::Exited(status) => {
            let errors = String::from_utf8_lossy(&asked.errors);
            let first = errors.lines().next().map(str::to_owned);
            return Err(first.unwrap_or_else(|| format!("git ended with status {status}")));
        }
        Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled | Ending::Crowded(_) => {
            return Err("git did not tell the user's configuration".to_owned());
        }
    }
    let text = String::from_utf8_lossy(&asked.output);
    let pair = |entry: &str| {
        // One without `=` has no value.
        let (name, value) = entry.split_once('\n').unwrap_or((entry, ""));
        (name.to_owned(), value.to_owned())
    };
    Ok(Settings(text.split('\0').map(pair).collect()))
}

/// The files in which git looks for the user's configuration.
fn files(environment: &Environment) -> Vec<PathBuf> {
    let place = |name| environment.value(name).map(PathBuf::from);
    if let Some(only) = place("GIT_CONFIG_GLOBAL") {
        return vec![only];
    }
    let Some(home) = place("HOME") else {
        return Vec::new();
    };
    let config = place("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    vec![home.join(".gitconfig"), config.join("git/config")]
}

/// The directory that git looks at the owner of: the root of the working copy.
fn repository(workspace: &Path) -> &Path {
    let mut directories = workspace.ancestors();
    let root = directories.find(|directory| directory.join(".git").exists());
    root.unwrap_or(workspace)
}

/// Whether these values of `safe.directory` name the repository, read as git does:
/// an empty one takes back those before it.
fn is_trusted<'a>(
    repository: &Path,
    values: impl Iterator<Item = &'a str>,
    own_home: &str,
) -> bool {
    let mut is_trusted = false;
    for value in values {
        let value = match value.strip_prefix("~/") {
            Some(rest) => &format!("{own_home}/{rest}"),
            None => value,
        };
        is_trusted = match (value, value.strip_suffix("/*")) {
            ("", _) => false,
            ("*", _) => true,
            (_, Some(above)) => {
                let names = repository != Path::new(above) && repository.starts_with(above);
                is_trusted || names
            }
            (directory, None) => is_trusted || repository == Path::new(directory),
        };
    }
    is_trusted
}
