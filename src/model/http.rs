//! The only socket to a provider: one POST, and its answer as stream events.
//!
//! No redirect is followed, because the key would travel with it. Every wait and
//! every size is bounded. The HTTP client is made on first use; without TLS on
//! the way it loads no certificates, and to this machine it asks no proxy.
//!
//! A connection stays open for the next call. When the server closes it in the
//! meantime and the request meets that, the request is sent again at once, on a
//! new connection. One that dies without a word is given up after
//! 30 s without an acknowledgement.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use reqwest::header::HeaderValue;
use reqwest::{RequestBuilder, Response};

use crate::clock;
use crate::model::body::ReplyBody;
use crate::model::call::{Call, key_hint, no_header, no_key};
use crate::model::cassette::{Playback, Taping};
use crate::model::classify::http_error;
use crate::model::client::ClientOptions;
use crate::model::description::Model;
use crate::model::endpoint;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::proxy::Proxy;
use crate::model::stream::{HttpReply, Incoming};
use crate::model::tls;
use crate::model::transport::{broken, hung_up, locked, timed_out, unsent};

/// The most that is read of an answer that is an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// The longest time spent on reading it.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The most connections that are taken to be left over: a server that hangs up on
/// everybody is not asked again and again.
const KEPT_MAX: usize = 2;
/// What a wait that the provider asks for is kept as.
const RETRY_AFTER_MS: &str = "retry-after-ms";
/// Where a redirect leads; kept only as far as it is told.
const LOCATION: &str = "location";
/// Headers that may hold the provider's id of the request.
const REQUEST_ID_HEADERS: [&str; 4] = ["request-id", "x-request-id", "x-amzn-requestid", "cf-ray"];

/// How to reach one model.
pub(super) struct Endpoint {
    key: Option<String>,
    options: ClientOptions,
    connector: OnceLock<Connector>,
}

/// What opens connections.
struct Connector {
    client: reqwest::Client,
    proxy: Option<Proxy>,
    /// Connections that may be left over from earlier calls.
    kept: AtomicUsize,
}

impl Endpoint {
    /// Checks what can be checked without a connection.
    pub(super) fn new(
        model: &Model,
        key: Option<String>,
        options: ClientOptions,
    ) -> Result<Self, ModelError> {
        endpoint::check(&model.base_url).map_err(|reason| {
            ModelError::new(
                ModelErrorKind::Setup,
                format!(
                    "the base URL of {} cannot be used: {reason}",
                    model.full_id()
                ),
            )
        })?;
        // A key read from a file or a CI variable often ends with a line break.
        let key = key
            .map(|key| key.trim().to_owned())
            .filter(|key| !key.is_empty());
        match &key {
            None if !model.key_optional => return Err(no_key(model)),
            Some(key) if HeaderValue::from_str(key).is_err() => {
                return Err(ModelError::new(
                    ModelErrorKind::Auth,
                    format!(
                        "the key for {} holds characters that no key has",
                        model.provider
                    ),
                )
                .with_hint(key_hint(model)));
            }
            _ => {}
        }
        let unset = model.extras.headers.iter().find(|one| one.value.is_none());
        if let Some(header) = unset {
            return Err(no_header(model, &header.name, header.env.as_deref()));
        }
        Ok(Self {
            key,
            options,
            connector: OnceLock::new(),
        })
    }

    /// Sends a request's body and waits for the head of the answer. What comes
    /// is taken down by `taping`.
    pub(super) async fn send(
        &self,
        model: &Model,
        body: Bytes,
        mut taping: Option<Taping>,
    ) -> Result<HttpReply, ModelError> {
        let call = Call::new(model, self.key.as_deref());
        let secrets = call.secrets();
        if let Some(taping) = &mut taping {
            taping.hide(&secrets);
        }
        match self.open(&call, body).await {
            Ok(response) => self.answered(response, model, secrets, taping).await,
            Err(error) => {
                let error = without_secrets(error, &secrets);
                if let Some(taping) = &mut taping {
                    taping.failed(&error);
                }
                Err(error)
            }
        }
    }

