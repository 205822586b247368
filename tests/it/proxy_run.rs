//! What goes through the sandbox's proxy, and what does not.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent::sandbox::proxy::Upstream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use crate::proxy_request::greeting;
use crate::proxy_scene::{Scene, Server, soon, status};

const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
/// A test address of the Internet, at which nobody is asked.
const PUBLIC: &str = "192.31.196.1";

#[tokio::test]
async fn a_listed_host_is_reached_by_both_ways() {
    let mut server = Server::start(REPLY).await;
    let port = server.address.port();
    let entry = format!("a.example:{port}");
    let mut scene = Scene::new(&[&entry, "127.0.0.1"], &["127.0.0.1"]);

    let answer = scene
        .ask(&format!(
            "POST http://A.Example.:{port}/x?y HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic eA==\r\nProxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nUpgrade: h2c\r\nTE: trailers\r\nAccept: */*\r\nContent-Length: 4\r\n\r\nbodyGET http://a.example:{port}/smuggled HTTP/1.1\r\n\r\n"
        ))
        .await;
    assert_eq!(answer.as_bytes(), REPLY);
    assert_eq!(
        server.heard().await,
        format!(
            "POST /x?y HTTP/1.1\r\nHost: a.example:{port}\r\nAccept: */*\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        )
    );

    let answer = scene
        .ask(&format!("CONNECT a.example:{port} HTTP/1.1\r\n\r\nearly"))
        .await;
    let (head, rest) = answer.split_once("\r\n\r\n").unwrap();
    assert_eq!((status(head), rest.as_bytes()), (200, REPLY));
    assert_eq!(server.heard().await, "early");
    assert_eq!(scene.refused(), [""; 0]);
    scene.proxy.stop().await;
}

#[tokio::test]
async fn an_unlisted_host_is_refused_before_it_is_looked_up() {
    let mut scene = Scene::new(&["a.example", "*.b.example"], &[PUBLIC]);
    for request in [
        "CONNECT pypi.example:443 HTTP/1.1\r\n\r\n",
        "GET http://pypi.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
        "GET http://b.example/ HTTP/1.1\r\n\r\n",
        "CONNECT a.example:22 HTTP/1.1\r\n\r\n",
        "CONNECT 192.31.196.1:443 HTTP/1.1\r\n\r\n",
        "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
        "CONNECT 169.254.169.254:80 HTTP/1.1\r\n\r\n",
        "CONNECT a.example:80 HTTP/1.1\r\n\r\n",
    ] {
        let answer = scene.ask(request).await;
        assert_eq!(status(&answer), 403, "{request}");
        assert!(answer.contains("`sandbox.network`"), "{answer}");
    }
    assert_eq!(scene.lookups.load(Ordering::SeqCst), 0);
    // Each host once, with the port that was asked for first.
    assert_eq!(
        scene.refused(),
        [
            "pypi.example:443",
            "b.example:80",
            "a.example:22",
            "192.31.196.1:443",
            "[::1]:443",
            "169.254.169.254:80"
        ]
    );
    let answer = scene
        .ask("CONNECT pypi.example:8443 HTTP/1.1\r\n\r\n")
        .await;
    assert!(answer.ends_with(
        "agent: pypi.example:8443 is not listed in `sandbox.network` of the task; `pypi.example:8443` would allow it\n"
    ), "{answer}");
    assert_eq!(scene.refused(), [""; 0]);
    // Whoever asks in between hears of every one, but for repetitions.
    let recent = scene.proxy.recent_refusals();
    assert_eq!(recent.take().len(), 8);
    scene.ask("CONNECT pypi.example:443 HTTP/1.1\r\n\r\n").await;
    scene.ask("CONNECT pypi.example:443 HTTP/1.1\r\n\r\n").await;
    let targets = recent.take().into_iter().map(|refusal| refusal.target);
    assert_eq!(targets.collect::<Vec<_>>(), ["pypi.example:443"]);
    assert_eq!(recent.take(), []);
}

#[tokio::test]
async fn a_name_that_leads_inside_is_refused() {
    let mut server = Server::start(REPLY).await;
    let port = server.address.port();
    let entry = format!("a.example:{port}");
    for inside in [
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        // One bad address among good ones is enough.
        "192.31.196.1 127.0.0.1",
    ] {
        let mut scene = Scene::new(&[&entry], &[inside]);
        for request in [
            format!("CONNECT a.example:{port} HTTP/1.1\r\n\r\n"),
            format!("GET http://a.example:{port}/ HTTP/1.1\r\n\r\n"),
        ] {
            let answer = scene.ask(&request).await;
            assert_eq!(status(&answer), 403, "{inside}: {answer}");
            assert!(answer.contains("no address of the Internet"), "{answer}");
        }
        assert_eq!(scene.refused(), [format!("a.example:{port}")]);
    }
    assert!(server.is_untouched());
}

#[tokio::test]
async fn a_name_is_looked_up_once_for_each_connection() {
    let mut server = Server::start(REPLY).await;
    let port = server.address.port();
    let entry = format!("a.example:{port}");
    // What a second look-up would say must not matter to the first connection.
    let scene = Scene::new(&[&entry, "127.0.0.1"], &["127.0.0.1", "127.0.0.2"]);
    let request = format!("GET http://a.example:{port}/ HTTP/1.1\r\n\r\n");
    assert_eq!(status(&scene.ask(&request).await), 200);
    assert_eq!(scene.lookups.load(Ordering::SeqCst), 1);
    assert!(server.heard().await.starts_with("GET / HTTP/1.1\r\n"));
    assert_eq!(status(&scene.ask(&request).await), 403);
}

#[tokio::test]
async fn a_listed_address_is_reached() {
    let mut server = Server::start(REPLY).await;
    let entry = server.address.to_string();
    let scene = Scene::new(&[&entry], &[]);
    let answer = scene
        .ask(&format!("GET http://{entry}/ HTTP/1.1\r\n\r\n"))
        .await;
    assert_eq!(status(&answer), 200);
    assert!(server.heard().await.contains(&format!("Host: {entry}\r\n")));
}

#[tokio::test]
async fn what_cannot_be_reached_is_told_apart() {
    let refusing = {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().to_string()
    };
    let mut scene = Scene::new(&[&refusing, "gone.invalid"], &[]);
    for (target, said) in [
        (refusing.as_str(), "cannot connect to 127.0.0.1"),
        ("gone.invalid", "the name gone.invalid cannot be resolved"),
    ] {
        let answer = scene
            .ask(&format!("GET http://{target}/ HTTP/1.1\r\n\r\n"))
            .await;
        assert_eq!(status(&answer), 502, "{target}");
        assert!(answer.contains(said), "{answer}");
    }
    assert_eq!(scene.refused(), [""; 0]);
}

#[tokio::test]
async fn a_tunnel_to_443_is_for_tls_with_that_host() {
    // A proxy on the way takes the place of whatever is behind port 443.
    let mut proxy = Server::start(b"HTTP/1.1 200 OK\r\n\r\n").await;
    let on_the_way = Upstream {
        host: "127.0.0.1".to_owned(),
        port: proxy.address.port(),
        authorization: None,
    };
    let mut scene = Scene::with(&["a.example", "192.31.196.1"], &[], |options| {
        options.route = Arc::new(move |_| Ok(Some(on_the_way.clone())));
    });
    for (target, first, opened) in [
        ("a.example", greeting("a.example"), true),
        ("a.example", greeting("b.example"), false),
        ("a.example", greeting("192.0.2.7"), false),
        (
            "a.example",
            b"GET / HTTP/1.1\r\nHost: evil\r\n\r\n".to_vec(),
            false,
        ),
        ("192.31.196.1", greeting("192.31.196.1"), true),
        ("192.31.196.1", greeting("a.example"), false),
    ] {
        let mut client = scene.connect().await;
        let ask = format!("CONNECT {target}:443 HTTP/1.1\r\n\r\n");
        client.write_all(ask.as_bytes()).await.unwrap();
        let mut answer = [0; 39];
        soon(client.read_exact(&mut answer)).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{target}");
        // Cut, so that the message comes in two pieces.
        let (start, rest) = first.split_at(3);
        client.write_all(start).await.unwrap();
        client.flush().await.unwrap();
        client.write_all(rest).await.unwrap();
        let _ = client.shutdown().await;
        let mut back = Vec::new();
        soon(client.read_to_end(&mut back)).await.unwrap();
        let heard = proxy.heard().await;
        let ask = format!("CONNECT {target}:443 HTTP/1.1\r\nHost: {target}:443\r\n\r\n");
        assert!(heard.starts_with(&ask), "{heard}");
        assert_eq!(heard.len() > ask.len(), opened, "{target}: {heard:?}");
        let alert: &[u8] = if opened {
            b""
        } else {
            &[21, 3, 3, 0, 2, 2, 49]
        };
        assert_eq!(back, alert, "{target}");
    }
    assert_eq!(scene.refused(), ["a.example:443", "192.31.196.1:443"]);
}

#[tokio::test]
async fn the_proxy_of_the_runner_is_asked_for_the_rest() {
    let mut server = Server::start(REPLY).await;
    let upstream = Upstream {
        host: "proxy.example".to_owned(),
        port: server.address.port(),
        authorization: Some("Basic bG9naW4=".to_owned()),
    };
    let scene = Scene::with(&["a.test", "b.test:81"], &["127.0.0.1"], |options| {
        options.route = Arc::new(move |url| match url {
            "http://a.test:80/" | "http://b.test:81/" => Ok(Some(upstream.clone())),
            url => Err(format!("no way to {url}")),
        });
    });
    let answer = scene.ask("GET http://a.test/x HTTP/1.0\r\n\r\n").await;
    assert_eq!(answer.as_bytes(), REPLY);
    assert_eq!(
        server.heard().await,
        "GET http://a.test/x HTTP/1.0\r\nHost: a.test\r\nProxy-Authorization: Basic bG9naW4=\r\nConnection: close\r\n\r\n"
    );
    // What it says first belongs to the tunnel.
    let answer = scene.ask("CONNECT b.test:81 HTTP/1.1\r\n\r\n").await;
    assert!(answer.ends_with("\r\n\r\nhi"), "{answer}");
    let heard = server.heard().await;
    assert!(heard.starts_with(
        "CONNECT b.test:81 HTTP/1.1\r\nHost: b.test:81\r\nProxy-Authorization: Basic bG9naW4=\r\n\r\n"
    ));
    let answer = scene.ask("CONNECT a.test:443 HTTP/1.1\r\n\r\n").await;
    assert_eq!(status(&answer), 502);
    assert!(answer.contains("no way to https://a.test:443/"), "{answer}");
}

#[tokio::test]
async fn another_proxy_that_refuses_is_told() {
    for (reply, said) in [
        (&b"HTTP/1.1 407 Login\r\n\r\n"[..], "answered 407"),
        (b"SSH-2.0-x\r\n\r\n", "does not speak HTTP"),
        (b"HTTP/1.1 200", "no whole answer"),
    ] {
        let server = Server::start(reply).await;
        let port = server.address.port();
        let scene = Scene::with(&["a.test:1"], &[], |options| {
            options.route = Arc::new(move |_| {
                Ok(Some(Upstream {
                    host: "127.0.0.1".to_owned(),
                    port,
                    authorization: None,
                }))
            });
        });
        let answer = scene.ask("CONNECT a.test:1 HTTP/1.1\r\n\r\n").await;
        assert_eq!(status(&answer), 502, "{answer}");
        assert!(answer.contains(said), "{answer}");
    }
}

#[tokio::test]
async fn nobody_is_waited_for_without_end() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let entry = silent.local_addr().unwrap().to_string();
    let scene = Scene::with(&[&entry], &[], |options| {
        options.head_timeout = Duration::from_millis(60);
        options.idle_timeout = Duration::from_millis(60);
        options.connections_max = 1;
    });
    // A head that comes byte by byte.
    let mut slow = scene.connect().await;
    slow.write_all(b"GET http://").await.unwrap();
    // One connection is all there may be: the next is served after it.
    let next = scene.ask("GET / HTTP/1.1\r\n\r\n");
    let mut answer = String::new();
    let (next, read) = tokio::join!(next, soon(slow.read_to_string(&mut answer)));
    read.unwrap();
    assert_eq!((status(&answer), status(&next)), (408, 400));

    // A server that says nothing.
    let answer = scene
        .ask(&format!("CONNECT {entry} HTTP/1.1\r\n\r\n"))
        .await;
    assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\n");
}

