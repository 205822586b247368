//! Failures that stay: they are not tried again, they are told, and the key is not.

use serde_json::json;

use crate::support::cli::{Cli, Output};
use crate::support::dialect::{BOTH, Dialect, KEY, remains, retries, told};
use crate::support::reply::{Reply, Response, sse, status};
use crate::support::server::ModelServer;

struct Case {
    http: u16,
    code: &'static str,
    message: &'static str,
    /// The exit status, its reason, the error's code.
    exit: (i32, &'static str, &'static str),
    error_type: &'static str,
}

fn case(
    http: u16,
    (code, message): (&'static str, &'static str),
    exit: (i32, &'static str, &'static str),
) -> Case {
    let error_type = if exit.2 == "context_overflow" {
        "context_length_exceeded"
    } else {
        "api_error"
    };
    Case {
        http,
        code,
        message,
        exit,
        error_type,
    }
}

fn cases() -> Vec<Case> {
    let config = (78, "config", "invalid_request");
    let auth = (77, "auth", "auth");
    let quota = (77, "auth", "quota");
    let overflow = (1, "incomplete", "context_overflow");
    vec![
        case(400, ("invalid_request_error", "messages: wrong"), config),
        case(404, ("not_found_error", "model: local"), config),
        case(422, ("invalid_request_error", "Unprocessable."), config),
        case(401, ("authentication_error", "invalid x-api-key"), auth),
        case(403, ("permission_error", "Not for you."), auth),
        case(402, ("billing_error", "Payment required."), quota),
        case(
            429,
            ("insufficient_quota", "You exceeded your current quota."),
            quota,
        ),
        case(
            400,
            ("invalid_request_error", "Your credit balance is too low"),
            quota,
        ),
        case(
            400,
            (
                "invalid_request_error",
                "prompt is too long: 2 tokens > 1 maximum",
            ),
            overflow,
        ),
        case(
            400,
            (
                "context_length_exceeded",
                "This model's maximum context length is 8192 tokens.",
            ),
            overflow,
        ),
        case(
            413,
            ("request_too_large", "Request exceeds the maximum size"),
            overflow,
        ),
    ]
}

#[test]
fn what_will_fail_again_is_not_tried_again() {
    for dialect in BOTH {
        for case in cases() {
            let error = (dialect.error)(case.http, case.code, case.message);
            // A hint to wait changes nothing.
            let server = ModelServer::start([error.header("retry-after", "1")]);
            let (exit, reason, code) = case.exit;
            let output = dialect.task(&server.url(), "").expect_code(exit).run();
            assert_eq!(server.finish().len(), 1);
            let result = output.result();
            assert_eq!(result["reason"], reason, "{} {}", case.http, case.message);
            assert_eq!(
                result["error"]["code"], code,
                "{} {}",
                case.http, case.message
            );
            assert_eq!(result["error"]["httpStatus"], case.http);
            assert_eq!(output.stdout, "");
            assert_eq!(retries(&output), []);
            let errors = told(&output, "session:error");
            assert_eq!(errors.len(), 1);
            assert_eq!(errors[0]["type"], case.error_type);
            assert_eq!(errors[0]["error"]["code"], code);
            let message = errors[0]["error"]["message"].as_str().unwrap();
            assert!(message.contains(case.message), "{message}");
        }
    }
}

#[test]
fn people_are_told_what_the_provider_said() {
    for dialect in BOTH {
        let error = (dialect.error)(401, "authentication_error", "That key is wrong.");
        let server = ModelServer::start([error]);
        let output = Cli::new()
            .args(["-p", "Hi", "--model", dialect.model])
            .args(["--base-url", &server.url()])
            .env(dialect.key_env, KEY)
            .expect_code(77)
            .run();
        for words in ["HTTP 401", "That key is wrong.", dialect.key_env] {
            assert!(output.stderr.contains(words), "{words}: {}", output.stderr);
        }
        assert_key_is_nowhere(&output);
        server.finish();
    }
}

fn assert_key_is_nowhere(output: &Output) {
    for (place, text) in remains(output) {
        assert!(!text.contains(KEY), "{place} holds the key");
    }
}

#[test]
fn an_error_that_repeats_the_key_does_not_spread_it() {
    for dialect in BOTH {
        let message = format!("Incorrect API key provided: {KEY}. See {KEY}.");
        let replies = [
            (401, 77, "text"),
            (403, 77, "jsonl"),
            // Some providers refuse a key so.
            (400, 77, "json"),
            (500, 69, "jsonl"),
        ];
        for (http, exit, format) in replies {
            let error = (dialect.error)(http, KEY, &message).header("request-id", KEY);
            let server = ModelServer::start([error]);
            let output = dialect
                .task(&server.url(), "")
                .args(["--set", "retry.max_attempts=1", "--output-format", format])
                .expect_code(exit)
                .run();
            assert_key_is_nowhere(&output);
            let message = output.result()["error"]["message"].to_string();
            assert!(
                message.contains("Incorrect API key provided: "),
                "{message}"
            );
            server.finish();
        }
    }
}

#[test]
fn a_reply_that_repeats_the_key_does_not_spread_it() {
    for dialect in BOTH {
        let overloaded = format!("overloaded {KEY}");
        let replies = [
            (dialect.error)(529, "overloaded_error", &overloaded),
            sse((dialect.error_frame)("overloaded_error", &overloaded)),
            (dialect.calls)(&[("c1", "ls", json!({"path": KEY}))]),
            (dialect.text)(&format!("The key is {KEY}.")),
        ];
        let server = ModelServer::start(replies);
        let output = dialect
            .task(&server.url(), "")
            .args(["--deltas", "full"])
            .run();
        assert_key_is_nowhere(&output);
        assert!(
            output.stdout.starts_with("The key is "),
            "{}",
            output.stdout
        );
        server.finish();
    }
}

