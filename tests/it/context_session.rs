//! What a prompt becomes before the model sees it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use agent::context::{Resources, Skill, Template};
use agent::hook::{HookPoint, Input, InputVerdict};
use agent::message::{Content, Message};
use agent::policy::Rule;
use agent::session::{Expand, PromptOptions};
use agent::tool::Toolset;
use serde_json::{Value, json};

use crate::support::hooks::{Heard, Probe};
use crate::support::session::{Play, Stage, Told, expecting, text};

fn stage(replies: usize) -> Stage {
    let replies: Vec<Value> = (0..replies).map(|_| text("done")).collect();
    Stage::new(Value::from(replies))
}

fn resources() -> Resources {
    Resources {
        skills: vec![Skill {
            name: "lint".to_owned(),
            description: "Fixes lints.".to_owned(),
            location: ".agent/skills/lint/SKILL.md".to_owned(),
            directory: "/nowhere/lint".into(),
            body: "Run the linter. See @a.txt and /greet.".to_owned(),
            listed: true,
        }],
        templates: vec![Template {
            name: "greet".to_owned(),
            description: None,
            location: ".agent/templates/greet.md".to_owned(),
            body: "Greet $1. See @a.txt.".to_owned(),
        }],
        ..Resources::default()
    }
}

/// The blocks of the user messages, one list each.
fn said(told: &Told) -> Vec<Vec<String>> {
    let block = |block: &Content| match block {
        Content::Text(block) => block.text.clone(),
        Content::Image(image) => format!("[{}]", image.mime_type),
        other => panic!("{other:?}"),
    };
    let blocks = |message: &std::sync::Arc<Message>| match message.as_ref() {
        Message::User(message) => Some(message.content.iter().map(block).collect()),
        Message::Assistant(_) | Message::ToolResult(_) => None,
    };
    told.messages.iter().filter_map(blocks).collect()
}

fn warnings(told: &Told) -> Vec<String> {
    let line = |data: &&Value| {
        let field = |name: &str| data[name].as_str().unwrap().to_owned();
        format!("{}: {}", field("code"), field("message"))
    };
    told.data("warning").iter().map(line).collect()
}

async fn prompted(mut play: Play, text: &str) -> Told {
    play.prompt(text).await.unwrap();
    play.end().await
}

#[tokio::test]
async fn mentioned_files_are_attached() {
    let png = b"\x89PNG\r\n\x1a\nrest";
    let play = stage(1)
        .file("src/lib.rs", "fn main() {}\n")
        .file("with space.md", "text </file> \x1b[31mred")
        .file("shot.png", png)
        .file("docs/b.md", "")
        .file("docs/a/x", "")
        .open()
        .await;
    let prompt = "Compare @src/lib.rs with (@\"with space.md\"), @docs/ and @shot.png. \
                  Again @src/lib.rs; mail me@src/lib.rs, use @scope/package.";
    let told = prompted(play, prompt).await;
    assert_eq!(
        said(&told),
        [[
            prompt,
            "<file path=\"src/lib.rs\">\nfn main() {}\n</file>",
            "<file-2 path=\"with space.md\">\ntext </file> red\n</file-2>",
            "<directory path=\"docs/\">\na/\nb.md\n</directory>",
            "<file path=\"shot.png\">\nshot.png: image/png, 12 bytes\n</file>",
            "[image/png]",
        ]]
    );
    assert_eq!(
        told.data("file:reference"),
        [&json!({"references": [
            {"type": "file", "name": "src/lib.rs", "content": "fn main() {}\n"},
            {"type": "file", "name": "with space.md", "content": "text </file> red"},
            {"type": "dir", "name": "docs/", "content": "a/\nb.md"},
            {"type": "file", "name": "shot.png", "content": "shot.png: image/png, 12 bytes"},
        ]})]
    );
    assert_eq!(told.field("message:user", "content"), [json!(prompt)]);
    assert_eq!(told.field("turn:start", "input"), [json!(prompt)]);
    assert_eq!(warnings(&told), [""; 0]);
    let place = |name: &str| told.names().iter().position(|other| *other == name);
    assert!(place("turn:start") < place("file:reference"));
    assert!(place("file:reference") < place("message:user"));
}

