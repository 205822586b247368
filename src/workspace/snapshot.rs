//! The working copy as a tree in an object store of our own.
//!
//! The commands run under a git directory made by us, with our configuration
//! alone: no hooks, no file system monitor, no filters, no external diff,
//! whatever the repository says. They borrow the repository's objects and
//! begin with a copy of its index, for what it knows about files that did not
//! change. Nothing is written into the user's `.git`; git may renew the times
//! of loose objects there that it meets again.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::access::{self, Entry, Folder};
use crate::event::{ChangedFile, FileStatus, Warning};
use crate::process::Ending;
use crate::workspace::git::{Failure, Git, LIST_BYTES_MAX, MESSAGE_BYTES_MAX, os};
use crate::workspace::large::LargeFiles;
use crate::workspace::repository::Repository;
use crate::workspace::{
    Changes, GitSettings, PATCH_BYTES_MAX, blocking, conversion, left_out, warning,
};

/// An index of a million files has a tenth of that.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// The working copy as a git tree.
#[derive(Debug)]
pub(super) struct Snapshot {
    git: Git,
    exclude: Vec<PathBuf>,
    tree: OsString,
    large: LargeFiles,
    warning: Option<Warning>,
    /// Holds our index and objects; removed with the snapshot.
    _scratch: TempDir,
}

impl Snapshot {
    pub(super) async fn take(
        repository: Repository,
        settings: &GitSettings,
        exclude: &[PathBuf],
        cancel: &CancellationToken,
    ) -> Result<Self, Failure> {
        let theirs = Git::in_repository(&repository, settings);
        let line_endings = conversion::settings(&theirs, cancel).await?;
        let scratch = make_git_dir(&repository, &settings.scratch, &line_endings)
            .map_err(|error| Failure::Broken(format!("cannot prepare a git directory: {error}")))?;
        let git = Git::with_dir(&repository, settings, scratch.path());
        if !git.prefix.as_os_str().is_empty() {
            let args = ["check-ignore", "--quiet", "--", "."].map(os).to_vec();
            let ignored = git.run(args, None, MESSAGE_BYTES_MAX, cancel).await?;
            if ignored.ending == Ending::Exited(0) {
                return Err(Failure::NotApplicable);
            }
        }
        let mut taken = Self {
            git,
            exclude: exclude.to_vec(),
            tree: OsString::new(),
            large: LargeFiles::default(),
            warning: None,
            _scratch: scratch,
        };
        let written = taken.write_tree(cancel).await?;
        (taken.tree, taken.large) = (written.tree, written.large);
        taken.warning = written.warning;
        Ok(taken)
    }

    /// What could not be remembered.
    pub(super) fn warning(&self) -> Option<Warning> {
        self.warning.clone()
    }

    /// Writes the working copy into a tree.
    async fn write_tree(&self, cancel: &CancellationToken) -> Result<Written, Failure> {
        let list = self.changed_files(cancel).await?;
        if !list.paths.is_empty() {
            // `git add` would run `git status` inside nested repositories,
            // under their own configuration; this looks at no more than their
            // HEAD.
            let args = [
                "update-index",
                "-z",
                "--add",
                "--remove",
                "--replace",
                "--stdin",
            ];
            self.git
                .feed(args.map(os).to_vec(), list.paths, cancel)
                .await?;
        }
        let warning = list.nested.map(|path| {
            warning(
                "baseline_incomplete",
                format!("the diff leaves out the repository inside the workspace: {path}"),
            )
        });
        let args = ["write-tree", "--missing-ok"].map(os).to_vec();
        let written = self.git.output(args, MESSAGE_BYTES_MAX, cancel).await?;
        let name = written.output.trim_ascii();
        if name.len() < 40 || !name.iter().all(u8::is_ascii_hexdigit) {
            return Err(Failure::Broken("`git write-tree` named no tree".to_owned()));
        }
        Ok(Written {
            tree: OsStr::from_bytes(name).to_owned(),
            large: list.large,
            warning,
        })
    }

