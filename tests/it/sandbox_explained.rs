//! What a tier takes from programs is explained, in the words that those programs have
//! for it, also where a pipe hides that they failed.

use agent::sandbox::{Network, Tier};

use crate::sandbox_run::{said, task, tiers};
use crate::sandbox_scene::{self, Scene};
use crate::support::anthropic;
use crate::support::cli::Cli;
use crate::support::dialect::ANTHROPIC;
use crate::support::server::ModelServer;

const NETWORK: &str = "`sandbox.network` is off";
const SOCKETS: &str = "has no sockets";
const LOOPBACK: &str = "the loopback of commands is their own";
const SHARED: &str = "has no shared memory";
const TEMPORARY: &str = "temporary files go to $TMPDIR";
const LOCAL: &str = "refuses local sockets";

/// What programs print, and what is said of it in each tier; empty for nothing.
const PRINTED: &[(&str, &str, &str)] = &[
    // (printed, namespaces, landlock)
    (
        "curl: (7) Failed to connect to 1.1.1.1 port 80 after 0 ms: Couldn't connect to server",
        NETWORK,
        NETWORK,
    ),
    (
        "curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Could not connect to server",
        LOOPBACK,
        SOCKETS,
    ),
    (
        "wget: unable to resolve host address 'example.com'",
        NETWORK,
        NETWORK,
    ),
    ("wget: bad address 'example.com'", NETWORK, NETWORK),
    (
        "Connecting to 127.0.0.1:8080... failed: Connection refused.",
        LOOPBACK,
        SOCKETS,
    ),
    (
        "Connecting to 1.1.1.1:80... failed: Network is unreachable.",
        NETWORK,
        NETWORK,
    ),
    (
        "Error: getaddrinfo EAI_AGAIN registry.npmjs.org",
        NETWORK,
        NETWORK,
    ),
    (
        "npm error code ENOTFOUND\nnpm error network request failed",
        NETWORK,
        NETWORK,
    ),
    (
        "Error: listen EPERM: operation not permitted 0.0.0.0:3000\n    at Server.setupListenHandle",
        "",
        SOCKETS,
    ),
    (
        "AggregateError [ECONNREFUSED]:\n  Error: connect ECONNREFUSED ::1:5432",
        LOOPBACK,
        SOCKETS,
    ),
    (
        "  File \"/usr/lib/python3.12/socket.py\", line 233, in __init__\n    _socket.socket.__init__(\
         self, family, type, proto, fileno)\nPermissionError: [Errno 1] Operation not permitted",
        "",
        SOCKETS,
    ),
    (
        "urllib3.exceptions.NewConnectionError: Failed to establish a new connection: [Errno 101]",
        NETWORK,
        NETWORK,
    ),
    (
        "    sl = self._semlock = _multiprocessing.SemLock(\n    kind, value, maxvalue)\n\
         PermissionError: [Errno 13] Permission denied",
        "",
        SHARED,
    ),
    (
        "OSError: [Errno 13] Permission denied: '/dev/shm/psm_1'",
        "",
        SHARED,
    ),
    (
        "touch: cannot touch '/tmp/x': Permission denied",
        "",
        TEMPORARY,
    ),
    (
        "java.io.IOException: /var/tmp/x.lock (Permission denied)",
        "",
        TEMPORARY,
    ),
    (
        "cannot create an AF_UNIX listener: Operation not permitted",
        "",
        LOCAL,
    ),
    (
        "listen tcp 127.0.0.1:0: socket: operation not permitted",
        NETWORK,
        SOCKETS,
    ),
    (
        "dial tcp: lookup proxy.golang.org: no such host",
        NETWORK,
        NETWORK,
    ),
    (
        "java.net.UnknownHostException: repo.maven.apache.org",
        NETWORK,
        NETWORK,
    ),
    ("the tests connect to nothing and pass", "", ""),
    (
        "chmod: changing permissions of 'x': Operation not permitted",
        "",
        "",
    ),
    ("bash: ./x.sh: Permission denied", "", ""),
];

