//! What every provider does, in all four dialects: the same run of the program
//! against a mocked server of each.

use serde_json::json;

use crate::support::dialect::{retries, told};
use crate::support::four::{FOUR, Four, Say};
use crate::support::mock::MockedModel;
use crate::support::reply::{Response, sse};

fn read(id: &'static str, path: &str) -> Say {
    Say::Call(id, "read", json!({"path": path}))
}

#[tokio::test]
async fn a_plain_answer() {
    for dialect in FOUR {
        let server = MockedModel::start(vec![dialect.text("It is 42 – 好.")]).await;
        let output = dialect.task(&server.url(), "").run();
        assert_eq!(output.stdout, "It is 42 – 好.\n", "{}", dialect.name);
        let requests = server.finish().await;
        let (header, value) = dialect.key_header;
        assert_eq!(requests[0].path, dialect.path);
        assert_eq!(requests[0].header(header), Some(value));
        assert!(
            requests[0].body[dialect.conversation]
                .to_string()
                .contains("Do it.")
        );
        let result = output.result();
        assert_eq!(
            json!([
                result["reason"],
                result["turns"],
                result["usage"]["input"],
                result["usage"]["output"]
            ]),
            json!(["success", 1, 100, 10]),
            "{}",
            dialect.name
        );
        assert!(
            result["costUsd"].as_f64().unwrap() > 0.0,
            "{}",
            dialect.name
        );
    }
}

