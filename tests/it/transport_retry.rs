//! Failures that pass: what is tried again, when, and for how long.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::support::dialect::{ANTHROPIC, BOTH, CHAT, Dialect, retries, told};
use crate::support::reply::{Reply, Response, status};
use crate::support::server::ModelServer;

/// A date as HTTP writes it, this many seconds from now.
#[expect(
    clippy::disallowed_methods,
    reason = "the provider has a clock of its own"
)]
fn date(seconds: u64) -> String {
    httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(seconds))
}

fn limited(dialect: &Dialect) -> Response {
    (dialect.error)(429, "rate_limit_error", "Slow down, please.")
}

#[test]
fn a_wait_that_is_asked_for_is_kept() {
    for dialect in BOTH {
        let soon = date(2);
        let table: [(&str, &str, &str, u64); 8] = [
            ("retry-after", "0", "retry-after", 0),
            ("retry-after", "1", "retry-after", 1000),
            ("retry-after-ms", "7", "retry-after", 7),
            (
                "retry-after",
                "Sun, 06 Nov 1994 08:49:37 GMT",
                "retry-after",
                0,
            ),
            ("retry-after", &soon, "retry-after", 2000),
            ("retry-after", "soon", "backoff", 64),
            ("retry-after", "-5", "backoff", 64),
            ("x-other", "5", "backoff", 64),
        ];
        let mut replies: Vec<Reply> = table
            .iter()
            .map(|(name, value, ..)| limited(&dialect).header(name, value).into())
            .collect();
        replies.push((dialect.text)("At last.").into());
        let server = ModelServer::start(replies);
        let output = dialect
            .task(&server.url(), "")
            .args([
                "--set",
                "retry.max_attempts=9",
                "--set",
                "retry.max_delay=64ms",
            ])
            .run();
        assert_eq!(output.stdout, "At last.\n");
        let found = retries(&output);
        assert_eq!(found.len(), table.len());
        for ((name, value, source, most), found) in table.iter().zip(&found) {
            let (code, http, delay, by) = found;
            assert_eq!((&**code, *http), ("rate_limited", Some(429)));
            assert_eq!(by, source, "{name}: {value}");
            // A date is as far away as it still is, and backoff has jitter.
            let exact = *source == "retry-after" && *value != soon;
            assert!(
                delay == most || (!exact && delay < most),
                "{name}: {value}: {delay}"
            );
        }
        let numbers: Vec<u64> = told(&output, "retry:start")
            .iter()
            .map(|data| data["attempt"].as_u64().unwrap())
            .collect();
        assert_eq!(numbers, [2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(output.result()["retries"], 8);
        server.finish();
    }
}

#[test]
fn a_wait_that_is_too_long_ends_the_run_at_once() {
    let table = [
        (429, "rate_limit_error", "1000000000", ""),
        (429, "rate_limit_error", "1e300", ""),
        (529, "overloaded_error", "86400", ""),
        (503, "overloaded_error", "601", ""),
        (
            429,
            "rate_limit_error",
            "3",
            "limits: {max_retry_wait: 2s}\n",
        ),
        // The run would be over before.
        (429, "rate_limit_error", "45", "limits: {timeout: 30s}\n"),
    ];
    for dialect in BOTH {
        for (http, code, after, more) in table {
            let error = (dialect.error)(http, code, "Come back tomorrow.");
            let server = ModelServer::start([error.header("retry-after", after)]);
            let output = dialect.task(&server.url(), more).expect_code(75).run();
            assert_eq!(server.finish().len(), 1);
            let result = output.result();
            assert_eq!(result["reason"], "rate_limited", "{http} {after}");
            let error = &result["error"];
            assert_eq!(error["httpStatus"], http);
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("Come back tomorrow."), "{message}");
            assert_eq!(retries(&output), []);
            assert_eq!(told(&output, "retry:end").len(), 0);
        }
    }
}

#[test]
fn failures_of_the_server_pass() {
    let table: [(u16, &str); 7] = [
        (500, "unavailable"),
        (502, "unavailable"),
        (503, "unavailable"),
        (504, "unavailable"),
        (408, "timeout"),
        (409, "unavailable"),
        (529, "overloaded"),
    ];
    for dialect in BOTH {
        let mut replies: Vec<Response> = table
            .iter()
            .map(|(http, _)| (dialect.error)(*http, "api_error", "Internal."))
            .collect();
        // A gateway says it in its own way.
        replies[1] = status(502)
            .header("content-type", "text/html")
            .body("<html><h1>502 Bad Gateway</h1></html>");
        replies.push((dialect.text)("Fine again."));
        let server = ModelServer::start(replies);
        let output = dialect
            .task(&server.url(), "")
            .args([
                "--set",
                "retry.max_attempts=8",
                "--set",
                "retry.max_delay=2ms",
            ])
            .run();
        assert_eq!(output.stdout, "Fine again.\n");
        let found: Vec<(String, Option<u64>)> = retries(&output)
            .into_iter()
            .map(|(code, http, ..)| (code, http))
            .collect();
        let expect: Vec<(String, Option<u64>)> = table
            .iter()
            .map(|(http, code)| ((*code).to_owned(), Some(u64::from(*http))))
            .collect();
        assert_eq!(found, expect);
        let end = &told(&output, "retry:end")[0];
        assert_eq!(
            (&end["success"], &end["attempts"]),
            (&json!(true), &json!(8))
        );
        // The same request every time.
        let requests = server.finish();
        assert_eq!(requests.len(), 8);
        assert!(
            requests
                .iter()
                .all(|request| request.bytes == requests[0].bytes)
        );
        // Nothing of it stays in the conversation.
        assert_eq!(output.result()["turns"], 1);
        assert_eq!(output.result()["usage"]["input"], 100);
    }
}

#[test]
fn an_overload_without_end_is_given_up() {
    for dialect in BOTH {
        let overload = (dialect.error)(529, "overloaded_error", "Overloaded.");
        let server = ModelServer::start(vec![overload; 3]);
        let output = dialect.task(&server.url(), "").expect_code(69).run();
        assert_eq!(server.finish().len(), 3);
        let result = output.result();
        assert_eq!(result["reason"], "unavailable");
        assert_eq!(result["outcome"], "error");
        assert_eq!(result["retries"], 2);
        assert_eq!(result["error"]["code"], "overloaded");
        assert_eq!(result["error"]["httpStatus"], 529);
        let end = &told(&output, "retry:end")[0];
        assert_eq!(
            (&end["success"], &end["attempts"]),
            (&json!(false), &json!(3))
        );
        assert!(
            end["finalError"].to_string().contains("Overloaded."),
            "{end}"
        );
        let error = &told(&output, "session:error")[0];
        assert_eq!(error["type"], "api_error");
        assert_eq!(told(&output, "step:end")[0]["stopReason"], "error");
    }
}

#[test]
fn a_refused_connection_is_tried_again_within_the_budget() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    for dialect in BOTH {
        let output = dialect.task(&url, "").expect_code(69).run();
        let result = output.result();
        assert_eq!(result["reason"], "unavailable");
        assert_eq!(result["error"]["code"], "unavailable");
        assert_eq!(
            result["error"]["hints"][0],
            "is the local model server running?"
        );
        let codes: Vec<String> = retries(&output).into_iter().map(|retry| retry.0).collect();
        assert_eq!(codes, ["unavailable", "unavailable"]);
    }
}

