//! Git as a command: hardened, bounded, and told everything it may know.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::process::{Captured, CommandSpec, Ending, Streams, capture};
use crate::workspace::GitSettings;
use crate::workspace::repository::Repository;

/// Room for lists of files.
pub(super) const LIST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Room for a few lines.
pub(super) const MESSAGE_BYTES_MAX: usize = 8 * 1024;

/// Why git did not do it.
#[derive(Debug)]
pub(super) enum Failure {
    /// The run is ending.
    Cancelled,
    /// There is no git, or the workspace is ignored by its repository.
    NotApplicable,
    /// Something failed, in words.
    Broken(String),
}

/// Git, ready to run in one workspace.
#[derive(Debug, Clone)]
pub(super) struct Git {
    env: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    /// The workspace relative to the top of the working copy.
    pub(super) prefix: PathBuf,
    timeout: Duration,
}

impl Git {
    /// Runs in the user's repository, for commands that only read it.
    pub(super) fn in_repository(repository: &Repository, settings: &GitSettings) -> Self {
        Self::with_dir(repository, settings, &repository.git_dir)
    }

    /// Runs with another git directory for the same working copy.
    pub(super) fn with_dir(
        repository: &Repository,
        settings: &GitSettings,
        git_dir: &Path,
    ) -> Self {
        let fixed = [
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_ATTR_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            // A clone may lack objects; fetching them would run what the
            // repository names for that.
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("LC_ALL", "C"),
        ];
        let mut env: Vec<(OsString, OsString)> = fixed
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        env.push(("PATH".into(), settings.path.clone()));
        env.push(("HOME".into(), settings.scratch.clone().into()));
        env.push(("GIT_DIR".into(), git_dir.into()));
        env.push(("GIT_WORK_TREE".into(), repository.top.clone().into()));
        Self {
            env,
            cwd: repository.workspace.clone(),
            prefix: repository.prefix().to_owned(),
            timeout: settings.timeout,
        }
    }

    /// The workspace, real and absolute.
    pub(super) fn workspace(&self) -> &Path {
        &self.cwd
    }

    /// Whether `git status` has nothing to say about the workspace.
    pub(super) async fn is_clean(
        &self,
        exclude: &[PathBuf],
        cancel: &CancellationToken,
    ) -> Result<bool, Failure> {
        // This runs under the user's configuration, so its filters are emptied.
        let names = [os("config"), os("--name-only"), os("-z"), os("--list")];
        let names = self.output(names.to_vec(), LIST_BYTES_MAX, cancel).await?;
        if names.truncated {
            let message = "the configuration of the repository is too large".to_owned();
            return Err(Failure::Broken(message));
        }
        let emptied = names.output.split(|byte| *byte == 0);
        let git = self.with_settings(emptied.filter_map(emptied_filter));
        let mut args: Vec<OsString> = Vec::new();
        args.extend(
            [
                "status",
                "--porcelain",
                "-z",
                "--untracked-files=normal",
                // Looking into a submodule would run under its configuration.
                "--ignore-submodules=dirty",
                "--no-renames",
            ]
            .map(os),
        );
        args.extend(self.pathspec(exclude));
        let status = git.output(args, LIST_BYTES_MAX, cancel).await?;
        Ok(status.output.is_empty())
    }

    /// Whether the index has the file `name` of this directory.
    pub(super) async fn is_tracked(
        &self,
        name: &OsStr,
        cancel: &CancellationToken,
    ) -> Result<bool, Failure> {
        let mut pathspec = os(":(literal)");
        pathspec.push(name);
        let args = vec![os("ls-files"), os("-z"), os("--cached"), os("--"), pathspec];
        let listed = self.output(args, LIST_BYTES_MAX, cancel).await?;
        Ok(!listed.output.is_empty())
    }