#[tokio::test]
async fn what_cannot_be_attached_stays_and_is_told() {
    let mut stage = stage(1)
        .file("secret/key.md", "secret")
        .file(".env", "KEY=secret")
        .file("bin", "a\0b")
        .file("src/lib.rs", "x");
    let rule = Rule::parse("Read(secret/**)", "permissions.deny[0]").unwrap();
    stage.permissions.deny.push(rule);
    let play = stage.open().await;
    std::os::unix::fs::symlink("/etc/passwd", play.workspace().join("link")).unwrap();
    let told = prompted(
        play,
        "@secret/key.md @.env @/etc/passwd @link @../x/y @bin @src/lob.rs @\"no file\" @nobody @~/x",
    )
    .await;
    assert_eq!(said(&told).concat().len(), 1);
    assert_eq!(told.data("file:reference"), [&Value::Null; 0]);
    let expected = [
        (
            "secret/key.md",
            "reference_denied",
            "permissions.deny[0] Read(secret/**)",
        ),
        (".env", "reference_denied", "credential"),
        ("/etc/passwd", "reference_denied", "outside the workspace"),
        ("link", "reference_denied", "outside the workspace"),
        ("../x/y", "reference_missing", "there is no such file"),
        ("bin", "reference_unreadable", "binary file"),
        ("src/lob.rs", "reference_missing", "there is no such file"),
        ("no file", "reference_missing", "there is no such file"),
        ("~/x", "reference_missing", "there is no such file"),
    ];
    let told = warnings(&told);
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, (name, code, why)) in told.iter().zip(expected) {
        let start = format!("{code}: `@{name}` stays as text: ");
        assert!(told.starts_with(&start) && told.contains(why), "{told}");
    }
}

#[tokio::test]
async fn attachments_are_cut_like_results_and_bounded() {
    let line = "x".repeat(99) + "\n";
    let mut stage = stage(2).file("long.txt", line.repeat(1_000));
    for number in 0..40 {
        stage = stage.file(&format!("f{number:02}"), "y");
    }
    let mut play = stage.file("big", line.repeat(500)).open().await;
    play.prompt("@long.txt").await.unwrap();
    let many: String = (0..40).map(|number| format!("@f{number:02} ")).collect();
    play.prompt(&many).await.unwrap();
    let told = play.end().await;
    let said = said(&told);
    assert!(
        said[0][1].ends_with("[lines 1-512 of 1000 are shown; go on with offset=513]\n</file>")
    );
    assert_eq!(said[1].len(), 1 + 32);
    let told = warnings(&told);
    assert_eq!(told.len(), 8);
    assert_eq!(
        told[0],
        "reference_skipped: `@f32` stays as text: a prompt takes at most 32 files and 256 KiB"
    );
}

#[tokio::test]
async fn all_attachments_together_are_bounded() {
    let mut stage = stage(1);
    let line = "x".repeat(99) + "\n";
    for number in 0..8 {
        stage = stage.file(&format!("f{number}"), line.repeat(510));
    }
    let all: String = (0..8).map(|number| format!("@f{number} ")).collect();
    let told = prompted(stage.open().await, &all).await;
    let attached: usize = said(&told)[0][1..].iter().map(String::len).sum();
    assert_eq!(said(&told)[0].len(), 1 + 6);
    assert!(attached < 320 * 1_024, "{attached}");
    assert_eq!(warnings(&told).len(), 2);
}

#[tokio::test]
async fn skills_and_templates_expand_once() {
    let mut stage = stage(3).file("a.txt", "alpha\n").file("b.txt", "beta\n");
    stage.resources = resources();
    let mut play = stage.open().await;
    for prompt in [
        "/skill:lint in @b.txt",
        "/greet '/greet you' @b.txt",
        "/skill:lnt",
    ] {
        play.prompt(prompt).await.unwrap();
    }
    let told = play.end().await;
    let beta = "<file path=\"b.txt\">\nbeta\n</file>";
    let said = said(&told);
    assert!(said[0][0].starts_with("<skill name=\"lint\""), "{said:?}");
    assert!(said[0][0].ends_with("See @a.txt and /greet.\n</skill>\n\nin @b.txt"));
    assert_eq!(said[0][1..], [beta]);
    assert_eq!(said[1], ["Greet /greet you. See @a.txt.", beta]);
    assert_eq!(said[2], ["/skill:lnt"]);
    assert_eq!(
        warnings(&told),
        ["unknown_skill: `/skill:lnt` stays as text: the skills are lint"]
    );
    // What was said, and what the model was given for it.
    assert_eq!(
        told.field("turn:start", "input")[1],
        "/greet '/greet you' @b.txt"
    );
    assert_eq!(
        told.field("message:user", "content")[1],
        "Greet /greet you. See @a.txt."
    );
    let ready = told.data("session:ready")[0];
    assert_eq!(
        (&ready["skills"], &ready["templates"]),
        (&json!(["lint"]), &json!(["greet"]))
    );
}

