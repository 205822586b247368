//! What is always refused unless an allow rule names it: credentials, the
//! repository's own machinery, what makes other programs run something, and the
//! files of the run.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::access::{HOME_CREDENTIALS, MACHINE_CREDENTIALS, SHARED_PLACES};

use super::automation::{self, Automation};
use super::lenient::{same_name, spelled};
use super::overlap::{self, NameGlob, PathGlob};
use super::repository::part_of_bare;
use super::rule::PathAccess;
use super::scope::{Located, Scope, normal, real_or_same};
use super::suggest;

/// Directories of credentials, wherever they are.
const SECRET_DIRECTORIES: &[&str] = &[".ssh", ".aws", ".gnupg", ".kube", ".azure"];

/// Files of credentials, wherever they are.
const SECRET_FILES: &[&str] = &[
    ".netrc",
    "_netrc",
    ".git-credentials",
    ".pypirc",
    ".pgpass",
    ".envrc",
    ".env",
    "id_rsa",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
];

/// What looks like a file of credentials, and is there to be filled in.
const EXAMPLES: &[&str] = &[".env.example", ".env.sample", ".env.template"];

/// Whether files of this name hold credentials, wherever they are.
pub fn is_credential_name(name: &OsStr) -> bool {
    let name = spelled(name);
    SECRET_FILES.iter().any(|secret| same_name(&name, secret))
        || (name.starts_with(".env.") && !EXAMPLES.contains(&name.as_str()))
}

/// Whether directories of this name hold credentials, wherever they are.
pub fn is_credential_directory(name: &OsStr) -> bool {
    let name = spelled(name);
    let mut secret = SECRET_DIRECTORIES.iter();
    secret.any(|secret| same_name(&name, secret))
}

/// The protections of a job.
#[derive(Debug, Clone)]
pub(crate) struct Protections {
    /// Files and directories of the run; absolute, as named and real.
    of_the_run: Vec<PathBuf>,
    homes: Vec<PathBuf>,
    scope: Scope,
    /// Files with keys of the run; absolute, as named and real.
    keys: Vec<PathBuf>,
    /// Where links lead that stand for what makes other programs run something;
    /// looked up when something is written.
    linked: OnceLock<Vec<(PathBuf, Protection)>>,
}

/// Why a path is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Protection {
    /// What the path is, in words that follow "it is".
    pub(crate) what: String,
    /// The path component that a rule has to name.
    pub(crate) component: String,
    /// Whether a command has to write it; for others it is enough to name them.
    pub(crate) by_writing: bool,
    /// What is protected below the path, when it is not the path itself.
    below: Option<&'static str>,
}

impl Protection {
    fn new(what: &str, component: &str) -> Self {
        Self {
            what: what.to_owned(),
            component: component.to_owned(),
            by_writing: false,
            below: None,
        }
    }

    /// The rule that names what is protected, `shown` as rules write it.
    pub(crate) fn rule(&self, kind: PathAccess, shown: &str) -> String {
        let glob = self.below.map_or("", |_| "/**");
        let path = self.below.map(|below| format!("{shown}/{below}"));
        suggest::path_rule(kind, path.as_deref().unwrap_or(shown), glob)
    }
}

impl From<Automation> for Protection {
    fn from(found: Automation) -> Self {
        Self {
            by_writing: true,
            ..Self::new(found.what, found.component())
        }
    }
}

impl Protections {
    pub(crate) fn new(protected: &[PathBuf], keys: &[PathBuf], scope: &Scope) -> Self {
        let both = |paths: &[PathBuf]| {
            let named = paths.iter().map(|path| normal(path));
            named.flat_map(|path| [real_or_same(&path), path]).collect()
        };
        let home = scope.home.clone();
        Self {
            linked: OnceLock::new(),
            keys: both(keys),
            scope: scope.clone(),
            of_the_run: both(protected),
            homes: home
                .into_iter()
                .flat_map(|path| [real_or_same(&path), path])
                .collect(),
        }
    }

    /// The protection of a path, as it was named or as it is.
    pub(crate) fn of(&self, kind: PathAccess, path: &Located) -> Option<Protection> {
        [&path.real, &path.lexical]
            .into_iter()
            .find_map(|path| self.of_one(kind, path))
    }

    /// The protection of what a glob plainly may come to mean.
    pub(crate) fn of_glob(&self, glob: &PathGlob) -> Option<Protection> {
        let (last, above) = glob.split_last()?;
        let secret = |names: &[&'static str], part: &NameGlob| {
            let mut names = names.iter().copied();
            names.find(|name| part.means_file(name))
        };
        let file = secret(SECRET_FILES, last).or_else(|| secret(&[".env.local"], last));
        let mut parts = above.iter().chain([last]);
        let name = file.or_else(|| parts.find_map(|part| secret(SECRET_DIRECTORIES, part)))?;
        let what = format!("a pattern for `{name}`, which holds credentials");
        Some(Protection::new(&what, name))
    }

