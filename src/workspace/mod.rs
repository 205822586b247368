//! The working copy: how it was, what a job changed in it, and copies of it.
//!
//! A [`Baseline`] is taken before the first call that may write. In a git
//! repository it is a tree in an object store of our own, which borrows the
//! repository's objects: nothing is ever written into the user's `.git`, and
//! nothing in its configuration runs. Elsewhere it is a bounded copy of the
//! files' contents. Either way changes that were there at the start are not
//! reported as the job's. A file too large to read is compared by its metadata
//! and listed without content.

mod conversion;
mod copy;
mod git;
mod images;
mod large;
mod patch;
mod repository;
mod snapshot;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::event::{ChangedFile, Warning};

pub use copy::{COPY_BYTES_MAX, COPY_FILES_MAX, copy};

use git::{Failure, Git};
use images::Images;
use repository::Repository;
use snapshot::Snapshot;

/// Patches above this size in bytes are left out.
pub const PATCH_BYTES_MAX: usize = 64 * 1024 * 1024;

/// How git is run, and what of the workspace is none of the job's work.
#[derive(Debug, Clone)]
pub struct GitSettings {
    /// The value of `PATH` to find git in.
    pub path: OsString,
    /// An existing private directory of the run, for indexes and objects.
    pub scratch: PathBuf,
    /// Files and directories that no diff shows: the run directory, session
    /// files. Absolute, or relative to the workspace; those outside of it have
    /// no effect.
    pub exclude: Vec<PathBuf>,
    /// The time limit of one git command.
    pub timeout: Duration,
}

impl GitSettings {
    /// Settings with nothing excluded and 60 s for a command.
    pub fn new(path: impl Into<OsString>, scratch: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            scratch: scratch.into(),
            exclude: Vec::new(),
            timeout: Duration::from_secs(60),
        }
    }
}

/// What a job changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The changed files, by path.
    pub files: Vec<ChangedFile>,
    /// Applies with `git apply` in the workspace; empty when nothing changed.
    pub patch: Vec<u8>,
    /// What the patch was made from: `git` or `before-images`.
    pub source: &'static str,
    /// What the patch or the list may lack.
    pub warnings: Vec<Warning>,
    /// Why changes of the job may be missing from the list, when that is so
    /// because something failed.
    pub lost: Option<String>,
}

/// A workspace could not be looked at or copied.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The directory is not there.
    #[error("the workspace {} is not a directory", path.display())]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// There is no git repository around it.
    #[error("{} is not inside a git repository", path.display())]
    NoRepository {
        /// The directory.
        path: PathBuf,
    },
    /// Git did not do what it was asked.
    #[error("{0}")]
    Git(String),
    /// A file cannot be read or written.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// There is too much to copy.
    #[error("cannot copy {}: it has more than {limit}", path.display())]
    TooLarge {
        /// The directory.
        path: PathBuf,
        /// The limit that it passes, in words.
        limit: String,
    },
    /// The run is ending.
    #[error("cancelled")]
    Cancelled,
}

/// The working copy as it was.
#[derive(Debug)]
pub struct Baseline {
    root: PathBuf,
    exclude: Vec<PathBuf>,
    kind: Kind,
    warnings: Vec<Warning>,
    /// Why changes will be missing from a diff.
    lost: Option<String>,
}

#[derive(Debug)]
enum Kind {
    Git(Box<Snapshot>),
    Images(Images),
}

impl Baseline {
    /// Remembers the working copy below `root` as it is now. When git cannot,
    /// the files' contents are remembered instead, with a warning.
    ///
    /// # Errors
    /// When `root` is no directory or `cancel` came first.
    pub async fn take(
        root: &Path,
        git: &GitSettings,
        cancel: &CancellationToken,
    ) -> Result<Self, WorkspaceError> {
        let root = real_directory(root)?;
        let exclude = relative_to(&root, &git.exclude);
        let mut failure = None;
        if let Some(repository) = Repository::discover(&root) {
            match Snapshot::take(repository, git, &exclude, cancel).await {
                Ok(taken) => {
                    return Ok(Self {
                        root,
                        exclude,
                        warnings: Vec::from_iter(taken.warning()),
                        kind: Kind::Git(Box::new(taken)),
                        lost: None,
                    });
                }
                Err(Failure::Cancelled) => return Err(WorkspaceError::Cancelled),
                Err(Failure::NotApplicable) => {}
                Err(Failure::Broken(message)) => failure = Some(message),
            }
        }
        let images = blocking({
            let (root, exclude) = (root.clone(), exclude.clone());
            move || Images::take(&root, &exclude)
        })
        .await?;
        let (mut warnings, mut lost) = (Vec::new(), None);
        if let Some(message) = failure {
            if images.notices_all() {
                let instead = format!("{message}; the contents of files are compared instead");
                warnings.push(warning("baseline_failed", instead));
            } else {
                warnings.push(failed(&message));
                lost = Some(message);
            }
        }
        warnings.extend(images.warning());
        Ok(Self {
            root,
            exclude,
            kind: Kind::Images(images),
            warnings,
            lost,
        })
    }

