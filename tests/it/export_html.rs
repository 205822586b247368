//! The page of a session: what it shows, and where.

use std::io;

use agent::export::session_html;
use agent::secret::Redactor;
use serde_json::{Value, json};

use crate::export_page::{Page, below, call, id, page_of, reply, result, session, text, user};

/// A session with one of each kind of entry, and a branch.
fn varied() -> Vec<Value> {
    let mut failed = result("c2", "bash", "1 test failed\n\n[exit code 101]");
    failed["message"]["isError"] = true.into();
    let mut edited = result("c1", "edit", "made 1 edit in `a.rs` (+1 -1)");
    edited["message"]["details"] = json!({"path": "a.rs", "additions": 1, "deletions": 1,
        "diff": "--- a/a.rs\n+++ b/a.rs\n@@ -7,2 +7,2 @@\n keep\n-old\n+new\n"});
    vec![
        json!({"type": "model_change", "provider": "maker", "modelId": "large"}),
        json!({"type": "thinking_level_change", "thinkingLevel": "low"}),
        user("Fix the bug"),
        reply(&[
            json!({"type": "thinking", "thinking": "Where is it?"}),
            text("Here is **the** bug."),
            call(
                "c1",
                "edit",
                json!({"path": "a.rs", "edits": [{"oldText": "old", "newText": "new"}]}),
            ),
            call(
                "c2",
                "bash",
                json!({"command": "cargo test", "timeout": 60}),
            ),
        ]),
        edited,
        failed,
        reply(&[text("Fixed, more or less.")]),
        user("Another way?"),
        reply(&[text("No.")]),
        below(
            Some(6),
            json!({"type": "branch_summary", "fromId": id(8), "summary": "Asked again."}),
        ),
        json!({"type": "label", "targetId": id(2), "label": "begin"}),
        json!({"type": "session_info", "name": "The bug"}),
        json!({"type": "compaction", "summary": "Fixed.", "firstKeptEntryId": id(6), "tokensBefore": 12345}),
        json!({"type": "custom", "customType": "todo", "data": {"items": 1}}),
        json!({"type": "custom_message", "customType": "hint", "content": "Mind the gap", "display": false}),
        json!({"type": "portal", "to": ["x"]}),
        result("gone", "read", "text"),
        json!({"type": "message", "message": {"role": "bashExecution", "command": "git diff",
            "output": "-a", "exitCode": 1, "excludeFromContext": true, "truncated": true,
            "fullOutputPath": "/tmp/x", "timestamp": 1}}),
        json!({"type": "custom", "customType": "leaf"}),
    ]
}

#[test]
fn a_page_shows_every_entry_at_its_place() {
    let page = page_of(&varied());
    insta::assert_snapshot!("opening", page.sketch(".opening"));
    insta::assert_snapshot!("outline", page.sketch(".outline"));
    insta::assert_snapshot!("transcript", page.sketch("main"));
    let ids: Vec<&str> = page.values("id").collect();
    for place in 0..varied().len() {
        let anchor = format!("e-{}", id(place));
        assert!(
            ids.contains(&anchor.as_str()),
            "{anchor} is not on the page"
        );
    }
}

#[test]
fn the_same_session_is_the_same_page() {
    assert_eq!(page_of(&varied()).html, page_of(&varied()).html);
}

#[test]
fn an_empty_session_is_a_page_too() {
    let page = page_of(&[]);
    assert_eq!(page.texts_of(".empty"), ["This session has no entries."]);
    assert_eq!(
        page.texts_of("h1"),
        ["0193a6f0-0000-7000-8000-000000000001"]
    );
    assert_eq!(page.texts_of("nav")[0].trim(), "Outline\nOutline".trim());
}

fn tiles(entries: &[Value]) -> Vec<String> {
    let page = page_of(entries);
    let names = page.texts_of("dt");
    let values = page.texts_of("dd");
    let all = names.iter().zip(&values);
    all.map(|(name, value)| format!("{name}: {value}"))
        .skip_while(|fact| !fact.starts_with("Prompts"))
        .collect()
}

