//! Which session a job goes on with.

use std::path::{Path, PathBuf};

use crate::event::{Reason, Warning};
use crate::store::{self, FindError, Found, Skipped, Store, StoreError};
use crate::task::{Job, NEWEST, RUNS};

use super::Environment;
use super::environment::written;

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

/// Finds the session that a job goes on with, and for a job that names no model
/// the one that answered last.
///
/// # Errors
/// When there is no such session, or more than one, or it cannot be read.
pub fn find_session(job: &mut Job, environment: &Environment) -> Result<(), FindError> {
    let places = written(job, &job.workspace.path);
    let Some(resume) = &mut job.resume else {
        return Ok(());
    };
    let roots = session_roots(&job.reports_dir, environment);
    let seals = environment.seals(&places);
    let believed = |path: &Path| match &seals {
        Ok(seals) => seals.check(path).map_err(|error| error.to_string()),
        Err(why) => Err(why.clone()),
    };
    let path = match resume.session.as_str() {
        NEWEST => {
            let newest = store::newest(&roots, &job.workspace.path, believed)?;
            job.warnings.extend(newest.passed_over.iter().map(doubted));
            resume.believed = true;
            newest.path
        }
        text => {
            let found = store::find(&roots, text)?;
            match believed(&found.path) {
                Ok(()) => resume.believed = true,
                // Whoever names a file knows where it came from.
                Err(_) if found.by_path => {}
                Err(reason) => {
                    let Found { id, path, .. } = found;
                    return Err(FindError::Doubtful { id, path, reason });
                }
            }
            found.path
        }
    };
    if job.settings.model.is_none() {
        let tree = Store::read(&path)?;
        let owned = |(provider, id): (&str, &str)| (provider.to_owned(), id.to_owned());
        resume.model = tree.model().map(owned);
    }
    resume.file = Some(path);
    Ok(())
}

fn doubted(session: &Skipped) -> Warning {
    Warning {
        code: "session_passed_over".to_owned(),
        message: format!(
            "{} is newer, but was not continued: {}",
            session.path.display(),
            session.reason
        ),
    }
}

/// The reason of a run whose session cannot be told.
pub fn find_reason(error: &FindError) -> Reason {
    match error {
        FindError::Missing { .. }
        | FindError::Ambiguous { .. }
        | FindError::NoneYet { .. }
        | FindError::Doubtful { .. } => Reason::NoInput,
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