    /// What becomes of an answer whose head is there.
    async fn answered(
        &self,
        response: Response,
        model: &Model,
        secrets: Vec<String>,
        mut taping: Option<Taping>,
    ) -> Result<HttpReply, ModelError> {
        let head = Head::of(&response);
        if let Some(taping) = &mut taping {
            taping.head(head.status, &head.headers);
        }
        if head.is_success() {
            let incoming = Incoming::Network(response, taping.map(Box::new));
            let body = ReplyBody::new(model);
            let request_id = head.request_id();
            let reply = HttpReply::new(incoming, body, &self.options, secrets);
            return Ok(reply.identified(request_id));
        }
        let body = error_body(response).await;
        if let Some(taping) = &mut taping {
            taping.body(&body);
            taping.ended();
        }
        Err(without_secrets(refused(&head, &body, model), &secrets))
    }

    async fn open(&self, call: &Call<'_>, body: Bytes) -> Result<Response, ModelError> {
        let model = call.model;
        let connector = self.connector(model)?;
        let proxy = connector.proxy.as_ref();
        let request = connector
            .client
            .post(call.address())
            .headers(call.headers()?)
            .body(body);
        let sending = connector.send(request);
        let limit = self.options.header_timeout;
        let response = tokio::time::timeout(limit, sending)
            .await
            .map_err(|_| timed_out("no answer", limit, "settings.response_timeout"))?
            .map_err(|error| unsent(error, model, proxy))?;
        self.options.activity.touch();
        if let (407, Some(proxy)) = (response.status().as_u16(), proxy) {
            return Err(locked(proxy));
        }
        Ok(response)
    }

    fn connector(&self, model: &Model) -> Result<&Connector, ModelError> {
        if let Some(connector) = self.connector.get() {
            return Ok(connector);
        }
        let proxy = self.options.proxies.on_the_way_to(&model.base_url)?;
        let encrypted =
            model.base_url.starts_with("https:") || proxy.as_ref().is_some_and(Proxy::is_encrypted);
        let tls = match encrypted {
            true => tls::encrypted(self.options.authorities.as_ref())?,
            false => tls::plain()?,
        };
        let unusable = |error: reqwest::Error| {
            let reason = broken(error).message;
            ModelError::new(
                ModelErrorKind::Setup,
                format!("the HTTP client cannot be built: {reason}"),
            )
        };
        // What the process's environment says of proxies came with the options.
        let mut builder = reqwest::Client::builder()
            .no_proxy()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.options.connect_timeout)
            .user_agent(concat!("agent/", env!("CARGO_PKG_VERSION")))
            .tcp_nodelay(true);
        if let Some(proxy) = &proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy.url().clone()).map_err(unusable)?);
        }
        let client = builder.build().map_err(unusable)?;
        Ok(self.connector.get_or_init(|| Connector {
            client,
            proxy,
            kept: AtomicUsize::new(0),
        }))
    }
}

impl Connector {
    /// Sends the request until it meets a connection that is not left over from
    /// an earlier call. Whether it met such a one cannot be asked: a new one may
    /// have been opened beside it and not used. So each answer counts as a
    /// connection that may be left over, up to a few, and each that turns out to
    /// be closed as one less.
    async fn send(&self, mut request: RequestBuilder) -> reqwest::Result<Response> {
        let count = |change: fn(usize) -> Option<usize>| {
            let changed = self
                .kept
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
            changed.is_ok()
        };
        loop {
            let again = request.try_clone();
            match (request.send().await, again) {
                (Ok(response), _) => {
                    count(|kept| Some((kept + 1).min(KEPT_MAX)));
                    return Ok(response);
                }
                // The server had hung up, and nobody has seen the request.
                (Err(error), Some(again))
                    if hung_up(&error) && count(|kept| kept.checked_sub(1)) =>
                {
                    request = again;
                }
                (Err(error), _) => return Err(error),
            }
        }
    }
}

/// How long a provider asks to wait: `retry-after-ms`, or `retry-after` in
/// seconds or as an HTTP date. A date in the past is now; junk is nothing.
/// `now_ms` counts from the Unix epoch.
pub fn retry_after(ms: Option<&str>, after: Option<&str>, now_ms: i64) -> Option<Duration> {
    let seconds = |text: &str, unit: f64| {
        let value: f64 = text.trim().parse().ok()?;
        // Neither negative nor `nan` is a time; what is too long stays too long.
        (value >= 0.0).then(|| Duration::try_from_secs_f64(value * unit).unwrap_or(Duration::MAX))
    };
    if let Some(delay) = ms.and_then(|text| seconds(text, 0.001)) {
        return Some(delay);
    }
    let after = after?;
    if let Some(delay) = seconds(after, 1.0) {
        return Some(delay);
    }
    let date = httpdate::parse_http_date(after.trim()).ok()?;
    let date = date.duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Duration::from_millis(u64::try_from(now_ms).unwrap_or(0));
    Some(date.saturating_sub(now))
}

