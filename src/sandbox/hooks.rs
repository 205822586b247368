//! The sandbox of the task's hooks: the same as that of commands, but with a home
//! and temporary files of its own. A command that wrote a hook's settings there would
//! decide what the hook answers.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Sandbox, Walls};
use crate::process::{Confinement, Wrapped};

/// Keeps hooks in.
#[derive(Debug)]
pub struct HookSandbox(Arc<Sandbox>);

impl HookSandbox {
    /// That of a job with this sandbox for its commands. Where hooks have no home of
    /// their own it is the same.
    pub fn new(commands: Arc<Sandbox>) -> Self {
        Self(commands)
    }

    fn walls(&self) -> &Walls {
        self.0.hook_walls.as_ref().unwrap_or(&self.0.walls)
    }
}

impl Confinement for HookSandbox {
    fn wrap(&self, program: PathBuf, args: Vec<OsString>, cwd: &Path) -> io::Result<Wrapped> {
        self.0.wrap_in(self.walls(), program, args, cwd)
    }

    fn binds_thread(&self) -> bool {
        self.0.binds_thread()
    }

    fn fence_thread(&self) -> bool {
        self.0.fence_thread()
    }

    fn bind_thread(&self) -> io::Result<()> {
        self.walls().bind_thread()
    }

    fn processes_max(&self) -> Option<u64> {
        self.0.processes_max()
    }

    fn reasons(&self, output: &str) -> Vec<String> {
        self.0.reasons(output)
    }

    fn breach(&self) -> Option<String> {
        self.0.breach()
    }

    fn settle(&self) -> Vec<String> {
        self.0.settle()
    }
}
