//! The replies of a scripted model server, as bytes and as what is done between them.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;

/// One thing to do with a connection.
#[derive(Debug, Clone)]
pub enum Action {
    /// Sends these bytes at once.
    Send(Vec<u8>),
    /// Waits this long, or until the server ends.
    Pause(Duration),
    /// Waits until the gate is opened.
    Wait(Gate),
    /// Closes the connection with a reset.
    Reset,
    /// Closes the sending half; the client's half stays open.
    HalfClose,
    /// Says nothing more until the server ends.
    Hang,
}

/// Holds a reply back until the test opens it.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<Signal>);

impl Gate {
    /// Lets the reply go on.
    pub fn open(&self) {
        self.0.set();
    }

    /// Whether it was opened within this time.
    pub fn wait(&self, most: Duration) -> bool {
        self.0.wait(most)
    }
}

/// Something that happens once and that threads wait for.
#[derive(Debug, Default)]
pub struct Signal {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    /// Sets it for good.
    pub fn set(&self) {
        *self.set.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Whether it was set within this time.
    pub fn wait(&self, most: Duration) -> bool {
        let set = self.set.lock().unwrap();
        *self
            .changed
            .wait_timeout_while(set, most, |set| !*set)
            .unwrap()
            .0
    }
}

/// The answer to one request: what goes over the wire, and whether the
/// connection serves another request afterwards.
#[derive(Debug, Clone)]
pub struct Reply {
    /// What is done, in order.
    pub actions: Vec<Action>,
    /// Whether the connection stays open.
    pub keep_alive: bool,
}

impl Reply {
    /// Exactly these actions; then the connection is closed.
    pub fn raw(actions: Vec<Action>) -> Self {
        Self {
            actions,
            keep_alive: false,
        }
    }

    /// Closes the connection without a word.
    pub fn reset() -> Self {
        Self::raw(vec![Action::Reset])
    }

    /// Never answers.
    pub fn hang() -> Self {
        Self::raw(vec![Action::Hang])
    }

    /// Does something before the first byte.
    pub fn after(mut self, action: Action) -> Self {
        self.actions.insert(0, action);
        self
    }
}

/// An HTTP response under construction.
#[derive(Debug, Clone)]
pub struct Response {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

/// A response with this status and no body.
pub fn status(status: u16) -> Response {
    Response {
        status,
        headers: Vec::new(),
        body: Vec::new(),
    }
}

/// A stream of server-sent events with this body.
pub fn sse(body: impl Into<Vec<u8>>) -> Response {
    status(200)
        .header("content-type", "text/event-stream")
        .body(body)
}

impl Response {
    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets a JSON body.
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json")
            .body(body.to_string())
    }

    /// The same for a mocked server.
    pub fn into_template(self) -> wiremock::ResponseTemplate {
        let mut template = wiremock::ResponseTemplate::new(self.status);
        for (name, value) in &self.headers {
            template = template.insert_header(name.as_str(), value.as_str());
        }
        let mime = self.headers.iter().find(|(name, _)| name == "content-type");
        template.set_body_raw(self.body, mime.map_or("", |(_, value)| value))
    }

    /// The body so far.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// Where this stands in the body.
    pub fn find(&self, mark: &str) -> usize {
        self.text()
            .find(mark)
            .unwrap_or_else(|| panic!("{mark:?} is not in {}", self.text()))
    }

    /// A whole response of only the first bytes.
    pub fn first(mut self, bytes: usize) -> Self {
        self.body.truncate(bytes);
        self
    }

    /// Sends the body in pieces of this many bytes, each in a chunk of its own.
    pub fn in_pieces(self, bytes: usize) -> Reply {
        let pieces: Vec<Vec<u8>> = self.body.chunks(bytes.max(1)).map(<[u8]>::to_vec).collect();
        let mut actions = vec![Action::Send(self.head("transfer-encoding: chunked"))];
        actions.extend(pieces.iter().map(|piece| Action::Send(chunk(piece))));
        actions.push(Action::Send(chunk(b"")));
        Reply {
            actions,
            keep_alive: true,
        }
    }

    /// Sends only the first bytes of the body, then does `last`.
    pub fn cut(self, bytes: usize, last: Action) -> Reply {
        let mut actions = vec![Action::Send(self.head("transfer-encoding: chunked"))];
        // A chunk of no bytes would say that the body is whole.
        if bytes > 0 {
            let piece = chunk(&self.body[..bytes.min(self.body.len())]);
            actions.push(Action::Send(piece));
        }
        actions.push(last);
        Reply::raw(actions)
    }

    /// Sends the first bytes of the body, does `between`, and sends the rest.
    pub fn paused(self, bytes: usize, between: Action) -> Reply {
        let (first, rest) = self.body.split_at(bytes.min(self.body.len()));
        let actions = vec![
            Action::Send(self.head("transfer-encoding: chunked")),
            Action::Send(chunk(first)),
            between,
            Action::Send(chunk(rest)),
            Action::Send(chunk(b"")),
        ];
        Reply {
            actions,
            keep_alive: true,
        }
    }

    /// Sends everything and closes the connection, which ends the body.
    pub fn until_close(self) -> Reply {
        let mut bytes = self.head("connection: close");
        bytes.extend_from_slice(&self.body);
        Reply::raw(vec![Action::Send(bytes)])
    }

    fn head(&self, framing: &str) -> Vec<u8> {
        let mut head = format!("HTTP/1.1 {} Status\r\n{framing}\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        head.into_bytes()
    }
}

impl From<Response> for Reply {
    fn from(response: Response) -> Self {
        let mut bytes = response.head(&format!("content-length: {}", response.body.len()));
        bytes.extend_from_slice(&response.body);
        Self {
            actions: vec![Action::Send(bytes)],
            keep_alive: true,
        }
    }
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    chunk
}
