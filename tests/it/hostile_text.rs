//! Text of strangers in every field of every event, and in every command's
//! complaint: nothing of it reaches a person's terminal or a CI log as itself.

use agent::context::data_block;
use agent::event::{Emission, EventKind, JobResult, Reason, ToolErrorStatus};
use agent::export::markdown;
use agent::message::is_unseen;
use agent::report::{HumanOptions, PlainSink, Recorder, Sink, Style, neutral_json, neutral_text};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::report_events::*;
use crate::support::cli::Cli;

/// What makes trouble, alone and joined.
const PARTS: &[&str] = &[
    "\r",
    "\n",
    "\r\n",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{2028}",
    "\u{2029}",
    "\0",
    "\u{7}",
    "\u{8}",
    "\u{1b}",
    "\u{1b}[31m",
    "\u{1b}[2J",
    "\u{1b}]0;title\u{7}",
    "\u{1b}]8;;http://x\u{1b}\\",
    "\u{1b}P1$r\u{1b}\\",
    "\u{9b}2J",
    "\u{9d}0;x\u{9c}",
    "\u{90}x",
    "::set-env name=A::b",
    "::add-mask::x",
    "::error::",
    ":",
    "::",
    "##vso[task.setvariable variable=a]b",
    "##[error]",
    "##VSO[x]",
    "##teamcity[message]",
    "#",
    "##",
    "[",
    "vso[",
    "section_start:1:x\r\u{1b}[0K",
    " ",
    "\t",
    "\u{a0}",
    "\u{3000}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{feff}",
    "\u{ad}",
    "\u{e0041}",
    "\u{e0100}",
    "word",
    "größe",
    "`",
    "|",
    "<img src=x>",
    "![x](http://y)",
    "@user",
];

fn hostile() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PARTS), 1..7)
        .prop_map(|parts| parts.concat())
}

/// What a person's terminal or a CI system would act on.
fn troubles(shown: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in shown.split('\n') {
        let acts = |c: char| {
            is_unseen(c)
                || matches!(
                    c,
                    '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
                )
        };
        let lower = line.to_lowercase();
        let commands = ["##[", "##vso[", "##teamcity["];
        if line.contains(acts)
            || line.trim_start().starts_with("::")
            || commands.iter().any(|command| lower.contains(command))
        {
            found.push(format!("{line:?}"));
        }
    }
    found
}

/// One event of every kind that people are shown.
fn events() -> Vec<Emission> {
    let end = JobResult {
        error: Some(error("it broke")),
        ..JobResult::default()
    };
    let kinds = vec![
        job_start(),
        turn_start(),
        step_start(),
        retry_start(2),
        text_chunk("text"),
        reply(
            "Let me look.",
            &[("a", "read", json!({"path": "x"}))],
            Some(0.1),
        ),
        request("a", "read", Some("Read(x)")),
        response("a", "read", "refuse", Some("permissions.deny[0] Read(x)")),
        tool_start("a", "read", json!({"path": "x"})),
        tool_update("a", "delta"),
        tool_complete("a", "read", "content"),
        tool_error("a", "read", ToolErrorStatus::Denied),
        warning("a warning"),
        diff(&["a/b"]),
        step_end(),
        turn_end("Done."),
        job_end(Reason::Io, end),
    ];
    let first = run_start(&["fix"]);
    std::iter::once(first)
        .chain(kinds.into_iter().map(in_job))
        .collect()
}

/// The event with `text` in the place of each string that may be any.
fn attacked(kind: &EventKind, text: &str) -> Vec<EventKind> {
    let value = serde_json::to_value(kind).unwrap();
    let mut places = Vec::new();
    strings(&value["data"], "/data", &mut places);
    let attacked = places.iter().filter_map(|place| {
        let mut value = value.clone();
        *value.pointer_mut(place)? = Value::from(text);
        // A word of a closed list cannot be anything else.
        serde_json::from_value(value).ok()
    });
    attacked.collect()
}

