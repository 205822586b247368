//! Proxies: which connections take them, which do not, and that their logins
//! stay between us and them.

use agent::model::Proxies;

use crate::support::cli::{Cli, Output};
use crate::support::dialect::{CHAT, remains, retries};
use crate::support::relay::{Age, Authority, Relay};
use crate::support::reply::{Reply, status};
use crate::support::server::ModelServer;

/// `user:p@ss-word-1` as a header says it.
const LOGIN: &str = "Basic dXNlcjpwQHNzLXdvcmQtMQ==";

fn task(base_url: &str) -> Cli {
    CHAT.task(base_url, "")
        .args(["--set", "retry.max_attempts=1"])
}

fn error(output: &Output) -> (String, String) {
    let error = output.result()["error"].clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (text(&error["message"]), text(&error["hints"][0]))
}

fn assert_no_login(output: &Output) {
    for (place, text) in remains(output) {
        for login in ["p@ss-word-1", "p%40ss-word-1", "dXNlcjpwQHNzLXdvcmQtMQ"] {
            assert!(!text.contains(login), "{place} holds the proxy's login");
        }
    }
}

#[test]
fn an_encrypted_connection_goes_through_a_tunnel() {
    let authority = Authority::new();
    let server = ModelServer::start([(CHAT.text)("Hello.")]);
    let front = Relay::tls(&authority, "models.test", Age::Valid, &server.url());
    let proxy = Relay::proxy(Some(LOGIN), &format!("http://127.0.0.1:{}", front.port()));
    let output = task("https://models.test/v1")
        .file("ca.pem", &authority.pem)
        .env("SSL_CERT_FILE", "ca.pem")
        .env(
            "HTTPS_PROXY",
            format!("http://user:p%40ss-word-1@127.0.0.1:{}", proxy.port()),
        )
        .run();
    assert_eq!(output.stdout, "Hello.\n");
    assert_no_login(&output);
    let heads = proxy.heads();
    assert_eq!(heads.len(), 1);
    assert!(
        heads[0].starts_with("CONNECT models.test:443 HTTP/1.1\r\n"),
        "{heads:?}"
    );
    // The key is for the model's server only.
    assert!(!heads[0].to_lowercase().contains("bearer"), "{heads:?}");
    assert_eq!(server.finish()[0].path, "/v1/chat/completions");
}

#[test]
fn a_proxy_that_asks_for_a_login_is_named_without_it() {
    let server = ModelServer::start(Vec::<Reply>::new());
    let proxy = Relay::proxy(Some("Basic c29tZWJvZHk6ZWxzZQ=="), &server.url());
    let at = format!("127.0.0.1:{}", proxy.port());
    for (url, says) in [
        (
            format!("http://{at}"),
            format!("the proxy http://{at} asks for a login, and https_proxy holds none"),
        ),
        (
            format!("http://user:p%40ss-word-1@{at}"),
            format!("the proxy http://{at} refuses the login in https_proxy"),
        ),
    ] {
        let output = CHAT
            .task("https://models.test/v1", "")
            .env("https_proxy", &url)
            .expect_code(77)
            .run();
        let (message, hint) = error(&output);
        assert!(message.ends_with(&says), "{message}");
        assert!(
            hint.contains("https_proxy") && hint.contains("NO_PROXY"),
            "{hint}"
        );
        assert_eq!(output.result()["error"]["httpStatus"], 407);
        assert_eq!(retries(&output), []);
        assert_no_login(&output);
    }
    assert_eq!(proxy.heads().len(), 2);
    server.finish();
}

#[test]
fn a_plain_connection_asks_the_proxy_itself() {
    let asks = status(407).header("proxy-authenticate", "Basic realm=\"x\"");
    let proxy = ModelServer::start([(CHAT.text)("Hello."), asks]);
    let url = proxy.url().replace("http://", "http://user:p%40ss-word-1@");
    let run = |code| {
        task("http://models.test/v1")
            .env("ALL_PROXY", &url)
            .expect_code(code)
            .run()
    };
    let output = run(0);
    assert_eq!(output.stdout, "Hello.\n");
    assert_no_login(&output);
    let output = run(77);
    assert!(error(&output).0.contains("refuses the login in ALL_PROXY"));
    assert_no_login(&output);
    for request in proxy.finish() {
        assert_eq!(request.path, "http://models.test/v1/chat/completions");
        assert_eq!(request.header("proxy-authorization"), Some(LOGIN));
    }
}

