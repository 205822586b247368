//! Whether a tier works here, found out by trying to get out of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::process::{CommandSpec, Confinement, Ending, Streams, capture};

use super::options::SandboxOptions;
use super::places::Grounds;
use super::{Sandbox, Tier};

static NAMESPACES: OnceCell<Result<(), String>> = OnceCell::const_new();
static LANDLOCK: OnceCell<Result<(), String>> = OnceCell::const_new();

/// The longest that the attempts may take; they take milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);
/// They say little.
const OUTPUT_BYTES_MAX: usize = 4 * 1024;

/// Each of these must fail, but for the last two, which must not. Only what the
/// shell does itself is used, so that one process is enough.
const ATTEMPTS: &str = r#"
tell() { printf '%s\n' "$1"; }
{ : > "$OUTSIDE/written"; } 2>/dev/null && tell "it could write a file outside"
{ read -r line < "$OUTSIDE/secret"; } 2>/dev/null && tell "it could read a file outside"
{ read -r line < "/proc/$RUNNER/environ"; } 2>/dev/null && tell "it could read the environment of the runner"
kill -0 "$RUNNER" 2>/dev/null && tell "it could send the runner signals"
interfaces=0
while read -r line; do case $line in lo:*|*'|'*) ;; *) interfaces=1 ;; esac; done < /proc/self/net/dev
message=$( { exec 3<>/dev/tcp/127.0.0.1/9; } 2>&1 )
case $interfaces$message in 0*|*ermitted*) ;; *) tell "it could reach the network" ;; esac
{ : > "$INSIDE/written"; } 2>/dev/null || tell "it could not write a file in the workspace"
tell done
"#;

/// Whether `tier` works, as it was found the first time it was asked.
pub async fn works(tier: Tier) -> Result<(), String> {
    let known = match tier {
        Tier::Namespaces => &NAMESPACES,
        Tier::Landlock => &LANDLOCK,
    };
    known.get_or_init(|| attempt(tier)).await.clone()
}

async fn attempt(tier: Tier) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("the attempts cannot be prepared: {error}");
    let site = tempfile::Builder::new()
        .prefix("agent-sandbox-")
        .tempdir()
        .map_err(failed)?;
    let root = site.path().canonicalize().map_err(failed)?;
    let place = |name: &str| -> Result<PathBuf, String> {
        let path = root.join(name);
        std::fs::create_dir(&path).map_err(failed)?;
        Ok(path)
    };
    let (workspace, private, outside) = (place("inside")?, place("private")?, place("outside")?);
    std::fs::write(outside.join("secret"), "secret\n").map_err(failed)?;
    let grounds = Grounds {
        workspace,
        private,
        path: "/usr/bin:/bin".to_owned(),
        ..Grounds::default()
    };
    let sandbox = Sandbox::build(tier, &SandboxOptions::default(), grounds.clone())?;
    let ran = capture(
        command(&grounds, &outside, Arc::new(sandbox)),
        OUTPUT_BYTES_MAX,
        &CancellationToken::new(),
    )
    .await
    .map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&ran.output);
    let leaked = outside.join("written").exists();
    match (ran.ending, said.trim()) {
        (Ending::Exited(0), "done") if !leaked => Ok(()),
        (Ending::Exited(0), said) => Err(said
            .lines()
            .find(|line| *line != "done")
            .unwrap_or("it could write a file outside")
            .to_owned()),
        (ending, _) => {
            let errors = String::from_utf8_lossy(&ran.errors);
            let why = errors.lines().next().unwrap_or_default().trim().to_owned();
            Err(if why.is_empty() {
                format!("a command in it ended with {ending:?}")
            } else {
                why
            })
        }
    }
}

fn command(grounds: &Grounds, outside: &Path, sandbox: Arc<dyn Confinement>) -> CommandSpec {
    let runner = std::process::id().to_string();
    CommandSpec {
        program: "bash".into(),
        args: vec!["--norc".into(), "-c".into(), ATTEMPTS.into()],
        cwd: grounds.workspace.clone(),
        env: vec![
            ("PATH".into(), grounds.path.clone().into()),
            ("OUTSIDE".into(), outside.into()),
            ("INSIDE".into(), grounds.workspace.clone().into()),
            ("RUNNER".into(), runner.into()),
        ],
        stdin: None,
        streams: Streams::Apart,
        timeout: Some(PATIENCE),
        confinement: Some(sandbox),
    }
}
