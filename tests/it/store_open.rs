//! Opening session files: what is repaired, what is refused, who may write.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use agent::message::{Content, Message, UserMessage};
use agent::secret::Redactor;
use agent::store::{Durability, Entry, EntryKind, Header, Opened, Store, StoreError};
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

fn user(text: &str) -> EntryKind {
    EntryKind::message(Message::User(UserMessage::text(text, 1)))
}

fn open(path: &Path) -> Result<Opened, StoreError> {
    Store::open(path, Durability::None, Redactor::default())
}

/// A session of these texts; its file is closed.
fn session(texts: &[&str]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("session.jsonl");
    let header = Header::new("/some/place");
    let mut store = Store::create(&path, header, Durability::None, Redactor::default()).unwrap();
    for text in texts {
        store.append(user(text)).unwrap();
    }
    store.close().unwrap();
    (dir, path)
}

fn texts(store: &Store) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(user) => match user.content.as_slice() {
            [Content::Text(text)] => text.text.clone(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    };
    let messages = store.tree().messages().iter();
    messages.map(|message| text(message)).collect()
}

fn entry(id: &str, parent: Option<&str>, fields: Value) -> String {
    let mut line = json!({"type": "custom", "id": id, "parentId": parent, "timestamp": "2025-01-01T00:00:00.000Z",
        "customType": "x"});
    for (name, value) in fields.as_object().unwrap() {
        line[name] = value.clone();
    }
    line.to_string()
}

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"i","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w"}"#;

#[test]
fn a_session_goes_on_where_it_ended() {
    let (_dir, path) = session(&["one", "two"]);
    let before = Store::read(&path).unwrap();
    let mut opened = open(&path).unwrap();
    assert_eq!((opened.repaired_bytes, opened.version), (0, 3));
    assert_eq!(opened.store.tree().entries(), before.entries());
    assert_eq!(opened.store.tree().header(), before.header());
    opened.store.append(user("three")).unwrap();
    opened.store.close().unwrap();
    let after = open(&path).unwrap().store;
    assert_eq!(texts(&after), ["one", "two", "three"]);
    let last = after.tree().leaf().unwrap();
    assert_eq!(last.parent_id.as_ref(), before.leaf().map(|leaf| &leaf.id));
}

#[test]
fn one_writes_and_all_may_read() {
    let (_dir, path) = session(&["one"]);
    let mut first = open(&path).unwrap().store;
    let second = open(&path).unwrap_err();
    assert!(matches!(second, StoreError::Locked { .. }), "{second}");
    first.append(user("two")).unwrap();
    assert_eq!(
        Store::read(&path).unwrap().entries(),
        first.tree().entries()
    );
    first.close().unwrap();
    assert_eq!(texts(&open(&path).unwrap().store), ["one", "two"]);
}

#[test]
fn a_moved_leaf_is_there_again() {
    let (_dir, path) = session(&["one", "two", "three"]);
    let mut store = open(&path).unwrap().store;
    let second = store.tree().entries()[1].id.clone();
    store.move_leaf(Some(&second)).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    assert_eq!(texts(&store), ["one", "two"]);
    store.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() > size);

    let mut again = open(&path).unwrap().store;
    assert_eq!(texts(&again), ["one", "two"]);
    again.append(user("other")).unwrap();
    again.move_leaf(None).unwrap();
    again.keep_leaf().unwrap();
    let size = fs::metadata(&path).unwrap().len();
    again.keep_leaf().unwrap();
    again.close().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), size);
    assert_eq!(texts(&open(&path).unwrap().store), [""; 0]);

    let nowhere = open(&path).unwrap().store.move_leaf(Some(&"q".into()));
    assert_eq!(
        nowhere.unwrap_err().to_string(),
        "there is no entry q in the session"
    );
}

