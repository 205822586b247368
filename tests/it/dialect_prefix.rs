//! What was sent once is sent again in the same bytes, so that every provider
//! finds it in its cache.

use serde_json::json;

use crate::support::cli::Output;
use crate::support::four::{FOUR, Four, Say};
use crate::support::server::{ModelServer, Recorded};

/// The only bytes that move: the mark of the newest block.
const MARK: &str = r#","cache_control":{"type":"ephemeral"}"#;

fn read(id: &'static str, path: &str) -> Say {
    Say::Call(id, "read", json!({"path": path}))
}

/// A request up to its conversation, and the conversation without the brackets
/// at its end and without marks.
fn parts(dialect: &Four, request: &Recorded) -> (String, String) {
    let text = String::from_utf8(request.bytes.clone()).unwrap();
    let begin = format!("\"{}\":[", dialect.conversation);
    let (head, conversation) = text.split_once(&begin).unwrap();
    let conversation = conversation.replace(MARK, "");
    let conversation = conversation.trim_end_matches([']', '}']);
    (head.to_owned(), conversation.to_owned())
}

fn play(dialect: &Four, more: &str, replies: Vec<Vec<Say>>) -> (Output, Vec<Recorded>) {
    let server = ModelServer::start(replies.iter().map(|says| (dialect.reply)(says)));
    let output = dialect
        .task(&server.url(), more)
        .file("a.txt", "alpha \"quoted\" \u{1} and so on\n".repeat(200))
        .file("b.txt", "beta\n")
        .run();
    (output, server.finish())
}

fn assert_grows(dialect: &Four, requests: &[Recorded]) {
    for pair in requests.windows(2) {
        let (head, before) = parts(dialect, &pair[0]);
        let (next_head, now) = parts(dialect, &pair[1]);
        assert_eq!(head, next_head, "{}", dialect.name);
        assert!(now.len() > before.len(), "{}", dialect.name);
        assert!(
            now.starts_with(&before),
            "{}\n{before}\n{now}",
            dialect.name
        );
    }
}

/// Calls, calls side by side, a reply that says nothing and the note behind it.
#[test]
fn a_conversation_grows_at_its_end() {
    for dialect in &FOUR {
        let replies = vec![
            vec![
                Say::Thinking("Why"),
                Say::Text("I look."),
                read("c1", "a.txt"),
            ],
            vec![read("c2", "b.txt"), read("c3", "missing.txt")],
            vec![Say::Text(" ")],
            vec![Say::Call("c4", "ls", json!({}))],
            vec![Say::Text("Done.")],
        ];
        let (output, requests) = play(dialect, "settings: {thinking: high}\n", replies);
        assert_eq!(output.stdout, "Done.\n");
        assert_eq!(requests.len(), 5);
        assert_grows(dialect, &requests);
        let note = requests[3].body.to_string();
        assert!(note.contains("Your reply was empty"), "{note}");
    }
}

/// A hook adds a message to the run and writes each result anew: once, before
/// it is sent.
#[test]
fn what_hooks_say_stays_where_it_is() {
    let hooks = r#"
hooks:
  before_agent_start: [{command: [echo, '{"messages": [{"content": "mind the gap"}]}']}]
  after_tool: [{command: [echo, '{"action": "replace", "content": "a result in brief"}']}]
"#;
    for dialect in &FOUR {
        let replies = vec![
            vec![read("c1", "a.txt")],
            vec![read("c2", "b.txt")],
            vec![Say::Text("Done.")],
        ];
        let (_, requests) = play(dialect, hooks, replies);
        assert_grows(dialect, &requests);
        let last = requests[2].body.to_string();
        assert_eq!(last.matches("mind the gap").count(), 1, "{last}");
        assert_eq!(last.matches("a result in brief").count(), 2, "{last}");
    }
}

/// A summary takes the place of what it sums up: all before the conversation
/// stays, and so does all that is kept behind it.
#[test]
fn a_compaction_changes_the_summary_only() {
    for dialect in &FOUR {
        let server = ModelServer::start([
            (dialect.reply)(&[read("c1", "a.txt")]),
            (dialect.reply)(&[Say::Text("I go on – 好."), read("c2", "b.txt")]),
            (dialect.error)(400, dialect.too_long),
            dialect.text("THE SUMMARY"),
            (dialect.reply)(&[Say::Call("c4", "ls", json!({}))]),
            dialect.text("Done."),
        ]);
        let output = dialect
            .task(&server.url(), "compaction: {keep_recent_tokens: 50}\n")
            .file("a.txt", "alpha and so on\n".repeat(500))
            .file("b.txt", "beta\n")
            .run();
        assert_eq!(output.stdout, "Done.\n");
        let requests = server.finish();
        let (head, before) = parts(dialect, &requests[2]);
        let (next_head, now) = parts(dialect, &requests[4]);
        assert_eq!(head, next_head, "{}", dialect.name);
        let kept = before.find("I go on").unwrap();
        assert!(now.contains("THE SUMMARY"), "{now}");
        assert!(
            now.ends_with(&before[kept..]),
            "{}\n{before}\n{now}",
            dialect.name
        );
        // And from there it grows as before.
        assert_grows(dialect, &requests[4..]);
    }
}