#[tokio::test]
async fn a_loop_of_calls() {
    for dialect in FOUR {
        let replies = vec![
            (dialect.reply)(&[Say::Text("First."), read("c1", "a.txt")]),
            (dialect.reply)(&[read("c2", "b.txt")]),
            dialect.text("Both read."),
        ];
        let server = MockedModel::start(replies).await;
        let output = dialect
            .task(&server.url(), "")
            .file("a.txt", "alpha\n")
            .file("b.txt", "beta\n")
            .run();
        assert_eq!(output.stdout, "Both read.\n", "{}", dialect.name);
        let requests = server.finish().await;
        let results: Vec<Vec<String>> = requests
            .iter()
            .map(|request| dialect.results(&request.body))
            .collect();
        assert_eq!(results.iter().map(Vec::len).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(results[2][0].contains("alpha") && results[2][1].contains("beta"));
        assert_eq!(output.result()["usage"]["input"], 300);
    }
}

#[tokio::test]
async fn calls_side_by_side() {
    for dialect in FOUR {
        let calls = [
            read("c1", "a.txt"),
            read("c2", "missing.txt"),
            Say::Call("c3", "ls", json!({})),
        ];
        let server = MockedModel::start(vec![(dialect.reply)(&calls), dialect.text("Done.")]).await;
        let output = dialect
            .task(&server.url(), "")
            .file("a.txt", "alpha\n")
            .run();
        let requests = server.finish().await;
        let results = dialect.results(&requests[1].body);
        assert_eq!(results.len(), 3, "{}: {results:?}", dialect.name);
        for (result, expect) in results.iter().zip(["alpha", "missing.txt", "task.yaml"]) {
            assert!(result.contains(expect), "{}: {result}", dialect.name);
        }
        let started = told(&output, "tool:execution:start");
        assert_eq!(started.len(), 3, "{}", dialect.name);
        let groups = started.iter().all(|data| data["parallelGroup"] == 1);
        assert!(groups, "{}", dialect.name);
    }
}

/// Thinking stands in the next request as the provider wants it, and is told.
#[tokio::test]
async fn thinking_goes_back() {
    for dialect in FOUR {
        let replies = vec![
            (dialect.reply)(&[Say::Thinking("Why"), Say::Call("c1", "ls", json!({}))]),
            dialect.text("So."),
        ];
        let server = MockedModel::start(replies).await;
        let output = dialect
            .task(&server.url(), "settings: {thinking: high}\n")
            .run();
        let requests = server.finish().await;
        let sent = requests[1].body[dialect.conversation].as_array().unwrap();
        let expect = (dialect.thought_back)();
        let expect = expect.as_array().unwrap();
        let found = sent.windows(expect.len()).any(|items| items == expect);
        assert!(found, "{}: {:#}", dialect.name, requests[1].body);
        let complete = told(&output, "message:complete");
        assert_eq!(complete[0]["reasoning"], "Why", "{}", dialect.name);
    }
}

/// A stream that began well ends in an error.
fn broken(dialect: &Four) -> Response {
    let whole = dialect.text("Half of it");
    let end = whole.find("Half") + "Half".len();
    let frame = whole.text()[end..]
        .find("\n\n")
        .or(whole.text()[end..].find("\r\n\r\n"));
    let (begun, _) = whole.text().split_at(end + frame.unwrap());
    sse(format!("{begun}\r\n\r\n{}", (dialect.overloaded)()))
}

#[tokio::test]
async fn an_error_inside_a_stream_is_tried_again() {
    for dialect in FOUR {
        let server = MockedModel::start(vec![broken(&dialect), dialect.text("Whole.")]).await;
        let output = dialect.task(&server.url(), "").run();
        assert_eq!(output.stdout, "Whole.\n", "{}", dialect.name);
        let requests = server.finish().await;
        assert_eq!(requests[0].bytes, requests[1].bytes, "{}", dialect.name);
        let tried = retries(&output);
        assert_eq!(tried.len(), 1, "{}: {tried:?}", dialect.name);
        assert_eq!(tried[0].0, "overloaded", "{}", dialect.name);
        assert_eq!(output.result()["retries"], 1);
        assert_eq!(output.result()["turns"], 1);
    }
}

#[tokio::test]
async fn a_limit_of_the_rate_is_waited_for() {
    for dialect in FOUR {
        let limited = (dialect.error)(429, "Too many requests").header("retry-after", "0.02");
        let server = MockedModel::start(vec![limited, dialect.text("Now.")]).await;
        let output = dialect.task(&server.url(), "").run();
        assert_eq!(output.stdout, "Now.\n", "{}", dialect.name);
        server.finish().await;
        let expect = (
            "rate_limited".to_owned(),
            Some(429),
            20,
            "retry-after".to_owned(),
        );
        assert_eq!(retries(&output), [expect], "{}", dialect.name);
    }
}

/// A conversation that the provider finds too long is summarised, and goes on.
#[tokio::test]
async fn a_conversation_that_is_too_long_is_summarised() {
    let settings = "compaction: {keep_recent_tokens: 50}\n";
    for dialect in FOUR {
        let replies = vec![
            (dialect.reply)(&[read("c1", "a.txt")]),
            (dialect.reply)(&[read("c2", "b.txt")]),
            (dialect.error)(400, dialect.too_long),
            dialect.text("THE SUMMARY"),
            dialect.text("Done."),
        ];
        let server = MockedModel::start(replies).await;
        let output = dialect
            .task(&server.url(), settings)
            .file("a.txt", "alpha and so on\n".repeat(500))
            .file("b.txt", "beta\n")
            .run();
        assert_eq!(output.stdout, "Done.\n", "{}", dialect.name);
        let requests = server.finish().await;
        let last = requests[4].body[dialect.conversation].to_string();
        assert!(
            last.contains("THE SUMMARY") && !last.contains("alpha"),
            "{last}"
        );
        assert_eq!(output.result()["compactions"], 1, "{}", dialect.name);
        assert_eq!(retries(&output), [], "{}", dialect.name);
    }
}

/// Where there is nothing to summarise the run stops, and says why.
#[tokio::test]
async fn a_prompt_that_is_too_long_stops_the_run() {
    for dialect in FOUR {
        let server = MockedModel::start(vec![(dialect.error)(400, dialect.too_long)]).await;
        let output = dialect.task(&server.url(), "").expect_code(1).run();
        server.finish().await;
        let result = output.result();
        assert_eq!(
            result["error"]["code"], "context_overflow",
            "{}",
            dialect.name
        );
        assert_eq!(result["error"]["httpStatus"], 400, "{}", dialect.name);
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains("context window"), "{message}");
    }
}
