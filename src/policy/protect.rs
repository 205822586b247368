//! What is always refused unless an allow rule names it: credentials, the
//! repository's own machinery, and the files of the run.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::lenient::folded;
use super::overlap::{NameGlob, PathGlob};
use super::repository::part_of_bare;
use super::rule::PathAccess;
use super::scope::{Located, normal, real_or_same};

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

/// Credentials below the home directory, and whose name says too little elsewhere.
const HOME_SECRETS: &[&str] = &[
    ".config/gcloud",
    ".config/gh",
    ".config/agent",
    ".docker/config.json",
    ".npmrc",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".m2/settings.xml",
    ".terraform.d/credentials.tfrc.json",
    ".vault-token",
];

/// Credentials of the machine.
const MACHINE_SECRETS: &[&str] = &[
    "/etc/shadow",
    "/etc/gshadow",
    "/etc/sudoers",
    "/run/secrets",
    "/var/run/secrets",
];

/// Whether files of this name hold credentials, wherever they are.
pub fn is_credential_name(name: &OsStr) -> bool {
    let name = folded(&name.to_string_lossy());
    SECRET_FILES.contains(&name.as_str())
        || (name.starts_with(".env.") && !EXAMPLES.contains(&name.as_str()))
}

/// Whether directories of this name hold credentials, wherever they are.
pub fn is_credential_directory(name: &OsStr) -> bool {
    let name = folded(&name.to_string_lossy());
    SECRET_DIRECTORIES.contains(&name.as_str())
}

/// The protections of a job.
#[derive(Debug, Clone)]
pub(crate) struct Protections {
    /// Files and directories of the run; absolute, as named and real.
    of_the_run: Vec<PathBuf>,
    homes: Vec<PathBuf>,
}

/// Why a path is protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Protection {
    /// What the path is, in words that follow "it is".
    pub(crate) what: String,
    /// The path component that a rule has to name.
    pub(crate) component: String,
}

impl Protections {
    pub(crate) fn new(protected: &[PathBuf], home: Option<&Path>) -> Self {
        let named = protected.iter().map(|path| normal(path));
        let home = home.map(normal);
        Self {
            of_the_run: named.flat_map(|path| [real_or_same(&path), path]).collect(),
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
        Some(Protection {
            what: format!("a pattern for `{name}`, which holds credentials"),
            component: name.to_owned(),
        })
    }

    fn of_one(&self, kind: PathAccess, path: &Path) -> Option<Protection> {
        let protection = |what: &str, component: &str| Protection {
            what: what.to_owned(),
            component: component.to_owned(),
        };
        let names: Vec<String> = path
            .components()
            .map(|part| folded(&part.as_os_str().to_string_lossy()))
            // Some take dots and blanks off the end, too.
            .map(|name| name.trim_end_matches(['.', ' ']).to_owned())
            .collect();
        let last = names.last().map_or("", String::as_str);
        let secret_directory = names
            .iter()
            .find(|name| SECRET_DIRECTORIES.contains(&name.as_str()));
        if let Some(name) = secret_directory {
            return Some(protection("a place of credentials", name));
        }
        if is_credential_name(OsStr::new(last)) {
            return Some(protection("a file of credentials", last));
        }
        if self.is_secret_place(path) {
            return Some(protection("a file of credentials", last));
        }
        let in_git = names.iter().position(|name| name == ".git");
        if let Some(at) = in_git {
            let below: Vec<&str> = names.iter().skip(at + 1).map(String::as_str).collect();
            // A checkout may keep its token in the repository's configuration.
            if kind == PathAccess::Write || matches!(below.as_slice(), ["config" | "credentials"]) {
                return Some(protection("part of the repository's own files", ".git"));
            }
        }
        if kind == PathAccess::Read {
            return None;
        }
        if let Some(name) = part_of_bare(path) {
            return Some(protection("part of a bare repository", name));
        }
        let mine = self.of_the_run.iter().find(|mine| path.starts_with(mine))?;
        let name = mine
            .file_name()
            .map(|name| name.to_string_lossy().to_lowercase());
        Some(protection(
            "the task file or a record of this run",
            &name.unwrap_or_default(),
        ))
    }

    fn is_secret_place(&self, path: &Path) -> bool {
        let machine = MACHINE_SECRETS
            .iter()
            .any(|secret| path.starts_with(secret));
        machine
            || self
                .homes
                .iter()
                .filter_map(|home| path.strip_prefix(home).ok())
                .any(|rest| HOME_SECRETS.iter().any(|secret| rest.starts_with(secret)))
    }
}
