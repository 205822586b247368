//! The files that a walking command would read.

use std::io::Read;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;

use crate::access::{self, Entry, Hidden, Ignoring, Kind, Met, Walk, WalkOptions};

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
    if sweep.directories_only {
        return Some(Vec::new());
    }
    let mut found = Vec::new();
    let mut seen = 0;
    for root in roots.iter().filter(|root| root.is_dir()) {
        let met: Box<dyn Iterator<Item = Option<PathBuf>>> = match sweep.follows {
            true => Box::new(followed(root, sweep)),
            false => Box::new(unfollowed(root, sweep)),
        };
        for path in met {
            seen += 1;
            if seen > ENTRIES_MAX {
                return None;
            }
            let near = |path: &PathBuf| {
                let below = path
                    .strip_prefix(root)
                    .map(|below| below.components().count());
                below.is_ok_and(|below| sweep.depth.is_none_or(|depth| below <= depth))
            };
            let met = path.filter(|path| sweep.depth.is_none() || near(path));
            let real = match sweep.links {
                true => met.and_then(|path| path.canonicalize().ok().filter(|real| !real.is_dir())),
                false => met,
            };
            found.extend(real.filter(|path| !is_dull_config(path)));
        }
    }
    Some(found)
}

/// What a walk that follows links meets: the real paths of files, and none for
/// the rest. Ignore files are not read, so it may meet more than the command.
fn followed(root: &Path, sweep: &Sweep) -> impl Iterator<Item = Option<PathBuf>> {
    let entered = Entered::new(sweep);
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false)
        .hidden(!sweep.hidden)
        .follow_links(true)
        .filter_entry(move |entry| {
            let directory = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.depth() == 0 || entered.enters(entry.path(), directory)
        });
    walk.build().map(|entry| {
        let entry = entry.ok()?;
        let is_file = entry.file_type().is_some_and(|kind| !kind.is_dir());
        is_file.then(|| entry.path().canonicalize().ok()).flatten()
    })
}

/// The same for one that does not: a link is not read.
fn unfollowed(root: &Path, sweep: &Sweep) -> impl Iterator<Item = Option<PathBuf>> {
    let entered = Entered::new(sweep);
    let options = WalkOptions {
        hidden: if sweep.hidden {
            Hidden::Visited
        } else {
            Hidden::Skipped
        },
        ignoring: if sweep.ignored {
            Ignoring::Nothing
        } else {
            Ignoring::Around
        },
        enter: move |entry: &Met| entered.enters(&entry.path, entry.kind == Kind::Directory),
    };
    let links = sweep.links;
    Walk::new(root, options).map(move |entry| {
        let entry = entry.ok()?;
        let counts = match entry.kind {
            Kind::File | Kind::Special => true,
            Kind::Link => links,
            Kind::Directory => false,
        };
        counts.then_some(entry.path)
    })
}

/// What a walk looks at, by its name.
struct Entered {
    except_below: Vec<GlobMatcher>,
    only: Vec<GlobMatcher>,
    except: Vec<GlobMatcher>,
    without_git: bool,
}

impl Entered {
    fn new(sweep: &Sweep) -> Self {
        Self {
            except_below: matchers(&sweep.except_below),
            only: matchers(&sweep.only),
            except: matchers(&sweep.except),
            without_git: sweep.without_git,
        }
    }

    fn enters(&self, path: &Path, directory: bool) -> bool {
        let name = path.file_name().map_or(path, Path::new);
        let fits = |globs: &[GlobMatcher]| globs.iter().any(|glob| glob.is_match(name));
        if directory {
            let git = self.without_git && name == Path::new(".git");
            return !(git || fits(&self.except_below));
        }
        // Which of the two counts depends on their order.
        match (self.only.is_empty(), self.except.is_empty()) {
            (true, _) => !fits(&self.except),
            (false, true) => fits(&self.only),
            (false, false) => true,
        }
    }
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
    let Ok(Entry::File(opened)) = access::look(path) else {
        return false;
    };
    let mut text = String::new();
    let read = opened.file.take(CONFIG_BYTES_MAX).read_to_string(&mut text);
    let lower = text.to_lowercase();
    read.is_ok()
        && opened.metadata.len() < CONFIG_BYTES_MAX
        && !TELLING.iter().any(|telling| lower.contains(telling))
}
