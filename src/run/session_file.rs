//! The conversation's file of a job: a new one, that of an earlier run, or a
//! fork of that.

use std::path::Path;

use crate::event::{EventKind, SessionForked, SessionResumed};
use crate::secret::Redactor;
use crate::store::{Durability, ForkFile, Header, Store, StoreError};
use crate::task::{Job, Resume};

/// A conversation that is ready to go on.
pub(super) struct Kept {
    pub(super) store: Store,
    /// How it came about, if it is not new.
    pub(super) told: Option<EventKind>,
}

/// Opens the conversation of `job`; a new file has the name `new`.
pub(super) fn open(job: &Job, new: &Path, redactor: Redactor) -> Result<Kept, StoreError> {
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
