//! The first message of a TLS client, as far as it names a server. Pure.
//!
//! A tunnel is opened for one host; the name in this message must be that host,
//! else whatever shares its address would be reached too. A name that is hidden
//! in an encrypted part of the message is not seen.

/// The most bytes in which a message is looked for.
pub const HELLO_BYTES_MAX: usize = 16 * 1024;

/// What a client sends first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// More bytes are needed.
    Partial,
    /// A TLS client that wants this server; none when it names none.
    Tls(Option<String>),
    /// Something else.
    Other,
}

const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

impl Hello {
    /// Reads the start of a connection.
    pub fn read(bytes: &[u8]) -> Self {
        match message(bytes) {
            Message::Whole(message) => server_name(&message).map_or(Self::Other, Self::Tls),
            Message::Partial if bytes.len() < HELLO_BYTES_MAX => Self::Partial,
            Message::Partial | Message::Other => Self::Other,
        }
    }
}

enum Message {
    Partial,
    Whole(Vec<u8>),
    Other,
}

/// The message, which may stand in several records.
fn message(bytes: &[u8]) -> Message {
    let mut message = Vec::new();
    let mut rest = Bytes(bytes);
    loop {
        if let [kind, long @ ..] = message.as_slice() {
            if *kind != CLIENT_HELLO {
                return Message::Other;
            }
            if let Some(body) = Bytes(long).sized(3) {
                return Message::Whole(body.0.to_vec());
            }
        }
        let Some(kind) = rest.number(1) else {
            return Message::Partial;
        };
        let Some(version) = rest.number(1) else {
            return match kind == usize::from(HANDSHAKE) {
                true => Message::Partial,
                false => Message::Other,
            };
        };
        if kind != usize::from(HANDSHAKE) || version != 3 {
            return Message::Other;
        }
        let _minor = rest.number(1);
        match rest.sized(2) {
            // An empty record leads nowhere.
            Some(Bytes([])) => return Message::Other,
            Some(Bytes(record)) => message.extend_from_slice(record),
            None => return Message::Partial,
        }
    }
}

/// The name in the body of the message; none when the body is broken.
fn server_name(body: &[u8]) -> Option<Option<String>> {
    let mut body = Bytes(body);
    let (_version, _random) = (body.take(2)?, body.take(32)?);
    let (_session, _ciphers, _compression) = (body.sized(1)?, body.sized(2)?, body.sized(1)?);
    if body.0.is_empty() {
        return Some(None);
    }
    let mut extensions = body.sized(2)?;
    if !body.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.number(2)?;
        let mut content = extensions.sized(2)?;
        if kind != usize::from(SERVER_NAME) {
            continue;
        }
        let mut names = content.sized(2)?;
        let (kind, name) = (names.number(1)?, names.sized(2)?);
        let alone = found.is_none() && names.0.is_empty() && content.0.is_empty();
        if kind != usize::from(HOST_NAME) || !alone {
            return None;
        }
        found = Some(String::from_utf8(name.0.to_vec()).ok()?);
    }
    Some(found)
}

/// Bytes that are taken from the front.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number of `width` bytes.
    fn number(&mut self, width: usize) -> Option<usize> {
        let bytes = self.take(width)?;
        let add = |number: usize, byte: &u8| (number << 8) | usize::from(*byte);
        Some(bytes.iter().fold(0, add))
    }

    /// What stands behind its own length of `width` bytes.
    fn sized(&mut self, width: usize) -> Option<Self> {
        let count = self.number(width)?;
        self.take(count).map(Self)
    }
}
