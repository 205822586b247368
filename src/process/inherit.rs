//! A program that takes the place of ours for a while: it has our standard
//! streams, our environment and our process group.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use tokio::process::Child;

use super::SpawnError;

/// What a shell adds to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

/// A program that runs in our place.
#[derive(Debug)]
pub struct Inherited {
    child: Child,
}

impl Inherited {
    /// Starts `program` in our environment and `env`. Dropping it kills it.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn spawn(
        program: &OsString,
        args: &[OsString],
        env: &[(String, String)],
    ) -> Result<Self, SpawnError> {
        let mut command = super::spawn::command(Path::new(program));
        let env = env.iter().map(|(name, value)| (name, value));
        command.args(args).envs(env).kill_on_drop(true);
        let child = command.spawn().map_err(|source| SpawnError {
            program: program.to_string_lossy().into_owned(),
            source,
        })?;
        Ok(Self { child })
    }

    /// Waits for its end and gives its status, as a shell would: a signal counts
    /// from 128. Cancel safe.
    ///
    /// # Errors
    /// When the system does not tell.
    pub async fn status(&mut self) -> io::Result<i32> {
        let status = self.child.wait().await?;
        let signal = || SIGNALLED + status.signal().unwrap_or_default();
        Ok(status.code().unwrap_or_else(signal))
    }
}
