//! Files in the sandbox: each way out is tried by a command and found closed.

use crate::sandbox_scene::{Scene, namespaces, tiers};
use agent::process::Ending;

/// Runs each script in each tier: it must print nothing of what it must not
/// see, and leave what is outside as it is.
async fn closed(scripts: &[&str]) {
    for tier in tiers().await {
        let scene = Scene::new(tier);
        let sandbox = scene.sandbox().await;
        for script in scripts {
            let ran = scene.run_in(script, sandbox.clone()).await;
            let at = format!("{} `{script}`: {}", tier.name(), ran.said);
            assert!(!ran.said.contains("canary"), "{at}");
            assert!(!ran.said.contains("OPEN"), "{at}");
            assert_eq!(scene.read("outside/file"), "canary-outside\n", "{at}");
            let outside = std::fs::read_dir(scene.path("outside")).unwrap();
            assert_eq!(outside.count(), 1, "{at}");
            let home = std::fs::read_dir(scene.path("home")).unwrap();
            assert_eq!(home.count(), 2, "{at}");
        }
    }
}

#[tokio::test]
async fn a_command_works_in_its_workspace() {
    for tier in tiers().await {
        let scene = Scene::new(tier);
        scene.file("work/a.txt", "hello\n");
        let ran = scene
            .run("cat a.txt; echo new > b.txt; mkdir d; mv b.txt d/; echo $HOME | grep -c private; touch $HOME/x $TMPDIR/y; id -u > /dev/null && pwd")
            .await;
        let pwd = scene.path("work").display().to_string();
        assert_eq!(ran.said, format!("hello\n1\n{pwd}\n"), "{}", tier.name());
        assert_eq!(ran.ending, Ending::Exited(0));
        assert_eq!(scene.read("work/d/b.txt"), "new\n");
    }
}

/// Compilers write beside their output and move it into place.
#[tokio::test]
async fn files_are_moved_and_linked_between_directories() {
    for tier in tiers().await {
        let scene = Scene::new(tier);
        let ran = scene
            .run(
                "mkdir -p a b/c && echo 1 > a/moved && echo 2 > a/linked && mkdir a/d && \
                 perl -e 'rename(\"a/moved\", \"b/moved\") or die \"file: $!\\n\"; \
                 rename(\"a/d\", \"b/c/d\") or die \"directory: $!\\n\"; \
                 link(\"a/linked\", \"b/linked\") or die \"link: $!\\n\"; \
                 symlink(\"../a/linked\", \"b/soft\") or die \"soft: $!\\n\"' && \
                 cat b/moved b/linked b/soft && echo done",
            )
            .await;
        assert_eq!(ran.said, "1\n2\n2\ndone\n", "{}", tier.name());
        assert_eq!(ran.ending, Ending::Exited(0), "{}", tier.name());
    }
}

#[tokio::test]
async fn nothing_is_written_outside() {
    closed(&[
        "echo x > $OUT/new",
        "echo x >> $OUT/file",
        "echo x > ../outside/new",
        "ln -s $OUT link; echo x > link/new; echo x > link/file",
        "ln $OUT/file hard && echo x > hard",
        "mv $OUT/file ./file; touch mine; mv mine $OUT/mine",
        "rm -f $OUT/file; rmdir $OUT",
        "mkdir $OUT/d; mkfifo $OUT/p; ln -s /etc $OUT/l",
        "echo x > /proc/self/root$OUT/new; cd /proc/self/cwd/../outside && echo x > new",
        "echo x > /proc/$RUNNER/root$OUT/new; echo x > /proc/$RUNNER/cwd/new",
        "truncate -s 0 $OUT/file; perl -e 'truncate($ARGV[0], 0)' $OUT/file",
        "echo x > $REAL/new; echo x > $REAL/.cargo/new; echo x > $REAL/.cargo/bin/tool",
        "echo x > /etc/agent-escape && echo OPEN; echo x > /usr/agent-escape && echo OPEN",
    ])
    .await;
}

#[tokio::test]
async fn nothing_is_read_that_is_not_theirs() {
    closed(&[
        "cat $OUT/file",
        "cat $REAL/.ssh/id_rsa",
        "cat $REAL/.cargo/credentials.toml",
        "ln -s $OUT link; cat link/file",
        "cp $OUT/file here && cat here",
        "cat /proc/self/root$OUT/file; cat /proc/$RUNNER/root$OUT/file",
        "head -c 1 /etc/shadow && echo OPEN",
        "cat /etc/ssh/ssh_host_rsa_key && echo OPEN",
    ])
    .await;
}

