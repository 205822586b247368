//! The heads of requests to the sandbox's proxy, and the first message of TLS.

use agent::sandbox::proxy::{HEAD_BYTES_MAX, HELLO_BYTES_MAX, Hello, Request};
use proptest::prelude::*;
use std::sync::Arc;

fn read(text: &str) -> Result<Request, u16> {
    match Request::read(text.as_bytes()) {
        Ok(Some((request, bytes))) => {
            assert_eq!(bytes, text.len(), "{text:?}");
            Ok(request)
        }
        Ok(None) => panic!("{text:?} is not whole"),
        Err(bad) => Err(bad.status),
    }
}

#[test]
fn the_request_line_says_where_to() {
    for (line, target, body) in [
        ("CONNECT crates.io:443 HTTP/1.1", "crates.io:443", 0),
        ("CONNECT [2001:db8::7]:443 HTTP/1.0", "[2001:db8::7]:443", 0),
        ("GET http://crates.io HTTP/1.1", "crates.io:80", 0),
        ("GET HTTP://Crates.IO./x?y=@/ HTTP/1.1", "crates.io:80", 0),
        ("GET http://crates.io:8080?q HTTP/1.1", "crates.io:8080", 0),
        (
            "POST http://a.example/ HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 7",
            "a.example:80",
            7,
        ),
    ] {
        let request = read(&format!("{line}\r\n\r\n")).unwrap();
        assert_eq!(request.target().to_string(), target, "{line}");
        if let Request::Forward(forward) = request {
            assert_eq!(forward.body_bytes, body, "{line}");
        }
    }
}

#[test]
fn a_request_line_is_read_in_one_way_only() {
    for (line, status) in [
        ("GET /x HTTP/1.1", 400),
        ("GET https://a.example/ HTTP/1.1", 400),
        ("GET ftp://a.example/ HTTP/1.1", 400),
        ("OPTIONS * HTTP/1.1", 400),
        ("GET  http://a.example/ HTTP/1.1", 400),
        ("GET http://a.example/ x HTTP/1.1", 400),
        ("GET http://a.example/\tHTTP/1.1", 400),
        ("GET http://a.example/\r HTTP/1.1", 400),
        ("GET http://a.example/#x HTTP/1.1", 400),
        ("GET http://a.example/ HTTP/2.0", 505),
        ("GET http://a.example/", 400),
        (" GET http://a.example/ HTTP/1.1", 400),
        ("", 400),
        ("GET http://b@a.example/ HTTP/1.1", 400),
        ("GET http://b:c@a.example/ HTTP/1.1", 400),
        ("GET http://a.example\\@b/ HTTP/1.1", 400),
        ("GET http://a.example:80:81/ HTTP/1.1", 400),
        ("GET http://bücher.example/ HTTP/1.1", 400),
        ("GET http://127.1/ HTTP/1.1", 400),
        ("GET http:/// HTTP/1.1", 400),
        ("CONNECT crates.io HTTP/1.1", 400),
        ("CONNECT crates.io:443/x HTTP/1.1", 400),
        ("CONNECT crates.io:443:80 HTTP/1.1", 400),
        ("CONNECT u@crates.io:443 HTTP/1.1", 400),
        ("CONNECT crates.io:0443 HTTP/1.1", 400),
        ("CONNECT http://crates.io:443 HTTP/1.1", 400),
        ("CONNECT a%2eexample:443 HTTP/1.1", 400),
        ("CONNECT a.io:443 HTTP/1.1\r\nContent-Length: 1", 400),
        (
            "CONNECT a.io:443 HTTP/1.1\r\nTransfer-Encoding: chunked",
            411,
        ),
    ] {
        assert_eq!(read(&format!("{line}\r\n\r\n")), Err(status), "{line:?}");
    }
    assert_eq!(read("GET http://a.example/ HTTP/1.1\n\n"), Err(400));
}

#[test]
fn headers_are_read_in_one_way_only() {
    for (headers, status) in [
        ("Host: a\nX: b", 400),
        ("A: b\r\n c: d", 400),
        ("Host : a.example", 400),
        ("no colon", 400),
        (": empty", 400),
        ("A: b\0c", 400),
        ("A: b\rHost: c", 400),
        ("Host: a.example\r\nhost: b", 400),
        ("Content-Length: 1\r\nContent-Length: 1", 400),
        ("Content-Length: 1, 1", 400),
        ("Content-Length: +1", 400),
        ("Content-Length: -1", 400),
        ("Content-Length: ", 400),
        ("Content-Length: 99999999999999999999", 400),
        ("Content-Length: 1\r\nTransfer-Encoding: chunked", 400),
        ("transfer-encoding: chunked", 411),
    ] {
        let text = format!("GET http://a.example/ HTTP/1.1\r\n{headers}\r\n\r\n");
        assert_eq!(read(&text), Err(status), "{headers:?}");
    }
}

