//! Directories that git takes for a repository without being asked.
//!
//! A directory with `HEAD`, `objects` and `refs` is a bare repository to every
//! git command in it, and its `config` names programs that git runs. So no call
//! may complete one, nor change one that is there.

use std::path::Path;

/// What makes a directory a repository to git.
const PARTS: &[&str] = &["HEAD", "objects", "refs"];

/// What git reads in a repository.
const OWN: &[&str] = &[
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "hooks",
    "index",
    "info",
    "objects",
    "packed-refs",
    "refs",
];

/// The name by which writing `path` makes or changes a bare repository.
pub(crate) fn part_of_bare(path: &Path) -> Option<&'static str> {
    path.ancestors().find_map(|below| {
        let name = below.file_name()?.to_str()?;
        let own = OWN.iter().find(|own| own.eq_ignore_ascii_case(name))?;
        let folder = below.parent()?;
        let there = |part: &str| *own == part || folder.join(part).symlink_metadata().is_ok();
        // `commondir` says that the rest is elsewhere.
        let complete = PARTS.iter().all(|part| there(part));
        (complete || (there("HEAD") && there("commondir"))).then_some(*own)
    })
}
