//! Connections that a server keeps open in words and closes in deed.

use crate::support::cli::Output;
use crate::support::dialect::{CHAT, retries};
use crate::support::reply::{Action, Reply};
use crate::support::server::ModelServer;

/// What llama.cpp's server sends for a streamed tool call: it says
/// `Keep-Alive` and ends the chunked body; then it closes the connection.
const CLOSING: &str = include_str!("../fixtures/streams/llama_cpp_closing.http");

fn steps(count: usize) -> Vec<Reply> {
    let reply = |step| {
        // Of the same length, so that the sizes of the chunks stay right.
        let bytes = CLOSING.replace("step-00", &format!("step-{step:02}"));
        Reply::raw(vec![Action::Send(bytes.into_bytes())])
    };
    (1..=count).map(reply).collect()
}

fn run(server: &ModelServer, code: i32) -> Output {
    CHAT.task(
        &server.url(),
        "limits: {max_turns: 40, on_exhausted: stop}\n",
    )
    .expect_code(code)
    .run()
}

#[test]
fn every_step_at_a_server_that_closes_after_each_answer_is_one_attempt() {
    for _ in 0..3 {
        let server = ModelServer::start(steps(40));
        let output = run(&server, 4);
        assert_eq!(retries(&output), []);
        assert_eq!(output.result()["turns"], 40);
        // A request that met a dead connection may have been read; each answer
        // is one that was asked for.
        server.finish();
    }
}
