//! A patch from remembered contents, in the form that `git apply` and
//! `patch -p1` read.
//!
//! Binary files are listed, but no patch text can carry them without git.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

use crate::clock;
use crate::event::{ChangedFile, FileStatus};
use crate::workspace::images::{Body, Held, Images, Mode, read_now};
use crate::workspace::{Changes, PATCH_BYTES_MAX, left_out, warning};

/// Lines of context around a change.
const CONTEXT: usize = 3;
/// A file with a NUL byte so far from its start is binary, as git has it.
const BINARY_PROBE_BYTES: usize = 8_000;
/// From here on large files are diffed coarsely.
const DIFF_TIME: Duration = Duration::from_secs(10);

/// What changed below `root` since `images`.
pub(super) fn changes(root: &Path, exclude: &[PathBuf], images: &Images) -> Changes {
    let deadline = clock::monotonic() + DIFF_TIME;
    let mut files = Vec::new();
    let mut patch = Vec::new();
    let (mut without_content, mut paths) = (Vec::new(), Vec::new());
    let mut candidates: Vec<_> = images.candidates(root, exclude).into_iter().collect();
    // By bytes, as git orders them.
    candidates.sort_by(|(a, _), (b, _)| a.as_os_str().cmp(b.as_os_str()));
    for (path, before) in candidates {
        let now = adopt_mode(&before, read_now(root, &path, &before));
        if before == now {
            continue;
        }
        let status = match (&before, &now) {
            (Held::Nothing, _) => FileStatus::Added,
            (_, Held::Nothing) => FileStatus::Deleted,
            _ => FileStatus::Modified,
        };
        let mut file = ChangedFile {
            path: path.to_string_lossy().into_owned(),
            status,
            additions: 0,
            deletions: 0,
        };
        match (body(&before), body(&now)) {
            (Ok(old), Ok(new)) if !old.is_some_and(is_binary) && !new.is_some_and(is_binary) => {
                let mut section = Section {
                    path: &path,
                    deadline,
                    out: &mut patch,
                    file: &mut file,
                };
                section.write(old, new);
            }
            _ => {
                without_content.push(file.clone());
                paths.push(path);
            }
        }
        files.push(file);
    }
    let mut warnings = Vec::from_iter(left_out(&without_content));
    if patch.len() > PATCH_BYTES_MAX {
        patch = Vec::new();
        warnings.push(warning(
            "patch_too_large",
            format!(
                "the patch is larger than {} MiB and was left out",
                PATCH_BYTES_MAX >> 20
            ),
        ));
    }
    if !patch.is_empty() {
        patch = [left_out_lines(&paths), patch].concat();
    }
    Changes {
        files,
        patch,
        source: "before-images",
        warnings,
        lost: None,
    }
}

/// Where only the content was remembered the mode counts as unchanged.
fn adopt_mode(before: &Held, now: Held) -> Held {
    match (before, now) {
        (Held::Body(Body { mode: None, .. }), Held::Body(now)) if now.mode != Some(Mode::Link) => {
            Held::Body(Body { mode: None, ..now })
        }
        (_, now) => now,
    }
}

/// Nothing, or a body; an error for what has no content at hand.
fn body(held: &Held) -> Result<Option<&Body>, ()> {
    match held {
        Held::Nothing => Ok(None),
        Held::Body(body) => Ok(Some(body)),
        Held::Unkept(_) => Err(()),
    }
}

fn is_binary(body: &Body) -> bool {
    body.bytes
        .iter()
        .take(BINARY_PROBE_BYTES)
        .any(|byte| *byte == 0)
}

/// They stand before the first section, where every reader skips them.
fn left_out_lines(paths: &[PathBuf]) -> Vec<u8> {
    let mut lines = Vec::new();
    for path in paths {
        let (old, new) = (quoted("a/", path), quoted("b/", path));
        lines.extend(
            [
                b"Binary files ".as_slice(),
                &old,
                b" and ",
                &new,
                b" differ\n",
            ]
            .concat(),
        );
    }
    lines
}

/// The part of a patch that is about one file.
struct Section<'a> {
    path: &'a Path,
    deadline: Instant,
    out: &'a mut Vec<u8>,
    file: &'a mut ChangedFile,
}