#[test]
fn the_totals_are_of_all_branches_and_say_what_they_do_not_know() {
    let mut unpriced = reply(&[text("?")]);
    unpriced["message"]["usage"]["cost"]["total"] = 0.0.into();
    let mut silent = reply(&[text("!")]);
    silent["message"]["usage"] = json!({});
    assert_eq!(
        tiles(&[
            user("a"),
            reply(&[text("b")]),
            below(Some(0), reply(&[text("c")]))
        ]),
        [
            "Prompts: 1",
            "Replies: 2",
            "Tool calls: 0",
            "Tokens in: 2,680",
            "Tokens out: 400",
            "Cost: $0.5000"
        ]
    );
    assert_eq!(
        tiles(&[user("a"), unpriced.clone(), silent.clone()]),
        [
            "Prompts: 1",
            "Replies: 2",
            "Tool calls: 0",
            "Tokens in: 1,340",
            "Tokens out: 200",
            "Cost: unknown"
        ]
    );
    let mixed = [user("a"), unpriced, reply(&[text("b")]), silent];
    assert_eq!(tiles(&mixed)[5], "Known cost: $0.2500");
    let page = page_of(&mixed);
    assert_eq!(
        page.texts_of(".scope"),
        ["Of the whole session: 4 entries. The price of 1 reply is unknown. Times are UTC."]
    );
    assert_eq!(
        page.texts_of(".usage"),
        [
            "1,340 in (300 from cache, 40 to cache) · 200 out (50 thinking) · cost unknown · 20:00:01",
            "1,340 in (300 from cache, 40 to cache) · 200 out (50 thinking) · $0.2500 · 20:00:02",
            "no usage reported · 20:00:03",
        ]
    );
}

fn check_title(name: &str, arguments: Value, expect: &str) {
    let page = page_of(&[reply(&[call("c", name, arguments.clone())])]);
    let titles = page.texts_of("summary");
    let title = titles
        .iter()
        .find(|title| title.contains("no result"))
        .unwrap();
    assert_eq!(title, &format!("{expect} no result"), "{name} {arguments}");
}

#[test]
fn a_call_is_titled_by_what_matters() {
    for (name, arguments, expect) in [
        (
            "bash",
            json!({"command": "cargo  test\ncargo doc"}),
            "bash cargo test cargo doc",
        ),
        ("read", json!({"path": "src/lib.rs"}), "read src/lib.rs"),
        ("read", json!({"path": "a", "offset": 10}), "read a:10-"),
        (
            "read",
            json!({"path": "a", "offset": 10, "limit": 5}),
            "read a:10-14",
        ),
        ("read", json!({"path": "a", "limit": 5}), "read a:1-5"),
        ("edit", json!({"path": "a", "edits": []}), "edit a"),
        (
            "grep",
            json!({"pattern": "fn .*", "path": "src"}),
            "grep fn .* in src",
        ),
        ("find", json!({"pattern": "*.rs"}), "find *.rs"),
        ("ls", json!({}), "ls "),
        (
            "mcp__a__b",
            json!({"x": "y z", "n": [1, 2]}),
            "mcp__a__b x=y z n=[1,2]",
        ),
        ("bash", json!({"command": 7}), "bash command=7"),
        ("odd", json!("text"), "odd \"text\""),
    ] {
        check_title(name, arguments, expect);
    }
    let long = "x".repeat(150);
    check_title(
        "bash",
        json!({"command": long}),
        &format!("bash {}…", &long[..140]),
    );
}

fn chips(name: &str, output: &str, is_error: bool) -> Vec<String> {
    let mut answer = result("c", name, output);
    answer["message"]["isError"] = is_error.into();
    let page = page_of(&[reply(&[call("c", name, json!({}))]), answer]);
    let mut chips = page.texts_of(".chip");
    chips.extend(page.texts_of(".why"));
    chips
}

