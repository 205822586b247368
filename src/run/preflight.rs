//! What tasks require, looked for before anything is spent or changed.
//!
//! Programs are looked up where the job's commands will find them, and asked for
//! their version at the root of the file system: in a working copy many would read
//! what a repository says about them. A program of the workspace itself is never
//! asked.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::clock;
use crate::event::ErrorReport;
use crate::process;
use crate::task::{Job, Need, Requirement, VersionRange};

use super::environment::{Environment, command_env, reaches_commands, trusted_env, written};
use super::probe;
use super::version::{question, version_in};

/// How long one program may take to say its version; some start slowly.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long all of a job's programs may take together.
const PATIENCE_ALL: Duration = Duration::from_secs(30);
/// Where programs are asked: nobody but an administrator leaves anything there.
const NOWHERE: &str = "/";

/// A requirement, looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What is required, and where that is written.
    pub requirement: Requirement,
    /// What is there, in words, or why it will not do.
    pub outcome: Result<String, Unmet>,
    /// What is worth knowing either way.
    pub note: Option<String>,
}

/// Why a requirement is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// What is wrong, for people.
    pub problem: String,
    /// What to do about it.
    pub advice: String,
}

impl Unmet {
    fn new(problem: String, advice: impl Into<String>) -> Self {
        let advice = advice.into();
        Self { problem, advice }
    }
}

/// What is missing for any of the jobs, all in one; none when nothing is.
///
/// Cancel safe: what was asked is ended.
pub(super) async fn refusal(
    jobs: &VecDeque<Job>,
    environment: &Environment,
) -> Option<ErrorReport> {
    let mut names: Vec<String> = Vec::new();
    let mut hints = Vec::new();
    for job in jobs {
        for finding in look_for(job, environment).await {
            let Err(unmet) = finding.outcome else {
                continue;
            };
            let Requirement { need, place } = finding.requirement;
            names.push(format!("the {} {need}", need.kind()));
            let note = finding.note.map(|note| format!(" ({note})"));
            let note = note.unwrap_or_default();
            hints.push(format!(
                "{place}: {}: {}{note}",
                unmet.problem, unmet.advice
            ));
        }
    }
    let verb = match names.len() {
        0 => return None,
        1 => "requirement is",
        _ => "requirements are",
    };
    let (count, names) = (names.len(), names.join(", "));
    Some(ErrorReport {
        code: "missing_requirements".to_owned(),
        message: format!("{count} {verb} not met: {names}"),
        hints,
        ..ErrorReport::default()
    })
}

/// Looks for everything that a job requires, in the order of its task.
///
/// Cancel safe: what was asked is ended.
pub async fn look_for(job: &Job, environment: &Environment) -> Vec<Finding> {
    let search = Search {
        job,
        environment,
        env: command_env(job, environment),
        trusted_env: trusted_env(job, environment),
        give_up_at: clock::monotonic() + PATIENCE_ALL,
    };
    let mut findings = Vec::new();
    for requirement in &job.requires {
        let outcome = match &requirement.need {
            Need::Command(name, range) => search.command(name, range.as_ref()).await,
            Need::Variable(name) => set(name, environment),
            Need::File(path) => present(path, &job.workspace.path),
        };
        let note = match &requirement.need {
            Need::Variable(name) if !reaches_commands(job, environment, name) => {
                Some("commands do not see it: env.pass does not name it".to_owned())
            }
            Need::Variable(_) | Need::Command(..) | Need::File(_) => None,
        };
        findings.push(Finding {
            requirement: requirement.clone(),
            outcome,
            note,
        });
    }
    findings
}

/// Looks for the programs of a job.
struct Search<'a> {
    job: &'a Job,
    environment: &'a Environment,
    /// What its commands see.
    env: Vec<(String, String)>,
    /// The same for programs that are asked now.
    trusted_env: Vec<(String, String)>,
    give_up_at: Instant,
}