#[test]
fn a_proxy_that_is_not_there_is_blamed_and_not_the_provider() {
    for base_url in ["http://models.test/v1", "https://models.test/v1"] {
        let output = task(base_url)
            .env("ALL_PROXY", "http://user:p%40ss-word-1@127.0.0.1:1")
            .expect_code(69)
            .run();
        let (message, hint) = error(&output);
        assert!(
            message.contains("models.test by proxy http://127.0.0.1:1: "),
            "{message}"
        );
        assert!(hint.contains("ALL_PROXY"), "{hint}");
        assert_no_login(&output);
    }
}

#[test]
fn a_proxy_that_is_no_address_is_an_error_of_its_variable() {
    for value in [
        "socks9://user:p%40ss-word-1@proxy.test:1080",
        "http://",
        "http://a b",
    ] {
        let output = task("https://models.test/v1")
            .env("HTTPS_PROXY", value)
            .expect_code(78)
            .run();
        let (message, hint) = error(&output);
        assert!(
            message.contains("HTTPS_PROXY names a proxy that cannot be used"),
            "{message}"
        );
        assert!(hint.contains("HTTPS_PROXY=http://host:port"), "{hint}");
        assert_no_login(&output);
    }
}

#[test]
fn a_login_with_marks_that_end_it_is_refused_and_not_shown() {
    for (login, password) in [
        ("user:hunter#2secretpw", "hunter#2secretpw"),
        ("user:12/secretpassw", "12/secretpassw"),
        ("user:12?secretpassw", "12?secretpassw"),
        ("user:p@ss/secretpassw", "p@ss/secretpassw"),
        ("12345/one-word-login", "12345/one-word-login"),
    ] {
        let output = task("https://models.test/v1")
            .env("HTTPS_PROXY", format!("http://{login}@proxy.test:8080"))
            .args(["--append-system-prompt", &format!("I am {password}.")])
            .expect_code(78)
            .run();
        let (message, hint) = error(&output);
        let says = "HTTPS_PROXY names a proxy that cannot be used, http://proxy.test:8080: ";
        assert!(message.contains(says), "{message}");
        assert!(hint.contains("write / ? # as %2F %3F %23"), "{hint}");
        for (place, text) in remains(&output) {
            for part in [password, "secretpw", "secretpassw", "one-word-login"] {
                assert!(!text.contains(part), "{place} holds the login {login}");
            }
        }
    }
}

#[test]
fn both_spellings_of_a_password_are_secrets() {
    for (value, expect) in [
        (
            "http://user:p%40ss-word-1@proxy.test",
            vec!["p%40ss-word-1", "p@ss-word-1"],
        ),
        ("http://one-word-login@proxy.test", vec!["one-word-login"]),
        ("user:pass-word-1@proxy.test:80", vec!["pass-word-1"]),
        (
            "http://user:12/secretpassw@proxy.test",
            vec!["12/secretpassw"],
        ),
        ("http://proxy.test:8080", vec![]),
    ] {
        let proxies = Proxies::new(|name| (name == "HTTPS_PROXY").then_some(value));
        let mut secrets = proxies.secrets();
        secrets.sort();
        assert_eq!(secrets, expect, "{value}");
    }
}

