//! What the sandbox puts back after a command: nothing that a command does to the
//! names around it leads the runner outside, and nothing is lost by it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use crate::sandbox_scene::{Scene, namespaces, tiers};
use agent::process::{Ending, Process, Progress};
use agent::sandbox::Tier;
use tokio_util::sync::CancellationToken;

/// A scene with a repository at `work/.git`, one nested, and their protection.
fn repositories(tier: Tier) -> Scene {
    let mut scene = Scene::new(tier);
    for git in ["work/.git", "work/lib/.git"] {
        scene.file(&format!("{git}/HEAD"), "ref: refs/heads/main\n");
        scene.file(&format!("{git}/config"), "[core]\n");
        scene.file(&format!("{git}/hooks/sample"), "sample\n");
        scene.file(&format!("{git}/objects/ab/cdef"), "object\n");
    }
    scene.grounds.protected = vec![scene.path("work/.git"), scene.path("work/lib/.git")];
    scene
}

/// Everything at and below `root` of the scene, with kind, mode and content.
fn tree(scene: &Scene, root: &str) -> Vec<String> {
    let mut open = vec![scene.path(root)];
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        let what = path.symlink_metadata().unwrap();
        let content = match what.is_dir() {
            true => {
                open.extend(fs::read_dir(&path).unwrap().map(|one| one.unwrap().path()));
                String::new()
            }
            false => fs::read_to_string(&path).unwrap_or_default(),
        };
        found.push(format!("{} {:o} {content}", path.display(), what.mode()));
    }
    found.sort();
    found
}

#[tokio::test]
async fn a_link_in_the_place_of_a_directory_leads_nowhere() {
    for tier in tiers().await {
        for script in [
            "mv lib away; ln -s $OUT/repository lib",
            "mv dir away; ln -s $OUT/dir dir",
            "mv dir away; ln -s ../outside/dir dir",
            "mv deep away; ln -s $OUT/deep deep",
            "mv empty away; ln -s $OUT/dir empty",
        ] {
            let mut scene = repositories(tier);
            scene.file("outside/repository/.git/config", "theirs\n");
            scene.file("outside/repository/.git/hooks/own", "theirs\n");
            scene.file("outside/dir/ci.yml", "theirs\n");
            scene.file("outside/dir/later/file", "theirs\n");
            scene.file("outside/deep/down/later/file", "theirs\n");
            scene.file("work/dir/ci.yml", "ci\n");
            scene.file("work/deep/down/file", "file\n");
            scene.file("work/empty/file", "file\n");
            for name in ["dir/ci.yml", "dir/later", "deep/down/later", "empty/later"] {
                scene.grounds.protected.push(scene.path("work").join(name));
            }
            let before = tree(&scene, "outside");
            let ran = scene.run(script).await;
            assert_eq!(
                before,
                tree(&scene, "outside"),
                "{} {script} {ran:?}",
                tier.name()
            );
            for (file, content) in [("lib/.git/config", "[core]\n"), ("dir/ci.yml", "ci\n")] {
                let file = format!("work/{file}");
                assert_eq!(
                    scene.read(&file),
                    content,
                    "{} {script} {ran:?}",
                    tier.name()
                );
            }
        }
    }
}

#[tokio::test]
async fn a_changed_mode_costs_nothing() {
    for tier in tiers().await {
        for script in [
            "chmod 711 .git lib/.git",
            "chmod -R go-rwx .git/hooks .git/HEAD lib/.git/hooks",
            "chmod 700 .git/objects lib/.git/objects",
            "chmod 000 .git/objects .git lib/.git/hooks",
            "chmod 000 .git/config .git/HEAD",
        ] {
            let scene = repositories(tier);
            let before = tree(&scene, "work");
            let ran = scene.run(script).await;
            assert_eq!(
                before,
                tree(&scene, "work"),
                "{} {script} {ran:?}",
                tier.name()
            );
        }
    }
}

