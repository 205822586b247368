//! One job: workspace up, session, prompt, diff, workspace down.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::clock::{self, Activity};
use crate::event::{Emission, ErrorReport, JobResult, Place, Reason};
use crate::model::ClientOptions;
use crate::policy::{Permissions, Policy, Surroundings};
use crate::process::CommandSandbox;
use crate::session::{
    Answer, Cause, ChoiceError, Closed, Expand, Instructions, Interrupt, Models, PromptOptions,
    QueueModes, Sampling, Session, SessionError, SessionOptions, Stop,
};
use crate::session::{Workbench, WorkingCopy};
use crate::task::{Isolation, Job, ScriptProblem};
use crate::tool::{CommandSettings, Toolset};
use crate::workspace::{self, WorkspaceError};

use super::blocking::blocking;
use super::changes;
use super::default_model;
use super::directory::{self, JobPaths};
use super::environment;
use super::gateway::{self, Gateway};
use super::protected::{keys, protected, records};
use super::resources;
use super::response_file::ResponseFile;
use super::sandbox::{self, Confined, SandboxSite};
use super::scratch::Scratch;
use super::session_file;
use super::tape::{self, JobTape};
use super::{RunSettings, Verdict};

/// The most that is waited for the diff once the job was interrupted.
const DIFF_AFTER_INTERRUPT: Duration = Duration::from_millis(2_500);

/// The output cap of a reply when neither task nor model sets a lower one.
const OUTPUT_TOKENS_DEFAULT: u64 = 32_000;

/// What a job gets of its run.
pub(super) struct JobContext {
    pub(super) settings: Arc<RunSettings>,
    pub(super) single: bool,
    pub(super) events: mpsc::Sender<Emission>,
}

/// Why a job could not start, or could not keep its results.
struct Trouble {
    reason: Reason,
    error: ErrorReport,
}

/// Where a job works.
struct Site {
    workspace: PathBuf,
    paths: JobPaths,
    answer: Option<ResponseFile>,
    /// Private files of the job, removed at its end.
    scratch: Scratch,
    /// What its hooks keep.
    hook_scratch: Option<Scratch>,
    /// What keeps its commands in.
    sandbox: CommandSandbox,
    /// What its calls are recorded on, or answered from.
    tape: JobTape,
    /// The way out to the hosts that commands may reach.
    gateway: Option<Gateway>,
}

impl Site {
    /// What a command made of the records that the run leaves.
    fn breach(&self) -> Option<Trouble> {
        let breach = self.sandbox.enforced()?.breach()?;
        Some(Trouble::new(Reason::Io, "records_changed", breach))
    }
}

/// Runs a job to its end.
pub(super) async fn run(job: Job, context: JobContext, interrupt: Interrupt) -> Verdict {
    let deadline = clock::monotonic() + job.limits.timeout;
    let paths = context.settings.directory.job(&job.name, context.single);
    let opening = async {
        let mut site = prepare_site(&job, &context, paths).await?;
        let mut confined = confine(&job, &context, &site).await?;
        site.sandbox.clone_from(&confined.sandbox);
        site.gateway = confined.gateway.take();
        let hooks = confined.hooks.as_mut();
        site.hook_scratch = hooks.and_then(|hooks| hooks.scratch.take());
        let session = open_session(&job, &context, &site, confined, deadline).await?;
        Ok((site, session))
    };
    // Copying and looking at a large workspace take their time.
    let opened = tokio::select! {
        biased;
        () = interrupt.token().cancelled() => {
            Err(Trouble::of(&Stop::Interrupted(interrupt.cause().unwrap_or(Cause::User))))
        }
        () = clock::until(Some(deadline)) => Err(Trouble::of(&Stop::Interrupted(Cause::Timeout))),
        opened = opening => opened,
    };
    match opened {
        Ok((site, session)) => converse(job, context, site, session, interrupt).await,
        Err(trouble) => trouble.verdict(),
    }
}

