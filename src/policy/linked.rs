//! Programs named in the workspace that are links to programs of the system, as
//! the `python` of a virtual environment is.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::exec::Exec;
use super::guard;
use super::touched::Touched;
use super::{Enforcement, Policy};

/// May be written by the group, or by everybody.
const OTHERS_WRITE: u32 = 0o022;

impl Policy {
    /// Whether a word is the program that a rule spells, and a link to one of the
    /// system: it is that program, and held to what the table says of it too.
    pub(super) fn is_linked_program(&self, exec: &Exec, touched: &Touched) -> bool {
        let (Some(0), Ok(words), Ok(place)) = (touched.at, &exec.command.words, &touched.place)
        else {
            return false;
        };
        let named = place.lexical.starts_with(&self.scope.workspace)
            || place.lexical.starts_with(&self.scope.real_workspace);
        let Some(name) = place.real.file_name().filter(|_| named && exec.spelled > 0) else {
            return false;
        };
        let mut really = words.clone();
        if let Some(program) = really.first_mut() {
            *program = name.to_string_lossy().into_owned();
        }
        self.is_out_of_reach(&place.real) && guard::check(&really, exec.spelled).is_ok()
    }

    /// Whether a file is one that commands cannot change: outside the workspace, where
    /// a sandbox keeps them out, or where it belongs to the system.
    pub(super) fn is_out_of_reach(&self, file: &Path) -> bool {
        let own = |path: &Path| {
            let metadata = path.metadata();
            metadata.is_ok_and(|found| found.uid() == 0 && found.mode() & OTHERS_WRITE == 0)
        };
        file.is_file()
            && !self.scope.contains(file)
            && !self.temporary.hold(file, &self.scope)
            && (self.sandbox == Enforcement::Enforced || file.ancestors().all(own))
    }
}
