//! The `bash` tool.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use agent::process::CommandSandbox;
use agent::tool::Failure;
use serde_json::json;
use tokio::sync::mpsc;

use crate::tool_scene::{Scene, text};

#[tokio::test]
async fn output_comes_in_its_order() {
    let scene = Scene::new();
    let output = scene
        .call(
            "bash",
            json!({"command": "pwd; echo err >&2; printf 'end'"}),
        )
        .await;
    assert_eq!(
        text(&output),
        format!("{}\nerr\nend", scene.root().display())
    );
    assert_eq!(
        (output.failure, output.exit_code, output.truncated),
        (None, Some(0), false)
    );
    assert_eq!(output.summary, "exit code 0");
    assert!(
        !scene.output_dir.exists(),
        "nothing is kept that was shown whole"
    );
    assert_eq!(
        scene.ok("bash", json!({"command": "true"})).await,
        "(no output)"
    );
    assert_eq!(
        scene
            .ok(
                "bash",
                json!({"command": "--help 2>/dev/null || echo dash"})
            )
            .await,
        "dash"
    );
}

#[tokio::test]
async fn failures_name_code_and_signal() {
    let scene = Scene::new();
    let check = async |command: &str, code: i32, expect: &str| {
        let output = scene.call("bash", json!({ "command": command })).await;
        assert_eq!(output.failure, Some(Failure::Error));
        assert_eq!(
            (output.exit_code, text(&output).as_str()),
            (Some(code), expect)
        );
    };
    check("echo a; exit 3", 3, "a\n\n[exit code 3]").await;
    check("exit 255", 255, "(no output)\n\n[exit code 255]").await;
    check(
        "kill -KILL $$",
        137,
        "(no output)\n\n[killed by signal 9 (SIGKILL, perhaps out of memory)]",
    )
    .await;
    let syntax = scene.call("bash", json!({"command": "if"})).await;
    assert_eq!(syntax.exit_code, Some(2));
}

#[tokio::test]
async fn commands_get_their_environment_and_no_input() {
    let mut scene = Scene::new();
    scene
        .commands
        .env
        .push(("GREETING".to_owned(), "hello".to_owned()));
    let check = async |command: &str, expect: &str| {
        assert_eq!(
            scene.ok("bash", json!({ "command": command })).await,
            expect
        );
    };
    check("echo $GREETING ${CARGO_MANIFEST_DIR-unset}", "hello unset").await;
    check("read -r line; echo \"[$line] $?\"", "[] 1").await;
    check("cat; echo done", "done").await;
    check("test -t 0 || test -t 1 || echo no terminal", "no terminal").await;
}

#[tokio::test]
async fn output_is_cleaned() {
    let scene = Scene::new();
    let command = r"printf '\033[32mok\033[0m\r\n 1%%\r 2%%\r99%%\n\377\000x\n'";
    assert_eq!(
        scene.ok("bash", json!({ "command": command })).await,
        "ok\n99%\n\u{fffd}x"
    );
}

#[tokio::test]
async fn long_output_shows_its_end_and_is_kept_whole() {
    let scene = Scene::new();
    let output = scene
        .call("bash", json!({"command": "seq 1 30000; exit 1"}))
        .await;
    let kept = scene.output_dir.join("call-1.txt");
    assert!(output.truncated);
    let shown = text(&output);
    let begin = format!(
        "[the last 2000 of 30000 lines are shown; all of the output is in {}]",
        kept.display()
    );
    assert!(shown.starts_with(&begin), "{}", &shown[..200]);
    assert!(shown.ends_with("\n29999\n30000\n\n[exit code 1]"));
    let expect: String = (1..=30_000).map(|line| format!("{line}\n")).collect();
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), expect);
    assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(output.details.unwrap()["outputBytes"], json!(expect.len()));
}

#[tokio::test]
async fn a_giant_line_is_bounded() {
    let scene = Scene::new();
    let output = scene
        .call(
            "bash",
            json!({"command": "head -c 3000000 /dev/zero | tr '\\0' x; echo; echo end"}),
        )
        .await;
    let shown = text(&output);
    assert!(
        output.truncated && shown.len() < 52_000 && shown.ends_with("end"),
        "{}",
        shown.len()
    );
    assert_eq!(
        scene
            .output_dir
            .join("call-1.txt")
            .metadata()
            .unwrap()
            .len(),
        3_000_005
    );
}

