//! The head of a request to the proxy, read strictly, and as it goes on to the
//! server. Pure.
//!
//! The request line decides where a request goes; `Host` is written anew. What
//! two programs on the way could read in two ways is refused: line ends without
//! CR, folded lines, blanks before a colon, two lengths. A connection carries
//! one request, so that nothing can hide behind its body.

use super::hosts::Target;

/// The most bytes of a head.
pub const HEAD_BYTES_MAX: usize = 8 * 1024;
/// The port of `http://` without one.
const HTTP_PORT: u16 = 80;
/// Headers that end here: they speak of this connection, not of the request.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
];

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// `CONNECT host:port`.
    Tunnel(Target),
    /// A request in absolute form.
    Forward(Forward),
}

/// A request that goes on to its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The server.
    pub target: Target,
    /// The bytes of its body.
    pub body_bytes: u64,
    method: String,
    path: String,
    version: String,
    /// The headers that go on, each line with its end.
    headers: Vec<u8>,
}

/// A request that is not understood, or shall not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadRequest {
    /// The status of the answer.
    pub status: u16,
    /// Why.
    pub why: &'static str,
}

fn bad(why: &'static str) -> BadRequest {
    BadRequest { status: 400, why }
}

impl Request {
    /// Reads a request from the start of a connection, and says how many bytes
    /// its head has; none while the head is not whole.
    ///
    /// # Errors
    /// What cannot be answered, as soon as it is known. More bytes change nothing
    /// about it.
    pub fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, BadRequest> {
        let mut lines = Vec::new();
        let mut start = 0;
        let capped = bytes.get(..HEAD_BYTES_MAX).unwrap_or(bytes);
        for (at, _) in capped
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
        {
            let line = capped.get(start..at).unwrap_or_default();
            let line = line
                .strip_suffix(b"\r")
                .ok_or(bad("a line ends without CR"))?;
            start = at + 1;
            if line.is_empty() {
                return Self::parse(&lines).map(|request| Some((request, start)));
            }
            lines.push(line);
        }
        if bytes.len() >= HEAD_BYTES_MAX {
            return Err(BadRequest {
                status: 431,
                why: "the head of the request is longer than 8 KiB",
            });
        }
        Ok(None)
    }

    /// Where it wants to go.
    pub fn target(&self) -> &Target {
        match self {
            Self::Tunnel(target) => target,
            Self::Forward(forward) => &forward.target,
        }
    }

    fn parse(lines: &[&[u8]]) -> Result<Self, BadRequest> {
        let (first, headers) = lines.split_first().ok_or(bad("there is no request line"))?;
        let visible = |byte: &u8| matches!(byte, b'!'..=b'~' | b' ');
        let first = std::str::from_utf8(first).ok();
        let first = first.filter(|line| line.as_bytes().iter().all(visible));
        let words: Vec<&str> = first.map_or_else(Vec::new, |line| line.split(' ').collect());
        let [method, target, version] = words[..] else {
            return Err(bad("the request line is not `METHOD TARGET HTTP/1.1`"));
        };
        if !is_token(method.as_bytes()) || target.is_empty() {
            return Err(bad("the request line is not `METHOD TARGET HTTP/1.1`"));
        }
        if !matches!(version, "HTTP/1.1" | "HTTP/1.0") {
            return Err(BadRequest {
                status: 505,
                why: "only HTTP/1.1 and HTTP/1.0 are spoken",
            });
        }
        let headers = Headers::parse(headers)?;
        if method == "CONNECT" {
            let target = Target::parse(target, None).map_err(bad)?;
            return match headers.body_bytes()? {
                0 => Ok(Self::Tunnel(target)),
                _ => Err(bad("CONNECT has no body")),
            };
        }
        let rest = strip_scheme(target).ok_or(bad(
            "a proxy is asked for `http://host/path`, or by CONNECT",
        ))?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if path.contains('#') {
            return Err(bad("an address in a request has no fragment"));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        Ok(Self::Forward(Forward {
            target: Target::parse(authority, Some(HTTP_PORT)).map_err(bad)?,
            body_bytes: headers.body_bytes()?,
            method: method.to_owned(),
            path: format!("{slash}{path}"),
            version: version.to_owned(),
            headers: headers.forwarded(),
        }))
    }
}

/// What follows `http://`, whose case does not matter.
fn strip_scheme(target: &str) -> Option<&str> {
    let (scheme, rest) = target.split_at_checked("http://".len())?;
    scheme.eq_ignore_ascii_case("http://").then_some(rest)
}

fn is_token(text: &[u8]) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !text.is_empty() && text.iter().all(token)
}

