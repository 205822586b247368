//! The inner end of the way out: runs in the sandbox, in place of the command
//! that it starts, and passes connections on to the proxy outside.

use std::convert::Infallible;
use std::ffi::OsString;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock;
use crate::process::{Inherited, SpawnError};

/// The variables by which programs learn of a proxy.
pub const VARIABLES: [&str; 6] = [
    "ALL_PROXY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "all_proxy",
    "http_proxy",
    "https_proxy",
];
/// Connections at once. More wait.
const CONNECTIONS_MAX: usize = 128;
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// What others may send to a process group that our command has to answer.
const SIGNALS: [SignalKind; 4] = [
    SignalKind::hangup(),
    SignalKind::interrupt(),
    SignalKind::quit(),
    SignalKind::terminate(),
];

/// Why a command could not be run behind a proxy.
#[derive(Debug, thiserror::Error)]
pub enum ForwardError {
    /// There is no way to listen.
    #[error("cannot listen for the command's connections: {0}")]
    Listen(#[source] io::Error),
    /// The command could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Its end is unknown.
    #[error("cannot wait for the command: {0}")]
    Wait(#[source] io::Error),
}

/// Runs `program` with the address of a proxy in its environment and passes the
/// connections to that on to `socket`, until the program ends. A signal to the
/// process group is the program's to answer. Gives the program's status, as a
/// shell would.
///
/// # Errors
/// When it cannot listen, or the program cannot be started.
pub async fn forward(
    socket: &Path,
    program: &OsString,
    args: &[OsString],
) -> Result<i32, ForwardError> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await
        .map_err(ForwardError::Listen)?;
    let address = listener.local_addr().map_err(ForwardError::Listen)?;
    let url = format!("http://{address}");
    let env = VARIABLES.map(|name| (name.to_owned(), url.clone()));
    // Once listened to, they no longer end this process.
    let _ignored: Vec<_> = SIGNALS.into_iter().map(signal).collect();
    let mut command = Inherited::spawn(program, args, &env)?;
    tokio::select! {
        status = command.status() => status.map_err(ForwardError::Wait),
        never = pass_on(listener, socket) => match never {},
    }
}

async fn pass_on(listener: TcpListener, socket: &Path) -> Infallible {
    let never = CancellationToken::new();
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < CONNECTIONS_MAX => match accepted {
                Ok((client, _)) => {
                    open.spawn(join(client, socket.to_owned()));
                }
                // There is no room for another one now.
                Err(_) => {
                    clock::sleep(ACCEPT_PAUSE, &never).await;
                }
            },
        }
    }
}

/// The proxy decides when a connection was silent for too long.
async fn join(mut client: TcpStream, socket: PathBuf) {
    let _ = client.set_nodelay(true);
    if let Ok(mut proxy) = UnixStream::connect(socket).await {
        let _ = tokio::io::copy_bidirectional(&mut client, &mut proxy).await;
    }
}
