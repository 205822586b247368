//! Which hosts may be reached: the list of a task, read strictly and matched
//! against what a request asks for. Pure.
//!
//! An entry is `crates.io` (that host alone), `*.crates.io` (every host below
//! it, and not `crates.io` itself), or an address (`192.0.2.7`, `[2001:db8::7]`).
//! Behind `:` may stand the one port that is meant; without it these are 80 and
//! 443. A host is compared in lower case and without the dot at its end.
//!
//! A name that leads to an address inside an organisation or a machine is
//! refused even when it is listed, because whoever owns a name chooses where
//! it leads. It may lead to an address that is an entry itself, and to one of a
//! private network that is, such as `10.0.0.0/8`. Such an entry opens nothing
//! else: addresses are asked for only when they are listed one by one.

use std::fmt;
use std::net::IpAddr;

use super::address::{Realm, realm};

/// The longest name that DNS knows.
const NAME_BYTES_MAX: usize = 253;
/// The longest part of one.
const LABEL_BYTES_MAX: usize = 63;
/// The ports of an entry that names none.
const USUAL_PORTS: [u16; 2] = [80, TLS_PORT];
/// Where TLS is spoken and nothing else.
pub(super) const TLS_PORT: u16 = 443;

/// A host that a request names.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name: ASCII, lower case, no dot at its end.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Where a request wants to go.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port.
    pub port: u16,
}

/// The hosts that may be reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    written: Vec<String>,
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Exact(Host, Option<u16>),
    Below(String, Option<u16>),
    Network(IpAddr, u8),
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl Host {
    /// Reads a host as requests and lists spell it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or("a bracket is missing")?;
            let address: std::net::Ipv6Addr =
                inner.parse().map_err(|_| "this is no IPv6 address")?;
            return Ok(Self::Address(address.to_canonical()));
        }
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Ok(address) = name.parse::<std::net::Ipv4Addr>() {
            return Ok(Self::Address(IpAddr::V4(address)));
        }
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err("a name has 1 to 253 characters");
        }
        if !name.split('.').all(is_label) {
            return Err("a name has letters, digits, `-` and `_` between single dots");
        }
        // `127.1`, `0x7f.1` and `017700000001` are addresses to a resolver.
        let last = name.rsplit('.').next().unwrap_or_default();
        let digits = last.bytes().all(|byte| byte.is_ascii_digit());
        let hexadecimal = last
            .strip_prefix("0x")
            .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        if digits || hexadecimal {
            return Err("an address is written as four decimal numbers without leading zeros");
        }
        Ok(Self::Name(name))
    }

    /// Whether this name means the machine itself, by definition.
    fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Address(_) => false,
        }
    }

    /// Whether whoever asks for it means the machine itself.
    fn means_loopback(&self) -> bool {
        let loopback = |address: &IpAddr| address.is_loopback();
        matches!(self, Self::Address(address) if loopback(address)) || self.is_localhost()
    }
}

fn is_label(label: &str) -> bool {
    let fits = (1..=LABEL_BYTES_MAX).contains(&label.len());
    let known = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    fits && label.bytes().all(known) && !label.starts_with('-') && !label.ends_with('-')
}

impl Target {
    /// Reads `host:port`; without a port it is `default`. Nothing may stand
    /// before the host.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, default: Option<u16>) -> Result<Self, &'static str> {
        if text.contains('@') {
            return Err("a login in front of the host is not understood");
        }
        let (host, port) = split_port(text)?;
        let port = port.or(default).ok_or("the port is missing")?;
        Ok(Self {
            host: Host::parse(host)?,
            port,
        })
    }
}

/// The host as it is written, and the port behind it.
fn split_port(text: &str) -> Result<(&str, Option<u16>), &'static str> {
    let end = match text.find(']') {
        Some(end) => end + 1,
        None if text.starts_with('[') => return Err("a bracket is missing"),
        None => 0,
    };
    let Some(colon) = text.get(end..).and_then(|rest| rest.find(':')) else {
        return Ok((text, None));
    };
    let (host, port) = text.split_at(end + colon);
    let port = port.strip_prefix(':').unwrap_or(port);
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0');
    match port.parse() {
        Ok(port) if is_number => Ok((host, Some(port))),
        _ => Err("a port is a number from 1 to 65535"),
    }
}

