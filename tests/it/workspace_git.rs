//! Baselines in git repositories: dirty starts, hostile configuration, and a
//! `.git` that stays as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent::workspace::{Baseline, WorkspaceError, is_clean};
use tokio_util::sync::CancellationToken;

use crate::workspace_fixture::{Fixture, apply, codes, contents, diff, listed, run, wait};

/// Everything below `.git`.
fn git_dir_of(at: &Fixture) -> BTreeMap<PathBuf, (Vec<u8>, &'static str)> {
    contents(&at.path(".git"))
}

#[test]
fn what_was_dirty_at_the_start_is_not_the_jobs_work() {
    let at = Fixture::repository();
    at.write("committed", "1\n");
    at.write("edited", "1\n");
    at.write("removed", "1\n");
    at.commit();
    at.write("edited", "2\n");
    at.write("staged", "1\n");
    at.git(&["add", "staged"]);
    fs::remove_file(at.path("removed")).unwrap();
    at.write("untracked", "1\n");
    let start = at.keep("start");
    let git_dir = git_dir_of(&at);

    let baseline = at.take();
    assert_eq!(listed(&diff(&baseline)), Vec::<String>::new());
    at.write("edited", "3\n");
    at.write("untracked", "1\n2\n");
    at.write("committed", "0\n");
    let changes = diff(&baseline);

    assert_eq!(
        listed(&changes),
        [
            "modified committed +1 -1",
            "modified edited +1 -1",
            "modified untracked +1 -0"
        ]
    );
    apply(&start, &changes.patch);
    assert_eq!(contents(&start), contents(&at.root));
    assert!(git_dir_of(&at) == git_dir, "the user's .git is untouched");
    drop(baseline);
    assert_eq!(fs::read_dir(at.beside("scratch")).unwrap().count(), 0);
}

#[test]
fn commits_and_resets_by_the_job_show_as_their_content() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    let baseline = at.take();
    at.write("a", "2\n");
    at.write("b", "new\n");
    at.commit();
    assert_eq!(
        listed(&diff(&baseline)),
        ["modified a +1 -1", "added b +1 -0"]
    );
}

#[test]
fn binary_files_are_in_the_patch() {
    let at = Fixture::repository();
    at.write("old.bin", [0, 1, 2, 255]);
    at.commit();
    let start = at.keep("start");
    let baseline = at.take();
    at.write("old.bin", [0, 9, 2, 255, 0]);
    at.write("new.bin", [0; 300]);
    let changes = diff(&baseline);
    assert_eq!(
        listed(&changes),
        ["added new.bin +0 -0", "modified old.bin +0 -0"]
    );
    apply(&start, &changes.patch);
    assert_eq!(contents(&start), contents(&at.root));
}

#[test]
fn a_subdirectory_hides_the_rest_of_its_repository() {
    let at = Fixture::subdirectory();
    at.write("inside.txt", "1\n");
    at.commit();
    let baseline = at.take();
    at.write("inside.txt", "2\n");
    at.write("../outside.txt", "changed\n");
    at.write("../new-outside.txt", "new\n");
    assert_eq!(listed(&diff(&baseline)), ["modified inside.txt +1 -1"]);
}

#[test]
fn an_ignored_subdirectory_is_watched_without_git() {
    let mut at = Fixture::repository();
    at.write(".gitignore", "out/\n");
    at.write("out/a", "1\n");
    at.root.push("out");
    let baseline = at.take();
    at.write("a", "2\n");
    let changes = diff(&baseline);
    assert_eq!(changes.source, "before-images");
    assert_eq!(listed(&changes), ["modified a +1 -1"]);
    assert_eq!(codes(&changes), Vec::<&str>::new());
}

