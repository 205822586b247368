//! The run directory: where everything that a run leaves behind is.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io::{BufReader, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::access::{self, Entry, Folder, Kind};
use crate::secret::Redactor;

/// The directory of one run. Its files are for its owner only, because they
/// hold what the run saw.
#[derive(Debug, Clone)]
pub struct RunDirectory {
    path: PathBuf,
}

/// Where the files of one job go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobPaths {
    /// The session file.
    pub session: PathBuf,
    /// The patch.
    pub patch: PathBuf,
    /// Tool output above the limits.
    pub tool_output: PathBuf,
}

/// The run directory could not be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct DirectoryError {
    action: &'static str,
    path: PathBuf,
    source: std::io::Error,
}

impl DirectoryError {
    /// Whether another directory has to be named, because there are files in
    /// this one.
    pub fn is_misuse(&self) -> bool {
        self.source.kind() == std::io::ErrorKind::DirectoryNotEmpty
    }
}

impl RunDirectory {
    /// Creates `<parent>/<run_id>`, out of version control's sight.
    ///
    /// # Errors
    /// When the directory cannot be created or written, or when on the way to
    /// it from `cwd` is a symbolic link: what is there may be the work of a
    /// stranger, and nobody named the place that it leads to.
    pub fn create(parent: &Path, run_id: &str, cwd: &Path) -> Result<Self, DirectoryError> {
        refuse_links(parent, cwd)?;
        let fresh = !parent.exists();
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(failed("create", parent))?;
        if fresh {
            let ignore = parent.canonicalize().map(|real| real.join(".gitignore"));
            write_private(&ignore.map_err(failed("resolve", parent))?, b"*\n")?;
        }
        Self::at(&parent.join(run_id))
    }

    /// Uses `path` itself, which is created when it does not exist.
    ///
    /// # Errors
    /// When it cannot be created, or holds another run or other files already.
    pub fn at(path: &Path) -> Result<Self, DirectoryError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(failed("create", path))?;
        if path.join("events.jsonl").exists() {
            let taken = std::io::Error::other("it holds another run; name a new directory");
            return Err(failed("use", path)(taken));
        }
        // What is there would be taken for what the run left, or be replaced.
        let mut entries = fs::read_dir(path).map_err(failed("read", path))?;
        if entries.next().is_some() {
            let taken = std::io::ErrorKind::DirectoryNotEmpty;
            let taken = std::io::Error::new(taken, "it is not empty; name a new directory");
            return Err(failed("use", path)(taken));
        }
        let path = path.canonicalize().map_err(failed("resolve", path))?;
        Ok(Self { path })
    }

    /// The directory: absolute and real.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The event log.
    pub fn events(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// The result document.
    pub fn result(&self) -> PathBuf {
        self.path.join("result.json")
    }

    /// The summary for people.
    pub fn summary(&self) -> PathBuf {
        self.path.join("summary.md")
    }

    /// What the run was asked to do.
    pub fn run_document(&self) -> PathBuf {
        self.path.join("run.json")
    }

    /// The paths of a job: at the top when it is the only one, else in a
    /// folder of its own.
    pub fn job(&self, name: &str, single: bool) -> JobPaths {
        let root = if single {
            self.path.clone()
        } else {
            self.path.join("jobs").join(name)
        };
        JobPaths {
            session: root.join("session.jsonl"),
            patch: root.join("change.patch"),
            tool_output: root.join("tool-output"),
        }
    }

    /// A path of this directory as reports name it.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.path)
            .unwrap_or(path)
            .display()
            .to_string()
    }

    /// Writes `run.json`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write_run_document(&self, document: &Value) -> Result<(), DirectoryError> {
        let mut text = format!("{document:#}");
        text.push('\n');
        write_private(&self.run_document(), text.as_bytes())
    }

    /// Writes a file of a job. A run directory that is gone stays gone: its
    /// other files would be missing.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), DirectoryError> {
        self.path.metadata().map_err(failed("write", path))?;
        write_private(path, bytes)
    }
}

fn refuse_links(parent: &Path, cwd: &Path) -> Result<(), DirectoryError> {
    let Ok(below) = parent.strip_prefix(cwd) else {
        return Ok(());
    };
    let mut path = cwd.to_path_buf();
    for part in below {
        path.push(part);
        if path.is_symlink() {
            let link = std::io::Error::other("it is a symbolic link; name one with --run-dir");
            return Err(failed("keep the run below", &path)(link));
        }
    }
    Ok(())
}

/// Writes a new file for its owner only, with the folders above it.
fn write_private(path: &Path, bytes: &[u8]) -> Result<(), DirectoryError> {
    let write = || access::create_private(path)?.write_all(bytes);
    write().map_err(failed("write", path))
}

/// Takes the secrets out of the outputs of commands below `folder`, which were
/// written as they came.
///
/// # Errors
/// When a file cannot be replaced.
pub(super) fn mask_files(folder: &Path, redactor: &Redactor) -> Result<(), DirectoryError> {
    let held = match Folder::open(folder) {
        Ok(held) => held,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(failed("read", folder)(source)),
    };
    for entry in held.names().map_err(failed("read", folder))? {
        let entry = entry.map_err(failed("read", folder))?;
        if entry.kind == Kind::File {
            let path = folder.join(&entry.name);
            mask_file(&held, &entry.name, redactor).map_err(failed("redact", &path))?;
        }
    }
    Ok(())
}

fn mask_file(folder: &Folder, name: &OsStr, redactor: &Redactor) -> std::io::Result<()> {
    const PIECE_BYTES: u64 = 64 * 1024;
    let Entry::File(opened) = folder.look(name)? else {
        return Ok(());
    };
    let mut input = BufReader::new(opened.file);
    let mut output = folder.draft(0o600)?;
    let mut stream = redactor.stream();
    let (mut piece, mut tail) = (Vec::new(), Vec::new());
    loop {
        piece.clear();
        piece.append(&mut tail);
        if input.by_ref().take(PIECE_BYTES).read_to_end(&mut piece)? == 0 {
            break;
        }
        // A character may be cut by the end of the piece.
        let whole = match std::str::from_utf8(&piece) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => piece.len(),
        };
        tail = piece.split_off(whole);
        output
            .file
            .write_all(stream.push(&String::from_utf8_lossy(&piece)).as_bytes())?;
    }
    output
        .file
        .write_all(stream.push(&String::from_utf8_lossy(&piece)).as_bytes())?;
    output.file.write_all(stream.finish().as_bytes())?;
    output.replace(name)
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> DirectoryError {
    let path = path.to_path_buf();
    move |source| DirectoryError {
        action,
        path,
        source,
    }
}
