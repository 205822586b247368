//! The session as a page for a browser.

use std::io;
use std::path::Path;

use crate::export;

use super::Session;

impl Session {
    /// Writes the whole session as one page of HTML: all branches, calls and
    /// diffs, tokens and cost. Secrets are hidden, and a new file is for its owner
    /// alone; one that is there is replaced, with its permissions, once the page
    /// is whole.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn export_html(&self, path: &Path) -> io::Result<()> {
        // Rendering a long session takes a while, in which a turn may go on.
        let tree = self.record.read(|store| store.tree().clone());
        export::save_session_html(&tree, self.workbench.redactor(), path)
    }
}