#[tokio::test]
async fn nothing_is_hidden_in_what_cannot_be_read() {
    for tier in tiers().await {
        for script in [
            "echo x > .git/hooks/evil; chmod 000 .git/hooks",
            "echo x > .git/hooks/evil; chmod 500 .git/hooks; chmod 000 .git",
            "mkdir -p .git/hooks/a/b; echo x > .git/hooks/a/b/evil; chmod 000 .git/hooks/a/b .git/hooks/a",
            "mkdir -p .git/new/on; echo x > .git/new/on/evil; chmod 000 .git/new/on .git/new",
            "rm -f .git/config; mkdir -p .git/config/x; chmod 000 .git/config",
            "rm -f .git/HEAD; mkfifo .git/HEAD; mkfifo .git/hooks/pipe; ln -s $OUT .git/hooks/link",
            "mv .git/hooks .git/h; mkdir .git/modules; mv .git/h .git/modules/hooks",
            "echo x > .git/hooks/HEAD; mkdir -p .git/hooks/lfs/hooks; echo x > .git/hooks/lfs/hooks/evil",
        ] {
            let scene = repositories(tier);
            let before = tree(&scene, "work/.git");
            let ran = scene.run(script).await;
            assert_eq!(
                before,
                tree(&scene, "work/.git"),
                "{} {script} {ran:?}",
                tier.name()
            );
        }
    }
}

#[tokio::test]
async fn another_name_of_a_protected_file_is_no_way_to_it() {
    for tier in tiers().await {
        let scene = repositories(tier);
        let ran = scene.run("ln .git/config other; ls other").await;
        if let Ok(other) = fs::metadata(scene.path("work/other")) {
            let config = fs::metadata(scene.path("work/.git/config")).unwrap();
            assert_ne!(config.ino(), other.ino(), "{} {ran:?}", tier.name());
        }
        assert_eq!(scene.read("work/.git/config"), "[core]\n");
    }
}

#[tokio::test]
async fn no_depth_of_directories_is_too_much() {
    let dig = "perl -e 'for (1..$ARGV[1]) { mkdir \"d\"; chdir \"d\" or die } open F, \">evil\"' x";
    for tier in tiers().await {
        let scene = repositories(tier);
        let before = tree(&scene, "work/.git");
        let script = format!(
            "rm -f .git/config; mkdir .git/config; cd .git/config && {dig} 3000; \
             cd $OLDPWD; cd .git/hooks && {dig} 3000; true"
        );
        let ran = scene.run(&script).await;
        assert_eq!(ran.ending, Ending::Exited(0), "{} {ran:?}", tier.name());
        assert_eq!(before, tree(&scene, "work/.git"), "{} {ran:?}", tier.name());
    }
}

#[tokio::test]
async fn the_copies_are_out_of_reach() {
    for tier in tiers().await {
        let mut scene = repositories(tier);
        // As when a task lists `/tmp`.
        scene.options.write = vec![scene.path("private")];
        let ran = scene
            .run("find $HOME/.. -type f -exec sh -c 'echo evil > \"$1\"' x {} ';' ; rm -f .git/config; rm -rf lib/.git/hooks")
            .await;
        let at = format!("{} {ran:?}", tier.name());
        assert_eq!(scene.read("work/.git/config"), "[core]\n", "{at}");
        assert_eq!(scene.read("work/lib/.git/hooks/sample"), "sample\n", "{at}");
    }
}

#[tokio::test]
async fn a_job_that_comes_meanwhile_keeps_what_was_there() {
    let scene = repositories(Tier::Landlock);
    let first = scene.sandbox().await;
    let script = "echo evil > .git/config; echo evil > .git/hooks/evil; echo ready; sleep 1000";
    let mut process = Process::spawn(scene.command(script, first)).unwrap();
    let cancel = CancellationToken::new();
    let ready = process.next(&cancel).await;
    assert!(matches!(ready, Progress::Output(_)), "{ready:?}");
    let second = scene.sandbox().await;
    cancel.cancel();
    while !matches!(process.next(&cancel).await, Progress::Ended(_)) {}
    let ran = scene.run_in("true", second).await;
    assert_eq!(scene.read("work/.git/config"), "[core]\n", "{ran:?}");
    assert!(!scene.path("work/.git/hooks/evil").exists(), "{ran:?}");
}

