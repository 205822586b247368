//! Walks over a directory tree: no link is followed, each directory is entered
//! through the door, and the ignore files of strangers are read like any other
//! file of a stranger: regular ones only, and not without end.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::vec::IntoIter;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use super::door::Entry;
use super::folder::{Folder, Kind, Name, look};

/// As much of an ignore file counts.
const IGNORE_BYTES_MAX: u64 = 1024 * 1024;
/// More names of one directory are not read.
const NAMES_MAX: usize = 1_000_000;

/// How to walk.
pub struct WalkOptions<F> {
    /// Whether names that begin with a dot are visited.
    pub hidden: Hidden,
    /// Whose ignore files count.
    pub ignoring: Ignoring,
    /// Whether an entry is visited, and a directory entered.
    pub enter: F,
}

/// Whether names that begin with a dot are visited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// They are passed over, unless an ignore file names them with a `!`.
    Skipped,
    /// They are visited.
    Visited,
}

/// Whose `.gitignore`, `.ignore` and `.git/info/exclude` count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ignoring {
    /// Nobody's: everything is met.
    Nothing,
    /// Those of the root and below it.
    Below,
    /// Those of the directories above it, too, up to the top of a repository.
    Around,
}

/// What a walk meets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Met {
    /// The root with what is below it.
    pub path: PathBuf,
    /// What it is.
    pub kind: Kind,
}

/// A walk, sorted by name, a directory before what is in it.
pub struct Walk<F> {
    options: WalkOptions<F>,
    levels: Vec<Level>,
    /// Of the directories above the root and then of each level, where there are any.
    rules: Vec<Rules>,
    /// To be entered next.
    next: Option<PathBuf>,
}

struct Level {
    directory: PathBuf,
    names: IntoIter<Name>,
    /// How many of the rules are of directories above this one.
    rules_above: usize,
}

impl<F: FnMut(&Met) -> bool> Walk<F> {
    /// Walks below the real path `root`.
    pub fn new(root: &Path, options: WalkOptions<F>) -> Self {
        let rules = match options.ignoring {
            Ignoring::Nothing | Ignoring::Below => Vec::new(),
            Ignoring::Around => rules_above(root),
        };
        Self {
            options,
            levels: Vec::new(),
            rules,
            next: Some(root.to_owned()),
        }
    }

    fn enter(&mut self, directory: PathBuf) -> io::Result<()> {
        let folder = Folder::open(&directory)?;
        let mut names = Vec::new();
        let mut failed = None;
        for name in folder.names()?.take(NAMES_MAX) {
            match name {
                Ok(name) => names.push(name),
                Err(error) => failed = Some(error),
            }
        }
        names.sort_unstable_by(|one, two| one.name.cmp(&two.name));
        let rules_above = self.rules.len();
        if self.options.ignoring != Ignoring::Nothing {
            self.rules.extend(Rules::of(&directory, &folder, &names));
        }
        self.levels.push(Level {
            directory,
            names: names.into_iter(),
            rules_above,
        });
        failed.map_or(Ok(()), Err)
    }

    fn is_passed_over(&self, met: &Met, name: &OsStr) -> bool {
        match self.verdict(met) {
            Some(ignored) => ignored,
            None => {
                let hidden = name.as_encoded_bytes().starts_with(b".");
                hidden && self.options.hidden == Hidden::Skipped
            }
        }
    }

    /// Whether the nearest rule about it ignores it. `.ignore` counts more than
    /// what git reads, and git reads nothing above a repository's top.
    fn verdict(&self, met: &Met) -> Option<bool> {
        let (mut own, mut git, mut excluded) = (None, None, None);
        let mut beyond_git = false;
        for rules in self.rules.iter().rev() {
            own = own.or_else(|| says(&rules.own, met));
            if !beyond_git {
                git = git.or_else(|| says(&rules.git, met));
                excluded = excluded.or_else(|| says(&rules.excluded, met));
            }
            beyond_git |= rules.is_top;
        }
        own.or(git).or(excluded)
    }
}

impl<F: FnMut(&Met) -> bool> Iterator for Walk<F> {
    type Item = io::Result<Met>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(directory) = self.next.take()
            && let Err(error) = self.enter(directory)
        {
            return Some(Err(error));
        }
        loop {
            let level = self.levels.last_mut()?;
            let Some(Name { name, kind }) = level.names.next() else {
                self.rules.truncate(level.rules_above);
                self.levels.pop();
                continue;
            };
            let path = level.directory.join(&name);
            let met = Met { path, kind };
            if self.is_passed_over(&met, &name) || !(self.options.enter)(&met) {
                continue;
            }
            if kind == Kind::Directory {
                self.next = Some(met.path.clone());
            }
            return Some(Ok(met));
        }
    }
}

/// What the ignore files of one directory say.
struct Rules {
    /// `.ignore`.
    own: Gitignore,
    /// `.gitignore`.
    git: Gitignore,
    /// `.git/info/exclude`.
    excluded: Gitignore,
    /// Whether it is the top of a repository.
    is_top: bool,
}

impl Rules {
    /// None when a directory has nothing to say.
    fn of(directory: &Path, folder: &Folder, names: &[Name]) -> Option<Self> {
        let kind = |name: &str| {
            let at = names.binary_search_by(|known| known.name.as_os_str().cmp(name.as_ref()));
            at.ok().and_then(|at| names.get(at)).map(|name| name.kind)
        };
        let read = |name: &str| match kind(name) {
            Some(Kind::File) => parse(directory, folder.look(name.as_ref())),
            _ => Gitignore::empty(),
        };
        let rules = Self {
            own: read(".ignore"),
            git: read(".gitignore"),
            excluded: match kind(".git") {
                Some(Kind::Directory) => excluded(directory),
                _ => Gitignore::empty(),
            },
            is_top: kind(".git").is_some(),
        };
        let silent = [&rules.own, &rules.git, &rules.excluded];
        let silent = silent.iter().all(|said| said.is_empty());
        (rules.is_top || !silent).then_some(rules)
    }
}

/// The rules of the directories above `root`, the farthest first.
fn rules_above(root: &Path) -> Vec<Rules> {
    let mut found = Vec::new();
    if root.join(".git").symlink_metadata().is_ok() {
        return found;
    }
    for directory in root.ancestors().skip(1) {
        let read = |name: &str| parse(directory, look(&directory.join(name)));
        let rules = Rules {
            own: read(".ignore"),
            git: read(".gitignore"),
            excluded: excluded(directory),
            is_top: directory.join(".git").symlink_metadata().is_ok(),
        };
        let is_top = rules.is_top;
        found.push(rules);
        if is_top {
            break;
        }
    }
    found.reverse();
    found
}

fn excluded(directory: &Path) -> Gitignore {
    parse(directory, look(&directory.join(".git/info/exclude")))
}

/// A line that cannot be read says nothing, as git has it.
fn parse(directory: &Path, entry: io::Result<Entry>) -> Gitignore {
    let Ok(Entry::File(opened)) = entry else {
        return Gitignore::empty();
    };
    let mut bytes = Vec::new();
    let read = opened.file.take(IGNORE_BYTES_MAX).read_to_end(&mut bytes);
    if read.is_err() {
        return Gitignore::empty();
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let mut builder = GitignoreBuilder::new(directory);
    for line in text.lines() {
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

fn says(rules: &Gitignore, met: &Met) -> Option<bool> {
    match rules.matched(&met.path, met.kind == Kind::Directory) {
        Match::None => None,
        Match::Ignore(_) => Some(true),
        Match::Whitelist(_) => Some(false),
    }
}
