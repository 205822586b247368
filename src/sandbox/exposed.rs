//! Which protected places lie where commands may write.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::places::Places;

/// A protected place in one that is given to commands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Exposed {
    /// Where it is, or would be; no directory on the way is a link.
    pub(super) path: PathBuf,
    /// The place that is given to commands.
    pub(super) anchor: PathBuf,
}

impl Exposed {
    /// The directories on the way to it, which commands might rename, from above.
    pub(super) fn ways(&self) -> impl Iterator<Item = &Path> {
        let mut ways: Vec<&Path> = self.path.ancestors().skip(1).collect();
        ways.retain(|way| way.starts_with(&self.anchor) && *way != self.anchor);
        ways.into_iter().rev()
    }

    /// Whether a mount can keep it as it is.
    pub(super) fn can_be_bound(&self) -> bool {
        let found = self.path.symlink_metadata();
        found.is_ok_and(|found| !found.is_symlink())
    }
}

/// The protected places that commands may write. A link on the way to one is one
/// itself, and so is where that leads.
pub(super) fn exposed<'p>(
    protected: impl IntoIterator<Item = &'p PathBuf>,
    places: &Places,
) -> Vec<Exposed> {
    let real = protected.into_iter().flat_map(|path| standing_for(path));
    let exposed: BTreeSet<Exposed> = real
        .filter_map(|path| {
            let anchor = anchor(&places.write, &path)?.to_owned();
            (path != anchor).then_some(Exposed { path, anchor })
        })
        .collect();
    exposed.into_iter().collect()
}

/// The git directories of `repositories` that commands may write; one may be given to
/// them by itself.
pub(super) fn exposed_repositories(repositories: &[PathBuf], places: &Places) -> Vec<Exposed> {
    let exposed = repositories.iter().filter_map(|path| {
        let (path, anchor) = (path.clone(), anchor(&places.write, path)?.to_owned());
        Some(Exposed { path, anchor })
    });
    exposed.collect()
}

/// The place of those given to commands in which `path` is; of several, the one
/// above.
fn anchor<'p>(write: &'p [PathBuf], path: &Path) -> Option<&'p Path> {
    let around = write.iter().filter(|place| path.starts_with(place));
    around
        .min_by_key(|place| place.components().count())
        .map(PathBuf::as_path)
}

/// A path, the links on the way to it, and where they lead.
fn standing_for(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![path.to_path_buf()];
    while let Some(path) = open.pop() {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        let Some(link) = above.into_iter().find(|way| way.is_symlink()) else {
            found.push(path);
            continue;
        };
        // A real path has no links.
        let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
        open.extend(link.canonicalize().map(|real| real.join(rest)));
        found.push(link.to_owned());
    }
    found
}
