//! How paths in arguments are understood and how paths are shown.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use crate::access::Folder;
use crate::message::is_unseen;
use crate::tool::Place;
use crate::tool::work::Work;

/// Directory entries looked at for near names.
const NEAR_ENTRIES_MAX: usize = 5_000;

/// Resolves a path of an argument to an absolute one without `.` and `..`,
/// by its text alone: a leading `@` is dropped, `~` is the home directory,
/// everything else counts from the workspace.
///
/// # Errors
/// A message for the model when the text cannot be a path.
pub(super) fn resolve(place: &Place, text: &str) -> Result<PathBuf, String> {
    let text = text.strip_prefix('@').unwrap_or(text);
    if text.trim().is_empty() {
        return Err("the path is empty".to_owned());
    }
    if text.contains('\0') {
        return Err("the path contains a NUL character".to_owned());
    }
    let below_home = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Some(rest),
        Some(_) | None => None,
    };
    let Some(rest) = below_home else {
        return Ok(normalise(&place.workspace.join(text)));
    };
    let Some(home) = &place.home else {
        return Err(format!("`{text}`: there is no home directory"));
    };
    Ok(normalise(&home.join(rest.trim_start_matches('/'))))
}

/// Resolves an optional path; none is the workspace itself.
///
/// # Errors
/// As [`resolve`].
pub(super) fn resolve_or_workspace(place: &Place, text: Option<&str>) -> Result<PathBuf, String> {
    match text {
        Some(text) => resolve(place, text),
        None => Ok(place.workspace.clone()),
    }
}

fn normalise(path: &Path) -> PathBuf {
    let mut all = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => all.push(name),
            Component::ParentDir => {
                all.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    all
}

/// A path for people and models: relative to the workspace when inside it.
/// A name with characters that break a line, reorder it or are not seen is
/// quoted and escaped.
pub(super) fn display(place: &Place, path: &Path) -> String {
    match path.strip_prefix(&place.workspace) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => display_name(inside.as_os_str()),
        Err(_) => display_name(path.as_os_str()),
    }
}

/// A file name as [`display`] shows it.
pub(super) fn display_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    let breaks = |c: char| c.is_control() || is_unseen(c) || matches!(c, '\u{2028}' | '\u{2029}');
    if name.contains(breaks) {
        return format!("{name:?}");
    }
    name.into_owned()
}

/// What the model is told about a path that does not exist.
pub(super) fn missing(place: &Place, path: &Path, work: &Work) -> String {
    let shown = display(place, path);
    if path.symlink_metadata().is_ok() {
        return format!("`{shown}` is a symbolic link whose target does not exist");
    }
    let parent = path.parent().unwrap_or(path);
    if !parent.is_dir() {
        let parent = display(place, parent);
        return format!("`{shown}` does not exist, nor does its directory `{parent}`");
    }
    let near = near_names(place, parent, path, work);
    if near.is_empty() {
        return format!("`{shown}` does not exist");
    }
    format!(
        "`{shown}` does not exist; did you mean {}?",
        near.join(", ")
    )
}

/// The up to three most similar names beside `path`, best first, inside the
/// workspace only and of what may be read: a name alone could tell too much.
fn near_names(place: &Place, parent: &Path, path: &Path, work: &Work) -> Vec<String> {
    let real = parent.canonicalize();
    let real = real.ok().filter(|real| real.starts_with(&place.workspace));
    let wanted = path
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase());
    let (Some(real), Some(wanted)) = (real, wanted) else {
        return Vec::new();
    };
    let Ok(folder) = Folder::open(&real) else {
        return Vec::new();
    };
    let Ok(entries) = folder.names() else {
        return Vec::new();
    };
    let mut near: Vec<(f64, String)> = entries
        .take(NEAR_ENTRIES_MAX)
        .flatten()
        .filter_map(|entry| {
            let name = entry.name.to_string_lossy().to_lowercase();
            let score = strsim::jaro_winkler(&wanted, &name);
            // Swapped letters of a short name weigh too much in the first measure.
            let near =
                score >= 0.8 || strsim::normalized_damerau_levenshtein(&wanted, &name) >= 0.6;
            let shown = display(place, &parent.join(&entry.name));
            (near && work.may_read(&real.join(&entry.name))).then(|| (score, format!("`{shown}`")))
        })
        .collect();
    near.sort_by(|(one, a), (two, b)| two.total_cmp(one).then_with(|| a.cmp(b)));
    near.truncate(3);
    near.into_iter().map(|(_, name)| name).collect()
}