#[tokio::test]
async fn the_words_of_each_program_are_understood() {
    for tier in sandbox_scene::tiers().await {
        let scene = Scene::new(tier);
        let sandbox = scene.sandbox().await;
        for (printed, namespaces, landlock) in PRINTED {
            let expected = match tier {
                Tier::Namespaces => namespaces,
                Tier::Landlock => landlock,
            };
            let reasons = sandbox.reasons(printed);
            let at = format!("{} {printed}: {reasons:?}", tier.name());
            match expected.is_empty() {
                true => assert!(reasons.is_empty(), "{at}"),
                false => assert!(reasons.iter().any(|one| one.contains(expected)), "{at}"),
            }
        }
        let mut open = Scene::new(tier);
        open.options.network = Network::On;
        let sandbox = open.sandbox().await;
        for (printed, _, expected) in PRINTED {
            if [NETWORK, SOCKETS].contains(expected) {
                let reasons = sandbox.reasons(printed);
                assert!(reasons.is_empty(), "{} {printed}: {reasons:?}", tier.name());
            }
        }
    }
}

#[test]
fn a_success_is_explained_too() {
    for tier in tiers() {
        let command = "perl -MSocket -e 'socket(S, AF_INET, SOCK_STREAM, 0) or die \"socket: $!\\n\"; \
                       connect(S, pack_sockaddr_in(80, inet_aton(\"1.1.1.1\"))) or die \"connect: $!\\n\"' \
                       2>&1 | tail -3; cat /root/.ssh/id_rsa 2>&1 | tail -1; true";
        let told = said(&task(&[command], &format!("{{tier: {tier}}}")).run());
        assert!(
            told.contains("exit code 0") || told.contains("\"exitCode\":0"),
            "{told}"
        );
        let expected = match tier {
            "landlock" => SOCKETS,
            _ => NETWORK,
        };
        assert!(told.contains(expected), "{tier}: {told}");
    }
}

#[test]
fn package_managers_ask_once_where_there_is_no_network() {
    let command = "echo $npm_config_fetch_retries $PIP_RETRIES $CARGO_NET_RETRY; \
                   [ \"$TMP$TEMP\" = \"$TMPDIR$TMPDIR\" ] && touch $JOBLIB_TEMP_FOLDER/x && echo temporary";
    for tier in tiers() {
        for (network, expected) in [("off", "0 7 0"), ("on", "7")] {
            let section = format!(
                "{{tier: {tier}, network: \"{network}\"}}\nenv: {{set: {{PIP_RETRIES: '7'}}}}"
            );
            let told = said(&task(&[command], &section).run());
            let expected = format!("\"{expected}\\ntemporary");
            let trimmed = told.replace("\" ", "\"").replace(" \\n", "\\n");
            assert!(trimmed.contains(&expected), "{tier} {network}: {told}");
        }
    }
}

#[test]
fn the_model_knows_what_commands_do_without() {
    for tier in tiers() {
        for (network, text) in [
            ("off", "have no network"),
            ("on", "Commands run in a sandbox"),
        ] {
            let server = ModelServer::start([anthropic::text("done")]);
            let task = format!(
                "version: 1\nprompt: go\npermissions: {{mode: bypass}}\n\
                 sandbox: {{tier: {tier}, network: \"{network}\"}}\n"
            );
            Cli::new()
                .file("task.yaml", task)
                .args(["run", "task.yaml", "--allow-bypass", "--quiet", "--model"])
                .args([ANTHROPIC.model, "--base-url", &server.url()])
                .env(ANTHROPIC.key_env, "sk-test-0123456789abcdef")
                .run();
            let requests = server.finish();
            let system = requests[0].body["system"][0]["text"].as_str().unwrap();
            let about = agent::sandbox::about(tier, network).unwrap();
            assert!(about.contains(text), "{about}");
            assert!(
                system.contains(&format!(". {about}.\n")),
                "{tier} {network}: {system}"
            );
        }
    }
    assert_eq!(agent::sandbox::about("none", "on"), None);
}
