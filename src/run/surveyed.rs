//! What a look through the workspace means for the sandbox: what commands may write,
//! read and see of it.

use std::ffi::OsStr;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::event::Warning;
use crate::policy::{Policy, is_credential_directory, is_credential_name};
use crate::sandbox::{
    self, GitAccess, Grounds, SandboxMode, SandboxOptions, Survey, git_credentials,
};
use crate::task::{Job, RUNS};

use super::blocking::blocking;
use super::environment::Environment;
use super::job::JobContext;
use super::path_rules::PathRules;
use super::protected::{automation, guards, runs_something};
use super::sandbox::SandboxSite;

/// What a job's sandbox is made of.
pub(super) struct Surveyed {
    /// Those of the task, with the places of repositories outside of the workspace.
    pub(super) options: SandboxOptions,
    pub(super) grounds: Grounds,
    pub(super) rules: PathRules,
    /// Files and directories of credentials in the workspace.
    pub(super) credentials: Vec<PathBuf>,
    /// What is not as it should be.
    pub(super) warnings: Vec<Warning>,
}

/// Looks through the workspace of a job, whose commands have the environment `env`
/// outside of a sandbox.
pub(super) async fn look_through(
    job: &Job,
    context: &JobContext,
    mut site: SandboxSite<'_>,
    policy: Arc<Policy>,
    env: &[(String, String)],
) -> Surveyed {
    let mut options = job.sandbox.clone();
    let additional = job.permissions.additional_directories.iter().cloned();
    options.write.extend(additional);
    let mut surveyed = Surveyed {
        options,
        grounds: Grounds::default(),
        rules: PathRules::of(&policy),
        credentials: Vec::new(),
        warnings: Vec::new(),
    };
    let survey = survey(&site, policy, &surveyed.rules).await;
    surveyed.credentials.clone_from(&survey.named);
    let environment = &context.settings.environment;
    let credentials = git_credentials(&survey, environment.home().as_deref());
    // Not everywhere can commands be shown another file.
    context.settings.redactor.learn(credentials.secrets);
    if surveyed.options.mode == SandboxMode::Off {
        return surveyed;
    }
    surveyed.warnings.extend(partial(&survey));
    surveyed.warnings.extend(surveyed.rules.too_many(&survey));
    let (denied_reads, denied_writes) = surveyed.rules.held(&survey);
    site.protected.extend(denied_writes);
    // Hooks may lie beside the task and not in the workspace.
    surveyed.options.read.extend(guards(job, site.workspace));
    let mut grounds = grounds(&mut surveyed.options, environment, site, survey, env);
    grounds.hidden.extend(denied_reads);
    grounds.views = credentials.views;
    surveyed.grounds = grounds;
    surveyed
}

/// Looks through the workspace on a thread of its own.
async fn survey(site: &SandboxSite<'_>, policy: Arc<Policy>, rules: &PathRules) -> Survey {
    let (workspace, records) = (site.workspace.to_owned(), site.records.clone());
    let denials = rules.denials();
    blocking(move || {
        let wanted = |name: &OsStr, kind: FileType| match kind.is_dir() {
            true => is_credential_directory(name),
            false => is_credential_name(name),
        };
        let mut survey = sandbox::survey(&workspace, wanted, runs_something, &denials);
        let (allowed, mut hidden): (Vec<PathBuf>, _) = survey
            .named
            .drain(..)
            .partition(|path| policy.may_read("read", path));
        // A directory with something in it that may be read cannot be hidden as a whole.
        hidden.retain(|path| !allowed.iter().any(|one| one.starts_with(path)));
        survey.named = hidden;
        survey.placed = automation(&workspace, &survey.placed, &policy, &records);
        survey
    })
    .await
}

/// The warning that not everything was looked at.
fn partial(survey: &Survey) -> Option<Warning> {
    survey.partial.then(|| Warning {
        code: "sandbox_survey".to_owned(),
        message: "the workspace has so many files that not every repository in it was found: \
                  those are not protected from commands, and one that a command makes is not \
                  removed"
            .to_owned(),
    })
}

/// What commands work with; the places of repositories outside of the workspace are
/// added to the options.
fn grounds(
    options: &mut SandboxOptions,
    environment: &Environment,
    site: SandboxSite<'_>,
    survey: Survey,
    env: &[(String, String)],
) -> Grounds {
    let mut hidden = survey.named;
    hidden.extend(environment.key_files().chain(environment.state_dir()));
    let mut protected = site.protected;
    protected.extend(survey.placed);
    let mut repositories = Vec::new();
    match options.git {
        GitAccess::ReadOnly => {
            protected.extend(survey.repositories);
            options.read.extend(survey.outside);
        }
        GitAccess::Writable => {
            let (inside, fixed) = split(survey.repositories);
            let (outside, read) = split(survey.outside);
            protected.extend(fixed);
            options.read.extend(read);
            options.write.extend(outside.iter().cloned());
            repositories = inside.into_iter().chain(outside).collect();
        }
    }
    let path = env.iter().find(|(name, _)| name == "PATH");
    // What earlier runs left is gone on with.
    let run = site.records.first();
    let runs = run
        .and_then(|run| run.parent())
        .filter(|runs| runs.ends_with(RUNS));
    protected.extend(runs.map(Path::to_owned));
    Grounds {
        workspace: site.workspace.to_owned(),
        home: environment.home(),
        private: site.scratch.join("sandbox"),
        path: path.map(|(_, value)| value.clone()).unwrap_or_default(),
        env: env.to_vec(),
        protected,
        repositories,
        records: site.records,
        hidden,
        before: survey.before,
        views: Vec::new(),
        hooks: None,
        forwarder: environment.program().map(Path::to_owned),
    }
}

/// Git directories, and the files and links that say where one is.
fn split(found: Vec<PathBuf>) -> (Vec<PathBuf>, Vec<PathBuf>) {
    found
        .into_iter()
        .partition(|git| git.symlink_metadata().is_ok_and(|found| found.is_dir()))
}