#[test]
fn a_torn_end_is_cut_off_and_told() {
    let (_dir, path) = session(&["one", "two"]);
    let whole = fs::read(&path).unwrap();
    for torn in ["{\"type\":\"mess", "{", "\0\0\0\0", "{\"a\":\"\u{e9}"] {
        let mut bytes = whole.clone();
        // The last character may be cut as well.
        let torn = &torn.as_bytes()[..torn.len() - usize::from(!torn.is_ascii())];
        bytes.extend(torn);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(Store::read(&path).unwrap().entries().len(), 2);
        assert_eq!(fs::read(&path).unwrap(), bytes, "reading changes nothing");
        let opened = open(&path).unwrap();
        assert_eq!(opened.repaired_bytes, torn.len() as u64);
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert_eq!(texts(&opened.store), ["one", "two"]);
    }
    let mut unended = whole.clone();
    unended.pop();
    fs::write(&path, &unended).unwrap();
    let opened = open(&path).unwrap();
    assert_eq!((opened.repaired_bytes, texts(&opened.store).len()), (0, 2));
    assert_eq!(fs::read(&path).unwrap(), whole);
}

#[test]
fn a_damaged_line_is_named_and_the_file_left_alone() {
    let label = entry("b", Some("a"), json!({"type": "label"}));
    for (lines, number, reason) in [
        (vec!["{\"type\":", "{}"], 2, "EOF while parsing a value"),
        (vec!["", "  ", "nonsense", "{}"], 4, "expected ident"),
        (vec!["{}"], 2, "missing field `type`"),
        (vec!["[]"], 2, "invalid type: sequence, expected a map"),
        (
            vec![&entry("a", Some("z"), json!({}))],
            2,
            "entry a follows z, which is not before it in the session",
        ),
        (
            vec![&entry("a", Some("a"), json!({}))],
            2,
            "entry a follows a, which is not before it in the session",
        ),
        (
            vec![
                &entry("a", Some("b"), json!({})),
                &entry("b", Some("a"), json!({})),
            ],
            2,
            "entry a follows b, which is not before it in the session",
        ),
        (
            vec![&entry("a", None, json!({})), &entry("a", None, json!({}))],
            3,
            "entry a is already in the session",
        ),
        (
            vec![&entry("a", None, json!({})), &label],
            3,
            "missing field `targetId`",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let text = format!("{HEADER}\n{}\n", lines.join("\n"));
        fs::write(&path, &text).unwrap();
        let expected = format!(
            "the session file {} is damaged in line {number}: {reason}",
            path.display()
        );
        assert_eq!(open(&path).unwrap_err().to_string(), expected);
        assert_eq!(Store::read(&path).unwrap_err().to_string(), expected);
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, [HEADER.as_bytes(), b"\n\xff\n{}\n"].concat()).unwrap();
    let error = open(&path).unwrap_err().to_string();
    assert!(error.ends_with("in line 2: it is not UTF-8"), "{error}");
}

#[test]
fn what_is_no_session_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    for (text, reason) in [
        ("", "it is empty"),
        ("\n", "it is empty"),
        ("\u{7f}ELF\0\0\n", "its first line is no session header"),
        (
            "{\"type\":\"message\",\"id\":\"1\"}\n",
            "its first line is no session header",
        ),
        (
            "{\"type\":\"session\",\"version\":3}\n",
            "its first line is no session header",
        ),
        (
            "{\"type\":\"session\",\"id\":\"i",
            "its first line is no session header",
        ),
        (
            &"x".repeat(3_000_000),
            "its first line is no session header",
        ),
    ] {
        fs::write(at("s"), text).unwrap();
        let error = open(&at("s")).unwrap_err().to_string();
        assert_eq!(
            error,
            format!("{} is no session: {reason}", at("s").display())
        );
        assert_eq!(fs::read_to_string(at("s")).unwrap(), text);
    }
    fs::create_dir(at("folder")).unwrap();
    crate::workspace_fixture::run("mkfifo", &["pipe"], dir.path());
    let (_other, real) = session(&["one"]);
    std::os::unix::fs::symlink(&real, at("link")).unwrap();
    for (name, reason) in [
        ("folder", "it is no regular file"),
        ("pipe", "it is no regular file"),
        ("link", "it is a symbolic link"),
    ] {
        let expected = format!("{} is no session: {reason}", at(name).display());
        assert_eq!(open(&at(name)).unwrap_err().to_string(), expected);
        assert_eq!(Store::read(&at(name)).unwrap_err().to_string(), expected);
    }
    let missing = open(&at("missing")).unwrap_err();
    assert!(matches!(missing, StoreError::Open { .. }), "{missing}");

    fs::write(at("new"), HEADER.replace(":3,", ":4,")).unwrap();
    let newer = open(&at("new")).unwrap_err();
    assert!(
        matches!(newer, StoreError::Version { version: 4, .. }),
        "{newer}"
    );
}

