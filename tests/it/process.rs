//! Commands: how they end, what they see, and that nothing outlives them.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use agent::process::{CommandSpec, Ending, Process, Progress, Streams, capture};
use tokio_util::sync::CancellationToken;

fn shell(script: &str) -> CommandSpec {
    CommandSpec {
        program: "bash".into(),
        args: vec!["-c".into(), script.into()],
        cwd: std::env::temp_dir(),
        env: vec![("PATH".into(), path())],
        stdin: None,
        streams: Streams::Merged,
        timeout: Some(Duration::from_secs(60)),
        confinement: None,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "programs are where the caller has them"
)]
fn path() -> OsString {
    std::env::var_os("PATH").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "measures the code under test")]
fn now() -> Instant {
    Instant::now()
}

async fn run(spec: CommandSpec) -> (Ending, String) {
    let done = capture(spec, 1 << 20, &CancellationToken::new())
        .await
        .unwrap();
    (done.ending, String::from_utf8(done.output).unwrap())
}

/// Whether a process lives; a dead one that nobody reaped does not count.
fn lives(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        !stat
            .rsplit_once(')')
            .unwrap()
            .1
            .trim_start()
            .starts_with('Z')
    })
}

#[tokio::test]
async fn the_ending_is_the_one_of_the_program() {
    for (script, expect) in [
        ("exit 0", Ending::Exited(0)),
        ("exit 7", Ending::Exited(7)),
        ("kill -SEGV $$", Ending::Signalled(11)),
        ("kill -TERM $$", Ending::Signalled(15)),
        ("no-such-program-anywhere 2>/dev/null", Ending::Exited(127)),
    ] {
        assert_eq!(run(shell(script)).await.0, expect, "{script}");
    }
}

#[tokio::test]
async fn the_end_is_given_again() {
    let cancel = CancellationToken::new();
    let mut process = Process::spawn(shell("exit 3")).unwrap();
    for _ in 0..3 {
        assert_eq!(
            process.next(&cancel).await,
            Progress::Ended(Ending::Exited(3))
        );
    }
}

#[tokio::test]
async fn both_streams_arrive_in_order() {
    let script = "for i in 1 2 3; do echo out$i; echo err$i >&2; done";
    assert_eq!(
        run(shell(script)).await.1,
        "out1\nerr1\nout2\nerr2\nout3\nerr3\n"
    );
    let spec = CommandSpec {
        streams: Streams::Stdout,
        ..shell(script)
    };
    assert_eq!(run(spec).await.1, "out1\nout2\nout3\n");
}

#[tokio::test]
async fn the_environment_is_the_given_one() {
    let mut spec = shell("");
    spec.program = "env".into();
    spec.args.clear();
    spec.env.push(("GREETING".into(), "good day".into()));
    let (_, output) = run(spec).await;
    let mut names: Vec<&str> = output
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["AGENT_COMMAND_ID", "GREETING", "PATH"]);
    assert!(output.contains("GREETING=good day\n"));
}

#[tokio::test]
async fn standard_input_is_closed_or_given() {
    assert_eq!(
        run(shell("cat; echo end")).await,
        (Ending::Exited(0), "end\n".into())
    );
    // Far more than two pipes hold, echoed back while it is still being written.
    let bytes = vec![b'x'; 3 << 20];
    let spec = CommandSpec {
        stdin: Some(bytes.clone()),
        ..shell("cat")
    };
    let done = capture(spec, 4 << 20, &CancellationToken::new())
        .await
        .unwrap();
    assert_eq!((done.ending, done.truncated), (Ending::Exited(0), false));
    assert!(done.output == bytes);
    // A program that does not read it is not waited for.
    let spec = CommandSpec {
        stdin: Some(bytes),
        ..shell("exec 0<&-; exit 4")
    };
    assert_eq!(run(spec).await.0, Ending::Exited(4));
}

#[tokio::test]
async fn a_flood_is_read_in_bounded_pieces() {
    let cancel = CancellationToken::new();
    let mut process = Process::spawn(shell("head -c 100000000 /dev/zero")).unwrap();
    let mut total = 0;
    loop {
        match process.next(&cancel).await {
            Progress::Output(bytes) => {
                assert!(!bytes.is_empty() && bytes.len() <= 64 * 1024);
                total += bytes.len();
            }
            Progress::Ended(ending) => break assert_eq!(ending, Ending::Exited(0)),
        }
    }
    assert_eq!(total, 100_000_000);
}

