//! What decides about a run and tells of it: no call of its may write that.

use std::path::{Path, PathBuf};

use crate::hook::HookCommand;
use crate::task::Job;

use super::RunSettings;

/// The task file, the records of the run, and what else decides about it: never
/// written by calls.
pub(super) fn protected(job: &Job, settings: &RunSettings, workspace: &Path) -> Vec<PathBuf> {
    let mut protected = vec![settings.directory.path().to_path_buf()];
    protected.extend(job.file.clone());
    protected.extend(settings.tape.file());
    protected.extend(settings.catalog.file().map(Path::to_owned));
    let own = settings.catalog.own();
    protected.extend(own.filter_map(|(_, provider)| provider.key_file.clone()));
    protected.extend(job.resume.as_ref().and_then(|resume| resume.file.clone()));
    if let Some(response) = &job.response {
        protected.extend(response.file.clone());
        protected.extend(response.schema_file.clone());
    }
    protected.extend(guards(job, workspace));
    protected
}

/// What the runner itself writes while commands run: the directory of the run, and
/// the session file that it goes on with.
pub(super) fn records(job: &Job, settings: &RunSettings) -> Vec<PathBuf> {
    let mut records = vec![settings.directory.path().to_path_buf()];
    let gone_on_with = job.resume.as_ref().filter(|resume| !resume.fork);
    records.extend(gone_on_with.and_then(|resume| resume.file.clone()));
    records
}

/// The files that hooks run, or that an interpreter runs for them: whoever is
/// guarded must not rewrite the guard.
pub(super) fn guards(job: &Job, workspace: &Path) -> Vec<PathBuf> {
    let guard = |hook: &HookCommand| {
        if hook.program.is_absolute() {
            return Some(hook.program.clone());
        }
        let script = hook.args.iter().find(|arg| !arg.starts_with('-'))?;
        Some(workspace.join(script)).filter(|script| script.is_file())
    };
    job.hooks.iter().filter_map(guard).collect()
}