#[test]
fn a_connection_that_breaks_before_the_answer_is_tried_again() {
    for dialect in BOTH {
        let answer = (dialect.text)("Here.");
        let replies = [
            Reply::reset(),
            Reply::raw(Vec::new()),
            status(200)
                .header("content-type", "text/event-stream")
                .into(),
            answer.into(),
        ];
        let server = ModelServer::start(replies);
        let output = dialect
            .task(&server.url(), "")
            .args(["--set", "retry.max_attempts=4"])
            .run();
        assert_eq!(output.stdout, "Here.\n");
        let codes: Vec<String> = retries(&output).into_iter().map(|retry| retry.0).collect();
        assert_eq!(codes, ["unavailable", "unavailable", "truncated"]);
        server.finish();
    }
}

#[test]
fn one_attempt_means_no_retry() {
    for (dialect, http) in [(ANTHROPIC, 500), (CHAT, 429)] {
        let server = ModelServer::start([(dialect.error)(http, "api_error", "No.")]);
        let code = if http == 429 { 75 } else { 69 };
        let output = dialect
            .task(&server.url(), "")
            .args(["--set", "retry.max_attempts=1"])
            .expect_code(code)
            .run();
        assert_eq!(retries(&output), []);
        assert_eq!(server.finish().len(), 1);
    }
}
