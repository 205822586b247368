//! A model's server on the loopback interface, and what it answers.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

const USAGE: &str = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":10}}\n\ndata: [DONE]\n\n";

fn frame(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

/// A reply of text.
pub(crate) fn text_reply(deltas: usize) -> String {
    let mut body = frame("{\"content\":\"some more text \"}", "null").repeat(deltas);
    body.push_str(&frame("{}", "\"stop\""));
    body + USAGE
}

/// Replies for a run of `count` steps: all but the last read the file, at
/// changing places so that no guard against repetition speaks up.
pub(crate) fn script(count: usize) -> Vec<String> {
    let call = |index: usize| {
        let arguments = format!("{{\\\"path\\\":\\\"a.txt\\\",\\\"limit\\\":{}}}", index + 1);
        let delta = format!(
            "{{\"tool_calls\":[{{\"index\":0,\"id\":\"c{index}\",\"type\":\"function\",\"function\":{{\"name\":\"read\",\"arguments\":\"{arguments}\"}}}}]}}"
        );
        frame(&delta, "null") + &frame("{}", "\"tool_calls\"") + USAGE
    };
    let mut replies: Vec<String> = (1..count).map(call).collect();
    replies.push(text_reply(1));
    replies
}

/// Answers requests with its replies in order, from the start after `rewind`.
pub(crate) struct Server {
    /// The base URL.
    pub(crate) url: String,
    exchanges: Arc<Mutex<Vec<Exchange>>>,
}

/// One request and its answer.
#[derive(Clone, Copy)]
pub(crate) struct Exchange {
    /// Bytes of the request's body.
    pub(crate) bytes: usize,
    /// When the whole request was there.
    pub(crate) received: Instant,
    /// When the whole answer was on its way.
    pub(crate) answered: Option<Instant>,
}

impl Server {
    pub(crate) fn start(replies: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let exchanges: Arc<Mutex<Vec<Exchange>>> = Arc::default();
        let shared = Arc::clone(&exchanges);
        let replies = Arc::new(replies);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (shared, replies) = (Arc::clone(&shared), Arc::clone(&replies));
                std::thread::spawn(move || serve(stream.unwrap(), &shared, &replies));
            }
        });
        Self { url, exchanges }
    }

    pub(crate) fn rewind(&self) {
        self.exchanges.lock().unwrap().clear();
    }

    /// What was asked since the last `rewind`.
    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, exchanges: &Mutex<Vec<Exchange>>, replies: &[String]) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut body = Vec::new();
    while let Some(bytes) = request_length(&mut reader) {
        body.resize(bytes, 0);
        reader.read_exact(&mut body).unwrap();
        let index = {
            let mut exchanges = exchanges.lock().unwrap();
            exchanges.push(Exchange {
                bytes,
                received: Instant::now(),
                answered: None,
            });
            exchanges.len() - 1
        };
        let reply = &replies[index.min(replies.len() - 1)];
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            reply.len()
        );
        // One write, so that its time is the time of the whole answer; noted
        // before it, because the client may already ask again behind it.
        let answer = head + reply;
        if let Some(exchange) = exchanges.lock().unwrap().get_mut(index) {
            exchange.answered = Some(Instant::now());
        }
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The length of the next request's body; none at the end of the connection.
fn request_length(reader: &mut impl BufRead) -> Option<usize> {
    let mut length = 0;
    let mut line = String::new();
    loop {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        if line == "\r\n" {
            return Some(length);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
}
