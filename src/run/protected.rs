//! What decides about a run and tells of it: no call of its may write that.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::hook::HookCommand;
use crate::policy::{Policy, automation_places, is_automation};
use crate::task::{Job, RUNS};

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

/// The files with the keys of the run, which no call reads.
pub(super) fn keys(settings: &RunSettings) -> Vec<PathBuf> {
    let own = settings.catalog.own();
    let own = own.filter_map(|(_, provider)| provider.key_file.clone());
    let state = settings.environment.state_dir();
    own.chain(settings.environment.key_files())
        .chain(state)
        .collect()
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

/// Directories that programs fill and empty as a whole, so that nothing in them can
/// be kept from being written.
const GENERATED: &[&str] = &[
    ".tox",
    ".venv",
    "bower_components",
    "build",
    "dist",
    "node_modules",
    "target",
    "vendor",
    "venv",
];

/// So many of the places in a workspace are looked at, the outermost first.
const PLACES_MAX: usize = 500;

/// Whether what is at this path, from the workspace, makes other programs run
/// something.
pub(super) fn runs_something(path: &Path) -> bool {
    let generated = |name: &OsStr| GENERATED.iter().any(|one| name == *one);
    is_automation(path) && !path.iter().any(generated)
}

/// Which places that make other programs run something no command may write: those
/// `found` in the workspace and the usual ones that are not there yet, as far as no
/// rule allows to write them and they hold no records of the run.
pub(super) fn automation(
    workspace: &Path,
    found: &[PathBuf],
    policy: &Policy,
    records: &[PathBuf],
) -> Vec<PathBuf> {
    let named = automation_places().map(|place| workspace.join(place));
    let mut open: Vec<PathBuf> = found.iter().cloned().chain(named).collect();
    open.sort_by_key(|path| (path.components().count(), path.clone()));
    open.dedup();
    open.truncate(PLACES_MAX);
    let mut closed = Vec::new();
    while let Some(place) = open.pop() {
        let mut records = records.iter();
        let holds_records = records.any(|record| record.starts_with(&place));
        let is_runs = place.ends_with(RUNS);
        if is_runs || policy.may_write("bash", &place) {
            continue;
        }
        if holds_records || policy.allows_below(&place) {
            let inside = fs::read_dir(&place).into_iter().flatten().flatten();
            open.extend(inside.map(|entry| entry.path()));
            continue;
        }
        closed.push(place);
    }
    closed
}
