//! Path patterns of rules: where they are rooted and what they match.

use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobMatcher};

use super::lenient::{folded, folded_path};
use super::overlap::{self, PathGlob};
use super::scope::{Scope, normal, real_or_same};

/// Characters that make a path component a glob.
const META: &[char] = &['*', '?', '[', ']', '{', '}', '\\'];

/// A path pattern as written in a rule, checked but not yet rooted.
#[derive(Debug, Clone)]
pub(crate) struct PathPattern {
    root: Root,
    /// The leading components without wildcards.
    base: PathBuf,
    /// The rest; empty when the whole pattern is literal.
    globs: Vec<GlobMatcher>,
    /// The same for names as lenient file systems see them.
    lenient_globs: Vec<GlobMatcher>,
    /// A literal pattern that ends with `/` covers what is below.
    covers_below: bool,
    /// Whether the last glob is `**`, which covers the base itself too.
    covers_base: bool,
    /// A glob of names alone, as `*.pem`: to a deny rule it means them anywhere.
    anywhere: bool,
    /// The globs as they were written, `/` between them.
    below: String,
    /// Every component, in lower case, to know what the rule names.
    components: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    Workspace,
    Home,
    Absolute,
}

/// A path pattern of a job: it knows its directories.
#[derive(Debug, Clone)]
pub(crate) struct BoundPattern {
    pattern: PathPattern,
    /// Where an allow rule applies.
    bases: Vec<PathBuf>,
    /// Where a deny rule applies besides: links in the base followed.
    linked_bases: Vec<PathBuf>,
}

impl PathPattern {
    /// Reads a glob.
    ///
    /// # Errors
    /// What is wrong with it, in words that follow the rule.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (root, rest) = if let Some(rest) = text.strip_prefix("~/") {
            (Root::Home, rest)
        } else if text == "~" {
            (Root::Home, "")
        } else if text.starts_with('~') {
            return Err("`~user` is not supported: write `~/x` or an absolute path".to_owned());
        } else if text.starts_with('/') {
            (Root::Absolute, text)
        } else {
            (Root::Workspace, text)
        };
        let parts: Vec<&str> = rest
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        if parts.contains(&"..") {
            return Err("`..` is not allowed in a path pattern: write an absolute path".to_owned());
        }
        let literal = parts.iter().take_while(|part| !part.contains(META)).count();
        let (base, globs) = parts.split_at(literal);
        let mut texts = Vec::new();
        if !globs.is_empty() {
            texts.push(globs.join("/"));
        }
        // `src/*/**` covers the directories `src/x` themselves.
        if let [above @ .., "**"] = globs
            && !above.is_empty()
        {
            texts.push(above.join("/"));
        }
        let compiled = |fold: fn(&str) -> String| {
            let texts = texts.iter().map(|text| compile(&fold(text)));
            texts.collect::<Result<Vec<_>, _>>()
        };
        let matchers = compiled(str::to_owned)?;
        let of_names = root == Root::Workspace && !text.contains('/') && globs != ["**"];
        Ok(Self {
            root,
            anywhere: of_names,
            base: base.iter().collect(),
            below: globs.join("/"),
            covers_below: globs.is_empty() && text.ends_with('/'),
            covers_base: globs == ["**"],
            globs: matchers,
            lenient_globs: compiled(folded)?,
            components: parts.iter().map(|part| part.to_lowercase()).collect(),
        })
    }

    pub(crate) fn bind(self, scope: &Scope) -> BoundPattern {
        let mut bases = Vec::new();
        let mut linked_bases = Vec::new();
        match self.root {
            Root::Workspace => {
                // The base is not resolved for allow rules: the working copy
                // may hold links, and `src` must not come to mean `/etc`.
                bases.push(scope.real_workspace.join(&self.base));
                linked_bases.push(scope.workspace.join(&self.base));
            }
            Root::Home => bases.extend(scope.home.as_ref().map(|home| home.join(&self.base))),
            Root::Absolute => bases.push(Path::new("/").join(&self.base)),
        }
        let bases: Vec<PathBuf> = bases.iter().map(|base| normal(base)).collect();
        linked_bases.extend(bases.iter().map(|base| real_or_same(base)));
        let outside: Vec<PathBuf> = bases
            .iter()
            .filter(|base| !base.starts_with(&scope.real_workspace))
            .filter(|base| !base.starts_with(&scope.workspace))
            .map(|base| real_or_same(base))
            .collect();
        let named_workspace = bases
            .iter()
            .filter_map(|base| base.strip_prefix(&scope.workspace).ok())
            .map(|rest| scope.real_workspace.join(rest))
            .collect::<Vec<_>>();
        BoundPattern {
            bases: bases
                .into_iter()
                .chain(outside)
                .chain(named_workspace)
                .collect(),
            linked_bases,
            pattern: self,
        }
    }
}