/// The answer that a cassette holds, as if it came over the network.
pub(super) fn play(
    model: &Model,
    played: Playback,
    options: &ClientOptions,
) -> Result<HttpReply, ModelError> {
    options.activity.touch();
    let Some((status, headers)) = played.head else {
        return Err(played.failed.unwrap_or_else(|| {
            ModelError::new(ModelErrorKind::Replay, "the recorded call has no answer")
        }));
    };
    let head = Head { status, headers };
    if head.is_success() {
        let chunks = played.body.into_iter().map(Ok);
        let incoming = Incoming::Recorded(chunks.chain(played.failed.map(Err)).collect());
        // What a cassette holds has no secrets.
        let reply = HttpReply::new(incoming, ReplyBody::new(model), options, Vec::new());
        return Ok(reply.identified(head.request_id()));
    }
    Err(refused(&head, &played.body.concat(), model))
}

/// The status of an answer, and those of its headers that matter.
#[derive(Debug, Clone)]
struct Head {
    status: u16,
    headers: BTreeMap<String, String>,
}

impl Head {
    fn of(response: &Response) -> Self {
        let headers = response.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let mut kept: BTreeMap<String, String> = ["content-type"]
            .into_iter()
            .chain(REQUEST_ID_HEADERS)
            .filter_map(|name| Some((name.to_owned(), text(name)?.to_owned())))
            .collect();
        // As a duration: a date would mean another one later.
        let delay = retry_after(
            text("retry-after-ms"),
            text("retry-after"),
            clock::unix_ms(),
        );
        if let Some(delay) = delay {
            kept.insert(RETRY_AFTER_MS.to_owned(), delay.as_millis().to_string());
        }
        let elsewhere = text(LOCATION).and_then(|to| redirected(response, to));
        if let Some(elsewhere) = elsewhere {
            kept.insert(LOCATION.to_owned(), elsewhere);
        }
        Self {
            status: response.status().as_u16(),
            headers: kept,
        }
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The provider's id of the request.
    fn request_id(&self) -> Option<String> {
        let mut names = REQUEST_ID_HEADERS.iter();
        names.find_map(|name| self.headers.get(*name)).cloned()
    }

    fn retry_after(&self) -> Option<Duration> {
        let text = self.headers.get(RETRY_AFTER_MS).map(String::as_str);
        retry_after(text, None, clock::unix_ms())
    }
}

fn without_secrets(mut error: ModelError, secrets: &[String]) -> ModelError {
    for secret in secrets {
        error.scrub(secret);
    }
    error
}

/// Reads the body of an answer that is an error.
async fn error_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = ERROR_BYTES_MAX - body.len();
            body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            if body.len() == ERROR_BYTES_MAX {
                break;
            }
        }
    };
    // What has come until then is all that is needed.
    let _ = tokio::time::timeout(ERROR_BODY_TIMEOUT, read).await;
    body
}

/// What an answer other than 200 says.
fn refused(head: &Head, body: &[u8], model: &Model) -> ModelError {
    let body = String::from_utf8_lossy(body);
    let mut error = http_error(head.status, unframed(&body));
    error.request_id = head.request_id().map(Into::into).or(error.request_id);
    if let Some(elsewhere) = head.headers.get(LOCATION) {
        error.message = format!("{} to {elsewhere}", error.message);
    }
    if error.is_retryable() {
        error.retry_after = head.retry_after().or(error.retry_after);
    }
    if error.kind == ModelErrorKind::Auth {
        error.hints.push(key_hint(model));
    }
    error
}

/// The first event of a body that is a stream of them: some gateways frame
/// their errors like replies.
fn unframed(body: &str) -> &str {
    let first = body.trim_start().strip_prefix("data:");
    first.and_then(|rest| rest.lines().next()).unwrap_or(body)
}

/// Where a redirect leads, without a login and what may be a token.
fn redirected(response: &Response, to: &str) -> Option<String> {
    if !response.status().is_redirection() {
        return None;
    }
    let mut target = response.url().join(to).ok()?;
    target.set_query(None);
    target.set_fragment(None);
    Some(endpoint::without_login(target.as_str()))
}
