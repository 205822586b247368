//! The places that a run writes to: whether they can be, and the room in them.

use std::path::{Path, PathBuf};

use rustix::fs::{Access, access, statvfs};

use super::Patient;
use super::finding::Finding;

/// A session file and a log fit into this.
const BYTES_MIN: u64 = 1024 * 1024;
/// With less than this a build may well fail.
const BYTES_COMFORTABLE: u64 = 256 * 1024 * 1024;
/// Where temporary files go when nobody says.
const TEMP_DEFAULT: &str = "/tmp";

/// Workspace, run directory, temporary files.
pub(super) fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let job = patient.job;
    let runs = patient.run_dir.as_ref().unwrap_or(&job.reports_dir);
    let temp = patient.environment.value("TMPDIR").unwrap_or(TEMP_DEFAULT);
    vec![
        workspace(&job.workspace.path),
        place(
            "run_directory",
            &existing(runs),
            runs,
            "name another with --run-dir",
        ),
        place(
            "temp",
            Path::new(temp),
            Path::new(temp),
            "set TMPDIR to a directory that can be written",
        ),
    ]
}

/// A workspace that cannot be written may still be read.
fn workspace(path: &Path) -> Finding {
    match Room::of(path) {
        Err(reason) => {
            let found = format!("{}: {reason}", path.display());
            let advice = "writes of the task will fail there; that is fine when it only reads";
            Finding::warning("workspace", found, advice)
        }
        Ok(room) => room.finding("workspace", path, "make room on that disk"),
    }
}

/// A place that must be writable, of which `base` is there.
fn place(name: &'static str, base: &Path, path: &Path, advice: &str) -> Finding {
    match Room::of(base) {
        Err(reason) => Finding::error(name, format!("{}: {reason}", path.display()), advice),
        Ok(room) => room.finding(name, path, advice),
    }
}

/// What is free below a directory that can be written.
struct Room {
    bytes: u64,
}

impl Room {
    fn of(base: &Path) -> Result<Self, String> {
        if !base.is_dir() {
            return Err(format!("{} is not a directory", base.display()));
        }
        access(base, Access::WRITE_OK | Access::EXEC_OK)
            .map_err(|error| format!("{} cannot be written: {error}", base.display()))?;
        let disk = statvfs(base).map_err(|error| format!("the disk does not tell: {error}"))?;
        Ok(Self {
            bytes: disk.f_bavail.saturating_mul(disk.f_frsize),
        })
    }

    fn finding(&self, name: &'static str, path: &Path, advice: &str) -> Finding {
        let found = format!("{}, {} free", path.display(), size(self.bytes));
        match self.bytes {
            BYTES_COMFORTABLE.. => Finding::ok(name, found),
            BYTES_MIN.. => Finding::warning(name, found, "make room on that disk"),
            _ => Finding::error(name, found, format!("make room on that disk, or {advice}")),
        }
    }
}

/// The part of `path` that is there; the rest will be made.
fn existing(path: &Path) -> PathBuf {
    let mut ancestors = path.ancestors();
    let there = ancestors.find(|part| part.symlink_metadata().is_ok());
    there.unwrap_or(Path::new("/")).to_owned()
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1024 * 1024;
    match bytes / MIB {
        0 => format!("{bytes} bytes"),
        mib @ 1..10_240 => format!("{mib} MiB"),
        mib => format!("{} GiB", mib / 1024),
    }
}
