//! Which proxy a connection goes through, by the variables that people set for
//! all their programs.
//!
//! The names in lower case count before those in upper case, `ALL_PROXY` stands
//! in for the other two, and this machine itself is never reached through a
//! proxy. `NO_PROXY` lists exceptions between commas or blanks: a host with all
//! hosts below it, an address, a network such as `10.0.0.0/8`, each with a port
//! if only that port is meant, or `*` for everything.

use std::net::IpAddr;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Url;

use crate::model::endpoint;
use crate::model::error::{ModelError, ModelErrorKind};

/// The port of a proxy that names none.
const HTTP_PORT: u16 = 80;
/// What is wrong with most logins that cannot be read.
const LOGIN_ADVICE: &str = "in a login, write / ? # as %2F %3F %23";

/// The proxies that an environment names. What is wrong with one is said when
/// a connection would go through it.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Named>,
    https: Option<Named>,
    exceptions: Vec<Exception>,
}

/// A proxy as it was written, and where.
#[derive(Clone)]
struct Named {
    variable: &'static str,
    value: String,
}

/// What is reached without a proxy.
#[derive(Clone, Debug, PartialEq)]
enum Exception {
    Everything,
    Host { name: String, port: Option<u16> },
    Network { address: IpAddr, bits: u8 },
}

/// The proxy on the way to one endpoint.
pub struct Proxy {
    variable: &'static str,
    url: Url,
}

impl std::fmt::Debug for Proxies {
    // A proxy may hold a login.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shown = |named: &Option<Named>| named.as_ref().map(|named| named.variable);
        formatter
            .debug_struct("Proxies")
            .field("http", &shown(&self.http))
            .field("https", &shown(&self.https))
            .field("exceptions", &self.exceptions)
            .finish()
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Proxy").field(&self.shown()).finish()
    }
}

impl Proxies {
    /// Takes them from variables, of which `value` gives those that are set.
    pub fn new<'v>(value: impl Fn(&str) -> Option<&'v str>) -> Self {
        let first = |variables: &[&'static str]| {
            variables.iter().find_map(|variable| {
                let value = value(variable)?.trim();
                (!value.is_empty()).then(|| Named {
                    variable,
                    value: value.to_owned(),
                })
            })
        };
        // To a program behind a web server HTTP_PROXY is a header that anybody
        // may send: `Proxy`.
        let http: &[&str] = match value("REQUEST_METHOD") {
            Some(_) => &["http_proxy"],
            None => &["http_proxy", "HTTP_PROXY"],
        };
        let all = first(&["all_proxy", "ALL_PROXY"]);
        let exceptions = value("no_proxy").or_else(|| value("NO_PROXY"));
        Self {
            http: first(http).or_else(|| all.clone()),
            https: first(&["https_proxy", "HTTPS_PROXY"]).or(all),
            exceptions: exceptions
                .unwrap_or_default()
                .split([',', ' '])
                .filter_map(Exception::parse)
                .collect(),
        }
    }

    /// What no output may show: the passwords, or a login that is one word.
    pub fn secrets(&self) -> Vec<String> {
        let named = self.http.iter().chain(&self.https);
        let mut found: Vec<String> = named.flat_map(Named::secrets).collect();
        found.sort();
        found.dedup();
        found
    }

    /// The proxy on the way to `url`, if there is one.
    ///
    /// # Errors
    /// `Setup` when its address cannot be used.
    pub fn on_the_way_to(&self, url: &str) -> Result<Option<Proxy>, ModelError> {
        let Ok(target) = Url::parse(url) else {
            return Ok(None);
        };
        let named = match target.scheme() {
            "https" => &self.https,
            _ => &self.http,
        };
        let host = endpoint::host(url);
        let port = target.port_or_known_default();
        let direct =
            endpoint::is_loopback(url) || self.exceptions.iter().any(|one| one.covers(&host, port));
        named
            .as_ref()
            .filter(|_| !direct)
            .map(Named::parsed)
            .transpose()
    }
}