#[test]
fn halves_of_surrogate_pairs_do_not_make_a_session_unreadable() {
    for (written, read) in [
        (r"cut \ud83d", "cut \u{fffd}"),
        (r"\uDE00 low first", "\u{fffd} low first"),
        (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
        (r"\\ud83d and \\\ud83d", "\\ud83d and \\\u{fffd}"),
        (r"whole \ud83d\ude00 \u00e9 \n", "whole \u{1f600} \u{e9} \n"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let line = entry(
            "a",
            None,
            json!({"type": "message", "message": {"role": "user", "content": "TEXT",
            "timestamp": 1}}),
        );
        fs::write(
            &path,
            format!("{HEADER}\n{}\n", line.replace("TEXT", written)),
        )
        .unwrap();
        assert_eq!(texts(&open(&path).unwrap().store), [read], "{written}");
    }
}

/// Entries of all kinds, those of a later program among them.
fn kinds() -> impl Strategy<Value = EntryKind> {
    let text = || "[a-z\"\\\\\u{0}-\u{1f}é😀\u{2028}]{0,12}";
    prop_oneof![
        text().prop_map(|text| user(&text)),
        (text(), any::<i64>()).prop_map(|(text, number)| EntryKind::Custom {
            custom_type: text,
            data: Some(json!({"n": number, "deep": [[null, 1.5e300]]})),
        }),
        (text(), any::<u64>()).prop_map(|(text, number)| EntryKind::Unknown {
            type_name: "from_the_future".into(),
            fields: [
                ("z".to_owned(), json!({"text": text, "n": number})),
                ("a".to_owned(), json!([true, null])),
            ]
            .into_iter()
            .collect(),
        }),
        text().prop_map(|text| EntryKind::SessionInfo { name: Some(text) }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Cut anywhere, a file opens again with every line that was whole, and
    /// takes more.
    #[test]
    fn any_cut_of_a_file_opens_again(
        kinds in proptest::collection::vec(kinds(), 0..6),
        cut in any::<proptest::sample::Index>(),
    ) {
        let (_dir, path) = session(&[]);
        let header_len = fs::read(&path).unwrap().len();
        let mut store = open(&path).unwrap().store;
        for kind in kinds {
            store.append(kind).unwrap();
        }
        store.close().unwrap();
        let entries: Vec<Entry> = store.tree().entries().to_vec();
        let whole = fs::read(&path).unwrap();
        let cut = cut.index(whole.len() + 1);
        fs::write(&path, &whole[..cut]).unwrap();

        // The line break of the header may be missing.
        if cut + 1 < header_len {
            let refused = matches!(open(&path), Err(StoreError::NotASession { .. }));
            prop_assert!(refused);
            prop_assert_eq!(fs::read(&path).unwrap(), &whole[..cut]);
            return Ok(());
        }
        let mut kept = 0;
        let mut end = header_len;
        for line in whole[header_len..].split_inclusive(|byte| *byte == b'\n') {
            end += line.len();
            kept += usize::from(end <= cut + 1);
        }
        let mut opened = open(&path).unwrap();
        prop_assert_eq!(opened.store.tree().entries(), &entries[..kept]);
        opened.store.append(user("more")).unwrap();
        opened.store.close().unwrap();
        let again = open(&path).unwrap();
        prop_assert_eq!(again.repaired_bytes, 0);
        prop_assert_eq!(&again.store.tree().entries()[..kept], &entries[..kept]);
        prop_assert_eq!(again.store.tree().entries().len(), kept + 1);
    }
}
