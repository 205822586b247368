//! What stands between the program and the model server: an encrypted front
//! and a proxy. Both pass bytes on and live on a thread of their own.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

/// An authority of our own.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// Its certificate.
    pub pem: String,
}

/// Until when a certificate holds.
#[derive(Clone, Copy, PartialEq)]
pub enum Age {
    /// For long.
    Valid,
    /// It is long over.
    Expired,
}

impl Authority {
    /// One that nobody knows.
    pub fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self {
            issuer: Issuer::new(params, key),
            pem,
        }
    }

    fn server(&self, host: &str, age: Age) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
        if age == Age::Expired {
            params.not_before = date_time_ymd(2001, 1, 1);
            params.not_after = date_time_ymd(2002, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap()
    }
}

/// A listener on a thread of its own; ends when it is dropped.
pub struct Relay {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    thread: Option<JoinHandle<()>>,
    alive: Option<DropGuard>,
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.alive.take());
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(!matches!(ended, Some(Err(_))) || std::thread::panicking());
    }
}

impl Relay {
    /// Speaks TLS as `host` and passes on what it hears to `backend`, a URL.
    pub fn tls(authority: &Authority, host: &str, age: Age, backend: &str) -> Self {
        let acceptor = TlsAcceptor::from(Arc::new(authority.server(host, age)));
        let backend = address(backend);
        Self::start(move |client, _| {
            let acceptor = acceptor.clone();
            async move {
                // A client that does not trust us says so and leaves.
                let Ok(mut client) = acceptor.accept(client).await else {
                    return;
                };
                let mut server = TcpStream::connect(backend).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        })
    }

    /// A proxy that leads every tunnel to `backend`, a URL. With a login it
    /// knows only those who give it: `Basic dXNlcjpwYXNz`.
    pub fn proxy(login: Option<&str>, backend: &str) -> Self {
        let login = login.map(|login| format!("proxy-authorization: {}", login.to_lowercase()));
        let backend = address(backend);
        Self::start(move |mut client, heads| {
            let login = login.clone();
            async move {
                let Some(head) = head(&mut client).await else {
                    return;
                };
                let known = login.is_none_or(|login| head.to_lowercase().contains(&login));
                heads.lock().unwrap().push(head);
                if !known {
                    let asks = "HTTP/1.1 407 Who\r\nproxy-authenticate: Basic realm=\"x\"\r\ncontent-length: 0\r\n\r\n";
                    let _ = client.write_all(asks.as_bytes()).await;
                    return;
                }
                let stands = client.write_all(b"HTTP/1.1 200 Fine\r\n\r\n").await;
                stands.unwrap();
                let mut server = TcpStream::connect(backend).await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        })
    }

    fn start<F, S>(serve: S) -> Self
    where
        F: Future<Output = ()> + 'static,
        S: Fn(TcpStream, Arc<Mutex<Vec<String>>>) -> F + Send + 'static,
    {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let theirs = Arc::clone(&heads);
        let over = CancellationToken::new();
        let alive = over.clone().drop_guard();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let accepting = async {
                let listener = TcpListener::from_std(listener).unwrap();
                let mut open = JoinSet::new();
                while let Ok((client, _)) = listener.accept().await {
                    open.spawn_local(serve(client, Arc::clone(&theirs)));
                }
            };
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, over.run_until_cancelled(accepting));
        });
        Self {
            address,
            heads,
            thread: Some(thread),
            alive: Some(alive),
        }
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The heads of the requests for a tunnel.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

fn address(url: &str) -> SocketAddr {
    url.strip_prefix("http://").unwrap().parse().unwrap()
}

async fn head(client: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(client.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}
