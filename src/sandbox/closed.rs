//! What of the machine's own places its mode bits keep from others: keys, and the
//! credentials of services. The user who runs commands may be the one to whom they
//! belong, so that the kernel would let a command read them.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Everybody may read it; may read and search it.
const OTHERS_READ: u32 = 0o4;
const OTHERS_ENTER: u32 = 0o5;

/// So many entries of a place are looked at.
pub(super) const SETTINGS_MAX: usize = 50_000;
/// Of one installation below `/opt`, and of all together. Those that are larger are
/// not opened, but for the toolchains in them that are in use.
const INSTALLATION_MAX: usize = 2_000;
const INSTALLATIONS_MAX: usize = 10_000;
/// Of a toolchain that is in use.
const IN_USE_MAX: usize = 100_000;

/// Where programs are installed that no package manager looks after.
pub(super) const INSTALLATIONS: &str = "/opt";

/// What is closed to others below a place.
pub(super) struct Closed {
    pub(super) paths: Vec<PathBuf>,
    /// Whether everything was looked at. What was not is among the paths.
    pub(super) whole: bool,
    looked_at: usize,
}

/// Looks for what is closed to others below `root`, at `most` entries, those further up
/// first. A directory that was not looked at is closed.
pub(super) fn closed_to_others(root: &Path, most: usize) -> Closed {
    let mut paths = Vec::new();
    let mut open = VecDeque::from([root.to_path_buf()]);
    let mut looked_at = 0;
    while let Some(directory) = open.pop_front() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            looked_at += 1;
            if looked_at > most {
                paths.push(directory);
                paths.extend(open);
                return Closed {
                    paths,
                    whole: false,
                    looked_at,
                };
            }
            let Ok(found) = entry.metadata() else {
                continue;
            };
            let mode = found.permissions().mode();
            if found.is_dir() && mode & OTHERS_ENTER == OTHERS_ENTER {
                open.push_back(entry.path());
            } else if found.is_dir() || (found.is_file() && mode & OTHERS_READ == 0) {
                paths.push(entry.path());
            }
        }
    }
    Closed {
        paths,
        whole: true,
        looked_at,
    }
}

/// What is opened below [`INSTALLATIONS`], and what in it stays closed.
#[derive(Default)]
pub(super) struct Installations {
    pub(super) read: Vec<PathBuf>,
    pub(super) secret: Vec<PathBuf>,
}

/// Opens each installation that is small enough to be looked through, and in the
/// others the toolchains that are `in_use`.
pub(super) fn installations(in_use: &[PathBuf]) -> Installations {
    let mut found = Installations::default();
    let mut left = INSTALLATIONS_MAX;
    let root = Path::new(INSTALLATIONS);
    // Not opened as a whole.
    let mut large = Vec::new();
    // The same ones on every machine, whatever order the file system has.
    let mut entries: Vec<_> = fs::read_dir(root).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // A link is not followed: what it leads to is opened where it is, or is not.
        let Ok(what) = entry.metadata() else { continue };
        let (path, mode) = (entry.path(), what.permissions().mode());
        if what.is_file() && mode & OTHERS_READ != 0 {
            found.read.push(path);
            continue;
        } else if !what.is_dir() {
            continue;
        } else if mode & OTHERS_ENTER != OTHERS_ENTER {
            large.push(path);
            continue;
        }
        let closed = closed_to_others(&path, INSTALLATION_MAX.min(left));
        left = left.saturating_sub(closed.looked_at);
        match closed.whole {
            true => {
                found.read.push(path);
                found.secret.extend(closed.paths);
            }
            false => large.push(path),
        }
    }
    for tool in in_use {
        if large.iter().any(|large| tool.starts_with(large)) {
            let closed = closed_to_others(tool, IN_USE_MAX);
            found.read.push(tool.clone());
            found.secret.extend(closed.paths);
        }
    }
    found
}
