//! Which globs of a command could come to mean a path that a rule denies or
//! that holds credentials, whether or not such a file is there when the command
//! is judged.
//!
//! Almost any two globs have a name in common (`README*` and `*.pem` have
//! `README.pem`), so a part with wildcards counts only when it plainly means
//! such a name: when it shares [`SHARED_MIN`] characters with the name, or
//! begins with its dot. A `*` does not match the dot of a hidden file.

use std::path::{Component, Path};

use super::lenient::folded;

/// So many characters have to be spelled by the glob and by the name.
const SHARED_MIN: usize = 2;

/// A name that globs for the usual hidden files (`.git*`) match as well.
const USUAL: &str = ".gitignore";

/// A part of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    This(char),
    /// Any character.
    One,
    /// Any number of characters.
    Many,
}

/// A name with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameGlob(Vec<Mark>);

/// A part of a pattern of paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// `**`: any number of directories.
    Deep,
    Name(NameGlob),
}

/// An absolute path with wildcards, names folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathGlob {
    names: Vec<NameGlob>,
    /// As it stands in the command.
    pub(super) text: String,
}

impl NameGlob {
    /// A name that stands for itself.
    pub(super) fn literal(name: &str) -> Self {
        Self(folded(name).chars().map(Mark::This).collect())
    }

    /// A glob, of a shell or of a rule: what is in brackets counts as any
    /// character, what is in braces as any text.
    pub(super) fn parse(glob: &str) -> Self {
        let glob = folded(glob);
        let mut rest = glob.chars();
        let mut marks = Vec::new();
        while let Some(c) = rest.next() {
            let close = match c {
                '[' => Some((']', Mark::One)),
                '{' => Some(('}', Mark::Many)),
                _ => None,
            };
            let closed = close.and_then(|(end, mark)| {
                let inside = rest.as_str();
                Some((mark, inside.get(inside.find(end)? + 1..)?.chars()))
            });
            match (c, closed) {
                (_, Some((mark, behind))) => {
                    marks.push(mark);
                    rest = behind;
                }
                ('*', None) => marks.push(Mark::Many),
                ('?', None) => marks.push(Mark::One),
                ('\\', None) => marks.extend(rest.next().map(Mark::This)),
                (c, None) => marks.push(Mark::This(c)),
            }
        }
        Self(marks)
    }

    /// Whether this part of a command plainly means a name of the pattern.
    fn means(&self, name: &Self) -> bool {
        let dot = Some(&Mark::This('.'));
        let hidden = name.0.first() == dot && self.0.first() == dot;
        let plain = |shared| self.is_literal() || hidden || shared >= SHARED_MIN;
        self.shared(name).is_some_and(plain)
    }

    /// How many characters are spelled by both in a name that both match.
    fn shared(&self, name: &Self) -> Option<usize> {
        let hidden = name.0.first() == Some(&Mark::This('.'));
        if hidden && self.0.first() == Some(&Mark::Many) {
            return None;
        }
        shared(&self.0, &name.0)
    }

    /// Whether this part of a command means a file of that name, and not the
    /// usual hidden files besides.
    pub(super) fn means_file(&self, name: &str) -> bool {
        let usual = name.starts_with(".git") && self.means(&Self::literal(USUAL));
        let says_more = self.0.iter().filter(|mark| is_this(mark)).count() >= SHARED_MIN;
        !self.is_literal() && self.means(&Self::literal(name)) && !(usual && says_more)
    }

    fn is_literal(&self) -> bool {
        self.0.iter().all(is_this)
    }
}

impl PathGlob {
    /// A glob of a command that runs in a directory.
    pub(super) fn new(glob: &str, directory: &Path) -> Self {
        let mut names = if glob.starts_with('/') {
            Vec::new()
        } else {
            literal_names(directory)
        };
        for part in glob.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(names.pop()),
                part => names.push(NameGlob::parse(part)),
            }
        }
        Self {
            names,
            text: glob.to_owned(),
        }
    }

    /// Its last part, and those before.
    pub(super) fn split_last(&self) -> Option<(&NameGlob, &[NameGlob])> {
        self.names.split_last()
    }

    /// Whether it may mean what a pattern matches, or what is below that.
    pub(super) fn meets(&self, pattern: &[Step]) -> bool {
        meets(&self.names, pattern)
    }
}

/// The names of a path, each for itself.
pub(super) fn literal_names(path: &Path) -> Vec<NameGlob> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(NameGlob::literal(&name.to_string_lossy())),
        _ => None,
    });
    names.collect()
}

/// The steps of a pattern below a directory.
pub(super) fn steps(base: &Path, below: &str) -> Vec<Step> {
    let base = literal_names(base).into_iter().map(Step::Name);
    let below = below.split('/').filter(|part| !part.is_empty());
    base.chain(below.map(|part| match part {
        "**" => Step::Deep,
        part => Step::Name(NameGlob::parse(part)),
    }))
    .collect()
}

fn meets(path: &[NameGlob], pattern: &[Step]) -> bool {
    match (path, pattern) {
        (_, [] | [Step::Deep]) => true,
        ([], _) => false,
        ([_, below @ ..], [Step::Deep, rest @ ..]) => meets(path, rest) || meets(below, pattern),
        // The last of the names has to be meant; those above only lead there.
        ([name, ..], [Step::Name(want)] | [Step::Name(want), Step::Deep]) => name.means(want),
        ([name, below @ ..], [Step::Name(want), rest @ ..]) => {
            name.shared(want).is_some() && meets(below, rest)
        }
    }
}

fn is_this(mark: &Mark) -> bool {
    matches!(mark, Mark::This(_))
}

/// How many characters two globs both spell in a name that both match; none
/// when there is no such name.
fn shared(one: &[Mark], two: &[Mark]) -> Option<usize> {
    // What follows of `one` from the place in question, for each of `two`.
    let mut after: Vec<Option<usize>> = Vec::new();
    for at in (0..=one.len()).rev() {
        let mut here: Vec<Option<usize>> = vec![None; two.len() + 1];
        for other in (0..=two.len()).rev() {
            let next = |row: &[Option<usize>], at: usize| row.get(at).copied().flatten();
            let best = match (one.get(at), two.get(other)) {
                (None, None) => Some(0),
                (Some(Mark::Many), _) => next(&after, other).max(next(&here, other + 1)),
                (_, Some(Mark::Many)) => next(&here, other + 1).max(next(&after, other)),
                (Some(Mark::This(a)), Some(Mark::This(b))) if a == b => {
                    next(&after, other + 1).map(|shared| shared + 1)
                }
                (Some(Mark::This(_)), Some(Mark::This(_))) | (None, _) | (_, None) => None,
                (Some(Mark::One), _) | (_, Some(Mark::One)) => next(&after, other + 1),
            };
            if let Some(place) = here.get_mut(other) {
                *place = best;
            }
        }
        after = here;
    }
    after.first().copied().flatten()
}
