//! The inner end of the way out of a sandbox: `agent sandbox-forward`.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Output;

use crate::proxy_scene::{Scene, Server};
use crate::support::cli::Cli;

/// Runs a script of bash behind the forwarder.
async fn behind(socket: &Path, script: &str) -> Output {
    let cli = Cli::new()
        .args(["sandbox-forward", "--socket"])
        .arg(socket)
        .args(["--", "bash", "-c", script]);
    let mut command = cli.command();
    command.process_group(0);
    tokio::task::spawn_blocking(move || {
        let output = command.output().unwrap();
        drop(cli);
        output
    })
    .await
    .unwrap()
}

/// A bash function that sends a request to the proxy and prints the answer.
const ASK: &str = r#"ask() {
    exec 3<>"/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}"
    printf "$1\r\n\r\n" >&3
    mapfile -u 3 lines
    printf '%s' "${lines[@]}"
}
"#;

#[tokio::test]
async fn a_command_reaches_the_proxy_by_its_environment() {
    let mut server = Server::start(b"HTTP/1.1 200 OK\r\n\r\nhi").await;
    let entry = server.address.to_string();
    let mut scene = Scene::new(&[&entry], &[]);
    let script = format!(
        "{ASK}
        for name in ALL_PROXY HTTPS_PROXY all_proxy http_proxy https_proxy; do
            [[ ${{!name}} == \"$HTTP_PROXY\" ]] || echo \"$name is ${{!name}}\"
        done
        [[ $HTTP_PROXY == http://127.0.0.1:* ]] || echo \"$HTTP_PROXY\"
        ask 'GET http://{entry}/x HTTP/1.1'
        ask 'CONNECT pypi.example:443 HTTP/1.1'"
    );
    let output = behind(scene.proxy.socket(), &script).await;
    let stdout = String::from_utf8(output.stdout).unwrap();
    let (allowed, refused) = stdout.split_once("hiHTTP/1.1 403 ").unwrap();
    assert_eq!(allowed, "HTTP/1.1 200 OK\r\n\r\n");
    assert!(
        refused.contains("pypi.example:443 is not listed"),
        "{refused}"
    );
    assert!(server.heard().await.starts_with("GET /x HTTP/1.1\r\n"));
    assert_eq!(scene.refused(), ["pypi.example:443"]);
    assert_eq!(output.status.code(), Some(0));
}

#[tokio::test]
async fn the_end_of_a_command_is_passed_on() {
    let scene = Scene::new(&[], &[]);
    let socket = scene.proxy.socket();
    for (script, status) in [
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        // The forwarder is in the group too, and outlives what is sent to it.
        ("trap 'exit 9' TERM; kill -TERM 0; exit 1", 9),
        ("trap 'exit 8' INT; kill -INT 0; exit 1", 8),
        ("sleep 100 & kill -HUP 0; wait", 129),
    ] {
        let output = behind(socket, script).await;
        assert_eq!(output.status.code(), Some(status), "{script}");
        assert!(output.stderr.is_empty(), "{script}: {output:?}");
    }
    let cli = Cli::new()
        .args(["sandbox-forward", "--socket", "/nowhere", "--", "/gone"])
        .expect_code(126);
    let output = cli.run();
    assert!(
        output.stderr.contains("cannot start `/gone`"),
        "{}",
        output.stderr
    );
}
