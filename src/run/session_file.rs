//! The conversation's file of a job: a new one, that of an earlier run, or a
//! fork of that.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use crate::event::{EventKind, Reason, SessionForked, SessionResumed};
use crate::secret::Redactor;
use crate::store::{Durability, ForkFile, Header, Seals, Store, StoreError};
use crate::task::{Job, Resume};
use crate::workspace::{self, GitSettings};

use super::blocking::blocking;
use super::changes;
use super::environment::written;
use super::job::JobContext;
use super::resume::store_reason;

/// A conversation that is ready to go on.
pub(super) struct Kept {
    pub(super) store: Store,
    /// How it came about, if it is not new.
    pub(super) told: Option<EventKind>,
}

/// Why a job has no conversation.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionFileError {
    /// Nobody knows who wrote it.
    #[error("{0}")]
    Doubtful(String),
    /// It cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SessionFileError {
    /// How the run ends.
    pub(super) fn reason(&self) -> Reason {
        match self {
            Self::Doubtful(_) => Reason::NoInput,
            Self::Store(error) => store_reason(error),
        }
    }
}

/// Opens the conversation of `job`; a new file has the name `new`. From now on this
/// user's runner knows it again.
///
/// # Errors
/// When it cannot be used, or is a file of the repository.
pub(super) async fn kept(
    job: &Job,
    context: &JobContext,
    workspace: &Path,
    new: &Path,
    scratch: &Path,
) -> Result<Kept, SessionFileError> {
    let settings = &context.settings;
    let redactor = settings.redactor.clone();
    let seals = job
        .persist_session
        .then(|| settings.environment.seals(&written(job, workspace)));
    let seals = seals.and_then(Result::ok);
    let Some(resume) = &job.resume else {
        return Ok(open(job, new, redactor, seals.as_ref())?);
    };
    if let Some(file) = resume.file.as_deref().filter(|_| !resume.believed) {
        let git = changes::git_settings(context, job, &job.workspace.path, scratch);
        refuse_tracked(file, &git).await?;
    }
    let (job, new) = (job.clone(), new.to_owned());
    Ok(blocking(move || open(&job, &new, redactor, seals.as_ref())).await?)
}

fn open(
    job: &Job,
    new: &Path,
    redactor: Redactor,
    seals: Option<&Seals>,
) -> Result<Kept, StoreError> {
    let mut kept = unsealed(job, new, redactor)?;
    if let Some(seals) = seals {
        // A session without a record is continued by the name of its file.
        let _ = kept.store.seal(seals);
    }
    Ok(kept)
}

fn unsealed(job: &Job, new: &Path, redactor: Redactor) -> Result<Kept, StoreError> {
    // A copy of the workspace is gone after the run; what it was taken from is
    // where a later run looks for the session.
    let header = Header::new(job.workspace.path.display().to_string());
    match &job.resume {
        None if job.persist_session => Ok(Kept {
            store: Store::create(new, header, Durability::Step, redactor)?,
            told: None,
        }),
        None => Ok(Kept {
            store: Store::in_memory(header),
            told: None,
        }),
        Some(Resume {
            fork: true, file, ..
        }) => fork(
            file.as_deref().unwrap_or(new),
            ForkFile {
                path: new.to_owned(),
                header,
                durability: Durability::Step,
                redactor,
            },
        ),
        Some(Resume { file, .. }) => resume(file.as_deref().unwrap_or(new), redactor),
    }
}

fn fork(parent: &Path, to: ForkFile) -> Result<Kept, StoreError> {
    let tree = Store::read(parent)?;
    let leaf = tree.leaf().map(|leaf| leaf.id.clone());
    let store = Store::fork_file(&tree, parent, leaf.as_ref(), to)?;
    let forked = SessionForked {
        parent_session_id: tree.header().id.clone(),
        session_id: store.tree().header().id.clone(),
        from_entry: leaf.map(|leaf| leaf.to_string()),
    };
    Ok(Kept {
        store,
        told: Some(EventKind::SessionForked(forked)),
    })
}

fn resume(file: &Path, redactor: Redactor) -> Result<Kept, StoreError> {
    let opened = Store::open(file, Durability::Step, redactor)?;
    let tree = opened.store.tree();
    let resumed = SessionResumed {
        session_id: tree.header().id.clone(),
        entries: tree.entries().len() as u64,
        repaired_bytes: opened.repaired_bytes,
    };
    Ok(Kept {
        store: opened.store,
        told: Some(EventKind::SessionResumed(resumed)),
    })
}

/// Refuses a session of which nobody knows who wrote it when it is a file of the
/// repository: anybody may have committed it.
async fn refuse_tracked(file: &Path, git: &GitSettings) -> Result<(), SessionFileError> {
    let shown = file.display();
    let why = match workspace::is_tracked(file, git, &CancellationToken::new()).await {
        Ok(false) => return Ok(()),
        Ok(true) => format!(
            "{shown} is a file of the repository, so anybody may have written it; copy it out of \
             the repository to continue it"
        ),
        Err(error) => {
            format!("whether {shown} is a file of the repository cannot be known: {error}")
        }
    };
    Err(SessionFileError::Doubtful(why))
}
