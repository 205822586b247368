//! Encrypted connections: whom they trust, what is said when they do not, and
//! that nothing of it is touched without them.

use crate::support::cli::{Cli, Output};
use crate::support::dialect::{CHAT, KEY, retries};
use crate::support::relay::{Age, Authority, Relay};
use crate::support::reply::Reply;
use crate::support::server::ModelServer;

/// A run against `https://localhost:PORT`.
fn over_tls(port: u16) -> Cli {
    CHAT.task(&format!("https://localhost:{port}"), "")
}

/// A run that fails before anybody gets the request: what it says.
fn distrusts(host: &str, age: Age) -> Output {
    let authority = Authority::new();
    let server = ModelServer::start(Vec::<Reply>::new());
    let front = Relay::tls(&authority, host, age, &server.url());
    let output = over_tls(front.port())
        .file("ca.pem", &authority.pem)
        .env("SSL_CERT_FILE", "ca.pem")
        .expect_code(69)
        .run();
    assert_eq!(server.finish().len(), 0);
    assert_eq!(retries(&output), [], "{}", output.result());
    output
}

fn hints(output: &Output) -> String {
    let hints = &output.result()["error"]["hints"];
    hints[0].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_unknown_authority_is_trusted_when_it_is_named_and_never_otherwise() {
    let authority = Authority::new();
    let server = ModelServer::start([(CHAT.text)("Hello.")]);
    let front = Relay::tls(&authority, "localhost", Age::Valid, &server.url());

    let output = over_tls(front.port()).expect_code(69).run();
    assert_eq!(server.requests().len(), 0);
    assert_eq!(retries(&output), []);
    assert!(
        hints(&output).contains("SSL_CERT_FILE"),
        "{}",
        hints(&output)
    );
    let error = output.result()["error"].clone();
    assert_eq!(error["code"], "unavailable");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("localhost: invalid peer certificate: UnknownIssuer"),
        "{message}"
    );

    // Beside others, as in a bundle of a whole system.
    let bundle = format!("# ours\n{}{}", Authority::new().pem, authority.pem);
    let output = over_tls(front.port())
        .file("bundle.pem", bundle)
        .env("SSL_CERT_FILE", "bundle.pem")
        .run();
    assert_eq!(output.stdout, "Hello.\n");
    let request = server.finish().remove(0);
    assert_eq!(
        request.header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
}

#[test]
fn a_certificate_that_is_over_or_of_another_host_is_refused() {
    let expired = distrusts("localhost", Age::Expired);
    assert!(
        hints(&expired).contains("out of date"),
        "{}",
        hints(&expired)
    );
    let other = distrusts("elsewhere.test", Age::Valid);
    assert!(hints(&other).contains("another host"), "{}", hints(&other));
}

#[test]
fn a_server_that_speaks_no_tls_is_told_from_one_that_is_not_trusted() {
    let server = ModelServer::start(Vec::<Reply>::new());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        use std::io::Write as _;
        let (mut socket, _) = listener.accept().unwrap();
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    });
    let output = over_tls(port).expect_code(69).run();
    serving.join().unwrap();
    assert!(hints(&output).contains("http://"), "{}", output.result());
    assert_eq!(retries(&output), []);
    server.finish();
}

#[test]
fn a_bundle_that_cannot_be_used_is_an_error_before_the_first_connection() {
    let table = [
        ("missing.pem", None, "cannot read missing.pem: no such file"),
        ("empty.pem", Some(""), "holds no certificate"),
        (
            "key.pem",
            Some("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"),
            "holds no certificate",
        ),
        (
            "broken.pem",
            Some("-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----\n"),
            "the bundle is broken",
        ),
        (
            "odd.pem",
            Some("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
            "none of its 1 certificates",
        ),
        (".", None, "cannot read .: it is a directory"),
    ];
    for (name, content, says) in table {
        let mut cli = over_tls(1).env("SSL_CERT_FILE", name).expect_code(78);
        if let Some(content) = content {
            cli = cli.file(name, content);
        }
        let output = cli.run();
        let result = output.result();
        assert_eq!(result["reason"], "config", "{name}");
        assert_eq!(result["error"]["code"], "setup", "{name}");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("SSL_CERT_FILE") && message.contains(says),
            "{name}: {message}"
        );
        assert!(hints(&output).contains("PEM"), "{}", hints(&output));
        assert_eq!(retries(&output), []);
    }
}

#[test]
fn a_plain_connection_reads_no_bundle_and_asks_no_proxy() {
    let server = ModelServer::start([(CHAT.text)("Hello.")]);
    let output = CHAT
        .task(&server.url(), "")
        .env("SSL_CERT_FILE", "missing.pem")
        .env("HTTP_PROXY", "http://127.0.0.1:1")
        .env("all_proxy", "nonsense://")
        .run();
    assert_eq!(output.stdout, "Hello.\n");
    server.finish();
}
