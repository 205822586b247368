//! What a permission refuses is not found by walking over it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent::access::Access;
use agent::tool::Permit;
use serde_json::{Value, json};

use crate::support::anthropic;
use crate::support::cli::{Cli, Output};
use crate::support::server::ModelServer;
use crate::tool_scene::{Scene, text};

const CANARY: &str = "canary-7f3a";

/// A workspace in which nothing named `closed` may be touched.
fn scene() -> Scene {
    let mut scene = Scene::new();
    scene.permit = Permit::new(|access| match access {
        Access::Read(path) | Access::Write(path) => {
            !path.components().any(|part| part.as_os_str() == "closed")
        }
        _ => true,
    });
    scene
        .put("a.txt", CANARY)
        .put("dir/b.txt", CANARY)
        .put("dir/closed", CANARY)
        .put("closed/c.txt", CANARY)
        .put("closed/deep/d.txt", CANARY);
    scene
}

#[tokio::test]
async fn walks_pass_over_what_may_not_be_read() {
    let scene = scene();
    let check = async |tool: &str, args: Value, expect: &str| {
        assert_eq!(scene.ok(tool, args.clone()).await, expect, "{tool} {args}");
    };
    check(
        "grep",
        json!({"pattern": "canary"}),
        "a.txt:1:canary-7f3a\ndir/b.txt:1:canary-7f3a\n\n[2 paths are not shown: permissions]",
    )
    .await;
    check(
        "grep",
        json!({"pattern": "canary", "glob": "b.*"}),
        "dir/b.txt:1:canary-7f3a\n\n[1 path is not shown: permissions]",
    )
    .await;
    check(
        "grep",
        json!({"pattern": "absent", "path": "dir"}),
        "no matches\n\n[1 path is not shown: permissions]",
    )
    .await;
    check(
        "find",
        json!({"pattern": "**"}),
        "a.txt\ndir/\ndir/b.txt\n\n[2 paths are not shown: permissions]",
    )
    .await;
    let listed = "b.txt\n\n[1 path is not shown: permissions]";
    check("ls", json!({"path": "dir"}), listed).await;
    check("read", json!({"path": "dir"}), listed).await;
    check(
        "ls",
        json!({"limit": 1}),
        "a.txt\n\n[1 of 2 entries are shown; 1 path is not shown: permissions]",
    )
    .await;
    std::fs::remove_file(scene.path("dir/b.txt")).unwrap();
    check(
        "ls",
        json!({"path": "dir"}),
        "(no entries)\n\n[1 path is not shown: permissions]",
    )
    .await;
    let why = scene.refused("read", json!({"path": "close"})).await;
    assert_eq!(why, "`close` does not exist");
}

#[tokio::test]
async fn a_path_that_leads_elsewhere_after_the_decision_is_refused() {
    let scene = scene();
    std::os::unix::fs::symlink("closed", scene.path("link")).unwrap();
    std::os::unix::fs::symlink("dir", scene.path("fine")).unwrap();
    let expect = "`link/c.txt` leads elsewhere than a moment ago, to what this call may not touch";
    for (tool, args) in [
        ("read", json!({"path": "link/c.txt"})),
        ("grep", json!({"path": "link/c.txt", "pattern": "canary"})),
        ("write", json!({"path": "link/c.txt", "content": "x"})),
        (
            "edit",
            json!({"path": "link/c.txt", "edits": [{"oldText": "c", "newText": "x"}]}),
        ),
    ] {
        assert_eq!(scene.refused(tool, args).await, expect, "{tool}");
    }
    scene
        .refused("write", json!({"path": "link/new.txt", "content": "x"}))
        .await;
    assert!(!scene.path("closed/new.txt").exists());
    assert_eq!(scene.bytes("closed/c.txt"), CANARY.as_bytes());
    // A link to what is permitted works as ever.
    assert_eq!(
        scene.ok("read", json!({"path": "fine/b.txt"})).await,
        CANARY
    );
    scene
        .ok("write", json!({"path": "fine/b.txt", "content": "new"}))
        .await;
    scene
        .ok("write", json!({"path": "fine/n.txt", "content": "new"}))
        .await;
    assert_eq!(scene.bytes("dir/n.txt"), b"new");
}

