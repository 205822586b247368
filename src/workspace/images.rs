//! The contents of a workspace that is no repository, within bounds: names of
//! many files, contents of fewer.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::access::{Entry, Folder, Hidden, Ignoring, Kind, Met, OpenFile, Walk, WalkOptions};
use crate::event::Warning;
use crate::workspace::large::{FILE_BYTES_MAX, Stamp};
use crate::workspace::warning;

/// At most so many files keep their content.
const CONTENT_FILES_MAX: usize = 2_000;
/// At most so many bytes of content are kept, and read of one file.
const CONTENT_BYTES_MAX: u64 = FILE_BYTES_MAX;
/// At most so many names are kept.
const NAMES_MAX: usize = 20_000;

/// A file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Body {
    /// The content; of a symbolic link its target.
    pub(super) bytes: Arc<[u8]>,
    /// As git writes it; none for a file of which only the content is known.
    pub(super) mode: Option<Mode>,
}

/// The modes that git knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Executable,
    Link,
}

impl Mode {
    pub(super) fn octal(self) -> &'static str {
        match self {
            Self::Plain => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }
}

/// What a path held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held {
    /// No file and no link.
    Nothing,
    /// This.
    Body(Body),
    /// A file whose content is not kept.
    Unkept(Stamp),
}

/// What the files of a workspace were.
#[derive(Debug, Clone)]
pub(super) struct Images {
    files: BTreeMap<PathBuf, Held>,
    /// Whether `files` names every file there was.
    all_names: bool,
}

impl Images {
    /// Knows nothing: only what is filled in shows as changed.
    pub(super) fn nothing() -> Self {
        Self {
            files: BTreeMap::new(),
            all_names: false,
        }
    }

    /// Reads the workspace.
    pub(super) fn take(root: &Path, exclude: &[PathBuf]) -> Self {
        let (names, all_names) = names_below(root, exclude);
        let mut files = BTreeMap::new();
        let (mut count, mut room) = (0, CONTENT_BYTES_MAX);
        for name in names {
            let limit = if count < CONTENT_FILES_MAX { room } else { 0 };
            let held = read(root, &name, limit);
            if let Held::Body(body) = &held {
                count += 1;
                room = room.saturating_sub(body.bytes.len() as u64);
            }
            files.insert(name, held);
        }
        Self { files, all_names }
    }

    /// Whether every change will be noticed.
    pub(super) fn notices_all(&self) -> bool {
        self.all_names
    }

    /// What is not remembered.
    pub(super) fn warning(&self) -> Option<Warning> {
        let unkept = self
            .files
            .values()
            .filter(|held| matches!(held, Held::Unkept(_)))
            .count();
        if unkept == 0 && self.all_names {
            return None;
        }
        let message = match self.all_names {
            true => format!(
                "the workspace is not a git repository; {unkept} large files are compared by \
                 their metadata, and listed without content when they change"
            ),
            false => format!(
                "the workspace is not a git repository and has more than {NAMES_MAX} files; \
                 changes made by commands may be missing from the diff"
            ),
        };
        Some(warning("baseline_incomplete", message))
    }

    /// Adds what a file was before a tool changed it, unless that is known.
    pub(super) fn fill(&mut self, path: PathBuf, content: Option<&[u8]>) {
        if matches!(self.files.get(&path), Some(Held::Nothing | Held::Body(_))) {
            return;
        }
        let held = content.map_or(Held::Nothing, |bytes| {
            Held::Body(Body {
                bytes: bytes.into(),
                mode: None,
            })
        });
        self.files.insert(path, held);
    }

    /// Every path that may have changed, in order, with what it held.
    pub(super) fn candidates(&self, root: &Path, exclude: &[PathBuf]) -> BTreeMap<PathBuf, Held> {
        let mut all = self.files.clone();
        all.retain(|path, _| !exclude.iter().any(|excluded| path.starts_with(excluded)));
        if self.all_names {
            for name in names_below(root, exclude).0 {
                all.entry(name).or_insert(Held::Nothing);
            }
        }
        all
    }
}

/// What `path` below `root` holds now, where it held `before`. A file is read
/// within the limit for one file, and only when there is content to compare
/// its own with.
pub(super) fn read_now(root: &Path, path: &Path, before: &Held) -> Held {
    match before {
        Held::Nothing | Held::Body(_) => read(root, path, CONTENT_BYTES_MAX),
        Held::Unkept(_) => match Stamp::read(&root.join(path)) {
            Some(stamp) => Held::Unkept(stamp),
            None => read(root, path, 0),
        },
    }
}

/// The files and links below `root` that are neither excluded nor ignored, and
/// whether these are all.
fn names_below(root: &Path, exclude: &[PathBuf]) -> (Vec<PathBuf>, bool) {
    let excluded: Vec<PathBuf> = exclude.iter().map(|path| root.join(path)).collect();
    let options = WalkOptions {
        hidden: Hidden::Visited,
        ignoring: Ignoring::Below,
        enter: |entry: &Met| {
            let own = entry.path.file_name().is_some_and(|name| name == ".git");
            !own && !excluded.contains(&entry.path)
        },
    };
    let mut names = Vec::new();
    for entry in Walk::new(root, options).filter_map(Result::ok) {
        let named = matches!(entry.kind, Kind::File | Kind::Link);
        let Some(name) = entry.path.strip_prefix(root).ok().filter(|_| named) else {
            continue;
        };
        if names.len() == NAMES_MAX {
            return (names, false);
        }
        names.push(name.to_owned());
    }
    (names, true)
}

/// Of a directory that became a link there is nothing: it would lead out of the
/// workspace.
fn read(root: &Path, path: &Path, bytes_max: u64) -> Held {
    let full = root.join(path);
    let (Some(parent), Some(name)) = (full.parent(), full.file_name()) else {
        return Held::Nothing;
    };
    let Ok(folder) = Folder::open(parent) else {
        return Held::Nothing;
    };
    let opened = match folder.look(name) {
        Ok(Entry::File(opened)) => opened,
        Ok(Entry::Other(kind)) if kind.is_symlink() => {
            return folder.read_link(name).map_or(Held::Nothing, |target| {
                Held::Body(Body {
                    bytes: target.into_vec().into(),
                    mode: Some(Mode::Link),
                })
            });
        }
        Ok(Entry::Directory | Entry::Other(_)) => return Held::Nothing,
        // A file that may not be read is there all the same.
        Err(_) => {
            let facts = folder.metadata(name).ok().filter(Metadata::is_file);
            return facts.map_or(Held::Nothing, |facts| Held::Unkept(Stamp::of(&facts)));
        }
    };
    let executable = opened.metadata.permissions().mode() & 0o100 != 0;
    let mode = if executable {
        Mode::Executable
    } else {
        Mode::Plain
    };
    let facts = opened.metadata.clone();
    match read_at_most(opened, bytes_max) {
        Some(bytes) => Held::Body(Body {
            bytes: bytes.into(),
            mode: Some(mode),
        }),
        None => Held::Unkept(Stamp::of(&facts)),
    }
}

/// None when it is larger or cannot be read.
fn read_at_most(opened: OpenFile, bytes_max: u64) -> Option<Vec<u8>> {
    if opened.metadata.len() > bytes_max {
        return None;
    }
    let mut bytes = Vec::new();
    let mut part = opened.file.take(bytes_max + 1);
    part.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= bytes_max).then_some(bytes)
}