#[tokio::test]
async fn what_is_protected_beside_the_workspace_is_protected() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.file("shared/tasks/task.yaml", "task\n");
        scene.options.write = vec![scene.path("shared")];
        scene.grounds.protected = ["shared/tasks/task.yaml", "shared/later"]
            .map(|name| scene.path(name))
            .into();
        let ran = scene
            .run("cd ../shared; mv tasks t; mkdir -p tasks; echo x > tasks/task.yaml; rm -f t/task.yaml; mkdir later; true")
            .await;
        let at = format!("{} {ran:?}", tier.name());
        assert_eq!(scene.read("shared/tasks/task.yaml"), "task\n", "{at}");
        assert!(!scene.path("shared/later").exists(), "{at}");
    }
}

#[tokio::test]
async fn hidden_files_stay_hidden_from_the_next_command() {
    let Some(mut scene) = namespaces().await else {
        return;
    };
    scene.file("work/app/conf/.env", "canary\n");
    scene.grounds.hidden = vec![scene.path("work/app/conf/.env")];
    let sandbox = scene.sandbox().await;
    for script in [
        "mv app app2; mv app/conf app/c; ln app/conf/.env x; true",
        "cat app2/conf/.env app/c/.env app/conf/.env x; cat /proc/self/cwd/app/conf/.env; true",
    ] {
        let ran = scene.run_in(script, sandbox.clone()).await;
        assert!(!ran.said.contains("canary"), "{ran:?}");
    }
    assert_eq!(scene.read("work/app/conf/.env"), "canary\n");
}

#[tokio::test]
async fn what_is_protected_elsewhere_is_not_shown() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.grounds.protected = vec![scene.path("outside/file")];
        scene.grounds.records = vec![scene.path("home/.ssh")];
        let ran = scene.run("cat $OUT/file $REAL/.ssh/id_rsa").await;
        assert!(!ran.said.contains("canary"), "{} {ran:?}", tier.name());
    }
}

#[tokio::test]
async fn credentials_are_hidden_in_a_workspace_that_is_home() {
    let Some(mut scene) = namespaces().await else {
        return;
    };
    scene.grounds.workspace = scene.path("home");
    let steal = "mv .ssh away; cat .ssh/id_rsa away/id_rsa .cargo/credentials.toml; pwd";
    let ran = scene.run(steal).await;
    assert!(!ran.said.contains("canary"), "{ran:?}");
    assert!(ran.said.contains("/home\n"), "{ran:?}");
    // Unless they are what the task lists.
    scene.options.read = vec![scene.path("home/.ssh")];
    let ran = scene.run("cat .ssh/id_rsa").await;
    assert_eq!(ran.said, "canary-key\n");
}

#[tokio::test]
async fn records_are_not_looked_for_where_a_link_leads() {
    for script in [
        "mv .agent/runs/1 x; ln -s $OUT .agent/runs/1",
        "mv .agent/runs/1 x; ln -s $PWD/x .agent/runs/1",
        "mv .agent y; mkdir .agent; ln -s $OUT .agent/runs",
        "mv .agent y; ln -s $OUT/agent .agent",
    ] {
        let mut scene = Scene::new(Tier::Landlock);
        scene.file("work/.agent/runs/1/events.jsonl", "{}\n");
        scene.grounds.records = vec![scene.path("work/.agent/runs/1")];
        for place in ["outside", "outside/1", "outside/agent/runs/1"] {
            fs::create_dir_all(scene.path(place)).unwrap();
            symlink("file", scene.path(place).join("link")).unwrap();
        }
        let sandbox = scene.sandbox().await;
        let ran = scene.run_in(script, sandbox.clone()).await;
        for link in ["link", "1/link", "agent/runs/1/link"] {
            let link = scene.path("outside").join(link);
            assert!(link.is_symlink(), "{script} {ran:?}");
        }
        assert!(sandbox.breach().is_some(), "{script} {ran:?}");
    }
}

#[tokio::test]
async fn modes_of_files_are_kept() {
    for tier in tiers().await {
        let scene = repositories(tier);
        let hook = scene.path("work/.git/hooks/sample");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
        scene.run("echo x > .git/hooks/sample").await;
        assert_eq!(scene.read("work/.git/hooks/sample"), "sample\n");
        assert_eq!(fs::metadata(&hook).unwrap().mode() & 0o777, 0o755);
    }
}