impl Hosts {
    /// Reads the entries of a list.
    ///
    /// # Errors
    /// The first entry that is none, and what is wrong with it.
    pub fn parse<'e>(entries: impl IntoIterator<Item = &'e str>) -> Result<Self, String> {
        let mut hosts = Self::default();
        for text in entries {
            let entry = Entry::parse(text).map_err(|why| format!("`{text}`: {why}"))?;
            hosts.entries.push(entry);
            hosts.written.push(text.to_owned());
        }
        Ok(hosts)
    }

    /// The entries as they were written.
    pub fn written(&self) -> &[String] {
        &self.written
    }

    /// Whether the list has what a request asks for.
    pub fn allows(&self, target: &Target) -> bool {
        self.entries.iter().any(|entry| entry.allows(target))
    }

    /// Whether a tunnel to `target`, which is allowed, may carry anything: the
    /// list names the port.
    pub fn names_port(&self, target: &Target) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::Exact(_, port) | Entry::Below(_, port) => port.is_some() && entry.allows(target),
            Entry::Network(..) => false,
        })
    }

    /// Whether `host`, which is allowed, may lead to `address`.
    pub fn admits(&self, host: &Host, address: IpAddr) -> bool {
        let address = address.to_canonical();
        let realm = realm(address);
        let own = Host::Address(address);
        *host == own
            || realm == Realm::Public
            || (host.is_localhost() && address.is_loopback())
            || self.entries.iter().any(|entry| match entry {
                Entry::Exact(host, _) => *host == own,
                Entry::Network(network, bits) => {
                    realm == Realm::Private && is_within(address, *network, *bits)
                }
                Entry::Below(..) => false,
            })
    }

    /// Whether an entry means the machine that we run on.
    pub fn names_loopback(&self) -> bool {
        self.entries.iter().any(|entry| match entry {
            Entry::Exact(host, _) => host.means_loopback(),
            Entry::Below(name, _) => Host::Name(name.clone()).is_localhost(),
            Entry::Network(..) => false,
        })
    }
}

fn covers(wanted: Option<u16>, port: u16) -> bool {
    wanted.map_or_else(|| USUAL_PORTS.contains(&port), |wanted| wanted == port)
}

impl Entry {
    fn allows(&self, target: &Target) -> bool {
        let Target { host, port } = target;
        match (self, host) {
            (Self::Exact(own, wanted), host) => own == host && covers(*wanted, *port),
            (Self::Below(own, wanted), Host::Name(name)) => {
                let above = name.strip_suffix(own.as_str());
                above.is_some_and(|above| above.ends_with('.')) && covers(*wanted, *port)
            }
            (Self::Below(..), Host::Address(_)) | (Self::Network(..), _) => false,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        if !text.is_ascii() {
            return Err(match ascii_form(text) {
                Some(ascii) => format!("write a host in ASCII: `{ascii}`"),
                None => "write a host in ASCII".to_owned(),
            });
        }
        if let Some((_, rest)) = text.split_once("://") {
            let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
            return Err(format!("write the host alone: `{host}`"));
        }
        if let Some((address, bits)) = text.split_once('/') {
            return Self::network(address, bits);
        }
        let bare_v6 = text.parse::<std::net::Ipv6Addr>();
        if bare_v6.is_ok() {
            return Err(format!("write an IPv6 address in brackets: `[{text}]`"));
        }
        if text == "*" {
            return Err("every host is `network: on`".to_owned());
        }
        let (host, port) = split_port(text)?;
        if let Some(below) = host.strip_prefix("*.") {
            return match Host::parse(below)? {
                Host::Name(name) => Ok(Self::Below(name, port)),
                Host::Address(_) => Err("there is nothing below an address".to_owned()),
            };
        }
        if host.contains('*') {
            return Err("`*` stands for all hosts below one: `*.example.org`".to_owned());
        }
        Ok(Self::Exact(Host::parse(host)?, port))
    }

    fn network(address: &str, bits: &str) -> Result<Self, String> {
        let wrong = || "a network is written as `10.0.0.0/8`; a host has no path".to_owned();
        let parsed: IpAddr = address.parse().map_err(|_| wrong())?;
        let width = if parsed.is_ipv4() { 32 } else { 128 };
        let digits = bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        if !digits || bits > width {
            return Err(wrong());
        }
        if realm(parsed) != Realm::Private {
            return Err(
                "only a private network is listed, for names that lead into it; list a single \
                 address as it is"
                    .to_owned(),
            );
        }
        Ok(Self::Network(parsed, bits))
    }
}

/// The form in which a name of other letters goes over the wire.
fn ascii_form(text: &str) -> Option<String> {
    let (wildcard, name) = match text.strip_prefix("*.") {
        Some(name) => ("*.", name),
        None => ("", text),
    };
    let url = reqwest::Url::parse(&format!("http://{name}/")).ok()?;
    Some(format!("{wildcard}{}", url.host_str()?))
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (address, network) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            let differs = u32::from(one) ^ u32::from(other);
            differs.checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => {
            let differs = u128::from(one) ^ u128::from(other);
            differs.checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}
