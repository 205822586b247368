//! What a job changed: how git is asked, the patch without secrets, the event.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::event::{Diff, Emission, ErrorReport, EventKind, Place, Warning};
use crate::secret::Redactor;
use crate::task::Job;
use crate::workspace::{Changes, GitSettings, WorkspaceError};

use super::directory::{DirectoryError, JobPaths};
use super::environment;
use super::job::JobContext;

/// Writes the patch and reports what changed; returns the error of a job
/// whose changes may be missing from that, because something failed.
///
/// # Errors
/// When the patch cannot be written.
pub(super) async fn tell(
    changes: Option<Result<Changes, WorkspaceError>>,
    paths: &JobPaths,
    context: &JobContext,
    place: Place,
) -> Result<Option<ErrorReport>, DirectoryError> {
    let send = async |kind| {
        let place = place.clone();
        let _ = context.events.send(Emission { place, kind }).await;
    };
    let warn = async |code: &str, message: String| {
        let code = code.to_owned();
        send(EventKind::Warning(Warning { code, message })).await;
    };
    let changes = match changes {
        None => return Ok(None),
        Some(Ok(changes)) => changes,
        Some(Err(error)) => {
            let message = format!("the changes could not be determined: {error}");
            warn("diff_failed", message.clone()).await;
            return Ok(Some(lost(&message)));
        }
    };
    let error = changes.lost.as_deref().map(lost);
    for warning in changes.warnings {
        send(EventKind::Warning(warning)).await;
    }
    if changes.files.is_empty() {
        return Ok(error);
    }
    let patch = masked(&changes.patch, &context.settings.redactor);
    context.settings.directory.write(&paths.patch, &patch)?;
    if matches!(patch, Cow::Owned(_)) {
        let message = "the changes hold secrets, which change.patch shows as ***: it does not \
                       give these files as they are";
        warn("patch_redacted", message.to_owned()).await;
    }
    send(EventKind::Diff(Diff {
        files: changes.files,
        patch_path: Some(context.settings.directory.relative(&paths.patch)),
        source: changes.source.to_owned(),
    }))
    .await;
    Ok(error)
}

fn lost(cause: &str) -> ErrorReport {
    ErrorReport {
        code: "changes_lost".to_owned(),
        message: format!("changes made by the job may not be listed: {cause}"),
        hints: vec!["compare the workspace with a fresh checkout".to_owned()],
        ..ErrorReport::default()
    }
}

/// The patch without secrets; what is no UTF-8 stays as it is, unless it stands
/// in one.
fn masked<'a>(patch: &'a [u8], redactor: &Redactor) -> Cow<'a, [u8]> {
    let mut clean = Vec::with_capacity(patch.len());
    for chunk in patch.utf8_chunks() {
        clean.extend_from_slice(redactor.redact(chunk.valid()).as_bytes());
        clean.extend_from_slice(chunk.invalid());
    }
    // A byte that is no text may stand inside of a secret.
    if let Cow::Owned(text) = redactor.redact(&String::from_utf8_lossy(&clean)) {
        clean = text.into_bytes();
    }
    if clean == patch {
        Cow::Borrowed(patch)
    } else {
        Cow::Owned(clean)
    }
}

/// How git is asked about the workspace.
pub(super) fn git_settings(
    context: &JobContext,
    job: &Job,
    workspace: &Path,
    scratch: &Path,
) -> GitSettings {
    let path = environment::trusted_path(&context.settings.environment, job, workspace);
    let mut git = GitSettings::new(path, scratch);
    git.exclude = excluded(workspace, context.settings.directory.path());
    git
}

/// The run directory's parent, when it lies inside the workspace: our own
/// files are no change of the job's.
fn excluded(workspace: &Path, directory: &Path) -> Vec<PathBuf> {
    let parent = directory.parent().unwrap_or(directory);
    if parent != workspace && parent.starts_with(workspace) {
        vec![parent.to_path_buf()]
    } else if directory.starts_with(workspace) {
        vec![directory.to_path_buf()]
    } else {
        Vec::new()
    }
}
