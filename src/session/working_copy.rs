//! The watched working copy: its baseline is taken before the first call that
//! could change it, so that a run which only reads pays nothing.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use crate::tool::FileLedger;
use crate::workspace::{Baseline, Changes, GitSettings, WorkspaceError};

use super::feed::Feed;

/// A working copy whose changes will be told.
#[derive(Debug)]
pub struct WorkingCopy {
    root: PathBuf,
    git: GitSettings,
    baseline: Option<Baseline>,
    attempted: bool,
    /// Why there is no baseline although a call may have changed something.
    failure: Option<String>,
}

impl WorkingCopy {
    /// Watches `root`.
    pub fn new(root: PathBuf, git: GitSettings) -> Self {
        Self {
            root,
            git,
            baseline: None,
            attempted: false,
            failure: None,
        }
    }

    /// Nothing is watched: what changes will not be told.
    pub fn unwatched() -> Self {
        Self {
            root: PathBuf::new(),
            git: GitSettings::new("", ""),
            baseline: None,
            attempted: true,
            failure: None,
        }
    }

    /// The same working copy with a baseline still to take.
    pub(super) fn anew(&self) -> Self {
        if self.root.as_os_str().is_empty() {
            Self::unwatched()
        } else {
            Self::new(self.root.clone(), self.git.clone())
        }
    }

    /// Takes the baseline, once. A failure is a warning.
    pub(super) async fn before_change(&mut self, feed: &Feed, cancel: &CancellationToken) {
        if self.attempted {
            return;
        }
        self.attempted = true;
        match Baseline::take(&self.root, &self.git, cancel).await {
            Ok(baseline) => self.baseline = Some(baseline),
            // The call that it was for does not run any more.
            Err(_) if cancel.is_cancelled() => self.attempted = false,
            Err(error) => {
                let message = format!("{error}; what this job changes cannot be told");
                self.failure = Some(message.clone());
                feed.warn("baseline_failed", message).await;
            }
        }
    }

    /// What changed since the baseline; none when nothing could have.
    ///
    /// `cancel` is not the session's own interruption: the diff is written
    /// whatever the outcome, as long as there is time for it.
    pub(super) async fn changes(
        &self,
        files: &FileLedger,
        cancel: &CancellationToken,
    ) -> Option<Result<Changes, WorkspaceError>> {
        if let Some(message) = &self.failure {
            return Some(Err(WorkspaceError::Git(message.clone())));
        }
        let baseline = self.baseline.as_ref()?;
        let images: Vec<_> = files
            .before_images()
            .into_iter()
            .map(|image| (image.path, image.content))
            .collect();
        Some(baseline.diff(&images, cancel).await)
    }
}