fn compile(glob: &str) -> Result<GlobMatcher, String> {
    let built: Result<Glob, _> = GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .build();
    built
        .map(|glob| glob.compile_matcher())
        .map_err(|error| format!("`{glob}` is no glob: {}", error.kind()))
}

impl BoundPattern {
    /// Whether the pattern matches this very path.
    pub(crate) fn allows(&self, real: &Path) -> bool {
        self.bases
            .iter()
            .filter_map(|base| real.strip_prefix(base).ok())
            .any(|rest| self.matches_any(rest, &self.pattern.globs) || self.pattern.covers_below)
    }

    /// Whether the pattern matches the path or a directory above it, or would
    /// on a file system that is lenient about names.
    pub(crate) fn denies(&self, path: &Path) -> bool {
        let bases = || self.bases.iter().chain(&self.linked_bases);
        let covers = |rest: &Path, globs: &[GlobMatcher]| {
            rest.ancestors()
                .any(|above| self.matches_any(above, globs) || self.names_anywhere(above, globs))
        };
        let exact = |base: &PathBuf| {
            let rest = path.strip_prefix(base);
            rest.is_ok_and(|rest| covers(rest, &self.pattern.globs))
        };
        if bases().any(exact) {
            return true;
        }
        let path = folded_path(path);
        bases().any(|base| {
            let rest = path.strip_prefix(folded_path(base));
            rest.is_ok_and(|rest| covers(rest, &self.pattern.lenient_globs))
        })
    }

    /// Whether the pattern may mean something in a directory.
    pub(crate) fn reaches_into(&self, directory: &Path) -> bool {
        let mut bases = self.bases.iter().chain(&self.linked_bases);
        bases.any(|base| base.starts_with(directory) || directory.starts_with(base))
    }

    /// What the pattern names when it is not a glob, or means all below one place.
    pub(crate) fn places(&self) -> Option<Vec<PathBuf>> {
        let literal = self.pattern.globs.is_empty() || self.pattern.covers_base;
        literal.then(|| {
            let mut places: Vec<PathBuf> = self
                .bases
                .iter()
                .chain(&self.linked_bases)
                .cloned()
                .collect();
            places.sort();
            places.dedup();
            places
        })
    }

    /// Whether a glob plainly may come to mean what the pattern denies.
    pub(crate) fn could_be_met(&self, glob: &PathGlob) -> bool {
        let below = match self.pattern.anywhere {
            true => format!("**/{}", self.pattern.below),
            false => self.pattern.below.clone(),
        };
        let mut bases = self.bases.iter().chain(&self.linked_bases);
        bases.any(|base| glob.meets(&overlap::steps(base, &below)))
    }

    fn names_anywhere(&self, path: &Path, globs: &[GlobMatcher]) -> bool {
        let name = path.file_name().map(Path::new);
        let glob = globs.first().filter(|_| self.pattern.anywhere);
        name.is_some_and(|name| glob.is_some_and(|glob| glob.is_match(name)))
    }

    /// Whether the literal begin of the pattern lies below a directory.
    pub(crate) fn is_below(&self, directory: &Path) -> bool {
        let mut bases = self.bases.iter().chain(&self.linked_bases);
        bases.any(|base| base.starts_with(directory) && base != directory)
    }

    /// Whether the pattern is about files of the job's directories.
    pub(crate) fn is_inside(&self, scope: &Scope) -> bool {
        self.bases.iter().any(|base| scope.contains(base))
    }

    fn matches_any(&self, rest: &Path, globs: &[GlobMatcher]) -> bool {
        if rest.as_os_str().is_empty() {
            return globs.is_empty() || self.pattern.covers_base;
        }
        globs.iter().any(|glob| glob.is_match(rest))
    }

    /// Whether the pattern has this component in so many words.
    pub(crate) fn names(&self, component: &str) -> bool {
        let component = component.to_lowercase();
        self.pattern.components.contains(&component)
    }
}
