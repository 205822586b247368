//! The page as a file.

use std::fs::{self, Metadata};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use crate::report;
use crate::secret::Redactor;
use crate::store::SessionTree;

use super::session_html;

/// Writes the page of `tree` into a file. A new one is for its owner alone; one
/// that is there is replaced, with its permissions, once the page is whole: what
/// fails half-way leaves it as it was. What is no regular file is written into.
///
/// # Errors
/// When the file cannot be written.
pub fn save_session_html(tree: &SessionTree, redactor: &Redactor, path: &Path) -> io::Result<()> {
    // Through a link the file that it leads to is replaced.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        let mut out = BufWriter::new(report::create_private(&path)?);
        session_html(tree, redactor, &mut out)?;
        return out.flush();
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Such a file only its owner can read.
    let mut out = BufWriter::new(NamedTempFile::new_in(folder)?);
    session_html(tree, redactor, &mut out)?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if let Some(permissions) = old.as_ref().map(Metadata::permissions) {
        file.as_file().set_permissions(permissions)?;
    }
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
