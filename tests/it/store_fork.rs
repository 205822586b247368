//! Forks: a new session from the beginning of another one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use agent::message::{Message, UserMessage};
use agent::secret::Redactor;
use agent::store::{
    Durability, EntryId, EntryKind, ForkFile, Header, SessionTree, Store, StoreError,
};
use tempfile::TempDir;

fn user(text: &str) -> EntryKind {
    EntryKind::message(Message::User(UserMessage::text(text, 1)))
}

fn label(target: &EntryId, label: &str) -> EntryKind {
    EntryKind::Label {
        target_id: target.clone(),
        label: Some(label.into()),
    }
}

struct Parent {
    _dir: TempDir,
    path: PathBuf,
    store: Store,
    /// Of a, b, c, and of d, which follows b.
    ids: Vec<EntryId>,
}

/// A session that branches after its second entry, with labels set at the end.
fn parent() -> Parent {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("parent.jsonl");
    let mut store = Store::create(
        &path,
        Header::new("/w"),
        Durability::None,
        Redactor::default(),
    )
    .unwrap();
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        ids.push(store.append(user(text)).unwrap());
    }
    store.move_leaf(Some(&ids[1])).unwrap();
    ids.push(store.append(user("d")).unwrap());
    for (at, name) in [(0, "start"), (2, "other branch"), (3, "end")] {
        store.append(label(&ids[at], name)).unwrap();
    }
    Parent {
        _dir: dir,
        path,
        store,
        ids,
    }
}

/// What of `tree` is not a label, with the labels of these entries.
fn shape(tree: &SessionTree) -> Vec<(EntryId, Option<EntryId>, Option<String>)> {
    let entries = tree.entries().iter();
    entries
        .filter(|entry| !matches!(entry.kind, EntryKind::Label { .. }))
        .map(|entry| {
            let label = tree.label(&entry.id).map(str::to_owned);
            (entry.id.clone(), entry.parent_id.clone(), label)
        })
        .collect()
}

fn files(path: &Path) -> usize {
    fs::read_dir(path.parent().unwrap()).unwrap().count()
}

#[test]
fn a_fork_has_the_path_and_its_labels() {
    let parent = parent();
    let before = fs::read(&parent.path).unwrap();
    let mut fork = parent.store.fork_at(Some(&parent.ids[1])).unwrap();
    let of = |at: usize| parent.ids[at].clone();
    let expected = [
        (of(0), None, Some("start".to_owned())),
        (of(1), Some(of(0)), None),
    ];
    assert_eq!(shape(fork.tree()), expected);
    assert_eq!(fork.tree().messages().len(), 2);

    let header = fork.tree().header().clone();
    assert_ne!(header.id, parent.store.tree().header().id);
    assert_eq!(header.cwd, "/w");
    assert_eq!(header.parent_session.as_deref(), parent.path.to_str());
    let path = fork.path().unwrap().to_owned();
    assert_eq!(path.parent(), parent.path.parent());
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    assert!(name.ends_with(&format!("_{}.jsonl", header.id)), "{name}");

    fork.append(user("e")).unwrap();
    fork.close().unwrap();
    let read = Store::read(&path).unwrap();
    assert_eq!(read.entries(), fork.tree().entries());
    assert_eq!(read.header(), &header);
    assert_eq!(fs::read(&parent.path).unwrap(), before);
    assert_eq!(parent.store.tree().entries().len(), 7);
}

#[test]
fn a_fork_may_begin_empty_or_in_memory() {
    let parent = parent();
    let empty = parent.store.fork_at(None).unwrap();
    assert_eq!(empty.tree().entries(), []);
    assert_eq!(Store::read(empty.path().unwrap()).unwrap().entries(), []);

    let mut memory = Store::in_memory(Header::new("/m"));
    let first = memory.append(user("a")).unwrap();
    memory.append(user("b")).unwrap();
    memory.append(label(&first, "x")).unwrap();
    let fork = memory.fork_at(Some(&first)).unwrap();
    assert_eq!(shape(fork.tree()), [(first, None, Some("x".to_owned()))]);
    assert_eq!(fork.path(), None);
    assert_eq!(fork.tree().header().parent_session, None);
}

#[test]
fn a_fork_that_cannot_be_leaves_nothing() {
    let parent = parent();
    let count = files(&parent.path);
    let nowhere = parent.store.fork_at(Some(&"q".into())).unwrap_err();
    assert_eq!(nowhere.to_string(), "there is no entry q in the session");
    fs::write(&parent.path, "gone").unwrap();
    let unreadable = parent.store.fork_at(Some(&parent.ids[0])).unwrap_err();
    assert!(
        matches!(unreadable, StoreError::NotASession { .. }),
        "{unreadable}"
    );
    assert_eq!(files(&parent.path), count);
}

#[test]
fn a_file_is_forked_while_another_process_writes_it() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/sessions");
    for name in ["v1.jsonl", "v2.jsonl"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        fs::copy(fixtures.join(name), &path).unwrap();
        let _writer = Store::open(&path, Durability::None, Redactor::default()).unwrap();
        let before = fs::read(&path).unwrap();
        let tree = Store::read(&path).unwrap();
        let to = ForkFile {
            path: dir.path().join("deep/fork.jsonl"),
            header: Header::new("/elsewhere"),
            durability: Durability::None,
            redactor: Redactor::new(["loaves were".to_owned(), "Loaves were".to_owned()]),
        };
        let leaf = tree.leaf().unwrap().id.clone();
        let fork = Store::fork_file(&tree, &path, Some(&leaf), to.clone()).unwrap();
        let read = Store::read(&to.path).unwrap();
        assert_eq!(read.header(), fork.tree().header());
        assert_eq!(read.header().cwd, "/elsewhere");
        assert_eq!(shape(&read), shape(fork.tree()));
        assert_eq!(read.path().len(), tree.path().len());
        let text = fs::read_to_string(&to.path).unwrap();
        assert!(!text.contains("Loaves were"), "{text}");
        assert_eq!(text.contains("oven_report"), name == "v1.jsonl", "{text}");
        assert_eq!(text.contains("partialJson"), name == "v1.jsonl", "{text}");
        assert_eq!(fs::read(&path).unwrap(), before);

        let again = Store::fork_file(&tree, &path, Some(&leaf), to).unwrap_err();
        assert!(matches!(again, StoreError::Locked { .. }), "{again}");
    }
}
