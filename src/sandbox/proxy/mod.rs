//! The way out of a sandbox that may reach some hosts by name: a filtering HTTP
//! proxy of our own.
//!
//! The commands sit in a network namespace without any route. In it [`forward`]
//! listens on the loopback address and passes what it gets to a unix socket;
//! behind that socket, outside, the [`Proxy`] looks at what is asked for and
//! opens the connection. It takes CONNECT, and plain HTTP in absolute form, one
//! request a connection. Nothing is decrypted: of a tunnel to port 443 only the
//! first message is read, which must be of TLS and name the host of the tunnel.
//!
//! Names are resolved here, once, every address is looked at, and one of those
//! is connected to. Behind a proxy of the runner's own that one resolves, so
//! there the addresses are not seen.

mod address;
mod connection;
mod forward;
mod hello;
mod hosts;
mod reach;
mod relay;
mod request;

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::clock;

pub use address::{Realm, realm};
pub use forward::{ForwardError, VARIABLES, forward};
pub use hello::{HELLO_BYTES_MAX, Hello};
pub use hosts::{Host, Hosts, Target};
pub use request::{BadRequest, Forward, HEAD_BYTES_MAX, Request};

/// The hosts of which a refusal is told; the rest are refused in silence.
const TOLD_MAX: usize = 64;
/// The hosts that are kept for whoever asks next.
const RECENT_MAX: usize = 8;
/// How many names are looked up at once. Each look-up blocks a thread.
const LOOKUPS_MAX: usize = 2;
/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The addresses of a name, for a port.
pub type Resolve =
    Arc<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// The proxy of the runner on the way to a URL, if there is one.
pub type Route = Arc<dyn Fn(&str) -> Result<Option<Upstream>, String> + Send + Sync>;

/// A proxy that has to be asked for everything outside.
#[derive(Clone, PartialEq, Eq)]
pub struct Upstream {
    /// Its host, as the resolver takes it.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// What it wants to hear of us: the value of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

impl std::fmt::Debug for Upstream {
    // The authorization is a login.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Upstream({}:{})", self.host, self.port)
    }
}

/// How the proxy works.
#[derive(Clone)]
pub struct ProxyOptions {
    /// How names are resolved; the system's way.
    pub resolve: Resolve,
    /// The runner's own proxy; none.
    pub route: Route,
    /// How long the head of a request may take, and the first message of TLS;
    /// 10 s.
    pub head_timeout: Duration,
    /// How long a server may take until it is connected; 20 s.
    pub connect_timeout: Duration,
    /// The silence, in both directions, after which a connection is closed;
    /// 2 min.
    pub idle_timeout: Duration,
    /// Connections at once; 128. More wait.
    pub connections_max: usize,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            resolve: Arc::new(|name, port| Box::pin(reach::resolve(name, port))),
            route: Arc::new(|_| Ok(None)),
            head_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(20),
            idle_timeout: Duration::from_secs(120),
            connections_max: 128,
        }
    }
}

/// A host that was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host and the port.
    pub target: String,
    /// Why, and what to do about it.
    pub reason: String,
}

/// What all connections share.
struct Shared {
    hosts: Hosts,
    options: ProxyOptions,
    lookups: Semaphore,
    /// Has room for all that is ever sent.
    told: mpsc::Sender<Refusal>,
    refusals: Arc<Mutex<Refusals>>,
}

#[derive(Debug, Default)]
struct Refusals {
    told: BTreeSet<String>,
    recent: Vec<Refusal>,
}

impl Shared {
    /// Tells of a refusal, once for each host, and keeps it for whoever asks.
    fn note(&self, target: &Target, reason: &str) {
        let refusal = Refusal {
            target: target.to_string(),
            reason: reason.to_owned(),
        };
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        let Refusals { told, recent } = &mut *refusals;
        if recent.len() < RECENT_MAX && !recent.contains(&refusal) {
            recent.push(refusal.clone());
        }
        if told.len() < TOLD_MAX && told.insert(target.host.to_string()) {
            // Without a listener there is nobody to be told.
            let _ = self.told.try_send(refusal);
        }
    }
}

/// The hosts that a proxy refused lately. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RecentRefusals(Arc<Mutex<Refusals>>);

impl RecentRefusals {
    /// What was refused since this was asked last, the first few.
    pub fn take(&self) -> Vec<Refusal> {
        let refusals = self.0.lock();
        std::mem::take(&mut refusals.unwrap_or_else(PoisonError::into_inner).recent)
    }
}

/// A running proxy. Dropped, it ends at once.
pub struct Proxy {
    socket: PathBuf,
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Proxy").field(&self.socket).finish()
    }
}

impl Proxy {
    /// Listens on `socket`, a path of at most 107 bytes in a directory that is
    /// nobody else's, and tells what it refuses, each host once. Needs a tokio
    /// runtime with I/O and time.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn start(
        hosts: Hosts,
        socket: &Path,
        options: ProxyOptions,
    ) -> io::Result<(Self, mpsc::Receiver<Refusal>)> {
        let listener = UnixListener::bind(socket)?;
        std::fs::set_permissions(socket, Permissions::from_mode(0o600))?;
        let (told, refusals) = mpsc::channel(TOLD_MAX);
        let shared = Arc::new(Shared {
            hosts,
            options,
            lookups: Semaphore::new(LOOKUPS_MAX),
            told,
            refusals: Arc::default(),
        });
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(accept(listener, Arc::clone(&shared), stop.clone()));
        let proxy = Self {
            socket: socket.to_owned(),
            shared,
            stop,
            task,
        };
        Ok((proxy, refusals))
    }

    /// The socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// What it refused lately.
    pub fn recent_refusals(&self) -> RecentRefusals {
        RecentRefusals(Arc::clone(&self.shared.refusals))
    }

    /// Closes every connection and takes the socket away.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while self.task.join_next().await.is_some() {}
        let _ = std::fs::remove_file(&self.socket);
    }
}

async fn accept(listener: UnixListener, shared: Arc<Shared>, stop: CancellationToken) {
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < shared.options.connections_max => {
                match accepted {
                    Ok((client, _)) => {
                        open.spawn(connection::serve(client, Arc::clone(&shared)));
                    }
                    // There is no room for another one now.
                    Err(_) => {
                        clock::sleep(ACCEPT_PAUSE, &stop).await;
                    }
                }
            }
        }
    }
    open.shutdown().await;
}
