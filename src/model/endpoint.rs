//! What a base URL says: whether it is one, its host, whether it stays on this
//! machine, and the address of a call under it. Which headers may be added.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};

/// Headers that the client itself has to set.
const OWN_HEADERS: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
];

/// Checks that `url` can be a base URL.
///
/// # Errors
/// What is wrong with it, for people.
pub(crate) fn check(url: &str) -> Result<(), String> {
    let parsed = Url::parse(url).map_err(|error| error.to_string())?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err("only http and https are supported".to_owned());
    }
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err("there is no host".to_owned());
    }
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err("a base URL has no query and no fragment".to_owned());
    }
    Ok(())
}

/// `url` as it may be shown: without the name and password that it may hold.
/// Where a login ends is not sure in what is no URL, or when a mark in it that
/// should have been encoded ends the host too soon: then all before the last
/// `@` is left out.
pub fn without_login(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, others) = rest.split_at(end);
    let path = others.split(['?', '#']).next().unwrap_or_default();
    let is_sure = Url::parse(url).is_ok() && authority.contains('@') && !path.contains('@');
    let (login_in, behind) = if is_sure {
        (authority, others)
    } else {
        (rest, "")
    };
    let shown = login_in
        .rsplit_once('@')
        .map_or(login_in, |(_, shown)| shown);
    format!("{scheme}{shown}{behind}")
}

/// The host name; empty when there is none.
pub(crate) fn host(url: &str) -> String {
    Url::parse(url)
        .ok()
        .and_then(|url| url.host_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Whether `url` leads to this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let host = host(url);
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    host.trim_start_matches('[')
        .trim_end_matches(']')
        .parse::<IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

/// Checks that a call can carry a header of this name.
///
/// # Errors
/// What is wrong with it, for people.
pub(crate) fn check_header(name: &str) -> Result<(), &'static str> {
    match HeaderName::from_bytes(name.as_bytes()) {
        Err(_) => Err("this cannot be the name of a header"),
        Ok(name) if OWN_HEADERS.contains(&name.as_str()) => Err("every call sets it itself"),
        Ok(_) => Ok(()),
    }
}

/// Whether a header can have this value.
pub(crate) fn is_header_value(text: &str) -> bool {
    HeaderValue::from_str(text).is_ok()
}

/// What of the login in a URL is a secret like a key.
pub(crate) fn login_secrets(url: &str) -> Vec<String> {
    let Ok(url) = Url::parse(url) else {
        return Vec::new();
    };
    match url.password() {
        Some(password) => secrets_of(&format!(":{password}")),
        None => secrets_of(url.username()),
    }
}

/// The password of a login, or the login when it is one word: as it is written,
/// and without percent codes.
pub(super) fn secrets_of(login: &str) -> Vec<String> {
    let secret = login
        .split_once(':')
        .map_or(login, |(_, password)| password);
    let mut secrets = vec![secret.to_owned(), decoded(secret)];
    secrets.dedup();
    secrets.retain(|secret| !secret.is_empty());
    secrets
}

/// `%40` is `@`; what is no such code stays.
pub(super) fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..2)
            .and_then(|code| std::str::from_utf8(code).ok());
        let code = code.filter(|code| *first == b'%' && !code.starts_with('+'));
        let byte = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = match byte {
            Some(_) => after.get(2..).unwrap_or_default(),
            None => after,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
/// The address of `path` under `base`, with query parameters behind those that
/// the path may have.
pub(crate) fn address<'a>(
    base: &str,
    path: &str,
    query: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> String {
    let mut address = join(base, path);
    for (name, value) in query {
        let pair = url_pair(name, value);
        address.push(if address.contains('?') { '&' } else { '?' });
        address.push_str(&pair);
    }
    address
}

fn url_pair(name: &str, value: &str) -> String {
    let mut url = Url::parse("http://x").expect("this is a URL");
    url.query_pairs_mut().append_pair(name, value);
    url.query().unwrap_or_default().to_owned()
}

/// The address of `path` under `base`. A base that already ends with the first
/// part of the path, or with all of it, is understood.
fn join(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(path) {
        return base.to_owned();
    }
    match path.strip_prefix("/v1") {
        Some(rest) if base.ends_with("/v1") => format!("{base}{rest}"),
        _ => format!("{base}{path}"),
    }
}
