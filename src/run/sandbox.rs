//! The sandbox of a job: where its commands may go, and what is told of it.

use std::ffi::OsStr;
use std::fs::FileType;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::event::{Emission, EventKind, Place, SandboxReport, TierPassedOver, Warning};
use crate::hook::{CommandHook, Hooks};
use crate::policy::{
    Enforcement, Mode, Policy, PrivateDirectory, Rule, TemporaryFiles, is_credential_directory,
    is_credential_name,
};
use crate::process::Confinement;
use crate::sandbox::proxy::Hosts;
use crate::sandbox::{
    self, Established, GitAccess, Grounds, Network, NoSandbox, Sandbox, SandboxMode,
    SandboxOptions, Survey, Tier,
};
use crate::task::{self, Job, RUNS};

use super::blocking::blocking;
use super::environment::{self, Environment};
use super::gateway::Gateway;
use super::git_identity;
use super::job::JobContext;
use super::protected::{automation, guards, runs_something};

/// What the commands of a job run with.
#[derive(Debug)]
pub(super) struct Confined {
    /// What keeps them in.
    pub(super) confinement: Option<Arc<dyn Confinement>>,
    /// Their whole environment.
    pub(super) env: Vec<(String, String)>,
    /// Whether policy may rest on it.
    pub(super) enforcement: Enforcement,
    /// The temporary files that only commands have.
    pub(super) temporary: TemporaryFiles,
    /// What is told of it; none when no command can run.
    pub(super) report: Option<SandboxReport>,
    /// The way out to the hosts that are listed.
    pub(super) gateway: Option<Gateway>,
}

impl Confined {
    /// The task's hooks, in order. They see what commands see.
    pub(super) fn hooks(&self, job: &Job, workspace: &Path) -> Hooks {
        job.hooks.iter().fold(Hooks::new(), |hooks, command| {
            let hook = CommandHook::new(command.clone(), workspace.to_owned(), self.env.clone());
            hooks.with_hook(Arc::new(hook.confined(self.confinement.clone())))
        })
    }
}

/// Where a job works, for its sandbox.
pub(super) struct SandboxSite<'s> {
    pub(super) workspace: &'s Path,
    pub(super) scratch: &'s Path,
    /// What no command may write: the files and records of the run.
    pub(super) protected: Vec<PathBuf>,
    /// The run directory, which is written meanwhile.
    pub(super) records: Vec<PathBuf>,
}

/// Makes the sandbox that a job asks for, if it can run commands at all.
///
/// # Errors
/// When one is required and there is none.
pub(super) async fn establish(
    job: &Job,
    context: &JobContext,
    site: SandboxSite<'_>,
    policy: impl FnOnce() -> Arc<Policy>,
) -> Result<Confined, NoSandbox> {
    let environment = &context.settings.environment;
    let mut warnings = Vec::new();
    let env = environment::command_env(job, environment);
    let mut confined = Confined {
        confinement: None,
        env,
        enforcement: Enforcement::NotEnforced,
        temporary: TemporaryFiles::default(),
        report: None,
        gateway: None,
    };
    let options = &job.sandbox;
    if !runs_commands(job) && options.mode != SandboxMode::Require {
        return Ok(confined);
    }
    let mut options = options.clone();
    options
        .write
        .extend(job.permissions.additional_directories.iter().cloned());
    let grounds = match options.mode {
        SandboxMode::Off => Grounds::default(),
        SandboxMode::Require | SandboxMode::Prefer => {
            let survey = survey(&site, policy()).await;
            warnings.extend(partial(&survey));
            let mut site = site;
            site.protected.extend(denied_writes(job, site.workspace));
            // Hooks may lie beside the task and not in the workspace.
            options.read.extend(guards(job, site.workspace));
            grounds(&mut options, environment, site, survey, &confined.env)
        }
    };
    let Established {
        sandbox,
        passed_over,
    } = Sandbox::establish(&options, grounds.clone()).await?;
    if sandbox.is_none() && options.mode == SandboxMode::Prefer {
        warnings.push(none_works(&passed_over));
    }
    confined.report = Some(report(sandbox.as_ref(), &passed_over));
    if let Some(mut sandbox) = sandbox {
        let named = |name: &str| {
            job.env.set.contains_key(name) || job.env.pass.iter().any(|one| one == name)
        };
        if !named("HOME") {
            let home = grounds.private_home();
            let git = git_identity::bring_in(&home, options.git, job, environment).await;
            warnings.extend(git);
        }
        confined.env = sandbox::environment(&confined.env, &grounds, named);
        if let Network::Hosts(hosts) = sandbox.network().clone() {
            let gateway = open(&hosts, &grounds, context, place(job))?;
            sandbox = sandbox.with_refusals(gateway.recent_refusals());
            confined.gateway = Some(gateway);
            confined.env.extend(without_proxy(&hosts));
        } else if let Network::Hosts(_) = options.network {
            warnings.push(no_hosts(&passed_over));
        }
        confined.enforcement = Enforcement::Enforced;
        confined.temporary = temporary(sandbox.tier(), &grounds, &confined.env);
        confined.confinement = Some(Arc::new(sandbox));
    }
    tell(warnings, job, context).await;
    Ok(confined)
}