/// Prompts, closes, tells the diff, judges.
async fn converse(
    job: Job,
    context: JobContext,
    mut site: Site,
    session: Session,
    interrupt: Interrupt,
) -> Verdict {
    context.settings.environment.crash_if_asked("job");
    let options = PromptOptions {
        expand: Expand::Except(job.untrusted.clone()),
        interrupt: interrupt.clone(),
        ..PromptOptions::default()
    };
    let outcome = session.prompt(job.prompt.as_str(), options).await;
    let answer = outcome.as_ref().ok();
    let structured = answer.and_then(|answer| answer.structured.clone());
    let denials = session.denials();
    let repairs = session.repairs();
    let session_file = session
        .file()
        .map(|path| context.settings.directory.relative(&path));
    let budget = session.budget();
    let place = main_place(&job, &session);
    let closed = close(session, &interrupt).await;
    gateway::close(site.gateway.take()).await;
    let told = changes::tell(closed.changes, &site.paths, &context, place).await;
    let folder = site.paths.tool_output.clone();
    let redactor = context.settings.redactor.clone();
    let masked = blocking(move || directory::mask_files(&folder, &redactor)).await;
    let mut trouble = site.breach().or_else(|| judge(&job, outcome, denials));
    if let Err(error) = closed.stored {
        trouble = Some(Trouble::new(Reason::Io, "session_file", error));
    }
    match told {
        Err(error) => trouble = Some(Trouble::new(Reason::Io, "patch", error)),
        Ok(lost) => trouble = trouble.or(lost.map(Trouble::lost_changes)),
    }
    if let Err(error) = masked {
        trouble = Some(Trouble::new(Reason::Io, "tool_output", error));
    }
    if let (None, Err(error)) = (&trouble, closed.scripted) {
        trouble = Some(Trouble::new(Reason::BadTask, "script", error));
    }
    if let (None, Some(error)) = (&trouble, site.tape.leftover()) {
        trouble = Some(Trouble::of(&Stop::from(error)));
    }
    // Such a run is no success, whatever the model has said by then.
    let cut_short = matches!(interrupt.cause(), Some(Cause::Signal(_) | Cause::Output));
    let mut structured_output = structured.filter(|_| trouble.is_none() && !cut_short);
    if let (Some(answer), Some(file)) = (&structured_output, &site.answer)
        && let Err(error) = file.write(answer.clone(), &context.settings.redactor)
    {
        trouble = Some(Trouble::new(Reason::Io, "response_file", error));
        structured_output = None;
    }
    let (reason, error) = match trouble {
        None => (Reason::Success, None),
        Some(trouble) => (trouble.reason, Some(trouble.error)),
    };
    Verdict {
        reason,
        conclusion: JobResult {
            budget,
            structured_output,
            repairs,
            session_file,
            error,
        },
    }
}

/// Closes the session; after an interruption the diff has little time.
async fn close(session: Session, interrupt: &Interrupt) -> Closed {
    let give_up = CancellationToken::new();
    let closing = session.close(&give_up);
    tokio::pin!(closing);
    let hurry = async {
        interrupt.token().cancelled().await;
        clock::sleep(DIFF_AFTER_INTERRUPT, &CancellationToken::new()).await;
    };
    tokio::select! {
        biased;
        closed = &mut closing => return closed,
        () = hurry => give_up.cancel(),
    }
    closing.await
}

fn judge(job: &Job, outcome: Result<Answer, SessionError>, denials: u32) -> Option<Trouble> {
    match outcome {
        Ok(_) if job.permissions.fail_on_denied && denials > 0 => Some(Trouble::new(
            Reason::Denied,
            "denied",
            format!("{denials} calls were denied and permissions.fail_on_denied is set"),
        )),
        Ok(_) => None,
        Err(SessionError::Stopped(stop)) => Some(Trouble::of(&stop)),
        Err(error) => Some(Trouble::new(Reason::Internal, "session", error)),
    }
}

