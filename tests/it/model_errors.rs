//! Which kind of error a status and a provider's words stand for.

use serde_json::{Value, json};

use agent::model::{ModelError, ModelErrorKind, body_error, http_error, says_overflow};

fn check(status: u16, body: &str, expect: ModelErrorKind) {
    let error = http_error(status, body);
    assert_eq!(error.kind, expect, "{status} {body}");
    assert_eq!(error.http_status, Some(status));
}

#[test]
fn statuses() {
    use ModelErrorKind as K;
    for (status, kind, retryable) in [
        (400, K::InvalidRequest, false),
        (401, K::Auth, false),
        (402, K::Quota, false),
        (403, K::Auth, false),
        (404, K::InvalidRequest, false),
        (407, K::Unavailable, false),
        (408, K::Timeout, true),
        (409, K::Unavailable, true),
        (413, K::ContextOverflow, false),
        (422, K::InvalidRequest, false),
        (429, K::RateLimited, true),
        (500, K::Unavailable, true),
        (502, K::Unavailable, true),
        (503, K::Unavailable, true),
        (504, K::Unavailable, true),
        (529, K::Overloaded, true),
        (302, K::InvalidRequest, false),
    ] {
        check(status, "", kind);
        assert_eq!(http_error(status, "").is_retryable(), retryable, "{status}");
    }
}

#[test]
fn bodies() {
    use ModelErrorKind as K;
    check(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        K::ContextOverflow,
    );
    check(
        400,
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
        K::ContextOverflow,
    );
    check(
        400,
        r#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
        K::Quota,
    );
    check(
        429,
        r#"{"error":{"type":"insufficient_quota","message":"You exceeded your current quota"}}"#,
        K::Quota,
    );
    check(
        429,
        r#"{"error":{"type":"rate_limit_error","message":"This request would exceed 40000 input tokens per minute"}}"#,
        K::RateLimited,
    );
    check(
        400,
        r#"{"error":{"code":"content_filter","message":"filtered"}}"#,
        K::ContentFilter,
    );
    check(
        500,
        r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
        K::Overloaded,
    );
    check(
        500,
        r#"{"error":{"message":"the request exceeds the available context size"}}"#,
        K::ContextOverflow,
    );
    check(
        400,
        r#"[{"error":{"code":400,"message":"Please reduce the length of the messages"}}]"#,
        K::ContextOverflow,
    );
    check(
        400,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens","code":400}"#,
        K::ContextOverflow,
    );
    // Digits inside ids decide nothing.
    check(
        500,
        r#"{"error":{"message":"internal error, request req_429_413_402"}}"#,
        K::Unavailable,
    );
    check(400, "request 529 failed", K::InvalidRequest);
}

#[test]
fn overflow_phrases() {
    for text in [
        "Prompt is too long",
        "request_too_large",
        "Input is too long for requested model.",
        "Your input exceeds the context window of this model",
        "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "Please reduce the length of the messages or completion",
        "This endpoint's maximum context length is 400000 tokens.",
        "prompt token count of 1 exceeds the limit of 128000",
        "the request exceeds the available context size (4096)",
        "tokens to keep from the initial prompt is greater than the context length",
        "invalid params, context window exceeds limit",
        "Your request exceeded model token limit: 100",
        "Prompt contains 5 tokens, too large for model with 4 maximum context length",
        "prompt too long; exceeded max context length by 5 tokens",
        "context length exceeded",
        "too many tokens in the prompt",
        "token limit exceeded",
        "The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)",
        "Prompt length (200) exceeds maximum input length (100). Set log level to info",
        "default_max_tokens (-100) should be greater than 0",
    ] {
        assert!(says_overflow(text), "{text}");
    }
    for text in [
        "ThrottlingException: Too many tokens, please wait",
        "rate limit reached: too many tokens per min",
        "Too many requests",
        "the file exceeds the limit of fun",
        "everything is fine",
    ] {
        assert!(!says_overflow(text), "{text}");
    }
}