/// The directories that a tier gives commands for themselves: landlock has only
/// those that `$TMPDIR` and `$HOME` name.
fn temporary(tier: Tier, grounds: &Grounds, env: &[(String, String)]) -> TemporaryFiles {
    let (files, home) = (grounds.private_tmp(), grounds.private_home());
    let mut private = vec![
        PrivateDirectory::at(home.clone(), home),
        PrivateDirectory::at(files.clone(), files.clone()),
    ];
    if tier == Tier::Namespaces {
        let mounted = ["/tmp", "/var/tmp"].map(PathBuf::from);
        private.extend(mounted.map(|path| PrivateDirectory::at(path, files.clone())));
    }
    let variable = env.iter().find(|(name, _)| name == "TMPDIR");
    let variable = variable.map(|(_, value)| PathBuf::from(value));
    TemporaryFiles {
        // The task may have named another one.
        variable: variable.filter(|value| *value == files),
        private,
    }
}

async fn tell(warnings: Vec<Warning>, job: &Job, context: &JobContext) {
    for warning in warnings {
        let (place, kind) = (place(job), EventKind::Warning(warning));
        // A run that no longer listens ends by itself.
        let _ = context.events.send(Emission { place, kind }).await;
    }
}

fn place(job: &Job) -> Place {
    Place {
        job: Some(job.name.clone()),
        ..Place::default()
    }
}

/// Opens the way out to `hosts`.
fn open(
    hosts: &Hosts,
    grounds: &Grounds,
    context: &JobContext,
    place: Place,
) -> Result<Gateway, NoSandbox> {
    let socket = grounds.proxy_socket();
    let environment = &context.settings.environment;
    let opened = Gateway::open(
        hosts.clone(),
        &socket,
        environment,
        context.events.clone(),
        place,
    );
    opened.map_err(|error| {
        let reason = format!("the way out cannot listen on {}: {error}", socket.display());
        NoSandbox::of(Tier::Namespaces, reason)
    })
}

/// What is reached without the proxy: the servers that commands start, unless
/// the machine itself is listed.
fn without_proxy(hosts: &Hosts) -> Vec<(String, String)> {
    let exceptions = match hosts.names_loopback() {
        true => "",
        false => "localhost,127.0.0.1,::1",
    };
    let set = |name: &str| (name.to_owned(), exceptions.to_owned());
    vec![set("NO_PROXY"), set("no_proxy")]
}

