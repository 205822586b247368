//! Medians and how they are printed.

use std::time::{Duration, Instant};

/// The middle of the times.
pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// How long `work` takes.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// Prints a row.
pub(crate) fn row(name: &str, time: Duration) {
    println!("  {name:<36} {:>9.3} ms", time.as_secs_f64() * 1e3);
}

/// A client that does only what every client has to do.
pub(crate) fn bare_client() -> reqwest::Client {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .tcp_nodelay(true)
        .build()
        .unwrap()
}

/// The runtime that the program uses.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}
