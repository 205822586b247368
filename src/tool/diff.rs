//! The difference that a call made to a file, for viewers.

use std::time::Duration;

use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

/// Longer diffs are cut.
const DIFF_BYTES_MAX: usize = 256 * 1024;
/// After this time the diff becomes coarser.
const PATIENCE: Duration = Duration::from_millis(500);

/// What changed.
#[derive(Debug)]
pub(super) struct Difference {
    unified: String,
    additions: usize,
    deletions: usize,
}

impl Difference {
    /// Between two contents of the file shown as `name`.
    pub(super) fn between(name: &str, old: Option<&[u8]>, new: &[u8]) -> Self {
        let before = String::from_utf8_lossy(old.unwrap_or_default());
        let after = String::from_utf8_lossy(new);
        let diff = TextDiff::configure()
            .timeout(PATIENCE)
            .diff_lines(&*before, &*after);
        let mut additions = 0;
        let mut deletions = 0;
        for change in diff.iter_all_changes() {
            match change.tag() {
                ChangeTag::Insert => additions += 1,
                ChangeTag::Delete => deletions += 1,
                ChangeTag::Equal => {}
            }
        }
        let from = old.map_or_else(|| "/dev/null".to_owned(), |_| format!("a/{name}"));
        let mut unified = diff
            .unified_diff()
            .context_radius(3)
            .header(&from, &format!("b/{name}"))
            .to_string();
        if unified.len() > DIFF_BYTES_MAX {
            unified.truncate(unified.floor_char_boundary(DIFF_BYTES_MAX));
            unified.push_str("\n[diff cut]\n");
        }
        Self {
            unified,
            additions,
            deletions,
        }
    }

    /// `+3 -1`.
    pub(super) fn counts(&self) -> String {
        format!("+{} -{}", self.additions, self.deletions)
    }

    /// For [`crate::tool::ToolOutput::details`].
    pub(super) fn details(self, name: &str) -> Value {
        json!({
            "path": name,
            "diff": self.unified,
            "additions": self.additions,
            "deletions": self.deletions,
        })
    }
}
