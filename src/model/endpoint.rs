//! What a base URL says: whether it is one, its host, whether it stays on this
//! machine, and the address of a call under it.

use std::net::IpAddr;

use reqwest::Url;

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
pub fn without_login(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}{host}{path}")
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

/// The address of `path` under `base`. A base that already ends with the first
/// part of the path, or with all of it, is understood.
pub(crate) fn join(base: &str, path: &str) -> String {
    let base = base.trim_end_matches('/');
    if base.ends_with(path) {
        return base.to_owned();
    }
    match path.strip_prefix("/v1") {
        Some(rest) if base.ends_with("/v1") => format!("{base}{rest}"),
        _ => format!("{base}{path}"),
    }
}