/// The variables, a URL, and the proxy that is taken to it.
fn check(variables: &[(&str, &'static str)], url: &str, taken: Option<&str>) {
    let proxies = Proxies::new(|name| {
        let known = variables.iter().find(|(known, _)| *known == name);
        known.map(|(_, value)| *value)
    });
    let proxy = proxies.on_the_way_to(url).expect("a usable proxy");
    let shown = proxy.as_ref().map(agent::model::Proxy::shown);
    assert_eq!(shown.as_deref(), taken, "{variables:?} {url}");
}

#[test]
fn which_variable_counts() {
    const A: &str = "http://a.test:3128";
    const B: &str = "http://user:secret@b.test";
    let (a, b) = (Some(A), Some("http://b.test"));
    let (plain, secure) = ("http://models.test/v1", "https://models.test/v1");
    check(&[], secure, None);
    check(&[("HTTPS_PROXY", A), ("HTTP_PROXY", B)], secure, a);
    check(&[("HTTPS_PROXY", A), ("HTTP_PROXY", B)], plain, b);
    check(&[("HTTPS_PROXY", A)], plain, None);
    check(&[("https_proxy", B), ("HTTPS_PROXY", A)], secure, b);
    check(&[("ALL_PROXY", A)], plain, a);
    check(&[("all_proxy", B), ("ALL_PROXY", A)], secure, b);
    check(&[("ALL_PROXY", A), ("https_proxy", B)], secure, b);
    check(&[("HTTPS_PROXY", "a.test:3128")], secure, a);
    check(&[("HTTPS_PROXY", "  ")], secure, None);
    // Behind a web server the name in upper case is a header of the request.
    check(&[("HTTP_PROXY", A), ("REQUEST_METHOD", "GET")], plain, None);
    check(&[("http_proxy", A), ("REQUEST_METHOD", "GET")], plain, a);
    check(&[("HTTPS_PROXY", A), ("REQUEST_METHOD", "GET")], secure, a);
}

#[test]
fn this_machine_is_never_reached_through_a_proxy() {
    for host in [
        "localhost",
        "a.localhost",
        "127.0.0.1:8080",
        "127.9.9.9",
        "[::1]:1",
    ] {
        for scheme in ["http", "https"] {
            check(
                &[("ALL_PROXY", "http://a.test")],
                &format!("{scheme}://{host}/v1"),
                None,
            );
        }
    }
}

#[test]
fn what_is_excepted() {
    let table: [(&'static str, &str, bool); 26] = [
        ("models.test", "https://models.test/v1", true),
        ("MODELS.test", "https://models.TEST/v1", true),
        (".models.test", "https://models.test/v1", true),
        ("*.models.test", "https://eu.models.test/v1", true),
        ("models.test", "https://eu.models.test/v1", true),
        ("models.test", "https://mymodels.test/v1", false),
        ("models.test", "https://models.test.evil.test/v1", false),
        ("other.test, models.test", "https://models.test/v1", true),
        ("other.test models.test", "https://models.test/v1", true),
        ("models.test:443", "https://models.test/v1", true),
        ("models.test:8443", "https://models.test/v1", false),
        ("models.test:8443", "https://models.test:8443/v1", true),
        ("*", "https://models.test/v1", true),
        ("", "https://models.test/v1", false),
        (",, ,", "https://models.test/v1", false),
        ("10.1.2.3", "http://10.1.2.3:8000/v1", true),
        ("10.1.2.3", "http://10.1.2.30/v1", false),
        ("10.0.0.0/8", "http://10.200.0.1/v1", true),
        ("10.0.0.0/8", "http://11.0.0.1/v1", false),
        ("10.0.0.0/33", "http://10.0.0.1/v1", false),
        ("192.168.0.0/23", "http://192.168.1.255/v1", true),
        ("192.168.0.0/23", "http://192.168.2.0/v1", false),
        ("0.0.0.0/0", "http://9.9.9.9/v1", true),
        ("fd00::/8", "http://[fd12::1]:80/v1", true),
        ("fd00::1", "http://[fd00::1]/v1", true),
        ("fd00::/8", "http://10.0.0.1/v1", false),
    ];
    for (exceptions, url, direct) in table {
        for name in ["NO_PROXY", "no_proxy"] {
            let variables = [("ALL_PROXY", "http://a.test"), (name, exceptions)];
            check(&variables, url, (!direct).then_some("http://a.test"));
        }
    }
}