#[tokio::test]
async fn other_views_of_the_files_are_refused() {
    closed(&[
        "mkdir m; mount --bind $OUT m && echo OPEN; ls m",
        "mount -t tmpfs none . && echo OPEN",
        "umount /tmp && echo OPEN; umount -l / && echo OPEN",
        "chroot / true && echo OPEN",
        "unshare -Ur true && echo OPEN; unshare -m true && echo OPEN; unshare -n true && echo OPEN",
        "nsenter -t $RUNNER -m true && echo OPEN",
        "mknod dev b 254 0 && echo OPEN; mknod dev c 1 1 && echo OPEN",
        "cat /dev/vda > /dev/null 2>&1 && echo OPEN; head -c1 /dev/mem && echo OPEN",
    ])
    .await;
}

#[tokio::test]
async fn the_kernel_cannot_be_set_up() {
    closed(&[
        "echo '|/bin/true' > /proc/sys/kernel/core_pattern && echo OPEN",
        "echo 1 > /proc/sys/net/ipv4/ip_forward && echo OPEN",
        "echo h > /proc/sysrq-trigger && echo OPEN",
        "for f in /sys/kernel/uevent_helper /sys/kernel/mm/transparent_hugepage/enabled; do [ -e $f ] && cat $f > $f && echo OPEN; done",
        "d=$(ls -d /sys/fs/cgroup/*/ | head -1); mkdir ${d}agent-escape && echo OPEN",
    ])
    .await;
}

#[tokio::test]
async fn tools_of_the_user_can_be_used() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        let bin = scene.path("home/.cargo/bin");
        std::fs::set_permissions(
            bin.join("tool"),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )
        .unwrap();
        scene.grounds.path = format!("{}:{}", bin.display(), scene.grounds.path);
        let ran = scene.run("tool; echo $CARGO_HOME").await;
        let home = scene.path("home/.cargo").display().to_string();
        assert_eq!(ran.said, format!("tool\n{home}\n"), "{}", tier.name());
    }
}

#[tokio::test]
async fn listed_places_are_open() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.file("shared/s", "shared\n");
        scene.options.read = vec![scene.path("shared")];
        scene.options.write = vec![scene.path("outside")];
        let ran = scene
            .run("cat ../shared/s; echo x > ../shared/t; echo new > $OUT/file")
            .await;
        assert!(ran.said.starts_with("shared\n"), "{}", ran.said);
        assert_eq!(scene.read("shared/t"), "", "{}", tier.name());
        assert_eq!(scene.read("outside/file"), "new\n", "{}", tier.name());
    }
}

#[tokio::test]
async fn hidden_files_of_the_workspace_are_not_there_in_namespaces() {
    let Some(mut scene) = namespaces().await else {
        return;
    };
    scene.file("work/app/.env", "canary\n");
    scene.grounds.hidden = vec![scene.path("work/app/.env")];
    let ran = scene.run("cat app/.env; cp app/.env x; cat x").await;
    assert!(!ran.said.contains("canary"), "{}", ran.said);
    assert_eq!(scene.read("work/app/.env"), "canary\n");
}

#[tokio::test]
async fn what_a_command_makes_of_protected_files_is_undone_or_refused() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.file("work/ci.yml", "ci\n");
        scene.file("work/dir/hook.sh", "hook\n");
        scene.grounds.protected = ["work/ci.yml", "work/dir/hook.sh", "work/later"]
            .map(|name| scene.path(name))
            .into();
        let ran = scene
            .run("echo x > ci.yml; mv dir gone; mkdir -p dir; echo x > dir/hook.sh; rm -f ci.yml; mkdir -p later/on")
            .await;
        let at = format!("{} {ran:?}", tier.name());
        assert_eq!(scene.read("work/ci.yml"), "ci\n", "{at}");
        assert_eq!(scene.read("work/dir/hook.sh"), "hook\n", "{at}");
        assert!(!scene.path("work/later").exists(), "{at}");
        let undone = |name: &str| ran.undone.iter().any(|said| said.starts_with(name));
        assert!(undone("later is protected"), "{at}");
        let prevents = tier == agent::sandbox::Tier::Namespaces;
        assert_eq!(undone("ci.yml is protected"), !prevents, "{at}");
    }
}