#[tokio::test]
async fn what_may_not_be_expanded_is_not() {
    let mut stage = stage(5).file("a.txt", "alpha\n");
    stage.resources = resources();
    let mut play = stage.open().await;
    let data = |part: std::ops::Range<usize>| Expand::Except(vec![part]);
    let cases = [
        ("/greet @a.txt", Expand::Nothing, "/greet @a.txt", 0),
        ("/greet me @a.txt", data(7..9), "Greet me. See @a.txt.", 1),
        ("@a.txt <@a.txt>", data(7..15), "@a.txt <@a.txt>", 1),
        (
            "/greet <@a.txt>",
            data(7..15),
            "Greet <@a.txt>. See @a.txt.",
            0,
        ),
        // Parts that do not fit the text say that it is another one.
        ("/greet é @a.txt", data(8..9), "/greet é @a.txt", 0),
    ];
    for (text, expand, _, _) in &cases {
        let options = PromptOptions {
            expand: expand.clone(),
            ..PromptOptions::default()
        };
        play.prompt_with(text, options, |_| {}).await.unwrap();
    }
    let told = play.end().await;
    for (said, (text, _, expected, attached)) in said(&told).iter().zip(cases) {
        assert_eq!(said[0], expected, "{text}");
        assert_eq!(said.len(), 1 + attached, "{text}");
    }
}

/// What is attached counts as read, as if the model had asked for it.
#[tokio::test]
async fn a_mentioned_file_may_be_edited() {
    let args = json!({"path": "a.txt", "edits": [{"oldText": "alpha", "newText": "beta"}]});
    let edit = json!({"calls": [{"name": "edit", "arguments": args}]});
    let mut stage = Stage::new(json!([edit, text("done")]))
        .edits()
        .file("a.txt", "alpha\n");
    stage.tools = Toolset::built_in(&["edit".to_owned()]);
    let mut play = stage.open().await;
    let file = play.workspace().join("a.txt");
    play.prompt("Change @a.txt").await.unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "beta\n");
    play.end().await;
}

#[tokio::test]
async fn messages_to_a_session_at_rest_expand_and_a_fork_gives_the_words_back() {
    let play = stage(1).file("a.txt", "alpha\n").open().await;
    play.session.follow_up("Look at @a.txt").await.unwrap();
    play.session.at_rest().await;
    let forkable = play.session.tree().forkable();
    assert_eq!(forkable[0].text, "Look at @a.txt");
    let told = play.end().await;
    assert_eq!(
        said(&told),
        [["Look at @a.txt", "<file path=\"a.txt\">\nalpha\n</file>"]]
    );
}

/// The engine's own notes are never looked into.
#[tokio::test]
async fn notes_are_not_expanded() {
    let question = text("Shall I?");
    let answer = expecting(text("done"), json!({"contains": ["Nobody is here"]}));
    let mut stage = Stage::new(json!([question, answer]));
    stage.resources = resources();
    let mut play = stage.open().await;
    play.session.send_message("/greet @a.txt").unwrap();
    play.prompt("go").await.unwrap();
    let told = play.end().await;
    assert_eq!(said(&told)[1], ["/greet @a.txt"]);
    assert_eq!(warnings(&told), [""; 0]);
}

/// A hook may move text from elsewhere out of its place.
#[tokio::test]
async fn what_a_hook_makes_of_data_is_not_expanded() {
    let mut stage = stage(3).file("a.txt", "alpha\n");
    stage.resources = resources();
    let heard = Heard::default();
    let mut hook = Probe::new("shorten", &heard).only(HookPoint::Input);
    hook.input = Box::new(|input: &Input| match input.text.strip_prefix("<d>") {
        Some(inner) => InputVerdict::Transform(inner.to_owned()),
        None => InputVerdict::Continue,
    });
    let mut play = stage.hook(hook).open().await;
    let begin = 0..10;
    let data = || Expand::Except(vec![begin.clone()]);
    for (text, expand) in [
        ("<d>@a.txt @a.txt", data()),
        ("@a.txt <d> @a.txt", data()),
        ("<d>@a.txt", Expand::All),
    ] {
        let options = PromptOptions {
            expand,
            ..PromptOptions::default()
        };
        play.prompt_with(text, options, |_| {}).await.unwrap();
    }
    let told = play.end().await;
    let said = said(&told);
    let counts: Vec<usize> = said.iter().map(Vec::len).collect();
    assert_eq!(
        (counts, said[0][0].as_str()),
        (vec![1, 2, 2], "@a.txt @a.txt")
    );
}
