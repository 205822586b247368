//! Hosts by name in the sandbox, through the program: what is listed is reached,
//! and nothing else.

use std::net::{TcpListener, UdpSocket};

use serde_json::{Value, json};

use crate::proxy_scene::Server;
use crate::support::cli::{Cli, Output};

/// A bash function that asks the proxy by hand and prints the first line of the
/// answer.
const ASK: &str = r#"ask() {
    exec 3<>"/dev/tcp/127.0.0.1/${HTTPS_PROXY##*:}"
    printf "$1\r\n\r\n" >&3
    read -r -u 3 line
    printf '%s\n' "${line%$'\r'}"
}
"#;

/// A task whose model runs `command`, which may reach `hosts`.
fn task(command: &str, sandbox: &str) -> Cli {
    let script = json!([
        {"calls": [{"name": "bash", "arguments": {"command": command}}]},
        {"text": "done"},
    ]);
    let task = format!(
        "version: 1\nname: demo\nprompt: go\nsettings: {{model: scripted/s.yaml}}\n\
         permissions: {{mode: bypass}}\nsandbox: {sandbox}\n"
    );
    Cli::new()
        .file("s.yaml", script.to_string())
        .file("task.yaml", task)
        .args(["run", "task.yaml", "--allow-bypass", "--quiet"])
}

/// Runs it without holding up the servers of the test.
async fn run(cli: Cli) -> Output {
    tokio::task::spawn_blocking(|| cli.run()).await.unwrap()
}

/// What the command printed, the notes of the runner included.
fn said(output: &Output) -> String {
    let events = output.events();
    let ends = events.iter().filter(|event| {
        let name = event["event"].as_str();
        matches!(
            name,
            Some("tool:execution:complete" | "tool:execution:error")
        )
    });
    let texts = ends.map(|event| {
        let content = event["data"]["content"].as_str();
        content.map_or_else(|| event["data"].to_string(), str::to_owned)
    });
    texts.collect()
}

