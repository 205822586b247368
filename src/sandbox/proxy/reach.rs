//! The connection to a server that is allowed: its addresses are looked at
//! before one of them is connected to.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::hosts::{Host, TLS_PORT, Target};
use super::request::HEAD_BYTES_MAX;
use super::{Shared, Upstream};
use crate::clock;

/// Why a server is not reached.
#[derive(Debug)]
pub(super) enum Unreached {
    /// It must not be.
    Refused(String),
    /// It cannot be.
    Failed(String),
    /// It was waited for in vain.
    TimedOut,
}

/// A way to a server.
pub(super) struct Way {
    pub(super) stream: TcpStream,
    /// The proxy that takes requests on it, when no tunnel was asked of it.
    pub(super) via: Option<Upstream>,
    /// What a server said already.
    pub(super) early: Vec<u8>,
}

/// What is wanted of a proxy on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passage {
    /// Bytes go through.
    Tunnel,
    /// It forwards one request.
    Forward,
}

/// Awaits `waiting`, for `limit` at most.
pub(super) async fn within<T>(limit: Duration, waiting: impl Future<Output = T>) -> Option<T> {
    let never = CancellationToken::new();
    tokio::select! {
        biased;
        done = waiting => Some(done),
        _ = clock::sleep(limit, &never) => None,
    }
}

/// Asks the system for the addresses of a name.
pub(super) async fn resolve(name: String, port: u16) -> io::Result<Vec<SocketAddr>> {
    let found = tokio::net::lookup_host((name, port)).await?;
    Ok(found.collect())
}

/// Connects to `target`, which the list allows.
pub(super) async fn connect(
    target: &Target,
    passage: Passage,
    shared: &Shared,
) -> Result<Way, Unreached> {
    let limit = shared.options.connect_timeout;
    let connecting = async {
        let scheme = match target.port {
            TLS_PORT => "https",
            _ => "http",
        };
        let upstream = (shared.options.route)(&format!("{scheme}://{target}/"));
        match upstream.map_err(Unreached::Failed)? {
            Some(upstream) => chained(target, upstream, passage, shared).await,
            None => {
                let addresses = addresses(target, shared).await?;
                let stream = dial(&addresses).await?;
                Ok(Way {
                    stream,
                    via: None,
                    early: Vec::new(),
                })
            }
        }
    };
    within(limit, connecting)
        .await
        .unwrap_or(Err(Unreached::TimedOut))
}

/// The addresses of `target`, each of which may be connected to.
async fn addresses(target: &Target, shared: &Shared) -> Result<Vec<SocketAddr>, Unreached> {
    let found = match &target.host {
        Host::Address(address) => vec![SocketAddr::new(*address, target.port)],
        Host::Name(name) => look_up(name, target.port, shared).await?,
    };
    let inside = |address: &IpAddr| !shared.hosts.admits(&target.host, *address);
    match found.iter().map(SocketAddr::ip).find(inside) {
        Some(address) => Err(Unreached::Refused(format!(
            "{} leads to {address}, which is no address of the Internet; if that is meant, list \
             the address (or its private network, as 10.0.0.0/8) in `sandbox.network` too",
            target.host
        ))),
        None => Ok(found),
    }
}

async fn look_up(name: &str, port: u16, shared: &Shared) -> Result<Vec<SocketAddr>, Unreached> {
    let failed = |why: &dyn std::fmt::Display| {
        Unreached::Failed(format!("the name {name} cannot be resolved: {why}"))
    };
    let _turn = shared.lookups.acquire().await;
    let found = (shared.options.resolve)(name.to_owned(), port).await;
    let mut found = found.map_err(|error| failed(&error))?;
    // Only the address is the resolver's to say.
    found.iter_mut().for_each(|address| address.set_port(port));
    match found.is_empty() {
        true => Err(failed(&"it has no address")),
        false => Ok(found),
    }
}

/// Connects to the first address that answers.
async fn dial(addresses: &[SocketAddr]) -> Result<TcpStream, Unreached> {
    let mut failure = "there is no address".to_owned();
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failure = format!("cannot connect to {address}: {error}"),
        }
    }
    Err(Unreached::Failed(failure))
}

/// Goes through the runner's own proxy.
async fn chained(
    target: &Target,
    upstream: Upstream,
    passage: Passage,
    shared: &Shared,
) -> Result<Way, Unreached> {
    let addresses = match upstream.host.parse::<IpAddr>() {
        Ok(address) => vec![SocketAddr::new(address, upstream.port)],
        Err(_) => look_up(&upstream.host, upstream.port, shared).await?,
    };
    let mut stream = dial(&addresses).await?;
    if passage == Passage::Forward {
        return Ok(Way {
            stream,
            via: Some(upstream),
            early: Vec::new(),
        });
    }
    let lost =
        |error: io::Error| Unreached::Failed(format!("the proxy of the runner failed: {error}"));
    let login = match &upstream.authorization {
        Some(login) => format!("Proxy-Authorization: {login}\r\n"),
        None => String::new(),
    };
    let ask = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n");
    stream.write_all(ask.as_bytes()).await.map_err(lost)?;
    let mut answer = Vec::new();
    loop {
        if let Some(end) = end_of_head(&answer) {
            let early = answer.split_off(end);
            return match status(&answer) {
                Some(200..300) => Ok(Way {
                    stream,
                    via: None,
                    early,
                }),
                Some(status) => Err(Unreached::Failed(format!(
                    "the proxy of the runner answered {status}"
                ))),
                None => Err(Unreached::Failed(
                    "the proxy of the runner does not speak HTTP".to_owned(),
                )),
            };
        }
        let read = stream.read_buf(&mut answer).await.map_err(lost)?;
        if read == 0 || answer.len() > HEAD_BYTES_MAX {
            return Err(Unreached::Failed(
                "the proxy of the runner gave no whole answer".to_owned(),
            ));
        }
    }
}

fn end_of_head(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some(end + 4)
}

fn status(head: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(head.get(..12)?).ok()?;
    let code = line
        .strip_prefix("HTTP/1.1 ")
        .or_else(|| line.strip_prefix("HTTP/1.0 "))?;
    code.parse().ok()
}
