//! The network in the sandbox: off is off, by every protocol and socket.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};

use agent::sandbox::{Network, Tier};

use crate::sandbox_scene::{Scene, namespaces, tiers};

/// A datagram socket needs no connection: one of a pair could send to any path.
#[tokio::test]
async fn pairs_of_datagram_sockets_reach_nobody() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        let path = scene.path("outside/log");
        let log = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
        log.set_nonblocking(true).unwrap();
        for network in [Network::Off, Network::On] {
            scene.options.network = network;
            for kind in ["SOCK_DGRAM", "SOCK_RAW", "SOCK_DGRAM | 02000000 | 04000"] {
                let script = format!(
                    "perl -MSocket -e 'socketpair(A, B, AF_UNIX, {kind}, 0) and \
                     send(A, \"x\", 0, pack_sockaddr_un(\"{}\")) and print \"OPEN\"'; true",
                    path.display()
                );
                let ran = scene.run(&script).await;
                assert!(!ran.said.contains("OPEN"), "{} {ran:?}", tier.name());
                assert!(log.recv(&mut [0; 8]).is_err(), "{} {kind}", tier.name());
            }
            let stream = "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) and \
                          syswrite(A, \"works\") and sysread(B, $_, 9) and print'";
            let ran = scene.run(stream).await;
            assert_eq!(ran.said, "works", "{} {ran:?}", tier.name());
        }
    }
}

/// Connects with perl and says so when that worked.
fn connects(domain: &str, kind: &str, address: &str) -> String {
    format!(
        "perl -MSocket -e 'socket(S, {domain}, {kind}, 0) and connect(S, {address}) and print \"OPEN\"'; true"
    )
}

#[tokio::test]
async fn nothing_is_reached_with_the_network_off() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    let tcp6 = TcpListener::bind("[::1]:0").unwrap();
    let port6 = tcp6.local_addr().unwrap().port();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let udp_port = udp.local_addr().unwrap().port();
    let name = format!("agent-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
    let _abstract = UnixListener::bind_addr(&address).unwrap();
    for tier in tiers().await {
        let scene = Scene::new(tier);
        let sandbox = scene.sandbox().await;
        let path = scene.path("outside/socket");
        let _path = UnixListener::bind(&path).unwrap();
        for script in [
            format!("(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo OPEN"),
            format!("(exec 3<>/dev/tcp/::1/{port6}) && echo OPEN"),
            format!("(echo x > /dev/udp/127.0.0.1/{udp_port}); true"),
            "getent hosts example.com && echo OPEN".to_owned(),
            "(exec 3<>/dev/tcp/1.1.1.1/53) && echo OPEN".to_owned(),
            connects(
                "AF_UNIX",
                "SOCK_STREAM",
                &format!("pack(\"Sa*\", 1, \"\\0{name}\")"),
            ),
            connects(
                "AF_UNIX",
                "SOCK_STREAM",
                &format!("pack_sockaddr_un(\"{}\")", path.display()),
            ),
            "perl -MSocket -e 'socket(S, AF_INET, SOCK_RAW, 1) and print \"OPEN\"'".to_owned(),
            "perl -e 'socket(S, 17, 3, 0) and print \"OPEN\"'".to_owned(),
            "perl -e 'socket(S, 40, 1, 0) and print \"OPEN\"'".to_owned(),
        ] {
            let ran = scene.run_in(&script, sandbox.clone()).await;
            assert!(
                !ran.said.contains("OPEN"),
                "{} {script}: {ran:?}",
                tier.name()
            );
        }
        assert!(udp.recv(&mut [0; 8]).is_err(), "{}", tier.name());
    }
}

#[tokio::test]
async fn everything_is_reached_with_the_network_on() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = tcp.local_addr().unwrap().port();
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.options.network = Network::On;
        let ran = scene
            .run(&format!(
                "(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo reached"
            ))
            .await;
        assert_eq!(ran.said, "reached\n", "{}", tier.name());
    }
}

#[tokio::test]
async fn local_sockets_are_the_commands_own() {
    let own = "perl -MSocket -e 'socket(L, AF_UNIX, SOCK_STREAM, 0) and bind(L, pack_sockaddr_un(\"s\")) and listen(L, 1) and \
               socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack_sockaddr_un(\"s\")) and print \"met\"'";
    let Some(scene) = namespaces().await else {
        return;
    };
    assert_eq!(scene.run(own).await.said, "met");
    let mut scene = Scene::new(Tier::Landlock);
    assert_eq!(scene.run(own).await.said, "");
    scene.options.unix_sockets = true;
    assert_eq!(scene.run(own).await.said, "met");
    // Pairs lead nowhere and are always there.
    let pair = "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) and print \"pair\"'";
    scene.options.unix_sockets = false;
    assert_eq!(scene.run(pair).await.said, "pair");
}

#[tokio::test]
async fn loopback_works_within_namespaces() {
    let Some(scene) = namespaces().await else {
        return;
    };
    let own = "perl -MIO::Socket::INET -e '$l = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die; \
               IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $l->sockport) and print \"met\"'";
    assert_eq!(scene.run(own).await.said, "met");
}
