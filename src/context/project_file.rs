//! The files in which people tell agents how to work on a project, and how
//! much of them goes into the system prompt.

use crate::event::Warning;

/// The names of such a file, the first that exists counts.
pub(super) const NAMES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// What all of them together may take of the system prompt, in bytes.
pub(super) const BYTES_MAX: usize = 32 * 1024;

/// A shorter begin of a file is not worth its place.
const BEGIN_BYTES_MIN: usize = 256;

/// A project file as the model is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Relative to the workspace when inside it, otherwise absolute.
    pub path: String,
    /// Its text, or the begin of it with a notice.
    pub content: String,
}

/// A file that was read, whole or not.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: String,
    /// At most [`BYTES_MAX`] bytes of the file, or a little more where
    /// characters had to be replaced.
    pub(super) text: String,
    /// Whether the file has more.
    pub(super) cut: bool,
    /// The size of the whole file.
    pub(super) bytes: u64,
}

/// Fits files, most general first, into [`BYTES_MAX`]. The most specific one
/// gets its room first, so what is cut or left out is the most general.
pub(super) fn fit(found: Vec<Found>, warnings: &mut Vec<Warning>) -> Vec<ProjectFile> {
    let mut room = BYTES_MAX;
    let mut files = Vec::with_capacity(found.len());
    for file in found.into_iter().rev() {
        let content = if !file.cut && file.text.len() <= room {
            room -= file.text.len();
            file.text
        } else {
            let begin = begin(&file.text, room);
            room = 0;
            let of = format!("{} of {} bytes", begin.len(), file.bytes);
            warnings.push(Warning {
                code: "project_file_cut".to_owned(),
                message: format!(
                    "{}: {of} are in the system prompt; all project files together may have {} KiB",
                    file.path,
                    BYTES_MAX / 1024
                ),
            });
            let rest = match file.path.starts_with('/') {
                // It lies outside the workspace and most likely cannot be read.
                true => "",
                false => "; read the file for the rest",
            };
            match begin.is_empty() {
                true => format!("[Left out for lack of room: {of} are shown{rest}.]"),
                false => format!("{begin}\n[The first {of} are shown{rest}.]"),
            }
        };
        files.push(ProjectFile {
            path: file.path,
            content,
        });
    }
    files.reverse();
    warnings.reverse();
    files
}

/// As many whole lines as fit, or a part of a line longer than that.
fn begin(text: &str, room: usize) -> &str {
    if room < BEGIN_BYTES_MIN {
        return "";
    }
    let fitting = text.get(..text.floor_char_boundary(room)).unwrap_or(text);
    match fitting.rfind('\n') {
        Some(end) if end >= room / 2 => fitting.get(..=end).unwrap_or(fitting),
        _ => fitting,
    }
}
