//! What commands ask of the kernel besides files and sockets: other processes'
//! order and memory, the terminal, what outlives them.

use std::os::unix::net::UnixListener;

use crate::sandbox_scene::{Scene, closed, tiers};
use agent::process::{Ending, Process};
use agent::sandbox::{Network, Tier};

/// A call by number, which must fail.
fn fails(name: &str, number: i64, arguments: &str) -> String {
    format!(
        "perl -e 'my $b = \"\\0\" x 256; my $n = \"agent-test\"; syscall({number}{arguments}) == -1 \
         or print \"OPEN {name}\\n\"'"
    )
}

#[tokio::test]
async fn the_order_of_the_runner_is_its_own() {
    let runner = std::process::id();
    let calls = [
        fails(
            "setpriority",
            libc::SYS_setpriority,
            &format!(", 0, {runner}, 1"),
        ),
        fails(
            "sched_setaffinity",
            libc::SYS_sched_setaffinity,
            &format!(", {runner}, 8, pack(\"Q\", 1)"),
        ),
        fails(
            "sched_setscheduler",
            libc::SYS_sched_setscheduler,
            &format!(", {runner}, 0, pack(\"i\", 0)"),
        ),
        fails(
            "sched_setparam",
            libc::SYS_sched_setparam,
            &format!(", {runner}, pack(\"i\", 0)"),
        ),
        fails(
            "sched_setattr",
            libc::SYS_sched_setattr,
            &format!(", {runner}, pack(\"LLQlLQQQ\", 48, 0, 0, 1, 0, 0, 0, 0), 0"),
        ),
        fails(
            "ioprio_set",
            libc::SYS_ioprio_set,
            &format!(", 1, {runner}, 24583"),
        ),
    ];
    closed(&calls.each_ref().map(String::as_str)).await;
}

#[tokio::test]
async fn the_user_is_not_one_process_of_his() {
    let scene = Scene::new(Tier::Landlock);
    for script in [
        fails("setpriority", libc::SYS_setpriority, ", 2, $<, 0"),
        fails("ioprio_set", libc::SYS_ioprio_set, ", 3, $<, 16388"),
    ] {
        let ran = scene.run(&script).await;
        assert_eq!(ran.said, "", "{script} {ran:?}");
    }
}

#[tokio::test]
async fn memory_that_outlives_a_command_is_not_there() {
    let scene = Scene::new(Tier::Landlock);
    for script in [
        fails("shmget", libc::SYS_shmget, ", 0, 4096, 0x3ff"),
        fails("msgget", libc::SYS_msgget, ", 0, 0x3ff"),
        fails("semget", libc::SYS_semget, ", 0, 1, 0x3ff"),
        fails("mq_open", libc::SYS_mq_open, ", $n, 0102, 0600, 0"),
    ] {
        let ran = scene.run(&script).await;
        assert_eq!(ran.said, "", "{script} {ran:?}");
    }
}

#[tokio::test]
async fn a_directory_of_proc_is_no_handle_to_its_process() {
    let scene = Scene::new(Tier::Landlock);
    let script = format!(
        "perl -e 'use Fcntl; sysopen(D, \"/proc/$ENV{{RUNNER}}\", O_RDONLY|0200000) or die; \
         $! = 0; syscall({}, fileno(D), 0, 0, 0); print $! == 38 ? \"gone\" : \"OPEN $!\"'",
        libc::SYS_pidfd_send_signal
    );
    assert_eq!(scene.run(&script).await.said, "gone");
}

#[tokio::test]
async fn interrupts_and_their_kin_are_an_administrators() {
    closed(&[
        "for f in /proc/irq/default_smp_affinity /proc/irq/*/smp_affinity /proc/mtrr /proc/bus/pci/*/* /proc/fs/*/*/* /proc/driver/* /proc/scsi/scsi; do [ -f $f ] && { : >> $f; } 2>/dev/null && echo OPEN $f; done",
    ])
    .await;
}

#[tokio::test]
async fn what_only_root_may_read_is_not_read() {
    closed(&[
        "find /etc -type f ! -perm -o=r -readable -size +0 2>/dev/null | while read -r f; do head -c 1 \"$f\" 2>/dev/null | grep -q . && echo OPEN $f; done",
    ])
    .await;
}

#[tokio::test]
async fn orphans_are_counted_too() {
    for tier in tiers().await {
        let mut scene = Scene::new(tier);
        scene.options.limits.processes = Some(50);
        scene.timeout = std::time::Duration::from_secs(20);
        let ran = scene
            .run("for i in $(seq 1 200); do (setsid sleep 39874 &); done; sleep 39875")
            .await;
        assert_eq!(ran.ending, Ending::Crowded(50), "{} {ran:?}", tier.name());
    }
}

#[tokio::test]
async fn local_sockets_are_asked_for_whatever_the_network() {
    let mut scene = Scene::new(Tier::Landlock);
    scene.options.network = Network::On;
    let path = scene.path("outside/daemon");
    let _daemon = UnixListener::bind(&path).unwrap();
    let connect = format!(
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) and connect(S, pack_sockaddr_un(\"{}\")) and print \"met\"'; true",
        path.display()
    );
    assert_eq!(scene.run(&connect).await.said, "");
    scene.options.unix_sockets = true;
    assert_eq!(scene.run(&connect).await.said, "met");
}

/// Whether no process has this name, or soon none has: what was killed is dying.
/// One that hops is not always seen.
fn is_gone(name: &str) -> bool {
    let mut quiet = 0;
    for _ in 0..20_000 {
        let seen = std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let own = std::fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            own.trim() == name
        });
        quiet = if seen { 0 } else { quiet + 1 };
        if quiet == 30 {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_process_that_hops_from_id_to_id_is_caught() {
    for (tier, name) in tiers().await.into_iter().zip(["hop-39876", "hop-39877"]) {
        let scene = Scene::new(tier);
        let hop = format!(
            "perl -MPOSIX -e '$0 = \"{name}\"; exec \"true\" if fork; delete @ENV{{keys %ENV}}; \
             while (1) {{ setsid(); fork and POSIX::_exit(0) }}' > /dev/null 2>&1"
        );
        let ran = scene.run(&format!("{hop}; {hop}; echo ended")).await;
        assert_eq!(ran.said, "ended\n", "{ran:?}");
        assert!(is_gone(name), "{}", tier.name());
    }
}

#[tokio::test]
async fn what_hides_ends_with_its_command_and_not_with_the_last() {
    for (tier, name) in tiers().await.into_iter().zip(["hide-39878", "hide-39879"]) {
        let scene = Scene::new(tier);
        let sandbox = scene.sandbox().await;
        let other = Process::spawn(scene.command("read", sandbox.clone())).unwrap();
        let script = format!(
            "cp $(command -v sleep) {name}; (env -i setsid ./{name} 1000 > /dev/null 2>&1 &); echo ended"
        );
        let ran = scene.run_in(&script, sandbox).await;
        assert_eq!(ran.said, "ended\n", "{ran:?}");
        assert!(is_gone(name), "{}", tier.name());
        drop(other);
    }
}

#[tokio::test]
async fn the_terminal_of_the_runner_is_not_a_commands() {
    let scene = Scene::new(Tier::Landlock);
    let ran = scene
        .run("exec 3<>/dev/tty && echo OPEN; ls -l /dev/tty")
        .await;
    assert!(
        !ran.said.contains("OPEN") && ran.said.contains("ermission denied"),
        "{ran:?}"
    );
}