#[test]
fn a_head_has_eight_kibibytes() {
    let fits = |fill: usize| {
        let text = format!(
            "GET http://a.example/ HTTP/1.1\r\nA: {}\r\n\r\n",
            "b".repeat(fill)
        );
        (
            text.len(),
            Request::read(text.as_bytes()).map_err(|bad| bad.status),
        )
    };
    let (length, read) = fits(HEAD_BYTES_MAX - 39);
    assert_eq!(length, HEAD_BYTES_MAX);
    assert!(read.unwrap().is_some());
    let (length, read) = fits(HEAD_BYTES_MAX - 38);
    assert_eq!((length, read.unwrap_err()), (HEAD_BYTES_MAX + 1, 431));
}

/// What heads are made of, and what they should not be.
const PIECES: &[&str] = &[
    "GET ",
    "CONNECT ",
    "http://",
    "a.example",
    ":443",
    "@",
    " HTTP/1.1",
    "\r\n",
    "\r\n",
    "\n",
    "Host: b",
    "Content-Length: 4",
    "Transfer-Encoding: chunked",
    "Connection: x",
    "[::1]",
    "ü",
];

proptest! {
    /// Wherever a head is cut, the same comes of it, and never a panic.
    #[test]
    fn any_bytes_in_any_pieces_give_the_same(
        bytes in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..400),
            proptest::collection::vec(prop::sample::select(PIECES), 0..14)
            .prop_map(|pieces| pieces.concat().into_bytes()),
        ],
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let whole = Request::read(&bytes);
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        ends.push(bytes.len());
        ends.sort_unstable();
        let first = ends.into_iter().map(|end| Request::read(&bytes[..end])).find(|read| *read != Ok(None));
        prop_assert_eq!(first.unwrap_or(Ok(None)), whole.clone());
        if let Ok(Some((_, taken))) = whole {
            prop_assert!(bytes[..taken].ends_with(b"\r\n\r\n"));
        }
    }

    #[test]
    fn any_first_message_is_judged(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let mut greeting = vec![22, 3, 1];
        greeting.extend(&bytes);
        for start in [&bytes[..], &greeting] {
            if let Hello::Tls(Some(name)) = Hello::read(start) {
                prop_assert!(name.len() <= bytes.len());
            }
        }
    }
}

/// The first message of a client that wants `name`.
pub(crate) fn greeting(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let name = name.to_owned().try_into().unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).unwrap();
    bytes
}

#[test]
fn the_first_message_of_tls_names_the_server() {
    let bytes = greeting("crates.io");
    let named = Hello::Tls(Some("crates.io".to_owned()));
    assert_eq!(Hello::read(&bytes), named);
    for end in 0..bytes.len() {
        assert_eq!(Hello::read(&bytes[..end]), Hello::Partial, "{end} bytes");
    }
    assert_eq!(Hello::read(&greeting("192.0.2.7")), Hello::Tls(None));

    // The same in records of a few bytes each.
    let pieces = bytes[5..].chunks(7).flat_map(|piece| {
        let mut record = vec![22, 3, 1, 0, u8::try_from(piece.len()).unwrap()];
        record.extend(piece);
        record
    });
    assert_eq!(Hello::read(&pieces.collect::<Vec<u8>>()), named);
}

#[test]
fn what_is_no_tls_is_known_at_once() {
    let broken = |at: usize, byte: u8| {
        let mut bytes = greeting("crates.io");
        bytes[at] = byte;
        bytes
    };
    let endless = [22, 3, 1, 0, 1, 1].repeat(HELLO_BYTES_MAX);
    for (bytes, what) in [
        (b"GET / HTTP/1.1".to_vec(), "another protocol"),
        (b"S".to_vec(), "its first byte"),
        (broken(0, 23), "data before a greeting"),
        (broken(1, 2), "an old version"),
        (broken(5, 2), "another message"),
        (vec![22, 3, 1, 0, 0], "an empty record"),
        (endless, "more than a message can be"),
    ] {
        assert_eq!(Hello::read(&bytes), Hello::Other, "{what}");
    }
}
