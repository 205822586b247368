//! Processes in the sandbox: the runner and its machine are out of reach, and
//! nothing outlives a command.

use crate::sandbox_scene::{Scene, closed, namespaces, tiers};

/// A call of the kernel by number: it must be refused, and not fail for
/// another reason.
fn refused(name: &str, number: i64, arguments: &str) -> String {
    format!(
        "perl -e '$! = 0; my $b = \"\\0\" x 256; syscall({number}{arguments}) == -1 \
         and ($! == 1 or $! == 38) or print \"OPEN {name} $!\\n\"'"
    )
}

#[tokio::test]
async fn the_runner_cannot_be_reached() {
    closed(&[
        "kill -9 $RUNNER; kill -TERM -- -$RUNNER; kill -0 $RUNNER && [ -e /proc/$RUNNER/root/. ] && echo OPEN",
        "tr '\\0' '\\n' < /proc/$RUNNER/environ | grep -q PATH && echo OPEN",
        "head -c 1 /proc/$RUNNER/mem && echo OPEN; cat /proc/$RUNNER/maps | grep -q / && [ $$ != 2 ] && echo OPEN",
        "ls /proc/$RUNNER/fd/ | grep -q . && [ -e /proc/$RUNNER/fd/0 ] && echo OPEN",
        "readlink /proc/$PPID/fd/1 && [ $PPID != 1 ] && [ $PPID != 0 ] && echo OPEN; readlink /proc/$RUNNER/fd/1 && [ $$ != 2 ] && echo OPEN",
        "prlimit --pid $RUNNER --nofile=3:3 && echo OPEN",
    ])
    .await;
}

#[tokio::test]
async fn calls_that_lead_out_are_refused() {
    let calls = [
        refused("ptrace", libc::SYS_ptrace, ", 16, getppid(), 0, 0"),
        refused(
            "process_vm_readv",
            libc::SYS_process_vm_readv,
            ", getppid(), $b, 1, $b, 1, 0",
        ),
        refused("io_uring", libc::SYS_io_uring_setup, ", 1, $b"),
        refused("keyctl", libc::SYS_keyctl, ", 0, -3, 0"),
        refused("add_key", libc::SYS_add_key, ", $b, $b, $b, 1, -3"),
        refused("bpf", libc::SYS_bpf, ", 0, $b, 16"),
        refused(
            "perf_event_open",
            libc::SYS_perf_event_open,
            ", $b, 0, -1, -1, 0",
        ),
        refused("userfaultfd", libc::SYS_userfaultfd, ", 0"),
        refused("setns", libc::SYS_setns, ", 0, 0"),
        refused("unshare", libc::SYS_unshare, ", 0x10000000"),
        refused("clone", libc::SYS_clone, ", 0x10000011, 0, 0, 0, 0"),
        refused("clone3", libc::SYS_clone3, ", $b, 88"),
        refused(
            "open_by_handle_at",
            libc::SYS_open_by_handle_at,
            ", -100, $b, 0",
        ),
        refused("mount", libc::SYS_mount, ", $b, $b, $b, 0, 0"),
        refused("kexec_load", libc::SYS_kexec_load, ", 0, 0, 0, 0"),
        refused("personality", libc::SYS_personality, ", 0x0040000"),
        refused("pidfd_getfd", libc::SYS_pidfd_getfd, ", 0, 0, 0"),
        refused("TIOCSTI", libc::SYS_ioctl, ", 0, 0x5412, $b"),
        refused("TIOCLINUX", libc::SYS_ioctl, ", 0, 0x541c, $b"),
    ];
    let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
    closed(&calls).await;
}

#[tokio::test]
async fn nobody_gains_privileges() {
    closed(&[
        "grep -q 'NoNewPrivs:.*1' /proc/self/status || echo OPEN",
        "grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | grep -vq 0000000000000000 && echo OPEN",
        // Only an administrator can take these away, and is who they matter to.
        "[ $(id -u) != 0 ] || grep CapBnd /proc/self/status | grep -vq 0000000000000000 && [ $(id -u) = 0 ] && echo OPEN",
        "grep -q 'Seccomp:.*2' /proc/self/status || echo OPEN",
        "cp /bin/true t && chmod u+s t && echo OPEN; [ -u t ] && echo OPEN; perl -e 'chmod 04755, \"t\" and print \"OPEN\"'",
        "[ $(ulimit -c) = 0 ] || true",
    ])
    .await;
}

#[tokio::test]
async fn nothing_outlives_a_command() {
    for (tier, time) in tiers().await.into_iter().zip(["39871", "39872"]) {
        let scene = Scene::new(tier);
        let script = format!(
            "(setsid sleep {time} > /dev/null 2>&1 &); nohup sleep {time} > /dev/null 2>&1 & disown; echo started"
        );
        let ran = scene.run(&script).await;
        assert!(ran.said.contains("started"), "{ran:?}");
        let lives = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line) == format!("sleep\0{time}\0")
        });
        assert!(!lives, "{}", tier.name());
    }
}

#[tokio::test]
async fn a_command_is_told_before_it_is_killed() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.timeout = std::time::Duration::from_millis(700);
        let ran = scene
            .run("trap 'echo cleaned; exit 3' TERM; echo up; while :; do read -t 0.05 < /dev/zero; done")
            .await;
        assert_eq!(ran.said, "up\ncleaned\n", "{}", tier.name());
        assert_eq!(ran.ending, agent::process::Ending::TimedOut);
    }
}

#[tokio::test]
async fn what_a_command_takes_is_bounded() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.options.limits.memory = Some(200 << 20);
        scene.options.limits.file_size = Some(1 << 20);
        let sandbox = scene.sandbox().await;
        let big = scene
            .run_in(
                "head -c 3000000 /dev/zero > big; stat -c %s big",
                sandbox.clone(),
            )
            .await;
        assert!(big.said.contains("1048576\n"), "{} {big:?}", tier.name());
        let hungry = scene
            .run_in(
                "perl -e '$x = \"a\" x 400_000_000; print \"OPEN\"'",
                sandbox.clone(),
            )
            .await;
        assert!(!hungry.said.contains("OPEN"), "{} {hungry:?}", tier.name());
        let modest = scene
            .run_in("perl -e '$x = \"a\" x 40_000_000; print \"fits\"'", sandbox)
            .await;
        assert_eq!(modest.said, "fits", "{}", tier.name());
    }
}

#[tokio::test]
async fn a_flood_of_processes_is_ended() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.options.limits.processes = Some(100);
        let ran = scene
            .run("for i in $(seq 1 300); do sleep 39873 & done; wait")
            .await;
        let crowded = agent::process::Ending::Crowded(100);
        assert_eq!(ran.ending, crowded, "{} {ran:?}", tier.name());
    }
}

#[tokio::test]
async fn other_commands_are_not_seen_in_namespaces() {
    let Some(scene) = namespaces().await else {
        return;
    };
    let ran = scene.run("ls -d /proc/[0-9]* | wc -l; hostname").await;
    let (count, host) = ran.said.split_once('\n').unwrap();
    assert!(count.trim().parse::<u32>().unwrap() < 10, "{}", ran.said);
    assert_eq!(host, "sandbox\n");
}