    /// The files that differ from our index: tracked ones first, so that a
    /// file makes way for a directory of its name.
    async fn changed_files(&self, cancel: &CancellationToken) -> Result<FileList, Failure> {
        let fixed = [
            "ls-files",
            "-z",
            "-t",
            "--modified",
            "--deleted",
            "--others",
            "--exclude-standard",
        ];
        let mut args = fixed.map(os).to_vec();
        args.extend(self.git.pathspec(&self.exclude));
        let listed = self.git.output(args, LIST_BYTES_MAX, cancel).await?;
        if listed.truncated {
            let message = "too many files are untracked or changed".to_owned();
            return Err(Failure::Broken(message));
        }
        let (root, before) = (self.git.workspace().to_owned(), self.large.clone());
        blocking(move || sort_out(&listed.output, &root, &before))
            .await
            .map_err(|_| Failure::Cancelled)
    }

    /// What changed since.
    pub(super) async fn diff(&self, cancel: &CancellationToken) -> Result<Changes, Failure> {
        let written = self.write_tree(cancel).await?;
        let incomplete = written.warning.into_iter();
        let mut changes = Changes {
            files: Vec::new(),
            patch: Vec::new(),
            source: "git",
            warnings: incomplete.filter(|_| self.warning.is_none()).collect(),
            lost: None,
        };
        if written.tree != self.tree {
            self.diff_trees(&written.tree, &mut changes, cancel).await?;
            let converted = conversion::warnings(&self.git, &changes.files, cancel).await?;
            changes.warnings.extend(converted);
        }
        let large = self.large.changes(&written.large, self.git.workspace());
        changes.warnings.extend(left_out(&large));
        // A directory in the place of a large file is in git's list.
        let unlisted = |file: &ChangedFile| changes.files.iter().all(|one| one.path != file.path);
        let large: Vec<ChangedFile> = large.into_iter().filter(unlisted).collect();
        if !large.is_empty() {
            changes.files.extend(large);
            changes.files.sort_by(|a, b| a.path.cmp(&b.path));
        }
        Ok(changes)
    }

    /// Adds what differs between the tree of the start and `now`.
    async fn diff_trees(
        &self,
        now: &OsStr,
        changes: &mut Changes,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let list = self.diff_args(&["--raw", "--numstat", "-z"], now);
        let list = self.git.output(list, LIST_BYTES_MAX, cancel).await?;
        changes.files = parse_list(&list.output);
        if list.truncated {
            let message = "too many files changed to list them all".to_owned();
            changes.lost = Some(message.clone());
            changes.warnings.push(warning("diff_truncated", message));
        }
        let patch = self.diff_args(&["--patch", "--binary", "--full-index"], now);
        let patch = self.git.output(patch, PATCH_BYTES_MAX, cancel).await?;
        if patch.truncated {
            changes.warnings.push(warning(
                "patch_too_large",
                format!(
                    "the patch is larger than {} MiB and was left out",
                    PATCH_BYTES_MAX >> 20
                ),
            ));
        } else {
            changes.patch = patch.output;
        }
        Ok(())
    }

    fn diff_args(&self, format: &[&str], now: &OsStr) -> Vec<OsString> {
        let fixed = [
            "--no-ext-diff",
            "--no-textconv",
            "--no-renames",
            "--no-color",
            "--relative",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--submodule=short",
        ];
        let mut args = vec![os("diff")];
        args.extend(fixed.map(os));
        args.extend(format.iter().map(|option| os(option)));
        args.extend([self.tree.clone(), now.to_owned(), os("--")]);
        args
    }
}

/// The working copy, written down.
struct Written {
    tree: OsString,
    large: LargeFiles,
    warning: Option<Warning>,
}

/// Files to look at again.
#[derive(Debug, Default)]
struct FileList {
    /// Each with a NUL byte after it.
    paths: Vec<u8>,
    /// Those that are not read.
    large: LargeFiles,
    /// An untracked repository inside the workspace.
    nested: Option<String>,
}

/// Sorts the records of `git ls-files -t`: files to read, files too large for
/// that, repositories.
fn sort_out(listed: &[u8], root: &Path, before: &LargeFiles) -> FileList {
    let mut list = FileList::default();
    let mut untracked = Vec::new();
    for record in listed.split(|byte| *byte == 0) {
        let (path, tracked) = match (record.strip_prefix(b"? "), record.get(2..)) {
            (Some(path), _) if path.ends_with(b"/") => {
                list.nested = Some(String::from_utf8_lossy(path).into_owned());
                continue;
            }
            (Some(path), _) => (path, false),
            (None, Some(path)) => (path, true),
            (None, None) => continue,
        };
        let name = Path::new(OsStr::from_bytes(path));
        if list.large.add((root, name), tracked, before) {
            continue;
        }
        match tracked {
            true => list.paths.extend([path, b"\0"].concat()),
            false => untracked.extend([path, b"\0"].concat()),
        }
    }
    list.paths.append(&mut untracked);
    list
}

