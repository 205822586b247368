//! What a job's model is told of the files that people keep for agents.

use std::path::Path;
use std::sync::Arc;

use crate::context::{Resources, Sources};
use crate::event::{Emission, EventKind, Place};
use crate::policy::{Permissions, Policy, Rule};
use crate::task::Job;

use super::blocking::blocking;
use super::job::JobContext;

/// Where rules that let skills be read say that they come from.
const ORIGIN: &str = "skills";

/// Loads the resources of a job that works in `workspace` under the policy, which
/// is made only if there may be any, and tells what is wrong with them.
pub(super) async fn load(
    job: &Job,
    context: &JobContext,
    workspace: &Path,
    policy: impl FnOnce() -> Arc<Policy>,
) -> Resources {
    let settings = &context.settings;
    let cwd = Path::new(&settings.cwd);
    let agent_dir = settings.environment.agent_dir_of(job, cwd);
    if agent_dir.is_none() && job.load_repo_config.is_empty() {
        return Resources::default();
    }
    let policy = policy();
    let directory = job.workspace.path.clone();
    let workspace = workspace.to_owned();
    let kinds = job.load_repo_config.clone();
    let loading = blocking(move || {
        // Of what lies above the workspace no rule of a task speaks.
        let permit = |path: &Path| !path.starts_with(&workspace) || policy.may_read("read", path);
        Resources::load(&Sources {
            agent_dir: agent_dir.as_deref(),
            directory: &directory,
            workspace: &workspace,
            repository: &kinds,
            permit: &permit,
        })
    });
    let resources = loading.await;
    for warning in &resources.warnings {
        let place = Place {
            job: Some(job.name.clone()),
            ..Place::default()
        };
        let kind = EventKind::Warning(warning.clone());
        // A run that no longer listens ends by itself.
        let _ = context.events.send(Emission { place, kind }).await;
    }
    resources
}

/// What the task allows, and that skills may be read where they lie: whoever
/// lets the model hear of a skill wants it to be used. What denies goes first
/// as ever.
pub(super) fn permissions(job: &Job, resources: &Resources, workspace: &Path) -> Permissions {
    let outside = resources
        .skills
        .iter()
        .filter(|skill| !skill.directory.starts_with(workspace));
    // A directory that would be a pattern gets no rule.
    let rules = outside.filter_map(|skill| {
        let directory = skill.directory.to_str()?;
        let literal = !directory.contains(['*', '?', '[', ']', '{', '}', '\\', '(', ')']);
        let text = format!("Read({directory}/**)");
        literal.then(|| Rule::parse(&text, ORIGIN).ok()).flatten()
    });
    let mut permissions = job.permissions.clone();
    permissions.allow.extend(rules);
    permissions
}
