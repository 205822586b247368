//! A copy of the workspace for a job that must not touch the original.

use std::ffi::OsStr;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::access::{Entry, Folder, Kind};
use crate::workspace::WorkspaceError;

/// The most files, links and directories that are copied.
pub const COPY_FILES_MAX: u64 = 200_000;
/// The most bytes that are copied.
pub const COPY_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;

/// What earlier runs left, which belongs to the original.
const RUNS: &str = ".agent/runs";

/// Copies the directory `source` to the new directory `workspace` below
/// `scratch` and returns its path.
///
/// Regular files keep their mode and time, links stay links wherever they
/// point, sockets, pipes and devices are left out, and so is `.agent/runs`. The
/// `.git` directory comes along, so that the copy has its history; the `.git`
/// file of a linked worktree does not, because the copy would share the
/// original's index.
///
/// Blocks; a caller on a runtime moves it to a thread for blocking work.
///
/// # Errors
/// When a file cannot be copied, or there are more than [`COPY_FILES_MAX`]
/// files or [`COPY_BYTES_MAX`] bytes. What was copied is left for the owner of
/// `scratch` to remove.
pub fn copy(source: &Path, scratch: &Path) -> Result<PathBuf, WorkspaceError> {
    if !source.is_dir() {
        return Err(WorkspaceError::Missing {
            path: source.to_owned(),
        });
    }
    let source = source.canonicalize().map_err(failed("read", source))?;
    let target = scratch.join("workspace");
    DirBuilder::new()
        .mode(0o700)
        .create(&target)
        .map_err(failed("create", &target))?;
    let real_target = target.canonicalize().map_err(failed("read", &target))?;
    let mut copying = Copying {
        source: &source,
        target: real_target,
        files: 0,
        bytes: 0,
    };
    // A list instead of recursion: a deep tree must not exhaust the stack.
    let mut directories = vec![PathBuf::new()];
    while let Some(directory) = directories.pop() {
        copying.directory(&directory, &mut directories)?;
    }
    Ok(target)
}

struct Copying<'a> {
    source: &'a Path,
    target: PathBuf,
    files: u64,
    bytes: u64,
}

impl Copying<'_> {
    fn directory(
        &mut self,
        directory: &Path,
        directories: &mut Vec<PathBuf>,
    ) -> Result<(), WorkspaceError> {
        let from = self.source.join(directory);
        let folder = Folder::open(&from).map_err(failed("read", &from))?;
        for entry in folder.names().map_err(failed("read", &from))? {
            let entry = entry.map_err(failed("read", &from))?;
            let (name, from) = (entry.name.as_os_str(), from.join(&entry.name));
            let at_top = directory.as_os_str().is_empty();
            if from.ends_with(RUNS)
                || (at_top && name == ".git" && entry.kind == Kind::File)
                || from == self.target
            {
                continue;
            }
            let relative = directory.join(name);
            let to = self.target.join(&relative);
            match entry.kind {
                Kind::Directory => {
                    self.count(0)?;
                    let facts = folder.metadata(name).map_err(failed("read", &from))?;
                    // Its owner must be able to fill it and to remove it again.
                    DirBuilder::new()
                        .mode(facts.permissions().mode() & 0o777 | 0o700)
                        .create(&to)
                        .map_err(failed("create", &to))?;
                    directories.push(relative);
                }
                Kind::Link => {
                    self.count(0)?;
                    let link = folder.read_link(name).map_err(failed("read", &from))?;
                    symlink(link, &to).map_err(failed("create", &to))?;
                }
                Kind::File => self.file((&folder, name), &from, &to)?,
                Kind::Special => {}
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        (folder, name): (&Folder, &OsStr),
        from: &Path,
        to: &Path,
    ) -> Result<(), WorkspaceError> {
        let Entry::File(mut input) = folder.look(name).map_err(failed("read", from))? else {
            return Ok(());
        };
        let facts = &input.metadata;
        self.count(facts.len())?;
        let mut output = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(to)
            .map_err(failed("create", to))?;
        fill(&mut input.file, &mut output, facts.len()).map_err(failed("write", to))?;
        if let Ok(modified) = facts.modified() {
            output.set_modified(modified).map_err(failed("write", to))?;
        }
        output
            .set_permissions(Permissions::from_mode(facts.permissions().mode() & 0o777))
            .map_err(failed("write", to))
    }

    fn count(&mut self, bytes: u64) -> Result<(), WorkspaceError> {
        self.files += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        let limit = if self.files > COPY_FILES_MAX {
            format!("{COPY_FILES_MAX} files")
        } else if self.bytes > COPY_BYTES_MAX {
            format!("{} GiB", COPY_BYTES_MAX >> 30)
        } else {
            return Ok(());
        };
        Err(WorkspaceError::TooLarge {
            path: self.source.to_owned(),
            limit,
        })
    }
}

/// Copies `len` bytes in the kernel where it can; a file that grows meanwhile
/// gets no further, so that the bound on bytes holds.
fn fill(input: &mut File, output: &mut File, len: u64) -> io::Result<u64> {
    io::copy(&mut io::Read::take(input, len), output)
}

fn failed<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> WorkspaceError + 'a {
    move |source| WorkspaceError::Io {
        operation,
        path: path.to_owned(),
        source,
    }
}
