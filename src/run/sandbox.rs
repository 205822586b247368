//! The sandbox of a job: where its commands may go, and what is told of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::event::{Emission, EventKind, Place, SandboxReport, TierPassedOver, Warning};
use crate::hook::{CommandHook, Hooks};
use crate::policy::{Enforcement, Policy, PrivateDirectory, TemporaryFiles};
use crate::process::CommandSandbox;
use crate::sandbox::proxy::Hosts;
use crate::sandbox::{
    self, Established, Grounds, HookSandbox, Network, NoSandbox, Sandbox, SandboxMode, Tier,
};
use crate::task::{self, Job};

use super::environment;
use super::gateway::Gateway;
use super::git_identity;
use super::hook_home::{HookHome, HookSite};
use super::job::JobContext;
use super::protected_values;
use super::surveyed::{self, Surveyed};

/// What the commands of a job run with.
#[derive(Debug)]
pub(super) struct Confined {
    /// What keeps them in.
    pub(super) sandbox: CommandSandbox,
    /// Their whole environment.
    pub(super) env: Vec<(String, String)>,
    /// What hooks run with, where that is something else.
    pub(super) hooks: Option<HookSite>,
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
    /// The task's hooks, in order. They see what commands see, but for a home and
    /// temporary files of their own.
    pub(super) fn hooks(&self, job: &Job, workspace: &Path) -> Hooks {
        let own = self.hooks.as_ref();
        let env = own.map_or(&self.env, |own| &own.env);
        let sandbox = own.map_or(&self.sandbox, |own| &own.sandbox);
        job.hooks.iter().fold(Hooks::new(), |hooks, command| {
            let (cwd, env) = (workspace.to_owned(), env.clone());
            let hook = CommandHook::new(command.clone(), cwd, env, sandbox.clone());
            hooks.with_hook(Arc::new(hook))
        })
    }

    /// Opens the way out to the hosts that `sandbox` lets commands reach, where it
    /// lists some.
    fn open_hosts(
        &mut self,
        sandbox: Sandbox,
        grounds: &Grounds,
        job: &Job,
        context: &JobContext,
    ) -> Result<Sandbox, NoSandbox> {
        let Network::Hosts(hosts) = sandbox.network().clone() else {
            return Ok(sandbox);
        };
        let gateway = open(&hosts, grounds, context, place(job))?;
        let sandbox = sandbox.with_refusals(gateway.recent_refusals());
        self.gateway = Some(gateway);
        let hooks = self.hooks.as_mut().map(|hooks| &mut hooks.env);
        for env in hooks.into_iter().chain([&mut self.env]) {
            env.extend(without_proxy(&hosts));
        }
        Ok(sandbox)
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

/// Makes the sandbox that a job asks for, if a command of it could start at all;
/// otherwise none is set up, and none starts.
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
    let env = environment::command_env(job, environment);
    let mut confined = Confined {
        sandbox: CommandSandbox::Missing,
        env,
        hooks: None,
        enforcement: Enforcement::NotEnforced,
        temporary: TemporaryFiles::default(),
        report: None,
        gateway: None,
    };
    if !job.may_start_commands() {
        return Ok(confined);
    }
    let surveyed = surveyed::look_through(job, context, site, policy(), &confined.env).await;
    let Surveyed {
        options,
        mut grounds,
        rules,
        credentials,
        mut warnings,
    } = surveyed;
    let hook_home = HookHome::make(job, &options, &mut grounds)?;
    let Established {
        sandbox,
        passed_over,
    } = Sandbox::establish(&options, grounds.clone()).await?;
    if sandbox.is_none() && options.mode == SandboxMode::Prefer {
        warnings.push(none_works(&passed_over));
    }
    let tier = sandbox.as_ref().map(Sandbox::tier);
    warnings.extend(rules.not_held(tier));
    warnings.extend(protected_values::hide(tier, credentials, context).await);
    confined.report = Some(report(sandbox.as_ref(), &passed_over));
    // Only a mode that somebody wrote comes here without one.
    confined.sandbox = CommandSandbox::Off;
    if let Some(mut sandbox) = sandbox {
        let named = |name: &str| {
            job.env.set.contains_key(name) || job.env.pass.iter().any(|one| one == name)
        };
        if !named("HOME") {
            let home = grounds.private_home();
            let git = git_identity::bring_in(&home, options.git, job, environment).await;
            warnings.extend(git);
        }
        confined.hooks = hook_home.map(|home| home.site(&confined.env, &options, &grounds, named));
        confined.env = confined_env(&confined.env, &grounds, sandbox.network(), named);
        sandbox = confined.open_hosts(sandbox, &grounds, job, context)?;
        if matches!(options.network, Network::Hosts(_)) && confined.gateway.is_none() {
            warnings.push(no_hosts(&passed_over));
        }
        confined.enforcement = Enforcement::Enforced;
        confined.temporary = temporary(sandbox.tier(), &grounds, &confined.env);
        let sandbox = Arc::new(sandbox);
        if let Some(hooks) = &mut confined.hooks {
            let own = HookSandbox::new(sandbox.clone());
            hooks.sandbox = CommandSandbox::Enforced(Arc::new(own));
        }
        confined.sandbox = CommandSandbox::Enforced(sandbox);
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

/// The environment of commands in the sandbox.
fn confined_env(
    env: &[(String, String)],
    grounds: &Grounds,
    network: &Network,
    named: impl Fn(&str) -> bool,
) -> Vec<(String, String)> {
    let env = sandbox::environment(env, grounds, &named);
    match network {
        Network::Off => sandbox::without_network(&env, named),
        Network::On | Network::Hosts(_) => env,
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
