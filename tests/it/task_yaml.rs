//! Task files that are strange or hostile as YAML or as files.

#![allow(clippy::unwrap_used, clippy::panic, reason = "these are tests")]

use std::path::Path;
use std::time::Duration;

use agent::clock;
use agent::task::{Kind, Overrides, load};

use crate::task_case::{Case, lines};

/// Runs `work` and checks that it ended at once: what grows with a power of its
/// input would take minutes, a busy machine a second or two.
fn soon<T>(work: impl FnOnce() -> T) -> T {
    let start = clock::monotonic();
    let result = work();
    let took = start.elapsed();
    assert!(took < Duration::from_secs(10), "took {took:?}");
    result
}

fn only_line(yaml: impl AsRef<[u8]>) -> String {
    let case = Case::new(yaml);
    let lines = soon(|| case.lines());
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines.into_iter().next().unwrap()
}

#[test]
fn plain_words_are_texts() {
    let words = [
        "no",
        "on",
        "off",
        "yes",
        "y",
        "0755",
        "1_000",
        "2001-01-01",
        "12:30",
        "0o",
    ];
    for word in words {
        let job = Case::with(&format!("description: {word}")).job();
        assert_eq!(job.description, word);
    }
}

#[test]
fn what_yaml_1_2_takes_for_something_else_is_no_text() {
    for word in ["true", "1", "0x10", "1.5", "~", "null", ""] {
        let lines = Case::with(&format!("description: {word}")).lines();
        assert!(
            lines[0].contains("`description` must be a text"),
            "{word}: {lines:?}"
        );
    }
}

#[test]
fn a_byte_order_mark_and_windows_line_ends_are_fine() {
    let job = Case::new("\u{feff}version: 1\r\nprompt: Do it.\r\n").job();
    assert_eq!(job.prompt, "Do it.");
}

#[test]
fn an_alias_stands_for_its_anchor_and_is_where_it_is_used() {
    let job = Case::with("labels: {a: &x word, b: *x}").job();
    assert_eq!(job.labels["b"], "word");
    let lines = Case::with("labels: {a: &x word}\nlimits: {max_turns: *x}").lines();
    assert!(
        lines[0].starts_with("task.yaml:4:21: wrong_type"),
        "{lines:?}"
    );
}

#[test]
fn places_count_characters_not_bytes() {
    let line = only_line("version: 1\nprompt: x\nlabels: {ключ: 1}\n");
    assert!(line.starts_with("task.yaml:3:16: wrong_type"), "{line}");
}

#[test]
fn hostile_documents_end_at_once() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let above = format!("*a{}", level - 1);
        let items = vec![above; 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let flow_deep = format!("prompt: {}", "[".repeat(100_000));
    let map_deep = format!("prompt: {}", "{a: ".repeat(100_000));
    let block_deep = format!("prompt:\n  {}x", "- ".repeat(100_000));
    let tag_deep = format!("x: !t {}", "[".repeat(100_000));
    let keys: String = (0..60_000).map(|n| format!("k{n}: 1\n")).collect();
    let million: String = (0..1_000_000).map(|n| format!("k{n}: 1\n")).collect();
    let aliases = format!("a: &a x\nb: [{}]", "*a, ".repeat(100_000));
    let cases = [
        ("alias bomb", bomb),
        ("flow list", flow_deep),
        ("flow map", map_deep),
        ("block list", block_deep),
        ("tagged", tag_deep),
        ("keys", keys),
        ("a million keys", million),
        ("aliases", aliases),
        ("a long line", "x".repeat(900_000)),
        ("colons", ": ".repeat(400_000)),
        ("question marks", "? ".repeat(400_000)),
        ("anchors", "&a ".repeat(300_000)),
        ("bang", "!".repeat(900_000)),
        ("quotes", "'".repeat(900_001)),
    ];
    for (name, yaml) in cases {
        let case = Case::new(yaml);
        let problems = soon(|| case.problems());
        assert_eq!(problems.kind, Kind::BadTask, "{name}");
        let first = &problems.list[0];
        assert!(first.line >= 1 && first.column >= 1, "{name}: {first:?}");
        let report = soon(|| problems.render(false));
        assert!(report.len() < 100_000, "{name}: {}", report.len());
    }
}

#[test]
fn many_problems_make_a_bounded_report() {
    let keys: String = (0..5_000).map(|n| format!("k{n}: 1\n")).collect();
    let problems = Case::new(keys).problems();
    assert_eq!(problems.list.len(), 100);
    assert!(
        problems
            .render(false)
            .ends_with("100 problems found; the rest is not shown\n")
    );
}

#[test]
fn numbers_must_be_finite() {
    for number in [".inf", "-.inf", ".nan", "1e999"] {
        let lines = Case::with(&format!("limits: {{max_cost_usd: {number}}}")).lines();
        assert!(lines[0].contains("numbers must be finite"), "{lines:?}");
    }
}

#[test]
fn other_encodings_are_refused_with_advice() {
    let utf16: Vec<u8> = std::iter::once(0xFEFF)
        .chain("version: 1".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let line = only_line(utf16);
    assert!(line.contains("is UTF-16; save it as UTF-8"), "{line}");
    let line = only_line(b"version: 1\nprompt: \xff\n");
    assert!(
        line.contains("is not UTF-8: the byte at offset 19"),
        "{line}"
    );
}

#[test]
fn what_is_no_ordinary_file_is_refused_without_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let overrides = Overrides {
        cwd: dir.path().to_owned(),
        ..Overrides::default()
    };
    let fifo = dir.path().join("fifo");
    let made = std::fs::create_dir(dir.path().join("folder"));
    assert!(made.is_ok());
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let cases = [
        ("fifo", "it is not an ordinary file"),
        ("folder", "it is a directory"),
        ("missing", "no such file"),
        ("/dev/null", "it is not an ordinary file"),
    ];
    for (name, why) in cases {
        let problems = soon(|| load(Path::new(name), &overrides)).err().unwrap();
        assert_eq!(problems.kind, Kind::NoInput, "{name}");
        let lines = lines(&problems);
        assert!(lines[0].ends_with(why), "{lines:?}");
        assert!(
            problems.render(false).contains(&format!("--> {name}")),
            "{name}"
        );
    }
}

#[test]
fn a_file_of_more_than_a_mebibyte_is_refused() {
    let line = only_line(format!("version: 1\nprompt: x\n#{}", "x".repeat(1 << 20)));
    assert!(line.contains("is larger than 1048576 bytes"), "{line}");
}