#[tokio::test]
async fn captured_output_is_cut_and_says_so() {
    let done = capture(
        shell("head -c 5000 /dev/zero"),
        100,
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    assert_eq!((done.output.len(), done.truncated), (100, true));
}

#[tokio::test]
async fn time_is_up_even_for_those_who_ignore_it() {
    let start = now();
    let spec = CommandSpec {
        timeout: Some(Duration::from_millis(100)),
        ..shell("trap '' TERM; echo $$; while :; do sleep 60; done")
    };
    let (ending, output) = run(spec).await;
    assert_eq!(ending, Ending::TimedOut);
    assert!(
        start.elapsed() < Duration::from_secs(4),
        "{:?}",
        start.elapsed()
    );
    assert!(!lives(output.trim()));
}

#[tokio::test]
async fn time_is_up_in_a_flood_too() {
    let spec = CommandSpec {
        timeout: Some(Duration::from_millis(100)),
        ..shell("yes")
    };
    let done = capture(spec, 10, &CancellationToken::new()).await.unwrap();
    assert_eq!(done.ending, Ending::TimedOut);
}

#[tokio::test]
async fn a_program_may_clean_up_before_it_goes() {
    let spec = CommandSpec {
        timeout: Some(Duration::from_millis(200)),
        ..shell("trap 'echo cleaned; exit 0' TERM; while :; do sleep 0.01; done")
    };
    let (ending, output) = run(spec).await;
    assert_eq!(ending, Ending::TimedOut);
    assert!(output.contains("cleaned\n"), "{output}");
}

#[tokio::test]
async fn cancellation_takes_less_than_two_seconds() {
    let cancel = CancellationToken::new();
    let mut process = Process::spawn(shell(
        "trap '' TERM; echo ready; while :; do sleep 60; done",
    ))
    .unwrap();
    assert_eq!(
        process.next(&cancel).await,
        Progress::Output("ready\n".into())
    );
    let start = now();
    cancel.cancel();
    assert_eq!(
        process.next(&cancel).await,
        Progress::Ended(Ending::Cancelled)
    );
    assert!(
        start.elapsed() < Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
}

/// What is left running must be dead when the end is told, and soon.
async fn check_left_behind(script: &str) {
    let start = now();
    let (ending, output) = run(shell(script)).await;
    assert_eq!(ending, Ending::Exited(0), "{script}");
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "{script}: {:?}",
        start.elapsed()
    );
    let pids: Vec<&str> = output.split_ascii_whitespace().collect();
    assert!(!pids.is_empty(), "{script}");
    for pid in pids {
        // Without adoption, init reaps it in its own time; dead it is already.
        assert!(!lives(pid), "{script}: {pid} lives");
    }
}

#[tokio::test]
async fn nothing_that_was_left_behind_survives() {
    for script in [
        "sleep 300 & echo $!",
        "sleep 300 >/dev/null 2>&1 & echo $!",
        "setsid sleep 300 & echo $!",
        "setsid bash -c 'echo $$; exec sleep 300' </dev/null & sleep 0.2",
        "(setsid bash -c '(trap \"\" TERM HUP; echo $BASHPID; exec sleep 300) & exit' &) ; sleep 0.2",
        "nohup bash -c 'echo $$; sleep 300; true' 2>/dev/null & sleep 0.2",
    ] {
        check_left_behind(script).await;
    }
}

#[tokio::test]
async fn dropping_it_kills_the_group() {
    let cancel = CancellationToken::new();
    let mut process = Process::spawn(shell("sleep 300 & echo $!; wait")).unwrap();
    let Progress::Output(bytes) = process.next(&cancel).await else {
        panic!("it ended early");
    };
    let pid = String::from_utf8(bytes.to_vec()).unwrap();
    drop(process);
    let start = now();
    while lives(pid.trim()) {
        assert!(start.elapsed() < Duration::from_secs(5), "still alive");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn errors_say_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    std::fs::write(&plain, "echo hello\n").unwrap();
    let broken = dir.path().join("broken");
    std::fs::write(&broken, "\u{1}\u{2}\u{3}").unwrap();
    executable(&broken);
    let orphan = dir.path().join("orphan");
    std::fs::write(&orphan, "#!/no/such/interpreter\n").unwrap();
    executable(&orphan);
    let table: [(OsString, &Path, &str); 6] = [
        (
            "no-such-program".into(),
            dir.path(),
            "cannot start `no-such-program`: not found in PATH",
        ),
        ("./missing".into(), dir.path(), "is not found"),
        ("./plain".into(), dir.path(), "is not executable"),
        ("./broken".into(), dir.path(), "exec format error"),
        ("./orphan".into(), dir.path(), "the interpreter that"),
        (
            "bash".into(),
            Path::new("/no/such/dir"),
            "the working directory /no/such/dir does not exist",
        ),
    ];
    for (program, cwd, expect) in table {
        let spec = CommandSpec {
            program,
            cwd: cwd.to_owned(),
            ..shell("")
        };
        let error = Process::spawn(spec).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }
}

fn executable(file: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// Adoption concerns the whole process, so these run in one of their own.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test starts itself again")]
fn adopted_orphans_are_found_without_their_mark() {
    const INNER: &str = "AGENT_TEST_ADOPTS";
    if std::env::var_os(INNER).is_none() {
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "process::adopted_orphans_are_found_without_their_mark",
                "--nocapture",
            ])
            .env(INNER, "1")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(
            done.status.success() && text.contains("1 passed"),
            "{text}{}",
            String::from_utf8_lossy(&done.stderr)
        );
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        agent::process::adopt_orphans();
        check_left_behind("(env -i setsid bash -c 'echo $$; exec sleep 300' &) ; sleep 0.2").await;
        nothing_left();
        let mut process =
            Process::spawn(shell("(setsid sleep 300 &); echo ready; sleep 300")).unwrap();
        let cancel = CancellationToken::new();
        assert_eq!(
            process.next(&cancel).await,
            Progress::Output("ready\n".into())
        );
        // Another command's end leaves it alone.
        assert_eq!(run(shell("exit 0")).await.0, Ending::Exited(0));
        agent::process::kill_all_children();
        nothing_left();
        drop(process);
    });
}

/// Neither a living nor a dead child.
fn nothing_left() {
    let me = std::process::id().to_string();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let stat = std::fs::read_to_string(entry.unwrap().path().join("stat")).unwrap_or_default();
        let parent = stat
            .rsplit_once(')')
            .and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1));
        assert_ne!(parent, Some(me.as_str()), "{stat}");
    }
}