impl Named {
    fn parsed(&self) -> Result<Proxy, ModelError> {
        let written = match self.value.contains("://") {
            true => self.value.clone(),
            false => format!("http://{}", self.value),
        };
        let parsed = Url::parse(&written).map_err(|error| error.to_string());
        let checked = parsed.and_then(|url| match url.scheme() {
            "http" | "https" if has_login_behind_host(&url) => {
                Err("its login ends too soon".to_owned())
            }
            "http" | "https" if url.host_str().is_some() => Ok(url),
            "http" | "https" => Err("there is no host".to_owned()),
            scheme => Err(format!("a proxy is reached by http or https, not {scheme}")),
        });
        let url = checked.map_err(|reason| {
            let variable = self.variable;
            let shown = endpoint::without_login(&written);
            let advice = match written.contains('@') {
                true => format!("; {LOGIN_ADVICE}"),
                false => String::new(),
            };
            ModelError::new(
                ModelErrorKind::Setup,
                format!("{variable} names a proxy that cannot be used, {shown}: {reason}"),
            )
            .with_hint(format!(
                "write {variable}=http://host:port, or name in NO_PROXY what is reached without it{advice}"
            ))
        })?;
        Ok(Proxy {
            variable: self.variable,
            url,
        })
    }

    fn secrets(&self) -> Vec<String> {
        let rest = match self.value.split_once("://") {
            Some((_, rest)) => rest,
            None => &self.value,
        };
        // A proxy has no path: whatever stands before the last `@` is a login,
        // with marks in it that should have been written otherwise too.
        rest.rsplit_once('@')
            .map_or_else(Vec::new, |(login, _)| endpoint::secrets_of(login))
    }
}

impl Proxy {
    /// The address without the login.
    pub fn shown(&self) -> String {
        let shown = endpoint::without_login(self.url.as_str());
        shown.trim_end_matches('/').to_owned()
    }

    /// The variable that names it.
    pub(super) fn variable(&self) -> &'static str {
        self.variable
    }

    /// Whether it is told who asks.
    pub(super) fn has_login(&self) -> bool {
        !self.url.username().is_empty() || self.url.password().is_some()
    }

    /// Its host, without the brackets of an address, and its port.
    pub fn address(&self) -> (String, u16) {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port_or_known_default().unwrap_or(HTTP_PORT);
        (bare(host).to_owned(), port)
    }

    /// What it wants to hear of us: the value of `Proxy-Authorization`.
    pub fn authorization(&self) -> Option<String> {
        let password = self.url.password().unwrap_or_default();
        let login = format!(
            "{}:{}",
            endpoint::decoded(self.url.username()),
            endpoint::decoded(password)
        );
        self.has_login()
            .then(|| format!("Basic {}", BASE64_STANDARD.encode(login)))
    }

    /// Whether the way to it is encrypted already.
    pub fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The address with the login.
    pub(super) fn url(&self) -> &Url {
        &self.url
    }
}

impl Exception {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            return Some(Self::Everything);
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let bits = bits.parse().ok().filter(|bits| *bits <= width(address))?;
            return Some(Self::Network { address, bits });
        }
        if let Ok(address) = bare(&text).parse::<IpAddr>() {
            let bits = width(address);
            return Some(Self::Network { address, bits });
        }
        let (name, port) = match text.rsplit_once(':') {
            Some((name, port)) => (bare(name), Some(port.parse().ok()?)),
            None => (text.as_str(), None),
        };
        let name = name.trim_start_matches("*.").trim_matches('.').to_owned();
        (!name.is_empty()).then_some(Self::Host { name, port })
    }

    fn covers(&self, host: &str, port: Option<u16>) -> bool {
        match self {
            Self::Everything => true,
            Self::Network { address, bits } => bare(host)
                .parse()
                .is_ok_and(|host| same_network(host, *address, *bits)),
            Self::Host { name, port: wanted } => {
                let host = bare(host).trim_end_matches('.');
                let below = host.strip_suffix(name.as_str());
                wanted.is_none_or(|wanted| port == Some(wanted))
                    && below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
        }
    }
}

/// Whether a mark in the login was taken for the end of the host.
fn has_login_behind_host(url: &Url) -> bool {
    let behind = [Some(url.path()), url.query(), url.fragment()];
    behind.into_iter().flatten().any(|part| part.contains('@'))
}

/// An address of six groups stands between brackets in a URL.
fn bare(host: &str) -> &str {
    host.strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host)
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn same_network(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let (one, other) = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => (
            u128::from(u32::from(one)) << 96,
            u128::from(u32::from(other)) << 96,
        ),
        (IpAddr::V6(one), IpAddr::V6(other)) => (u128::from(one), u128::from(other)),
        _ => return false,
    };
    bits == 0 || (one ^ other) >> (128 - u32::from(bits)) == 0
}
