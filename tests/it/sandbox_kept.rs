//! What the sandbox takes away or cannot put back: nothing of it is lost without
//! a word.

use std::fs;

use crate::sandbox_run;
use crate::sandbox_scene::{Scene, tiers};
use crate::support::cli::Cli;
use agent::sandbox::Tier;

/// A scene with a run directory and, when `git`, a repository.
fn scene(tier: Tier, git: bool) -> Scene {
    let mut scene = Scene::new(tier);
    scene.file("work/.agent/runs/1/events.jsonl", "{}\n");
    scene.grounds.records = vec![scene.path("work/.agent/runs/1")];
    scene.grounds.protected = vec![scene.path("work/.git")];
    if git {
        scene.file("work/.git/HEAD", "ref: refs/heads/main\n");
        scene.file("work/.git/refs/heads/main", "1234\n");
        scene.file("work/.git/objects/ab/cdef", "object\n");
    }
    scene
}

#[tokio::test]
async fn a_repository_that_somebody_made_meanwhile_is_moved_and_not_destroyed() {
    for tier in tiers().await {
        let scene = scene(tier, false);
        let sandbox = scene.sandbox().await;
        let script = "mkdir -p .git/objects; echo work > .git/objects/x";
        let ran = scene.run_in(script, sandbox.clone()).await;
        let at = format!("{} {ran:?}", tier.name());
        assert!(!scene.path("work/.git").exists(), "{at}");
        let kept = "work/.agent/runs/1/undone/0-.git/objects/x";
        assert_eq!(scene.read(kept), "work\n", "{at}");
        let told = "what was undone is in .agent/runs/1/undone";
        assert!(ran.undone.iter().any(|one| one == told), "{at}");
        assert_eq!(sandbox.breach(), None, "{at}");
    }
}

#[tokio::test]
async fn what_a_command_changed_is_kept_beside_the_records() {
    let scene = scene(Tier::Landlock, true);
    let sandbox = scene.sandbox().await;
    let script = "echo 5678 > .git/refs/heads/main; echo x > .git/MERGE_HEAD";
    let ran = scene.run_in(script, sandbox.clone()).await;
    assert_eq!(scene.read("work/.git/refs/heads/main"), "1234\n", "{ran:?}");
    assert!(!scene.path("work/.git/MERGE_HEAD").exists(), "{ran:?}");
    let undone = scene.path("work/.agent/runs/1/undone");
    let mut kept: Vec<String> = fs::read_dir(undone)
        .unwrap()
        .map(|one| fs::read_to_string(one.unwrap().path()).unwrap())
        .collect();
    kept.sort();
    assert_eq!(kept, ["5678\n", "x\n"], "{ran:?}");
    assert_eq!(sandbox.breach(), None, "{ran:?}");
}

#[tokio::test]
async fn objects_that_are_gone_are_told_and_break_the_run() {
    for script in [
        "rm -rf .git",
        "mkdir d; mv .git d/",
        "rm -rf .git/objects; mkdir .git/objects",
    ] {
        let scene = scene(Tier::Landlock, true);
        let sandbox = scene.sandbox().await;
        let ran = scene.run_in(script, sandbox.clone()).await;
        let breach = sandbox.breach().unwrap_or_default();
        let expect = ".git/objects could not be put back: the objects of the repository are gone";
        assert!(breach.starts_with(expect), "{script}: {breach:?} {ran:?}");
        assert_eq!(scene.read("work/.git/refs/heads/main"), "1234\n", "{ran:?}");
    }
}

#[tokio::test]
async fn a_file_with_two_names_is_told_once() {
    let scene = scene(Tier::Landlock, true);
    let head = scene.path("work/.git/HEAD");
    fs::hard_link(&head, scene.path("outside/head")).unwrap();
    let sandbox = scene.sandbox().await;
    let first = scene.run_in("echo x > .git/HEAD", sandbox.clone()).await;
    assert!(!first.undone.is_empty(), "{first:?}");
    let later = scene.run_in("true", sandbox).await;
    assert!(later.undone.is_empty(), "{later:?}");
}

/// Anybody can make a `HEAD`: only in repositories objects are left out.
#[tokio::test]
async fn a_protected_directory_does_not_become_a_repository_by_its_names() {
    let mut scene = scene(Tier::Landlock, true);
    for file in ["HEAD", "refs/x", "objects/data"] {
        scene.file(&format!("work/keep/{file}"), "kept\n");
    }
    scene.file("work/.git/refs/remotes/origin/HEAD", "x\n");
    scene.file("work/.git/refs/remotes/origin/lfs/x", "1234\n");
    scene.grounds.protected.push(scene.path("work/keep"));
    let script = "echo evil > keep/objects/data; echo evil > .git/refs/remotes/origin/lfs/x";
    let ran = scene.run(script).await;
    assert_eq!(scene.read("work/keep/objects/data"), "kept\n", "{ran:?}");
    let branch = scene.read("work/.git/refs/remotes/origin/lfs/x");
    assert_eq!(branch, "1234\n", "{ran:?}");
}

/// The runner appends to the file while commands run.
#[test]
fn a_session_that_goes_on_keeps_what_is_added_to_it() {
    for tier in sandbox_run::tiers() {
        let cli = sandbox_run::task(&["echo one"], &format!("{{tier: {tier}}}"));
        let first = cli.run();
        let session = first.run_dir().join("session.jsonl");
        let lines = || fs::read_to_string(&session).unwrap().lines().count();
        let before = lines();
        let flags = ["--allow-bypass", "--output-format", "json", "--continue"];
        Cli::at(first.cwd())
            .env("HOME", first.home())
            .args(["run", "task.yaml"])
            .args(flags)
            .run();
        let said = fs::read_to_string(&session).unwrap();
        assert!(!said.contains("is protected"), "{tier}: {said}");
        assert!(lines() > before + 2, "{tier}: {before} and {}", lines());
    }
}
