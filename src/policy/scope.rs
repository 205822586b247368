//! Where a path really leads: symbolic links resolved, magic links refused,
//! and whether that is inside the directories of the job.
//!
//! This looks at the disk, and only at names: a decision about a path that
//! ignores links decides nothing.

use std::io;
use std::path::{Component, Path, PathBuf};

use super::shell::UNKNOWN;

/// The directories of a job.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    /// The workspace as it was named.
    pub(crate) workspace: PathBuf,
    /// The workspace, real.
    pub(crate) real_workspace: PathBuf,
    /// What `~` means.
    pub(crate) home: Option<PathBuf>,
    /// The workspace and the additional directories, real.
    roots: Vec<PathBuf>,
}

/// A path as it was given and as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Located {
    /// Absolute, without `.` and `..`, links as they are.
    pub(crate) lexical: PathBuf,
    /// Absolute, links resolved.
    pub(crate) real: PathBuf,
}

/// Where a path leads cannot be said, or must not be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unresolved {
    /// Not absolute, or with `..`.
    #[error("the path is not absolute and normal")]
    NotNormal,
    /// The state of a process, or a link into one.
    #[error("it leads into the state of a process")]
    Magic,
    /// A link to something that does not exist.
    #[error("it is a symbolic link to something that does not exist")]
    Dangling,
    /// Links that lead in a circle, or a directory that cannot be searched.
    #[error("it cannot be resolved ({0})")]
    Unreadable(String),
}

impl Scope {
    pub(crate) fn new(workspace: &Path, home: Option<&Path>, additional: &[PathBuf]) -> Self {
        let workspace = normal(workspace);
        let real_workspace = real_or_same(&workspace);
        let mut roots = vec![real_workspace.clone()];
        // A relative directory is meant from the workspace.
        roots.extend(additional.iter().map(|path| {
            let path = match (path.strip_prefix("~"), home) {
                (Ok(rest), Some(home)) => home.join(rest),
                _ => path.clone(),
            };
            real_or_same(&normal(&workspace.join(path)))
        }));
        Self {
            workspace,
            real_workspace,
            home: home.map(normal),
            roots,
        }
    }

    /// Directories that need not exist, to try patterns on.
    pub(crate) fn unresolved(workspace: &Path, home: &Path) -> Self {
        Self {
            workspace: workspace.to_owned(),
            real_workspace: workspace.to_owned(),
            home: Some(home.to_owned()),
            roots: vec![workspace.to_owned()],
        }
    }

    /// Whether a real path is in the workspace or an additional directory.
    pub(crate) fn contains(&self, real: &Path) -> bool {
        self.roots.iter().any(|root| real.starts_with(root))
    }

    /// The part of a path below the innermost of the directories that it is in; all
    /// of it when it is in none.
    pub(crate) fn inside<'p>(&self, path: &'p Path) -> &'p Path {
        let roots = self.roots.iter().chain([&self.workspace]);
        let below = roots.filter_map(|root| path.strip_prefix(root).ok());
        let shortest = below.min_by_key(|rest| rest.components().count());
        shortest.unwrap_or(path)
    }

    /// Resolves an absolute path for its nearest existing ancestor.
    ///
    /// # Errors
    /// When it leads into a process, to nothing, or cannot be known.
    pub(crate) fn locate(&self, path: &Path) -> Result<Located, Unresolved> {
        let upward = path.components().any(|part| part == Component::ParentDir);
        if !path.is_absolute() || upward {
            return Err(Unresolved::NotNormal);
        }
        if is_magic(path) {
            return Err(Unresolved::Magic);
        }
        let lexical = normal(path);
        let real = resolve(&lexical)?;
        if is_magic(&real) {
            return Err(Unresolved::Magic);
        }
        Ok(Located { lexical, real })
    }

    /// The path as people and rules write it: relative inside the workspace.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let inside = path
            .strip_prefix(&self.real_workspace)
            .or_else(|_| path.strip_prefix(&self.workspace));
        match inside {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }
}

/// Takes `.` and `..` out of a path by its text alone.
pub(crate) fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            Component::Normal(_) | Component::RootDir | Component::Prefix(_) => out.push(part),
        }
    }
    out
}

/// The real path, or the path itself where nothing exists.
pub(crate) fn real_or_same(path: &Path) -> PathBuf {
    resolve(path).unwrap_or_else(|_| path.to_owned())
}

fn resolve(path: &Path) -> Result<PathBuf, Unresolved> {
    for existing in path.ancestors() {
        match existing.symlink_metadata() {
            Ok(metadata) => {
                let missing = path.strip_prefix(existing).unwrap_or(Path::new(""));
                return match existing.canonicalize() {
                    Ok(real) if missing.as_os_str().is_empty() => Ok(real),
                    Ok(real) => Ok(real.join(missing)),
                    Err(e) if e.kind() == io::ErrorKind::NotFound && metadata.is_symlink() => {
                        Err(Unresolved::Dangling)
                    }
                    Err(e) => Err(Unresolved::Unreadable(e.to_string())),
                };
            }
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) => {}
            Err(e) => return Err(Unresolved::Unreadable(e.to_string())),
        }
    }
    Err(Unresolved::NotNormal)
}

/// `/proc/self`, `/proc/<pid>` and what is below, `/dev/fd` and its names.
fn is_magic(path: &Path) -> bool {
    let mut parts = path
        .components()
        .skip(1)
        .map(|part| part.as_os_str().to_string_lossy());
    match (parts.next().as_deref(), parts.next().as_deref()) {
        (Some("proc"), Some(name)) => {
            matches!(
                name,
                "self" | "thread-self" | "kcore" | "sys" | "sysrq-trigger"
            ) || name.bytes().all(|byte| byte.is_ascii_digit())
                || name.contains(UNKNOWN)
        }
        (Some("dev"), Some(name)) => matches!(name, "fd" | "stdin" | "stdout" | "stderr"),
        _ => false,
    }
}
