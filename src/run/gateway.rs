//! The way out of a job's sandbox to the hosts that its task lists.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::event::{Emission, EventKind, Place, Warning};
use crate::model::Proxy as RunnerProxy;
use crate::sandbox::proxy::{Hosts, Proxy, ProxyOptions, RecentRefusals, Refusal, Route, Upstream};

use super::environment::Environment;

/// A proxy that runs for one job, and what tells of its refusals.
#[derive(Debug)]
pub(super) struct Gateway {
    proxy: Proxy,
    teller: JoinSet<()>,
}

impl Gateway {
    /// Opens the way to `hosts` behind `socket`. Refusals become warnings of the
    /// job at `place`.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub(super) fn open(
        hosts: Hosts,
        socket: &Path,
        environment: &Environment,
        events: mpsc::Sender<Emission>,
        place: Place,
    ) -> io::Result<Self> {
        let options = ProxyOptions {
            route: route(environment),
            ..ProxyOptions::default()
        };
        let (proxy, refusals) = Proxy::start(hosts, socket, options)?;
        let mut teller = JoinSet::new();
        teller.spawn(tell(refusals, events, place));
        Ok(Self { proxy, teller })
    }

    /// The hosts that were refused lately.
    pub(super) fn recent_refusals(&self) -> RecentRefusals {
        self.proxy.recent_refusals()
    }
}

/// Closes every connection of a gateway, if there is one, and waits until all
/// refusals are told.
pub(super) async fn close(gateway: Option<Gateway>) {
    if let Some(Gateway { proxy, mut teller }) = gateway {
        proxy.stop().await;
        while teller.join_next().await.is_some() {}
    }
}

async fn tell(mut refusals: mpsc::Receiver<Refusal>, events: mpsc::Sender<Emission>, place: Place) {
    while let Some(Refusal { reason, .. }) = refusals.recv().await {
        let kind = EventKind::Warning(Warning {
            code: "network_denied".to_owned(),
            message: format!("denied: {reason}"),
        });
        let place = place.clone();
        // A run that no longer listens ends by itself.
        let _ = events.send(Emission { place, kind }).await;
    }
}

/// The runner's own proxy, by the variables that name it.
fn route(environment: &Environment) -> Route {
    let proxies = environment.proxies();
    Arc::new(move |url| match proxies.on_the_way_to(url) {
        Ok(proxy) => proxy.as_ref().map(upstream).transpose(),
        Err(error) => Err(error.message),
    })
}

fn upstream(proxy: &RunnerProxy) -> Result<Upstream, String> {
    if proxy.is_encrypted() {
        return Err(format!(
            "the proxy of the runner, {}, is reached by https, which the way out of a sandbox \
             does not speak; name one by http",
            proxy.shown()
        ));
    }
    let (host, port) = proxy.address();
    Ok(Upstream {
        host,
        port,
        authorization: proxy.authorization(),
    })
}
