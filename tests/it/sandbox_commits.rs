//! `sandbox.git: writable`: commands commit, and change no setting of a repository.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::sandbox_run::{said, tiers};
use crate::support::cli::{Cli, Output};
use crate::support::workspace::{GIT_ENV, Workspace};

/// A run whose model runs each of these scripts in `workspace`.
fn scripts(workspace: &Path, tier: &str, scripts: &[&str], code: i32) -> Output {
    let mut set = serde_json::Map::new();
    for (name, value) in GIT_ENV {
        set.insert((*name).to_owned(), json!(value));
    }
    let task = json!({
        "version": 1,
        "prompt": "x",
        "settings": {"model": "scripted/model.yaml"},
        "permissions": {"mode": "bypass"},
        "workspace": {"path": workspace},
        "env": {"set": set},
        "sandbox": {"mode": "require", "tier": tier, "git": "writable"},
    });
    let mut replies: Vec<Value> = Vec::new();
    for (number, script) in scripts.iter().enumerate() {
        let file = format!("step{number}.sh");
        std::fs::write(workspace.join(&file), script).unwrap();
        let arguments = json!({ "command": format!("bash {file}") });
        replies.push(json!({"calls": [{"name": "bash", "arguments": arguments}]}));
    }
    replies.push(json!({"text": "done"}));
    Cli::new()
        .file("task.yaml", task.to_string())
        .file("model.yaml", Value::from(replies).to_string())
        .args(["run", "task.yaml", "--allow-bypass", "--run-dir", "out"])
        .expect_code(code)
        .run()
}

/// A repository whose scripts git does not see.
fn repository() -> Workspace {
    Workspace::git(&[("a.txt", "a\n"), (".gitignore", "step*.sh\n")])
}

/// What git writes in a git directory when it commits and packs.
const WRITTEN: &[&str] = &[
    "COMMIT_EDITMSG",
    "HEAD",
    "ORIG_HEAD",
    "REBASE_HEAD",
    "commit-graph",
    "index",
    "info/refs",
    "logs",
    "objects",
    "packed-refs",
    "refs",
];

/// Every other entry of a git directory, with its content.
fn settings(git: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![git.to_path_buf()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(git).unwrap().display().to_string();
            if WRITTEN.iter().any(|written| path.ends_with(written)) {
                let borrowed = ["info/alternates", "info/http-alternates"];
                let borrowed = borrowed.map(|file| path.join(file));
                assert!(!borrowed.iter().any(|file| file.exists()), "{name}");
                continue;
            }
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
                found.insert(name, String::new());
            } else {
                found.insert(name, std::fs::read_to_string(&path).unwrap_or_default());
            }
        }
    }
    found
}

/// Asserts that nothing else of a git directory is another than before.
fn assert_settings(git: &Path, before: &BTreeMap<String, String>, at: &str) {
    let after = settings(git);
    let names = before.keys().chain(after.keys());
    let changed: Vec<_> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .collect();
    assert!(changed.is_empty(), "{changed:?} {at}");
}

const WORK: &str = "set -e
echo b > b.txt; git add b.txt; git commit -q -m two
git checkout -q -b side; echo c > c.txt; git add c.txt; git commit -q -m side
git checkout -q main; echo d > d.txt; git add d.txt; git commit -q -m three
git merge -q --no-edit side
git checkout -q -b topic HEAD~1; echo e > e.txt; git add e.txt; git commit -q -m topic
git rebase -q main
git tag light; git tag -a -m note heavy
echo more >> a.txt; git stash -q; git stash pop -q; git reset -q --hard
git cherry-pick heavy~1 >/dev/null 2>&1 || git cherry-pick --skip || true
git gc -q
git fsck --no-dangling
echo all-well";

/// A rebase that stops is gone on with by another command.
const STOPPED: &[&str] = &[
    "git checkout -q main; git checkout -q -b left; echo left > f; git add f; git commit -q -m left
     git checkout -q main; git checkout -q -b right; echo right > f; git add f; git commit -q -m right
     git rebase -q left; test -d .git/rebase-merge && echo stopped",
    "echo both > f; git add f; GIT_EDITOR=true git rebase --continue && echo went-on",
];

#[test]
fn commands_commit_and_merge_and_rebase() {
    for tier in tiers() {
        let workspace = repository();
        let before = settings(&workspace.path().join(".git"));
        let steps: Vec<&str> = [WORK].iter().chain(STOPPED).copied().collect();
        let done = scripts(workspace.path(), tier, &steps, 0);
        let told = said(&done);
        for mark in ["all-well", "stopped", "went-on"] {
            assert!(told.contains(mark), "{tier} {mark}: {told}");
        }
        assert!(!told.contains("is protected"), "{tier}: {told}");
        workspace.run_git(&["fsck"]);
        let log = workspace.run_git(&["log", "--format=%s", "topic"]);
        assert!(log.starts_with("topic\nMerge branch 'side'\n"), "{log}");
        let log = workspace.run_git(&["log", "--format=%s", "-2", "right"]);
        assert_eq!(log, "right\nleft\n", "{tier}: {told}");
        assert!(!told.contains("Read-only"), "{tier}: {told}");
        assert_settings(&workspace.path().join(".git"), &before, &told);
    }
}