#[test]
fn a_redirect_is_not_followed() {
    for dialect in BOTH {
        for http in [301, 302, 307, 308] {
            let other = ModelServer::start(Vec::<Reply>::new());
            let target = format!("{}{}", other.url(), dialect.path);
            let with_secrets = format!("{}?token=t0psecret", target.replace("//", "//me:pw@"));
            let server = ModelServer::start([status(http).header("location", &with_secrets)]);
            let output = dialect.task(&server.url(), "").expect_code(78).run();
            assert_eq!(server.finish().len(), 1);
            assert_eq!(other.finish().len(), 0, "the key travels");
            let error = output.result()["error"].clone();
            assert_eq!(error["httpStatus"], http);
            let message = error["message"].as_str().unwrap();
            assert!(message.ends_with(&format!(" to {target}")), "{message}");
            assert!(
                error["hints"][0].as_str().unwrap().contains("base_url"),
                "{error}"
            );
        }
    }
}

#[test]
fn an_error_in_the_frames_of_a_stream_is_read() {
    let body = "data: {\"error\": {\"message\": \"No stream today.\"}}\n\ndata: [DONE]\n\n";
    for dialect in BOTH {
        let reply = status(500)
            .header("content-type", "text/event-stream")
            .body(body);
        let server = ModelServer::start(vec![reply; 3]);
        let output = dialect.task(&server.url(), "").expect_code(69).run();
        let message = output.result()["error"]["message"].to_string();
        assert!(
            message.ends_with("(HTTP 500): No stream today.\""),
            "{message}"
        );
        server.finish();
    }
}

#[test]
fn a_web_page_is_no_answer() {
    let page = "<!DOCTYPE html><html><body>Sign in</body></html>";
    for dialect in BOTH {
        for kind in ["text/html", "text/event-stream"] {
            let server = ModelServer::start([status(200).header("content-type", kind).body(page)]);
            let output = dialect.task(&server.url(), "").expect_code(69).run();
            assert_eq!(server.finish().len(), 1);
            let error = output.result()["error"].clone();
            assert_eq!(error["code"], "bad_response");
            assert_eq!(error["hints"][0], "check base_url");
            assert_eq!(retries(&output), []);
            assert_eq!(told(&output, "session:error")[0]["type"], "model_error");
        }
    }
}

fn document(dialect: &Dialect, code: &str, message: &str) -> Response {
    // The body of an error under a status that says success.
    let body = (dialect.error)(200, code, message).text().to_owned();
    status(200)
        .header("content-type", "application/json")
        .body(body)
}

#[test]
fn an_error_under_status_200_counts_as_one() {
    let table = [
        ("overloaded_error", "Overloaded.", 69, "overloaded", 3),
        (
            "rate_limit_error",
            "Too many requests.",
            75,
            "rate_limited",
            3,
        ),
        ("authentication_error", "Wrong key.", 77, "auth", 1),
        (
            "invalid_request_error",
            "Wrong field.",
            78,
            "invalid_request",
            1,
        ),
        (
            "invalid_request_error",
            "prompt is too long",
            1,
            "context_overflow",
            1,
        ),
        ("insufficient_quota", "No money.", 77, "quota", 1),
    ];
    for dialect in BOTH {
        for (code, message, exit, kind, requests) in table {
            for in_stream in [false, true] {
                let reply = if in_stream {
                    sse((dialect.error_frame)(code, message))
                } else {
                    document(&dialect, code, message)
                };
                let server = ModelServer::start(vec![reply; requests]);
                let output = dialect.task(&server.url(), "").expect_code(exit).run();
                assert_eq!(server.finish().len(), requests);
                let error = output.result()["error"].clone();
                assert_eq!(error["code"], kind, "{}: {code}", dialect.model);
                assert!(
                    error["message"].as_str().unwrap().contains(message),
                    "{error}"
                );
            }
        }
    }
}

#[test]
fn an_answer_of_another_kind_is_an_error() {
    for dialect in BOTH {
        let reply = status(200).json(&json!({"hello": "world"}));
        let server = ModelServer::start(vec![reply; 3]);
        let output = dialect.task(&server.url(), "").expect_code(69).run();
        assert_eq!(output.result()["error"]["code"], "bad_response");
        server.finish();
    }
}

#[test]
fn a_filter_of_the_provider_leaves_the_task_undone() {
    for dialect in BOTH {
        let error = (dialect.error)(400, "content_policy_violation", "Filtered.");
        let server = ModelServer::start([error]);
        let output = dialect.task(&server.url(), "").expect_code(1).run();
        assert_eq!(server.finish().len(), 1);
        let result = output.result();
        assert_eq!(result["reason"], "incomplete");
        assert!(result["error"]["message"].to_string().contains("Filtered."));
        assert_eq!(retries(&output), []);
    }
}

/// Cerebras says nothing of a prompt that is too long.
#[test]
fn a_refusal_without_a_body_is_an_overflow_after_a_long_prompt() {
    for (words, code, reason, kind) in [
        (30_000, 1, "incomplete", "context_overflow"),
        (300, 78, "config", "invalid_request"),
    ] {
        for dialect in BOTH {
            let server = ModelServer::start([status(400)]);
            let prompt = format!("prompt={}", "x".repeat(words));
            let output = dialect
                .task(&server.url(), "compaction: {enabled: false}\n")
                .args(["--set", &prompt])
                .expect_code(code)
                .run();
            let result = output.result();
            assert_eq!(
                (&result["reason"], &result["error"]["code"]),
                (&json!(reason), &json!(kind))
            );
            server.finish();
        }
    }
}
