//! No sink of a run shows a secret with a separator in it, each separator
//! everywhere a model or a tool can put it.

#![allow(clippy::unwrap_used, reason = "what a test relies on may panic")]

use std::path::Path;

use crate::cassette_scene::{SPEAKERS, Shelf, TASK, call, scene, text};
use crate::cli_scene::scripted;
use crate::support::cli::{Cli, Output};
use crate::support::separators::{SECRET, SEPARATORS, shows};
use crate::support::server::ModelServer;

/// A line for each separator, with its name.
fn lines() -> Vec<String> {
    let line = |(name, separator): &(&str, &str)| {
        let (head, tail) = SECRET.split_at(9);
        format!("{name}: {head}{separator}{tail} over\n")
    };
    SEPARATORS.iter().map(line).collect()
}

/// A text in the double quotes of YAML.
fn yaml(text: &str) -> String {
    let letter = |symbol: char| match symbol {
        ' '..='~' if !"\"\\".contains(symbol) => symbol.to_string(),
        other => format!("\\U{:08X}", u32::from(other)),
    };
    format!("\"{}\"", text.chars().map(letter).collect::<String>())
}

fn clean(name: &str, shown: &str) {
    let line = shown.lines().position(shows);
    let line = line.map(|at| shown.lines().nth(at).unwrap());
    assert!(
        !shows(shown),
        "{name} shows the secret: {line:?} in\n{shown}"
    );
}

fn clean_files(dir: &Path) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            clean_files(&entry.path());
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        clean(
            &entry.path().display().to_string(),
            &String::from_utf8_lossy(&bytes),
        );
    }
}

fn clean_output(name: &str, done: &Output) {
    clean(&format!("standard output of {name}"), &done.stdout);
    clean(&format!("standard error of {name}"), &done.stderr);
}

const MORE: &str = "permissions: {mode: bypass}\nworkspace: {isolation: copy}\n";

/// A run that prints, writes, says and asks for every line.
fn run(ci: bool, format: &str) -> Output {
    let all = lines().concat();
    // Commands have no NUL, and files with one no patch.
    let some = lines().into_iter().filter(|line| !line.contains('\0'));
    let some: Vec<String> = some.collect();
    let echo: String = some.iter().map(|line| format!(": {line}")).collect();
    let flood = "for i in $(seq 400); do cat data.txt; done";
    let replies = [
        ("bash", format!("{{command: {}}}", yaml("cat data.txt"))),
        ("bash", format!("{{command: {}}}", yaml(flood))),
        ("bash", format!("{{command: {}}}", yaml(&echo))),
        ("read", format!("{{path: {}}}", yaml(&lines()[0]))),
        ("read", "{path: data.txt}".to_owned()),
        (
            "write",
            format!("{{path: leak.txt, content: {}}}", yaml(&some.concat())),
        ),
    ];
    let call = |(name, arguments): &(&str, String)| {
        format!("- calls: [{{name: {name}, arguments: {arguments}}}]\n")
    };
    let mut replies: String = replies.iter().map(call).collect();
    replies.push_str(&format!("- thinking: {0}\n  text: {0}\n", yaml(&all)));
    let cli = scripted(&replies, MORE).file("data.txt", &all);
    let cli = cli.args([
        "--allow-bypass",
        "--deltas",
        "full",
        "--output-format",
        format,
    ]);
    let cli = cli
        .args(["-o", "out-answer.txt"])
        .env("DEPLOY_TOKEN", SECRET);
    match ci {
        true => cli.env("CI", "true").run(),
        false => cli.run(),
    }
}

#[test]
fn no_sink_of_a_run_shows_a_secret_with_a_separator() {
    for (ci, format) in [
        (true, "text"),
        (false, "text"),
        (true, "json"),
        (false, "jsonl"),
    ] {
        let done = run(ci, format);
        clean_output("the run", &done);
        clean_files(&done.run_dir());
        let answer = std::fs::read_to_string(done.cwd().join("out-answer.txt")).unwrap();
        clean("the answer", &answer);
        // All of it got there.
        assert_eq!(answer.matches("***").count(), SEPARATORS.len(), "{answer}");
        let summary = done.artifact("summary.md");
        assert!(
            summary.matches("***").count() >= SEPARATORS.len(),
            "{summary}"
        );
        let patch = done.artifact("change.patch");
        assert_eq!(
            patch.matches("***").count(),
            SEPARATORS.len() - 1,
            "{patch}"
        );
        assert!(done.run_dir().join("tool-output").exists());
        for (name, _) in SEPARATORS {
            assert!(
                answer.contains(&format!("{name}: *** over")),
                "{name}: {answer}"
            );
        }
    }
}