fn none_works(passed_over: &[(Tier, String)]) -> Warning {
    Warning {
        code: "no_sandbox".to_owned(),
        message: format!(
            "commands run without a sandbox, because none works here: {}",
            sandbox::reasons(passed_over)
        ),
    }
}

fn no_hosts(passed_over: &[(Tier, String)]) -> Warning {
    Warning {
        code: "no_hosts".to_owned(),
        message: format!(
            "commands reach no host, not even those of `sandbox.network`: the tier `landlock` \
             cannot tell hosts apart; install bubblewrap{}{}",
            if passed_over.is_empty() { "" } else { ": " },
            sandbox::reasons(passed_over)
        ),
    }
}

/// The places of the workspace that deny rules keep from being written, as far
/// as a rule names a place and not a pattern.
fn denied_writes(job: &Job, workspace: &Path) -> Vec<PathBuf> {
    let place = |rule: &Rule| {
        let (tool, specifier) = rule.text().trim().strip_suffix(')')?.split_once('(')?;
        let specifier = specifier.trim();
        let named = specifier.strip_suffix("/**").unwrap_or(specifier);
        let named = named.strip_prefix("./").unwrap_or(named);
        let literal = !named.is_empty() && !named.contains(['*', '?', '[', '{', '\\', '~']);
        (tool.eq_ignore_ascii_case("edit") && literal).then(|| workspace.join(named))
    };
    job.permissions.deny.iter().filter_map(place).collect()
}

/// Whether anything of a job can run a command: a hook, or a call that policy
/// might allow.
fn runs_commands(job: &Job) -> bool {
    let permissions = &job.permissions;
    let by_mode = matches!(permissions.mode, Mode::Workspace | Mode::Bypass);
    let by_rule = || permissions.allow.iter().any(Rule::is_about_commands);
    let bash = job.tools.iter().any(|tool| tool == "bash");
    !job.hooks.is_empty() || (bash && (by_mode || by_rule()))
}

/// Looks through the workspace on a thread of its own.
async fn survey(site: &SandboxSite<'_>, policy: Arc<Policy>) -> Survey {
    let (workspace, records) = (site.workspace.to_owned(), site.records.clone());
    blocking(move || {
        let credential = |name: &OsStr, kind: FileType| match kind.is_dir() {
            true => is_credential_directory(name),
            false => is_credential_name(name),
        };
        let mut survey = sandbox::survey(&workspace, credential, runs_something);
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

fn partial(survey: &Survey) -> Option<Warning> {
    survey.partial.then(|| Warning {
        code: "sandbox_survey".to_owned(),
        message: "the workspace has so many files that not every repository in it was found: \
                  those are not protected from commands"
            .to_owned(),
    })
}

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
    let mut repositories = Vec::new();
    protected.extend(survey.placed);
    match options.git {
        GitAccess::ReadOnly => {
            protected.extend(survey.repositories);
            options.read.extend(survey.outside);
        }
        GitAccess::Writable => {
            // A file or a link of that name says where the repository is.
            let is_directory =
                |git: &PathBuf| git.symlink_metadata().is_ok_and(|found| found.is_dir());
            let split = |found: Vec<PathBuf>| -> (Vec<PathBuf>, Vec<PathBuf>) {
                found.into_iter().partition(is_directory)
            };
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
        forwarder: environment.program().map(Path::to_owned),
    }
}

fn report(sandbox: Option<&Sandbox>, passed_over: &[(sandbox::Tier, String)]) -> SandboxReport {
    let passed_over = passed_over.iter().map(|(tier, reason)| TierPassedOver {
        tier: tier.name().to_owned(),
        reason: reason.clone(),
    });
    SandboxReport {
        tier: sandbox
            .map_or("none", |sandbox| sandbox.tier().name())
            .to_owned(),
        network: match sandbox {
            Some(sandbox) => task::network_name(sandbox.network()),
            None => "on",
        }
        .to_owned(),
        passed_over: passed_over.collect(),
    }
}
