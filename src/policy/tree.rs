//! The files that a walking command would read.

use std::fs;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;

use super::sweep::Sweep;

/// More entries than this are not looked at; the command is refused.
const ENTRIES_MAX: usize = 200_000;

/// The largest configuration of a repository that is looked into.
const CONFIG_BYTES_MAX: u64 = 64 * 1024;

/// The state of processes and devices: no walk leads there.
const STATE: &[&str] = &["/dev", "/proc", "/sys"];

/// The files that a walk meets, real; none when there are too many, or when it
/// would meet the state of processes.
pub(crate) fn files(sweep: &Sweep, directories: &[PathBuf]) -> Option<Vec<PathBuf>> {
    let mut roots: Vec<PathBuf> = Vec::new();
    for directory in directories {
        let named = sweep.roots.iter().map(|root| directory.join(root));
        let here = sweep.roots.is_empty().then(|| directory.clone());
        roots.extend(
            named
                .chain(here)
                .filter_map(|root| root.canonicalize().ok()),
        );
    }
    let meets_state = |root: &PathBuf| {
        let mut state = STATE.iter().map(Path::new);
        state.any(|state| root.starts_with(state) || state.starts_with(root))
    };
    if roots.iter().any(meets_state) {
        return None;
    }
    let mut found = Vec::new();
    let mut seen = 0;
    for root in roots.iter().filter(|root| root.is_dir()) {
        for entry in walk(root, sweep) {
            seen += 1;
            if seen > ENTRIES_MAX {
                return None;
            }
            let Ok(entry) = entry else {
                continue;
            };
            let is_file = entry.file_type().is_some_and(|kind| !kind.is_dir());
            // A link that the walk does not follow is not read.
            if !is_file || (entry.path_is_symlink() && !sweep.follows) {
                continue;
            }
            let path = match sweep.follows {
                true => entry.path().canonicalize().ok(),
                false => Some(entry.into_path()),
            };
            found.extend(path.filter(|path| !is_dull_config(path)));
        }
    }
    Some(found)
}

fn walk(root: &Path, sweep: &Sweep) -> ignore::Walk {
    let except_below = matchers(&sweep.except_below);
    let (only, except) = (matchers(&sweep.only), matchers(&sweep.except));
    let without_git = sweep.without_git;
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(!sweep.ignored)
        .hidden(!sweep.hidden)
        .follow_links(sweep.follows)
        .filter_entry(move |entry| {
            let name = Path::new(entry.file_name());
            let fits = |globs: &[GlobMatcher]| globs.iter().any(|glob| glob.is_match(name));
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                let git = without_git && name == Path::new(".git");
                return entry.depth() == 0 || !(git || fits(&except_below));
            }
            // Which of the two counts depends on their order.
            match (only.is_empty(), except.is_empty()) {
                (true, _) => !fits(&except),
                (false, true) => fits(&only),
                (false, false) => true,
            }
        });
    walk.build()
}

/// Globs of names; one that cannot be read leaves nothing out.
fn matchers(globs: &[String]) -> Vec<GlobMatcher> {
    globs
        .iter()
        .filter_map(|glob| GlobBuilder::new(glob).build().ok())
        .map(|glob| glob.compile_matcher())
        .collect()
}

/// A repository's configuration is protected as a checkout may keep its token
/// there. Every repository has one, so what is met on a walk counts only when
/// it has something of the kind.
fn is_dull_config(path: &Path) -> bool {
    const TELLING: &[&str] = &[
        "extraheader",
        "password",
        "token",
        "credential",
        "include",
        "@",
    ];
    if !path.ends_with(".git/config") {
        return false;
    }
    let small =
        fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() < CONFIG_BYTES_MAX);
    small
        && fs::read_to_string(path).is_ok_and(|text| {
            let lower = text.to_lowercase();
            !TELLING.iter().any(|telling| lower.contains(telling))
        })
}