impl Search<'_> {
    /// The program, of a version in `range` when there is one.
    async fn command(&self, name: &str, range: Option<&VersionRange>) -> Result<String, Unmet> {
        let place = self.place(name)?;
        match range {
            Some(range) => self.versioned(name, &place, range).await,
            None => Ok(place.display().to_string()),
        }
    }

    /// The file of a program, as the job's commands find it.
    fn place(&self, name: &str) -> Result<PathBuf, Unmet> {
        let look_in = |path: &str| {
            let cwd = &self.job.workspace.path;
            process::locate(OsStr::new(name), OsStr::new(path), cwd)
        };
        let path = self.env.iter().find(|(name, _)| name == "PATH");
        let error = match look_in(path.map_or("", |(_, value)| value.as_str())) {
            Ok(place) => return Ok(place),
            Err(error) => error,
        };
        let problem = format!("the command `{name}`: {error}");
        if error.kind() == ErrorKind::PermissionDenied {
            return Err(Unmet::new(problem, "make it executable"));
        }
        let ours = self.environment.value("PATH").unwrap_or_default();
        let advice = match look_in(ours) {
            Ok(place) if self.job.env.set.contains_key("PATH") => format!(
                "it is {}, and env.set.PATH of the task replaces PATH; add its directory there",
                place.display()
            ),
            Ok(_) | Err(_) => "install it, or add its directory to PATH".to_owned(),
        };
        Err(Unmet::new(problem, advice))
    }

    /// Asks the program at `place` for its version, which has to be in `range`.
    async fn versioned(
        &self,
        name: &str,
        place: &Path,
        range: &VersionRange,
    ) -> Result<String, Unmet> {
        let (shown, workspace) = (place.display(), &self.job.workspace.path);
        let real = place.canonicalize().unwrap_or_else(|_| place.to_owned());
        let mut written = written(self.job, workspace).into_iter();
        if written.any(|written| place.starts_with(&written) || real.starts_with(&written)) {
            let problem =
                format!("the command `{name}` is {shown}, of the workspace, and not asked");
            return Err(Unmet::new(problem, "require it without a version"));
        }
        let version = self.version(name, place).await.map_err(|error| {
            let problem = format!("the version of the command `{name}` is unknown: {error}");
            Unmet::new(problem, "require it without a version")
        })?;
        let parts: Vec<String> = version.iter().map(u64::to_string).collect();
        let found = parts.join(".");
        if range.holds(&version) {
            return Ok(format!("{shown}, version {found}"));
        }
        let problem = format!("the command `{name}` has version {found}, not {range}");
        let advice = format!("{shown} is found first; put one that fits before it in PATH");
        Err(Unmet::new(problem, advice))
    }

    /// The version that a program says it has.
    async fn version(&self, name: &str, place: &Path) -> Result<Vec<u64>, String> {
        let left = self
            .give_up_at
            .saturating_duration_since(clock::monotonic());
        if left.is_zero() {
            let seconds = PATIENCE_ALL.as_secs();
            return Err(format!("those that were asked first took {seconds} s"));
        }
        let program = place.to_string_lossy();
        let mut command = vec![program.as_ref()];
        command.extend(question(name));
        let timeout = left.min(PATIENCE);
        let said = probe::ask(&command, Path::new(NOWHERE), &self.trusted_env, timeout).await?;
        // Warnings are full of numbers: errors are read where there is nothing else.
        let version = version_in(&said.text).or_else(|| version_in(&said.errors));
        let version = version.filter(|_| said.well);
        version.ok_or_else(|| format!("`{}` names none", command.join(" ")))
    }
}

fn set(name: &str, environment: &Environment) -> Result<String, Unmet> {
    let problem = match environment.variables().get(name) {
        Some(value) if !value.is_empty() => return Ok("set".to_owned()),
        Some(_) => format!("the variable {name} is empty"),
        None => format!("the variable {name} is not set"),
    };
    Err(Unmet::new(problem, "set it where the run is started"))
}

/// A file of the workspace, which a link must not lead out of it.
fn present(path: &Path, workspace: &Path) -> Result<String, Unmet> {
    let (shown, file) = (path.display(), workspace.join(path));
    match file.canonicalize() {
        Ok(real) if real.starts_with(workspace) => Ok(file.display().to_string()),
        Ok(real) => Err(Unmet::new(
            format!(
                "{shown} leads outside of the workspace, to {}",
                real.display()
            ),
            "put the file itself in the place of the link",
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Unmet::new(
            format!("there is no file {}", file.display()),
            "make it, or name another workspace with -C or workspace.path",
        )),
        Err(error) => Err(Unmet::new(
            format!("{} cannot be reached: {error}", file.display()),
            "make it readable",
        )),
    }
}