#[tokio::test]
async fn output_that_cannot_be_kept_is_said() {
    let scene = Scene::new();
    std::fs::write(&scene.output_dir, "a file is in the way").unwrap();
    let output = scene.call("bash", json!({"command": "seq 1 3000"})).await;
    assert_eq!(output.failure, None);
    assert!(
        text(&output).contains("the rest was not kept: "),
        "{}",
        &text(&output)[..200]
    );
}

#[tokio::test]
async fn time_limits_hold() {
    let mut scene = Scene::new();
    let late = json!({"command": "echo begun; sleep 60", "timeout": 0.3});
    let output = scene.call("bash", late).await;
    assert_eq!(
        (output.failure, output.exit_code),
        (Some(Failure::Timeout), None)
    );
    assert_eq!(
        text(&output),
        "begun\n\n[timed out after 0.3 s and was stopped]"
    );

    scene.commands.timeout = Duration::from_millis(200);
    let default = scene.call("bash", json!({"command": "sleep 60"})).await;
    assert_eq!(default.failure, Some(Failure::Timeout));

    scene.commands.timeout_max = Duration::from_secs(2);
    let clamped = scene
        .ok("bash", json!({"command": "echo a", "timeout": 1e300}))
        .await;
    assert_eq!(
        clamped,
        "a\n\n[the time limit was lowered to the maximum of 2 s]"
    );
    for timeout in [0.0, -1.0] {
        let why = scene
            .refused("bash", json!({"command": "echo", "timeout": timeout}))
            .await;
        assert!(why.contains("more than 0 seconds"), "{why}");
    }
}

#[tokio::test]
async fn cancellation_keeps_what_was_said() {
    let scene = Scene::new();
    let (updates, mut received) = mpsc::channel(4);
    let call = scene.call_with("bash", json!({"command": "echo begun; sleep 60"}), updates);
    let listener = async {
        assert_eq!(received.recv().await.as_deref(), Some("begun\n"));
        scene.cancel.cancel();
    };
    let (output, ()) = tokio::join!(call, listener);
    assert_eq!(output.failure, Some(Failure::Aborted));
    assert_eq!(text(&output), "begun\n\n[cancelled and stopped]");
}

#[tokio::test]
async fn updates_are_joined_and_never_block() {
    let scene = Scene::new();
    // Nobody listens, and nobody takes anything: the call ends all the same.
    let (updates, received) = mpsc::channel(1);
    drop(received);
    scene
        .call_with("bash", json!({"command": "seq 1 50000"}), updates)
        .await;
    let (updates, _received) = mpsc::channel(1);
    scene
        .call_with("bash", json!({"command": "seq 1 50000"}), updates)
        .await;

    let (updates, mut received) = mpsc::channel(64);
    scene
        .call_with(
            "bash",
            json!({"command": "for i in 1 2 3; do echo $i; done"}),
            updates,
        )
        .await;
    let mut all = String::new();
    let mut count = 0;
    while let Some(delta) = received.recv().await {
        all.push_str(&delta);
        count += 1;
    }
    assert_eq!(all, "1\n2\n3\n");
    assert!(count <= 3, "{count}");
}

#[tokio::test]
async fn a_command_without_a_sandbox_starts_only_where_that_is_said() {
    let mut scene = Scene::new();
    scene.commands.sandbox = CommandSandbox::default();
    let why = scene
        .refused("bash", json!({"command": "echo > made"}))
        .await;
    let begin = "the command was not started: no sandbox was set up for it";
    assert!(why.starts_with(begin), "{why}");
    assert!(why.contains("`permissions.allow`"), "{why}");
    assert!(!scene.root().join("made").exists());
    scene.commands.sandbox = CommandSandbox::Off;
    scene.ok("bash", json!({"command": "echo > made"})).await;
    assert!(scene.root().join("made").exists());
}

#[tokio::test]
async fn a_command_that_cannot_start_is_explained() {
    let mut scene = Scene::new();
    scene.commands.shell_path = scene.root().display().to_string();
    let why = scene.refused("bash", json!({"command": "echo"})).await;
    assert_eq!(
        why,
        "the command was not started: there is no `bash` in the PATH that commands get, \
         outside of what they can write"
    );
    std::fs::remove_dir_all(scene.root()).unwrap();
    let why = scene.refused("bash", json!({"command": "echo"})).await;
    assert_eq!(
        why,
        "the command was not started: the workspace does not exist any more"
    );
}
