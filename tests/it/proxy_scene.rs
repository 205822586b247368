//! The sandbox's proxy with servers of this machine behind it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::sandbox::proxy::{Hosts, Proxy, ProxyOptions, Refusal};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Awaits something that must come.
pub(crate) async fn soon<T>(waiting: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .expect("it takes too long")
}

/// A server that notes what it gets and answers it all with the same.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    heard: mpsc::Receiver<Vec<u8>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers each connection's first bytes with `reply`, and closes.
    pub(crate) async fn start(reply: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, heard) = mpsc::channel(16);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let heard = converse(stream, reply).await;
                if sender.send(heard).await.is_err() {
                    break;
                }
            }
        });
        Self {
            address,
            heard,
            _tasks: tasks,
        }
    }

    /// What the next connection brought.
    pub(crate) async fn heard(&mut self) -> String {
        let heard = soon(self.heard.recv()).await.unwrap();
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// Whether nobody came.
    pub(crate) fn is_untouched(&mut self) -> bool {
        self.heard.try_recv().is_err()
    }
}

async fn converse(mut stream: TcpStream, reply: &[u8]) -> Vec<u8> {
    let mut heard = Vec::new();
    while !is_whole(&heard) {
        if stream.read_buf(&mut heard).await.unwrap_or(0) == 0 {
            break;
        }
    }
    let _ = stream.write_all(reply).await;
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut heard).await;
    heard
}

/// Whether a request is there with a body of the length that it says; what is no
/// request is taken as it comes.
fn is_whole(heard: &[u8]) -> bool {
    let text = String::from_utf8_lossy(heard);
    if !text.contains("HTTP/1.") {
        return !heard.is_empty();
    }
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

/// A proxy, and the directory of its socket.
pub(crate) struct Scene {
    pub(crate) proxy: Proxy,
    pub(crate) lookups: Arc<AtomicUsize>,
    refusals: mpsc::Receiver<Refusal>,
    _place: TempDir,
}

impl Scene {
    /// A proxy for these hosts. Names ending in `.example` lead to `leads_to`, each
    /// look-up to the next of them.
    pub(crate) fn new(hosts: &[&str], leads_to: &[&str]) -> Self {
        Self::with(hosts, leads_to, |_| {})
    }

    /// The same with other options.
    pub(crate) fn with(
        hosts: &[&str],
        leads_to: &[&str],
        change: impl FnOnce(&mut ProxyOptions),
    ) -> Self {
        let place = tempfile::tempdir().unwrap();
        let lookups = Arc::new(AtomicUsize::new(0));
        let leads_to: Vec<Vec<SocketAddr>> = leads_to
            .iter()
            .map(|list| {
                list.split(' ')
                    .map(|one| SocketAddr::new(one.parse().unwrap(), 9))
            })
            .map(Iterator::collect)
            .collect();
        let counter = Arc::clone(&lookups);
        let mut options = ProxyOptions {
            resolve: Arc::new(move |name, _port| {
                let count = counter.fetch_add(1, Ordering::SeqCst);
                let known = name.ends_with(".example");
                let found = leads_to.get(count % leads_to.len().max(1)).cloned();
                let found = found.filter(|_| known);
                Box::pin(async move {
                    found.ok_or_else(|| std::io::Error::other("no such name in this test"))
                })
            }),
            ..ProxyOptions::default()
        };
        change(&mut options);
        let hosts = Hosts::parse(hosts.iter().copied()).unwrap();
        let (proxy, refusals) = Proxy::start(hosts, &place.path().join("proxy"), options).unwrap();
        Self {
            proxy,
            lookups,
            refusals,
            _place: place,
        }
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> UnixStream {
        UnixStream::connect(self.proxy.socket()).await.unwrap()
    }

    /// Everything that it answers to `request`.
    pub(crate) async fn ask(&self, request: &str) -> String {
        ask_at(self.proxy.socket(), request.as_bytes()).await
    }

    /// What was told of refusals since the last time, as `host:port`.
    pub(crate) fn refused(&mut self) -> Vec<String> {
        let told = std::iter::from_fn(|| self.refusals.try_recv().ok());
        told.map(|refusal| refusal.target).collect()
    }
}

async fn ask_at(socket: &Path, request: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = Vec::new();
    soon(stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of an answer.
pub(crate) fn status(answer: &str) -> u16 {
    let line = answer.lines().next().unwrap_or_default();
    let status = line.split(' ').nth(1).unwrap_or_default();
    status
        .parse()
        .unwrap_or_else(|_| panic!("no answer: {answer:?}"))
}
