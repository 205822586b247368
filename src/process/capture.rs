//! Short commands whose output is wanted as a whole.

use tokio_util::sync::CancellationToken;

use super::{CommandSpec, Ending, Process, Progress, SpawnError};

/// What a short helper command printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// How it ended.
    pub ending: Ending,
    /// Its output, cut after the limit.
    pub output: Vec<u8>,
    /// Whether bytes beyond the limit were dropped.
    pub truncated: bool,
    /// The start of its standard error, when that is read apart.
    pub errors: Vec<u8>,
}

/// Runs a command to its end and keeps at most `bytes_max` of its output.
///
/// # Errors
/// As [`Process::spawn`].
pub async fn capture(
    spec: CommandSpec,
    bytes_max: usize,
    cancel: &CancellationToken,
) -> Result<Captured, SpawnError> {
    let mut process = Process::spawn(spec)?;
    let mut output = Vec::new();
    let mut truncated = false;
    loop {
        match process.next(cancel).await {
            Progress::Output(bytes) => {
                let room = bytes_max.saturating_sub(output.len()).min(bytes.len());
                output.extend_from_slice(bytes.get(..room).unwrap_or_default());
                truncated |= room < bytes.len();
            }
            Progress::Ended(ending) => {
                return Ok(Captured {
                    ending,
                    output,
                    truncated,
                    errors: std::mem::take(&mut process.errors),
                });
            }
        }
    }
}
