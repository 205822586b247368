//! A new session from the beginning of another one.

use std::path::{Path, PathBuf};

use crate::clock;
use crate::secret::Redactor;
use crate::store::entry::{Entry, EntryId, EntryKind, Header};
use crate::store::file::SessionFile;
use crate::store::file_lines::real_path;
use crate::store::file_upgrade::{self, Source};
use crate::store::tree::{SessionTree, TreeError};
use crate::store::{Durability, Store, StoreError};

/// The file of a fork.
#[derive(Debug, Clone)]
pub struct ForkFile {
    /// Where it goes; there must be none yet.
    pub path: PathBuf,
    /// Its header; the parent is filled in.
    pub header: Header,
    /// When its bytes are forced to the disk.
    pub durability: Durability,
    /// What its lines must not show.
    pub redactor: Redactor,
}

impl ForkFile {
    /// A file beside that of the parent, named as other programs name theirs:
    /// by time and id.
    pub fn beside(parent: &Path, header: &Header) -> PathBuf {
        let stamp = header.timestamp.replace([':', '.'], "-");
        parent.with_file_name(format!("{stamp}_{}.jsonl", header.id))
    }
}

/// What a fork begins with.
struct Beginning<'a> {
    /// From the first entry to the one at which it forks.
    path: Vec<&'a Entry>,
    /// The labels of these that are set elsewhere.
    labels: Vec<Entry>,
}

impl<'a> Beginning<'a> {
    fn of(tree: &'a SessionTree, at: Option<&EntryId>) -> Result<Self, TreeError> {
        let path = match at {
            None => Vec::new(),
            Some(id) => tree
                .path_to(id)
                .ok_or_else(|| TreeError::UnknownEntry(id.clone()))?,
        };
        let mut copied = SessionTree::new(tree.header().clone());
        for entry in &path {
            copied.push((*entry).clone())?;
        }
        let mut labels = Vec::new();
        for entry in &path {
            let label = tree.label(&entry.id);
            if copied.label(&entry.id) == label {
                continue;
            }
            let set = Entry {
                id: copied.free_id(),
                parent_id: copied.leaf().map(|leaf| leaf.id.clone()),
                timestamp: clock::timestamp(),
                kind: EntryKind::Label {
                    target_id: entry.id.clone(),
                    label: label.map(str::to_owned),
                },
            };
            copied.push(set.clone())?;
            labels.push(set);
        }
        Ok(Self { path, labels })
    }

    fn tree(&self, header: Header) -> Result<SessionTree, TreeError> {
        let mut tree = SessionTree::new(header);
        for entry in self.path.iter().copied().chain(&self.labels) {
            tree.push(entry.clone())?;
        }
        Ok(tree)
    }
}

pub(super) fn in_memory(tree: &SessionTree, at: Option<&EntryId>) -> Result<Store, StoreError> {
    let header = Header::new(tree.header().cwd.clone());
    Ok(Store {
        tree: Beginning::of(tree, at)?.tree(header)?,
        file: None,
    })
}

/// Forks the session of the file `parent`, which `tree` was read from.
pub(super) fn into_file(
    tree: &SessionTree,
    parent: &Path,
    at: Option<&EntryId>,
    to: ForkFile,
) -> Result<Store, StoreError> {
    let beginning = Beginning::of(tree, at)?;
    let mut header = to.header;
    let real = real_path(parent)?;
    header.parent_session = Some(real.display().to_string());
    let tree = beginning.tree(header)?;
    let mut file = SessionFile::create(&to.path, to.durability, to.redactor)?;
    match fill(&mut file, parent, &beginning, tree.header()) {
        Ok(()) => Ok(Store {
            tree,
            file: Some(file),
        }),
        Err(error) => {
            file.discard();
            Err(error)
        }
    }
}

fn fill(
    file: &mut SessionFile,
    parent: &Path,
    beginning: &Beginning,
    header: &Header,
) -> Result<(), StoreError> {
    file.append(header)?;
    let source = Source {
        path: parent,
        wanted: beginning.path.iter().map(|entry| &entry.id).collect(),
    };
    file_upgrade::copy(source, file)?;
    for label in &beginning.labels {
        file.append(label)?;
    }
    Ok(())
}

/// The fork of a session that is open.
pub(super) fn beside(tree: &SessionTree, parent: &SessionFile) -> ForkFile {
    let header = Header::new(tree.header().cwd.clone());
    ForkFile {
        path: ForkFile::beside(parent.path(), &header),
        header,
        durability: parent.durability(),
        redactor: parent.redactor().clone(),
    }
}