    /// The same with further settings, handed over as they are: as arguments
    /// they could not have a `=` in their names.
    fn with_settings(&self, settings: impl Iterator<Item = (OsString, &'static str)>) -> Self {
        let mut git = self.clone();
        let mut count = 0;
        for (name, value) in settings {
            git.env
                .push((format!("GIT_CONFIG_KEY_{count}").into(), name));
            let variable = format!("GIT_CONFIG_VALUE_{count}");
            git.env.push((variable.into(), value.into()));
            count += 1;
        }
        let count = count.to_string();
        git.env.push(("GIT_CONFIG_COUNT".into(), count.into()));
        git
    }

    /// Runs a command whose output matters; anything but success is a failure.
    pub(super) async fn output(
        &self,
        args: Vec<OsString>,
        bytes_max: usize,
        cancel: &CancellationToken,
    ) -> Result<Captured, Failure> {
        let name = command_name(&args);
        let captured = self.run(args, None, bytes_max, cancel).await?;
        match captured.ending {
            Ending::Exited(0) => Ok(captured),
            other => Err(broken(&name, other, &[])),
        }
    }

    /// Runs a command that reads its work from standard input.
    pub(super) async fn feed(
        &self,
        args: Vec<OsString>,
        stdin: Vec<u8>,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let name = command_name(&args);
        let captured = self
            .run(args, Some(stdin), MESSAGE_BYTES_MAX, cancel)
            .await?;
        match captured.ending {
            Ending::Exited(0) => Ok(()),
            other => Err(broken(&name, other, &captured.output)),
        }
    }

    /// Runs a command to its end, whatever its status.
    pub(super) async fn run(
        &self,
        args: Vec<OsString>,
        stdin: Option<Vec<u8>>,
        bytes_max: usize,
        cancel: &CancellationToken,
    ) -> Result<Captured, Failure> {
        let name = command_name(&args);
        let hardening = [
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.quotePath=false",
            "-c",
            "core.untrackedCache=false",
            // Files that it names may be anything, a device among others.
            "-c",
            "core.excludesFile=/dev/null",
            "-c",
            "core.attributesFile=/dev/null",
            "-c",
            "safe.directory=*",
            "--no-pager",
        ];
        // A command that is fed prints nothing but what is wrong.
        let streams = if stdin.is_some() {
            Streams::Merged
        } else {
            Streams::Stdout
        };
        let spec = CommandSpec {
            program: os("git"),
            args: hardening.map(os).into_iter().chain(args).collect(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            stdin,
            streams,
            timeout: Some(self.timeout),
            confinement: None,
        };
        let captured = match capture(spec, bytes_max, cancel).await {
            Ok(captured) => captured,
            Err(error) if error.source.kind() == io::ErrorKind::NotFound => {
                return Err(Failure::NotApplicable);
            }
            Err(error) => return Err(Failure::Broken(error.to_string())),
        };
        match captured.ending {
            Ending::Cancelled => Err(Failure::Cancelled),
            Ending::TimedOut => Err(Failure::Broken(format!(
                "`git {name}` took longer than {} s",
                self.timeout.as_secs()
            ))),
            Ending::Exited(_) | Ending::Signalled(_) | Ending::Crowded(_) => Ok(captured),
        }
    }

    /// The workspace without the excluded paths.
    pub(super) fn pathspec(&self, exclude: &[PathBuf]) -> Vec<OsString> {
        let mut specs = vec![os("--"), os(".")];
        for path in exclude {
            let mut spec = os(":(top,exclude,literal)");
            spec.push(self.prefix.join(path));
            specs.push(spec);
        }
        specs
    }
}

/// The setting that makes a filter of the user's configuration do nothing.
fn emptied_filter(name: &[u8]) -> Option<(OsString, &'static str)> {
    let driver = name.strip_prefix(b"filter.")?;
    let dot = driver.iter().rposition(|byte| *byte == b'.')?;
    let value = match driver.get(dot + 1..)? {
        b"clean" | b"smudge" | b"process" => "",
        b"required" => "false",
        _ => return None,
    };
    Some((OsString::from_vec(name.to_vec()), value))
}

/// An argument.
pub(super) fn os(text: &str) -> OsString {
    text.into()
}

fn command_name(args: &[OsString]) -> String {
    let name = args.first().map(|name| name.to_string_lossy());
    name.map_or_else(String::new, std::borrow::Cow::into_owned)
}

/// The failure of a command that ended badly.
fn broken(command: &str, ending: Ending, output: &[u8]) -> Failure {
    let how = match ending {
        Ending::Exited(code) => format!("exited with {code}"),
        Ending::Signalled(signal) => format!("was killed by signal {signal}"),
        Ending::TimedOut => "took too long".to_owned(),
        Ending::Crowded(most) => format!("was more than {most} processes"),
        Ending::Cancelled => "was cancelled".to_owned(),
    };
    let said = last_line(output);
    let colon = if said.is_empty() { "" } else { ": " };
    Failure::Broken(format!("`git {command}` {how}{colon}{said}"))
}

/// What a command said last.
fn last_line(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default()
        .to_owned()
}