/// A client, and the server to which it has asked for a tunnel.
async fn tunnel() -> (Scene, UnixStream, TcpStream) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let entry = listener.local_addr().unwrap().to_string();
    let scene = Scene::new(&[&entry], &[]);
    let mut client = scene.connect().await;
    let ask = format!("CONNECT {entry} HTTP/1.1\r\n\r\n");
    client.write_all(ask.as_bytes()).await.unwrap();
    let (server, _) = soon(listener.accept()).await.unwrap();
    (scene, client, server)
}

#[tokio::test]
async fn a_tunnel_has_two_ends_that_close_one_by_one() {
    let (_scene, mut client, mut server) = tunnel().await;
    let big: Vec<u8> = (0..300_000_u32).map(|one| one.to_le_bytes()[0]).collect();
    let mut heard = Vec::new();
    let (sent, read) = tokio::join!(
        async {
            client.write_all(&big).await?;
            client.shutdown().await
        },
        soon(server.read_to_end(&mut heard))
    );
    sent.unwrap();
    read.unwrap();
    assert!(heard == big, "{} bytes", heard.len());
    server.write_all(b"late").await.unwrap();
    drop(server);
    let mut answer = String::new();
    soon(client.read_to_string(&mut answer)).await.unwrap();
    assert!(answer.ends_with("\r\n\r\nlate"), "{answer}");
}

#[tokio::test]
async fn a_stopped_proxy_lets_go() {
    let (scene, _client, mut server) = tunnel().await;
    let socket = scene.proxy.socket().to_owned();
    soon(scene.proxy.stop()).await;
    assert!(!socket.exists());
    let mut rest = Vec::new();
    soon(server.read_to_end(&mut rest)).await.unwrap();
    assert_eq!(rest, b"");
}