/// Makes the workspace ready.
async fn prepare_site(job: &Job, context: &JobContext, paths: JobPaths) -> Result<Site, Trouble> {
    let scratch = Scratch::make().map_err(|error| Trouble::new(Reason::Io, "scratch", error))?;
    let file = job
        .response
        .as_ref()
        .and_then(|asked| asked.file.as_deref());
    // Whatever stops the job from here on, no answer of an earlier one is left.
    let answer = file
        .map(|file| ResponseFile::prepare(file, job.working_copies(&job.workspace.path)))
        .transpose()
        .map_err(|error| Trouble::new(Reason::Io, "response_file", error))?;
    let trouble = |error: WorkspaceError| Trouble::new(Reason::Config, "workspace", error);
    if job.workspace.require_clean {
        let mut git = changes::git_settings(context, job, &job.workspace.path, scratch.path());
        // What was removed is no change of somebody's.
        git.exclude.extend(file.map(Path::to_owned));
        let cancel = CancellationToken::new();
        if !workspace::is_clean(&job.workspace.path, &git, &cancel)
            .await
            .map_err(trouble)?
        {
            let mut dirty = Trouble::new(
                Reason::Config,
                "workspace_dirty",
                format!(
                    "{} has uncommitted changes and workspace.require_clean is set",
                    job.workspace.path.display()
                ),
            );
            dirty.error.hints = vec!["commit or stash them".to_owned()];
            return Err(dirty);
        }
    }
    let workspace = match job.workspace.isolation {
        Isolation::None => job.workspace.path.clone(),
        Isolation::Copy => copy(&job.workspace.path, scratch.path())
            .await
            .map_err(trouble)?,
    };
    let tape = tape::of_job(job, &context.settings, &workspace);
    Ok(Site {
        workspace,
        paths,
        answer,
        scratch,
        hook_scratch: None,
        sandbox: CommandSandbox::default(),
        tape,
        gateway: None,
    })
}

/// Copies on a thread of its own: meanwhile signals are heard.
async fn copy(source: &Path, scratch: &Path) -> Result<PathBuf, WorkspaceError> {
    let (source, scratch) = (source.to_owned(), scratch.to_owned());
    blocking(move || workspace::copy(&source, &scratch)).await
}

/// Puts the session together.
async fn open_session(
    job: &Job,
    context: &JobContext,
    site: &Site,
    confined: Confined,
    deadline: std::time::Instant,
) -> Result<Session, Trouble> {
    let settings = &context.settings;
    let activity = Activity::new();
    let models = site.tape.models(models(job, settings, activity.clone())?);
    let judge = || {
        let permissions = job.permissions.clone();
        policy(job, settings, site, permissions, Some(&confined))
    };
    let resources = resources::load(job, context, &site.workspace, judge).await;
    let permissions = resources::permissions(job, &resources, &site.workspace);
    let (new, scratch) = (&site.paths.session, site.scratch.path());
    let kept = session_file::kept(job, context, &site.workspace, new, scratch)
        .await
        .map_err(|error| Trouble::new(error.reason(), "session_file", error))?;
    let options = SessionOptions {
        models,
        model: job.settings.model.clone(),
        fallback_models: job.settings.fallback_models.clone(),
        small_model: job.settings.small_model.clone(),
        thinking: Some(job.settings.thinking),
        sampling: sampling(job, settings),
        workbench: workbench(job, settings, site, permissions, &confined)
            .with_tape(site.tape.tools()),
        working_copy: WorkingCopy::new(
            site.workspace.clone(),
            changes::git_settings(context, job, &site.workspace, site.scratch.path()),
        ),
        store: kept.store,
        limits: job.limits.clone(),
        deadline,
        hooks: confined.hooks(job, &site.workspace),
        compaction: job.compaction,
        queue: QueueModes::default(),
        instructions: Instructions {
            task: job.instructions.clone(),
            append: job.append_system_prompt.clone(),
        },
        response: job.response.as_ref().map(|wanted| wanted.spec.clone()),
        resources: Arc::new(resources),
        activity,
        events: context.events.clone(),
        job: job.name.clone(),
    };
    let created = Session::create(options).await;
    let session = created.map_err(|stop| Trouble::of(&stop))?.session;
    if let Some(kind) = kept.told {
        let place = main_place(job, &session);
        // Without a reader the run is ending anyway.
        let _ = context.events.send(Emission { place, kind }).await;
    }
    Ok(session)
}

/// Where the events of a job's own session happen.
fn main_place(job: &Job, session: &Session) -> Place {
    Place {
        job: Some(job.name.clone()),
        session_id: Some(session.id().to_owned()),
        agent_id: Some("main".to_owned()),
        ..Place::default()
    }
}

/// The models of the job: the one that it names, and those of the environment.
fn models(job: &Job, settings: &RunSettings, activity: Activity) -> Result<Models, Trouble> {
    let mut options = ClientOptions::new(activity);
    let patience = job.settings.patience;
    options.connect_timeout = patience.connect;
    options.header_timeout = patience.response;
    options.idle_timeout = patience.stream;
    let (name, base_url) = (&job.settings.model, &job.settings.base_url);
    let (environment, catalog) = (&settings.environment, &settings.catalog);
    let script = |problem: ScriptProblem| Trouble::new(problem.kind.reason(), "script", problem);
    let (own, base_url) = (name.as_deref(), base_url.as_deref());
    let mut models = default_model::models(environment, catalog, own, base_url, options.clone())
        .map_err(script)?;
    let others = job.settings.fallback_models.iter();
    for name in others.chain(&job.settings.small_model) {
        models = default_model::with_script(models, name, options.clone()).map_err(script)?;
    }
    Ok(models)
}