impl Section<'_> {
    fn write(&mut self, old: Option<&Body>, new: Option<&Body>) {
        let link = |body: Option<&Body>| body.map(|body| body.mode == Some(Mode::Link));
        if let (Some(was), Some(is)) = (link(old), link(new))
            && was != is
        {
            // A file that becomes a link is removed and made anew.
            self.write(old, None);
            self.write(None, new);
            return;
        }
        self.header(old, new);
        let old = old.map_or(&[][..], |body| &body.bytes);
        let new = new.map_or(&[][..], |body| &body.bytes);
        let (old, new) = (lines(old), lines(new));
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(self.deadline));
        for group in group_diff_ops(ops, CONTEXT) {
            self.hunk(&group, &old, &new);
        }
    }

    fn header(&mut self, old: Option<&Body>, new: Option<&Body>) {
        let (a, b) = (quoted("a/", self.path), quoted("b/", self.path));
        self.line(&[b"diff --git ", &a, b" ", &b]);
        let octal = |body: &Body| body.mode.unwrap_or(Mode::Plain).octal().as_bytes();
        match (old, new) {
            (None, Some(new)) => self.line(&[b"new file mode ", octal(new)]),
            (Some(old), None) => self.line(&[b"deleted file mode ", octal(old)]),
            (Some(old), Some(new)) if octal(old) != octal(new) => {
                self.line(&[b"old mode ", octal(old)]);
                self.line(&[b"new mode ", octal(new)]);
            }
            _ => {}
        }
        let bytes = |body: Option<&Body>| body.map(|body| body.bytes.clone()).unwrap_or_default();
        if bytes(old) == bytes(new) {
            return;
        }
        // A tab ends a name with a space in it.
        let end: &[u8] = if a.contains(&b' ') && !a.starts_with(b"\"") {
            b"\t"
        } else {
            b""
        };
        match old {
            Some(_) => self.line(&[b"--- ", &a, end]),
            None => self.line(&[b"--- /dev/null"]),
        }
        match new {
            Some(_) => self.line(&[b"+++ ", &b, end]),
            None => self.line(&[b"+++ /dev/null"]),
        }
    }

    fn hunk(&mut self, ops: &[DiffOp], old: &[&[u8]], new: &[&[u8]]) {
        let (Some(first), Some(last)) = (ops.first(), ops.last()) else {
            return;
        };
        let from = range(first.old_range().start, last.old_range().end);
        let to = range(first.new_range().start, last.new_range().end);
        self.line(&[b"@@ -", from.as_bytes(), b" +", to.as_bytes(), b" @@"]);
        for op in ops {
            let removed = old.get(op.old_range()).unwrap_or_default();
            let added = new.get(op.new_range()).unwrap_or_default();
            if op.tag() == DiffTag::Equal {
                self.body_lines(b' ', removed);
                continue;
            }
            self.body_lines(b'-', removed);
            self.body_lines(b'+', added);
            self.file.deletions += removed.len() as u64;
            self.file.additions += added.len() as u64;
        }
    }

    fn body_lines(&mut self, sign: u8, lines: &[&[u8]]) {
        for line in lines {
            self.out.push(sign);
            self.out.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                self.out
                    .extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }

    fn line(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.out.extend_from_slice(part);
        }
        self.out.push(b'\n');
    }
}

fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A range of lines as a hunk's header names it: an empty one by the line
/// before it.
fn range(start: usize, end: usize) -> String {
    let len = end.saturating_sub(start);
    let first = if len == 0 { start } else { start + 1 };
    format!("{first},{len}")
}

/// A name as git writes it: in quotation marks only when it must be.
fn quoted(side: &str, path: &Path) -> Vec<u8> {
    let name = [side.as_bytes(), path.as_os_str().as_bytes()].concat();
    if !name
        .iter()
        .any(|byte| byte.is_ascii_control() || matches!(byte, b'"' | b'\\'))
    {
        return name;
    }
    let mut quoted = vec![b'"'];
    for byte in name {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            byte if byte.is_ascii_control() => quoted.extend(format!("\\{byte:03o}").bytes()),
            byte => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}
