//! Copies of a workspace for isolated jobs.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use agent::workspace::{COPY_BYTES_MAX, WorkspaceError, copy};

use crate::workspace_fixture::{Fixture, contents, diff, listed, run};

#[test]
fn everything_but_our_own_directory_and_special_files() {
    let at = Fixture::plain();
    at.write("a.txt", "text\n");
    at.write("dir/deep/b", [0, 255]);
    at.write("run.sh", "#!/bin/sh\n");
    at.chmod("run.sh", 0o755);
    at.write("locked/f", "x");
    at.chmod("locked/f", 0o444);
    at.chmod("locked", 0o555);
    at.write(".hidden", "h");
    at.write(".agent/skills/s/SKILL.md", "s");
    at.write("runs/r", "r");
    symlink("a.txt", at.path("inside")).unwrap();
    symlink("/etc/passwd", at.path("outside")).unwrap();
    symlink("dir", at.path("to-dir")).unwrap();
    symlink(".", at.path("loop")).unwrap();
    let expect = contents(&at.root);

    at.write(".agent/runs/1/run.json", "{}");
    at.write("below/.agent/runs/1/run.json", "{}");
    run("mkfifo", &["pipe"], &at.root);
    let target = copy(&at.root, &at.beside("scratch")).unwrap();
    assert_eq!(contents(&target), expect);
    assert!(!target.join("pipe").exists() && !target.join(".agent/runs").exists());
    assert!(!target.join("below/.agent/runs").exists());
    let time = |path| fs::metadata(path).unwrap().modified().unwrap();
    assert_eq!(time(target.join("a.txt")), time(at.path("a.txt")));
    let mode = |name: &str| {
        fs::metadata(target.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    assert_eq!(
        [mode("locked/f"), mode("locked"), mode("run.sh")],
        [0o444, 0o755, 0o755]
    );
    assert_eq!(mode("") & 0o077, 0, "the copy is private");
    at.chmod("locked", 0o755);
}

#[test]
fn a_copied_repository_still_tells_what_changed() {
    let mut at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    at.write("a", "dirty\n");
    let original = at.root.clone();
    at.root = copy(&at.root, &at.beside("scratch")).unwrap();
    let baseline = at.take();
    at.write("a", "changed\n");
    let changes = diff(&baseline);
    assert_eq!(
        (changes.source, listed(&changes)),
        ("git", vec!["modified a +1 -1".to_owned()])
    );
    assert_eq!(fs::read(original.join("a")).unwrap(), b"dirty\n");
}

#[test]
fn a_linked_worktree_loses_its_link() {
    let mut at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    at.git(&["worktree", "add", "-q", "../linked"]);
    at.root = at.beside("linked");
    let target = copy(&at.root, &at.beside("scratch")).unwrap();
    assert!(target.join("a").exists() && !target.join(".git").exists());
}

#[test]
fn a_scratch_directory_inside_the_workspace_is_not_copied_into_itself() {
    let at = Fixture::plain();
    at.write("a", "1\n");
    at.write("tmp/b", "1\n");
    let target = copy(&at.root, &at.path("tmp")).unwrap();
    let names: Vec<_> = contents(&target).into_keys().collect();
    assert_eq!(names, ["a".into(), std::path::PathBuf::from("tmp/b")]);
}

#[test]
fn refusals() {
    let at = Fixture::plain();
    let missing = copy(&at.path("none"), &at.beside("scratch"));
    assert!(
        matches!(missing, Err(WorkspaceError::Missing { .. })),
        "{missing:?}"
    );

    let sparse = fs::File::create(at.path("huge")).unwrap();
    sparse.set_len(COPY_BYTES_MAX + 1).unwrap();
    let large = copy(&at.root, &at.beside("scratch"))
        .unwrap_err()
        .to_string();
    assert!(large.contains("more than 4 GiB"), "{large}");

    let again = copy(&at.root, &at.beside("scratch"))
        .unwrap_err()
        .to_string();
    assert!(
        again.contains("scratch/workspace"),
        "an existing target is refused: {again}"
    );
}
