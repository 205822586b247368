//! Finding sessions: listings, prefixes of ids, the newest of a place.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use agent::store::{self, FindError, SessionSummary};
use serde_json::json;
use tempfile::TempDir;

/// Writes a session of the hour `hour` that says `texts`.
fn write(path: &Path, id: &str, cwd: &str, hour: u32, texts: &[&str]) {
    let stamp = |minute: usize| format!("2026-01-01T{hour:02}:{minute:02}:00.000Z");
    let header =
        json!({"type": "session", "version": 3, "id": id, "timestamp": stamp(0), "cwd": cwd});
    let mut text = format!("{header}\n");
    for (at, said) in texts.iter().enumerate() {
        let parent = at.checked_sub(1).map(|before| format!("{before:08x}"));
        let line = json!({"type": "message", "id": format!("{at:08x}"), "parentId": parent,
            "timestamp": stamp(at + 1), "message": {"role": "user", "content": said, "timestamp": 1}});
        text.push_str(&format!("{line}\n"));
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn roots(dir: &TempDir) -> [PathBuf; 1] {
    [dir.path().to_owned()]
}

fn append(path: &Path, line: &str) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, format!("{text}{line}")).unwrap();
}

#[test]
fn a_listing_has_what_one_wants_to_know() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (
        dir.path().join("a.jsonl"),
        dir.path().join("run/jobs/x/s.jsonl"),
    );
    write(&new, "0190-b", "/new", 9, &["  first\nwords ", "second"]);
    append(
        &new,
        "{\"type\":\"session_info\",\"id\":\"z\",\"parentId\":null,\"timestamp\":\"t\",\"name\":\" Bread \"}\n{\"type\":\"torn",
    );
    write(&old, "0190-a", "/old", 8, &[&"long ".repeat(100)]);
    fs::write(dir.path().join("events.jsonl"), "{\"seq\":1}\n").unwrap();
    fs::write(dir.path().join("notes.txt"), "hello").unwrap();
    std::os::unix::fs::symlink(&old, dir.path().join("link.jsonl")).unwrap();
    std::os::unix::fs::symlink(dir.path(), dir.path().join("loop")).unwrap();
    crate::workspace_fixture::run("mkfifo", &["pipe.jsonl"], dir.path());
    let bad = dir.path().join("bad.jsonl");
    write(&bad, "0190-c", "/bad", 7, &["one"]);
    append(&bad, "nonsense\n{}\n");

    let missing = dir.path().join("missing");
    let listing = store::list(&[dir.path().to_owned(), missing]);
    let summary = |path: &Path, id: &str, cwd: &str, hour: u32, messages: usize| SessionSummary {
        path: path.to_owned(),
        id: id.into(),
        cwd: cwd.into(),
        created: format!("2026-01-01T{hour:02}:00:00.000Z"),
        modified: format!("2026-01-01T{hour:02}:{messages:02}:00.000Z"),
        name: None,
        first_message: None,
        messages,
        parent_session: None,
    };
    let mut first = summary(&new, "0190-b", "/new", 9, 2);
    first.name = Some("Bread".into());
    first.first_message = Some("first words".into());
    let mut second = summary(&old, "0190-a", "/old", 8, 1);
    second.first_message = Some("long ".repeat(40).trim().to_owned());
    assert_eq!(listing.sessions, [first, second]);
    let skipped: Vec<_> = listing
        .skipped
        .iter()
        .map(|skipped| (skipped.path.as_path(), skipped.reason.contains("line 3")))
        .collect();
    assert_eq!(skipped, [(bad.as_path(), true)]);
}

#[test]
fn an_id_may_be_cut_as_long_as_it_is_clear() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    write(&at("1.jsonl"), "0190-aa", "/w", 1, &[]);
    write(&at("2.jsonl"), "0190-ab", "/w", 2, &[]);
    write(&at("3.jsonl"), "0190-ab-more", "/w", 3, &[]);
    write(&at("4/4.jsonl"), "0191", "/w", 4, &[]);
    let find = |text: &str| store::find(&roots(&dir), text).map(|found| found.path);
    assert_eq!(find("0190-aa").unwrap(), at("1.jsonl"));
    assert_eq!(find("0191").unwrap(), at("4/4.jsonl"));
    assert_eq!(find("0190-ab").unwrap(), at("2.jsonl"), "the whole id wins");
    assert_eq!(find("0190-ab-").unwrap(), at("3.jsonl"));
    let path = at("1.jsonl").display().to_string();
    assert_eq!(find(&path).unwrap(), at("1.jsonl"));
    let folder = at("4").display().to_string();
    assert_eq!(find(&folder).unwrap(), at("4/4.jsonl"));

    let ambiguous = find("0190").unwrap_err().to_string();
    let lines: Vec<&str> = ambiguous.lines().collect();
    assert_eq!(lines[0], "several sessions match 0190:");
    assert_eq!(lines[1], format!("  0190-aa {}", at("1.jsonl").display()));
    assert_eq!(lines.len(), 4);
    let missing = find("0192").unwrap_err().to_string();
    let root = dir.path().display();
    assert_eq!(missing, format!("no session has the id 0192 in {root}"));
    assert!(matches!(find(""), Err(FindError::Ambiguous { .. })));
    let no_file = find("nowhere/s.jsonl").unwrap_err();
    assert!(matches!(no_file, FindError::Unreadable(_)), "{no_file}");
}

#[test]
fn the_newest_is_that_of_the_working_directory() {
    let dir = tempfile::tempdir().unwrap();
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path().display().to_string();
    let at = |name: &str| dir.path().join(name);
    write(&at("1.jsonl"), "a", &cwd, 5, &["x", "y"]);
    write(&at("2.jsonl"), "b", &cwd, 4, &["x"]);
    write(&at("3.jsonl"), "c", "/elsewhere", 6, &["x"]);
    let newest = |cwd: &Path| store::newest(&roots(&dir), cwd, |_| Ok(())).map(|found| found.path);
    assert_eq!(newest(place.path()).unwrap(), at("1.jsonl"));
    let link = dir.path().join("same");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    assert_eq!(newest(&link).unwrap(), at("1.jsonl"));
    // One that is not believed is passed over.
    let doubted = |path: &Path| match path.ends_with("1.jsonl") {
        true => Err("why".to_owned()),
        false => Ok(()),
    };
    let other = store::newest(&roots(&dir), place.path(), doubted).unwrap();
    assert_eq!(other.path, at("2.jsonl"));
    assert_eq!(other.passed_over[0].path, at("1.jsonl"));
    let none = newest(dir.path()).unwrap_err();
    assert!(matches!(none, FindError::NoneYet { .. }), "{none}");
}