#[test]
fn nothing_that_the_repository_configures_runs() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    let trap = at.beside("trap");
    let touch = format!("touch '{}'; cat", trap.display());
    at.write(
        "hook.sh",
        format!("#!/bin/sh\ntouch '{}'\n", trap.display()),
    );
    at.chmod("hook.sh", 0o755);
    let hook = at.path("hook.sh");
    let hook = hook.to_str().unwrap();
    for (name, value) in [
        ("core.fsmonitor", hook),
        ("core.pager", touch.as_str()),
        ("diff.external", hook),
        ("diff.t.textconv", hook),
        ("diff.t.command", hook),
        ("filter.f.clean", touch.as_str()),
        ("filter.f.smudge", touch.as_str()),
        ("filter.f.process", hook),
        ("filter.f.required", "true"),
        ("alias.add", "!false"),
    ] {
        at.git(&["config", name, value]);
    }
    at.write(".gitattributes", "* filter=f diff=t\n");
    at.write(".git/info/attributes", "* filter=f diff=t\n");
    for name in ["post-index-change", "pre-commit", "reference-transaction"] {
        fs::copy(at.path("hook.sh"), at.path(".git/hooks").join(name)).unwrap();
    }
    let baseline = at.take();
    at.write("a", "2\n");
    let changes = diff(&baseline);
    assert_eq!(listed(&changes), ["modified a +1 -1"]);
    let clean = wait(is_clean(
        &at.root,
        &at.settings(),
        &CancellationToken::new(),
    ));
    assert!(!clean.unwrap());
    assert!(!trap.exists(), "something ran");
}

#[test]
fn nothing_that_a_nested_repository_configures_runs() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    let trap = at.beside("trap");
    at.write(
        "hook.sh",
        format!("#!/bin/sh\ntouch '{}'\n", trap.display()),
    );
    at.chmod("hook.sh", 0o755);
    let hook = at.path("hook.sh");
    let nest = |name: &str| {
        let inner = at.path(name);
        at.write(format!("{name}/b"), "1\n");
        run("git", &["init", "-q"], &inner);
        run("git", &["add", "-A"], &inner);
        let identity = ["-c", "user.name=n", "-c", "user.email=e@x"];
        run(
            "git",
            &[&identity[..], &["commit", "-qm", "m"]].concat(),
            &inner,
        );
        for setting in ["core.fsmonitor", "filter.f.clean", "filter.f.process"] {
            run("git", &["config", setting, hook.to_str().unwrap()], &inner);
        }
        at.write(format!("{name}/.gitattributes"), "* filter=f\n");
        at.write(format!("{name}/b"), "2\n");
    };
    at.write("inner/b", "1\n");
    nest("inner");
    at.git(&["-c", "advice.addEmbeddedRepo=false", "add", "a", "hook.sh"]);
    let head = String::from_utf8(run("git", &["rev-parse", "HEAD"], &at.path("inner"))).unwrap();
    let link = format!("160000,{},inner", head.trim());
    at.git(&["update-index", "--add", "--cacheinfo", &link]);
    at.git(&[
        "-c",
        "user.name=n",
        "-c",
        "user.email=e@x",
        "commit",
        "-qm",
        "m",
    ]);

    assert!(
        wait(is_clean(
            &at.root,
            &at.settings(),
            &CancellationToken::new()
        ))
        .unwrap()
    );
    let baseline = at.take();
    nest("cloned");
    at.write("a", "2\n");
    let changes = diff(&baseline);
    assert_eq!(listed(&changes), ["modified a +1 -1"]);
    assert_eq!(
        codes(&changes),
        ["baseline_incomplete"],
        "the new repository is named"
    );
    assert!(!trap.exists(), "something ran");
}

#[test]
fn linked_worktrees_and_sha256_repositories() {
    let mut at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    at.git(&["worktree", "add", "-q", "../linked"]);
    at.root = at.beside("linked");
    let baseline = at.take();
    at.write("a", "2\n");
    assert_eq!(listed(&diff(&baseline)), ["modified a +1 -1"]);

    let at = Fixture::plain();
    at.git(&["init", "--quiet", "--object-format=sha256"]);
    at.write("a", "1\n");
    at.commit();
    let baseline = at.take();
    at.write("a", "2\n");
    let changes = diff(&baseline);
    assert_eq!(
        (changes.source, listed(&changes)),
        ("git", vec!["modified a +1 -1".to_owned()])
    );
}