fn warnings(output: &Output) -> Vec<String> {
    let result = output.result();
    let all = result["warnings"].as_array().unwrap().iter();
    all.map(|warning| warning["message"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_listed_host_is_reached_and_the_rest_is_told() {
    let mut server = Server::start(b"HTTP/1.1 200 OK\r\n\r\nhi").await;
    let mut other = Server::start(b"HTTP/1.1 200 OK\r\n\r\nno").await;
    let (port, shut) = (server.address.port(), other.address.port());
    let command = format!(
        "{ASK}
        ask 'GET http://localhost:{port}/x HTTP/1.1'
        ask 'CONNECT localhost:{port} HTTP/1.1'
        printf 'through' >&3; read -r -u 3 empty; mapfile -u 3 rest; echo \"${{#rest[@]}} lines\"
        ask 'CONNECT localhost:{shut} HTTP/1.1'
        ask 'CONNECT pypi.org:443 HTTP/1.1'
        ask 'CONNECT pypi.org:80 HTTP/1.1'
        ask 'GET http://169.254.169.254/latest HTTP/1.1'
        exit 7"
    );
    let sandbox = format!("{{mode: require, network: ['localhost:{port}']}}");
    let output = run(task(&command, &sandbox)).await;
    let said = said(&output);
    assert!(
        said.starts_with(
            "HTTP/1.1 200 OK\nHTTP/1.1 200 Connection established\n3 lines\n\
             HTTP/1.1 403 Forbidden\nHTTP/1.1 403 Forbidden\nHTTP/1.1 403 Forbidden\n\
             HTTP/1.1 403 Forbidden\n"
        ),
        "{said}"
    );
    assert!(
        said.contains("pypi.org:443 is not listed in `sandbox.network`"),
        "{said}"
    );
    assert!(
        said.contains("exit code 7") || said.contains("status 7"),
        "{said}"
    );
    assert!(server.heard().await.starts_with("GET /x HTTP/1.1\r\n"));
    assert_eq!(server.heard().await, "through");
    assert!(other.is_untouched());
    let warnings = warnings(&output);
    let denied: Vec<&str> = warnings
        .iter()
        .filter_map(|warning| warning.strip_prefix("denied: ")?.split(' ').next())
        .collect();
    assert_eq!(
        denied,
        [
            &format!("localhost:{shut}"),
            "pypi.org:443",
            "169.254.169.254:80"
        ]
    );
    let result = output.result();
    assert_eq!(result["sandbox"]["tier"], "namespaces");
    assert_eq!(result["sandbox"]["network"], "hosts");
}

#[tokio::test]
async fn no_other_way_leads_out() {
    let mut tcp = Server::start(b"OPEN").await;
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let everywhere = TcpListener::bind("0.0.0.0:0").unwrap();
    everywhere.set_nonblocking(true).unwrap();
    let (tcp_port, udp_port) = (tcp.address.port(), udp.local_addr().unwrap().port());
    let command = format!(
        "for to in tcp/127.0.0.1/{tcp_port} tcp/localhost/{tcp_port} tcp/1.1.1.1/443 tcp/169.254.169.254/80; do
            {{ exec 4<>/dev/$to; }} 2>/dev/null && echo \"OPEN $to\"
        done
        {{ echo x > /dev/udp/127.0.0.1/{udp_port}; }} 2>/dev/null
        {{ echo x > /dev/udp/1.1.1.1/53; }} 2>/dev/null && echo 'OPEN udp'
        getent hosts one.one.one.one && echo 'OPEN dns'
        echo end"
    );
    let sandbox = format!("{{mode: require, network: ['localhost:{tcp_port}']}}");
    let output = run(task(&command, &sandbox)).await;
    let said = said(&output);
    assert!(!said.contains("OPEN") && said.contains("end"), "{said}");
    assert!(tcp.is_untouched());
    assert!(udp.recv(&mut [0; 8]).is_err());
}

#[tokio::test]
async fn the_tier_that_knows_no_names_is_refused() {
    let sandbox = "{mode: require, tier: landlock, network: [crates.io]}";
    let output = run(task("echo x", sandbox).expect_code(78)).await;
    let error = output.result()["error"].to_string();
    assert!(
        error.contains("cannot tell the hosts of `sandbox.network` apart"),
        "{error}"
    );
    assert!(error.contains("install bubblewrap"), "{error}");

    let sandbox = "{mode: prefer, tier: landlock, network: [crates.io]}";
    let command = "{ exec 4<>/dev/tcp/127.0.0.1/9; } 2>&1; echo $HTTPS_PROXY end";
    let output = run(task(command, sandbox)).await;
    assert!(said(&output).contains("not permitted"), "{}", said(&output));
    let result = output.result();
    assert_eq!(result["sandbox"]["tier"], "landlock");
    assert_eq!(result["sandbox"]["network"], "off");
    let warnings = warnings(&output);
    let told = warnings.iter().any(|one| one.contains("reach no host"));
    assert!(told, "{warnings:?}");
}

#[test]
fn a_list_is_checked_before_anything_runs() {
    for (network, said) in [
        ("[https://crates.io]", "write the host alone: `crates.io`"),
        ("['*']", "every host is `network: on`"),
        ("['127.1']", "four decimal numbers"),
        ("[]", "lists no host"),
        ("[crates.io, crates.io]", "twice"),
        ("crates.io", "`crates.io` is no value of `sandbox.network`"),
        ("[1]", "must be a text"),
    ] {
        let cli = task("echo x", &format!("{{network: {network}}}"));
        let output = cli.expect_code(65).run();
        assert!(output.stderr.contains(said), "{network}: {}", output.stderr);
    }
    let off = task("echo x", "{mode: off, network: [crates.io]}");
    let output = off.expect_code(65).run();
    assert!(output.stderr.contains("sandbox.mode"), "{}", output.stderr);
}

#[test]
fn a_resolved_task_has_the_hosts() {
    let cli = task("echo x", "{network: [crates.io, '*.crates.io']}");
    let cli = Cli::at(cli.cwd()).args([
        "check",
        "task.yaml",
        "--allow-bypass",
        "--output-format",
        "json",
    ]);
    let document: Value = serde_json::from_str(&cli.run().stdout).unwrap();
    let network = &document["tasks"][0]["task"]["sandbox"]["network"];
    assert_eq!(*network, json!(["crates.io", "*.crates.io"]));
}
