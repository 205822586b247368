//! `agent sessions export`: the page of a kept session, in a file or on
//! standard output.

use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::cli_scene::{bash, scripted};
use crate::export_page::Page;
use crate::support::cli::{Cli, Output};

/// A finished run of one command.
fn run() -> Output {
    scripted(
        &format!("{}- text: All **done**.\n", bash("echo hello; exit 3")),
        "permissions: {allow: [Bash]}\n",
    )
    .run()
}

fn export(run: &Output, session: &str) -> Cli {
    Cli::at(run.cwd()).args(["sessions", "export", session])
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_run_becomes_a_page() {
    let run = run();
    let done = export(&run, "out/session.jsonl")
        .args(["-o", "page.html"])
        .run();
    assert_eq!(
        (done.stdout.as_str(), done.stderr.as_str()),
        ("page.html\n", "")
    );
    let file = run.cwd().join("page.html");
    assert_eq!(mode(&file), 0o600);
    let page = Page::read(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(page.texts_of(".chip"), ["exit code 3"]);
    assert_eq!(page.texts_of("strong"), ["done"]);
    let printed = export(&run, "out/session.jsonl").args(["-o", "-"]).run();
    assert_eq!((printed.stdout, printed.stderr), (page.html, String::new()));
}

#[test]
fn a_page_is_named_after_its_session() {
    let run = run();
    let id = run.session()[0]["id"].as_str().unwrap().to_owned();
    let name = format!("{id}.html");
    // By its run directory.
    let done = export(&run, "./out").run();
    assert_eq!(done.stdout, format!("{name}\n"));
    assert!(run.cwd().join(name).is_file());
}

#[test]
fn a_session_is_found_by_the_beginning_of_its_id() {
    let run = run();
    let runs = run.cwd().join(".agent/runs/first");
    std::fs::create_dir_all(&runs).unwrap();
    std::fs::copy(
        run.cwd().join("out/session.jsonl"),
        runs.join("session.jsonl"),
    )
    .unwrap();
    let id = run.session()[0]["id"].as_str().unwrap().to_owned();
    let done = export(&run, &id[..20]).args(["-o", "-"]).run();
    assert_eq!(Page::read(&done.stdout).texts_of("dd")[0], id);
    let missing = export(&run, "ffff").expect_code(66).run();
    assert!(
        missing.stderr.contains("no session has the id ffff"),
        "{}",
        missing.stderr
    );
}

#[test]
fn a_strange_id_names_no_file() {
    for id in ["../../evil", "", "a b", ".hidden", "x\u{202e}"] {
        let header = serde_json::json!({"type": "session", "version": 3, "id": id,
            "timestamp": "2026-11-21T20:00:00.000Z", "cwd": "/w"});
        let done = Cli::new()
            .file("in/s.jsonl", format!("{header}\n"))
            .args(["sessions", "export", "in/s.jsonl"])
            .run();
        assert_eq!(done.stdout, "session.html\n", "{id:?}");
        assert!(done.cwd().join("session.html").is_file());
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    for (content, code, said) in [
        (None, 66, "cannot read"),
        (Some("hello\n"), 65, "is no session"),
        (Some("{\"event\":\"run:start\"}\n"), 65, "is no session"),
        (
            Some(
                "{\"type\":\"session\",\"version\":9,\"id\":\"x\",\"timestamp\":\"\",\"cwd\":\"\"}\n",
            ),
            65,
            "version 9",
        ),
    ] {
        let mut cli = Cli::new().args(["sessions", "export", "s.jsonl", "-o", "p.html"]);
        if let Some(content) = content {
            cli = cli.file("s.jsonl", content);
        }
        let done = cli.expect_code(code).run();
        assert!(done.stderr.contains(said), "{content:?}: {}", done.stderr);
        assert!(!done.cwd().join("p.html").exists());
    }
}

#[test]
fn an_older_page_is_replaced_and_keeps_its_mode() {
    let run = run();
    let old = run.cwd().join("old.html");
    std::fs::write(&old, "old").unwrap();
    std::fs::set_permissions(&old, PermissionsExt::from_mode(0o644)).unwrap();
    symlink("old.html", run.cwd().join("link.html")).unwrap();
    export(&run, "out/session.jsonl")
        .args(["-o", "link.html"])
        .run();
    Page::read(&std::fs::read_to_string(&old).unwrap());
    assert_eq!(mode(&old), 0o644);
    assert!(run.cwd().join("link.html").is_symlink());
    let left: Vec<PathBuf> = std::fs::read_dir(run.cwd())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with(".tmp")
        })
        .collect();
    assert_eq!(left, [] as [PathBuf; 0]);
}

#[test]
fn the_session_itself_is_never_replaced() {
    let run = run();
    let before = run.artifact("session.jsonl");
    for output in ["out/session.jsonl", "./out/../out/session.jsonl"] {
        let refused = export(&run, "out/session.jsonl")
            .args(["-o", output])
            .expect_code(2)
            .run();
        assert!(
            refused.stderr.contains("would replace the session"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(run.artifact("session.jsonl"), before);
}

#[test]
fn what_cannot_be_written_is_an_io_failure() {
    let run = run();
    for output in ["missing/page.html", ".", "/dev/full"] {
        let failed = export(&run, "out/session.jsonl")
            .args(["-o", output])
            .expect_code(74)
            .run();
        assert!(
            failed.stderr.contains("cannot write"),
            "{output}: {}",
            failed.stderr
        );
    }
    export(&run, "out/session.jsonl")
        .args(["-o", "/dev/null"])
        .run();
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let run = run();
    let mut child = export(&run, "out/session.jsonl")
        .args(["-o", "-"])
        .command()
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut said = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}
