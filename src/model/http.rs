//! The only socket to a provider: one POST, and its answer as stream events.
//!
//! No redirect is followed, because the key would travel with it. Every wait and
//! every size is bounded. The HTTP client is made on first use; for an endpoint
//! on this machine it loads no certificates and asks no proxy.

use std::error::Error as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use crate::clock;
use crate::model::classify::http_error;
use crate::model::client::ClientOptions;
use crate::model::description::Model;
use crate::model::endpoint;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::stream::HttpReply;
use crate::model::wire;

/// The most that is read of an answer that is an error.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// The longest time spent on reading it.
const ERROR_BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Headers that may hold the provider's id of the request.
const REQUEST_ID_HEADERS: [&str; 4] = ["request-id", "x-request-id", "x-amzn-requestid", "cf-ray"];

/// How to reach one model.
pub(super) struct Endpoint {
    key: Option<String>,
    options: ClientOptions,
    extra_roots: Vec<CertificateDer<'static>>,
    client: OnceLock<reqwest::Client>,
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
                ModelErrorKind::InvalidRequest,
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
        Ok(Self {
            key,
            options,
            extra_roots: Vec::new(),
            client: OnceLock::new(),
        })
    }

    /// Trusts the certificates of a PEM bundle too.
    pub(super) fn trust(&mut self, pem: &[u8]) -> Result<(), ModelError> {
        let bad = |reason: String| {
            ModelError::new(
                ModelErrorKind::Unavailable,
                format!("the bundle of certificates cannot be used: {reason}"),
            )
            .permanent()
        };
        for certificate in CertificateDer::pem_slice_iter(pem) {
            self.extra_roots
                .push(certificate.map_err(|error| bad(error.to_string()))?);
        }
        if self.extra_roots.is_empty() {
            return Err(bad("it holds no certificate".to_owned()));
        }
        Ok(())
    }

    /// Sends a request's body and waits for the head of the answer.
    pub(super) async fn send(&self, model: &Model, body: Bytes) -> Result<HttpReply, ModelError> {
        self.open(model, body)
            .await
            .map_err(|error| self.without_key(error))
    }

    async fn open(&self, model: &Model, body: Bytes) -> Result<HttpReply, ModelError> {
        let call = self
            .client(model)?
            .post(endpoint::join(&model.base_url, &wire::path(model)))
            .headers(self.headers(model)?)
            .body(body)
            .send();
        let limit = self.options.header_timeout;
        let response = tokio::time::timeout(limit, call)
            .await
            .map_err(|_| timed_out("no answer", limit))?
            .map_err(|error| transport_error(error, model))?;
        self.options.activity.touch();
        if !response.status().is_success() {
            return Err(refused(response, model).await);
        }
        Ok(HttpReply::new(
            response,
            wire::decoder(model),
            &self.options,
            self.key.clone(),
        ))
    }

    fn headers(&self, model: &Model) -> Result<HeaderMap, ModelError> {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        headers.insert("accept", HeaderValue::from_static("text/event-stream"));
        for (name, value) in wire::headers(model, self.key.as_deref()) {
            let mut value = HeaderValue::from_str(&value).map_err(|_| {
                ModelError::new(
                    ModelErrorKind::Auth,
                    "the key holds characters that no key has",
                )
            })?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        Ok(headers)
    }

    fn client(&self, model: &Model) -> Result<&reqwest::Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let loopback = endpoint::is_loopback(&model.base_url);
        let plain = loopback && model.base_url.starts_with("http://");
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls(plain)?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.options.connect_timeout)
            .user_agent(concat!("agent/", env!("CARGO_PKG_VERSION")))
            .tcp_nodelay(true);
        if loopback {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| {
            ModelError::new(
                ModelErrorKind::Unavailable,
                format!("the HTTP client cannot be built: {}", reason(&error)),
            )
            .permanent()
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    /// `plain` connections never get as far as TLS, so they need no roots.
    fn tls(&self, plain: bool) -> Result<rustls::ClientConfig, ModelError> {
        let mut roots = rustls::RootCertStore::empty();
        if !plain {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            roots.add_parsable_certificates(self.extra_roots.iter().cloned());
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| {
                ModelError::new(ModelErrorKind::Unavailable, error.to_string()).permanent()
            })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    fn without_key(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = &self.key {
            error.scrub(key);
        }
        error
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

/// The provider's id of a request.
pub(super) fn request_id(headers: &HeaderMap) -> Option<String> {
    REQUEST_ID_HEADERS
        .iter()
        .find_map(|name| headers.get(*name)?.to_str().ok())
        .map(str::to_owned)
}

/// The error of a connection, without the address, which may hold a login.
pub(super) fn broken(error: reqwest::Error) -> ModelError {
    let error = error.without_url();
    let kind = if error.is_timeout() {
        ModelErrorKind::Timeout
    } else {
        ModelErrorKind::Unavailable
    };
    ModelError::new(kind, reason(&error))
}

/// The error of a wait that was too long.
pub(super) fn timed_out(what: &str, limit: Duration) -> ModelError {
    ModelError::new(
        ModelErrorKind::Timeout,
        format!("{what} for {}", seconds_text(limit)),
    )
}

fn seconds_text(limit: Duration) -> String {
    if limit < Duration::from_secs(1) {
        format!("{} ms", limit.as_millis())
    } else {
        format!("{} s", limit.as_secs())
    }
}

fn transport_error(error: reqwest::Error, model: &Model) -> ModelError {
    let host = endpoint::host(&model.base_url);
    let connecting = error.is_connect();
    let untrusted = connecting && is_tls(&error);
    let mut error = broken(error);
    error.message = format!("{host}: {}", error.message);
    if untrusted {
        return error
            .permanent()
            .with_hint("the certificate is not trusted; SSL_CERT_FILE can name more authorities");
    }
    if connecting && model.key_optional {
        return error.with_hint("is the local model server running?");
    }
    error
}

fn is_tls(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if error.is::<rustls::Error>() {
            return true;
        }
        if let Some(inner) = error
            .downcast_ref::<std::io::Error>()
            .and_then(std::io::Error::get_ref)
            && inner.is::<rustls::Error>()
        {
            return true;
        }
        source = error.source();
    }
    false
}

/// An error and its causes in one line, without repetitions.
fn reason(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}

/// Reads what an answer other than 200 says.
async fn refused(mut response: reqwest::Response, model: &Model) -> ModelError {
    let status = response.status().as_u16();
    let headers = response.headers();
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let delay = retry_after(
        text("retry-after-ms"),
        text("retry-after"),
        clock::unix_ms(),
    );
    let request_id = request_id(headers);
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
    let mut error = http_error(status, &String::from_utf8_lossy(&body));
    error.request_id = request_id;
    if error.is_retryable() {
        error.retry_after = delay.or(error.retry_after);
    }
    if error.kind == ModelErrorKind::Auth {
        error.hints.push(key_hint(model));
    }
    error
}

fn no_key(model: &Model) -> ModelError {
    ModelError::new(
        ModelErrorKind::Auth,
        format!("there is no key for {}", model.provider),
    )
    .with_hint(key_hint(model))
}

fn key_hint(model: &Model) -> String {
    match model.api_key_env.as_slice() {
        [] => format!("{} needs another key", model.provider),
        names => format!("set {} to a valid key", names.join(" or ")),
    }
}