impl Forward {
    /// The head for the server itself, or for another proxy before it, which
    /// may want to know who asks.
    pub(super) fn head(&self, via: Option<&super::Upstream>) -> Vec<u8> {
        let Self { target, path, .. } = self;
        let mut host = target.to_string();
        if target.port == HTTP_PORT {
            host = target.host.to_string();
        }
        let address = match via {
            Some(_) => format!("http://{host}{path}"),
            None => path.clone(),
        };
        let mut head = format!(
            "{} {address} {}\r\nHost: {host}\r\n",
            self.method, self.version
        )
        .into_bytes();
        if let Some(login) = via.and_then(|via| via.authorization.as_ref()) {
            head.extend_from_slice(format!("Proxy-Authorization: {login}\r\n").as_bytes());
        }
        head.extend_from_slice(&self.headers);
        head.extend_from_slice(b"Connection: close\r\n\r\n");
        head
    }
}

/// The headers of a request, names in lower case.
struct Headers<'a> {
    list: Vec<(String, &'a [u8], &'a [u8])>,
}

impl<'a> Headers<'a> {
    fn parse(lines: &[&'a [u8]]) -> Result<Self, BadRequest> {
        let mut list = Vec::new();
        for line in lines {
            let colon = line.iter().position(|byte| *byte == b':');
            let (name, value) = line.split_at(colon.ok_or(bad("a header has no colon"))?);
            if !is_token(name) {
                return Err(bad("the name of a header is none"));
            }
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let allowed = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
            if !value.iter().all(allowed) {
                return Err(bad("a header holds a control character"));
            }
            let name = String::from_utf8_lossy(name).to_ascii_lowercase();
            list.push((name, value, *line));
        }
        let headers = Self { list };
        for single in ["host", "content-length", "transfer-encoding"] {
            if headers.values(single).count() > 1 {
                return Err(bad("Host and the headers of a length stand once"));
            }
        }
        Ok(headers)
    }

    fn values(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let named = self.list.iter().filter(move |(own, ..)| own == name);
        named.map(|(_, value, _)| *value)
    }

    /// The length of the body, which must be said beforehand.
    fn body_bytes(&self) -> Result<u64, BadRequest> {
        let length = self.values("content-length").next();
        if self.values("transfer-encoding").next().is_some() {
            return Err(match length {
                Some(_) => bad("the body has two lengths"),
                None => BadRequest {
                    status: 411,
                    why: "a body over plain HTTP needs Content-Length; https takes any",
                },
            });
        }
        let Some(length) = length else {
            return Ok(0);
        };
        let digits = length.iter().all(u8::is_ascii_digit);
        let length = std::str::from_utf8(length).ok().filter(|_| digits);
        length
            .and_then(|length| length.parse().ok())
            .ok_or(bad("Content-Length is no number"))
    }

    /// The lines that go on.
    fn forwarded(&self) -> Vec<u8> {
        let named: Vec<String> = self
            .values("connection")
            .flat_map(|value| value.split(|byte| *byte == b','))
            .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
            // The length of the body is of the request, whatever is said of it.
            .filter(|name| name != "content-length")
            .collect();
        let mut lines = Vec::new();
        for (name, _, line) in &self.list {
            let stays = HOP_BY_HOP.contains(&name.as_str())
                || name.starts_with("proxy-")
                || named.contains(name);
            if !stays {
                lines.extend_from_slice(line);
                lines.extend_from_slice(b"\r\n");
            }
        }
        lines
    }
}