fn strings(value: &Value, place: &str, places: &mut Vec<String>) {
    match value {
        Value::String(_) => places.push(place.to_owned()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                strings(item, &format!("{place}/{at}"), places);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                strings(
                    field,
                    &format!("{place}/{}", name.replace('/', "~1")),
                    places,
                );
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// What people see of these events, and the summary that is left.
fn seen(emissions: Vec<Emission>) -> (String, String) {
    let shared = Shared::default();
    let options_ = HumanOptions {
        style: Style {
            color: false,
            unicode: true,
        },
        ..HumanOptions::default()
    };
    let sink: Box<dyn Sink> = Box::new(PlainSink::new(Box::new(shared.clone()), options_));
    let mut recorder = Recorder::new(options(vec![sink]));
    emissions
        .into_iter()
        .for_each(|emission| recorder.write(emission));
    let report = close(recorder, Reason::Io);
    (shared.text(), markdown(&report.result))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_field_of_an_event_acts_on_a_log(text in hostile()) {
        let mut tried = 0;
        for at in 0..events().len() {
            let plain = events();
            for kind in attacked(&plain[at].kind, &text) {
                let mut emissions = events();
                emissions[at].kind = kind;
                let (log, summary) = seen(emissions);
                prop_assert_eq!(troubles(&log), Vec::<String>::new());
                // The joints that break links are our own.
                let summary = summary.replace('\u{2060}', "");
                prop_assert_eq!(troubles(&summary), Vec::<String>::new());
                tried += 1;
            }
        }
        prop_assert!(tried > 40, "{}", tried);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_neutral_wherever_they_were_split(
        parts in proptest::collection::vec(hostile(), 1..5),
        bytes in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let mut all = parts.concat().into_bytes();
        all.extend(bytes);
        let text = String::from_utf8_lossy(&all).into_owned();
        prop_assert_eq!(troubles(&neutral_text(&text)), Vec::<String>::new());
        // Each line by itself, as they come when a stream is cut into lines.
        for line in text.split_inclusive('\n') {
            prop_assert_eq!(troubles(&neutral_text(line)), Vec::<String>::new());
        }
        let document = Value::from(text.clone()).to_string();
        let safe = neutral_json(&document);
        prop_assert_eq!(troubles(&safe), Vec::<String>::new());
        prop_assert_eq!(serde_json::from_str::<Value>(&safe).unwrap(), Value::from(text));
    }
}

proptest! {
    #[test]
    fn no_content_ends_its_own_block(
        parts in proptest::collection::vec(
            proptest::sample::select(&["</", "<", "/", "FILE", "file", "file-2", "file-3", ">", " ", "\u{200b}", "\n", "x"][..]),
            0..30,
        ),
    ) {
        let content = parts.concat();
        let block = data_block("file", &[("path", &content)], &content);
        let tag = block[1..].split([' ', '>']).next().unwrap().to_owned();
        let bare: String = block.chars().filter(|c| !c.is_whitespace() && !is_unseen(*c)).collect();
        let end = format!("</{tag}>");
        prop_assert_eq!(bare.to_lowercase().matches(&end).count(), 1);
        prop_assert!(bare.ends_with(&end));
        prop_assert_eq!(block.lines().next().unwrap().matches('>').count(), 1);
    }
}

#[test]
fn complaints_and_explanations_are_neutral() {
    let hostile = "x\u{1b}[2J\n::set-env name=A::b\r##vso[task.x]";
    let check = |cli: Cli, code: i32| {
        let done = cli.env("TF_BUILD", "True").expect_code(code).run();
        assert_eq!(troubles(&done.stdout), Vec::<String>::new());
        assert_eq!(troubles(&done.stderr), Vec::<String>::new());
        assert!(!done.stdout.is_empty() || !done.stderr.is_empty());
    };
    let input = json!({"command": hostile}).to_string();
    for format in ["text", "json"] {
        check(
            Cli::new()
                .args(["permissions", "check", "--tool", "bash", "--input", &input])
                .args(["--output-format", format]),
            3,
        );
        let named = Cli::new().args(["check", hostile, "--output-format", format]);
        check(named, 66);
    }
    check(Cli::new().args(["run", hostile]), 66);
    check(Cli::new().args(["replay", hostile]), 66);
    check(Cli::new().args(["sessions", "show", hostile]), 66);
    check(Cli::new().args(["-p", "x", "--deny", hostile]), 2);
    check(Cli::new().args([hostile]), 2);
    check(Cli::new().args(["run", "--nope", hostile]), 2);
    check(Cli::new().args(["-p", "x", "-C", hostile]), 66);
}
