//! Which session a job goes on with.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::event::{Reason, Warning};
use crate::model;
use crate::store::{self, FindError, Store, StoreError};
use crate::task::{Job, NEWEST, RUNS};

use super::Environment;

/// Where sessions are looked for: in the run directories below `reports_dir`,
/// and in the user's own collection.
pub fn session_roots(reports_dir: &Path, environment: &Environment) -> Vec<PathBuf> {
    let own = environment.agent_dir().map(|dir| dir.join("sessions"));
    std::iter::once(reports_dir.to_owned()).chain(own).collect()
}

/// The roots of a command that has no task, in the directory where it runs.
pub fn session_roots_here(environment: &Environment) -> Vec<PathBuf> {
    session_roots(Path::new(RUNS), environment)
}

/// Finds the session that a job goes on with. A job that names no model goes on
/// with the one that answered last, if there are credentials for it.
///
/// # Errors
/// When there is no such session, or more than one, or it cannot be read.
pub fn find_session(job: &mut Job, environment: &Environment) -> Result<(), FindError> {
    let Some(resume) = &mut job.resume else {
        return Ok(());
    };
    let roots = session_roots(&job.reports_dir, environment);
    let found = match resume.session.as_str() {
        NEWEST => store::newest(&roots, &job.workspace.path)?,
        text => store::find(&roots, text)?,
    };
    resume.file = Some(found.path.clone());
    if job.settings.model.is_some() {
        return Ok(());
    }
    let tree = Store::read(&found.path)?;
    let Some((provider, id)) = tree.model() else {
        return Ok(());
    };
    let name = format!("{provider}/{id}");
    let usable = model::resolve(&name, None)
        .is_ok_and(|model| !matches!(environment.api_key(&model), Ok(None)));
    if usable {
        if let Some(field) = job.resolved.pointer_mut("/settings/model") {
            *field = json!(name);
        }
        job.settings.model = Some(name);
    } else {
        job.warnings.push(Warning {
            code: "model_fallback".to_owned(),
            message: format!(
                "the session was led with {name}, for which there are no credentials; \
                 another model goes on with it"
            ),
        });
    }
    Ok(())
}

/// The reason of a run whose session cannot be told.
pub fn find_reason(error: &FindError) -> Reason {
    match error {
        FindError::Missing { .. } | FindError::Ambiguous { .. } | FindError::NoneYet { .. } => {
            Reason::NoInput
        }
        FindError::Unreadable(error) => store_reason(error),
    }
}

/// The reason of a run whose session cannot be used.
pub fn store_reason(error: &StoreError) -> Reason {
    match error {
        StoreError::Open { .. } => Reason::NoInput,
        StoreError::NotASession { .. }
        | StoreError::Version { .. }
        | StoreError::BadLine { .. }
        | StoreError::Tree(_) => Reason::BadTask,
        StoreError::Create { .. }
        | StoreError::Exists { .. }
        | StoreError::Locked { .. }
        | StoreError::Write { .. }
        | StoreError::Sync { .. }
        | StoreError::Sealed { .. }
        | StoreError::Encode(_) => Reason::Io,
    }
}
