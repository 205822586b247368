//! Walking a directory tree as ripgrep does, and matching names by glob.
//!
//! `.gitignore` and `.ignore` files are respected, in a repository or not.
//! Hidden files and directories are passed over, as ripgrep does; naming one as
//! the path looks into it. `.git` is never looked into from above. Links are
//! not followed, also where a directory becomes one during the walk.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

pub(super) use crate::access::Hidden;
use crate::access::{self, Ignoring, Met, WalkOptions};
use crate::tool::work::{Failed, Work};

/// No walk looks at more entries.
const ENTRIES_MAX: usize = 1_000_000;

/// What a walk could not do.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// Entries that could not be read.
    unreadable: usize,
    /// Paths that may not be read.
    withheld: usize,
    /// Whether the walk was given up.
    given_up: bool,
}

impl Gaps {
    /// Counts one more unreadable entry.
    pub(super) fn unreadable(&mut self) {
        self.unreadable += 1;
    }

    /// What the model should know of it, if anything.
    pub(super) fn notice(&self) -> Option<String> {
        let lost = match (self.given_up, self.unreadable) {
            (true, _) => Some(format!(
                "given up after {ENTRIES_MAX} entries; name a smaller directory"
            )),
            (false, 0) => None,
            (false, 1) => Some("1 entry could not be read".to_owned()),
            (false, count) => Some(format!("{count} entries could not be read")),
        };
        match (lost, withheld(self.withheld)) {
            (Some(lost), Some(withheld)) => Some(format!("{lost}; {withheld}")),
            (lost, withheld) => lost.or(withheld),
        }
    }
}

/// What the model is told of paths that it may not see, if there are any.
pub(super) fn withheld(count: usize) -> Option<String> {
    match count {
        0 => None,
        1 => Some("1 path is not shown: permissions".to_owned()),
        count => Some(format!("{count} paths are not shown: permissions")),
    }
}

/// What a walk is to visit.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// Whether names that begin with a dot are visited.
    pub(super) hidden: Hidden,
    /// What the path below the root has to fit.
    pub(super) glob: Option<&'a Glob>,
    /// Whether only regular files are.
    pub(super) kind: Kind,
}

/// Which kinds of entries a walk visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Regular files.
    Files,
    /// Everything that has a name.
    Names,
}

impl Wanted<'_> {
    fn fits(&self, entry: &Met, below: &Path) -> bool {
        let kind = self.kind == Kind::Names || entry.kind == access::Kind::File;
        kind && self.glob.is_none_or(|glob| glob.fits(below))
    }
}

/// Whether a walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// With the next entry.
    Go,
    /// There is enough.
    Enough,
}

/// Visits what is wanted below the real path `root` and may be read, sorted by
/// path, with the path relative to `root`. A directory that may not be read is
/// not looked into.
pub(super) fn walk(
    root: &Path,
    wanted: &Wanted<'_>,
    work: &Work,
    mut visit: impl FnMut(&Met, &Path, &mut Gaps) -> Result<Next, Failed>,
) -> Result<Gaps, Failed> {
    let mut gaps = Gaps::default();
    let closed = Cell::new(0);
    let options = WalkOptions {
        hidden: wanted.hidden,
        ignoring: Ignoring::Around,
        enter: |entry: &Met| {
            if entry.path.file_name().is_some_and(|name| name == ".git") {
                return false;
            }
            let open = entry.kind != access::Kind::Directory || work.may_read(&entry.path);
            closed.set(closed.get() + usize::from(!open));
            open
        },
    };
    for (count, entry) in access::Walk::new(root, options).enumerate() {
        work.go_on()?;
        if count >= ENTRIES_MAX {
            gaps.given_up = true;
            break;
        }
        let Ok(entry) = entry else {
            gaps.unreadable();
            continue;
        };
        let Ok(below) = entry.path.strip_prefix(root).map(Path::to_path_buf) else {
            continue;
        };
        if !wanted.fits(&entry, &below) {
            continue;
        }
        if entry.kind != access::Kind::Directory && !work.may_read(&entry.path) {
            gaps.withheld += 1;
            continue;
        }
        if visit(&entry, &below, &mut gaps)? == Next::Enough {
            break;
        }
    }
    gaps.withheld += closed.get();
    Ok(gaps)
}

/// The name under which an entry is shown: as the root was asked for.
pub(super) fn asked_path(asked_root: &Path, below: &Path) -> PathBuf {
    if below.as_os_str().is_empty() {
        return asked_root.to_owned();
    }
    asked_root.join(below)
}

/// A glob over names (`*.rs`) or, with a slash in it, over paths below the root
/// (`src/**/*.rs`). A leading `!` inverts it.
#[derive(Debug)]
pub(super) struct Glob {
    matcher: GlobMatcher,
    over_paths: bool,
    inverted: bool,
    hidden: Hidden,
}

impl Glob {
    /// Understands `text`.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (inverted, rest) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let rest = rest.strip_prefix("./").unwrap_or(rest);
        if rest.is_empty() {
            return Err("the glob is empty".to_owned());
        }
        let over_paths = rest.contains('/');
        let matcher = GlobBuilder::new(rest.trim_start_matches('/').trim_end_matches('/'))
            .literal_separator(true)
            .build()
            .map_err(|error| format!("`{text}` is not a glob: {}", error.kind()))?
            .compile_matcher();
        let dotted = rest
            .split('/')
            .any(|part| part.starts_with('.') && part != "." && part != "..");
        Ok(Self {
            matcher,
            over_paths,
            inverted,
            hidden: if dotted {
                Hidden::Visited
            } else {
                Hidden::Skipped
            },
        })
    }

    /// Whether the path below the root fits.
    pub(super) fn fits(&self, below: &Path) -> bool {
        let subject = match below.file_name() {
            Some(name) if !self.over_paths => Path::new(name),
            Some(_) | None => below,
        };
        self.matcher.is_match(subject) != self.inverted
    }

    /// Whether the glob asks for hidden names by writing their dot.
    pub(super) fn hidden(&self) -> Hidden {
        self.hidden
    }
}