    /// What may be missing from a later [`Baseline::diff`].
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What changed since. `before_images` are files that tools changed, as
    /// they were before (none: they did not exist), by absolute path; they fill
    /// in where the baseline has no content. May be called again.
    ///
    /// # Errors
    /// When the workspace is gone or `cancel` came first.
    pub async fn diff(
        &self,
        before_images: &[(PathBuf, Option<Vec<u8>>)],
        cancel: &CancellationToken,
    ) -> Result<Changes, WorkspaceError> {
        if !self.root.is_dir() {
            return Err(WorkspaceError::Missing {
                path: self.root.clone(),
            });
        }
        let (mut warnings, mut lost) = (self.warnings.clone(), self.lost.clone());
        let mut images = match &self.kind {
            Kind::Git(snapshot) => match snapshot.diff(cancel).await {
                Ok(mut changes) => {
                    warnings.append(&mut changes.warnings);
                    return Ok(Changes {
                        warnings,
                        ..changes
                    });
                }
                Err(Failure::Cancelled) => return Err(WorkspaceError::Cancelled),
                Err(Failure::NotApplicable) => {
                    let message = "git is no longer there".to_owned();
                    warnings.push(failed(&message));
                    lost = Some(message);
                    Images::nothing()
                }
                Err(Failure::Broken(message)) => {
                    warnings.push(failed(&message));
                    lost = Some(message);
                    Images::nothing()
                }
            },
            Kind::Images(images) => images.clone(),
        };
        for (path, content) in before_images {
            if let Some(path) = inside(&self.root, path) {
                images.fill(path, content.as_deref());
            }
        }
        let (root, exclude) = (self.root.clone(), self.exclude.clone());
        let mut changes = blocking(move || patch::changes(&root, &exclude, &images)).await?;
        warnings.append(&mut changes.warnings);
        Ok(Changes {
            warnings,
            lost,
            ..changes
        })
    }
}

/// Whether the working copy below `root` has no change that is not committed
/// and no untracked file that is not ignored.
///
/// # Errors
/// When `root` is outside any repository, or git fails.
pub async fn is_clean(
    root: &Path,
    git: &GitSettings,
    cancel: &CancellationToken,
) -> Result<bool, WorkspaceError> {
    let root = real_directory(root)?;
    let Some(repository) = Repository::discover(&root) else {
        return Err(WorkspaceError::NoRepository { path: root });
    };
    let exclude = relative_to(&root, &git.exclude);
    match Git::in_repository(&repository, git)
        .is_clean(&exclude, cancel)
        .await
    {
        Ok(clean) => Ok(clean),
        Err(Failure::Cancelled) => Err(WorkspaceError::Cancelled),
        Err(Failure::NotApplicable) => {
            Err(WorkspaceError::Git("there is no git command".to_owned()))
        }
        Err(Failure::Broken(message)) => Err(WorkspaceError::Git(message)),
    }
}

/// Whether the repository around `file`, if there is one, has it in its index.
///
/// # Errors
/// When git fails, or is not there.
pub async fn is_tracked(
    file: &Path,
    git: &GitSettings,
    cancel: &CancellationToken,
) -> Result<bool, WorkspaceError> {
    let (Some(parent), Some(name)) = (file.parent(), file.file_name()) else {
        return Ok(false);
    };
    let directory = real_directory(parent)?;
    let Some(repository) = Repository::discover(&directory) else {
        return Ok(false);
    };
    match Git::in_repository(&repository, git)
        .is_tracked(name, cancel)
        .await
    {
        Ok(tracked) => Ok(tracked),
        Err(Failure::Cancelled) => Err(WorkspaceError::Cancelled),
        Err(Failure::NotApplicable) => {
            Err(WorkspaceError::Git("there is no git command".to_owned()))
        }
        Err(Failure::Broken(message)) => Err(WorkspaceError::Git(message)),
    }
}

fn failed(message: &str) -> Warning {
    warning(
        "baseline_failed",
        format!("{message}; changes made by commands may be missing from the diff"),
    )
}

/// The warning that names files of which the patch has no content.
fn left_out(files: &[ChangedFile]) -> Option<Warning> {
    let message = format!(
        "the patch has no content of binary or large files: {}",
        names(files.iter().map(|file| file.path.as_str()))
    );
    (!files.is_empty()).then(|| warning("patch_incomplete", message))
}

/// The names of files for a message.
fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    const NAMED_MAX: usize = 20;
    let mut shown: Vec<&str> = names.collect();
    let more = shown.len().saturating_sub(NAMED_MAX);
    shown.truncate(NAMED_MAX);
    match more {
        0 => shown.join(", "),
        _ => format!(
            "{} and {more} more, which filesChanged lists",
            shown.join(", ")
        ),
    }
}

fn warning(code: &str, message: String) -> Warning {
    Warning {
        code: code.to_owned(),
        message,
    }
}

fn real_directory(root: &Path) -> Result<PathBuf, WorkspaceError> {
    let missing = || WorkspaceError::Missing {
        path: root.to_owned(),
    };
    let real = root.canonicalize().map_err(|_| missing())?;
    if real.is_dir() {
        Ok(real)
    } else {
        Err(missing())
    }
}

/// The excluded paths that are inside `root`, relative to it.
fn relative_to(root: &Path, exclude: &[PathBuf]) -> Vec<PathBuf> {
    exclude
        .iter()
        .filter_map(|path| inside(root, path))
        .collect()
}

/// `path` relative to the real `root`, when it is below it. The directories of
/// `path` may be links; its last part is not followed.
fn inside(root: &Path, path: &Path) -> Option<PathBuf> {
    let path = root.join(path);
    let relative = match path.strip_prefix(root) {
        Ok(relative) => relative.to_owned(),
        Err(_) => real_parent(&path)?.strip_prefix(root).ok()?.to_owned(),
    };
    let plain = relative
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    (plain && !relative.as_os_str().is_empty()).then_some(relative)
}

/// `path` with links resolved in the part of it that exists.
fn real_parent(path: &Path) -> Option<PathBuf> {
    for ancestor in path.ancestors().skip(1) {
        if let Ok(real) = ancestor.canonicalize() {
            return Some(real.join(path.strip_prefix(ancestor).ok()?));
        }
    }
    None
}

/// Runs file work beside the runtime and waits for it.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, WorkspaceError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| WorkspaceError::Cancelled)
}
