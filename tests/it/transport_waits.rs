//! How long a silent provider is waited for, as the task says, and connections
//! that serve more than one call.

use std::net::TcpListener;
use std::time::Duration;

use serde_json::json;

use crate::support::cli::{Cli, Output};
use crate::support::dialect::{BOTH, CHAT, retries, told};
use crate::support::reply::{Action, Reply};
use crate::support::server::ModelServer;
use crate::task_case::Case;

fn error(output: &Output) -> (String, String, String) {
    let error = output.result()["error"].clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    (
        text(&error["code"]),
        text(&error["message"]),
        text(&error["hints"][0]),
    )
}

fn once(cli: Cli) -> Output {
    cli.args(["--set", "retry.max_attempts=1"])
        .expect_code(69)
        .run()
}

#[test]
fn each_wait_is_as_long_as_the_task_says() {
    let answer = (CHAT.text)("The answer is slow.");
    let half = answer.find("is slow.");
    for (setting, reply, says) in [
        ("response_timeout", Reply::hang(), "no answer for 300 ms"),
        (
            "stream_idle_timeout",
            answer.cut(half, Action::Hang),
            "nothing came for 300 ms",
        ),
    ] {
        let server = ModelServer::start([reply]);
        let settings = format!("settings: {{{setting}: 300ms}}\n");
        let output = once(CHAT.task(&server.url(), &settings));
        let (code, message, hint) = error(&output);
        assert_eq!(code, "timeout");
        assert!(message.ends_with(says), "{message}");
        assert_eq!(hint, format!("raise settings.{setting}"));
        let duration = output.result()["durationMs"].as_u64().unwrap();
        assert!((300..10_000).contains(&duration), "{duration}");
        server.finish();
    }
}

#[test]
fn a_connection_that_never_stands_is_given_up() {
    // The system accepts; nobody answers the first message of TLS.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let output = once(CHAT.task(&url, "settings: {connect_timeout: 300ms}\n"));
    let (code, message, hint) = error(&output);
    assert_eq!(code, "timeout", "{message}");
    assert!(message.contains("127.0.0.1: "), "{message}");
    assert!(hint.contains("settings.connect_timeout"), "{hint}");
    assert!(output.result()["durationMs"].as_u64().unwrap() < 10_000);
}

#[test]
fn single_bytes_are_signs_of_life_and_no_way_around_the_wall_clock() {
    for dialect in BOTH {
        let answer = (dialect.text)("Never whole.");
        let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
        let mut actions = vec![Action::Send(head.to_vec())];
        for byte in answer.text().bytes().take(100) {
            actions.push(Action::Send(vec![byte]));
            actions.push(Action::Pause(Duration::from_millis(100)));
        }
        let server = ModelServer::start([Reply::raw(actions)]);
        let output = dialect
            .task(
                &server.url(),
                "limits: {timeout: 1s}\nsettings: {stream_idle_timeout: 500ms}\n",
            )
            .expect_code(124)
            .run();
        assert_eq!(output.result()["error"]["code"], "timeout");
        assert_eq!(retries(&output), []);
        assert!(output.result()["durationMs"].as_u64().unwrap() < 10_000);
        server.finish();
    }
}

#[test]
fn what_the_task_says_of_waits_is_checked_and_shown() {
    let patience = |more: &str| {
        let patience = Case::with(more).job().settings.patience;
        [patience.connect, patience.response, patience.stream].map(|wait| wait.as_secs())
    };
    assert_eq!(patience(""), [10, 120, 225]);
    assert_eq!(patience("limits: {idle_timeout: 1m}"), [10, 45, 45]);
    assert_eq!(patience("limits: {idle_timeout: 1h}"), [10, 120, 300]);
    assert_eq!(
        patience(
            "settings: {connect_timeout: 3s, response_timeout: 4m, stream_idle_timeout: 299s}"
        ),
        [3, 240, 299]
    );
    for key in ["response_timeout", "stream_idle_timeout"] {
        let task = format!("limits: {{idle_timeout: 90s}}\nsettings: {{{key}: 90s}}");
        let problems = Case::with(&task).problems();
        assert_eq!(problems.list.len(), 1);
        let says = format!(
            "`settings.{key}` must be shorter than `limits.idle_timeout` (1m30s), which ends the job"
        );
        assert_eq!(problems.list[0].message, says);
    }
    let output = Cli::new()
        .file(
            "task.yaml",
            "version: 1\nprompt: x\nsettings: {model: openai/gpt-5.2, response_timeout: 90s}\n",
        )
        .args(["check", "task.yaml"])
        .run();
    let line = "  patience     10 s to connect, 90 s for an answer, 225 s within it\n";
    assert!(output.stdout.contains(line), "{}", output.stdout);
}

#[test]
fn a_connection_that_the_server_closed_meanwhile_costs_no_attempt() {
    for dialect in BOTH {
        let call = |id: &str| (dialect.calls)(&[(id, "ls", json!({}))]);
        // It dies, in one way or the other, when the second request comes.
        for gone in [Reply::raw(Vec::new()), Reply::reset()] {
            let server = ModelServer::start([
                call("c1").into(),
                gone,
                call("c2").into(),
                (dialect.text)("Done.").into(),
            ]);
            let output = dialect.task(&server.url(), "").run();
            assert_eq!(output.stdout, "Done.\n");
            assert_eq!(retries(&output), []);
            let requests = server.finish();
            assert_eq!(requests.len(), 4);
            assert_eq!(requests[1].bytes, requests[2].bytes);
        }
        // It closes each connection after its answer, and says so to nobody.
        let closing = |reply: Reply| Reply {
            keep_alive: false,
            ..reply
        };
        let server = ModelServer::start([
            closing(call("c1").into()),
            closing(call("c2").into()),
            closing((dialect.text)("Done.").into()),
        ]);
        let output = dialect.task(&server.url(), "").run();
        assert_eq!(output.stdout, "Done.\n");
        assert_eq!(retries(&output), []);
        server.finish();
    }
}

#[test]
fn a_new_connection_that_is_closed_is_an_attempt() {
    for gone in [Reply::raw(Vec::new()), Reply::reset()] {
        let server = ModelServer::start([gone, (CHAT.text)("Done.").into()]);
        let output = CHAT.task(&server.url(), "").run();
        assert_eq!(output.stdout, "Done.\n");
        assert_eq!(told(&output, "retry:start").len(), 1);
        server.finish();
    }
}