#[test]
fn a_failure_says_how_it_failed() {
    for (name, output, expect) in [
        ("bash", "oh\n\n[exit code 101]", vec!["exit code 101"]),
        (
            "bash",
            "[killed by signal 9 (SIGKILL, perhaps out of memory)]\n",
            vec!["killed by signal 9 (SIGKILL, perhaps out of memory)"],
        ),
        (
            "bash",
            "x\n[timed out after 5 s and was stopped]",
            vec!["timed out after 5 s and was stopped"],
        ),
        ("bash", "x\n\nCommand exited with code 2", vec!["code 2"]),
        ("bash", "[not ours]", vec!["failed", "[not ours]"]),
        (
            "read",
            "no such\nfile [exit code 1]",
            vec!["failed", "no such file [exit code 1]"],
        ),
    ] {
        assert_eq!(chips(name, output, true), expect, "{name} {output:?}");
        assert_eq!(
            chips(name, output, false),
            [] as [&str; 0],
            "{name} {output:?}"
        );
    }
}

#[test]
fn results_stand_with_their_calls() {
    // Some models use the same id in every reply, or twice in one.
    let ask = |text: &str| {
        reply(&[
            call("1", "a", json!({"x": text})),
            call("1", "a", json!({})),
        ])
    };
    let page = page_of(&[
        ask("first"),
        result("1", "a", "one"),
        json!({"type": "custom", "customType": "between"}),
        result("1", "a", "two"),
        result("1", "a", "too many"),
        ask("second"),
        result("1", "a", "three"),
    ]);
    let bodies: Vec<String> = page
        .texts_of(".body")
        .iter()
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        bodies,
        [
            "xfirst Result one",
            "Result two",
            "too many",
            "xsecond Result three",
            "The session has no result of this call.",
        ]
    );
    assert_eq!(page.texts_of(".result h3").len(), 0);
}

/// The rows of the only diff.
fn rows(page: &Page) -> Vec<String> {
    let sketch = page.sketch(".diff");
    sketch
        .lines()
        .skip(1)
        .map(|line| line.trim().to_owned())
        .collect()
}

#[test]
fn differences_are_told_apart_line_by_line() {
    let edited = |diff: &str| {
        let mut answer = result("c", "edit", "done");
        answer["message"]["details"] = json!({"diff": diff, "extra": 1});
        page_of(&[reply(&[call("c", "edit", json!({"path": "a"}))]), answer])
    };
    let unified =
        edited("--- a/a\n+++ b/a\n@@ -3,2 +3,2 @@ fn f()\n x\n--- not a name\n+y\n\\ No newline\n");
    assert_eq!(
        rows(&unified),
        [
            "span class=n",
            "\"--- a/a\"",
            "span class=n",
            "\"+++ b/a\"",
            "span class=p",
            "\"@@ -3,2 +3,2 @@ fn f()\"",
            "span class=k data-n=3",
            "\"x\"",
            "span class=r data-n=4",
            "\"--- not a name\"",
            "span class=a data-n=4",
            "\"+y\"",
            "span class=p",
            "\"\\\\ No newline\"",
        ]
    );
    assert_eq!(unified.texts_of(".chip"), ["+1 −1"]);
    assert_eq!(
        unified.texts_of(".came"),
        ["Result\ndone\nDetails\n{\n  \"extra\": 1\n}\n\n"]
    );
    let numbered = edited("-  1 old\n+  1 new\n+  2 more\n   2 kept\n     ...\n");
    assert_eq!(
        rows(&numbered),
        [
            "span class=r",
            "\"-  1 old\"",
            "span class=a",
            "\"+  1 new\"",
            "span class=a",
            "\"+  2 more\"",
            "span class=k",
            "\"2 kept\"",
            "span class=k",
            "\"...\"",
        ]
    );
    assert_eq!(numbered.texts_of(".chip"), ["+2 −1"]);
    let asked = json!({"path": "a", "oldText": "one\ntwo", "newText": "three"});
    let refused = page_of(&[reply(&[call("c", "edit", asked)])]);
    assert_eq!(
        rows(&refused),
        [
            "span class=r",
            "\"-one\"",
            "span class=r",
            "\"-two\"",
            "span class=a",
            "\"+three\""
        ]
    );
    assert_eq!(refused.texts_of("dl").len(), 2, "the arguments stand once");
}