#[tokio::test]
async fn a_directory_swapped_for_a_link_at_the_last_moment_leads_nowhere() {
    // The permit is asked after the path was resolved and before it is opened:
    // the worst moment for a swap.
    for tool in ["read", "write"] {
        let mut scene = Scene::new();
        let outside = Scene::new();
        outside.put("x.txt", CANARY);
        scene.put("dir/x.txt", "harmless");
        scene.ok("read", json!({"path": "dir/x.txt"})).await;
        let (dir, aside) = (scene.path("dir"), scene.path("aside"));
        let target = outside.root().to_owned();
        let swapped = Arc::new(AtomicBool::new(false));
        scene.permit = Permit::new(move |_| {
            if !swapped.swap(true, Ordering::SeqCst) {
                std::fs::rename(&dir, &aside).unwrap();
                std::os::unix::fs::symlink(&target, &dir).unwrap();
            }
            true
        });
        let args = match tool {
            "read" => json!({"path": "dir/x.txt"}),
            _ => json!({"path": "dir/x.txt", "content": "new"}),
        };
        let why = scene.refused(tool, args).await;
        assert!(why.contains("became a symbolic link"), "{tool}: {why}");
        assert_eq!(outside.bytes("x.txt"), CANARY.as_bytes());
    }
}

fn run_denied(server: &ModelServer) -> Output {
    Cli::new()
        .file("secrets/key.txt", format!("{CANARY}\n"))
        .file("keys/id_rsa", format!("{CANARY}\n"))
        .file(".env", format!("{CANARY}\n"))
        .file("notes.txt", "a canary is a bird\n")
        .file(
            "task.yaml",
            "version: 1\nname: search\nprompt: search\n\
             permissions: {mode: read_only, deny: [\"Read(secrets/**)\"]}\n",
        )
        .env("ANTHROPIC_API_KEY", "not-a-real-key")
        .args(["run", "task.yaml", "--model", "anthropic/claude-sonnet-5"])
        .args(["--base-url", &server.url()])
        .run()
}

#[test]
fn the_content_of_denied_files_reaches_nobody() {
    let server = ModelServer::start([
        anthropic::tool_calls(&[
            ("one", "grep", json!({"pattern": "canary"})),
            ("two", "grep", json!({"pattern": "c", "path": ".env"})),
            ("three", "find", json!({"pattern": "**/.*"})),
            ("four", "ls", json!({})),
        ]),
        anthropic::text("done"),
    ]);
    let output = run_denied(&server);
    let requests = server.finish();
    for text in [
        output.artifact("events.jsonl"),
        output.artifact("session.jsonl"),
        String::from_utf8(requests[1].bytes.clone()).unwrap(),
        output.stdout.clone(),
        output.stderr.clone(),
    ] {
        assert!(!text.contains(CANARY), "{text}");
    }
    let told: Vec<String> = output
        .events()
        .iter()
        .filter(|event| {
            event["event"]
                .as_str()
                .unwrap()
                .starts_with("tool:execution:complete")
        })
        .map(|event| event["data"]["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        told.iter()
            .any(|text| text
                == "notes.txt:1:a canary is a bird\n\n[2 paths are not shown: permissions]"),
        "{told:#?}"
    );
    assert!(
        told.iter()
            .all(|text| !text.contains("key.txt") && !text.contains("id_rsa"))
    );
    assert!(told.iter().all(|text| !text.contains(".env")), "{told:#?}");
}

#[tokio::test]
async fn secrets_are_not_kept_on_disk() {
    let mut scene = Scene::new();
    scene.redactor = agent::secret::Redactor::new(["correct-horse-battery".to_owned()]);
    // The value comes in two writes, in the middle of a long output, and at its very end.
    let command = "seq 1 3000; printf 'a correct-hor'; sleep 0.05; echo 'se-battery b'; seq 1 20000; \
                   printf 'c correct-horse-battery'";
    let output = scene.call("bash", json!({"command": command})).await;
    assert!(output.truncated);
    let kept = std::fs::read_to_string(scene.output_dir.join("call-1.txt")).unwrap();
    let numbers = |to: u32| (1..=to).map(|n| format!("{n}\n")).collect::<String>();
    assert_eq!(
        kept,
        format!("{}a *** b\n{}c ***", numbers(3000), numbers(20_000))
    );
    assert!(text(&output).contains("all of the output is in"));
}
