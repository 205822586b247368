//! What it means that a connection did not come about, broke or stayed silent.

use std::error::Error;
use std::time::Duration;

use crate::model::description::Model;
use crate::model::endpoint;
use crate::model::error::{ModelError, ModelErrorKind};
use crate::model::proxy::Proxy;
use crate::model::tls;

/// What the layers of the HTTP client say that says nothing.
const EMPTY_WORDS: &[&str] = &[
    "error sending request",
    "client error (Connect)",
    "client error (SendRequest)",
    "error decoding response body",
    "request or response body error",
];
/// What the HTTP client says when a connection ends before its answer begins.
const CLOSED: &str = "connection closed before message completed";
/// What the HTTP client says of a proxy that asks who is there.
const PROXY_ASKS: &str = "proxy authorization required";

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

/// Whether the other side closed the connection instead of answering.
pub(super) fn hung_up(error: &reqwest::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    if error.is_timeout() || error.is_connect() {
        return false;
    }
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>();
        if error.to_string() == CLOSED
            || io.is_some_and(|io| {
                matches!(
                    io.kind(),
                    BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof
                )
            })
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The error of a wait that was too long. `setting` allows more.
pub(super) fn timed_out(what: &str, limit: Duration, setting: &str) -> ModelError {
    let limit = match limit < Duration::from_secs(1) {
        true => format!("{} ms", limit.as_millis()),
        false => format!("{} s", limit.as_secs_f64()),
    };
    ModelError::new(ModelErrorKind::Timeout, format!("{what} for {limit}"))
        .with_hint(format!("raise {setting}"))
}

/// The error of a request that got no answer.
pub(super) fn unsent(error: reqwest::Error, model: &Model, proxy: Option<&Proxy>) -> ModelError {
    let connecting = error.is_connect();
    let advice = tls::advice(&error).filter(|_| connecting);
    let mut error = broken(error);
    if let Some(proxy) = proxy.filter(|_| error.message.contains(PROXY_ASKS)) {
        return locked(proxy);
    }
    let host = endpoint::host(&model.base_url);
    error.message = match proxy {
        Some(proxy) if connecting => {
            format!("{host} by proxy {}: {}", proxy.shown(), error.message)
        }
        _ => format!("{host}: {}", error.message),
    };
    if let Some(advice) = advice {
        return error.permanent().with_hint(advice);
    }
    if let Some(proxy) = proxy.filter(|_| connecting) {
        let variable = proxy.variable();
        return error.with_hint(format!(
            "check {variable}; NO_PROXY names the hosts that are reached without a proxy"
        ));
    }
    if connecting && error.kind == ModelErrorKind::Timeout {
        return error
            .with_hint("check base_url and the network, or raise settings.connect_timeout");
    }
    if connecting && model.key_optional {
        return error.with_hint("is the local model server running?");
    }
    error
}

/// The error of a proxy that lets nobody through whom it does not know.
pub(super) fn locked(proxy: &Proxy) -> ModelError {
    let (variable, shown) = (proxy.variable(), proxy.shown());
    let message = match proxy.has_login() {
        true => format!("the proxy {shown} refuses the login in {variable}"),
        false => format!("the proxy {shown} asks for a login, and {variable} holds none"),
    };
    ModelError::new(ModelErrorKind::Auth, message)
        .with_status(407)
        .with_hint(format!(
            "set {variable} to http://user:password@host:port, or name in NO_PROXY what is \
             reached without it"
        ))
}

/// An error and its causes in one line, without repetitions and empty words.
fn reason(error: &reqwest::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut cause: Option<&dyn Error> = Some(error);
    while let Some(error) = cause {
        let words = error.to_string();
        if !EMPTY_WORDS.contains(&&*words) && !parts.iter().any(|part| part.contains(&words)) {
            parts.push(words);
        }
        cause = error.source();
    }
    match parts.is_empty() {
        true => error.to_string(),
        false => parts.join(": "),
    }
}