fn sampling(job: &Job, settings: &RunSettings) -> Sampling {
    Sampling {
        max_output_tokens: job
            .settings
            .max_output_tokens
            .unwrap_or(OUTPUT_TOKENS_DEFAULT),
        temperature: job.settings.temperature,
        retry: job.retry.clone(),
        chunks: settings.chunks,
    }
}

/// Makes the sandbox of the job's commands, and tells what should be known of it.
async fn confine(job: &Job, context: &JobContext, site: &Site) -> Result<Confined, Trouble> {
    let settings = &context.settings;
    let place = SandboxSite {
        workspace: &site.workspace,
        scratch: site.scratch.path(),
        protected: protected(job, settings, &site.workspace),
        records: records(job, settings),
    };
    let judge = || {
        let permissions = job.permissions.clone();
        policy(job, settings, site, permissions, None)
    };
    let confined = sandbox::establish(job, context, place, judge).await;
    confined.map_err(|error| {
        let mut trouble = Trouble::new(Reason::Config, "no_sandbox", &error);
        trouble.error.hints = error.hints();
        trouble
    })
}

fn policy(
    job: &Job,
    settings: &RunSettings,
    site: &Site,
    permissions: Permissions,
    confined: Option<&Confined>,
) -> Arc<Policy> {
    Arc::new(Policy::new(
        permissions,
        Surroundings {
            workspace: site.workspace.clone(),
            home: settings.environment.home(),
            protected: protected(job, settings, &site.workspace),
            keys: keys(settings),
            sandbox: confined
                .map(|confined| confined.enforcement)
                .unwrap_or_default(),
            temporary: confined
                .map(|confined| confined.temporary.clone())
                .unwrap_or_default(),
        },
    ))
}

fn workbench(
    job: &Job,
    settings: &RunSettings,
    site: &Site,
    permissions: Permissions,
    confined: &Confined,
) -> Workbench {
    Workbench::new(
        Toolset::built_in(&job.tools),
        policy(job, settings, site, permissions, Some(confined)),
        crate::tool::Place {
            workspace: site.workspace.clone(),
            home: settings.environment.home(),
        },
        CommandSettings {
            shell_path: environment::shell_path(job, &confined.env, &site.workspace),
            env: confined.env.clone(),
            timeout: job.limits.command_timeout.min(COMMAND_TIMEOUT_DEFAULT),
            timeout_max: job.limits.command_timeout,
            sandbox: confined.sandbox.clone(),
        },
        Some(site.paths.tool_output.clone()),
    )
    .with_redactor(settings.redactor.clone())
    .with_sandbox(confined.report.clone())
}

/// A command's time limit when its call names none and the task allows more.
const COMMAND_TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);

impl Trouble {
    fn new(reason: Reason, code: &str, message: impl ToString) -> Self {
        Self {
            reason,
            error: ErrorReport {
                code: code.to_owned(),
                message: message.to_string(),
                ..ErrorReport::default()
            },
        }
    }

    fn lost_changes(error: ErrorReport) -> Self {
        let reason = Reason::Incomplete;
        Self { reason, error }
    }

    fn of(stop: &Stop) -> Self {
        let mut hints = stop.hints();
        if matches!(stop, Stop::NoModel(error) if matches!(**error, ChoiceError::NoModel { .. })) {
            let ours = "set settings.model in the task or AGENT_MODEL, or give --model provider/id";
            hints.insert(0, ours.to_owned());
        }
        Self {
            reason: stop.reason(),
            error: ErrorReport {
                code: stop.code().to_owned(),
                message: stop.to_string(),
                http_status: stop.http_status(),
                request_id: stop.request_id().map(str::to_owned),
                hints,
            },
        }
    }

    fn verdict(self) -> Verdict {
        Verdict {
            reason: self.reason,
            conclusion: JobResult {
                error: Some(self.error),
                ..JobResult::default()
            },
        }
    }
}