#[test]
fn commands_change_no_setting() {
    let script = "git config core.fsmonitor /evil; git config --global x.y z; git remote add o evil
        printf '[include]\\n\\tpath = ../evil\\n' >> .git/config
        printf '[core]\\n\\thooksPath = ..\\n' > .git/new; mv .git/new .git/config
        echo evil > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
        mkdir -p .git/info; echo '* filter=evil' > .git/info/attributes
        echo ../../elsewhere > .git/objects/info/alternates
        echo evil > .git/objects/info/http-alternates
        mkdir elsewhere; echo ../elsewhere > .git/commondir; echo evil > .git/config.worktree
        mv .git/hooks .git/away; mkdir .git/hooks; echo evil > .git/hooks/post-checkout
        mkdir -p .git/modules/x/hooks .git/worktrees/w; echo evil > .git/modules/x/config
        rm -f .git/commondir; git init -q --bare .git/modules/y
        echo b > b.txt; git add b.txt; git commit -q -m two --no-verify; echo end";
    for tier in tiers() {
        let workspace = repository();
        let before = settings(&workspace.path().join(".git"));
        let done = scripts(workspace.path(), tier, &[script], 0);
        let told = said(&done);
        assert!(told.contains("end"), "{tier}: {told}");
        assert_settings(&workspace.path().join(".git"), &before, &told);
        let log = workspace.run_git(&["log", "-1", "--format=%s"]);
        assert_eq!(log, "two\n", "{tier}: {told}");
    }
}

#[test]
fn a_linked_worktree_is_committed_to_and_not_configured() {
    for tier in tiers() {
        let workspace = repository();
        let outside = tempfile::tempdir().unwrap();
        let linked = outside.path().canonicalize().unwrap().join("linked");
        workspace.run_git(&["worktree", "add", "-q", linked.to_str().unwrap()]);
        let git = workspace.path().join(".git");
        let (before, pointer) = (settings(&git), std::fs::read(linked.join(".git")).unwrap());
        let script = "common=$(git rev-parse --git-common-dir); own=$(git rev-parse --git-dir)
            echo b > b.txt; git add b.txt; git commit -q -m linked
            git config core.fsmonitor evil; echo evil >> $common/config
            echo evil > $common/hooks/post-commit; echo evil > $common/hooks/pre-commit
            echo evil > $own/config.worktree; echo evil > $own/commondir; echo evil > $own/gitdir
            echo 'gitdir: evil' > .git; rm -f .git; mkdir .git; echo end";
        let done = scripts(&linked, tier, &[script], 0);
        let told = said(&done);
        assert_settings(&git, &before, &told);
        let after = std::fs::read(linked.join(".git")).unwrap();
        assert_eq!(after, pointer, "{tier}: {told}");
        let log = workspace.run_git(&["log", "-1", "--format=%s", "linked"]);
        assert_eq!(log, "linked\n", "{tier}: {told}");
    }
}

#[test]
fn a_submodule_is_committed_to_and_not_configured() {
    for tier in tiers() {
        let (workspace, other) = (repository(), Workspace::git(&[("s.txt", "s\n")]));
        let from = other.path().display().to_string();
        let allow = "protocol.file.allow=always";
        workspace.run_git(&[
            "-c",
            allow,
            "submodule",
            "--quiet",
            "add",
            &from,
            "deep/sub",
        ]);
        workspace.commit("with a submodule");
        let git = workspace.path().join(".git");
        let before = settings(&git);
        let script =
            "cd deep/sub; git checkout -q -b work; echo b > b; git add b; git commit -q -m below
            git config x.y z; own=$(git rev-parse --git-dir); echo evil >> $own/config
            echo evil > $own/hooks/pre-commit; mkdir $own/hooks; echo evil > $own/hooks/pre-push
            mkdir ../../.git/modules/new; echo evil > ../../.git/modules/new/config; echo end";
        let done = scripts(workspace.path(), tier, &[script], 0);
        let told = said(&done);
        assert_settings(&git, &before, &told);
        let log = workspace.run_git(&["-C", "deep/sub", "log", "-1", "--format=%s"]);
        assert_eq!(log, "below\n", "{tier}: {told}");
    }
}

#[test]
fn the_objects_of_a_repository_are_not_replaced() {
    for tier in tiers() {
        let workspace = repository();
        let script = "mv .git gone || rm -rf .git/objects; mkdir -p .git/objects; echo end";
        let done = scripts(workspace.path(), tier, &[script], 74);
        let told = said(&done);
        assert!(
            told.contains("the objects of the repository are gone"),
            "{tier}: {told}"
        );
        assert!(workspace.exists(".git/config"), "{tier}: {told}");
    }
}

/// Its settings would be the command's.
#[test]
fn a_repository_that_a_command_makes_is_not_kept() {
    for tier in tiers() {
        let workspace = Workspace::new(&[]);
        let script = "git init -q . && git commit -q --allow-empty -m one && git log --format=%s";
        let done = scripts(workspace.path(), tier, &[script], 0);
        let told = said(&done);
        assert!(told.contains("one"), "{tier}: {told}");
        assert!(told.contains(".git is protected"), "{tier}: {told}");
        assert!(!workspace.exists(".git"), "{tier}: {told}");
    }
}