#[test]
fn what_shows_a_run_later_shows_none_either() {
    let done = run(true, "text");
    let again = || {
        Cli::at(done.cwd())
            .env("DEPLOY_TOKEN", SECRET)
            .env("CI", "1")
    };
    for args in [
        &["replay", "out"][..],
        &["sessions", "show", "out/session.jsonl"],
        &["sessions", "tree", "out/session.jsonl"],
        &["sessions", "export", "out/session.jsonl", "-o", "-"],
    ] {
        clean_output(args[0], &again().args(args).run());
    }
}

#[test]
fn a_patch_shows_no_secret_with_a_byte_that_is_no_text() {
    let command =
        r"printf 'is KQ7ZW9LM4\377XC2VD8PJ5\n' > leak.txt; printf 'caf\351\n' > other.txt";
    let replies = format!(
        "- calls: [{{name: bash, arguments: {{command: {}}}}}]\n",
        yaml(command)
    );
    let cli = scripted(&format!("{replies}- text: done\n"), MORE).arg("--allow-bypass");
    let done = cli.env("DEPLOY_TOKEN", SECRET).run();
    let patch = std::fs::read(done.run_dir().join("change.patch")).unwrap();
    let patch = String::from_utf8_lossy(&patch);
    assert!(patch.contains("+is ***\n"), "{patch}");
    clean("the patch", &patch);
}

/// A session of a run that did not know the secret.
#[test]
fn sessions_of_others_are_shown_without_it() {
    let replies = format!("- text: {}\n", yaml(&lines().concat()));
    let done = scripted(&replies, "").run();
    assert!(shows(&done.artifact("session.jsonl")));
    let again = || {
        Cli::at(done.cwd())
            .env("DEPLOY_TOKEN", SECRET)
            .env("CI", "1")
    };
    for args in [
        &["replay", "out"][..],
        &["sessions", "show", "out/session.jsonl"],
        &["sessions", "tree", "out/session.jsonl"],
        &["sessions", "export", "out/session.jsonl", "-o", "-"],
    ] {
        clean_output(args[0], &again().args(args).run());
    }
}

/// Marks and entities of Markdown are gone on a page.
#[test]
fn a_page_shows_no_secret_that_markdown_interrupts() {
    for text in ["is KQ7Z**W9LM4**XC2VD8PJ5", "is KQ7&#90;W9LM4XC2VD8PJ5"] {
        let done = scripted(&format!("- text: {}\n", yaml(text)), "").run();
        let page = Cli::at(done.cwd()).env("DEPLOY_TOKEN", SECRET);
        let page = page
            .args(["sessions", "export", "out/session.jsonl", "-o", "-"])
            .run();
        let mut tag = false;
        let visible = page.stdout.replace("&#90;", "Z");
        let visible = visible.chars().filter(|symbol| {
            let shown = !tag && *symbol != '<';
            tag = *symbol == '<' || tag && *symbol != '>';
            shown
        });
        let visible: String = visible.collect();
        assert!(visible.contains("KQ7"), "{visible}");
        assert!(!visible.contains(SECRET), "{visible}");
    }
}

#[test]
fn errors_show_none() {
    for line in lines().iter().filter(|line| !line.contains('\0')) {
        let cli = scripted("- text: x\n", "").env("DEPLOY_TOKEN", SECRET);
        let parameter = format!("x={line}");
        let done = cli.args(["--param", &parameter]).expect_code(65).run();
        clean_output("a refused parameter", &done);
        let missing = Cli::new().env("DEPLOY_TOKEN", SECRET).args(["run", line]);
        clean_output("a missing file", &missing.expect_code(66).run());
    }
}

#[test]
fn no_cassette_keeps_one() {
    for speaker in &SPEAKERS {
        let shelf = Shelf::new();
        let all = lines().concat();
        let arguments = serde_json::json!({"command": format!("echo {all}")});
        let server = ModelServer::start(vec![
            speaker.answer(&[text(&all), call("c1", "shell", arguments)]),
            speaker.answer(&[text(&all)]),
        ]);
        let cli = scene(TASK).args(["--model", speaker.model, "--base-url", &server.url()]);
        let cli = cli
            .env("OPENAI_API_KEY", "sk-provider-0123456789")
            .env("ANTHROPIC_API_KEY", "sk-provider-0123456789")
            .env("DEPLOY_TOKEN", SECRET);
        let done = cli.arg("--record").arg(shelf.cassette()).run();
        server.finish();
        clean_output(speaker.model, &done);
        for line in shelf.text().lines() {
            clean(speaker.model, line);
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let mut texts = String::new();
            leaves(&line, &mut texts);
            clean(speaker.model, &texts);
        }
    }
}

/// Every text of a document, one behind the other.
fn leaves(value: &serde_json::Value, texts: &mut String) {
    match value {
        serde_json::Value::String(text) => {
            texts.push_str(text);
            texts.push_str(" | ");
        }
        serde_json::Value::Array(items) => items.iter().for_each(|item| leaves(item, texts)),
        serde_json::Value::Object(fields) => {
            fields.values().for_each(|field| leaves(field, texts));
        }
        _ => {}
    }
}
