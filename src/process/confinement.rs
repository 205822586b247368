//! How a command is kept in, as far as starting and ending it is concerned.
//! What keeps it in is made elsewhere (`sandbox`) and handed down.

use std::ffi::OsString;
use std::fmt::Debug;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Keeps commands in.
pub trait Confinement: Debug + Send + Sync {
    /// What is started in place of `program` with `args` in `cwd`.
    ///
    /// # Errors
    /// When the system has no room.
    fn wrap(&self, program: PathBuf, args: Vec<OsString>, cwd: &Path) -> io::Result<Wrapped>;

    /// Whether the thread that starts a command is to be bound.
    fn binds_thread(&self) -> bool;

    /// Keeps the signals of the calling thread to what it starts, for good, and says
    /// whether that can be had. Asked of a thread that starts the bound one.
    fn fence_thread(&self) -> bool;

    /// Binds the calling thread and all that it starts, for good.
    ///
    /// # Errors
    /// When something of what was promised cannot be had: then nothing may be started.
    fn bind_thread(&self) -> io::Result<()>;

    /// How many processes a command may be at a time.
    fn processes_max(&self) -> Option<u64>;

    /// Why a command that printed this failed, as far as it was kept in.
    fn reasons(&self, output: &str) -> Vec<String>;

    /// Why what the run left cannot be trusted any more, when a command saw to that.
    fn breach(&self) -> Option<String>;

    /// Looks at what could not be prevented, once nothing of a command runs any
    /// more, and undoes it. What it tells is for the model.
    fn settle(&self) -> Vec<String>;
}

/// What the commands and hooks of a job run in. That there is no sandbox is
/// always somebody's word; where nobody said anything, nothing starts.
#[derive(Debug, Clone, Default)]
pub enum CommandSandbox {
    /// None was set up: nothing may start.
    #[default]
    Missing,
    /// This keeps them in.
    Enforced(Arc<dyn Confinement>),
    /// They may do what this process may, because the task or a flag says so.
    Off,
}

/// A command was to start, and nothing was set up to keep it in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no sandbox was set up for it, because nothing in the task allows a command; add a rule such \
     as `Bash(…)` to `permissions.allow`, use the mode `workspace`, or write `sandbox.mode: off`"
)]
pub struct SandboxMissing;

impl CommandSandbox {
    /// What a command that starts now is kept in by; none when there is to be none.
    ///
    /// # Errors
    /// When none was set up: then the command must not start.
    pub fn for_command(&self) -> Result<Option<Arc<dyn Confinement>>, SandboxMissing> {
        match self {
            Self::Missing => Err(SandboxMissing),
            Self::Enforced(confinement) => Ok(Some(Arc::clone(confinement))),
            Self::Off => Ok(None),
        }
    }

    /// What keeps commands in, where something does.
    pub fn enforced(&self) -> Option<&dyn Confinement> {
        match self {
            Self::Enforced(confinement) => Some(confinement.as_ref()),
            Self::Missing | Self::Off => None,
        }
    }
}

/// What is started in place of a command.
#[derive(Debug)]
pub struct Wrapped {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// What it reads from descriptors of these numbers.
    pub handed: Vec<OwnedFd>,
    /// Who the process is that is started.
    pub leader: Leader,
}

/// Who the process is that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leader {
    /// The command, or what becomes the command.
    Command,
    /// A program that stays, with the command's own session below it: what is
    /// told to end is that session.
    Wrapper,
}