#[test]
fn a_reply_that_did_not_end_well_says_so() {
    for (reason, expect) in [
        ("length", "Cut by the output limit why"),
        ("refusal", "Refused why"),
        ("pause", "Paused by the provider why"),
        ("aborted", "Cancelled why"),
        ("error", "The call failed why"),
        ("stop", "The call failed why"),
    ] {
        let mut ended = reply(&[text("Begin")]);
        ended["message"]["stopReason"] = reason.into();
        ended["message"]["errorMessage"] = "why".into();
        assert_eq!(page_of(&[ended]).texts_of(".fault"), [expect], "{reason}");
    }
}

#[test]
fn branches_nest_as_deep_as_the_logarithm_of_their_tree() {
    // A comb: each entry of a long side branch has a branch of its own.
    let mut entries = vec![user("root")];
    for place in 1..2_000 {
        let parent = match place {
            1 => 0,
            odd if odd % 2 == 1 => odd - 2,
            even => even - 1,
        };
        entries.push(below(Some(parent), user("x")));
    }
    entries.push(below(Some(0), user("leaf")));
    let page = page_of(&entries);
    let deepest = page.elements().map(|node| node.depth).max().unwrap();
    assert!(deepest < 30, "{deepest} elements around one");
    assert_eq!(page.texts_of("article").len(), entries.len());
    let count = page.texts_of(".branch").len();
    assert_eq!(
        page.texts_of(".scope"),
        [format!("Of the whole session: 2,001 entries, 1,999 of them on {count} branches beside the main line. Times are UTC.").replace("1000", "1,000")]
    );
}

#[test]
fn beginnings_beside_the_first_are_branches_too() {
    let page = page_of(&[
        user("abandoned"),
        below(None, user("taken")),
        reply(&[text("yes")]),
    ]);
    assert_eq!(page.sketch("ol").matches("Branch").count(), 1);
    let branch = page.texts_of(".branch");
    assert_eq!(branch.len(), 1);
    assert!(
        branch[0].starts_with("Branch abandoned 1 entry"),
        "{branch:?}"
    );
}

#[test]
fn a_page_grows_with_its_session_and_no_faster() {
    let size = |turns: usize| {
        let turn = |_| {
            [
                user("go"),
                reply(&[call("c", "bash", json!({"command": "ls"}))]),
                result("c", "bash", "a\nb"),
            ]
        };
        let entries: Vec<Value> = (0..turns).flat_map(turn).collect();
        let mut html = Vec::new();
        session_html(&session(&entries), &Redactor::default(), &mut html).unwrap();
        html.len()
    };
    let (one, two, four) = (size(300), size(600), size(1_200));
    let (first, second) = (two - one, four - two);
    assert!(
        second.abs_diff(2 * first) < first / 20,
        "{one} {two} {four}"
    );
}

/// Takes so many bytes and no more.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_page_that_cannot_be_written_is_an_error() {
    let tree = session(&varied());
    let whole = page_of(&varied()).html.len();
    for room in [0, 100, whole / 2, whole - 1] {
        let error = session_html(&tree, &Redactor::default(), &mut Full(room)).unwrap_err();
        assert_eq!(
            error.kind(),
            io::ErrorKind::StorageFull,
            "{room} of {whole} bytes"
        );
    }
    session_html(&tree, &Redactor::default(), &mut Full(whole)).unwrap();
}