/// A git directory of our own that borrows the objects of `repository`.
fn make_git_dir(
    repository: &Repository,
    scratch: &Path,
    line_endings: &str,
) -> io::Result<TempDir> {
    let ours = tempfile::Builder::new()
        .prefix("baseline-")
        .tempdir_in(scratch)?;
    let dir = ours.path();
    for part in ["refs", "info", "objects/info", "objects/pack"] {
        fs::create_dir_all(dir.join(part))?;
    }
    fs::write(dir.join("HEAD"), "ref: refs/heads/baseline\n")?;
    let (version, extensions) = if repository.sha256 {
        (1, "[extensions]\n\tobjectFormat = sha256\n")
    } else {
        (0, "")
    };
    let config = format!(
        "[core]\n\trepositoryFormatVersion = {version}\n\tbare = false\n\tfsync = none\n\
         \tlooseCompression = 1\n{line_endings}[gc]\n\tauto = 0\n{extensions}"
    );
    fs::write(dir.join("config"), config)?;
    fs::write(
        dir.join("objects/info/alternates"),
        alternates_line(&repository.common_dir.join("objects")),
    )?;
    for name in ["exclude", "attributes"] {
        let from = repository.common_dir.join("info");
        copy_file(&from, name.as_ref(), &dir.join("info"))?;
    }
    copy_index(&repository.git_dir, dir)?;
    Ok(ours)
}

/// Copies the index with its modification time: git compares the times of
/// files with it to notice files that changed right after it was written.
fn copy_index(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(folder) = from.canonicalize().and_then(|real| Folder::open(&real)) else {
        return Ok(());
    };
    for entry in folder.names()?.filter_map(Result::ok) {
        let name = entry.name;
        let shared = name.as_bytes().starts_with(b"sharedindex.");
        if name == "index" || shared {
            copy_file(from, &name, to)?;
        }
    }
    Ok(())
}

/// Copies a regular file of a reasonable size; anything else is not git's.
fn copy_file(from: &Path, name: &OsStr, to: &Path) -> io::Result<()> {
    // Directories of git are links in some layouts.
    let seen = from
        .canonicalize()
        .and_then(|real| access::look(&real.join(name)));
    let Ok(Entry::File(opened)) = seen else {
        return Ok(());
    };
    if opened.metadata.len() > FILE_BYTES_MAX {
        return Err(io::Error::other(
            "a file of the repository is larger than 1 GiB",
        ));
    }
    let mut copy = fs::File::create(to.join(name))?;
    io::copy(&mut opened.file.take(FILE_BYTES_MAX), &mut copy)?;
    copy.set_modified(opened.metadata.modified()?)
}

/// The path as a line of an `alternates` file, quoted as C does it.
fn alternates_line(objects: &Path) -> Vec<u8> {
    let mut line = vec![b'"'];
    for byte in objects.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            b'\n' => line.extend(b"\\n"),
            _ => line.push(*byte),
        }
    }
    line.extend(b"\"\n");
    line
}

/// Reads `--raw --numstat -z`: all raw records, then all counts. Both follow
/// the same order and name each file, so they join by name.
fn parse_list(output: &[u8]) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    let mut counted = 0;
    let mut tokens = output.split(|byte| *byte == 0);
    while let Some(token) = tokens.next() {
        if token.starts_with(b":") {
            let status = match token.last() {
                Some(b'A') => FileStatus::Added,
                Some(b'D') => FileStatus::Deleted,
                _ => FileStatus::Modified,
            };
            let path = String::from_utf8_lossy(tokens.next().unwrap_or_default()).into_owned();
            files.push(ChangedFile {
                path,
                status,
                additions: 0,
                deletions: 0,
            });
            continue;
        }
        let text = String::from_utf8_lossy(token);
        let mut parts = text.splitn(3, '\t');
        if let (Some(additions), Some(deletions), Some(path)) =
            (parts.next(), parts.next(), parts.next())
            && let Some(offset) = files
                .iter()
                .skip(counted)
                .position(|file| file.path == path)
            && let Some(file) = files.get_mut(counted + offset)
        {
            // Binary files count as `-`.
            file.additions = additions.parse().unwrap_or(0);
            file.deletions = deletions.parse().unwrap_or(0);
            counted += offset + 1;
        }
    }
    files
}
