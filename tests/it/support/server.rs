//! A scripted model server that works on bytes.
//!
//! It answers each request with the next reply of its script, on 127.0.0.1 and
//! with threads of its own, so that it serves the binary and async tests alike.
//! It fails the test on an unused reply, an extra request, or a request whose
//! transcript breaks an invariant.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use super::reply::{Action, Reply, Signal};
use super::transcript;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// For example `/v1/messages`.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub bytes: Vec<u8>,
    /// The body; null when it is not JSON.
    pub body: Value,
}

impl Recorded {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// The server.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    requests: Mutex<Vec<Recorded>>,
    faults: Mutex<Vec<String>>,
    streams: Mutex<Vec<TcpStream>>,
    closing: Signal,
    arrived: Condvar,
}

impl ModelServer {
    /// Serves these replies, in order.
    pub fn start<R: Into<Reply>>(replies: impl IntoIterator<Item = R>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        shared
            .replies
            .lock()
            .unwrap()
            .extend(replies.into_iter().map(Into::into));
        let theirs = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(&listener, &theirs));
        Self {
            address,
            shared,
            acceptor: Some(acceptor),
        }
    }

    /// The base URL, without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// Waits until this many requests have come; at most half a minute.
    pub fn wait_for_requests(&self, count: usize) {
        let requests = self.shared.requests.lock().unwrap();
        let most = Duration::from_secs(30);
        let (_requests, late) = self
            .shared
            .arrived
            .wait_timeout_while(requests, most, |all| all.len() < count)
            .unwrap();
        assert!(!late.timed_out(), "request {count} never came");
    }

    /// Ends the server and gives all requests.
    ///
    /// Panics on an unused reply, an extra request or a broken transcript.
    pub fn finish(mut self) -> Vec<Recorded> {
        let faults = self.close();
        assert!(
            faults.is_empty(),
            "the model server objects:\n{}",
            faults.join("\n")
        );
        self.requests()
    }

    fn close(&mut self) -> Vec<String> {
        let Some(acceptor) = self.acceptor.take() else {
            return Vec::new();
        };
        self.shared.closing.set();
        for stream in self.shared.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the acceptor, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
        let _ = acceptor.join();
        let mut faults = std::mem::take(&mut *self.shared.faults.lock().unwrap());
        let unused = self.shared.replies.lock().unwrap().len();
        if unused > 0 {
            faults.push(format!("{unused} replies were not used"));
        }
        faults
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let faults = self.close();
        if !std::thread::panicking() {
            assert!(
                faults.is_empty(),
                "the model server objects:\n{}",
                faults.join("\n")
            );
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut connections = Vec::new();
    for stream in listener.incoming() {
        if shared.closing.wait(Duration::ZERO) {
            break;
        }
        let Ok(stream) = stream else { continue };
        shared.streams.lock().unwrap().extend(stream.try_clone());
        let theirs = Arc::clone(shared);
        connections.push(std::thread::spawn(move || serve(stream, &theirs)));
    }
    for stream in shared.streams.lock().unwrap().drain(..) {
        let _ = stream.shutdown(Shutdown::Both);
    }
    for connection in connections {
        let _ = connection.join();
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream);
    while let Some(request) = receive(&mut reader) {
        let faults = transcript::breaches(&request.path, &request.body);
        shared.faults.lock().unwrap().extend(faults);
        let reply = shared.replies.lock().unwrap().pop_front();
        let mut requests = shared.requests.lock().unwrap();
        requests.push(request);
        let count = requests.len();
        drop(requests);
        shared.arrived.notify_all();
        let Some(reply) = reply else {
            shared
                .faults
                .lock()
                .unwrap()
                .push(format!("request {count} has no reply"));
            let _ = reader
                .get_mut()
                .write_all(b"HTTP/1.1 400 Unscripted\r\ncontent-length: 0\r\n\r\n");
            break;
        };
        match perform(&reply, reader.get_mut(), shared) {
            After::Serve => {}
            After::Close => break,
            // A farewell would come before the reset.
            After::Reset => return,
        }
    }
    let _ = reader.get_mut().shutdown(Shutdown::Both);
}

/// What becomes of a connection after a reply.
enum After {
    Serve,
    Close,
    Reset,
}

fn perform(reply: &Reply, stream: &mut TcpStream, shared: &Shared) -> After {
    let long = Duration::from_secs(60);
    for action in &reply.actions {
        match action {
            // An error says that the client is gone, which it may be.
            Action::Send(bytes) => {
                if stream.write_all(bytes).is_err() {
                    return After::Close;
                }
            }
            Action::Pause(duration) => {
                let _ = shared.closing.wait(*duration);
            }
            Action::Wait(gate) => {
                if !gate.wait(long) {
                    shared
                        .faults
                        .lock()
                        .unwrap()
                        .push("a gate was never opened".to_owned());
                }
            }
            Action::Reset => {
                reset(stream, shared);
                return After::Reset;
            }
            Action::HalfClose => {
                let _ = stream.shutdown(Shutdown::Write);
            }
            Action::Hang => {
                let _ = shared.closing.wait(long);
            }
        }
    }
    if reply.keep_alive {
        After::Serve
    } else {
        After::Close
    }
}

/// Closes with RST: what was sent may be lost, as after a crash.
fn reset(stream: &TcpStream, shared: &Shared) {
    let peer = stream.peer_addr().ok();
    // Only the last copy of the descriptor closes the connection.
    shared
        .streams
        .lock()
        .unwrap()
        .retain(|other| other.peer_addr().ok() != peer);
    if let Ok(copy) = stream.try_clone() {
        let _ = tokio::net::TcpSocket::from_std_stream(copy).set_zero_linger();
    }
}

fn receive(reader: &mut BufReader<TcpStream>) -> Option<Recorded> {
    let mut line = String::new();
    reader
        .read_line(&mut line)
        .ok()
        .filter(|count| *count > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut bytes = vec![
        0;
        length
            .and_then(|(_, length)| length.parse().ok())
            .unwrap_or(0)
    ];
    reader.read_exact(&mut bytes).ok()?;
    let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    Some(Recorded {
        path,
        headers,
        bytes,
        body,
    })
}