    /// The protection of what a glob plainly may come to mean that is written.
    pub(crate) fn of_written_glob(&self, glob: &PathGlob) -> Option<Protection> {
        let base = &self.scope.workspace;
        let mut hidden = automation::all().filter(|one| one.place.starts_with('.'));
        let found = hidden.find(|one| glob.meets(&overlap::steps(base, one.place)))?;
        let what = format!("a pattern for `{}`, {}", found.place, found.what);
        Some(Protection::new(&what, found.component()))
    }

    /// The protections of what a directory brings along that is put there, moved
    /// or removed as a whole.
    pub(crate) fn below(&self, path: &Located) -> Vec<Protection> {
        let paths = [&path.real, &path.lexical].into_iter();
        let found = paths.flat_map(|path| {
            let names = names_of(self.scope.inside(path));
            automation::below(&names).collect::<Vec<_>>()
        });
        let protection = |found: Automation| Protection {
            what: format!("the place of `{}`, {}", found.place, found.what),
            below: Some(found.component()),
            ..Protection::from(found)
        };
        found.map(protection).collect()
    }

    fn of_one(&self, kind: PathAccess, path: &Path) -> Option<Protection> {
        let protection = |what: &str, component: &str| Some(Protection::new(what, component));
        let names = names_of(path);
        let last = names.last().map_or("", String::as_str);
        let mut secrets = SECRET_DIRECTORIES.iter();
        let secret_directory =
            secrets.find(|secret| names.iter().any(|name| same_name(name, secret)));
        if let Some(name) = secret_directory {
            return protection("a place of credentials", name);
        }
        if is_credential_name(OsStr::new(last)) {
            return protection("a file of credentials", last);
        }
        if self.is_secret_place(path) {
            return protection("a file of credentials", last);
        }
        if self.keys.iter().any(|key| path.starts_with(key)) {
            return protection("a file with a key of this run", last);
        }
        if is_closed(path) {
            return protection("closed to others on this machine", last);
        }
        let in_git = names.iter().position(|name| same_name(name, ".git"));
        if let Some(at) = in_git {
            let below: Vec<&str> = names.iter().skip(at + 1).map(String::as_str).collect();
            // A checkout may keep its token in the repository's configuration.
            if kind == PathAccess::Write || matches!(below.as_slice(), ["config" | "credentials"]) {
                return protection("part of the repository's own files", ".git");
            }
        }
        if kind == PathAccess::Read {
            return None;
        }
        if let Some(name) = part_of_bare(path) {
            return protection("part of a bare repository", name);
        }
        if let Some(found) = self.automation(path) {
            return Some(found);
        }
        let mine = self.of_the_run.iter().find(|mine| path.starts_with(mine))?;
        let name = mine
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase());
        protection(
            "the task file or a record of this run",
            &name.unwrap_or_default(),
        )
    }

    /// What makes other programs run something; a workspace may itself lie in such
    /// a place.
    fn automation(&self, path: &Path) -> Option<Protection> {
        let named = automation::around(&names_of(self.scope.inside(path))).map(Protection::from);
        named.or_else(|| {
            let mut linked = self.linked.get_or_init(|| linked(&self.scope)).iter();
            let found = linked.find(|(place, _)| path.starts_with(place))?;
            Some(found.1.clone())
        })
    }

    fn is_secret_place(&self, path: &Path) -> bool {
        let machine = MACHINE_CREDENTIALS
            .iter()
            .any(|secret| path.starts_with(secret));
        machine
            || self
                .homes
                .iter()
                .filter_map(|home| path.strip_prefix(home).ok())
                .any(|rest| {
                    HOME_CREDENTIALS
                        .iter()
                        .any(|secret| rest.starts_with(secret))
                })
    }
}

/// The names of a path as a file system may understand them.
fn names_of(path: &Path) -> Vec<String> {
    path.iter().map(spelled).collect()
}

/// Where the places are that make other programs run something, of which links
/// are a part.
fn linked(scope: &Scope) -> Vec<(PathBuf, Protection)> {
    let places = automation::all().filter_map(|one| {
        let named = scope.real_workspace.join(one.place);
        let real = named.canonicalize().ok().filter(|real| *real != named)?;
        let name = real.file_name()?.to_string_lossy().to_lowercase();
        let protection = Protection {
            component: name,
            ..one.into()
        };
        Some((real, protection))
    });
    places.collect()
}

/// Whether the machine lets not everybody read what is there: it may belong to the
/// user of this program, but the task does not.
fn is_closed(path: &Path) -> bool {
    let shared = SHARED_PLACES.iter().map(Path::new);
    let mut inner = shared.filter(|shared| path.starts_with(shared) && path != *shared);
    let Some(shared) = inner.next() else {
        return false;
    };
    let below = path.ancestors().take_while(|way| way != &shared);
    let mut found = below.filter_map(|way| way.metadata().ok());
    found.any(|found| {
        let wanted = if found.is_dir() { 0o5 } else { 0o4 };
        found.permissions().mode() & wanted != wanted
    })
}