#[test]
fn errors_in_a_body_have_a_kind_of_their_own() {
    use ModelErrorKind as K;
    for (body, kind) in [
        (
            r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            K::Overloaded,
        ),
        (
            r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            K::Auth,
        ),
        (
            r#"{"error":{"type":"invalid_request_error","message":"no"}}"#,
            K::InvalidRequest,
        ),
        (
            r#"{"error":{"type":"api_error","message":"Internal server error"}}"#,
            K::Unavailable,
        ),
        (
            r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"bad gateway"}}}"#,
            K::Unavailable,
        ),
    ] {
        assert_eq!(body_error(body).kind, kind, "{body}");
    }
    let routed = body_error(
        r#"{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"bad gateway"}}}"#,
    );
    assert_eq!(routed.message, "Provider returned error: bad gateway");
}

#[test]
fn errors_read_well() {
    let error = http_error(
        429,
        r#"{"error":{"type":"rate_limit_error","message":"Slow down"}}"#,
    );
    assert_eq!(
        error.to_string(),
        "rate limited (HTTP 429, rate_limit_error): Slow down"
    );
    let error = http_error(503, "<html>\n<body>Service Unavailable</body></html>");
    assert_eq!(
        error.to_string(),
        "the provider is unavailable (HTTP 503): the answer is a web page, not an answer of a model"
    );
    let error = ModelError::new(ModelErrorKind::Timeout, "ü".repeat(5000));
    assert_eq!(error.message.chars().count(), 2001);
    assert!(http_error(302, "").hints[0].contains("base_url"));
}

/// A status that a body repeats is said once; other numbers are the provider's.
#[test]
fn the_status_is_said_once() {
    for (body, said) in [
        (
            r#"{"error":{"code":400,"message":"No."}}"#,
            " (HTTP 400): No.",
        ),
        (
            r#"{"error":{"code":"400","message":"No."}}"#,
            " (HTTP 400): No.",
        ),
        (
            r#"{"error":{"code":"400","type":"bad","message":"No."}}"#,
            " (HTTP 400, bad): No.",
        ),
        (r#"{"code":"400","message":"No."}"#, " (HTTP 400): No."),
        (
            r#"{"error":{"code":"1302","message":"No."}}"#,
            " (HTTP 400, 1302): No.",
        ),
    ] {
        let text = http_error(400, body).to_string();
        assert!(text.ends_with(said), "{body}: {text}");
    }
    // Inside a stream it still tells what kind of an error it is.
    let error = body_error(r#"{"error":{"code":"429","message":"Slow down."}}"#);
    assert_eq!(error.kind, ModelErrorKind::RateLimited);
}

#[test]
fn the_window_that_an_overflow_states() {
    let window = |body: &Value| {
        let stated = http_error(400, &body.to_string()).context_window;
        stated.map(std::num::NonZeroU64::get)
    };
    let message = |text: &str| json!({"error": {"message": text}});
    for (text, expect) in [
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (1000 in the messages, 8000 in the completion).",
            Some(8_192),
        ),
        (
            "prompt is too long: 20777 tokens > 20000 maximum",
            Some(20_000),
        ),
        (
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
            Some(131_072),
        ),
        (
            "The input token count (1196265) exceeds the maximum number of tokens allowed (1,048,575)",
            Some(1_048_575),
        ),
        (
            "The sum of prompt length (9351.0), query length (0) should not exceed max_num_tokens (8192)",
            Some(8_192),
        ),
        (
            "the request exceeds the available context size (4096)",
            Some(4_096),
        ),
        (
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000",
            Some(200_000),
        ),
        ("Please reduce the length of the messages", None),
    ] {
        assert_eq!(window(&message(text)), expect, "{text}");
    }
    let fields = json!({"error": {"code": 400, "type": "exceed_context_size_error",
        "message": "the request exceeds the available context size, try increasing it",
        "n_prompt_tokens": 9_000, "n_ctx": 8_192}});
    assert_eq!(window(&fields), Some(8_192));
    assert_eq!(
        window(&message("unknown field n_ctx 8192")),
        None,
        "not an overflow"
    );
}
