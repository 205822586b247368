//! Answers without end or measure: each is given up at its cap, with a typed error.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use agent::clock::Activity;
use agent::model::{Client, ClientOptions, FRAME_BYTES_MAX, ModelError, ModelErrorKind, resolve};

use crate::support::models::{request, user};

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

/// What comes of an answer that begins with `head` and goes on with `piece` for
/// as long as anybody listens, and how many bytes were taken.
async fn endless(head: impl Into<Vec<u8>>, piece: Vec<u8>) -> (ModelError, usize) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let head = head.into();
    let serving = std::thread::spawn(move || {
        let (socket, _) = listener.accept().expect("a connection");
        flood(socket, &head, &piece)
    });
    let model = resolve("openai-chat/m", Some(&url)).expect("ad hoc");
    let options = ClientOptions::new(Activity::new());
    let client = Client::http(model, None, options).expect("a client");
    let error = match client.send(&request(vec![user("hi")])).await {
        Err(error) => error,
        Ok(mut reply) => loop {
            match reply.next().await {
                Ok(event) => assert!(event.is_some(), "the answer has an end"),
                Err(error) => break error,
            }
        },
    };
    // A closed connection is what ends the flood, and closing it needs the
    // thread that this test runs on.
    drop(client);
    let sent = tokio::task::spawn_blocking(|| serving.join()).await;
    (error, sent.expect("joined").expect("a server"))
}

fn flood(mut socket: TcpStream, head: &[u8], piece: &[u8]) -> usize {
    let mut seen = [0; 4096];
    let _head = socket.read(&mut seen).expect("a request");
    socket.write_all(head).expect("written");
    let mut sent = 0;
    while socket.write_all(piece).is_ok() {
        sent += piece.len();
        assert!(sent < 1 << 30, "nobody ends it");
    }
    sent
}

#[tokio::test]
async fn one_piece_of_64_mib() {
    let head = format!("{STREAM}\r\ndata: {{\"choices\":[{{\"delta\":{{\"content\":\"");
    let (error, sent) = endless(head, vec![b'x'; 64 << 10]).await;
    assert_eq!(error.kind, ModelErrorKind::BadResponse);
    assert!(error.message.contains("8 MiB"), "{error}");
    assert!(sent < 4 * FRAME_BYTES_MAX, "{sent}");
}

#[tokio::test]
async fn an_answer_without_end() {
    let (error, sent) = endless(format!("{STREAM}\r\n"), vec![b'\n'; 256 << 10]).await;
    assert_eq!(error.kind, ModelErrorKind::BadResponse);
    assert!(error.message.contains("larger than 128 MiB"), "{error}");
    assert!(!error.is_retryable(), "it would be as large again");
    assert!(sent < 160 << 20, "{sent}");
}

#[tokio::test]
async fn a_document_without_end() {
    let (error, sent) = endless(format!("{STREAM}\r\n{{\"a\":\""), vec![b'x'; 256 << 10]).await;
    assert_eq!(error.kind, ModelErrorKind::BadResponse);
    assert!(error.message.contains("larger than 32 MiB"), "{error}");
    assert!(sent < 64 << 20, "{sent}");
}

/// A stream of deflate that says a megabyte in a kilobyte, again and again.
#[tokio::test]
async fn a_small_answer_that_unpacks_to_a_large_one() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let blank = vec![b'\n'; 1 << 20];
    for _ in 0..16 {
        packed.write_all(&blank).expect("packed");
    }
    packed.flush().expect("packed");
    let opening = packed.get_ref().len();
    packed.write_all(&blank).expect("packed");
    packed.flush().expect("packed");
    let bomb = packed.get_ref().clone();
    // After a flush the same bytes mean the same again.
    let (first, again) = bomb.split_at(opening);
    let mut head = format!("{STREAM}content-encoding: gzip\r\n\r\n").into_bytes();
    head.extend_from_slice(first);
    let (error, sent) = endless(head, again.repeat(16)).await;
    assert_eq!(error.kind, ModelErrorKind::BadResponse);
    assert!(error.message.contains("larger than 128 MiB"), "{error}");
    assert!(sent < 8 << 20, "{sent}");
}

#[tokio::test]
async fn an_error_without_end_is_read_as_far_as_it_says_something() {
    let head = "HTTP/1.1 500 Oops\r\ncontent-type: text/plain\r\n\r\nthe cause is ";
    let (error, sent) = endless(head, vec![b'x'; 64 << 10]).await;
    assert_eq!(
        (error.kind, error.http_status),
        (ModelErrorKind::Unavailable, Some(500))
    );
    assert!(error.message.starts_with("the cause is xxx"), "{error}");
    assert!(error.message.len() < 3000 && sent < 16 << 20, "{sent}");
}

#[tokio::test]
async fn headers_without_end() {
    let (error, sent) = endless("HTTP/1.1 200 OK\r\n", b"x-more: and more\r\n".repeat(4096)).await;
    assert_eq!(error.kind, ModelErrorKind::Unavailable);
    assert!(error.message.starts_with("127.0.0.1: "), "{error}");
    assert!(sent < 16 << 20, "{sent}");
}
