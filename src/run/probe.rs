//! Asking a program what it is, for a short time.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::process::{CommandSpec, Ending, Streams, capture};

/// What is read of it.
const BYTES_MAX: usize = 4 * 1024;

/// What a program said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Said {
    /// Whether it ended well.
    pub(crate) well: bool,
    /// Its standard output, as far as it is read.
    pub(crate) text: String,
    /// Its standard error, as far as it is read.
    pub(crate) errors: String,
}

impl Said {
    /// The first line; one of its errors where it said nothing else.
    pub(crate) fn line(&self) -> String {
        let first = self.text.lines().chain(self.errors.lines()).next();
        first.unwrap_or_default().trim().to_owned()
    }
}

/// Runs `command` in `cwd` with this environment, for at most `timeout`.
///
/// # Errors
/// Why it does not run, for people.
pub(crate) async fn ask(
    command: &[&str],
    cwd: &Path,
    env: &[(String, String)],
    timeout: Duration,
) -> Result<Said, String> {
    let (program, args) = command.split_first().ok_or("there is no program")?;
    let spec = CommandSpec {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        cwd: cwd.to_owned(),
        env: env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        stdin: None,
        streams: Streams::Apart,
        timeout: Some(timeout),
        confinement: None,
    };
    let captured = capture(spec, BYTES_MAX, &CancellationToken::new())
        .await
        .map_err(|error| error.to_string())?;
    let well = match captured.ending {
        Ending::Exited(status) => status == 0,
        Ending::Signalled(signal) => return Err(format!("`{program}` died of signal {signal}")),
        Ending::TimedOut | Ending::Cancelled | Ending::Crowded(_) => {
            let seconds = timeout.as_secs();
            return Err(format!("`{program}` said nothing for {seconds} s"));
        }
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (text, errors) = (text(&captured.output), text(&captured.errors));
    Ok(Said { well, text, errors })
}
