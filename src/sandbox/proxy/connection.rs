//! One connection of a client to the proxy: what it asks for, whether it may,
//! and the answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::Shared;
use super::hello::Hello;
use super::hosts::{Host, TLS_PORT, Target};
use super::reach::{self, Passage, Unreached, Way, within};
use super::relay;
use super::request::{BadRequest, Forward, HEAD_BYTES_MAX, Request};

/// What is still read of a client that was refused, so that it hears why.
const DRAIN_BYTES_MAX: u64 = 256 * 1024;
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);
/// A fatal alert of TLS: access denied.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// Why a client gets nothing but an answer of ours.
struct Answer {
    status: u16,
    text: String,
}

/// Serves one connection to its end.
pub(super) async fn serve(mut client: UnixStream, shared: Arc<Shared>) {
    let mut buffer = Vec::with_capacity(HEAD_BYTES_MAX);
    let limit = shared.options.head_timeout;
    let asked = within(limit, ask(&mut client, &mut buffer)).await;
    let request = match asked {
        Some(Ok(Some(request))) => request,
        Some(Ok(None)) => return,
        Some(Err(BadRequest { status, why })) => {
            let text = why.to_owned();
            return answer(client, Answer { status, text }).await;
        }
        None => {
            let text = "the head of the request took too long".to_owned();
            return answer(client, Answer { status: 408, text }).await;
        }
    };
    if let Err(refused) = permit(&request, &shared) {
        return answer(client, refused).await;
    }
    let passage = match request {
        Request::Tunnel(_) => Passage::Tunnel,
        Request::Forward(_) => Passage::Forward,
    };
    match reach::connect(request.target(), passage, &shared).await {
        Err(why) => answer(client, unreached(request.target(), why, &shared)).await,
        Ok(way) => match request {
            Request::Tunnel(target) => tunnel(client, buffer, way, &target, &shared).await,
            Request::Forward(request) => forward(client, buffer, way, &request, &shared).await,
        },
    }
}

/// Reads the request; what came behind it stays in `buffer`. None when the
/// client went away.
async fn ask(client: &mut UnixStream, buffer: &mut Vec<u8>) -> Result<Option<Request>, BadRequest> {
    loop {
        if let Some((request, bytes)) = Request::read(buffer)? {
            buffer.drain(..bytes);
            return Ok(Some(request));
        }
        match client.read_buf(buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Ok(None),
        }
    }
}

/// Looks the request up in the list.
fn permit(request: &Request, shared: &Shared) -> Result<(), Answer> {
    let target = request.target();
    let refused = |reason: String| {
        shared.note(target, &reason);
        Answer {
            status: 403,
            text: reason,
        }
    };
    if !shared.hosts.allows(target) {
        let Target { host, port } = target;
        let entry = match *port {
            80 | TLS_PORT => host.to_string(),
            _ => target.to_string(),
        };
        return Err(refused(format!(
            "{target} is not listed in `sandbox.network` of the task; `{entry}` would allow it"
        )));
    }
    let is_tunnel = matches!(request, Request::Tunnel(_));
    if is_tunnel && target.port != TLS_PORT && !shared.hosts.names_port(target) {
        return Err(refused(format!(
            "a tunnel to {target} could carry requests to other hosts; ask for http://{}/ \
             without CONNECT, or list `{target}` in `sandbox.network`",
            target.host
        )));
    }
    Ok(())
}

fn unreached(target: &Target, why: Unreached, shared: &Shared) -> Answer {
    let (status, text) = match why {
        Unreached::Refused(reason) => {
            shared.note(target, &reason);
            (403, reason)
        }
        Unreached::Failed(reason) => (502, reason),
        Unreached::TimedOut => (504, format!("{target} did not answer in time")),
    };
    Answer { status, text }
}

/// Bytes both ways. Port 443 is for TLS with the host that was asked for.
async fn tunnel(
    mut client: UnixStream,
    mut first: Vec<u8>,
    mut way: Way,
    target: &Target,
    shared: &Shared,
) {
    let ready = b"HTTP/1.1 200 Connection established\r\n\r\n";
    if client.write_all(ready).await.is_err() {
        return;
    }
    if target.port == TLS_PORT {
        let limit = shared.options.head_timeout;
        let greeting = within(limit, greet(&mut client, &mut first)).await;
        let verdict = greeting.map(|hello| judge(&hello, &target.host));
        let why = match verdict {
            Some(Ok(())) => None,
            Some(Err(why)) => Some(why),
            None => Some("it sent nothing of TLS in time".to_owned()),
        };
        if let Some(why) = why {
            shared.note(target, &format!("a tunnel to {target} was closed: {why}"));
            let _ = client.write_all(&ACCESS_DENIED).await;
            return drain(client).await;
        }
    }
    let sent = async {
        client.write_all(&way.early).await?;
        way.stream.write_all(&first).await
    };
    if sent.await.is_ok() {
        relay::tunnel(client, way.stream, shared.options.idle_timeout).await;
    }
}

/// Reads the first message of TLS, which stays in `buffer`.
async fn greet(client: &mut UnixStream, buffer: &mut Vec<u8>) -> Hello {
    loop {
        match Hello::read(buffer) {
            Hello::Partial => {}
            known => return known,
        }
        match client.read_buf(buffer).await {
            Ok(1..) => {}
            Ok(0) | Err(_) => return Hello::Other,
        }
    }
}

/// Whether a client that says this wants `host`. Addresses are not named.
fn judge(hello: &Hello, host: &Host) -> Result<(), String> {
    match hello {
        Hello::Tls(None) if matches!(host, Host::Address(_)) => Ok(()),
        Hello::Tls(None) => Err("its first message names no server".to_owned()),
        Hello::Tls(Some(name)) => match Host::parse(name) {
            Ok(named) if named == *host => Ok(()),
            Ok(named) => Err(format!("its first message names {named}")),
            Err(_) => Err("its first message names what is no host".to_owned()),
        },
        Hello::Partial | Hello::Other => Err("it does not speak TLS".to_owned()),
    }
}

/// One request and its answer.
async fn forward(
    client: UnixStream,
    mut body: Vec<u8>,
    mut way: Way,
    request: &Forward,
    shared: &Shared,
) {
    // What stands behind the body is another request, for whom nobody knows.
    let wanted = usize::try_from(request.body_bytes).unwrap_or(usize::MAX);
    body.truncate(wanted);
    let left = request.body_bytes.saturating_sub(body.len() as u64);
    let mut head = request.head(way.via.as_ref());
    head.append(&mut body);
    if way.stream.write_all(&head).await.is_ok() {
        relay::exchange(client, way.stream, left, shared.options.idle_timeout).await;
    }
}

/// Answers in our own words, and closes.
async fn answer(mut client: UnixStream, answer: Answer) {
    let Answer { status, text } = answer;
    let phrase = match status {
        403 => "Forbidden",
        408 => "Request Timeout",
        411 => "Length Required",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "Bad Request",
    };
    let body = format!("agent: {text}\n");
    let head = format!(
        "HTTP/1.1 {status} {phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if client.write_all((head + &body).as_bytes()).await.is_ok() {
        drain(client).await;
    }
}

/// Reads a little more before the connection is closed: a client that still
/// sends would otherwise see an error instead of the answer.
async fn drain(mut client: UnixStream) {
    let _ = client.shutdown().await;
    let mut rest = client.take(DRAIN_BYTES_MAX);
    within(
        DRAIN_TIMEOUT,
        tokio::io::copy(&mut rest, &mut tokio::io::sink()),
    )
    .await;
}