#[test]
fn a_split_index_and_a_submodule() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    at.git(&["update-index", "--split-index"]);
    at.write("inner/b", "1\n");
    run("git", &["init", "-q"], &at.path("inner"));
    let identity = ["-c", "user.name=n", "-c", "user.email=e@x"];
    run("git", &["add", "-A"], &at.path("inner"));
    run(
        "git",
        &[&identity[..], &["commit", "-qm", "m"]].concat(),
        &at.path("inner"),
    );
    let baseline = at.take();
    at.write("a", "2\n");
    at.write("inner/b", "2\n");
    let changes = diff(&baseline);
    assert_eq!(changes.source, "git");
    assert_eq!(listed(&changes), ["modified a +1 -1"]);
}

#[test]
fn a_broken_repository_falls_back_and_says_so() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    at.commit();
    at.write(".git/index", "no index at all");
    let baseline = at.take();
    at.write("a", "2\n");
    let changes = diff(&baseline);
    assert_eq!(changes.source, "before-images");
    assert_eq!(codes(&changes), ["baseline_failed"]);
    assert_eq!(listed(&changes), ["modified a +1 -1"]);
}

#[test]
fn without_a_git_command() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    let mut settings = at.settings();
    settings.path = at.beside("nothing").into();
    let baseline = at.take_with(&settings);
    at.write("a", "2\n");
    let changes = diff(&baseline);
    assert_eq!((changes.source, codes(&changes)), ("before-images", vec![]));
    assert_eq!(listed(&changes), ["modified a +1 -1"]);
}

#[test]
fn a_git_that_takes_too_long_is_stopped() {
    let at = Fixture::repository();
    at.write("a", "1\n");
    let bin = at.beside("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("git"), "#!/bin/sh\nexec /bin/sleep 60\n").unwrap();
    run("chmod", &["755", "git"], &bin);
    let mut settings = at.settings();
    settings.path = bin.into();
    settings.timeout = Duration::from_millis(50);
    let baseline = at.take_with(&settings);
    assert_eq!(baseline.warnings().len(), 1);
    assert!(
        baseline.warnings()[0].message.contains("took longer"),
        "{:?}",
        baseline.warnings()
    );
}

#[test]
fn cancelled_and_missing() {
    let at = Fixture::repository();
    let cancel = CancellationToken::new();
    let baseline = at.take();
    cancel.cancel();
    let taken = wait(Baseline::take(&at.root, &at.settings(), &cancel));
    assert!(matches!(taken, Err(WorkspaceError::Cancelled)), "{taken:?}");

    let cancel = CancellationToken::new();
    fs::remove_dir_all(&at.root).unwrap();
    let taken = wait(Baseline::take(&at.root, &at.settings(), &cancel));
    assert!(
        matches!(taken, Err(WorkspaceError::Missing { .. })),
        "{taken:?}"
    );
    let gone = wait(baseline.diff(&[], &cancel));
    assert!(
        matches!(gone, Err(WorkspaceError::Missing { .. })),
        "{gone:?}"
    );
}

#[test]
fn clean_or_not() {
    let clean = |at: &Fixture| {
        wait(is_clean(
            &at.root,
            &at.settings(),
            &CancellationToken::new(),
        ))
    };
    let at = Fixture::repository();
    at.write("a", "1\n");
    at.write(".gitignore", "*.log\n");
    assert!(!clean(&at).unwrap(), "untracked files");
    at.commit();
    at.write("x.log", "ignored\n");
    assert!(clean(&at).unwrap());
    at.write("a", "2\n");
    assert!(!clean(&at).unwrap(), "an edit");
    at.git(&["add", "a"]);
    assert!(!clean(&at).unwrap(), "a staged edit");
    at.commit();
    at.write(".agent/runs/1/run.json", "{}\n");
    assert!(!clean(&at).unwrap(), "an untracked directory");
    let mut settings = at.settings();
    settings.exclude = vec![Path::new(".agent").to_owned()];
    assert!(wait(is_clean(&at.root, &settings, &CancellationToken::new())).unwrap());

    let outside = clean(&Fixture::plain());
    assert!(
        matches!(outside, Err(WorkspaceError::NoRepository { .. })),
        "{outside:?}"
    );
}
